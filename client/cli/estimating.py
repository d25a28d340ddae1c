"""What a run with a model may need: calls, tokens and money, before anything is paid. Pure."""

from collections.abc import Mapping
from typing import Any

from contracts.base import Contract
from contracts.resolved import EffectiveLimits
from providers.chat import TokenCounts
from providers.prices import PriceTable

SHORT_CALL = TokenCounts(input=1_500, output=500)
LONG_CALL = TokenCounts(input=10_000, output=2_000)
REFLECTIONS_PER_ITERATION = 4
"""One after each phase but the first of a follow-up iteration, when the supervisor thinks with a model."""
FEWEST_SUB_QUERIES = 2


class Range(Contract):
    """Lowest and highest expected amount."""

    low: int | float
    high: int | float


class Estimate(Contract):
    """Expected amounts of a run; a cost of null is unknown, never 0."""

    calls: Range
    tokens: Range
    cost_usd: Range | None
    unpriced_models: list[str] = []
    cap_usd: float | None
    """The run stops at this cost, as far as prices are known."""

    def line(self) -> str:
        """One line for a person."""
        amounts = f"about {_between(self.calls)} model calls, {_between(self.tokens)} tokens"
        cap = "no cap on cost" if self.cap_usd is None else f"the run stops at {self.cap_usd:.2f} USD"
        if self.cost_usd is None:
            names = ", ".join(self.unpriced_models)
            known = "" if self.cap_usd is None else " where prices are known"
            return f"{amounts}, cost unknown (no price for {names}); {cap}{known}"
        return f"{amounts}, {self.cost_usd.low:.2f} to {self.cost_usd.high:.2f} USD; {cap}"

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return self.model_dump(mode="json")


def estimate(limits: EffectiveLimits, models: Mapping[str, str], prices: PriceTable, *, thinks: bool) -> Estimate:
    """From a run that stops after one iteration with few questions to one that uses all that its limits allow.

    `models` are names by tier; the cheapest of them bounds the cost from below, the dearest from above.
    """
    reflections = REFLECTIONS_PER_ITERATION if thinks else 0
    fewest = 1 + min(FEWEST_SUB_QUERIES, limits.max_sub_queries) + 1 + reflections
    most = 1 + limits.max_iterations * (limits.max_sub_queries + 1 + reflections) + (limits.max_iterations - 1)
    if limits.max_model_calls is not None:
        most = min(most, limits.max_model_calls)
    fewest = min(fewest, most)
    low, high = fewest * _size(SHORT_CALL), most * _size(LONG_CALL)
    if limits.max_tokens is not None:
        high = min(high, limits.max_tokens)
    names = sorted(set(models.values()))
    unpriced = [name for name in names if prices.price_of(name) is None]
    return Estimate(
        calls=Range(low=fewest, high=most),
        tokens=Range(low=min(low, high), high=high),
        cost_usd=None if unpriced or not names else _cost(fewest, most, names, prices, limits.max_cost_usd),
        unpriced_models=unpriced,
        cap_usd=limits.max_cost_usd,
    )


def _cost(fewest: int, most: int, names: list[str], prices: PriceTable, cap: float | None) -> Range:
    short = [cost for name in names if (cost := prices.cost_usd(name, SHORT_CALL)) is not None]
    long = [cost for name in names if (cost := prices.cost_usd(name, LONG_CALL)) is not None]
    low, high = fewest * min(short), most * max(long)
    if cap is not None:
        high = min(high, cap)
    return Range(low=round(min(low, high), 4), high=round(high, 4))


def _size(call: TokenCounts) -> int:
    return call.input + call.output


def _between(amount: Range) -> str:
    low, high = f"{amount.low:,.0f}", f"{amount.high:,.0f}"
    return low if low == high else f"{low} to {high}"
