"""How fast to go after a refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.shared.rates import FORGOTTEN_AFTER_SECONDS, SLOWEST, Slowdown, grow_rate, is_forgotten


def slowdown(**changed: float | None) -> Slowdown:
    """A service that did ten calls a second for five seconds, and was probed at second 10."""
    known = {"since": 5.0, "refused_at": 5.0, "granted": 50, "span": 5.0, "started_at": 10.0}
    return Slowdown.model_validate(known | changed)


def test_it_starts_at_half_and_grows() -> None:
    """Half of what was measured, then more and more."""
    rates = [slowdown().allowed(at) for at in (10, 12, 15, 20, 40, 80)]
    assert rates[0] == pytest.approx(5)
    assert rates == sorted(rates)
    assert rates[-1] > 10


def test_it_stays_longest_near_what_was_measured() -> None:
    """Growth is slow around the rate that was refused: there calls are lost."""
    seconds_near = sum(9 <= slowdown().allowed(10 + at / 10) <= 11 for at in range(1_000)) / 10
    seconds_below = sum(slowdown().allowed(10 + at / 10) < 9 for at in range(1_000)) / 10
    assert seconds_near > 3 * seconds_below


def test_a_short_measurement_is_not_trusted() -> None:
    """A burst of one second says little of what a service can do: growth does not stop at it."""
    assert slowdown(granted=10, span=1.0).allowed(30) > slowdown().allowed(30)


def test_before_the_probe_it_does_not_grow() -> None:
    """Without an answer there is nothing to grow from; places are planned for when there is one."""
    waiting = slowdown(started_at=None)
    assert waiting.allowed(1_000) == waiting.start
    assert waiting.allowed(1_010, opening=1_000) > waiting.start


@given(st.floats(0.01, 100), st.floats(0.0, 1_000), st.floats(0.0, 1_000), st.booleans())
def test_growth_never_goes_back(measured: float, one: float, other: float, sure: bool) -> None:
    """A later rate is never lower."""
    first, second = sorted((one, other))
    assert (
        grow_rate(measured / 2, measured, first, sure=sure)
        <= grow_rate(measured / 2, measured, second, sure=sure) * 1.000001
    )


def test_there_is_a_slowest_rate() -> None:
    """However often it was refused, a service is asked once a minute."""
    assert slowdown(halvings=10_000, started_at=None).allowed(0) == SLOWEST


def test_it_is_forgotten_when_nothing_confirms_it() -> None:
    """Some minutes without a refusal, and the service counts as unlimited again; never before it was probed."""
    assert not is_forgotten(slowdown(), 10 + FORGOTTEN_AFTER_SECONDS - 1, 1_000)
    assert is_forgotten(slowdown(), 10 + FORGOTTEN_AFTER_SECONDS + 1, 1_000)
    assert not is_forgotten(slowdown(started_at=None), 10_000, 0)


def test_it_is_forgotten_when_it_limits_nobody() -> None:
    """A rate far beyond what was refused and beyond what is asked for says nothing any more."""
    late = next(at for at in range(10, 300) if slowdown(span=1.0, granted=10).allowed(at) > 4 * 10)
    assert is_forgotten(slowdown(span=1.0, granted=10), late, 1)
    assert not is_forgotten(slowdown(span=1.0, granted=10), late, 30)
