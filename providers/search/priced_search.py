"""A search provider whose price the operator has stated."""

from contracts.activities import SearchRequest, SearchResponse
from providers.interfaces import SearchProvider


class PricedSearch:
    """What the provider charges depends on a plan that only the operator knows; one who says it has priority."""

    def __init__(self, provider: SearchProvider, cost_usd: float) -> None:
        """`cost_usd` is US dollars per request."""
        self.name = provider.name
        self._provider = provider
        self._cost_usd = cost_usd

    async def search(self, request: SearchRequest) -> SearchResponse:
        """The provider's answer with its price. Raises what it raises."""
        answer = await self._provider.search(request)
        return answer.model_copy(update={"cost_usd": self._cost_usd})
