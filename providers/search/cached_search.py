"""A search provider whose answers are kept for a while."""

import json
from typing import Final

from contracts.activities import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.interfaces import SearchProvider
from providers.shared.cache import NEWS_SEARCH, SEARCH, Cache

NOT_OF_THE_ANSWER: Final = {"research_id", "tenant", "operation"}
"""Who asks and why; the tenant is part of the cache's own key."""


class CachedSearch:
    """Made with a provider and the cache. An answer from the cache says so, and costs nothing."""

    def __init__(self, provider: SearchProvider, cache: Cache) -> None:
        self.name = provider.name
        self._provider = provider
        self._cache = cache

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what the provider raises."""
        kind = NEWS_SEARCH if request.source_type is SourceType.NEWS else SEARCH
        found = await self._cache.get_or_make(
            kind, request.tenant, _identity(self.name, request), lambda: self._provider.search(request), ResponseCodec()
        )
        return found.value.model_copy(update={"cached": True, "cost_usd": 0.0}) if found.hit else found.value


class ResponseCodec:
    """Responses as JSON."""

    async def encode(self, value: SearchResponse) -> str:
        """The response as JSON."""
        return value.model_dump_json()

    async def decode(self, text: str) -> SearchResponse:
        """Inverse of `encode`. Raises ValueError."""
        return SearchResponse.model_validate_json(text)


def _identity(name: str, request: SearchRequest) -> str:
    """Everything that shapes the answer, in one spelling."""
    asked = request.model_dump(mode="json", exclude=NOT_OF_THE_ANSWER)
    asked |= {"domains_allow": sorted(request.domains_allow), "domains_deny": sorted(request.domains_deny)}
    return json.dumps([name, asked], sort_keys=True)
