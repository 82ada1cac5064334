"""The paper's tables and figures, each as one command: measured beside published, and the difference."""
