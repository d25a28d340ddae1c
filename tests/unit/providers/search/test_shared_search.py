"""Limits, outcomes, prices and the cache of a search provider."""

import asyncio
from typing import Any

import pytest

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.errors import RateLimited
from providers.search.shared_search import SharedSearch
from providers.shared.cache import Cache
from providers.shared.limits import Limiter, ServiceLimits
from tests.fakes.search_apis import asking
from tests.fakes.shared_stores import MemorySharedStore

SERVICE = "search/tavily"


class Provider:
    """Fails as it was set to, or answers."""

    def __init__(self, error: BaseException | None = None, instance: str = "") -> None:
        self.name, self.instance = "tavily", instance
        self.asked: list[SearchRequest] = []
        self.error = error

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.asked.append(request)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return SearchResponse(provider=self.name, cost_usd=None, warnings=["w"])


def shared(
    provider: Provider, limits: ServiceLimits | None = None, cost_usd: float | None = None, cache: Cache | None = None
) -> SharedSearch:
    limiter = Limiter(MemorySharedStore(), {SERVICE: limits} if limits else {})
    return SharedSearch(provider, SERVICE, limiter, cache or Cache(MemorySharedStore()), cost_usd)


async def test_a_request_beyond_the_limit_does_not_reach_the_provider() -> None:
    """It must wait; so must the next one after a 429. The operator's price is taken."""
    provider = Provider()
    search = shared(provider, ServiceLimits(1), 0.008)
    assert (await search.search(asking("tavily"))).cost_usd == 0.008
    with pytest.raises(RateLimited):
        await search.search(asking("tavily").model_copy(update={"text": "another"}))
    assert len(provider.asked) == 1
    provider = Provider(RateLimited("429", retry_after=9.0))
    search = shared(provider)
    for operation in ("one", "two"):
        with pytest.raises(RateLimited) as raised:
            await search.search(asking("tavily").model_copy(update={"operation": operation}))
        assert (raised.value.retry_after or 0) > 8
    assert len(provider.asked) == 1


async def test_a_repeated_search_is_cached_and_free() -> None:
    """Another run's same search gets the same hits and warnings; no service is asked and no run charged."""
    provider = Provider()
    search = shared(provider)
    first = await search.search(asking("tavily", domains_allow=["a.example", "b.example"]))
    again = await search.search(asking("tavily", domains_allow=["b.example", "a.example"]).model_copy(
        update={"research_id": "r-2", "operation": "search/9"}
    ))  # fmt: skip
    assert len(provider.asked) == 1
    assert (first.cached, first.cost_usd) == (False, None)
    assert (again.cached, again.cost_usd) == (True, 0.0)
    assert (again.hits, again.warnings) == (first.hits, first.warnings)


SHAPING: dict[str, Any] = {
    "text": "Words",
    "max_results": 5,
    "source_type": SourceType.NEWS,
    "domains_allow": ["a.example"],
    "domains_deny": ["a.example"],
    "language": "de",
    "published_from": "2024-01-01",
    "published_to": "2024-01-01",
    "corpus": "notes",
}
"""Another value for each field that shapes an answer."""


@pytest.mark.parametrize("field", [*SHAPING, "tenant"])
async def test_everything_that_shapes_the_answer_is_in_the_key(field: str) -> None:
    """A search that differs in anything but its caller is made again; so is one of another provider's instance."""
    provider, cache = Provider(), Cache(MemorySharedStore())
    changed = asking("tavily").model_copy(update={field: SHAPING.get(field, "other")})
    elsewhere = Provider(instance="elsewhere")
    await shared(provider, cache=cache).search(asking("tavily"))
    assert not (await shared(provider, cache=cache).search(changed)).cached
    assert not (await shared(elsewhere, cache=cache).search(asking("tavily"))).cached
    assert len(provider.asked) == 2
