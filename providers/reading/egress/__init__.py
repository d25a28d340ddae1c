"""The one way out to hosts that somebody named."""
