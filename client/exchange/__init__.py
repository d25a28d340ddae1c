"""Exports: a report with its sources as one file, and the report in the formats of others."""
