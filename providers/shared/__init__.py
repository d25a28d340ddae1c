"""State that all workers share: stores of small values, and their uses."""
