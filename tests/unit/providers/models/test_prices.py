"""The price table."""

import pytest

from providers.models.chat import TokenCounts
from providers.models.prices import PriceEntry, load_prices


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("claude-opus-4-8", TokenCounts(input=1_000_000), 5.0),
        ("claude-opus-4-8-20261001", TokenCounts(output=1_000_000), 25.0),
        ("claude-sonnet-4-6", TokenCounts(input=1_000, output=1_000), 0.018),
        ("claude-sonnet-4-6", TokenCounts(cache_read=1_000_000, cache_write=1_000_000), 0.3 + 3.75),
        ("claude-haiku-5-5", TokenCounts(input=100_000, output=1_000), 0.0105),
        ("claude-haiku-5-5", TokenCounts(input=100_001, output=0), 0.0500005),
    ],
)
def test_multiplies_tokens_by_their_prices(model: str, tokens: TokenCounts, expected: float) -> None:
    """Input, output and both sides of the cache have their own price; a long prompt is dearer."""
    assert load_prices().cost_usd(model, tokens) == pytest.approx(expected)


@pytest.mark.parametrize("model", ["qwen3-8b", "claude-opus-4-80", "claude-opus-4-8-fast", "claude-opus-4", ""])
def test_an_unlisted_model_has_no_price(model: str) -> None:
    """An unknown model costs null and never 0."""
    assert load_prices().cost_usd(model, TokenCounts(input=1)) is None


def test_unknown_counts_have_no_price() -> None:
    """If the endpoint did not count, the cost is not known either."""
    assert load_prices().cost_usd("claude-opus-4-8", TokenCounts(known=False)) is None


def test_an_operators_entry_goes_first() -> None:
    """Prices of one's own replace and extend the table."""
    table = load_prices().with_models(
        {"local": PriceEntry(input=0, output=0), "claude-opus-4-8": PriceEntry(input=1, output=1)}
    )
    assert table.cost_usd("local", TokenCounts(input=5)) == 0
    assert table.cost_usd("claude-opus-4-8", TokenCounts(input=1_000_000)) == 1
    assert table.cost_usd("claude-haiku-4-5", TokenCounts(input=1_000_000)) == 1


def test_the_table_says_how_old_it_is_and_whence() -> None:
    """Every figure is dated and its origin is named."""
    assert load_prices().as_of == "2026-11-21"
    assert "confirm" in load_prices().source
