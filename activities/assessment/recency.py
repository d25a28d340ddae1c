"""How old a source is for the question at hand: pure, over dates as far as they are known."""

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from contracts.request import SourceType

HALF_LIFE_DAYS: Final[Mapping[SourceType, float]] = {
    SourceType.WEB: 4 * 365.0,
    SourceType.ACADEMIC: 8 * 365.0,
    SourceType.NEWS: 30.0,
}
"""After so many days a source is worth half as much."""
UNKNOWN: Final = 0.5
OUTSIDE: Final = 0.1
TOLERANCE: Final = timedelta(days=2)
"""A date ahead by less is a matter of time zones."""
WRITTEN: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:[T ].*)?", re.DOTALL)


@dataclass(frozen=True)
class Age:
    """Recency from 0 to 1, what to say of it, and whether it lies before the time that was asked for."""

    recency: float
    phrase: str
    outside: bool = False


def age_of(published: str | None, run_date: str, earliest: str | None, mode: SourceType) -> Age:
    """The age of a source. Dates are ISO, whole or in part; one that cannot be read or lies ahead is unknown."""
    spoken_of, today = _span(published), _span(run_date)
    if spoken_of is None or today is None or spoken_of[0] > today[1] + TOLERANCE:
        return Age(UNKNOWN, "undated")
    first, last = spoken_of
    limit = _span(earliest)
    # A date known in part counts as its latest day: what may be inside is not outside.
    if limit is not None and last < limit[0]:
        return Age(OUTSIDE, f"{first.year}, before the time asked for", outside=True)
    days = max(0, (today[0] - min(last, today[0])).days)
    return Age(0.5 ** (days / HALF_LIFE_DAYS[mode]), str(first.year))


def _span(text: str | None) -> tuple[date, date] | None:
    """First and last day that an ISO date may mean; null for anything else."""
    found = WRITTEN.fullmatch((text or "").strip())
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    if day:
        return first, first
    last_month = month or 12
    return first, date(year, last_month, calendar.monthrange(year, last_month)[1])
