"""A line of holders that wait, each with a time that is kept for it."""

from collections.abc import Callable
from typing import Final

from providers.limits.rate_state import Place

GRACE_SECONDS: Final = 5.0
"""So much later than its time a holder may come and still have its place: engines and busy workers are late."""

Line = tuple[Place, ...]


def live(line: Line, now: float) -> Line:
    """Without the places that nobody came for."""
    return tuple(place for place in line if place.at + GRACE_SECONDS >= now)


def arranged(line: Line, *, first: float, then: float, interval: Callable[[float], float]) -> Line:
    """The same order, nobody earlier than before: the first from `first` on, the rest from `then` on.

    `interval` tells the seconds from a time to the next one.
    """
    places: list[Place] = []
    floor = first
    for place in line:
        at = max(place.at, floor)
        places.append(place._replace(at=at))
        floor = max(then, at + interval(at))
    return tuple(places)


def moved(line: Line, holder: str, at: float) -> Line:
    """A holder's place at another time, and those behind it by as much."""
    old = next(place.at for place in line if place.holder == holder)
    later = max(0.0, at - old)
    return tuple(place._replace(at=place.at + later) if place.at >= old else place for place in line)
