"""A search provider that keeps to the limits of its service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import RateLimited
from providers.interfaces import Limiter, Permit, SearchProvider
from providers.search.decorators import LimitedSearch
from providers.shared.limiter import SharedLimiter
from providers.shared.rates import ServiceLimits
from providers.shared.stores.memory_store import MemorySharedStore

REQUEST = SearchRequest(research_id="r-1", operation="search-2", provider="tavily", text="moss")


class Provider:
    """Answers, or refuses."""

    name = "tavily"

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[SearchRequest] = []
        self._error = error

    async def search(self, request: SearchRequest) -> SearchResponse:
        """As of a provider."""
        self.asked.append(request)
        if self._error is not None:
            raise self._error
        return SearchResponse(provider=self.name)


class Watched:
    """A limiter that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []

    @asynccontextmanager
    async def permit(self, service: str, holder: str, tokens: int = 0) -> AsyncIterator[Permit]:
        """As of a limiter."""
        self.asked.append((service, holder, tokens))
        yield self

    def used(self, tokens: int) -> None:
        """As of a permit."""


async def test_one_permit_for_each_request() -> None:
    """Every request takes a permit of the service, held by the operation of its run."""
    provider, limiter = Provider(), Watched()
    search: SearchProvider = LimitedSearch(provider, limiter, "tavily-search")
    assert (await search.search(REQUEST)).provider == search.name == "tavily"
    assert limiter.asked == [("tavily-search", "r-1/search-2", 0)]
    assert provider.asked == [REQUEST]


async def test_who_must_wait_asks_nobody() -> None:
    """A request beyond the limit does not reach the provider."""
    provider = Provider()
    limiter: Limiter = SharedLimiter(MemorySharedStore(), {"tavily": ServiceLimits(1, 60.0)})
    search = LimitedSearch(provider, limiter, "tavily")
    await search.search(REQUEST)
    with pytest.raises(RateLimited) as told:
        await search.search(REQUEST.model_copy(update={"operation": "search-3"}))
    assert told.value.retry_after == pytest.approx(63, abs=1)
    assert len(provider.asked) == 1


async def test_a_provider_that_refuses_is_left_alone() -> None:
    """After its 429 the next request waits without asking."""
    provider = Provider(RateLimited("429", retry_after=9.0))
    search = LimitedSearch(provider, SharedLimiter(MemorySharedStore(), {}), "tavily")
    for operation in ("one", "two"):
        with pytest.raises(RateLimited) as told:
            await search.search(REQUEST.model_copy(update={"operation": operation}))
        assert (told.value.retry_after or 0) > 8
    assert len(provider.asked) == 1
