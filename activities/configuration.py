"""What `prepare_research` needs to know of a worker's configuration; the composition root fills it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from contracts.request import Depth, Strategy
from contracts.resolved import EffectiveLimits, Hook


@dataclass(frozen=True)
class ResearchConfiguration:
    """Worker configuration as far as it shapes runs; no secrets."""

    models: Mapping[str, str] = field(default_factory=dict)
    """Model name by tier; empty when no model is configured."""
    model_host: str | None = None
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    presets: Mapping[tuple[Strategy, Depth], EffectiveLimits] = field(default_factory=dict)
    """The operator's own presets; the documented ones apply where none is given."""
    search_attributes: Callable[[], Awaitable[bool]] | None = None
    """Whether the namespace knows our search attributes."""
    digest: str = ""
    product_version: str = ""
