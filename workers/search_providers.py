"""Open the search providers that the settings allow, over one set of connections."""

import importlib.metadata
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from contracts.vocabulary import Tier
from providers.credentials import ensure_key
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider
from providers.models.endpoints import split_name
from providers.models.prices import PriceTable
from providers.search.anthropic_search import AnthropicSearch
from providers.search.availability import usable
from providers.search.declarations import BY_MODEL, search_declaration
from providers.search.web_api import web_client
from workers.settings.loading import APPLICATION, Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workers.settings.web_search import WebSearchSettings


@dataclass(frozen=True)
class SearchModel:
    """A model whose endpoint searches the web: what the provider `anthropic` needs."""

    model: str
    api_key: SecretStr | None = None
    base_url: str | None = None
    """None for the public address."""
    prices: PriceTable | None = None

    def variables(self) -> dict[str, str]:
        """As the provider's variables."""
        given = {"RESEARCH_MODEL": self.model, "ANTHROPIC_BASE_URL": self.base_url}
        given["ANTHROPIC_API_KEY"] = None if self.api_key is None else self.api_key.get_secret_value()
        return {name: value for name, value in given.items() if value is not None}


def search_model(settings: Settings) -> SearchModel | None:
    """The first configured model whose endpoint has a web search of its own, or None.

    A model with a malformed key is skipped; its own calls report the key.
    """
    models, keys = settings.models, settings.model_keys()
    endpoints = models.usable_endpoints(keys)
    for written in dict.fromkeys(name for tier in Tier for name in models.names_for(tier)):
        endpoint, model = split_name(written, models.endpoints)
        public = host_of(models.base_url_of(endpoint)) == PUBLIC_HOST
        if endpoint not in endpoints or (public and endpoint not in keys) or not _is_well_formed(keys.get(endpoint)):
            continue
        if models.capabilities_at(endpoint, model).searches_web:
            prices = PriceTable(models.prices)
            return SearchModel(model, keys.get(endpoint), models.address_of(endpoint), prices)
    return None


@asynccontextmanager
async def open_search_providers(
    settings: WebSearchSettings,
    names: Sequence[str] | None = None,
    *,
    contact: str | None = None,
    model: SearchModel | None = None,
) -> AsyncIterator[dict[str, SearchProvider]]:
    """Open all usable providers by name, or only `names`; they are closed after the block.

    Every request carries `contact`. With a `model` there is the provider `anthropic`, whether a run would choose it or
    not. Raises `NotConfigured` for an unknown provider, or one that lacks a key or an address.
    """
    choices = {choice.name: choice for choice in settings.choices(model_offers_search=model is not None)}
    ready = [*(name for name in usable(list(choices.values())) if name != BY_MODEL), *([BY_MODEL] if model else [])]
    for name in names or ():
        if name not in choices:
            raise NotConfigured(f"no search provider is called {name}; there are: {', '.join(choices)}")
        if name not in ready:
            raise NotConfigured(f"the provider {name} cannot be used: {choices[name].reason}")
    async with web_client(user_agent(contact)) as client:
        opened: dict[str, SearchProvider] = {}
        for name in ready if names is None else names:
            declaration = search_declaration(name)
            if name == BY_MODEL and model is not None:
                opened[name] = AnthropicSearch(client, declaration, model.variables(), model.prices)
            else:
                opened[name] = declaration.open(client, settings.values())
        yield opened


def user_agent(contact: str | None = None) -> str:
    """Name the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{importlib.metadata.version(APPLICATION)} ({contact or 'self-hosted research'})"


def _is_well_formed(key: SecretStr | None) -> bool:
    try:
        if key is not None:
            ensure_key(key.get_secret_value(), "its variable")
    except NotConfigured:
        return False
    return True
