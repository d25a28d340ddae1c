"""Time that a provider demands to wait: a header from outside, so it is read strictly."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

LONGEST_WAIT_SECONDS: Final = 300.0
DIGITS: Final = re.compile(r"[0-9]+")
DATE_FORMAT: Final = "%a, %d %b %Y %H:%M:%S GMT"
"""IMF-fixdate, the form of RFC 9110; its obsolete forms are ignored."""


def retry_after_seconds(headers: Iterable[tuple[str, str]], received_at: datetime | None = None) -> float | None:
    """Seconds to wait, from 0 to 300, or None without a reliable header.

    `retry-after-ms` counts before `retry-after`. A header that occurs twice contradicts itself and is ignored. A date
    is measured against the response's own `Date`, so that a wrong clock here does no harm; `received_at` serves where
    that is missing.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip(" \t"))
    once = {name: found[0] for name, found in values.items() if len(found) == 1}
    for name, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if DIGITS.fullmatch(once.get(name, "")):
            return _clamp(float(once[name]) * seconds)
    until = _date(once.get("retry-after", ""))
    now = _date(once.get("date", "")) or received_at or datetime.now(UTC)
    return None if until is None else _clamp((until - now).total_seconds())


def _date(value: str) -> datetime | None:
    try:
        found = datetime.strptime(value, DATE_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return found if value.isascii() else None


def _clamp(seconds: float) -> float:
    return max(0.0, min(LONGEST_WAIT_SECONDS, seconds))
