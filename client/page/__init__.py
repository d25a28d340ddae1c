"""The page of `serve`: ask, watch, approve, read and compare runs in a browser."""
