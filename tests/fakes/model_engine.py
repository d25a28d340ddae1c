"""The engine over loopback endpoints, with the real SDK."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from contracts.vocabulary import Tier
from providers.errors import RateLimited
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatApi
from providers.models.endpoints import EndpointCapabilities, ModelDirectory, ModelEndpoint, PriceTable, capabilities_of
from providers.models.language_model import LanguageModelEngine
from providers.models.openai_chat import OpenAIChat
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.messages_api import MessagesApi


class OpenLimiter:
    """A limiter without limits, which records the requests and the tokens that they took."""

    def __init__(self, refused: Collection[str] = ()) -> None:
        """`refused` services have to wait five seconds."""
        self.refused = refused
        self.requests: list[tuple[str, str, int]] = []

    @asynccontextmanager
    async def permit(self, service: str, tokens: int = 0) -> AsyncIterator[None]:
        self.requests.append((service, tokens))
        if service in self.refused:
            raise RateLimited("wait", retry_after=5)
        yield


def engine_over(
    addresses: Mapping[str, str],
    models: Sequence[str] = (),
    own: Mapping[str, EndpointCapabilities] | None = None,
    prices: PriceTable | None = None,
    limiter: Any = None,
    api: ChatApi = ChatApi.MESSAGES,
) -> LanguageModelEngine:
    """An engine over endpoints by name, all of one protocol; `models` are those of every tier, `own` what endpoints can do."""
    client = OpenAIChat if api is ChatApi.CHAT else AnthropicChat
    endpoints = {
        name: ModelEndpoint(
            name,
            client(api_key="test", base_url=url),
            partial(capabilities_of, url, own=(own or {}).get(name)),
        )
        for name, url in addresses.items()
    }
    directory = ModelDirectory(endpoints, {tier: list(models) for tier in Tier})
    return LanguageModelEngine(directory, prices or PriceTable(), limiter or OpenLimiter())


@asynccontextmanager
async def engine_for(
    apis: Mapping[str, MessagesApi], models: Sequence[str] = (), **options: Any
) -> AsyncIterator[LanguageModelEngine]:
    """An engine over fakes that run for the time of the block."""
    if any(isinstance(api, CompletionsApi) for api in apis.values()):
        options["api"] = ChatApi.CHAT
    engine = engine_over({name: api.base_url for name, api in apis.items()}, models, **options)
    try:
        yield engine
    finally:
        await engine.close()
