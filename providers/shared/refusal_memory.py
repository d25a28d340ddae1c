"""What a worker remembers of refusals: the state that all share may be lost, and be replaced by one that knows less."""

from collections.abc import Callable

from providers.retry_after import LONGEST_WAIT_SECONDS
from providers.shared.rates import CLOCK_SECONDS, FORGOTTEN_AFTER_SECONDS, RateState


def keep_aftermath(state: RateState, now: float, own: float) -> RateState:
    """What refusals left behind in a state, by the clock that shows `own` instead of `now`."""
    left = RateState(
        changed_at=now,
        origin=state.origin,
        refusals=state.refusals,
        pause_until=min(state.pause_until, now + LONGEST_WAIT_SECONDS),
        unexplained=state.unexplained,
        probe_seconds=state.probe_seconds,
        slowdown=state.slowdown,
    )
    return left.shift(own - now)


def is_behind(state: RateState, known: RateState) -> bool:
    """Whether a state knows less: it is a new one, an older copy, or its clock was set forward in the pause.

    Clocks differ a little: among equal knowledge the store's clock decides. So does a probe that was answered.
    """
    if known.origin != state.origin or known.refusals > state.refusals:
        return True
    return state.must_probe and known.pause_until > state.pause_until + CLOCK_SECONDS


def add_known_refusals(state: RateState, known: RateState, name: str) -> RateState:
    """A state with what is known besides; one without an origin gets this name. Doing it again changes nothing."""
    slowdown = state.slowdown
    if slowdown is None or (known.slowdown is not None and known.slowdown.refused_at > slowdown.refused_at):
        slowdown = known.slowdown
    return state.changed(
        origin=state.origin or name,
        refusals=max(state.refusals, known.refusals),
        pause_until=max(state.pause_until, known.pause_until),
        unexplained=max(state.unexplained, known.unexplained),
        probe_seconds=max(state.probe_seconds, known.probe_seconds),
        slowdown=slowdown,
    )


def is_outdated(known: RateState, own: float) -> bool:
    """Whether it is so long ago that it is of no use."""
    if known.slowdown is None:  # there was no refusal, or it limits no call any more
        return True
    last = max(known.pause_until, known.slowdown.refused_at, known.slowdown.started_at or 0.0)
    return own - last > FORGOTTEN_AFTER_SECONDS


class RefusalMemory:
    """What this worker saw last of the refusals of each service, by a clock of its own that never jumps.

    It holds as much as there are services, and those are configured.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` shows seconds."""
        self._clock = clock
        self._known: dict[str, RateState] = {}

    def add_known_refusals(self, service: str, state: RateState, now: float, *, began: float, name: str) -> RateState:
        """The state with what it lacks; `began` is a time of the worker before the store was asked for `now`.

        So a pause that is carried over may become longer by what asking took, and never shorter.
        """
        known = self._known.get(service)
        own = self._clock()
        if known is None or is_outdated(known, own):
            return state
        if not is_behind(state, known.shift(now - own)):
            return state
        return add_known_refusals(state, known.shift(now - began), name)

    def keep(self, service: str, seen: RateState) -> None:
        """Remember the `keep_aftermath` of a state that is shared by now; calls may tell of theirs out of order."""
        known = self._known.get(service)
        if known is None or known.changed_at <= seen.changed_at:
            self._known[service] = seen
