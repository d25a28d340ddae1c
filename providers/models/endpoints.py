"""Model endpoints: capabilities by host and model name, candidate models for a role, and prices of calls.

Configured prices come first, then those in the wheel of `genai-prices`, whose updater is never started. A model
without a price costs None, never 0.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import Field

from contracts.base import StrictContract
from contracts.outcome import Usage
from contracts.resolved import ModelPrice
from contracts.vocabulary import Tier
from providers.models.chat import Chat, ChatApi, ChatMode, ChatRequest, Parameter, ToolUse, safe_name

if TYPE_CHECKING:
    from providers.models.servers import ModelServer

DEFAULT_ENDPOINT: Final = "default"


@dataclass(frozen=True)
class ModelDirectory:
    """Endpoints by name, one of them `default`, and model names by tier in order of preference."""

    endpoints: Mapping[str, "ModelEndpoint"]
    tiers: Mapping[Tier, Sequence[str]] = field(default_factory=dict)

    def candidates(self, named: str | None, tier: Tier) -> list["ModelCandidate"]:
        """List the models for a role of this tier: the one named by the call first, then the configured ones."""
        names = dict.fromkeys(filter(None, [named, *self.tiers.get(tier, ())]))
        pairs = [split_name(name, self.endpoints) for name in names]
        return [
            ModelCandidate(self.endpoints[endpoint], model, self.endpoints[endpoint].capabilities(model))
            for endpoint, model in pairs
        ]


@dataclass(frozen=True)
class ModelEndpoint:
    """An endpoint of models."""

    name: str
    chat: Chat | None  # None if it cannot be used
    capabilities: Callable[[str], "EndpointCapabilities"]  # capabilities of a model there, by its name
    remedy: str = ""  # what to set to make it usable
    server: "ModelServer | None" = None  # None if the windows of its models are known

    @property
    def service(self) -> str:
        """Name among all outside services, under which limits and pauses are shared."""
        return f"model/{self.name}"


@dataclass(frozen=True)
class ModelCandidate:
    """A model at an endpoint."""

    endpoint: ModelEndpoint
    model: str
    capabilities: "EndpointCapabilities" = field(compare=False)

    @property
    def name(self) -> str:
        """Name as in a configuration: `NAME` at the default endpoint, else `ENDPOINT:NAME`."""
        if self.endpoint.name == DEFAULT_ENDPOINT:
            return self.model
        return self.key

    @property
    def key(self) -> str:
        """Unambiguous name, `ENDPOINT:NAME`."""
        return f"{self.endpoint.name}:{self.model}"

    @property
    def label(self) -> str:
        """The name, safe for a message."""
        return safe_name(self.name)


def split_name(name: str, endpoints: Collection[str]) -> tuple[str, str]:
    """Return endpoint and model of `NAME` or `endpoint:NAME`; a model's own name may contain a colon."""
    endpoint, colon, model = name.partition(":")
    known = endpoint == DEFAULT_ENDPOINT or endpoint in endpoints
    if colon and model and known:
        return (endpoint, model)
    return (DEFAULT_ENDPOINT, name)


class EndpointCapabilities(StrictContract):
    """Capabilities of one model at one endpoint; all sizes are in tokens."""

    api: ChatApi | None = None
    """Its protocol; None: found out by the first call."""
    refuses: tuple[Parameter, ...] = ()
    """Parameters of chat completions that are omitted."""
    mode: ChatMode = ChatMode.TOOL
    """Strongest way to request an answer that matches a schema."""
    tools: ToolUse = ToolUse.FORCED
    """Support for the tools of a role."""
    reasoning_tokens: int = Field(default=4_000, ge=0, le=200_000)
    """Room for hidden reasoning, in addition to the visible answer."""
    reasons: bool = False
    """The model reasons before it answers, so it needs no thinking tool."""
    window: int = Field(default=32_000, ge=2_000, le=10_000_000)
    """Prompt and answer together."""
    output_limit: int | None = Field(default=None, ge=200, le=1_000_000)
    caching: bool = False
    searches_web: bool = False
    """The endpoint has a web search of its own."""
    token_factor: float = Field(default=1.0, ge=0.3, le=5)
    """Tokens for a text, relative to the older tokenizers."""
    silence_seconds: float | None = Field(default=None, ge=1, le=3_600)
    """Timeout for a call that sends nothing: longer for a slow endpoint of your own. None: 25 s, or 10 s if another
    endpoint can answer."""

    def with_window(self, tokens: int) -> Self:
        """Return the same capabilities with another window."""
        return self.with_fields(window=tokens)


CAPABILITIES: Final[dict[str, Any]] = tomllib.loads(
    files(__package__ or "").joinpath("endpoints.toml").read_text(encoding="utf-8")
)
"""Capabilities by host, and by patterns of model names."""


def capabilities_of(base_url: str, model: str = "", own: EndpointCapabilities | None = None) -> EndpointCapabilities:
    """Merge the table's entries for the endpoint's host and for the model; values set in `own` override them."""
    name = without_date(model).lower()
    values: dict[str, Any] = dict(CAPABILITIES["hosts"].get(urlsplit(base_url).hostname or "", {}))
    for entry in CAPABILITIES["models"]:
        if any(fnmatchcase(name, pattern) for pattern in entry["names"]):
            values |= {key: value for key, value in entry.items() if key != "names"}
    if own is not None:
        values |= own.model_dump(exclude_unset=True, exclude_none=True, include=set(EndpointCapabilities.model_fields))
    return EndpointCapabilities.model_validate(values)


def weakened(capabilities: EndpointCapabilities, request: ChatRequest, kind: str) -> EndpointCapabilities | None:
    """Return the capabilities after a refusal of this kind; None if no weaker request is left to try."""
    if kind == "unsupported_caching" and request.cache:
        return capabilities.with_fields(caching=False)
    refused = [parameter for parameter in Parameter if kind == f"refuses_{parameter}"]
    if refused and refused[0] not in request.refuses:
        return capabilities.with_fields(refuses=(*request.refuses, *refused))
    if kind != "unsupported_parameter":
        return None
    if request.mode is ChatMode.NATIVE:
        return capabilities.with_fields(mode=ChatMode.TOOL)
    if request.must_call:
        return capabilities.with_fields(tools=ToolUse.OFFERED)
    if request.mode is not ChatMode.TOOL:
        return None
    return capabilities.with_fields(mode=ChatMode.TEXT)


# --- prices -----------------------------------------------------------------------------------------------------------
MILLION: Final = 1_000_000
PROVIDERS: Final = ("anthropic", "openai")  # other names are not looked up: any server may call anything `qwen3`
CACHE_READ_FACTOR: Final = 0.1
"""Factor on the configured input price of tokens read from the cache (the provider's page on prompt caching)."""
CACHE_WRITE_FACTOR: Final = 1.25
"""Factor on the configured input price of tokens written to the cache, for five minutes (the same page)."""
BEYOND_THRESHOLDS: Final = 10 * MILLION
"""Tokens of a prompt from which no price list asks for more."""
DATE: Final = re.compile(r"(?:[-@]\d{8}|-latest)$")


def without_date(model: str) -> str:
    """Remove the date, or `latest`, from the end of a model's name."""
    return DATE.sub("", model)


class PriceTable:
    """Prices by model name; configured ones come first."""

    def __init__(self, configured: Mapping[str, ModelPrice] = MappingProxyType({})) -> None:
        self._configured = configured

    def cost_usd(self, model: str, usage: Usage, *, full_name: str | None = None) -> float | None:
        """Return the cost of a call, or None; a price for `full_name`, `endpoint:NAME`, precedes the model's own."""
        if usage.cost_usd is None:
            return None
        own = self._own(model, full_name)
        if own is None:
            prices = _library_prices(model, usage)
            return None if prices is None else sum(prices)
        read = usage.cached_tokens
        write = usage.cache_write_tokens
        weighed = usage.input_tokens - read - write + read * CACHE_READ_FACTOR + write * CACHE_WRITE_FACTOR
        return (weighed * own.input + usage.output_tokens * own.output) / MILLION

    def highest(self, model: str, *, full_name: str | None = None, window: int | None = None) -> ModelPrice | None:
        """Return the highest prices of a call, cache writes included; None if unknown.

        `window` are the tokens that a prompt and its answer may have together: what longer prompts cost is left out.
        None: a prompt of any length.
        """
        own = self._own(model, full_name)
        if own is not None:
            return ModelPrice(input=own.input * CACHE_WRITE_FACTOR, output=own.output)
        tokens = window or BEYOND_THRESHOLDS
        prices = _library_prices(model, Usage(input_tokens=tokens, cache_write_tokens=tokens, output_tokens=tokens))
        if prices is None:
            return None
        return ModelPrice(input=prices[0] / tokens * MILLION, output=prices[1] / tokens * MILLION)

    def _own(self, model: str, full_name: str | None) -> ModelPrice | None:
        names = (full_name or model, model, without_date(model))
        return next((self._configured[name] for name in names if name in self._configured), None)


def _library_prices(model: str, usage: Usage) -> tuple[float, float] | None:
    """Return US dollars for input and output of one call; None for a model that the library lacks."""
    # The import takes half a second of processor time, which a process without a model does not need to spend.
    import genai_prices  # noqa: PLC0415

    billed = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    provider = _priced_by(model)
    if provider is None:
        return None
    price = genai_prices.calc_price(billed, model, provider_id=provider)
    return float(price.input_price), float(price.output_price)


@lru_cache(maxsize=64)  # for a model that no list has, the library looks through all of each list
def _priced_by(model: str) -> str | None:
    """Return the provider whose price list has a model; None if none has."""
    import genai_prices  # noqa: PLC0415

    for provider in PROVIDERS:
        try:
            genai_prices.calc_price(genai_prices.Usage(), model, provider_id=provider)
        except LookupError:
            continue
        return provider
    return None
