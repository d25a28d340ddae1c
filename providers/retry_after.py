"""How long a provider wants us to wait: a header that anybody may have written, so it is read strictly."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_WAIT_SECONDS: Final = 300.0

DIGITS: Final = re.compile(r"[0-9]+")
IMF_FIXDATE: Final = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4}"
    r" [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
)


def retry_after_seconds(headers: Iterable[tuple[str, str]], received_at: datetime | None = None) -> float | None:
    """Seconds to wait, from 0 to 300, or null where the headers say nothing that can be relied on.

    `retry-after-ms` counts before `retry-after`. A header that occurs twice contradicts itself and is ignored. A date
    is measured against the response's own `Date`, so that a wrong clock here does no harm; `received_at` serves where
    that is missing.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip(" \t"))
    milliseconds = _whole_number(values.get("retry-after-ms", []))
    if milliseconds is not None:
        return _clamped(milliseconds / 1_000)
    stated = values.get("retry-after", [])
    seconds = _whole_number(stated)
    if seconds is not None:
        return _clamped(seconds)
    until = _date(stated)
    if until is None:
        return None
    now = _date(values.get("date", [])) or received_at or datetime.now(UTC)
    return _clamped((until - now).total_seconds())


def _whole_number(values: list[str]) -> float | None:
    if len(values) != 1 or not DIGITS.fullmatch(values[0]):
        return None
    return float(values[0]) if len(values[0]) <= 15 else float("inf")


def _date(values: list[str]) -> datetime | None:
    if len(values) != 1 or not IMF_FIXDATE.fullmatch(values[0]):
        return None
    try:
        return parsedate_to_datetime(values[0])
    except ValueError:  # 30 February has the right form
        return None


def _clamped(seconds: float) -> float:
    return max(0.0, min(LONGEST_WAIT_SECONDS, seconds))
