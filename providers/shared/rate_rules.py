"""Decide which call may go now and which must wait how long: pure functions over the shared state of a service.

All times are by the store's clock. Calls are spaced evenly (virtual scheduling, with a small burst where a limit is
configured), and no window holds more than configured. A refusal (429) pauses all calls; then one probe goes. After a
single refusal the calls then go on as before; after several they go on at half the rate that went well. A call that
must wait gets a place in line, kept for a while after its time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from providers.retry_after import LONGEST_WAIT_SECONDS
from providers.shared.rates import (
    RECENT_SECONDS,
    SURE_AFTER_SECONDS,
    Probe,
    RateState,
    ServiceLimits,
    Slowdown,
    WaitingPlace,
    add_amount,
    drop_expired,
    find_room,
    is_forgotten,
)

GRACE_SECONDS: Final = 5.0
"""So much later than its time a holder may come and still have its place: engines and busy workers are late."""

STANDING_BY: Final = 3
STAND_BY_SECONDS: Final = 0.25

Line = tuple[WaitingPlace, ...]


def drop_missed(line: Line, now: float) -> Line:
    """Drop the places whose holders did not come."""
    return tuple(place for place in line if place.at + GRACE_SECONDS >= now)


def arrange_behind_probe(
    line: Line, *, first: float, then: float, interval: Callable[[float], float], standing_by: int = STANDING_BY
) -> Line:
    """Move the line behind a pause, in order, no place earlier; `interval` gives the seconds from a time to the next.

    The first comes at `first` as the probe. A few stand by for it: the first may be held up, or come in vain because
    the pause was prolonged meanwhile. The rest come from `then` on.
    """
    places: list[WaitingPlace] = []
    floor = first
    for number, place in enumerate(line, start=1):
        at = max(place.at, floor)
        places.append(place._replace(at=at))
        floor = stand_by_time(first, number) if number <= standing_by else max(then, at + interval(at))
    return tuple(places)


def stand_by_time(first: float, number: int) -> float:
    """Return the time of the stand-by with this number (from 1) for a probe that is due at `first`."""
    return first + number * STAND_BY_SECONDS


def move_place(line: Line, holder: str, at: float, interval: Callable[[float], float]) -> Line:
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


SHORTEST_WAIT_SECONDS: Final = 1.0
"""The engine waits no shorter: a place nearer than this would be missed."""
HORIZON_SECONDS: Final = 30.0
"""So far ahead places are kept, counted from when calls may go again."""
MOST_PLACES: Final = 200
EARLY_SECONDS: Final = 0.02
"""A timer may be early by so much."""
BURST_SHARE: Final = 4
"""A quarter of what a window allows may go at once."""
MINUTE: Final = 60.0
PROBE_LEASE_SECONDS: Final = 30.0
PROMPT_SECONDS: Final = 0.5
"""A service refuses at once: the probe after a single refusal has passed when it was not refused for so long."""
RETURN_SECONDS: Final = 0.05
"""Between two calls that waited for the end of the pause of a single refusal."""
PROBE_MARGIN_SECONDS: Final = 0.25
"""From the end of a pause to the place of the probe: refusals of the same moment may still prolong it a little."""
PROBE_ANSWER_SHARE: Final = 1.25
"""The next probe gets so many times what the last one took before the waiting calls return."""


@dataclass(frozen=True)
class Granted:
    """The call may go now."""

    at: float
    probe: bool = False


@dataclass(frozen=True)
class MustWait:
    """The call must ask again after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class CallRequest:
    """A call that wants to go. `permit` names this very attempt, `holder` the operation that it belongs to."""

    holder: str
    permit: str
    tokens: int = 0


def drop_outdated(state: RateState, now: float, limits: ServiceLimits) -> RateState:
    """Drop from the state what has passed."""
    recent = drop_expired(state.recent, now, RECENT_SECONDS)
    demand = sum(entry.amount for entry in recent) / RECENT_SECONDS
    outdated = state.slowdown is not None and is_forgotten(state.slowdown, now, demand)
    state = state.changed(
        changed_at=now,
        requests=drop_expired(state.requests, now, limits.window_seconds),
        tokens=drop_expired(state.tokens, now, MINUTE),
        recent=recent,
        places=drop_missed(state.places, now),
        probe=None if state.probe is not None and state.probe.until < now else state.probe,
        slowdown=None if outdated else state.slowdown,
    )
    if state.probe is None or state.throttles or now < state.probe.since + PROMPT_SECONDS:
        return state
    return _reopened(state, now)


def request_call(
    state: RateState, now: float, asking: CallRequest, limits: ServiceLimits
) -> tuple[RateState, Granted | MustWait]:
    """Decide whether a call may go now."""
    before, state = state, drop_outdated(state, now, limits)
    mine = state.place_of(asking.holder)
    paused = now < state.pause_until
    may_probe = state.must_probe and state.probe is None and not paused
    if mine is not None and mine.at > now + EARLY_SECONDS and not may_probe:
        return before, _told(mine.at, now)  # nothing new: nothing to write
    if paused or (state.must_probe and not may_probe):
        return _waiting(state, now, asking, limits, _opening(state, now))
    room = _room(state, asking.tokens, limits, now, state.places[:0])
    if room > now:
        return _waiting(state, now, asking, limits, room)
    if may_probe:
        probe = Probe(id=asking.permit, since=now, until=now + PROBE_LEASE_SECONDS)
        return _counted(state, now, asking, limits).changed(probe=probe), Granted(now, probe=True)
    if mine is not None:
        state = _counted(state, now, asking, limits)
        return state.changed(recent=add_amount(state.recent, now, 1, RECENT_SECONDS)), Granted(now)
    if _slot(state, now, asking.tokens, limits, now) > now:
        return _waiting(state, now, asking, limits, now)
    state = _counted(state, now, asking, limits)
    due = max(state.due, now) + interval(state, now, limits)
    return state.changed(due=due, recent=add_amount(state.recent, now, 1, RECENT_SECONDS)), Granted(now)


def record_answer(state: RateState, now: float, permit: str) -> RateState:
    """Record an answered call. If that was the probe, the waiting calls may go on."""
    if state.probe is None or state.probe.id != permit:
        return state
    took = min(PROBE_LEASE_SECONDS, PROBE_ANSWER_SHARE * (now - state.probe.since))
    state = state.changed(probe=None, probe_seconds=max(SHORTEST_WAIT_SECONDS, took))
    return _reopened(state, now)


def _reopened(state: RateState, now: float) -> RateState:
    """Let the other calls go on after the probe, unless another call was refused meanwhile."""
    if state.slowdown is None or not state.must_probe or now < state.pause_until:
        return state
    return state.changed(slowdown=state.slowdown.model_copy(update={"started_at": now}), recent=(), unexplained=0)


def give_back_probe(state: RateState, permit: str) -> RateState:
    """Record a call without a known outcome. If it was the probe, another probe is needed."""
    return state.changed(probe=None) if state.probe is not None and state.probe.id == permit else state


def settle_tokens(state: RateState, now: float, limits: ServiceLimits, *, estimated: int, used: int) -> RateState:
    """Count the tokens that a call really took instead of the estimate."""
    if limits.tokens_per_minute is None or estimated == used:
        return state
    return state.changed(tokens=add_amount(state.tokens, now, used - estimated, MINUTE))


def interval(state: RateState, at: float, limits: ServiceLimits) -> float:
    """Seconds from a call at this time to the next one. In the future the rate has grown: places count on it."""
    configured = 0.0 if limits.requests is None else limits.window_seconds / limits.requests
    if state.slowdown is None or not state.throttles:
        return configured
    opening = state.pause_until + PROBE_MARGIN_SECONDS + state.probe_seconds
    return max(configured, 1 / state.slowdown.allowed(at, opening))


def spacing(state: RateState, at: float, limits: ServiceLimits) -> float:
    """Seconds from a place in the line to the next one: calls that waited for the end of a pause return one by one."""
    return max(interval(state, at, limits), RETURN_SECONDS if state.must_probe else 0.0)


def _tolerance(state: RateState, now: float, limits: ServiceLimits) -> float:
    """How far calls may be ahead of an even spacing: none while a service was too much for."""
    if limits.requests is None or state.throttles:
        return 0.0
    return (max(1, limits.requests // BURST_SHARE) - 1) * interval(state, now, limits)


def _opening(state: RateState, now: float) -> float:
    """When calls may go again, as far as one can guess."""
    if not state.must_probe:
        return max(now, state.pause_until)
    probed = max(now, state.pause_until) + PROBE_MARGIN_SECONDS
    if not state.throttles:
        return probed if state.probe is None and not state.places else probed + PROMPT_SECONDS
    if state.probe is not None:
        answer = max(SHORTEST_WAIT_SECONDS, (now - state.probe.since) / 2)
        return max(now + answer, state.pause_until + PROBE_MARGIN_SECONDS)
    waiting = len(state.places)
    return stand_by_time(probed, waiting) if waiting <= STANDING_BY else probed + state.probe_seconds


def _room(
    state: RateState, tokens: int, limits: ServiceLimits, floor: float, promised: tuple[WaitingPlace, ...]
) -> float:
    """First time from `floor` on when the windows that are configured have room."""
    at = floor
    if limits.requests is not None:
        places = [(place.at, 1) for place in promised]
        window = limits.window_seconds
        at = find_room(state.requests, places, 1, limit=limits.requests, window=window, floor=at)
    if limits.tokens_per_minute is not None:
        places = [(place.at, place.tokens) for place in promised]
        at = find_room(state.tokens, places, tokens, limit=limits.tokens_per_minute, window=MINUTE, floor=at)
    return at


def _slot(state: RateState, now: float, tokens: int, limits: ServiceLimits, floor: float) -> float:
    """Return the first free time from `floor` on, behind all places."""
    last = state.places[-1].at if state.places else floor
    floor = max(floor, last, state.due - _tolerance(state, now, limits))
    return _room(state, tokens, limits, floor, state.places)


def _waiting(
    state: RateState, now: float, asking: CallRequest, limits: ServiceLimits, floor: float
) -> tuple[RateState, MustWait]:
    """A place from `floor` on, or another time for the place that a holder has."""
    floor = max(floor, now + SHORTEST_WAIT_SECONDS)
    tolerance = _tolerance(state, now, limits)
    if state.place_of(asking.holder) is not None:
        places = move_place(state.places, asking.holder, floor, partial(spacing, state, limits=limits))
        last = places[-1].at
        due = max(state.due, last + spacing(state, last, limits) + tolerance)
        at = next(place.at for place in places if place.holder == asking.holder)
        return state.changed(places=places, due=due), _told(at, now)
    at = _slot(state, now, asking.tokens, limits, floor)
    gap = spacing(state, at, limits)
    reach = max(HORIZON_SECONDS, min(gap, LONGEST_WAIT_SECONDS))
    if len(state.places) >= MOST_PLACES or at > max(now, state.pause_until) + reach:
        beyond = min(max(state.beyond + gap, at), now + LONGEST_WAIT_SECONDS)
        return state.changed(beyond=beyond), _told(beyond, now)
    place = WaitingPlace(asking.holder, at, asking.tokens)
    due = max(state.due, at - tolerance) + gap
    return state.changed(places=(*state.places, place), due=due), _told(at, now)


def _told(at: float, now: float) -> MustWait:
    """Wait until then, but not longer than the longest wait: then the call asks again."""
    return MustWait(min(LONGEST_WAIT_SECONDS, at - now))


def _counted(state: RateState, now: float, asking: CallRequest, limits: ServiceLimits) -> RateState:
    """With a call that goes now, and without its place."""
    requests, tokens = state.requests, state.tokens
    if limits.requests is not None:
        requests = add_amount(requests, now, 1, limits.window_seconds)
    if limits.tokens_per_minute is not None and asking.tokens:
        tokens = add_amount(tokens, now, asking.tokens, MINUTE)
    return state.changed(requests=requests, tokens=tokens, places=state.without(asking.holder))


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


def record_refusal(
    state: RateState, now: float, asking: CallRequest, refusal: Refusal, limits: ServiceLimits
) -> tuple[RateState, MustWait]:
    """Return the state after a refusal, and how long the refused call must wait.

    The call that tells of a new limit is first in line again; other refused calls line up behind the waiting ones.
    """
    state = give_back_probe(drop_outdated(state, now, limits), asking.permit)
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
    waiting = state.without(asking.holder)
    line = (mine, *waiting) if news else (*waiting, mine)
    spaced = partial(spacing, state, limits=limits)
    # A single refusal needs no calls that stand by for the probe: the rest follows at once.
    standing_by, answer = (STANDING_BY, state.probe_seconds) if state.throttles else (0, PROMPT_SECONDS)
    places = arrange_behind_probe(line, first=first, then=first + answer, interval=spaced, standing_by=standing_by)
    at = next(place.at for place in places if place.holder == asking.holder)
    due = places[-1].at + spaced(places[-1].at)
    return state.changed(places=places[:MOST_PLACES], due=due), MustWait(min(LONGEST_WAIT_SECONDS, at - now))


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
