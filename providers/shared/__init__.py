"""State shared by all workers: stores of small values, and their uses."""
