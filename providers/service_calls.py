"""Calls to services: keys, the connections that may carry them, and times to wait."""

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from providers.errors import NotConfigured

HEADER_VALUE: Final = re.compile(r"[!-~]+")
NO_KEY: Final = "no-key-needed"  # sent to self-hosted endpoints, which at most check that a credential is present


def ensure_key(key: str, variable: str) -> None:
    """Raise `NotConfigured`, naming the variable and never the value, for a text that cannot be a key."""
    if not HEADER_VALUE.fullmatch(key):
        raise NotConfigured(f"{variable} holds characters that no key has")


def ensure_confidential(key: str, address: str, variable: str, key_variable: str) -> None:
    """Raise `NotConfigured`, naming both variables, for a key that would cross a network unencrypted."""
    if key != NO_KEY and not is_confidential(address):
        raise NotConfigured(f"{variable}: {in_clear(key_variable)}")


def in_clear(key_variable: str) -> str:
    """Return the problem of an address to which a key must not be sent, and its remedy."""
    return (
        f"begins with http:// and leads to another machine, so {key_variable} would be sent in clear: "
        f"write https://, or, if no key is needed there, unset {key_variable}"
    )


def is_confidential(address: str) -> bool:
    """Return whether the connection to an address is confidential: TLS, or this machine itself."""
    try:
        parts = urlsplit(address)
        return parts.scheme == "https" or is_this_machine(parts.hostname or "")
    except ValueError:
        return False


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine by its name or address."""
    name = host.removesuffix(".")
    if f".{name}".endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


# --- statuses of answers ----------------------------------------------------------------------------------------------
class StatusKind(StrEnum):
    """The meaning of the status of an HTTP answer for the call."""

    DONE = "done"
    MOVED = "moved"
    BUSY = "busy"
    """The service asks to wait."""
    UNAVAILABLE = "unavailable"
    """The same call may succeed later."""
    DENIED = "denied"
    """The key, the account or this client is refused."""
    UNKNOWN_ADDRESS = "unknown_address"
    INVALID = "invalid"
    """The same call gets the same answer."""


TRANSIENT_STATUSES: Final = frozenset({408, 409, 425, 499})
"""Timeout, conflict with another call, too early, and a connection that the service's own proxy gave up."""


def classify(status: int) -> StatusKind:
    """Return what a status says: the one table for models, searches and pages. Statuses from 600 on are no statuses."""
    if status == 429:
        return StatusKind.BUSY
    if status in TRANSIENT_STATUSES or 500 <= status <= 599:
        return StatusKind.UNAVAILABLE
    if status in {401, 402, 403, 407, 451}:
        return StatusKind.DENIED
    if status in {404, 405, 410}:
        return StatusKind.UNKNOWN_ADDRESS
    if 200 <= status <= 299:
        return StatusKind.DONE
    if 300 <= status <= 399:
        return StatusKind.MOVED
    return StatusKind.INVALID


# --- times to wait ----------------------------------------------------------------------------------------------------
MAX_WAIT_SECONDS: Final = 300.0
DIGITS: Final = re.compile(r"[0-9]+")
DATE_FORMAT: Final = "%a, %d %b %Y %H:%M:%S GMT"  # IMF-fixdate, the form of RFC 9110; its obsolete forms are ignored


def retry_after_seconds(headers: Iterable[tuple[str, str]]) -> float | None:
    """Return the seconds to wait, from 0 to 300, or None without a reliable header.

    `retry-after-ms` takes precedence over `retry-after`. A header that occurs twice is ignored as contradictory. A date
    is measured against the response's own `Date`, so that a wrong local clock does no harm.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip(" \t"))
    single = {name: texts[0] for name, texts in values.items() if len(texts) == 1}
    milliseconds, wait, now = (single.get(name, "") for name in ("retry-after-ms", "retry-after", "date"))
    if DIGITS.fullmatch(milliseconds):
        seconds = float(milliseconds) / 1_000
    elif DIGITS.fullmatch(wait):
        seconds = float(wait)
    elif (until := _date(wait)) is not None:
        seconds = (until - (_date(now) or datetime.now(UTC))).total_seconds()
    else:
        return None
    return max(0.0, min(MAX_WAIT_SECONDS, seconds))


def _date(value: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.strptime(value, DATE_FORMAT).replace(tzinfo=UTC)
    return None
