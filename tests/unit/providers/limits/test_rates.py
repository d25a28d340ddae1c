"""Who may call a service now, and who must wait how long."""

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.retry_after import LONGEST_WAIT_SECONDS
from providers.shared import rate_rules
from providers.shared.compare_and_swap import dump_state, load_state
from providers.shared.rate_rules import (
    GRACE_SECONDS,
    HORIZON_SECONDS,
    MOST_PLACES,
    PROBE_LEASE_SECONDS,
    SHORTEST_WAIT_SECONDS,
    CallRequest,
    Granted,
    MustWait,
    Refusal,
    give_back_probe,
    record_answer,
    record_refusal,
    request_call,
    settle_tokens,
)
from providers.shared.rates import RateState, ServiceLimits, adopt_clock
from tests.unit.providers.limits.simulation import START, Simulation

FOLDER = Path(rate_rules.__file__).parent
DECIDING = ["rates", "rate_rules", "refusal_memory", "limiter", "politeness", "compare_and_swap"]
UNLIMITED = ServiceLimits()
ARRIVALS = st.lists(st.integers(0, 40_000).map(lambda milliseconds: milliseconds / 1_000), min_size=1, max_size=40)
LATE = st.lists(st.floats(0, 3), min_size=1, max_size=5)


def granted(state: RateState, now: float, holder: str, limits: ServiceLimits = UNLIMITED) -> RateState:
    state, decision = request_call(state, START + now, CallRequest(holder, f"{holder}-permit"), limits)
    assert isinstance(decision, Granted), decision
    return state


def told(state: RateState, now: float, holder: str, limits: ServiceLimits = UNLIMITED) -> tuple[RateState, float]:
    state, decision = request_call(state, START + now, CallRequest(holder, f"{holder}-permit"), limits)
    assert isinstance(decision, MustWait), decision
    return state, decision.seconds


def after_refusal(retry_after: float | None = 5.0, grants: int = 10, refusals: int = 1) -> RateState:
    """Ten calls in a second, the last of which were refused at second 1."""
    state = RateState()
    for number in range(grants):
        state = granted(state, number / grants, f"call-{number}")
    asking = CallRequest("refused", "refused-permit")
    state = record_refusal(state, START + 1, asking, Refusal(retry_after, START + 0.9), UNLIMITED)[0]
    for number in range(1, refusals):
        asking = CallRequest(f"refused-{number}", f"refused-permit-{number}")
        state = record_refusal(state, START + 1, asking, Refusal(retry_after, START + 0.8), UNLIMITED)[0]
    return state


@settings(max_examples=25, deadline=None)
@given(ARRIVALS, LATE, st.integers(1, 8), st.floats(0.5, 20))
def test_no_window_holds_more_than_configured(
    arrivals: list[float], late: list[float], requests: int, window: float
) -> None:
    """Whoever comes when, late or not: in no window are there more calls than the service allows (F7)."""
    made = Simulation(ServiceLimits(requests, window), late=lambda number: late[number % len(late)]).run(arrivals)
    assert made.most_in(window) <= requests
    assert len(made.grants) == len(arrivals)


@settings(max_examples=25, deadline=None)
@given(ARRIVALS, st.integers(1, 8), st.floats(0.5, 20))
def test_who_comes_on_time_for_a_place_is_let_through(arrivals: list[float], requests: int, window: float) -> None:
    """A reserved time is kept, however many newcomers ask in between."""
    made = Simulation(ServiceLimits(requests, window)).run(arrivals)
    assert made.denied_places == 0


@settings(max_examples=25, deadline=None)
@given(ARRIVALS, LATE, st.sets(st.integers(0, 30), max_size=6), st.floats(0, 20))
def test_nothing_goes_in_a_pause_and_then_one_probe(
    arrivals: list[float], late: list[float], bad: set[int], retry_after: float
) -> None:
    """From a refusal to the end of what it asked for nobody calls; then one does, and nobody beside it (F7)."""
    made = Simulation(
        UNLIMITED,
        refuses=lambda at, number: retry_after if number in bad else None,
        late=lambda number: late[number % len(late)],
    ).run(arrivals)
    assert not [grant for grant in made.grants for begin, end in made.pauses if begin < grant.at < end], (
        "a call went in a pause"
    )
    for probe in (grant for grant in made.grants if grant.probe):
        beside = [
            grant for grant in made.grants if probe.at < grant.at < probe.at + made.call_seconds and grant != probe
        ]
        refused_probe = any(probe.at < begin <= probe.at + 0.011 for begin, _ in made.pauses)
        assert refused_probe or not beside
    for _, end in made.pauses:
        first = next((grant for grant in made.grants if grant.at >= end), None)
        assert first is None or first.probe


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=25), st.integers(100, 2_000), st.integers(1, 1_500))
def test_no_minute_holds_more_tokens_than_configured(arrivals: list[float], limit: int, tokens: int) -> None:
    """Tokens are counted like requests; a call that wants more than a minute's worth goes alone."""
    made = Simulation(ServiceLimits(tokens_per_minute=limit), tokens=tokens).run(arrivals)
    assert made.most_in(60.0) * tokens <= limit or made.most_in(60.0) == 1


def test_without_limits_everybody_goes() -> None:
    """What nobody limited and nobody refused is not slowed down."""
    made = Simulation(UNLIMITED).run([0.0] * 50)
    assert [grant.at for grant in made.grants] == [0.0] * 50


def test_the_limit_is_used() -> None:
    """Sixty a minute under pressure gives nearly sixty in each minute."""
    made = Simulation(ServiceLimits(60, 60.0)).run([0.0] * 300)
    assert 54 * 4 <= sum(grant.at < 240 for grant in made.grants) <= 60 * 4


def test_who_asks_too_early_keeps_its_place() -> None:
    """A second attempt of an operation does not queue twice."""
    limits = ServiceLimits(1, 10.0)
    state = granted(RateState(), 0, "first", limits)
    state, wait = told(state, 0, "second", limits)
    state, again = told(state, 1, "second", limits)
    assert again == pytest.approx(wait - 1)
    assert len(state.places) == 1
    state, behind = told(state, 1, "third", limits)
    assert behind > again
    granted(state, wait, "second", limits)


def test_latecomers_do_not_crowd_a_window() -> None:
    """A place that is used late moves the next one: real times count, and the order stays."""
    limits = ServiceLimits(1, 2.0)
    state, second = told(granted(RateState(), 0, "first", limits), 0, "second", limits)
    state, third = told(state, 0, "third", limits)
    state = granted(state, third - 0.1, "second", limits)
    state, wait = told(state, third, "third", limits)
    assert wait >= 1.9
    assert second < third
    granted(state, third + wait, "third", limits)


def test_a_place_is_kept_for_a_while_and_not_for_ever() -> None:
    """A holder may be late by the grace; a killed one's place is forgotten and the next goes."""
    limits = ServiceLimits(1, 10.0)
    state, wait = told(granted(RateState(), 0, "first", limits), 0, "second", limits)
    state, third = told(state, 0, "third", limits)
    late = granted(state, wait + GRACE_SECONDS - 0.1, "second", limits)
    assert late.place_of("second") is None
    forgotten = granted(state, third, "third", limits)
    assert forgotten.places == ()


def test_places_reach_only_so_far() -> None:
    """Beyond the horizon one is told to come back without a place, later and later, so that nobody comes at once."""
    limits = ServiceLimits(6, 60.0)
    state = RateState()
    waits = []
    for number in range(20):
        state, decision = request_call(state, START, CallRequest(f"h{number}", "p"), limits)
        waits.append(decision.seconds if isinstance(decision, MustWait) else 0.0)
    assert all(place.at <= START + HORIZON_SECONDS for place in state.places)
    assert waits == sorted(waits)
    assert len(set(waits)) == len(waits)


def test_there_are_only_so_many_places() -> None:
    """The shared value stays small, whatever asks."""
    limits = ServiceLimits(10_000, 60.0)
    state = after_refusal(retry_after=300)
    for number in range(1_000):
        state, _ = request_call(state, START + 2, CallRequest(f"h{number}", "p"), limits)
    assert len(state.places) <= MOST_PLACES
    assert len(dump_state(state)) < 20_000


@pytest.mark.parametrize("limits", [ServiceLimits(3, 86_400.0), ServiceLimits(100, 86_400.0), ServiceLimits(1, 1e9)])
def test_nobody_is_told_to_wait_for_hours(limits: ServiceLimits) -> None:
    """A limit of a day is asked about again every five minutes, and is kept."""
    state, granted_at = RateState(), []
    for minute in range(0, 60 * 30, 5):
        for number in range(10):
            state, decision = request_call(state, START + 60 * minute, CallRequest(f"h{number}", "p"), limits)
            if isinstance(decision, Granted):
                granted_at.append(minute)
            else:
                assert SHORTEST_WAIT_SECONDS <= decision.seconds <= LONGEST_WAIT_SECONDS
    assert granted_at
    assert limits.requests is not None
    assert sum(minute < 60 * 24 for minute in granted_at) <= limits.requests


@pytest.mark.parametrize("name", DECIDING)
def test_no_decision_reads_a_clock_of_its_own(name: str) -> None:
    """The store's clock alone decides: a worker whose clock is wrong does no harm (F13)."""
    nodes = list(ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not imported & {"time", "datetime"}


def test_a_wait_is_never_shorter_than_the_engine_can_wait() -> None:
    """A place less than a second away would be missed."""
    limits = ServiceLimits(600, 60.0)
    state = RateState()
    for number in range(200):
        state, decision = request_call(state, START, CallRequest(f"h{number}", "p"), limits)
        assert isinstance(decision, Granted) or decision.seconds >= SHORTEST_WAIT_SECONDS


def test_a_killed_probe_is_replaced() -> None:
    """While a probe is unanswered everybody waits, but not longer than its lease."""
    state = granted(after_refusal(refusals=2), 6.2, "probe")
    assert state.probe is not None
    state, _ = told(state, 10, "other")
    state, _ = told(state, 6 + PROBE_LEASE_SECONDS, "other")
    state = granted(state, 6.3 + PROBE_LEASE_SECONDS, "another")
    assert state.probe is not None
    assert state.probe.id == "another-permit"


def test_a_probe_given_back_is_replaced_at_once() -> None:
    """A probe that was cancelled or failed otherwise says nothing: the next one to ask is the probe."""
    state = give_back_probe(granted(after_refusal(), 6.2, "probe"), "probe-permit")
    state, decision = request_call(state, START + 6.3, CallRequest("next", "next-permit"), UNLIMITED)
    assert decision == Granted(START + 6.3, probe=True)


def test_waiting_for_a_slow_probe_is_told_longer_and_longer() -> None:
    """The longer a probe takes, the less often others ask."""
    state = granted(after_refusal(refusals=2), 6.2, "probe")
    state, first = told(state, 6.3, "one")
    state, later = told(state, 20, "two")
    assert first < 3 < later


def test_an_answered_probe_lets_the_others_go_at_half_the_rate() -> None:
    """Eleven calls in a second of which two were refused: they go on at about 4.5 a second."""
    state = record_answer(granted(after_refusal(grants=11, refusals=2), 6.2, "probe"), START + 7, "probe-permit")
    assert state.slowdown is not None
    assert state.slowdown.allowed(START + 7) == pytest.approx(4.5, rel=0.05)
    made = Simulation(UNLIMITED, state=state).run([7.0] * 20)
    assert 3 <= sum(7.5 <= grant.at < 8.5 for grant in made.grants) <= 6


def test_a_refusal_reported_after_the_probe_began_needs_another_probe() -> None:
    """A late refusal prolongs the pause, and the running probe's answer does not end it."""
    state = granted(after_refusal(), 6.2, "probe")
    state, _ = record_refusal(
        state, START + 6.4, CallRequest("late", "late-permit"), Refusal(5.0, START + 0.5), UNLIMITED
    )
    state = record_answer(state, START + 7, "probe-permit")
    state, _ = told(state, 8, "other")
    state, decision = request_call(state, START + 11.5, CallRequest("next", "p"), UNLIMITED)
    assert decision == Granted(START + 11.5, probe=True)


def test_tokens_that_were_not_used_are_given_back() -> None:
    """An estimate that was too high does not keep others waiting."""
    limits = ServiceLimits(tokens_per_minute=1_000)
    state, _ = request_call(RateState(), START, CallRequest("one", "p", 900), limits)
    _, decision = request_call(state, START + 1, CallRequest("two", "p", 500), limits)
    assert isinstance(decision, MustWait)
    state = settle_tokens(state, START + 1, limits, estimated=900, used=100)
    _, decision = request_call(state, START + 1, CallRequest("two", "p", 500), limits)
    assert isinstance(decision, Granted)


def test_tokens_used_beyond_the_estimate_count() -> None:
    """An estimate that was too low is corrected."""
    limits = ServiceLimits(tokens_per_minute=1_000)
    state, _ = request_call(RateState(), START, CallRequest("one", "p", 100), limits)
    state = settle_tokens(state, START + 1, limits, estimated=100, used=900)
    _, decision = request_call(state, START + 1, CallRequest("two", "p", 500), limits)
    assert isinstance(decision, MustWait)


@pytest.mark.parametrize("value", [b"", b"garbage", b"\xff\x00", b"[1]", b'{"due": "NaN"}', b'{"places": [[1]]}'])
def test_a_value_that_is_no_state_counts_as_none(value: bytes) -> None:
    """A poisoned value is a miss (F17)."""
    assert load_state(RateState, value) == RateState()


def test_a_state_from_the_future_is_not_obeyed() -> None:
    """After a clock was set back nobody waits for the old time to come again, and a pause is as long as it was (F13)."""
    back = -3_600
    state = adopt_clock(after_refusal(retry_after=60), START + back)
    state, wait = told(state, back, "one")
    assert 60 <= wait <= 61
    granted(state, back + wait, "one")


@pytest.mark.parametrize("wrong", [{"requests": 0}, {"tokens_per_minute": 0}, {"window_seconds": 0.0}])
def test_limits_that_allow_nothing_are_refused(wrong: dict[str, float]) -> None:
    """A limit of nothing would wait for ever."""
    with pytest.raises(ValueError):
        ServiceLimits(**wrong)  # type: ignore[arg-type]
