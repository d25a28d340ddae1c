"""The picture of a run's calls: lanes, waits, repeats, failures and costs."""

import re

from client.page.picture import MAX_LANES, describe, draw, lanes
from client.run_calls import Call


def call(scheduled: float, ended: float, **changes: object) -> Call:
    values = {"name": "plan", "what": "plan: x", "pool": "models", "scheduled": scheduled, "started": scheduled}
    return Call(**{**values, "ended": ended, **changes})  # type: ignore[arg-type]


def test_calls_side_by_side_have_lanes_of_their_own() -> None:
    """A lane is used again when its call is over, and there are never more than can be seen."""
    bars = lanes([call(0, 4), call(1, 2), call(2, 3), call(3, 0.0)], now=9)
    assert [bar.lane for bar in bars] == [0, 1, 1, 1]
    many = lanes([call(0, 9) for _ in range(100)], now=9)
    assert max(bar.lane for bar in many) == MAX_LANES - 1


def test_a_bar_says_what_waited_was_repeated_and_cost() -> None:
    """Its title has the words that the colours stand for, and hostile text is text."""
    repeated = call(0, 10, started=6.0, attempt=3, cost_usd=0.0123, what="<b>page</b>")
    assert describe(repeated, now=10) == "<b>page</b> · 4.0 s · waited 6.0 s · attempt 3 · 0.012 US dollars"
    picture = draw([repeated, call(1, 2, failed=True), call(3, 0.0, started=0.0)], now=12)
    assert "&lt;b&gt;page" in picture
    assert "<b>" not in picture
    assert {"wait", "repeated", "failed", "open", "tick"} <= set(re.findall(r'class="([a-z]+)"', picture))
    assert 'aria-label="3 calls in 0:12"' in picture


def test_a_long_run_has_few_lines_of_time() -> None:
    """A scale of hours and one of seconds have about as many."""
    for seconds in (1, 90, 40_000, 5_000_000):
        picture = draw([call(0, seconds)], now=seconds)
        assert 1 <= picture.count('class="tick"') <= 70
