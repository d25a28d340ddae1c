"""The activity `search`: one query to one provider."""

from collections.abc import Mapping

from temporalio import activity

from activities.failures import SEARCHING, translated
from activities.heartbeats import heartbeating
from contracts.activities import SearchRequest, SearchResponse
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider


class SearchingActivities:
    """Made with the search providers of this worker, by name."""

    def __init__(self, providers: Mapping[str, SearchProvider]) -> None:
        self._providers = providers

    @activity.defn(name="search")
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order; none is an answer, a failure is raised (S0-053)."""
        with translated(SEARCHING):
            provider = self._providers.get(request.provider)
            if provider is None:
                raise NotConfigured("this worker has no search provider of that name: see `research doctor`")
            async with heartbeating():
                return await provider.search(request)
