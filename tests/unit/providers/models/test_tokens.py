"""Counts of tokens without counting: estimates that err high, and what answers teach."""

import pytest

from providers.models.tokens import HIGHEST_RATIO, Calibration, estimated_tokens


@pytest.mark.parametrize(
    ("text", "fewest"),
    [
        ("Vacuum prevents wraparound by freezing old rows in every table. " * 10, 130),
        ("autovacuum_freeze_max_age = 200000000", 14),
        ("0x0BEBC200 3f786850e387550fdab836ed7e6dc881de23001b", 26),
        ("https://example.test/a/b?c=1&d=2#e", 14),
        ("真空操作可以防止事务标识回卷", 14),
        ("Заморозка строк предотвращает зацикливание", 14),
        ("🙂" * 10, 20),
        ('{"a": [1, 2, {"b": null}]}', 13),
    ],
)
def test_estimates_err_high(text: str, fewest: int) -> None:
    """Prose, settings, hashes, addresses, other scripts and JSON are given at least the tokens that they have."""
    assert estimated_tokens(text) >= fewest
    assert estimated_tokens(text) <= 4 * fewest


def test_an_estimate_adds_up() -> None:
    """Parts can be estimated by themselves."""
    assert estimated_tokens("abc" + "真") == pytest.approx(estimated_tokens("abc") + estimated_tokens("真"))
    assert estimated_tokens("") == 0
    assert estimated_tokens("\ud800") > 0


def test_counts_put_estimates_right() -> None:
    """More tokens than expected count at once, fewer only slowly; one model teaches nothing about another."""
    known = Calibration()
    assert (known.high("m", 1.3), known.low("m", 1.3)) == (1.3, pytest.approx(0.91))
    known.learn("m", 1_000, 1_500)
    assert known.high("m", 1.3) >= 1.5
    known.learn("m", 1_000, 800)
    assert known.high("m", 1.3) > 1.3
    for _ in range(40):
        known.learn("m", 1_000, 800)
    assert known.high("m", 1.3) == pytest.approx(0.84, rel=0.01)
    assert known.low("m", 1.3) < 0.8
    assert known.high("other", 1.0) == 1.0


def test_absurd_counts_teach_little() -> None:
    """What is learnt is bounded, and a count of a few tokens is no measure."""
    known = Calibration()
    known.learn("m", 1_000, 10)
    assert known.high("m", 1.0) == 1.0
    known.learn("m", 1_000, 10_000_000)
    assert known.high("m", 1.0) <= 1.1 * HIGHEST_RATIO
