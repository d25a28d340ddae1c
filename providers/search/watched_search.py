"""A search provider whose failures all workers hear of."""

import asyncio
from contextlib import suppress

from contracts.activities import SearchRequest, SearchResponse
from providers.errors import ProviderError
from providers.interfaces import SearchProvider
from providers.shared.circuit_breaker import CircuitBreaker, judge_outcome


class WatchedSearch:
    """Reports how each request ended. None is held back here: who is asked is decided before a run begins."""

    def __init__(self, provider: SearchProvider, circuits: CircuitBreaker, service_name: str) -> None:
        self.name = provider.name
        self._provider = provider
        self._circuits = circuits
        self._service_name = service_name

    async def search(self, request: SearchRequest) -> SearchResponse:
        """The provider's answer. Raises what it raises."""
        try:
            answer = await self._provider.search(request)
        except ProviderError as error:
            await self._report(judge_outcome(error))
            raise
        except asyncio.CancelledError:
            await self._report(None)
            raise
        await self._report(ok=True)
        return answer

    async def _report(self, ok: bool | None) -> None:
        with suppress(ProviderError):  # a circuit saves time: without it the search is worth as much
            await self._circuits.report(self._service_name, ok)
