"""Exports: a report with its sources as one file, or converted to other formats."""
