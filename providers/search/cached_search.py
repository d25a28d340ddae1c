"""A search provider whose answers are kept for a while."""

import json
from copy import copy
from typing import Final, Protocol, runtime_checkable

from contracts.activities import SearchRequest, SearchResponse
from contracts.request import SourceType
from contracts.usage import Usage
from providers.errors import ProviderError
from providers.interfaces import SearchProvider
from providers.shared.cache import NEWS_SEARCH, SEARCH, Cache

NOT_OF_THE_ANSWER: Final = {"research_id", "tenant", "operation"}
"""Who asks and why; the tenant is part of the cache's own key."""


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


class CachedSearch:
    """Made with a provider and the cache. An answer from the cache says so, and costs nothing."""

    def __init__(self, provider: SearchProvider, cache: Cache, instance: str = "") -> None:
        """`instance` parts answers of one provider from those of another that has its name: see `instance_of`."""
        self.name = provider.name
        self._provider = provider
        self._cache = cache
        self._instance = instance

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what the provider raises; of those who wait for one answer, one alone pays."""
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
            # All who wait are given this very error: whoever is first takes what it cost with it.
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
