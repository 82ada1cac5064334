"""What depends on the machine: files, processes, versions."""
