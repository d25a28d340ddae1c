"""The real clients of the search services, pointed at the loopback server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from providers.interfaces import SearchProvider
from providers.models.prices import PriceTable
from providers.search.anthropic_search import AnthropicSearch
from providers.search.brave import BraveSearch
from providers.search.google import GoogleSearch
from providers.search.searxng import SearxngSearch
from providers.search.semantic_scholar import SemanticScholarSearch
from providers.search.tavily import TavilySearch
from providers.search.web_api import web_client
from providers.search.wikipedia import WikipediaSearch
from tests.fakes.permissions import PERMITTED
from tests.fakes.search_answers import CSE_ID, KEYS, MODEL
from tests.fakes.search_apis import SearchApis

CLIENTS: dict[str, Any] = {
    "tavily": TavilySearch,
    "google": GoogleSearch,
    "semantic_scholar": SemanticScholarSearch,
    "brave": BraveSearch,
    "searxng": SearxngSearch,
    "wikipedia": WikipediaSearch,
    "anthropic": AnthropicSearch,
}
QUESTION = "how are backups made?"


@asynccontextmanager
async def open_provider(name: str, base_url: str, seconds: float = 10.0, **given: Any) -> AsyncIterator[SearchProvider]:
    """One client with its planted key; `given` replaces arguments."""
    arguments: dict[str, Any] = {"base_url": base_url, "timeout_seconds": seconds}
    arguments |= {"api_key": KEYS[name]} if name in KEYS else {}
    arguments |= {"cse_id": CSE_ID} if name == "google" else {}
    arguments |= {"model": MODEL, "prices": PriceTable()} if name == "anthropic" else {}
    async with web_client("durable-research/test") as client:
        yield CLIENTS[name](client, **(arguments | given))


def asking(
    name: str, text: str = QUESTION, *, max_results: int = 10, offset: int = 0, **narrowed: Any
) -> SearchRequest:
    """A request as the gatherer makes it; `narrowed` are its fields for types, domains, language and days."""
    return SearchRequest(
        permission=PERMITTED,
        research_id="r-1",
        operation=f"search/sq-1/{name}",
        provider=name,
        text=text,
        max_results=max_results,
        offset=offset,
        **narrowed,
    )


async def search(name: str, server: SearchApis, text: str = QUESTION, **given: Any) -> SearchResponse:
    """One search by the real client."""
    own = ("seconds", "api_key", "cse_id", "base_url", "prices")
    settings = {key: given.pop(key) for key in own if key in given}
    async with open_provider(name, settings.pop("base_url", server.url(name)), **settings) as provider:
        return await provider.search(asking(name, text, **given))
