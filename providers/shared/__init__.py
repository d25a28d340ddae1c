"""State that all workers share: stores of small values, and what is built upon them."""
