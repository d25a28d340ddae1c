"""Trusted certificates of services."""

import ssl
from functools import cache


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the HTTP library's certificates, read once per process: that takes as long as forty requests."""
    import httpx2  # noqa: PLC0415  settings name this module, and most commands open no connection

    return httpx2.create_ssl_context(trust_env=False)
