"""Stores of small values shared by all workers."""
