"""What a run has used. An unknown price gives None, never 0."""

from typing import Final

from pydantic import Field, computed_field

from contracts.base import Contract
from contracts.vocabulary import EngineKind

MONEY_DIGITS: Final = 10
"""Decimals of a US dollar that are kept: a token costs less than a millionth, a cached one a tenth of that.

Rounding every sum to them makes sums equal whatever the order in which they were made.
"""


class Usage(Contract):
    """Counters of a run or of one call; they add up."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the endpoint read from its prompt cache; part of `input_tokens`."""
    cache_write_tokens: int = 0
    """Input tokens that it wrote into its prompt cache; part of `input_tokens`."""
    cost_usd: float | None = 0.0
    """None as soon as one paid call or search had no known price."""
    partial_cost_usd: float = 0.0
    """What is known of a cost that is None, so that a cap still holds for it; 0 while the whole cost is known."""
    searches: int = 0
    cached_searches: int = 0
    """Searches that the cache answered; part of `searches`."""
    reads: int = 0
    cached_reads: int = 0
    """Reads that the cache answered; part of `reads`."""
    active_seconds: float = 0.0

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of a property
    @property
    def cached_share(self) -> float | None:
        """Share of the input that came from the endpoint's prompt cache, 0 to 1; None without input."""
        return round(self.cached_tokens / self.input_tokens, 4) if self.input_tokens else None

    @property
    def tokens(self) -> int:
        """Input and output together: what `max_tokens` limits."""
        return self.input_tokens + self.output_tokens

    @property
    def known_cost_usd(self) -> float:
        """What is known of the cost: what `max_cost_usd` limits."""
        return self.partial_cost_usd if self.cost_usd is None else self.cost_usd

    def plus(self, other: "Usage") -> "Usage":
        """The sum of both; an unknown cost stays unknown, and what is known of it is kept."""
        unknown = self.cost_usd is None or other.cost_usd is None
        known = round(self.known_cost_usd + other.known_cost_usd, MONEY_DIGITS)
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=None if unknown else known,
            partial_cost_usd=known if unknown else 0.0,
            searches=self.searches + other.searches,
            cached_searches=self.cached_searches + other.cached_searches,
            reads=self.reads + other.reads,
            cached_reads=self.cached_reads + other.cached_reads,
            active_seconds=self.active_seconds + other.active_seconds,
        )

    def beyond(self, other: "Usage") -> "Usage":
        """What this one has more than another: of each counter, and nothing where it has less."""
        cost = round(max(0.0, self.known_cost_usd - other.known_cost_usd), MONEY_DIGITS)
        unknown = self.cost_usd is None and other.cost_usd is not None
        return Usage(
            model_calls=max(0, self.model_calls - other.model_calls),
            input_tokens=max(0, self.input_tokens - other.input_tokens),
            output_tokens=max(0, self.output_tokens - other.output_tokens),
            cached_tokens=max(0, self.cached_tokens - other.cached_tokens),
            cache_write_tokens=max(0, self.cache_write_tokens - other.cache_write_tokens),
            cost_usd=None if unknown else cost,
            partial_cost_usd=cost if unknown else 0.0,
            searches=max(0, self.searches - other.searches),
            cached_searches=max(0, self.cached_searches - other.cached_searches),
            reads=max(0, self.reads - other.reads),
            cached_reads=max(0, self.cached_reads - other.cached_reads),
            active_seconds=max(0.0, self.active_seconds - other.active_seconds),
        )


class CallAccount(Contract):
    """Which engine did a role's work, and what it cost."""

    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    prompt_version: str = ""
    usage: Usage = Field(default=Usage())
    warnings: list[str] = []
    """Coerced values, dropped items: one short line each, without page text."""
