"""What a service allows and what workers share about it: limits, windows, the slowdown after refusals, the state."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class ServiceLimits:
    """What a service allows; None where no limit is configured: refusals (429) then show it."""

    requests: int | None = None
    window_seconds: float = 60.0
    """Length of the window in which `requests` are allowed."""
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError`."""
        if self.requests is not None and self.requests < 1:
            raise ValueError("a service must allow at least one request")
        if self.tokens_per_minute is not None and self.tokens_per_minute < 1:
            raise ValueError("a service must allow at least one token")
        if not (math.isfinite(self.window_seconds) and self.window_seconds > 0):
            raise ValueError("a window must have a length")


UNLIMITED: Final = ServiceLimits()
ALONE: Final = ServiceLimits(requests=300, window_seconds=60.0)
"""The least for a service without configured limits, in a worker that cannot reach the shared store."""


def limits_for_one(
    limits: ServiceLimits, share: float, went_well: int = 0, alone: ServiceLimits = ALONE
) -> ServiceLimits:
    """Return one process's share of the limits, for a process that cannot reach the shared store; never unlimited.

    `went_well` is how many calls of this process went well in its best minute: so many it goes on with where nothing
    is configured.
    """
    requests, window = limits.requests, limits.window_seconds
    if requests is None:
        requests, window = max(alone.requests or 1, went_well), alone.window_seconds
    elif requests * share < 1:
        requests, window = 1, window / (requests * share)
    else:
        requests = math.floor(requests * share)
    tokens = limits.tokens_per_minute
    return ServiceLimits(requests, window, None if tokens is None else max(1, math.floor(tokens * share)))


CELLS: Final = 20
"""Parts of a window; what was granted counts as granted at the end of its part, so that a window is never too short."""


class Amount(NamedTuple):
    """So much, from this time on for the length of a cell. Seconds since the epoch."""

    start: float
    amount: int


Log = tuple[Amount, ...]


def add_amount(log: Log, now: float, amount: int, window: float) -> Log:
    """Count an amount at this time. A negative amount is subtracted from the latest entries, down to zero."""
    if amount < 0:
        return _taken_back(log, -amount)
    if log and now < log[-1].start + window / CELLS:
        return (*log[:-1], Amount(log[-1].start, log[-1].amount + amount))
    return (*log, Amount(now, amount))


def drop_expired(log: Log, now: float, window: float) -> Log:
    """Drop the entries that left the window."""
    return tuple(entry for entry in log if leaving_time(entry, window) > now)


def shift_log(log: Log, seconds: float) -> Log:
    """Return the same by a clock that is ahead by so many seconds."""
    return tuple(entry._replace(start=entry.start + seconds) for entry in log)


def leaving_time(entry: Amount, window: float) -> float:
    """Return when an entry leaves the window."""
    return entry.start + window / CELLS + window


def find_room(
    log: Log, planned: Iterable[tuple[float, int]], amount: int, *, limit: int, window: float, floor: float
) -> float:
    """Return the first time from `floor` on at which the amount and all in the window before it stay within the limit.

    `planned` are times and amounts that are promised, none after `floor`. More than the limit counts as the limit.
    """
    leaving = sorted(
        [(leaving_time(entry, window), entry.amount) for entry in log]
        + [(at + window / CELLS + window, promised) for at, promised in planned]
    )
    inside = sum(entry_amount for _, entry_amount in leaving)
    when = floor
    for left_at, entry_amount in leaving:
        if left_at > when:
            if inside + min(amount, limit) <= limit:
                break
            when = left_at
        inside -= entry_amount
    return when


def _taken_back(log: Log, amount: int) -> Log:
    entries = list(log)
    for index in reversed(range(len(entries))):
        taken = min(amount, entries[index].amount)
        entries[index] = Amount(entries[index].start, entries[index].amount - taken)
        amount -= taken
    return tuple(entry for entry in entries if entry.amount)


SLOWEST: Final = 1 / 60
"""Calls per second that are tried at least, however often we were refused."""
FORGOTTEN_AFTER_SECONDS: Final = 300.0
ISOLATED_SECONDS: Final = 5.0
"""A refusal that no other follows until so long after the probe was a single one."""
FAR_BEYOND: Final = 4.0
"""A rate so many times the refused one, and the present demand, limits no call any more."""

NEAR: Final = 0.9
PAST: Final = 1.1
"""Between these shares of the rate that was refused, growth is slow: there it hurts, and there it pays to stay."""
FAST_SHARE: Final = 1 / 20
SLOW_SHARE: Final = 1 / 400
"""Growth per second as a share of the rate that was refused."""
LEAST_GROWTH: Final = 0.002
SURE_AFTER_SECONDS: Final = 2.0
"""What was measured for less says little: of a burst at the beginning, or of the first calls after a probe."""


class Slowdown(BaseModel):
    """What is known of a service that refused. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    since: float
    """When the rate was lowered last: a refusal of a call begun before that was expected and lowers nothing."""
    refused_at: float
    granted: int
    """Calls that were allowed before the refusal, without those that were refused."""
    span: float
    """Seconds in which that was."""
    ceiling: float | None = None
    """The rate allowed at that time, if there was one already."""
    halvings: int = 1
    """0 after a single refusal, which pauses all calls once and lowers no rate."""
    started_at: float | None = None
    """When a probe was answered; None before."""

    @property
    def is_isolated(self) -> bool:
        """Whether a single refusal is all there was: one of many calls may be refused by chance."""
        return self.halvings == 0

    @property
    def measured(self) -> float:
        """Calls per second that went well before the refusal."""
        rate = max(1, self.granted) / self.span
        return max(SLOWEST, rate if self.ceiling is None else min(rate, self.ceiling))

    @property
    def start(self) -> float:
        """Calls per second to begin with after the probe."""
        return max(SLOWEST, self.measured * 0.5 ** min(self.halvings, 64))

    def allowed(self, at: float, opening: float = math.inf) -> float:
        """Calls per second at this time; `opening` is when they are expected to start, if they have not."""
        started_at = opening if self.started_at is None else self.started_at
        return grow_rate(self.start, self.measured, max(0.0, at - started_at), sure=self.span >= SURE_AFTER_SECONDS)

    def shift(self, seconds: float) -> "Slowdown":
        """Return the same by a clock that is ahead by so many seconds."""
        started_at = None if self.started_at is None else self.started_at + seconds
        times = {"since": self.since + seconds, "refused_at": self.refused_at + seconds, "started_at": started_at}
        return self.model_copy(update=times)


def grow_rate(start: float, measured: float, seconds: float, *, sure: bool) -> float:
    """A rate after some seconds of growth: evenly, but if the measured rate is `sure`, slowly around it."""
    fast, slow = (max(LEAST_GROWTH, measured * share) for share in (FAST_SHARE, SLOW_SHARE))
    rate = start
    for end, slope in ((NEAR * measured, fast), (PAST * measured, slow)) if sure else ():
        needed = max(0.0, (end - rate) / slope)
        if seconds <= needed:
            return rate + slope * seconds
        rate, seconds = max(rate, end), seconds - needed
    return rate + fast * seconds


def is_forgotten(slowdown: Slowdown, now: float, asked_for: float) -> bool:
    """Return whether a slowdown is out of date. `asked_for` is the present rate of calls, per second."""
    if slowdown.started_at is None:  # the probe is still to come
        return False
    if slowdown.is_isolated:
        return now - slowdown.started_at > ISOLATED_SECONDS
    if now - max(slowdown.refused_at, slowdown.started_at) > FORGOTTEN_AFTER_SECONDS:
        return True
    return slowdown.allowed(now) > FAR_BEYOND * max(slowdown.measured, asked_for)


RECENT_SECONDS: Final = 5.0
"""In so many seconds the rate of calls is measured."""
LEAST_KEPT_SECONDS: Final = 900.0
CLOCK_SECONDS: Final = 5.0
"""Clocks that differ by more are not the same."""


class WaitingPlace(NamedTuple):
    """A time that is kept for a holder."""

    holder: str
    at: float
    tokens: int


class Probe(BaseModel):
    """The one call that finds out whether a service answers again."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str
    since: float
    until: float
    """Then its worker counts as dead, and another call is the probe."""


class RateState(BaseModel):
    """The state of one service's limit. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    changed_at: float = 0.0
    origin: str = ""
    """Names where this state comes from: those with the same name are one state at several times."""
    refusals: int = 0
    """How many it knows of."""
    due: float = 0.0
    """When the next call would be on time if calls came evenly."""
    beyond: float = 0.0
    """The same for calls that must wait without a place."""
    requests: Log = ()
    tokens: Log = ()
    recent: Log = ()
    places: tuple[WaitingPlace, ...] = ()
    """In the order of their times, which is that of their asking."""
    pause_until: float = 0.0
    unexplained: int = 0
    """Refusals one after the other that did not say how long to wait."""
    probe: Probe | None = None
    probe_seconds: float = 1.0
    """How long the next probe is expected to take."""
    slowdown: Slowdown | None = None

    @property
    def must_probe(self) -> bool:
        """Whether nothing but a probe may go."""
        return self.slowdown is not None and self.slowdown.started_at is None

    @property
    def throttles(self) -> bool:
        """Whether refusals lower the rate of calls."""
        return self.slowdown is not None and not self.slowdown.is_isolated

    def place_of(self, holder: str) -> WaitingPlace | None:
        """What is kept for a holder."""
        return next((place for place in self.places if place.holder == holder), None)

    def without(self, holder: str) -> tuple[WaitingPlace, ...]:
        """Return the places of all other holders."""
        return tuple(place for place in self.places if place.holder != holder)

    def changed(self, **fields: object) -> "RateState":
        """A copy with other values."""
        return self.model_copy(update=fields)

    def shift(self, seconds: float) -> "RateState":
        """Return the same by a clock that is ahead by so many seconds."""
        probe = self.probe and self.probe.model_copy(
            update={"since": self.probe.since + seconds, "until": self.probe.until + seconds}
        )
        return self.changed(
            changed_at=self.changed_at + seconds,
            due=self.due + seconds,
            beyond=self.beyond + seconds,
            requests=shift_log(self.requests, seconds),
            tokens=shift_log(self.tokens, seconds),
            recent=shift_log(self.recent, seconds),
            places=tuple(place._replace(at=place.at + seconds) for place in self.places),
            pause_until=self.pause_until + seconds,
            probe=probe,
            slowdown=self.slowdown and self.slowdown.shift(seconds),
        )


def adopt_clock(state: RateState, now: float) -> RateState:
    """The state by the clock that shows `now`, should that have been set back since the last change.

    What was to come after that change then comes as long after `now`. It counts as a
    state of its own.
    """
    if state.changed_at <= now + CLOCK_SECONDS:
        return state
    return state.shift(now - state.changed_at).changed(origin="")


def ttl_of_state(state: RateState, now: float, limits: ServiceLimits) -> float:
    """Return how long the store keeps the state after its last change."""
    return max(LEAST_KEPT_SECONDS, 2 * limits.window_seconds, state.pause_until - now + LEAST_KEPT_SECONDS)
