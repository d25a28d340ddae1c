"""Configuration of a worker as `prepare_research` uses it; the composition root fills it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.request import Depth, SourceType
from contracts.resolved import EffectiveLimits, EffectiveSearch, Hook, ModelPrice, ProviderChoice
from contracts.tokens import TokenSettings

Choose = Callable[[Sequence[str] | None, Sequence[SourceType]], list[ProviderChoice]]
"""From the named providers (None: any) and the requested types of sources to all providers that are candidates.

Raises ValueError for an unknown name.
"""
DEFAULT_SEARCH = EffectiveSearch(source_types=[SourceType.WEB, SourceType.ACADEMIC])


@dataclass(frozen=True)
class ResearchConfiguration:
    """Worker configuration as far as it shapes runs; no secrets."""

    models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of models by tier: the next one takes over where one does not answer; empty when none is configured."""
    model_host: Callable[[str], str | None] = lambda _: None
    """Where a model is asked, by its name, as `host` or `host:port`; None for one that cannot be asked."""
    reasoning_tokens: Callable[[str], int | None] = lambda _: None
    """The most that a model may generate unseen, per call, by its name; None where it is not known."""
    reasons: Callable[[str], bool] = lambda _: False
    """Whether a model reasons by itself before it answers, by its name."""
    takes_tools: Callable[[str], bool] = lambda _: True
    """Whether a model, by its name, can call tools where it is asked."""
    model_price: Callable[[str], ModelPrice | None] = lambda _: None
    """What a model costs by its name; None where the price is unknown."""
    call_usd: Callable[[str, int, int], float | None] = lambda *_: None
    """US dollars of a call by the model's name and its tokens, in and out; None where the price is unknown."""
    search_usd: Callable[[str], float | None] = lambda _: None
    """US dollars of a search by the provider's name; None where the price is unknown."""
    choose_providers: Choose = lambda *_: []
    search_advice: Callable[[Sequence[ProviderChoice]], list[str]] = lambda _: []
    """What would make searches better, naming what to set."""
    search: EffectiveSearch = DEFAULT_SEARCH
    """Options of a search that a request does not name."""
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    presets: Mapping[tuple[str, Depth], EffectiveLimits] = field(default_factory=dict)
    """The operator's own presets; the documented ones apply where none is given."""
    search_attributes: Callable[[], Awaitable[bool]] | None = None
    """Whether the namespace knows our search attributes."""
    tokens: TokenSettings = field(default_factory=TokenSettings)
    digest: str = ""
    product_version: str = ""
