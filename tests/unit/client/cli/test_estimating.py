"""What a run may cost, told before it is paid."""

from client.cli.estimating import estimate
from contracts.presets import SUPERVISOR_PRESETS
from contracts.request import Depth
from providers.prices import ModelPrice, PriceTable

LIMITS = SUPERVISOR_PRESETS[Depth.MEDIUM]
PRICES = PriceTable(
    as_of="2026-11-21",
    source="a test",
    models={"cheap": ModelPrice(input=1.0, output=5.0), "dear": ModelPrice(input=10.0, output=50.0)},
)


def test_calls_tokens_and_cost_are_ranges() -> None:
    """From one short iteration to all that the limits allow: the cheapest model below, the dearest above."""
    limits = LIMITS.model_copy(update={"max_cost_usd": None})
    expected = estimate(limits, {"simple": "cheap", "complex": "dear"}, PRICES, thinks=True)
    assert (expected.calls.low, expected.calls.high) == (8, 33)
    assert (expected.tokens.low, expected.tokens.high) == (8 * 2_000, 33 * 12_000)
    assert expected.cost_usd is not None
    assert expected.cost_usd.low == round(8 * (1_500 * 1.0 + 500 * 5.0) / 1_000_000, 4)
    assert expected.cost_usd.high == round(33 * (10_000 * 10.0 + 2_000 * 50.0) / 1_000_000, 4)
    assert "no cap on cost" in expected.line()


def test_the_estimate_keeps_to_every_cap() -> None:
    """Never more calls, tokens or money than the run may use."""
    limits = LIMITS.model_copy(update={"max_model_calls": 7, "max_tokens": 20_000, "max_cost_usd": 0.1})
    expected = estimate(limits, {"complex": "dear"}, PRICES, thinks=True)
    assert (expected.calls.high, expected.tokens.high) == (7, 20_000)
    assert expected.cost_usd is not None
    assert expected.cost_usd.high == 0.1
    assert "the run stops at 0.10 USD" in expected.line()


def test_an_unknown_price_is_no_zero() -> None:
    """One model without a price makes the cost unknown: null for a program, words for a person."""
    expected = estimate(LIMITS, {"simple": "cheap", "complex": "unheard-of"}, PRICES, thinks=False)
    assert expected.as_json()["cost_usd"] is None
    assert "cost unknown (no price for unheard-of)" in expected.line()
    assert "where prices are known" in expected.line()


def test_thinking_by_rules_costs_no_calls() -> None:
    """Think-pauses are counted only when a model thinks."""
    with_model = estimate(LIMITS, {"simple": "cheap"}, PRICES, thinks=True)
    by_rules = estimate(LIMITS, {"simple": "cheap"}, PRICES, thinks=False)
    assert by_rules.calls.high < with_model.calls.high
