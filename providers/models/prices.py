"""Cost of a call: prices of the configuration first, then those that come with `genai-prices`.

The library reads the data inside its wheel; its updater, which downloads newer data, is never started. A model
without a price costs None, never 0.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from contracts.resolved import ModelPrice
from providers.models.chat import TokenCounts

MILLION: Final = 1_000_000
PROVIDER: Final = "anthropic"  # other makers' names are not looked up: a server of one's own may call anything `qwen3`
CACHE_READ_FACTOR, CACHE_WRITE_FACTOR = 0.1, 1.25
"""Of the input price, for configured prices (five-minute cache; the provider's page on prompt caching)."""
DATE: Final = re.compile(r"(?:[-@]\d{8}|-latest)$")


def without_date(model: str) -> str:
    """Remove the date, or `latest`, from the end of a model's name."""
    return DATE.sub("", model)


class PriceTable:
    """Prices by model name; those of the configuration come first."""

    def __init__(self, configured: Mapping[str, ModelPrice] = MappingProxyType({})) -> None:
        self._configured = configured

    def cost_usd(self, model: str, tokens: TokenCounts, *, written: str | None = None) -> float | None:
        """US dollars for a call, or None; an entry for `written`, `endpoint:NAME`, comes before the model's own."""
        if not tokens.known:
            return None
        own = self._own(model, written)
        if own is None:
            prices = _library_prices(model, tokens)
            return None if prices is None else sum(prices)
        read, write = tokens.cache_read * CACHE_READ_FACTOR, tokens.cache_write * CACHE_WRITE_FACTOR
        return ((tokens.input + read + write) * own.input + tokens.output * own.output) / MILLION

    def highest(self, model: str, *, written: str | None = None) -> ModelPrice | None:
        """The highest prices that a call can have, long prompts and cache writes included; None if unknown."""
        own = self._own(model, written)
        if own is not None:
            return ModelPrice(input=own.input * CACHE_WRITE_FACTOR, output=own.output)
        millions = 10  # beyond the threshold of every price list
        tokens = TokenCounts(cache_write=millions * MILLION, output=millions * MILLION)
        prices = _library_prices(model, tokens)
        return None if prices is None else ModelPrice(input=prices[0] / millions, output=prices[1] / millions)

    def _own(self, model: str, written: str | None) -> ModelPrice | None:
        names = (written or model, model, without_date(model))
        return next((self._configured[name] for name in names if name in self._configured), None)


def _library_prices(model: str, tokens: TokenCounts) -> tuple[float, float] | None:
    """US dollars for input and output of one call; None for a model that the library does not know."""
    # Half a second of processor time, which a process without a model does not need to spend.
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    usage = Usage(
        input_tokens=tokens.prompt,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    try:
        found = calc_price(usage, model, provider_id=PROVIDER)
    except LookupError:
        return None
    return float(found.input_price), float(found.output_price)
