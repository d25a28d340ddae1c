"""Costs by the library's prices, which the configuration overrides."""

import pytest

from contracts.resolved import ModelPrice
from providers.models.chat import TokenCounts
from providers.models.prices import PriceTable


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("claude-opus-4-8", TokenCounts(input=1_000_000), 5.0),
        ("claude-opus-4-8-20261001", TokenCounts(output=1_000_000), 25.0),
        ("claude-sonnet-4-6", TokenCounts(cache_read=1_000_000, cache_write=1_000_000), 0.3 + 3.75),
        ("claude-haiku-5-5", TokenCounts(input=100_000, output=1_000), 0.0105),
        ("claude-haiku-5-5", TokenCounts(input=100_001), 0.0500005),
        ("qwen3-8b", TokenCounts(input=1), None),
        ("", TokenCounts(input=1), None),
        ("claude-opus-4-8", TokenCounts(known=False), None),
    ],
)
def test_cost_of_a_call(model: str, tokens: TokenCounts, expected: float | None) -> None:
    """Input, output and both sides of the cache have prices of their own; what is not known costs None, never 0."""
    cost = PriceTable().cost_usd(model, tokens)
    assert cost == (None if expected is None else pytest.approx(expected))


def test_configured_prices_come_first() -> None:
    """A model may have another price at one endpoint, and its name may end in a date."""
    table = PriceTable(
        {
            "local:m": ModelPrice(input=0, output=0),
            "m": ModelPrice(input=1, output=2),
            "claude-opus-4-8": ModelPrice(input=1, output=1),
        }
    )
    million = TokenCounts(input=1_000_000)
    assert table.cost_usd("m", million, written="local:m") == 0
    assert table.cost_usd("m", million, written="other:m") == 1
    assert table.cost_usd("claude-opus-4-8-20261001", million) == 1
    assert table.cost_usd("claude-haiku-4-5", million) == 1
    assert table.cost_usd("m", TokenCounts(cache_read=1_000_000, cache_write=1_000_000)) == pytest.approx(1.35)


def test_highest_price_bounds_every_call() -> None:
    """A reservation counts long prompts and cache writes; without a price there is nothing to reserve."""
    assert PriceTable().highest("claude-haiku-5-5") == ModelPrice(input=0.625, output=2.5)
    assert PriceTable({"m": ModelPrice(input=4, output=9)}).highest("m") == ModelPrice(input=5, output=9)
    assert PriceTable().highest("qwen3-8b") is None
