"""Fit of a page to the question: the share of its words that the page covers, and its age. Pure."""

import calendar
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from contracts.request import SourceType
from providers.text import STEMMED_LANGUAGES, detect_language, question_stems, stem, words

WINDOW: Final = 150
"""Words of one place: a long page holds every word somewhere."""
OPENING: Final = 250
"""Words of a page's beginning."""
IN_ONE_PLACE: Final = 0.6
"""Weight of the best place; the rest is that of title, snippet and opening."""
MOST_QUESTIONS: Final = 20
UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]+")
"""Runs of scripts that do not part words, taken in pairs of characters."""


@dataclass(frozen=True)
class Coverage:
    """Words of a question that were found."""

    share: float
    """0 to 1; 0.5 for a question without words."""
    found: int
    of: int
    other_language: bool = False


def coverage(queries: str, title: str, snippet: str, text: str, language: str | None = None) -> Coverage:
    """Return how well a page covers a question's words, however long it is; `language` is the page's, if known.

    `queries` holds one question a line: the one that the page covers best counts, the first of equals. Of a page in
    another language, whose words do not fit, the share says nothing.
    """
    questions = [line for line in queries.splitlines() if line.strip()][:MOST_QUESTIONS]
    spoken = detect_language(" ".join(questions))
    parts = [_units(part, spoken) for part in (title, snippet, text)]
    sought = [frozenset(_units(question, spoken, question=True)) for question in questions]
    found = [_cover(units, *parts) for units in sought if units]
    best = max(found, key=lambda each: each.share, default=Coverage(0.5, 0, 0))
    elsewhere = bool(best.of) and _speaks_otherwise(spoken, language) and best.share < IN_ONE_PLACE
    return replace(best, other_language=elsewhere)


def _cover(sought: frozenset[str], title: Sequence[str], snippet: Sequence[str], body: Sequence[str]) -> Coverage:
    heading = sought.intersection(title)
    opening = heading | sought.intersection(snippet) | sought.intersection(body[:OPENING])
    best = heading | _best_place(body, sought)
    share = (IN_ONE_PLACE * len(best) + (1 - IN_ONE_PLACE) * len(opening)) / len(sought)
    return Coverage(share, len(opening | sought.intersection(body)), len(sought))


def _speaks_otherwise(spoken: str, language: str | None) -> bool:
    base = (language or "").lower().replace("_", "-").partition("-")[0]
    return base in STEMMED_LANGUAGES and spoken in STEMMED_LANGUAGES and base != spoken


def _best_place(units: Sequence[str], sought: frozenset[str]) -> frozenset[str]:
    """The distinct sought words of the window that holds most of them."""
    places = deque[tuple[int, str]]()
    counts: Counter[str] = Counter()
    best: frozenset[str] = frozenset()
    for position, unit in enumerate(units):
        if unit not in sought:
            continue
        places.append((position, unit))
        counts[unit] += 1
        while places[0][0] <= position - WINDOW:
            _, gone = places.popleft()
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
        if len(counts) > len(best):
            best = frozenset(counts)
    return best


def _units(text: str, language: str, *, question: bool = False) -> list[str]:
    spaced = UNSPACED.sub(" ", text)
    stems = question_stems(spaced, language) if question else [stem(word, language) for word in words(spaced)]
    return [*stems, *_pairs(UNSPACED.findall(text))]


def _pairs(runs: Iterable[str]) -> list[str]:
    return [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]


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
    """First and last day that an ISO date may mean; None for anything else."""
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
