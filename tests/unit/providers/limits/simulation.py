"""Callers and a service on a clock of their own: what the pure decisions lead to, without a store."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from providers.shared.compare_and_swap import dump_state, load_state
from providers.shared.rate_rules import CallRequest, Granted, Refusal, record_answer, record_refusal, request_call
from providers.shared.rates import RateState, ServiceLimits

START = 1_700_000_000.0
MOST_EVENTS = 20_000


@dataclass(frozen=True)
class Grant:
    """A call that was allowed. Times are seconds since the start."""

    at: float
    holder: str
    probe: bool
    came_for_place: bool


@dataclass
class Simulation:
    """Every caller comes back when told, late by what `late` says of the event's number, until it is answered.

    `refuses` is asked for each request, with its time and the number of those before it, and gives the seconds of
    Retry-After or null. A call takes `call_seconds`.
    """

    limits: ServiceLimits
    refuses: Callable[[float, int], float | None] = lambda at, number: None
    late: Callable[[int], float] = lambda number: 0.0
    call_seconds: float = 0.2
    tokens: int = 0
    state: RateState = field(default_factory=RateState)
    grants: list[Grant] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    denied_places: int = 0
    """How often somebody who came for a place was told to wait again."""
    _events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    _pushed: int = 0

    def run(self, arrivals: Sequence[float]) -> "Simulation":
        """All callers, from their first asking to their answer."""
        for number, at in enumerate(arrivals):
            self._later(at, partial(self._ask, holder=f"holder-{number}", tries=1))
        for _ in range(MOST_EVENTS):
            if not self._events:
                return self
            at, _, event = heapq.heappop(self._events)
            self.state = load_state(RateState, dump_state(self.state))  # as it goes through a store
            event(at)
        raise AssertionError("the callers never come to an end")

    def most_in(self, window: float) -> int:
        """The most grants that any window of this length holds."""
        times = [grant.at for grant in self.grants]
        return max((sum(first <= at < first + window for at in times) for first in times), default=0)

    def _later(self, at: float, event: Callable[[float], None]) -> None:
        self._pushed += 1
        heapq.heappush(self._events, (at, self._pushed, event))

    def _ask(self, now: float, holder: str, tries: int) -> None:
        asking = CallRequest(holder, f"{holder}-{tries}", self.tokens)
        place = self.state.place_of(holder)
        due = place is not None and START + now >= place.at
        self.state, decision = request_call(self.state, START + now, asking, self.limits)
        if not isinstance(decision, Granted):
            self.denied_places += due
            back = now + decision.seconds + self.late(self._pushed)
            self._later(back, partial(self._ask, holder=holder, tries=tries + 1))
            return
        retry_after = self.refuses(now, len(self.grants))
        self.grants.append(Grant(now, holder, decision.probe, place is not None))
        ends = now + (self.call_seconds if retry_after is None else 0.01)
        self._later(ends, partial(self._end, asking=asking, granted=decision, tries=tries, retry_after=retry_after))

    def _end(self, now: float, asking: CallRequest, granted: Granted, tries: int, retry_after: float | None) -> None:
        if retry_after is None:
            self.state = record_answer(self.state, START + now, asking.permit)
            return
        refusal = Refusal(retry_after, granted.at)
        self.state, told = record_refusal(self.state, START + now, asking, refusal, self.limits)
        self.pauses.append((now, self.state.pause_until - START))
        back = now + told.seconds + self.late(self._pushed)
        self._later(back, partial(self._ask, holder=asking.holder, tries=tries + 1))
