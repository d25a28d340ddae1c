"""Searches through the cache."""

import asyncio
from typing import Any

import pytest

from contracts.evidence import SearchHit
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.request import SourceType
from providers.errors import RateLimited
from providers.search.decorators import CachedSearch
from providers.shared.cache import Cache
from providers.shared.stores.memory_store import MemorySharedStore


class Provider:
    """Answers every search, and charges for it."""

    def __init__(self, name: str = "tavily") -> None:
        self.name = name
        self.asked: list[SearchRequest] = []

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.asked.append(request)
        hit = SearchHit(url="https://a.example/ü", title="Ü", rank=1, provider=self.name)
        return SearchResponse(provider=self.name, hits=[hit], cost_usd=0.008, warnings=["no dates"])


def request(**changes: Any) -> SearchRequest:
    """A search with something different."""
    asked = SearchRequest(research_id="r-1", operation="search/1", provider="tavily", text="words")
    return asked.model_copy(update=changes)


async def test_a_hit_says_so_and_costs_nothing() -> None:
    """Another run's same search gets the same hits and warnings; nobody was asked and nobody is charged (S0-177)."""
    provider = Provider()
    search = CachedSearch(provider, Cache(MemorySharedStore()))
    first = await search.search(request())
    again = await search.search(request(research_id="r-2", operation="search/9"))
    assert len(provider.asked) == 1
    assert (first.cached, first.cost_usd) == (False, 0.008)
    assert (again.cached, again.cost_usd) == (True, 0.0)
    assert (again.hits, again.warnings) == (first.hits, first.warnings)
    assert search.name == "tavily"


async def test_what_a_failure_cost_is_told_to_one_of_those_who_wait() -> None:
    """Several runs that wait for one answer are all given its failure; only one of them books what it cost."""
    gate = asyncio.Event()

    class Costly(Provider):
        async def search(self, request: SearchRequest) -> SearchResponse:
            self.asked.append(request)
            await gate.wait()
            error = RateLimited("wait", retry_after=3)
            error.usage = Usage(cost_usd=0.5)
            raise error

    provider = Costly()
    search = CachedSearch(provider, Cache(MemorySharedStore()))
    waiting = [asyncio.ensure_future(search.search(request(research_id=f"r-{n}"))) for n in range(3)]
    while not provider.asked:
        await asyncio.sleep(0)
    gate.set()
    failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert len(provider.asked) == 1
    assert sorted(error.usage.known_cost_usd for error in failed if isinstance(error, RateLimited)) == [0, 0, 0.5]
    assert all(error.retry_after == 3 for error in failed if isinstance(error, RateLimited))


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "other"},
        {"text": "Words"},
        {"max_results": 5},
        {"offset": 10},
        {"source_type": SourceType.NEWS},
        {"domains_allow": ["a.example"]},
        {"domains_deny": ["a.example"]},
        {"language": "de"},
        {"published_from": "2024-01-01"},
        {"published_to": "2024-01-01"},
        {"corpus": "notes"},
    ],
)
async def test_everything_that_shapes_the_answer_is_in_the_key(changes: dict[str, Any]) -> None:
    """A search that differs in anything but who asks is asked anew."""
    provider = Provider()
    search = CachedSearch(provider, Cache(MemorySharedStore()))
    await search.search(request())
    assert not (await search.search(request(**changes))).cached
    assert len(provider.asked) == 2


async def test_every_field_of_a_request_is_judged() -> None:
    """A new field of searches must be decided on: here are all that do not shape the answer, and all that do."""
    shaping = (
        "provider corpus corpus_digest text max_results offset source_type domains_allow domains_deny language".split()
    )
    shaping += ["published_from", "published_to"]
    after = {"questions", "date", "resolved_entry", "earlier_entry", "titled", "permission"}
    assert set(SearchRequest.model_fields) == {*shaping, *after, "research_id", "tenant", "operation"}


async def test_providers_are_apart_and_the_order_of_domains_is_not() -> None:
    """Two providers share a cache and not an answer; the same domains in another order are the same search."""
    cache, tavily, brave = Cache(MemorySharedStore()), Provider(), Provider("brave")
    await CachedSearch(tavily, cache).search(request(domains_allow=["a.example", "b.example"]))
    assert (await CachedSearch(tavily, cache).search(request(domains_allow=["b.example", "a.example"]))).cached
    assert not (await CachedSearch(brave, cache).search(request(domains_allow=["b.example", "a.example"]))).cached
