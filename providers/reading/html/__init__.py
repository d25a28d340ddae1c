"""HTML pages: what readers see of them, as canonical text."""
