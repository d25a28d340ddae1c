"""Checking and correcting the claims of a draft."""
