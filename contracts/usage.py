"""What a run has used. An unknown price gives null, never 0."""

from pydantic import Field

from contracts.base import Contract
from contracts.vocabulary import EngineKind


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
    """Null as soon as one paid call had no known price."""
    searches: int = 0
    cached_searches: int = 0
    """Searches that the cache answered; part of `searches`."""
    reads: int = 0
    cached_reads: int = 0
    """Reads that the cache answered; part of `reads`."""
    active_seconds: float = 0.0
    queue_seconds: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """The sum of both; an unknown cost stays unknown."""
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            searches=self.searches + other.searches,
            cached_searches=self.cached_searches + other.cached_searches,
            reads=self.reads + other.reads,
            cached_reads=self.cached_reads + other.cached_reads,
            active_seconds=self.active_seconds + other.active_seconds,
            queue_seconds=self.queue_seconds + other.queue_seconds,
        )


class CallAccount(Contract):
    """Who did a role's work, and what it cost."""

    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    prompt_version: str = ""
    usage: Usage = Field(default=Usage())
    warnings: list[str] = []
    """Coerced values, dropped items: one short line each, without page text."""
