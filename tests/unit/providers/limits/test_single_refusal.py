"""One refusal among many calls: it pauses a run once and does not slow it."""

from functools import partial

import pytest

from providers.shared.rate_rules import CallRequest, Granted, Refusal, record_refusal, request_call
from providers.shared.rates import RateState, ServiceLimits
from tests.unit.providers.limits.simulation import START, Simulation

UNLIMITED = ServiceLimits()
CALLS = 20
PAUSE = 1.0


class Run(Simulation):
    """Twenty calls of one run: chains side by side, each call after the one before it was answered."""

    finished = 0.0

    def make(self, chains: int) -> "Run":
        """Make all calls."""
        self.length = CALLS // chains
        for chain in range(chains):
            self._later(chain / 10, partial(self._ask, holder=f"{chain}-1", tries=1))
        self.run([])
        return self

    def _end(self, now: float, asking: CallRequest, granted: Granted, tries: int, retry_after: float | None) -> None:
        super()._end(now, asking, granted, tries, retry_after)
        chain, _, number = asking.holder.partition("-")
        if retry_after is None:
            self.finished = max(self.finished, now)
            if int(number) < self.length:
                self._later(now, partial(self._ask, holder=f"{chain}-{int(number) + 1}", tries=1))


def seconds_of_run(chains: int, refused_call: int | None) -> float:
    """How long a run takes; each call as long that a run without a refusal takes 7.5 s."""
    length = CALLS // chains
    made = Run(
        UNLIMITED,
        refuses=lambda _, number: PAUSE if number == refused_call else None,
        call_seconds=(7.5 - (chains - 1) / 10) / length,
    ).make(chains)
    assert len(made.grants) == CALLS + (refused_call is not None)
    return made.finished


@pytest.mark.parametrize("chains", [1, 2, 4, 5])
@pytest.mark.parametrize("refused_call", range(CALLS))
def test_one_refusal_costs_a_run_hardly_more_than_its_pause(chains: int, refused_call: int) -> None:
    """Whichever of twenty calls is refused, the run takes at most 1.15 times what it takes with the pause alone."""
    ideal = seconds_of_run(chains, None) + PAUSE
    assert ideal == pytest.approx(8.5)
    assert seconds_of_run(chains, refused_call) <= 1.15 * ideal


def after_one_refusal(calls: int = 20) -> RateState:
    """Twenty calls in two seconds, the last of which was refused."""
    state = RateState()
    for number in range(calls):
        state, _ = request_call(
            state, START + 2 * number / calls, CallRequest(f"call-{number}", f"p{number}"), UNLIMITED
        )
    return record_refusal(state, START + 2, CallRequest("call", "p"), Refusal(PAUSE, START + 1.9), UNLIMITED)[0]


@pytest.mark.parametrize("granted_at", [1.5, 3.2])
def test_a_second_refusal_slows_everybody(granted_at: float) -> None:
    """Two refusals within a few seconds are overload, whether the second call began before the pause or after it."""
    state = after_one_refusal()
    assert not state.throttles
    asking = CallRequest("again", "again")
    state, _ = record_refusal(state, START + 3.3, asking, Refusal(PAUSE, START + granted_at), UNLIMITED)
    assert state.throttles
    assert state.slowdown is not None
    assert state.slowdown.start == pytest.approx(state.slowdown.measured / 2)
    state, decision = request_call(state, START + 5, CallRequest("probe", "probe"), UNLIMITED)
    assert isinstance(decision, Granted)
    assert decision.probe
    _, decision = request_call(state, START + 6, CallRequest("other", "other"), UNLIMITED)
    assert not isinstance(decision, Granted)


def test_a_refusal_long_after_another_is_a_single_one_again() -> None:
    """What happened well before the last calls says nothing of them."""
    state, decision = request_call(after_one_refusal(), START + 3.3, CallRequest("probe", "probe"), UNLIMITED)
    assert isinstance(decision, Granted)
    for number in range(100):
        state, _ = request_call(state, START + 4 + number / 10, CallRequest(f"later-{number}", f"l{number}"), UNLIMITED)
    state, _ = record_refusal(state, START + 14, CallRequest("again", "again"), Refusal(PAUSE, START + 13.9), UNLIMITED)
    assert not state.throttles
    assert state.pause_until == START + 14 + PAUSE


def test_a_pause_ends_one_call_after_the_other() -> None:
    """Calls that waited for the end of the pause return evenly instead of all in one moment."""
    state, times = after_one_refusal(), []
    for number in range(40):
        state, decision = request_call(state, START + 2.1, CallRequest(f"waits-{number}", f"w{number}"), UNLIMITED)
        assert not isinstance(decision, Granted)
        times.append(round(decision.seconds, 3))
    assert len(set(times)) == len(times)
