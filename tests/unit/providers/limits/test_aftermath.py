"""What a worker remembers of refusals, and what becomes of a state whose clock was set."""

from typing import Any

import pytest
from pydantic import BaseModel

from providers.shared.rates import (
    CLOCK_SECONDS,
    FORGOTTEN_AFTER_SECONDS,
    Amount,
    Probe,
    RateState,
    Slowdown,
    WaitingPlace,
    adopt_clock,
)
from providers.shared.refusal_memory import RefusalMemory, add_known_refusals, is_behind, is_outdated, keep_aftermath
from tests.unit.providers.limits.simulation import START

NOT_TIMES = {"probe_seconds", "span", "ceiling"}

REFUSED = RateState(
    changed_at=START,
    origin="a",
    refusals=1,
    pause_until=START + 60,
    slowdown=Slowdown(since=START, refused_at=START, granted=10, span=1.0),
)


def times(value: Any, name: str = "") -> dict[str, float]:
    """Every number of a state that is a time, by its path."""
    if isinstance(value, BaseModel):
        value = {field: getattr(value, field) for field in type(value).model_fields}
    elif isinstance(value, WaitingPlace | Amount):
        value = value._asdict()
    elif isinstance(value, tuple):
        value = {str(index): entry for index, entry in enumerate(value)}
    if isinstance(value, dict):
        return {path: at for key, inner in value.items() for path, at in times(inner, f"{name}.{key}").items()}
    return {name: value} if isinstance(value, float) and name.rpartition(".")[2] not in NOT_TIMES else {}


def full() -> RateState:
    """A state in which nothing is missing."""
    log = (Amount(START - 2, 3), Amount(START - 1, 1))
    return REFUSED.changed(
        due=START + 1,
        beyond=START + 2,
        requests=log,
        tokens=log,
        recent=log,
        places=(WaitingPlace("h", START + 61, 5),),
        probe=Probe(id="p", since=START - 3, until=START + 27),
        slowdown=Slowdown(since=START, refused_at=START, granted=1, span=1.0, ceiling=2.0, started_at=START),
    )


def test_every_time_of_a_state_moves() -> None:
    """A state by another clock is the same state: nothing that was to come comes sooner or later than the rest."""
    before, after = times(full()), times(full().shift(-3_600.0))
    assert len(before) == 16
    assert after == {path: at - 3_600 for path, at in before.items()}
    assert full().shift(-3_600.0).shift(3_600.0) == full()


def test_a_clock_that_was_set_back_takes_the_state_with_it() -> None:
    """What was to come a minute after the last change comes a minute after now, and whoever knows more is heard."""
    moved = adopt_clock(REFUSED, START - 3_600)
    assert moved.pause_until == START - 3_600 + 60
    assert moved.origin == ""
    assert adopt_clock(REFUSED, START - CLOCK_SECONDS) == REFUSED
    assert adopt_clock(REFUSED, START + 3_600) == REFUSED


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RateState(), True),
        (REFUSED.changed(origin="b", refusals=9), True),
        (REFUSED.changed(refusals=0), True),
        (REFUSED.changed(pause_until=START), True),
        (REFUSED, False),
        (REFUSED.changed(pause_until=START + 59), False),
        (REFUSED.changed(refusals=2, pause_until=START + 90), False),
        (REFUSED.changed(slowdown=None, pause_until=START), False),
        (REFUSED.changed(slowdown=full().slowdown, pause_until=START), False),
    ],
    ids=["lost", "another", "older", "hurried", "same", "jitter", "newer", "forgotten-since", "probed-since"],
)
def test_which_state_knows_less(state: RateState, expected: bool) -> None:
    """One that comes from what was seen knows all of it, also that it was over; any other one is to be told."""
    assert is_behind(state, REFUSED) is expected


def test_a_state_that_is_reminded_knows_both() -> None:
    """The longer pause, the later refusal and its own name; to be told twice is to be told once."""
    own = RateState(origin="b", refusals=3, pause_until=START + 10, slowdown=REFUSED.slowdown and full().slowdown)
    later = REFUSED.shift(1.0)
    told = add_known_refusals(own, later, "name")
    assert (told.origin, told.refusals, told.pause_until, told.slowdown) == ("b", 3, START + 61, later.slowdown)
    assert add_known_refusals(told, later, "other") == told
    assert add_known_refusals(RateState(), later, "name").origin == "name"
    assert add_known_refusals(later.changed(pause_until=START + 99), REFUSED, "name") == later.changed(
        pause_until=START + 99
    )


def test_only_what_refusals_left_is_remembered() -> None:
    """By the worker's own clock, and a pause no longer than any can be, whatever the shared value says."""
    assert keep_aftermath(full(), START, 7.0) == REFUSED.changed(slowdown=full().slowdown).shift(7.0 - START)
    assert keep_aftermath(REFUSED.changed(pause_until=START + 1e9), START, 7.0).pause_until == 307.0


def test_what_is_long_ago_is_of_no_use() -> None:
    """As long after a pause as a slower rate is kept at most; and without a refusal there is nothing."""
    assert not is_outdated(REFUSED, START + 60 + FORGOTTEN_AFTER_SECONDS)
    assert is_outdated(REFUSED, START + 61 + FORGOTTEN_AFTER_SECONDS)
    assert is_outdated(RateState(), START)


def test_what_calls_tell_late_does_not_count() -> None:
    """A call that was decided before a refusal, and hears of it afterwards, does not make the worker forget it."""
    memory = RefusalMemory(lambda: 10.0)
    memory.keep("search", keep_aftermath(REFUSED, START, 10.0))
    memory.keep("search", keep_aftermath(RateState(), START, 9.0))
    told = memory.add_known_refusals("search", RateState(), START, began=10.0, name="name")
    assert told.pause_until == START + 60
    assert memory.add_known_refusals("model", RateState(), START, began=10.0, name="name") == RateState()


def test_a_pause_that_is_carried_over_is_never_shorter() -> None:
    """A store that takes long to answer, by a clock that was read at the beginning, shortens nothing."""
    own = [0.0]
    memory = RefusalMemory(lambda: own[0])
    memory.keep("search", keep_aftermath(REFUSED, START, 0.0))
    own[0] = 12.0
    asked_at, answered_with = 10.0, START + 10.0  # and it took two seconds to arrive
    told = memory.add_known_refusals("search", RateState(), answered_with, began=asked_at, name="name")
    assert told.pause_until == START + 60
