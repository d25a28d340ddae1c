"""The sections of `research.toml`: what an operator may write, each key refused by name when it is unknown."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from contracts.request import Depth, Limits, Name, Strategy
from contracts.vocabulary import Severity, Tier
from providers.prices import ModelPrice
from providers.reading.egress_addresses import hosts_and_ports

ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Section(BaseModel):
    """A table of the file: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelsSettings(Section):
    """`[models]`: names by tier, the endpoint, and prices by model name."""

    default: ModelName | None = None
    simple: ModelName | None = None
    analytical: ModelName | None = None
    complex: ModelName | None = None
    base_url: str | None = Field(default=None, pattern=r"^https?://[^\s]+$")
    prices: dict[str, ModelPrice] = {}
    """US dollars per million tokens by model name, in front of the table that comes with the product."""

    def name_for(self, tier: Tier) -> str | None:
        """The model of a tier: its own, else the default, else the next more demanding tier's, else any."""
        by_tier = {Tier.SIMPLE: self.simple, Tier.ANALYTICAL: self.analytical, Tier.COMPLEX: self.complex}
        order = list(Tier)
        stronger, weaker = order[order.index(tier) + 1 :], order[: order.index(tier)][::-1]
        candidates = [by_tier[tier], self.default, *(by_tier[other] for other in [*stronger, *weaker])]
        return next((name for name in candidates if name), None)

    def by_tier(self) -> dict[str, str]:
        """Model name by tier; empty when no model is named."""
        names = {tier.value: self.name_for(tier) for tier in Tier}
        return {tier: name for tier, name in names.items() if name}


class SearchSettings(Section):
    """`[search]`: which providers are asked in which order, and how much."""

    providers: list[Literal["corpus"]] = ["corpus"]
    max_results_per_query: int = Field(default=10, ge=1, le=50)


class CorpusSettings(Section):
    """`[corpus.NAME]`: a folder of documents; what the operator supplies is authoritative by declaration."""

    path: Path
    include: list[str] = []
    """Glob patterns of relative paths; empty means every readable type."""
    exclude: list[str] = []
    authority: Literal["high", "medium", "low", "unknown"] = "high"
    title: str | None = None
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")


class WebSettings(Section):
    """`[web]`: how pages are asked for, and the private hosts that may be asked although they are private."""

    allow_hosts: list[str] = []
    """Exact `host:port` pairs; in the environment separated by commas or spaces."""
    contact: str | None = Field(default=None, pattern=r"^[!-'*-~]([ !-'*-~]{0,198}[!-'*-~])?$")
    """An address or a page that the owner of a site can turn to; it is sent with every request."""

    @field_validator("allow_hosts", mode="before")
    @classmethod
    def _separated(cls, value: Any) -> Any:
        return value.replace(",", " ").split() if isinstance(value, str) else value

    @field_validator("allow_hosts")
    @classmethod
    def _exact(cls, value: list[str]) -> list[str]:
        hosts_and_ports(value)
        return value


class HookSettings(Section):
    """`[hooks.NAME]`: an activity of the operator on a task queue of the operator."""

    activity: str = Field(min_length=1, max_length=200)
    task_queue: str = Field(min_length=1, max_length=200)


class PresetSettings(Limits):
    """`[strategy.NAME.DEPTH]`: values that replace those of the built-in preset."""

    max_new_sources: int | None = Field(default=None, ge=1, le=500)
    reserve_seconds: float | None = Field(default=None, ge=1, le=3_600)
    severity_floor: Severity | None = None


class FileSettings(Section):
    """A whole `research.toml`. No secrets: those come from the environment only."""

    home: Path | None = None
    content_url: str | None = None
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    models: ModelsSettings = ModelsSettings()
    search: SearchSettings = SearchSettings()
    web: WebSettings = WebSettings()
    corpus: dict[Name, CorpusSettings] = {}
    hooks: dict[Name, HookSettings] = {}
    strategy: dict[Strategy, dict[Depth, PresetSettings]] = {}

    @model_validator(mode="after")
    def _only_what_is_built(self) -> "FileSettings":
        unbuilt = [name for name in self.strategy if name is not Strategy.SUPERVISOR]
        if unbuilt:
            raise ValueError(f"strategy.{unbuilt[0].value}: not available yet")
        return self
