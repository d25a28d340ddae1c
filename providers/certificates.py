"""Trusted certificates of services."""

import ssl
from functools import cache

import httpx2


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return those of the HTTP library. They are read once in a process: that takes as long as forty requests."""
    return httpx2.create_ssl_context(trust_env=False)
