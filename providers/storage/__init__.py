"""Documents and sessions over an object store."""
