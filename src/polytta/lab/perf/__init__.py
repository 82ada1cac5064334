"""What particles cost on a GPU, against the one model people run today."""
