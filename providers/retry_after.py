"""How long a provider wants us to wait: a header that anybody may have written, so it is read strictly."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

LONGEST_WAIT_SECONDS: Final = 300.0

DIGITS: Final = re.compile(r"[0-9]+")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SHORT, LONG = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
MONTH, CLOCK = f"(?P<month>{'|'.join(MONTHS)})", "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
DATES: Final = tuple(
    re.compile(form)
    for form in (
        f"{SHORT}, (?P<day>[0-9]{{2}}) {MONTH} (?P<year>[0-9]{{4}}) {CLOCK} GMT",
        f"{LONG}, (?P<day>[0-9]{{2}})-{MONTH}-(?P<year>[0-9]{{2}}) {CLOCK} GMT",
        f"{SHORT} {MONTH} (?P<day>[0-9]{{2}}| [0-9]) {CLOCK} (?P<year>[0-9]{{4}})",
    )
)
"""The form of today and the two obsolete ones, which are still to be accepted (RFC 9110, 5.6.7)."""
YEARS_AHEAD: Final = 50
"""A year of two digits that seems to be further ahead is one of the century before."""


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
    here = received_at or datetime.now(UTC)
    until = _date(stated, here)
    if until is None:
        return None
    now = _date(values.get("date", []), here) or here
    return _clamped((until - now).total_seconds())


def _whole_number(values: list[str]) -> float | None:
    if len(values) != 1 or not DIGITS.fullmatch(values[0]):
        return None
    return float(values[0]) if len(values[0]) <= 15 else float("inf")


def _date(values: list[str], now: datetime) -> datetime | None:
    found = next(filter(None, (form.fullmatch(values[0]) for form in DATES)), None) if len(values) == 1 else None
    if found is None:
        return None
    parts = found.groupdict()
    day, hour, minute, second = (int(parts[name]) for name in ("day", "hour", "minute", "second"))
    year = int(parts["year"]) if len(parts["year"]) == 4 else _whole_year(int(parts["year"]), now.year)
    try:
        return datetime(year, MONTHS.index(parts["month"]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:  # 30 February has the right form
        return None


def _whole_year(two_digits: int, this_year: int) -> int:
    year = this_year - this_year % 100 + two_digits
    return year - 100 if year > this_year + YEARS_AHEAD else year


def _clamped(seconds: float) -> float:
    return max(0.0, min(LONGEST_WAIT_SECONDS, seconds))
