"""What a refusal (429) changes for everybody: a pause, a slower rate afterwards, and places behind the probe."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

from providers.retry_after import LONGEST_WAIT_SECONDS
from providers.shared.rate_rules import (
    MOST_PLACES,
    PROBE_MARGIN_SECONDS,
    PROMPT_SECONDS,
    SHORTEST_WAIT_SECONDS,
    Asking,
    Told,
    current,
    given_back,
    spacing,
)
from providers.shared.rate_state import RateState, WaitingPlace
from providers.shared.service_limits import ServiceLimits
from providers.shared.slowdown import SURE_AFTER_SECONDS, Slowdown
from providers.shared.waiting_line import STANDING_BY, arranged

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_UNEXPLAINED_SECONDS: Final = 60.0
FEWEST_TO_JUDGE_BY: Final = 10
LIKELY_RATE: Final = 2.0
"""Calls per second that a service is taken to allow, of which half are made, when it refused one of a few."""


@dataclass(frozen=True)
class Refusal:
    """A service said that we are too fast: how long to wait, if it said so, and when the call had been allowed."""

    retry_after: float | None
    granted_at: float


def refused(
    state: RateState, now: float, asking: Asking, refusal: Refusal, limits: ServiceLimits
) -> tuple[RateState, Told]:
    """The state after a refusal, and when the refused call should come back.

    The call that tells of a new limit is first in line again; the other refused ones line up behind those who wait.
    """
    state = given_back(current(state, now, limits), asking.permit)
    news = state.slowdown is None or refusal.granted_at > state.slowdown.since
    unexplained = state.unexplained + 1 if news and refusal.retry_after is None else state.unexplained
    pause_until = max(state.pause_until, now + _pause(refusal.retry_after, unexplained))
    state = state.changed(
        origin=state.origin or asking.permit,
        refusals=state.refusals + 1,
        pause_until=pause_until,
        unexplained=unexplained,
        slowdown=_slower(state, now, news=news),
    )
    first = max(pause_until + PROBE_MARGIN_SECONDS, now + SHORTEST_WAIT_SECONDS)
    mine = WaitingPlace(asking.holder, first, asking.tokens)
    others = state.without(asking.holder)
    line = (mine, *others) if news else (*others, mine)
    spaced = partial(spacing, state, limits=limits)
    # A single refusal needs no calls that stand by for the probe: the rest follows at once.
    standing_by, answer = (STANDING_BY, state.probe_seconds) if state.throttles else (0, PROMPT_SECONDS)
    places = arranged(line, first=first, then=first + answer, interval=spaced, standing_by=standing_by)
    at = next(place.at for place in places if place.holder == asking.holder)
    due = places[-1].at + spaced(places[-1].at)
    return state.changed(places=places[:MOST_PLACES], due=due), Told(min(LONGEST_WAIT_SECONDS, at - now))


def _pause(retry_after: float | None, unexplained: int) -> float:
    if retry_after is not None and math.isfinite(retry_after):
        return max(0.0, min(LONGEST_WAIT_SECONDS, retry_after))
    doublings = min(16, max(0, unexplained - 1))
    return min(LONGEST_UNEXPLAINED_SECONDS, FIRST_PAUSE_SECONDS * 2.0**doublings)


def _slower(state: RateState, now: float, *, news: bool) -> Slowdown:
    """A refusal of a call begun before the last decrease was to be expected: it only corrects what went well."""
    known = state.slowdown
    if known is None:
        return _measured(state, now, None)
    if not news:
        fewer: dict[str, float | None] = {"granted": max(0, known.granted - 1), "refused_at": now, "started_at": None}
        fewer["halvings"] = max(1, known.halvings)
        return known.model_copy(update=fewer)
    if known.started_at is None:  # the probe itself was refused
        return known.model_copy(update={"since": now, "refused_at": now, "halvings": known.halvings + 1})
    return _measured(state, now, known)


def _measured(state: RateState, now: float, known: Slowdown | None) -> Slowdown:
    granted = sum(entry.amount for entry in state.recent) - 1
    first = state.recent[0].start if state.recent else now
    span = max(1.0, now - first)
    ceiling = None if known is None else known.allowed(now)
    # A refusal among few calls says nothing of how many would have been allowed: demand is not capacity.
    if granted < FEWEST_TO_JUDGE_BY or (ceiling is not None and now - first < SURE_AFTER_SECONDS):
        granted = max(granted, math.ceil((LIKELY_RATE if ceiling is None else ceiling) * span))
    return Slowdown(
        since=now,
        refused_at=now,
        granted=max(0, granted),
        span=span,
        ceiling=ceiling,
        halvings=0 if known is None else 1,
    )
