"""Chat completions over runs, for chat windows. Imported for the first connection."""
