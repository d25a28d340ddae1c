"""A search provider behind the limits of its service, the operator's price and the cache shared by all workers."""

import json
from typing import Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.interfaces import SearchProvider
from providers.shared.cache import NEWS_SEARCH, SEARCH, Cache
from providers.shared.limits import Limiter

FIELDS_OUTSIDE_KEY: Final = {"research_id", "tenant", "operation", "questions", "date", "resolved_entry", "titled"} | {
    "patience_seconds",
    "snippet_characters",
}
"""Fields that do not affect the answer: the caller and its reason; the tenant is part of the cache's own key."""


class SharedSearch:
    """A provider shared by all workers: from the cache if possible, marked cached and free, else under limits."""

    def __init__(
        self, provider: SearchProvider, service: str, limiter: Limiter, cache: Cache, cost_usd: float | None
    ) -> None:
        """Set the operator's price of a request in US dollars; None leaves the provider's own figure."""
        self.name = provider.name
        self._provider = provider
        self._service = service
        self._limiter = limiter
        self._cache = cache
        self._cost_usd = cost_usd

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order; of callers waiting for one answer, one pays. Raises `ProviderError`."""
        kind = NEWS_SEARCH if request.source_type is SourceType.NEWS else SEARCH
        key = request.model_dump(mode="json", exclude=FIELDS_OUTSIDE_KEY, exclude_defaults=True)
        key |= {"domains_allow": sorted(request.domains_allow), "domains_deny": sorted(request.domains_deny)}
        # Services with the same name may be at several addresses.
        identity = json.dumps([self.name, getattr(self._provider, "instance", ""), key], sort_keys=True)
        cached = await self._cache.get_or_make(
            kind, request.tenant, identity, lambda: self._ask(request), ResponseCodec()
        )
        if cached.hit:
            return cached.value.with_fields(cached=True, cost_usd=0.0)
        return cached.value

    async def _ask(self, request: SearchRequest) -> SearchResponse:
        async with self._limiter.permit(self._service):
            answer = await self._provider.search(request)
        if self._cost_usd is None:
            return answer
        return answer.with_fields(cost_usd=self._cost_usd)


class ResponseCodec:
    """Writes responses for the cache."""

    async def encode(self, value: SearchResponse) -> str:
        """Return the response as JSON."""
        return value.compact_json()

    async def decode(self, text: str) -> SearchResponse:
        """Invert `encode`. Raises ValueError."""
        return SearchResponse.model_validate_json(text)
