"""What several strategies share: searching, reading, analysing, pausing, closing."""
