"""The engine over loopback endpoints, with the real SDK."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from contracts.vocabulary import Tier
from providers.models.anthropic_chat import AnthropicChat
from providers.models.capabilities import CapabilityOverrides, capabilities_of
from providers.models.language_model import LanguageModelEngine
from providers.models.model_directory import ModelDirectory, ModelEndpoint
from providers.models.prices import PriceTable, load_prices
from tests.fakes.messages_api import MessagesApi


def engine_over(
    addresses: Mapping[str, str],
    models: Sequence[str] = (),
    own: Mapping[str, CapabilityOverrides] | None = None,
    prices: PriceTable | None = None,
    **options: Any,
) -> LanguageModelEngine:
    """An engine over endpoints by name; `models` are those of every tier, `own` what endpoints can do."""
    endpoints = {
        name: ModelEndpoint(
            name,
            url.split("/")[2],
            AnthropicChat(api_key="test", base_url=url),
            partial(capabilities_of, url, own=(own or {}).get(name)),
        )
        for name, url in addresses.items()
    }
    directory = ModelDirectory(endpoints, {tier: list(models) for tier in Tier})
    return LanguageModelEngine(directory, prices or load_prices(), **options)


@asynccontextmanager
async def engine_for(
    apis: Mapping[str, MessagesApi], models: Sequence[str] = (), **options: Any
) -> AsyncIterator[LanguageModelEngine]:
    """An engine over fakes that run for the time of the block."""
    engine = engine_over({name: api.base_url for name, api in apis.items()}, models, **options)
    try:
        yield engine
    finally:
        await engine.close()
