"""Who may call a service now, and who must wait how long: pure decisions, all by the store's clock.

Calls are spaced evenly (virtual scheduling, with a small burst where a limit is configured), and no window holds more
than configured. A refusal pauses everybody; then one probe goes, and when it is answered calls go on at half the rate
that went well. Who must wait gets a place, kept for a while after its time.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from providers.retry_after import LONGEST_WAIT_SECONDS
from providers.shared.rate_state import RECENT_SECONDS, Probe, RateState, WaitingPlace
from providers.shared.rate_windows import added, earliest, kept
from providers.shared.service_limits import ServiceLimits
from providers.shared.slowdown import forgotten
from providers.shared.waiting_line import STANDING_BY, live, moved, stand_by

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
"""So many times what the last probe took, the next one is given before the others come back."""


@dataclass(frozen=True)
class Granted:
    """The call may go now."""

    at: float
    probe: bool = False


@dataclass(frozen=True)
class Told:
    """The call must wait so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Asking:
    """A call that wants to go. `permit` names this very attempt, `holder` the operation that it belongs to."""

    holder: str
    permit: str
    tokens: int = 0


def current(state: RateState, now: float, limits: ServiceLimits) -> RateState:
    """The state without what has passed."""
    recent = kept(state.recent, now, RECENT_SECONDS)
    demand = sum(entry.amount for entry in recent) / RECENT_SECONDS
    outdated = state.slowdown is not None and forgotten(state.slowdown, now, demand)
    state = state.changed(
        changed_at=now,
        requests=kept(state.requests, now, limits.window_seconds),
        tokens=kept(state.tokens, now, MINUTE),
        recent=recent,
        places=live(state.places, now),
        probe=None if state.probe is not None and state.probe.until < now else state.probe,
        slowdown=None if outdated else state.slowdown,
    )
    if state.probe is None or state.throttles or now < state.probe.since + PROMPT_SECONDS:
        return state
    return _reopened(state, now)


def asked(state: RateState, now: float, asking: Asking, limits: ServiceLimits) -> tuple[RateState, Granted | Told]:
    """Whether a call may go now."""
    before, state = state, current(state, now, limits)
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
        return state.changed(recent=added(state.recent, now, 1, RECENT_SECONDS)), Granted(now)
    if _slot(state, now, asking.tokens, limits, now) > now:
        return _waiting(state, now, asking, limits, now)
    state = _counted(state, now, asking, limits)
    due = max(state.due, now) + interval(state, now, limits)
    return state.changed(due=due, recent=added(state.recent, now, 1, RECENT_SECONDS)), Granted(now)


def answered(state: RateState, now: float, permit: str) -> RateState:
    """The service has answered a call. If that was the probe, the others may go on, slowly."""
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


def given_back(state: RateState, permit: str) -> RateState:
    """Nobody knows what became of a call. If it was the probe, another one is needed."""
    return state.changed(probe=None) if state.probe is not None and state.probe.id == permit else state


def settled(state: RateState, now: float, limits: ServiceLimits, *, estimated: int, used: int) -> RateState:
    """What a call really took instead of what was estimated."""
    if limits.tokens_per_minute is None or estimated == used:
        return state
    return state.changed(tokens=added(state.tokens, now, used - estimated, MINUTE))


def interval(state: RateState, at: float, limits: ServiceLimits) -> float:
    """Seconds from a call at this time to the next one. In the future the rate has grown: places count on it."""
    configured = 0.0 if limits.requests is None else limits.window_seconds / limits.requests
    if state.slowdown is None or not state.throttles:
        return configured
    opening = state.pause_until + PROBE_MARGIN_SECONDS + state.probe_seconds
    return max(configured, 1 / state.slowdown.allowed(at, opening))


def spacing(state: RateState, at: float, limits: ServiceLimits) -> float:
    """Seconds from a place in the line to the next one: those who waited for the end of a pause return one by one."""
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
    return stand_by(probed, waiting) if waiting <= STANDING_BY else probed + state.probe_seconds


def _room(
    state: RateState, tokens: int, limits: ServiceLimits, floor: float, promised: tuple[WaitingPlace, ...]
) -> float:
    """First time from `floor` on when the windows that are configured have room."""
    at = floor
    if limits.requests is not None:
        places = [(place.at, 1) for place in promised]
        window = limits.window_seconds
        at = earliest(state.requests, places, 1, limit=limits.requests, window=window, floor=at)
    if limits.tokens_per_minute is not None:
        places = [(place.at, place.tokens) for place in promised]
        at = earliest(state.tokens, places, tokens, limit=limits.tokens_per_minute, window=MINUTE, floor=at)
    return at


def _slot(state: RateState, now: float, tokens: int, limits: ServiceLimits, floor: float) -> float:
    """First time from `floor` on that nobody else has, behind everybody who waits."""
    last = state.places[-1].at if state.places else floor
    floor = max(floor, last, state.due - _tolerance(state, now, limits))
    return _room(state, tokens, limits, floor, state.places)


def _waiting(
    state: RateState, now: float, asking: Asking, limits: ServiceLimits, floor: float
) -> tuple[RateState, Told]:
    """A place from `floor` on, or another time for the place that a holder has."""
    floor = max(floor, now + SHORTEST_WAIT_SECONDS)
    tolerance = _tolerance(state, now, limits)
    if state.place_of(asking.holder) is not None:
        places = moved(state.places, asking.holder, floor, partial(spacing, state, limits=limits))
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


def _told(at: float, now: float) -> Told:
    """To come back then; who would have to wait very long asks once more on the way."""
    return Told(min(LONGEST_WAIT_SECONDS, at - now))


def _counted(state: RateState, now: float, asking: Asking, limits: ServiceLimits) -> RateState:
    """With a call that goes now, and without its place."""
    requests, tokens = state.requests, state.tokens
    if limits.requests is not None:
        requests = added(requests, now, 1, limits.window_seconds)
    if limits.tokens_per_minute is not None and asking.tokens:
        tokens = added(tokens, now, asking.tokens, MINUTE)
    return state.changed(requests=requests, tokens=tokens, places=state.without(asking.holder))
