"""The web from the configuration: search providers behind their limits and the cache of all workers, and the reader."""

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from contracts.resolved import ProviderChoice
from contracts.vocabulary import Tier
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider
from providers.isolation.pool import SubprocessPool
from providers.models.endpoints import PriceTable, split_name
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.reader import Visit, WebReader
from providers.reading.robots import Robots
from providers.search.anthropic_search import AnthropicSearch
from providers.search.availability import probe, provider_choices, usable
from providers.search.declarations import BY_MODEL, search_declaration
from providers.search.web_api import web_client
from providers.service_calls import ensure_key
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workers.settings.sections import APPLICATION


async def find_unreachable(providers: Mapping[str, SearchProvider], names: Sequence[str]) -> dict[str, str]:
    """Return those of the named providers that cannot be reached, each with the reason."""
    reasons = await asyncio.gather(*(probe(providers[name]) for name in names))
    return {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}


@asynccontextmanager
async def open_search_providers(
    settings: Settings, names: Sequence[str] | None = None
) -> AsyncIterator[dict[str, SearchProvider]]:
    """Open all usable providers by name, or only `names`; they are closed after the block.

    Where a configured model searches the web there is the provider `anthropic`, whether a run would choose it or not.
    Raises `NotConfigured` for an unknown provider, or one that lacks a key or an address.
    """
    model = search_model(settings)
    choices = {choice.name: choice for choice in search_choices(settings)}
    ready = [*(name for name in usable(list(choices.values())) if name != BY_MODEL), *([BY_MODEL] if model else [])]
    for name in names or ():
        if name not in choices:
            raise NotConfigured(f"no search provider is called {name}; there are: {', '.join(choices)}")
        if name not in ready:
            raise NotConfigured(f"the provider {name} cannot be used: {choices[name].reason}")
    async with web_client(user_agent(settings.web.contact)) as client:
        opened: dict[str, SearchProvider] = {}
        for name in ready if names is None else names:
            declaration = search_declaration(name)
            if name == BY_MODEL and model is not None:
                opened[name] = AnthropicSearch(client, declaration, model, PriceTable(settings.models.prices))
            else:
                opened[name] = declaration.open(client, settings.search_values())
        yield opened


def search_choices(settings: Settings, order: Sequence[str] | None = None) -> list[ProviderChoice]:
    """Return the search providers in the usual order or another one, each with whether it can be used and why."""
    return provider_choices(settings.search_values(), order, model=search_model(settings))


def search_model(settings: Settings) -> dict[str, str] | None:
    """Return the variables of the first configured model whose endpoint searches the web and whose key can be one."""
    models, keys = settings.models, settings.model_keys()
    endpoints = models.usable_endpoints(keys)
    for written in dict.fromkeys(name for tier in Tier for name in models.names_for(tier)):
        endpoint, model = split_name(written, models.endpoints)
        key = keys[endpoint].get_secret_value() if endpoint in keys else ""
        public = host_of(models.base_url_of(endpoint)) == PUBLIC_HOST
        if endpoint not in endpoints or (public and not key) or not models.capabilities_of(written).searches_web:
            continue
        address = models.address_of(endpoint) or ""
        with suppress(NotConfigured):
            if key:
                ensure_key(key, "its variable")
            variables = {"RESEARCH_MODEL": model, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": key}
            return {name: value for name, value in variables.items() if value}
    return None


@asynccontextmanager
async def open_web_reader(
    settings: Settings, pool: SubprocessPool, *, visit: Visit | None = None
) -> AsyncIterator[WebReader]:
    """Open a reader until the end of the block; every request carries the configured contact."""
    egress = Egress(user_agent(settings.web.contact), allow_hosts=hosts_and_ports(settings.web.allow_hosts))
    try:
        yield WebReader(egress, pool, Robots(egress, APPLICATION), visit=visit)
    finally:
        await egress.close()


def user_agent(contact: str | None = None) -> str:
    """Name the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{importlib.metadata.version(APPLICATION)} ({contact or 'self-hosted research'})"
