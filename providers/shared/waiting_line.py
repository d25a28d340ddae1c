"""A line of holders that wait, each with a time that is kept for it."""

import math
from collections.abc import Callable
from typing import Final

from providers.shared.rate_state import WaitingPlace

GRACE_SECONDS: Final = 5.0
"""So much later than its time a holder may come and still have its place: engines and busy workers are late."""

STANDING_BY: Final = 3
STAND_BY_SECONDS: Final = 0.25

Line = tuple[WaitingPlace, ...]


def live(line: Line, now: float) -> Line:
    """Without the places that nobody came for."""
    return tuple(place for place in line if place.at + GRACE_SECONDS >= now)


def arranged(
    line: Line, *, first: float, then: float, interval: Callable[[float], float], standing_by: int = STANDING_BY
) -> Line:
    """The same order behind a pause, nobody earlier than before; `interval` tells the seconds from a time to the next.

    The first comes at `first` as the probe. A few stand by for it: the first may be held up, or come in vain because
    the pause was prolonged meanwhile. The rest come from `then` on.
    """
    places: list[WaitingPlace] = []
    floor = first
    for number, place in enumerate(line, start=1):
        at = max(place.at, floor)
        places.append(place._replace(at=at))
        floor = stand_by(first, number) if number <= standing_by else max(then, at + interval(at))
    return tuple(places)


def stand_by(first: float, number: int) -> float:
    """When the one with this number (from 1) comes who stands by for a probe that is due at `first`."""
    return first + number * STAND_BY_SECONDS


def moved(line: Line, holder: str, at: float, interval: Callable[[float], float]) -> Line:
    """A holder's place at a later time, and those behind it as far as they are in the way."""
    places: list[WaitingPlace] = []
    floor = -math.inf
    for place in line:
        when = max(place.at, floor)
        if place.holder == holder:
            when = max(when, at)
            floor = when
        if floor > -math.inf:
            floor = when + interval(when)
        places.append(place._replace(at=when))
    return tuple(places)
