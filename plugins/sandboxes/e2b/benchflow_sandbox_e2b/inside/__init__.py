"""What runs in boxes while images are built: the standard library and nothing else."""
