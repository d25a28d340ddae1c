"""Time that a provider wants us to wait: a header from outside, so it is read strictly."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate
from typing import Final

LONGEST_WAIT_SECONDS: Final = 300.0

DIGITS: Final = re.compile(r"[0-9]+")
DATE: Final = re.compile(
    r"""
    [A-Z][a-z]{2},\ \d{2}\ [A-Z][a-z]{2}\ [1-9]\d{3}\ [\d:]{8}\ GMT
    | [A-Z][a-z]{2,5}day,\ \d{2}-[A-Z][a-z]{2}-(?P<years>\d{2})\ [\d:]{8}\ GMT
    | [A-Z][a-z]{2}\ [A-Z][a-z]{2}\ [\d\ ]\d\ [\d:]{8}\ [1-9]\d{3}
    """,
    re.VERBOSE | re.ASCII,
)
"""The form of today and the two obsolete ones, which are still to be accepted (RFC 9110, 5.6.7)."""
YEARS_AHEAD: Final = 50
"""A year of two digits that seems to be further ahead is one of the century before."""


def retry_after_seconds(headers: Iterable[tuple[str, str]], received_at: datetime | None = None) -> float | None:
    """Seconds to wait, from 0 to 300, or None where the headers say nothing that can be relied on.

    `retry-after-ms` counts before `retry-after`. A header that occurs twice contradicts itself and is ignored. A date
    is measured against the response's own `Date`, so that a wrong clock here does no harm; `received_at` serves where
    that is missing.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip(" \t"))
    milliseconds = _whole_number(values.get("retry-after-ms", []))
    if milliseconds is not None:
        return _clamp(milliseconds / 1_000)
    stated = values.get("retry-after", [])
    seconds = _whole_number(stated)
    if seconds is not None:
        return _clamp(seconds)
    here = received_at or datetime.now(UTC)
    until = _date(stated, here)
    if until is None:
        return None
    now = _date(values.get("date", []), here) or here
    return _clamp((until - now).total_seconds())


def _whole_number(values: list[str]) -> float | None:
    if len(values) != 1 or not DIGITS.fullmatch(values[0]):
        return None
    return float(values[0]) if len(values[0]) <= 15 else float("inf")


def _date(values: list[str], now: datetime) -> datetime | None:
    found = DATE.fullmatch(values[0]) if len(values) == 1 else None
    parts = parsedate(values[0]) if found else None
    if found is None or parts is None:
        return None
    year, month, day, hour, minute, second = parts[:6]
    if found["years"]:
        year = now.year - now.year % 100 + int(found["years"])
        year -= 100 if year > now.year + YEARS_AHEAD else 0
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:  # 30 February has the right form
        return None


def _clamp(seconds: float) -> float:
    return max(0.0, min(LONGEST_WAIT_SECONDS, seconds))
