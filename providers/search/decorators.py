"""Decorators of a search provider: price, circuit breaker, rate limit and cache."""

import asyncio
import json
from contextlib import suppress
from copy import copy
from typing import Final, Protocol, runtime_checkable

from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.request import SourceType
from providers.errors import ProviderError
from providers.interfaces import Limiter, SearchProvider
from providers.shared.cache import NEWS_SEARCH, SEARCH, Cache
from providers.shared.circuit_breaker import CircuitBreaker, judge_outcome

NOT_OF_THE_ANSWER: Final = {
    *("research_id", "tenant", "operation"),
    *("questions", "date", "resolved_entry", "titled"),
}
"""The caller and its reason, and what becomes of the answer; the tenant is part of the cache's own key."""


class SearchDecorator:
    """Stands before a provider under the provider's own name."""

    def __init__(self, provider: SearchProvider) -> None:
        self.name = provider.name
        self._provider = provider


class PricedSearch(SearchDecorator):
    """Replaces the cost of each answer by the price that the operator has configured."""

    def __init__(self, provider: SearchProvider, cost_usd: float) -> None:
        """`cost_usd` is US dollars per request."""
        super().__init__(provider)
        self._cost_usd = cost_usd

    async def search(self, request: SearchRequest) -> SearchResponse:
        """The provider's answer with its price. Raises what it raises."""
        answer = await self._provider.search(request)
        return answer.model_copy(update={"cost_usd": self._cost_usd})


class WatchedSearch(SearchDecorator):
    """Reports how each request ended. It holds none back: providers are chosen before a run begins."""

    def __init__(self, provider: SearchProvider, circuits: CircuitBreaker, service_name: str) -> None:
        super().__init__(provider)
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


class LimitedSearch(SearchDecorator):
    """One permit for each request; told to wait, the operation keeps its place."""

    def __init__(self, provider: SearchProvider, limiter: Limiter, service_name: str) -> None:
        super().__init__(provider)
        self._limiter = limiter
        self._service_name = service_name

    async def search(self, request: SearchRequest) -> SearchResponse:
        """What the provider answers. Raises what it raises, and `RateLimited` when the request must wait."""
        holder = f"{request.research_id}/{request.operation}"
        async with self._limiter.permit(self._service_name, holder):
            return await self._provider.search(request)


@runtime_checkable
class Placed(Protocol):
    """A provider of which there can be several: by address, by engine or by model."""

    @property
    def instance(self) -> str:
        """Which of them it is; holds no key."""
        ...


def instance_of(provider: SearchProvider) -> str:
    """Which of its kind a provider is; empty for one that there is only once."""
    return provider.instance if isinstance(provider, Placed) else ""


class CachedSearch(SearchDecorator):
    """Answers from the cache where it can. Such an answer says so, and costs nothing."""

    def __init__(self, provider: SearchProvider, cache: Cache, instance: str = "") -> None:
        """`instance` parts answers of one provider from those of another that has its name: see `instance_of`."""
        super().__init__(provider)
        self._cache = cache
        self._instance = instance

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what the provider raises; of callers that wait for one answer, one alone pays."""
        kind = NEWS_SEARCH if request.source_type is SourceType.NEWS else SEARCH
        try:
            found = await self._cache.get_or_make(
                kind,
                request.tenant,
                _identity(self.name, self._instance, request),
                lambda: self._provider.search(request),
                ResponseCodec(),
            )
        except ProviderError as error:
            if error.usage == Usage():
                raise
            # All waiting callers get this very error: the first one takes its cost with it.
            mine = copy(error)
            error.usage = Usage()
            raise mine from None
        return found.value.model_copy(update={"cached": True, "cost_usd": 0.0}) if found.hit else found.value


class ResponseCodec:
    """Responses as JSON."""

    async def encode(self, value: SearchResponse) -> str:
        """The response as JSON."""
        return value.model_dump_json()

    async def decode(self, text: str) -> SearchResponse:
        """Inverse of `encode`. Raises ValueError."""
        return SearchResponse.model_validate_json(text)


def _identity(name: str, instance: str, request: SearchRequest) -> str:
    """Everything that shapes the answer, in one spelling."""
    asked = request.model_dump(mode="json", exclude=NOT_OF_THE_ANSWER)
    asked |= {"domains_allow": sorted(request.domains_allow), "domains_deny": sorted(request.domains_deny)}
    return json.dumps([name, instance, asked], sort_keys=True)
