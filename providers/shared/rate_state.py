"""What workers share about the limit of one service."""

from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from providers.shared.rate_windows import Log, moved
from providers.shared.service_limits import ServiceLimits
from providers.shared.slowdown import Slowdown

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
    """The same for those who were told to come back without a place."""
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
        """The places of the others."""
        return tuple(place for place in self.places if place.holder != holder)

    def changed(self, **fields: object) -> "RateState":
        """A copy with other values."""
        return self.model_copy(update=fields)

    def moved(self, seconds: float) -> "RateState":
        """The same by a clock that is ahead by so much."""
        probe = self.probe and self.probe.model_copy(
            update={"since": self.probe.since + seconds, "until": self.probe.until + seconds}
        )
        return self.changed(
            changed_at=self.changed_at + seconds,
            due=self.due + seconds,
            beyond=self.beyond + seconds,
            requests=moved(self.requests, seconds),
            tokens=moved(self.tokens, seconds),
            recent=moved(self.recent, seconds),
            places=tuple(place._replace(at=place.at + seconds) for place in self.places),
            pause_until=self.pause_until + seconds,
            probe=probe,
            slowdown=self.slowdown and self.slowdown.moved(seconds),
        )


def state_to_bytes(state: RateState) -> bytes:
    """As it is kept in the store."""
    return state.model_dump_json(exclude_defaults=True).encode()


def state_from_bytes(value: bytes | None) -> RateState:
    """Inverse of `state_to_bytes`; what is no state counts as none, for anybody might have written it."""
    if value is None:
        return RateState()
    try:
        return RateState.model_validate_json(value)
    except ValidationError:
        return RateState()


def by_clock(state: RateState, now: float) -> RateState:
    """The state by the clock that shows `now`, should that have been set back since the last change.

    What was to come after that change then comes as long after `now`. Who knows better is to say so: it counts as a
    state of its own.
    """
    if state.changed_at <= now + CLOCK_SECONDS:
        return state
    return state.moved(now - state.changed_at).changed(origin="")


def kept_seconds(state: RateState, now: float, limits: ServiceLimits) -> float:
    """How long the state must outlive its last change."""
    return max(LEAST_KEPT_SECONDS, 2 * limits.window_seconds, state.pause_until - now + LEAST_KEPT_SECONDS)
