"""What a source is worth, with the reason."""
