"""Stores of small values that all workers share."""
