"""Open the search providers of the web that the settings allow, over one set of connections."""

# ruff: noqa: PLC0415 - some providers import large libraries: they load only where they are used

import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from contracts.vocabulary import Tier
from providers.credentials import ensure_key
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider
from providers.models.model_directory import split_name
from providers.models.prices import PriceTable, load_prices
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
            prices = load_prices().with_models(models.prices)
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
    ready = [*usable([choices[name] for name in BUILDERS]), *([BY_MODEL] if model else [])]
    for name in names or ():
        if name not in choices:
            raise NotConfigured(f"no search provider is called {name}; there are: {', '.join(choices)}")
        if name not in ready:
            raise NotConfigured(f"the provider {name} cannot be used: {choices[name].reason}")
    chosen = ready if names is None else names
    async with web_client(user_agent(contact)) as client:
        yield {
            name: _anthropic(client, model) if model and name == BY_MODEL else BUILDERS[name](client, settings)
            for name in chosen
        }


def user_agent(contact: str | None = None) -> str:
    """Name the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{importlib.metadata.version(APPLICATION)} ({contact or 'self-hosted research'})"


def _tavily(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.tavily import TavilySearch

    return TavilySearch(client, api_key=_secret(settings.tavily_api_key), **_address(settings.tavily_base_url))


def _google(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.google import GoogleSearch

    key, engine = _secret(settings.google_api_key), settings.google_cse_id or ""
    return GoogleSearch(client, api_key=key, cse_id=engine, **_address(settings.google_base_url))


def _semantic_scholar(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.semantic_scholar import SemanticScholarSearch

    key = _secret(settings.semantic_scholar_api_key) or None
    return SemanticScholarSearch(client, api_key=key, **_address(settings.semantic_scholar_base_url))


def _brave(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.brave import BraveSearch

    return BraveSearch(client, api_key=_secret(settings.brave_api_key), **_address(settings.brave_base_url))


def _searxng(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.searxng import SearxngSearch

    return SearxngSearch(client, base_url=settings.searxng_url or "")


def _anthropic(client: httpx2.AsyncClient, model: SearchModel) -> SearchProvider:
    from providers.search.anthropic_search import AnthropicSearch

    key = _secret(model.api_key) or None
    return AnthropicSearch(client, model=model.model, api_key=key, prices=model.prices, **_address(model.base_url))


def _wikipedia(client: httpx2.AsyncClient, settings: WebSearchSettings) -> SearchProvider:
    from providers.search.wikipedia import WikipediaSearch

    return WikipediaSearch(client, **_address(settings.wikipedia_base_url))


BUILDERS: Final[Mapping[str, Callable[[httpx2.AsyncClient, WebSearchSettings], SearchProvider]]] = {
    "tavily": _tavily,
    "google": _google,
    "semantic_scholar": _semantic_scholar,
    "brave": _brave,
    "searxng": _searxng,
    "wikipedia": _wikipedia,
}


def _is_well_formed(key: SecretStr | None) -> bool:
    try:
        if key is not None:
            ensure_key(key.get_secret_value(), "its variable")
    except NotConfigured:
        return False
    return True


def _secret(value: SecretStr | None) -> str:
    return "" if value is None else value.get_secret_value()


def _address(value: str | None) -> dict[str, Any]:
    """The argument that replaces a service's own address, if one is set."""
    return {} if value is None else {"base_url": value}
