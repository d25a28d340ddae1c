"""What a call costs, by a dated table. A model without an entry has no known price."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Final

from pydantic import Field

from contracts.base import StrictContract
from providers.models.chat import TokenCounts

MILLION: Final = 1_000_000
Dollars = Annotated[float, Field(ge=0, le=MILLION)]
"""Per million tokens: no token costs more than a dollar, or less than nothing."""
DATED_NAME: Final = re.compile(r"(?:[-@]\d{8}|-latest)?")
DATE: Final = re.compile(r"(?:[-@]\d{8}|-latest)$")


def without_date(model: str) -> str:
    """A model's name without the date, or `latest`, at its end."""
    return DATE.sub("", model)


class PriceEntry(StrictContract):
    """US dollars per million tokens; the `long_prompt_…` fields apply to a whole call above that many input tokens."""

    input: Dollars
    output: Dollars
    long_prompt_tokens: int | None = Field(default=None, ge=0)
    long_prompt_input: Dollars | None = None
    long_prompt_output: Dollars | None = None


class PriceTable(StrictContract):
    """Prices by model name, without a trailing date."""

    as_of: str
    source: str
    cache_read_factor: float = 1.0
    cache_write_factor: float = 1.0
    models: Mapping[str, PriceEntry] = {}

    def price_of(self, model: str) -> PriceEntry | None:
        """The entry whose name the model's is, apart from a date; another variant of a name may cost anything."""
        for name, price in self.models.items():
            if model.startswith(name) and DATED_NAME.fullmatch(model, len(name)):
                return price
        return None

    def cost_usd(self, model: str, tokens: TokenCounts, *, written: str | None = None) -> float | None:
        """US dollars for one call; None for a model without an entry, and for counts that are not known.

        An entry for the name as it is `written` in a configuration, `endpoint:NAME`, goes before the model's own.
        """
        price = (self.price_of(written) if written else None) or self.price_of(model)
        if price is None or not tokens.known:
            return None
        per_input, per_output = price.input, price.output
        if price.long_prompt_tokens is not None and tokens.prompt > price.long_prompt_tokens:
            per_input = price.long_prompt_input or per_input
            per_output = price.long_prompt_output or per_output
        weighted = (
            tokens.input + tokens.cache_read * self.cache_read_factor + tokens.cache_write * self.cache_write_factor
        )
        return (weighted * per_input + tokens.output * per_output) / MILLION

    def with_models(self, models: Mapping[str, PriceEntry]) -> "PriceTable":
        """The table with an operator's own entries in front of it."""
        return self.model_copy(
            update={"models": {**models, **{k: v for k, v in self.models.items() if k not in models}}}
        )


def load_prices() -> PriceTable:
    """The table that comes with the product."""
    text = files("providers.models").joinpath("prices.toml").read_text(encoding="utf-8")
    return PriceTable.model_validate(tomllib.loads(text))
