"""A search provider that keeps to the limits of its service."""

from contracts.activities import SearchRequest, SearchResponse
from providers.interfaces import Limiter, SearchProvider


class LimitedSearch:
    """One permit for each request; told to wait, the operation keeps its place."""

    def __init__(self, provider: SearchProvider, limiter: Limiter, service_name: str) -> None:
        self.name = provider.name
        self._provider = provider
        self._limiter = limiter
        self._service_name = service_name

    async def search(self, request: SearchRequest) -> SearchResponse:
        """What the provider answers. Raises what it raises, and `RateLimited` when the request must wait."""
        holder = f"{request.research_id}/{request.operation}"
        async with self._limiter.permit(self._service_name, holder):
            return await self._provider.search(request)
