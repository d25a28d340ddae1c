"""The activity `search`: one query to one provider."""

from collections.abc import Mapping
from typing import Final

from temporalio import activity

from activities.failures import SEARCHING, translated
from activities.heartbeats import heartbeating
from contracts.activities import SearchRequest, SearchResponse
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider

SECTIONS: Final = 3
TITLE_CHARACTERS: Final = 120
SNIPPET_CHARACTERS: Final = 100


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
                return brief(await provider.search(request))


def brief(response: SearchResponse) -> SearchResponse:
    """The response as it enters the history: short snippets, places of the best sections."""
    hits = [
        hit.model_copy(
            update={
                "title": hit.title[:TITLE_CHARACTERS],
                "snippet": hit.snippet[:SNIPPET_CHARACTERS],
                "sections": [
                    part.model_copy(update={"heading": "", "score": round(part.score, 1)})
                    for part in hit.sections[:SECTIONS]
                ],
            }
        )
        for hit in response.hits
    ]
    return response.model_copy(update={"hits": hits})
