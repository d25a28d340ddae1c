"""Trusted certificates of services."""

import ssl
from functools import cache

import httpx2


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the HTTP library's certificates, read once per process: that takes as long as forty requests."""
    return httpx2.create_ssl_context(trust_env=False)
