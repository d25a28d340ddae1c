"""Folders of documents as a place to search: registered by name, indexed with SQLite's FTS5, ranked by sections."""
