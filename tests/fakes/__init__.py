"""Loopback servers that speak the protocols of the outside world."""
