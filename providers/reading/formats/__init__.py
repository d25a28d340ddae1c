"""Documents that are no HTML page."""
