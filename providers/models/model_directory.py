"""Which models can do a role, and where each of them is spoken to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from contracts.vocabulary import Tier
from providers.errors import NotConfigured
from providers.models.capabilities import EndpointCapabilities
from providers.models.chat import Chat, ChatReply, ChatRequest
from providers.models.model_errors import shown_name

DEFAULT_ENDPOINT: Final = "default"


@dataclass(frozen=True)
class ModelEndpoint:
    """One place where models are spoken to."""

    name: str
    host: str
    """`host` or `host:port`."""
    chat: Chat
    capabilities: Callable[[str], EndpointCapabilities]
    """What a model, by its name, can do there."""

    @property
    def service(self) -> str:
        """Its name among all outside services: limits and circuits go by it."""
        return f"model/{self.name}"


@dataclass(frozen=True)
class ModelCandidate:
    """A model at an endpoint."""

    endpoint: ModelEndpoint
    model: str
    capabilities: EndpointCapabilities = field(compare=False)

    @property
    def name(self) -> str:
        """As it is written in a configuration."""
        return self.model if self.endpoint.name == DEFAULT_ENDPOINT else f"{self.endpoint.name}:{self.model}"

    @property
    def key(self) -> str:
        """Under which the product keeps what it learns about the model at its endpoint."""
        return f"{self.endpoint.name}:{self.model}"

    @property
    def shown(self) -> str:
        """The same, fit for a message."""
        return shown_name(self.name)


def split_name(written: str, endpoints: Collection[str]) -> tuple[str, str]:
    """Endpoint and model of `NAME` or `endpoint:NAME`; a colon within a model's own name means nothing."""
    head, colon, rest = written.partition(":")
    known = head == DEFAULT_ENDPOINT or head in endpoints
    return (head, rest) if colon and rest and known else (DEFAULT_ENDPOINT, written)


class ModelDirectory:
    """Endpoints by name, and the names of models by tier in order of preference."""

    def __init__(
        self, endpoints: Mapping[str, ModelEndpoint], tiers: Mapping[Tier, Sequence[str]] | None = None
    ) -> None:
        """`endpoints` must have one called `default`."""
        self.endpoints = dict(endpoints)
        self._tiers = tiers or {}

    def candidates(self, named: str | None, tier: Tier) -> list[ModelCandidate]:
        """What may do a role of this tier: the model that the call names first, then the configured ones."""
        written = [*([named] if named else []), *self._tiers.get(tier, ())]
        return [self._candidate(name) for name in dict.fromkeys(written)]

    def models_of(self, endpoint: str) -> list[str]:
        """The configured models of an endpoint, each once."""
        every = (split_name(name, self.endpoints) for names in self._tiers.values() for name in names)
        return list(dict.fromkeys(model for place, model in every if place == endpoint))

    def _candidate(self, written: str) -> ModelCandidate:
        place, model = split_name(written, self.endpoints)
        endpoint = self.endpoints[place]
        return ModelCandidate(endpoint, model, endpoint.capabilities(model))


class MissingChat:
    """Stands for an endpoint that cannot be asked: says why to whoever tries."""

    def __init__(self, remedy: str) -> None:
        self.remedy = remedy

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Raises `NotConfigured`."""
        raise self._error(request)

    async def count_tokens(self, request: ChatRequest) -> int:
        """Raises `NotConfigured`."""
        raise self._error(request)

    async def close(self) -> None:
        """Nothing to close."""

    def _error(self, request: ChatRequest) -> NotConfigured:
        return NotConfigured(f"{self.remedy} (asked for {shown_name(request.model)})")
