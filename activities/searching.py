"""The activity `search`: one query to one provider."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from temporalio import activity

from activities.failures import SEARCHING, attempt, check_permission, send_heartbeats
from contracts import activities
from contracts.evidence import SearchHit, Source
from contracts.messages import CheckProvidersRequest, SearchRequest, SearchResponse
from contracts.names import CORPUS_SCHEME, SERVER_PREFIX, SERVER_SCHEME
from contracts.notebooks import HitsEntry
from contracts.outcome import Usage
from contracts.request import EARLIER_PROVIDER
from contracts.resolved import ResolvedResearch
from contracts.sentences import Message, Text, to_data
from contracts.state import ResearchState
from contracts.texts import shorten
from providers.errors import NotConfigured
from providers.interfaces import SearchProvider
from providers.storage.stored_notebooks import Notebooks
from providers.text import question_stems, stems

CheckProviders = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Maps provider names to those that are unavailable at the moment, each with a reason."""

NOT_CONFIGURED: Final = Message("provider_unconfigured")
TITLE_CHARACTERS: Final = 120
MIN_MATCHING_SHARE: Final = 1 / 3  # of a query's words that must match title or statements of an earlier run's source


@dataclass(frozen=True, eq=False)
class SearchingActivities:
    """Search activities over this worker's providers, by name."""

    providers: Mapping[str, SearchProvider]
    check: CheckProviders
    notebooks: Notebooks

    @activity.defn(name=activities.CHECK_PROVIDERS.name)
    async def check_providers(self, request: CheckProvidersRequest) -> dict[str, Text]:
        """Return the providers that this worker cannot call, with reasons; only it has the keys and the network."""
        check_permission(request.permitted)
        known = [name for name in request.providers if name in self.providers]
        with send_heartbeats():
            unavailable = await self.check(known)
        unknown = [name for name in request.providers if name not in known]
        reasons = {**dict.fromkeys(unknown, NOT_CONFIGURED), **unavailable}
        written: dict[str, Any] = {name: to_data(reason) for name, reason in reasons.items()}  # read back as `Text`
        return written

    @activity.defn(name=activities.SEARCH.name)
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order. An empty list is a valid answer; failures are raised."""
        async with attempt(SEARCHING, request.patience_seconds, request.patience_seconds) as history:
            check_permission(request.permitted)
            if request.provider == EARLIER_PROVIDER:
                earlier = await self.notebooks.read(request.earlier_entry, HitsEntry)
                return await self._store_hits(request, match_earlier_sources(earlier.hits, request))
            provider = self.providers.get(request.provider)
            if provider is None:
                raise NotConfigured("this worker has no search provider of that name: see `research doctor`")
            response = await self._store_hits(request, await provider.search(request))
            if history.usage == Usage():
                return response
            return response.with_fields(spent_before=history.usage)

    async def _store_hits(self, request: SearchRequest, response: SearchResponse) -> SearchResponse:
        """Return the response with labels of its hits in rank order; the hits go into an entry of the notebook."""
        labels = [
            _label(hit, request.snippet_characters) if index < request.titled else SearchHit(url=hit.url, doi=hit.doi)
            for index, hit in enumerate(sorted(response.hits, key=lambda hit: hit.rank))
        ]
        entry = None
        if response.hits:
            stored = HitsEntry(
                questions=request.questions,
                date=request.date,
                resolved_entry=request.resolved_entry,
                hits=[_shorten_hit(hit) for hit in response.hits],
            )
            entry = await self.notebooks.write(stored)
        return response.with_fields(hits=labels, entry=entry, warnings=response.warnings[:5])


def _label(hit: SearchHit, snippet_characters: int) -> SearchHit:
    """Return what a workflow gets of a hit that a role may choose."""
    snippet = ""
    if snippet_characters:
        snippet = shorten(" ".join(hit.snippet.split()), snippet_characters)
    return SearchHit(url=hit.url, title=hit.title[:TITLE_CHARACTERS], snippet=snippet, doi=hit.doi)


def _shorten_hit(hit: SearchHit) -> SearchHit:
    """Truncate title, snippet and headings of a hit: the analyzer reads the documents themselves."""
    sections = [part.with_fields(heading=part.heading[-240:]) for part in hit.sections[:3]]
    return hit.with_fields(
        title=hit.title[:TITLE_CHARACTERS], snippet=hit.snippet[:200], authors=hit.authors[:3], sections=sections
    )


# --- sources of an earlier run ----------------------------------------------------------------------------------------
def sources_to_offer(earlier: ResearchState, resolved: ResolvedResearch) -> list[SearchHit]:
    """Return sources of the earlier run's findings that this run may read, cited ones first."""
    statements: dict[str, list[str]] = {}
    for finding in earlier.evidence.findings:
        for source_id in finding.source_ids:
            statements.setdefault(source_id, []).append(finding.statement)
    cited = {citation.source_id: citation.number for citation in earlier.evidence.citations}
    known = [
        source
        for source in earlier.evidence.readable_sources()
        if source.id in statements and _may_read(source, resolved)
    ]
    known.sort(key=lambda source: (cited.get(source.id, len(cited) + 1), source.id))
    shared = ("url", "title", "source_type", "published_at", "authors", "doi", "address")
    return [
        SearchHit(
            **{name: getattr(source, name) for name in shared},
            snippet=" ".join(statements[source.id])[:600],
            rank=rank,
            provider=EARLIER_PROVIDER,
        )
        for rank, source in enumerate(known[:100], start=1)
    ]


def match_earlier_sources(hits: Sequence[SearchHit], request: SearchRequest) -> SearchResponse:
    """Return sources of an earlier run that match the query, best first."""
    queried = set(question_stems(request.text, request.language or "en"))
    shared = {hit.url: len(queried & set(stems(f"{hit.title} {hit.snippet}"))) for hit in hits}
    fitting = [hit for hit in hits if queried and shared[hit.url] >= MIN_MATCHING_SHARE * len(queried)]
    ordered = sorted(fitting, key=lambda hit: (-shared[hit.url], hit.rank))
    ranked = [hit.with_fields(rank=rank) for rank, hit in enumerate(ordered[: request.max_results], start=1)]
    return SearchResponse(provider=EARLIER_PROVIDER, hits=ranked, cached=True)


def _may_read(source: Source, resolved: ResolvedResearch) -> bool:
    """Return whether this run may read a source: of its corpus, of a server that it searches, or of the web."""
    if source.url.startswith(CORPUS_SCHEME):
        return resolved.corpus is not None and source.url.startswith(f"{CORPUS_SCHEME}{resolved.corpus.name}/")
    if source.url.startswith(SERVER_SCHEME):
        provider = SERVER_PREFIX + source.url.removeprefix(SERVER_SCHEME).partition("/")[0]
        return any(choice.name == provider and choice.available for choice in resolved.providers)
    return resolved.web
