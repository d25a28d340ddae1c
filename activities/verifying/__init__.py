"""Checking and correcting the claims of a draft: what is asked of a model, and what follows from its answers."""
