"""The activity `search`: one query to one provider."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from temporalio import activity

from activities.earlier_run import offer
from activities.failures import SEARCHING, attempt, send_heartbeats
from activities.permitted import check_permission
from contracts.evidence import SearchHit
from contracts.messages import CheckedProviders, CheckProvidersRequest, SearchRequest, SearchResponse
from contracts.notebooks import HitsEntry
from contracts.outcome import Usage
from contracts.request import EARLIER
from providers.errors import NotConfigured, RateLimited, StoreUnavailable, Unavailable
from providers.interfaces import Notebooks, SearchProvider

Check = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""From names of providers to those that cannot be asked at the moment, each with the reason."""

NOT_CONFIGURED: Final = "the workers that search are not configured for it: see `research doctor`"
SECTIONS: Final = 3
"""Of a hit: the analyst reads the documents, not the hits."""
TITLE_CHARACTERS: Final = 120
HEADING_CHARACTERS: Final = 240
SNIPPET_CHARACTERS: Final = 200
MOST_AUTHORS: Final = 3
MOST_WARNINGS: Final = 5


class SearchingActivities:
    """Made with the search providers of this worker, by name."""

    def __init__(self, providers: Mapping[str, SearchProvider], check: Check, notebooks: Notebooks) -> None:
        """`check` finds the unavailable providers; hits are written into `notebooks`."""
        self._providers = providers
        self._check = check
        self._notebooks = notebooks

    @activity.defn(name="check_providers")
    async def check_providers(self, request: CheckProvidersRequest) -> CheckedProviders:
        """See which providers this worker can ask: it is the one that has the keys and the network."""
        check_permission(request.permission)
        known = [name for name in request.providers if name in self._providers]
        async with send_heartbeats():
            unavailable = await self._check(known)
        unknown = [name for name in request.providers if name not in known]
        return CheckedProviders(unavailable={**dict.fromkeys(unknown, NOT_CONFIGURED), **unavailable})

    @activity.defn(name="search")
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order; none is an answer, a failure is raised."""
        async with attempt(SEARCHING) as history:
            check_permission(request.permission)
            if request.provider == EARLIER:
                known = await self._notebooks.read(request.earlier_entry, HitsEntry)
                return await self._by_reference(request, offer(known.hits, request))
            provider = self._providers.get(request.provider)
            if provider is None:
                raise NotConfigured("this worker has no search provider of that name: see `research doctor`")
            try:
                found = await provider.search(request)
            except (RateLimited, Unavailable) as error:
                error.patience = None if isinstance(error, StoreUnavailable) else request.patience_seconds
                raise
            response = await self._by_reference(request, found)
            if history.usage == Usage():
                return response
            return response.model_copy(update={"spent_before": history.usage})

    async def _by_reference(self, request: SearchRequest, response: SearchResponse) -> SearchResponse:
        """The response with labels of its hits: address, DOI, and titles of the first ones. The rank is the place.

        The hits themselves, shortened, are an entry of the notebook.
        """
        labels = [
            SearchHit(url=hit.url, title=hit.title[:TITLE_CHARACTERS] if place < request.titled else "", doi=hit.doi)
            for place, hit in enumerate(sorted(response.hits, key=lambda hit: hit.rank))
        ]
        entry = None
        if response.hits:
            found = HitsEntry(
                questions=request.questions,
                date=request.date,
                resolved_entry=request.resolved_entry,
                hits=[_shortened(hit) for hit in response.hits],
            )
            entry = await self._notebooks.write(found)
        return response.model_copy(
            update={"hits": labels, "entry": entry, "warnings": response.warnings[:MOST_WARNINGS]}
        )


def _shortened(hit: SearchHit) -> SearchHit:
    sections = [
        part.model_copy(update={"heading": part.heading[-HEADING_CHARACTERS:], "score": round(part.score, 1)})
        for part in hit.sections[:SECTIONS]
    ]
    return hit.model_copy(
        update={
            "title": hit.title[:TITLE_CHARACTERS],
            "snippet": hit.snippet[:SNIPPET_CHARACTERS],
            "authors": hit.authors[:MOST_AUTHORS],
            "sections": sections,
        }
    )
