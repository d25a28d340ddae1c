"""Phases that strategies share: searching, reading, analysing, pausing, closing."""
