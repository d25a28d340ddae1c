"""From a timeframe as it is asked for to the first and last day of publication. Pure."""

import calendar
from datetime import date, timedelta
from typing import Final

DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}


def published_between(timeframe: str | None, today: str) -> tuple[str | None, str | None]:
    """First and last day as ISO dates, null where there is no bound; `today` is the date of the run.

    `day`, `week`, `month`, `year` reach back from today; `FROM..TO` may name years, months or days.
    """
    if timeframe is None:
        return None, None
    if timeframe in DAYS:
        return (date.fromisoformat(today) - timedelta(days=DAYS[timeframe])).isoformat(), None
    first, _, last = timeframe.partition("..")
    return _first_day(first), _last_day(last) if last else None


def _first_day(text: str) -> str:
    year, month, day = [*text.split("-"), "01", "01"][:3]
    return _within(int(year), int(month), int(day))


def _last_day(text: str) -> str:
    parts = [int(part) for part in text.split("-")]
    year, month = parts[0], parts[1] if len(parts) > 1 else 12
    return _within(year, month, parts[2] if len(parts) > 2 else 31)


def _within(year: int, month: int, day: int) -> str:
    """The day, or the nearest that the calendar has: `2026-02-31` is the end of that February."""
    year, month = min(9999, max(1, year)), min(12, max(1, month))
    return date(year, month, min(max(1, day), calendar.monthrange(year, month)[1])).isoformat()
