"""The activity `search`: one query to one provider."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from temporalio import activity

from activities.attempts import count_attempts, send_heartbeats
from activities.earlier_run import offer
from activities.failure_translation import RECORDS, SEARCHING, translate_errors
from activities.permitted import check_permission
from contracts.evidence import SearchHit
from contracts.messages import CheckedProviders, CheckProvidersRequest, SearchRequest, SearchResponse
from contracts.notebooks import HitsEntry
from contracts.outcome import Usage
from contracts.request import EARLIER
from providers.errors import NotConfigured
from providers.interfaces import Notebooks, SearchProvider

Check = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""From names of providers to those that cannot be asked at the moment, each with the reason."""

NOT_CONFIGURED: Final = "the workers that search are not configured for it: see `research doctor`"
SECTIONS: Final = 3
TITLE_CHARACTERS: Final = 120
SNIPPET_CHARACTERS: Final = 200
MOST_AUTHORS: Final = 3
MOST_WARNINGS: Final = 5


class SearchingActivities:
    """Made with the search providers of this worker, by name."""

    def __init__(
        self,
        providers: Mapping[str, SearchProvider],
        check: Check | None = None,
        notebooks: Notebooks | None = None,
    ) -> None:
        """`check` says which providers cannot be asked; without it, none is looked at.

        Without `notebooks` an answer holds all the details of its hits.
        """
        self._providers = providers
        self._check = check
        self._notebooks = notebooks

    @activity.defn(name="check_providers")
    async def check_providers(self, request: CheckProvidersRequest) -> CheckedProviders:
        """See which providers this worker can ask: it is the one that has the keys and the network."""
        check_permission(request.permission)
        known = [name for name in request.providers if name in self._providers]
        async with send_heartbeats():
            unavailable = {} if self._check is None else await self._check(known)
        unknown = [name for name in request.providers if name not in known]
        return CheckedProviders(unavailable={**dict.fromkeys(unknown, NOT_CONFIGURED), **unavailable})

    @activity.defn(name="search")
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order; none is an answer, a failure is raised."""
        async with count_attempts(SEARCHING) as past:
            check_permission(request.permission)
            if request.provider == EARLIER and self._notebooks is not None:
                with translate_errors(RECORDS):
                    known = await self._notebooks.read(request.earlier_entry, HitsEntry)
                return await self._note_hits(request, brief(offer(known.hits, request)))
            provider = self._providers.get(request.provider)
            if provider is None:
                raise NotConfigured("this worker has no search provider of that name: see `research doctor`")
            response = await self._note_hits(request, brief(await provider.search(request)))
            return response if past.spent == Usage() else response.model_copy(update={"spent_before": past.spent})

    async def _note_hits(self, request: SearchRequest, response: SearchResponse) -> SearchResponse:
        """The response with labels of its hits; the hits themselves are in the notebook."""
        if self._notebooks is None or not request.resolved_entry or not response.hits:
            return response
        found = HitsEntry(
            questions=request.questions,
            date=request.date,
            resolved_entry=request.resolved_entry,
            hits=response.hits,
        )
        with translate_errors(RECORDS):
            entry = await self._notebooks.write(found)
        # What the workflow must know of a hit: which source it is, and what it is called; its place is its rank.
        labels = [
            SearchHit(url=hit.url, title=hit.title if place < request.titled else "", doi=hit.doi)
            for place, hit in enumerate(sorted(response.hits, key=lambda hit: hit.rank))
        ]
        return response.model_copy(update={"hits": labels, "entry": entry})


def brief(response: SearchResponse) -> SearchResponse:
    """The response as it is kept: short snippets, places of the best sections."""
    hits = [
        hit.model_copy(
            update={
                "title": hit.title[:TITLE_CHARACTERS],
                "snippet": hit.snippet[:SNIPPET_CHARACTERS],
                "authors": hit.authors[:MOST_AUTHORS],
                "sections": [
                    part.model_copy(update={"heading": "", "score": round(part.score, 1)})
                    for part in hit.sections[:SECTIONS]
                ],
            }
        )
        for hit in response.hits
    ]
    return response.model_copy(update={"hits": hits, "warnings": response.warnings[:MOST_WARNINGS]})
