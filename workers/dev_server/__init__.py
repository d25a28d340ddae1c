"""Temporal's development server as an embedded engine."""
