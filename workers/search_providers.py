"""Open the search providers of the web that the settings allow, over one set of connections."""

# ruff: noqa: PLC0415 - some providers import large libraries: they load only where they are used

import importlib.metadata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from contracts.vocabulary import Tier
from providers.credentials import ensure_key
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider
from providers.models.endpoints import split_name
from providers.models.prices import PriceTable
from providers.search.availability import BY_MODEL, usable
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


def search_model(settings: Settings) -> SearchModel | None:
    """The first configured model whose endpoint has a web search of its own, or None.

    A model with a malformed key is skipped; its own calls report the key.
    """
    models, keys = settings.models, settings.model_keys()
    usable = models.usable_endpoints(keys)
    for written in dict.fromkeys(name for tier in Tier for name in models.names_for(tier)):
        endpoint, model = split_name(written, models.endpoints)
        public = host_of(models.base_url_of(endpoint)) == PUBLIC_HOST
        if endpoint not in usable or (public and endpoint not in keys) or not _is_well_formed(keys.get(endpoint)):
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
    """Open the providers by name in the order of availability, or only `names`; they are closed after the block.

    Every request carries `contact`. With a `model` there is the provider `anthropic`, whether a run would choose it or
    not. Raises `NotConfigured` for an unknown provider, or one that lacks a key or an address.
    """
    choices = {choice.name: choice for choice in settings.choices(model_offers_search=model is not None)}
    ready = [*usable([choices[name] for name in SERVICES]), *([BY_MODEL] if model else [])]
    for name in names or ():
        if name not in choices:
            raise NotConfigured(f"no search provider is called {name}; there are: {', '.join(choices)}")
        if name not in ready:
            raise NotConfigured(f"the provider {name} cannot be used: {choices[name].reason}")
    chosen = ready if names is None else names
    async with web_client(user_agent(contact)) as client:
        yield {
            name: _anthropic(client, model) if model and name == BY_MODEL else _open_service(name, client, settings)
            for name in chosen
        }


def user_agent(contact: str | None = None) -> str:
    """Name the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{importlib.metadata.version(APPLICATION)} ({contact or 'self-hosted research'})"


def _anthropic(client: httpx2.AsyncClient, model: SearchModel) -> SearchProvider:
    from providers.search.anthropic_search import AnthropicSearch

    base_url: dict[str, Any] = {} if model.base_url is None else {"base_url": model.base_url}
    key = None if model.api_key is None else model.api_key.get_secret_value()
    return AnthropicSearch(client, model=model.model, api_key=key, prices=model.prices, **base_url)


SERVICES: Final[Mapping[str, tuple[str, dict[str, str]]]] = {
    "tavily": ("TavilySearch", {"api_key": "tavily_api_key", "base_url": "tavily_base_url"}),
    "google": (
        "GoogleSearch",
        {"api_key": "google_api_key", "cse_id": "google_cse_id", "base_url": "google_base_url"},
    ),
    "semantic_scholar": (
        "SemanticScholarSearch",
        {"api_key": "semantic_scholar_api_key", "base_url": "semantic_scholar_base_url"},
    ),
    "brave": ("BraveSearch", {"api_key": "brave_api_key", "base_url": "brave_base_url"}),
    "searxng": ("SearxngSearch", {"base_url": "searxng_url"}),
    "wikipedia": ("WikipediaSearch", {"base_url": "wikipedia_base_url"}),
}
"""By provider: the class in the module of its name, and which setting each of its arguments is."""


def _open_service(name: str, client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    """The provider with what is set for it; what is not set is its own affair."""
    class_name, arguments = SERVICES[name]
    given = {argument: getattr(settings, setting) for argument, setting in arguments.items()}
    plain = {
        argument: value.get_secret_value() if isinstance(value, SecretStr) else value
        for argument, value in given.items()
        if value is not None
    }
    found: SearchProvider = getattr(import_module(f"providers.search.{name}"), class_name)(client, **plain)
    return found


def _is_well_formed(key: SecretStr | None) -> bool:
    try:
        if key is not None:
            ensure_key(key.get_secret_value(), "its variable")
    except NotConfigured:
        return False
    return True
