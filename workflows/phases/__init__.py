"""Phases shared by strategies: searching, reading, analysing, pausing, closing."""
