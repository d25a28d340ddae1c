"""What a refusal changes for everybody."""

import pytest

from providers.shared.rate_rules import (
    LIKELY_RATE,
    LONGEST_UNEXPLAINED_SECONDS,
    STANDING_BY,
    CallRequest,
    Granted,
    Refusal,
    record_answer,
    record_refusal,
    request_call,
)
from providers.shared.rates import RateState, ServiceLimits
from tests.unit.providers.limits.simulation import START, Simulation

UNLIMITED = ServiceLimits()


def burst(count: int, until: float = 0.5) -> RateState:
    """So many calls, evenly from second 0 to `until`."""
    state = RateState()
    for number in range(count):
        state, decision = request_call(
            state, START + until * number / count, CallRequest(f"call-{number}", f"p{number}"), UNLIMITED
        )
        assert isinstance(decision, Granted)
    return state


def refusal(
    state: RateState, at: float, *, granted_at: float, retry_after: float | None = 5.0, permit: str = "p"
) -> tuple[RateState, float]:
    asking = CallRequest(f"refused-{granted_at}-{permit}", permit)
    state, told = record_refusal(state, START + at, asking, Refusal(retry_after, START + granted_at), UNLIMITED)
    return state, told.seconds


def probed(state: RateState, at: float, permit: str = "probe") -> RateState:
    """A probe that goes at `at` and is answered at once."""
    state, decision = request_call(state, START + at, CallRequest("probing", permit), UNLIMITED)
    assert isinstance(decision, Granted)
    assert decision.probe
    return record_answer(state, START + at, permit)


def rate(state: RateState, at: float) -> float:
    assert state.slowdown is not None
    return state.slowdown.allowed(START + at)


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [(5.0, 5.0), (0.0, 0.0), (-3.0, 0.0), (99_999.0, 300.0), (float("inf"), 1.0), (float("nan"), 1.0), (None, 1.0)],
)
def test_the_pause_is_what_was_asked_for_within_reason(retry_after: float | None, pause: float) -> None:
    """From 0 to 300 s; what says nothing counts as one second (F7)."""
    state, _ = refusal(burst(5), 1, granted_at=0.4, retry_after=retry_after)
    assert state.pause_until - START == pytest.approx(1 + pause)


def test_pauses_without_a_reason_grow() -> None:
    """A service that refuses its probes without saying how long is asked less and less."""
    state = burst(5)
    pauses, at, granted_at = [], 1.0, 0.4
    for number in range(10):
        state, _ = refusal(state, at, granted_at=granted_at, retry_after=None, permit=f"p{number}")
        pauses.append(round(state.pause_until - START - at, 3))
        granted_at = state.pause_until - START + 0.2
        state, decision = request_call(state, START + granted_at, CallRequest("x", f"p{number + 1}"), UNLIMITED)
        assert isinstance(decision, Granted)
        at = granted_at + 0.1
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST_UNEXPLAINED_SECONDS


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    """The latest time that any refusal asked for counts."""
    state, _ = refusal(burst(5), 1, granted_at=0.4, retry_after=20)
    state, _ = refusal(state, 1.1, granted_at=0.3, retry_after=1)
    assert state.pause_until - START == pytest.approx(21)


def test_refusals_of_one_moment_halve_once() -> None:
    """Calls begun before the decrease were refused for the same reason: they only correct what went well."""
    state = burst(40)
    for number in range(30):
        state, _ = refusal(state, 0.6 + number / 1000, granted_at=0.01 * number, permit=f"p{number}")
    assert state.slowdown is not None
    assert state.slowdown.halvings == 1
    assert state.slowdown.measured == pytest.approx(10)
    assert rate(probed(state, 6), 6) == pytest.approx(5)


def test_a_refusal_of_a_newer_call_halves_again() -> None:
    """What was begun after the decrease shows that it was not enough."""
    state, _ = refusal(burst(20), 0.6, granted_at=0.4)
    state = probed(state, 6)
    before = rate(state, 8.1)
    state, decision = request_call(state, START + 8, CallRequest("newer", "newer"), UNLIMITED)
    assert isinstance(decision, Granted)
    state, _ = refusal(state, 8.1, granted_at=8)
    assert rate(probed(state, 14), 14) == pytest.approx(before / 2, rel=0.1)


def test_a_refused_probe_halves_again() -> None:
    """A probe that is refused begins the pause anew, and lowers what comes after."""
    state, _ = refusal(burst(40, until=2.0), 2, granted_at=1.9)
    assert state.slowdown is not None
    once = state.slowdown.start
    state, decision = request_call(state, START + 7.2, CallRequest("probing", "probe"), UNLIMITED)
    assert decision == Granted(START + 7.2, probe=True)
    state, _ = refusal(state, 7.3, granted_at=7.2, permit="probe")
    assert state.slowdown is not None
    assert state.slowdown.start == pytest.approx(once / 2)
    assert state.pause_until - START == pytest.approx(12.3)


def test_the_refused_call_is_the_first_to_come_back() -> None:
    """Who tells of the limit gets the place of the probe, a few stand by, and the rest come after its answer."""
    state, wait = refusal(burst(20), 1, granted_at=0.4)
    assert 5 < wait < 5.5
    waits = []
    for number in range(STANDING_BY + 2):
        state, seconds = refusal(state, 1, granted_at=0.3, permit=f"p{number}")
        waits.append(seconds)
    assert waits == sorted(waits)
    assert waits[STANDING_BY - 1] < wait + 1
    assert waits[STANDING_BY] >= wait + 1


def test_one_who_stands_by_is_the_probe_when_the_first_is_held_up() -> None:
    """A first in line that comes too early, or not at all, delays the probe by a moment only."""
    state, wait = refusal(burst(20), 1, granted_at=0.4)
    state, second = refusal(state, 1, granted_at=0.3)
    state, decision = request_call(state, START + 1 + second, CallRequest("refused-0.3-p", "p"), UNLIMITED)
    assert decision == Granted(START + 1 + second, probe=True)
    assert second < wait + 0.5


def test_places_from_before_a_refusal_are_kept_in_order_behind_the_pause() -> None:
    """Those who wait already wait longer, and nobody overtakes."""
    limits = ServiceLimits(2, 10.0)
    state = RateState()
    for number in range(5):
        state, _ = request_call(state, START + number / 10, CallRequest(f"h{number}", f"p{number}"), limits)
    before = [place.holder for place in state.places]
    state, _ = record_refusal(state, START + 1, CallRequest("h0", "p0"), Refusal(60.0, START), limits)
    assert [place.holder for place in state.places] == ["h0", *before]
    assert all(place.at > START + 61 for place in state.places)


def test_a_service_with_a_hidden_limit_is_found_out() -> None:
    """Forty callers against a service that takes five a second: nearly all calls are answered the first time (F7)."""
    taken: list[float] = []

    def refuses(at: float, _: int) -> float | None:
        recent = [one for one in taken if one > at - 1]
        if len(recent) >= 5:
            return 5.0
        taken.append(at)
        return None

    made = Simulation(UNLIMITED, refuses=refuses).run([number / 50 for number in range(200)])
    assert len(taken) == 200
    assert len(made.grants) <= 1.2 * 200


def test_a_refusal_among_few_calls_is_no_measure_of_capacity() -> None:
    """A run that calls once in five seconds and is refused once is not held to half of that: demand is not capacity."""
    state = RateState()
    for number in range(3):
        state, decision = request_call(
            state, START + 5 * number, CallRequest(f"call-{number}", f"permit-{number}"), UNLIMITED
        )
        assert isinstance(decision, Granted)
    state, _ = record_refusal(
        state, START + 10.1, CallRequest("call-2", "permit-2"), Refusal(1.0, START + 10), UNLIMITED
    )
    assert state.slowdown is not None
    assert state.slowdown.start >= LIKELY_RATE / 2
