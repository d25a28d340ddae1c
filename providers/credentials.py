"""Forms of keys, and the ways that they may be sent."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from providers.errors import NotConfigured

HEADER_VALUE: Final = re.compile(r"[!-~]+")
NO_KEY: Final = "no-key-needed"
"""Sent to endpoints of one's own, which ask for a credential's presence at most."""


def ensure_key(key: str, variable: str) -> None:
    """Raises `NotConfigured`, which names the variable and never the value, for what cannot be a key."""
    if not HEADER_VALUE.fullmatch(key):
        raise NotConfigured(f"{variable} holds characters that no key has")


def ensure_confidential(key: str, address: str, variable: str, key_variable: str) -> None:
    """Raises `NotConfigured`, which names both variables, for a key that would cross a network in clear."""
    if key != NO_KEY and not is_confidential(address):
        raise NotConfigured(f"{variable}: {in_clear(key_variable)}")


def in_clear(key_variable: str) -> str:
    """Return the problem of an address that a key must not be sent to, and its remedy."""
    return (
        f"begins with http:// and leads to another machine, so {key_variable} would be sent in clear: "
        f"write https://, or, if no key is needed there, unset {key_variable}"
    )


def is_confidential(address: str) -> bool:
    """Return whether the way to an address is safe from readers: TLS, or this very machine."""
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").removesuffix(".")
    except ValueError:
        return False
    return parts.scheme == "https" or _is_this_machine(host)


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
