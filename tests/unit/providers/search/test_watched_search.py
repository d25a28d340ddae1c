"""Failures of search providers, told to all workers."""

import asyncio

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.search.decorators import WatchedSearch
from providers.shared.circuit_breaker import FAILURES_TO_OPEN, CircuitBreaker, CircuitState
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.search_clients import asking
from tests.fakes.shared_stores import away

SERVICE = "search/tavily"


class Provider:
    """Fails as it is told, or answers."""

    name = "tavily"
    error: BaseException | None = None

    async def search(self, request: SearchRequest) -> SearchResponse:
        """As of a provider."""
        if self.error is not None:
            raise self.error
        return SearchResponse(provider=self.name)


async def ask(search: WatchedSearch, times: int) -> None:
    for _ in range(times):
        with pytest.raises((ProviderError, asyncio.CancelledError)):
            await search.search(asking("tavily"))


async def test_failures_open_the_circuit_and_an_answer_closes_it() -> None:
    """Five failures in a row are known to all workers; a search that succeeds after all ends that (X-16)."""
    circuits, provider = CircuitBreaker(MemorySharedStore()), Provider()
    search = WatchedSearch(provider, circuits, SERVICE)
    provider.error = Unavailable("503")
    await ask(search, FAILURES_TO_OPEN)
    assert await circuits.state(SERVICE) is CircuitState.OPEN
    provider.error = None
    assert (await search.search(asking("tavily"))).provider == search.name
    assert await circuits.state(SERVICE) is CircuitState.CLOSED


@pytest.mark.parametrize(
    "error", [RateLimited("429"), NotConfigured("401"), InvalidCall("400"), asyncio.CancelledError()]
)
async def test_what_says_nothing_of_the_service_opens_nothing(error: BaseException) -> None:
    """Being told to wait, a key of one's own, a refused query and a cancelled run are no outage."""
    circuits, provider = CircuitBreaker(MemorySharedStore()), Provider()
    provider.error = error
    await ask(WatchedSearch(provider, circuits, SERVICE), 2 * FAILURES_TO_OPEN)
    assert await circuits.state(SERVICE) is CircuitState.CLOSED


async def test_a_store_that_is_away_costs_no_answer() -> None:
    """A circuit only saves time."""
    search = WatchedSearch(Provider(), CircuitBreaker(away()), SERVICE)
    assert (await search.search(asking("tavily"))).provider == "tavily"
