"""The activity `search`: one query to one provider."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from temporalio import activity

from activities.failures import SEARCHING, attempt, check_permission, send_heartbeats
from activities.journal import Charge, count_cost
from contracts import activities
from contracts.evidence import DocumentRef, SearchHit, SectionHint, Source
from contracts.messages import CheckProvidersRequest, SearchRequest, SearchResponse
from contracts.names import CORPUS_SCHEME, SERVER_PREFIX, SERVER_SCHEME
from contracts.notebooks import HitsEntry
from contracts.outcome import Usage
from contracts.request import EARLIER_PROVIDER
from contracts.resolved import ResolvedResearch
from contracts.sentences import Message, Text, to_data
from contracts.state import ResearchState
from contracts.texts import shorten
from providers.errors import ContentMissing, NotConfigured
from providers.interfaces import ContentStore, SearchProvider
from providers.storage.stored_notebooks import Notebooks
from providers.text import question_stems, stems
from providers.tokens.lookup import find_passages

CheckProviders = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Maps provider names to those that are unavailable at the moment, each with a reason."""

NOT_CONFIGURED: Final = Message("provider_unconfigured")
TITLE_CHARACTERS: Final = 120
MIN_MATCHING_SHARE: Final = 1 / 3
"""Share of a query's words that a passage of the thread must have, with its headings and the statements about it."""
MAX_OFFERED: Final = 100
"""Sources of a thread that are offered."""
MAX_PASSAGES: Final = 50
"""Passages of the thread that are ranked for one query."""
MAX_RANKED_CHARACTERS: Final = 3_000_000
"""Of the texts of a thread that are searched for one query, those offered first: more would take seconds."""


@dataclass(frozen=True, eq=False)
class SearchingActivities:
    """Search activities over this worker's providers, by name."""

    providers: Mapping[str, SearchProvider]
    check: CheckProviders
    notebooks: Notebooks
    content: ContentStore
    charge: Charge | None = None
    """Counts the US dollars of a search of a run and its tenant; None: they are not counted."""

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
                return await self._search_thread(request)
            provider = self.providers.get(request.provider)
            if provider is None:
                raise NotConfigured("this worker has no search provider of that name: see `research doctor`")
            found = await provider.search(request)
            cost = Usage(cost_usd=found.cost_usd).plus(history.usage)
            await count_cost(self.charge, request.research_id, request.tenant, cost)
            response = await self._store_hits(request, found)
            if history.usage == Usage():
                return response
            return response.with_fields(spent_before=history.usage)

    async def _search_thread(self, request: SearchRequest) -> SearchResponse:
        """Return the sources of the thread that fit a query by their archived texts, without any request."""
        offered = (await self.notebooks.read(request.earlier_entry, HitsEntry)).hits
        texts: dict[str, str] = {}
        room = MAX_RANKED_CHARACTERS
        for hit in offered:
            if hit.content_hash is None or room <= 0:
                continue
            with suppress(ContentMissing):  # a text that is gone is not offered
                texts[hit.content_hash] = await self.content.get_text(DocumentRef(hash=hit.content_hash))
                room -= len(texts[hit.content_hash])
        response = await asyncio.to_thread(match_earlier_sources, offered, texts, request)
        return await self._store_hits(request, response)

    async def _store_hits(self, request: SearchRequest, response: SearchResponse) -> SearchResponse:
        """Return the response with labels of its hits in rank order; the hits go into an entry of the notebook."""
        labels = [
            _label(hit, request.snippet_characters)
            if index < request.titled
            else SearchHit(url=hit.url, doi=hit.doi, archived=hit.archived, abstract_only=hit.abstract_only)
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
    return SearchHit(
        url=hit.url,
        title=hit.title[:TITLE_CHARACTERS],
        snippet=snippet,
        doi=hit.doi,
        abstract_only=hit.abstract_only,
        archived=hit.archived,
    )


def _shorten_hit(hit: SearchHit) -> SearchHit:
    """Truncate title, snippet and headings of a hit: the analyzer reads the documents themselves."""
    sections = [part.with_fields(heading=part.heading[-240:]) for part in hit.sections[:3]]
    return hit.with_fields(
        title=hit.title[:TITLE_CHARACTERS], snippet=hit.snippet[:200], authors=hit.authors[:3], sections=sections
    )


# --- sources of the thread above a run ----------------------------------------------------------------------------
def sources_to_offer(thread: Sequence[ResearchState], resolved: ResolvedResearch) -> list[SearchHit]:
    """Return the sources of a thread's findings that this run may read: cited ones first, of the latest run first.

    `thread` has the states with all details, from the run that is followed to the first one. A source of several runs
    has the newest of its texts, and the statements of all.
    """
    statements: dict[str, dict[str, None]] = {}
    places: dict[str, tuple[bool, int, int, str]] = {}
    newest: dict[str, Source] = {}
    for number, state in enumerate(thread):
        cited = {citation.source_id: citation.number for citation in state.evidence.citations}
        for finding in state.evidence.findings:
            for source_id in finding.source_ids:
                statements.setdefault(source_id, {})[finding.statement] = None
        for source in state.evidence.readable_sources():
            newest.setdefault(source.id, source)
            place = (source.id not in cited, number, cited.get(source.id, 0), source.id)
            places[source.id] = min(place, places.get(source.id, place))
    known = [source for source in newest.values() if source.id in statements and _may_read(source, resolved)]
    known.sort(key=lambda source: places[source.id])
    return [
        SearchHit(
            url=source.url,
            title=source.title,
            source_type=source.source_type,
            published_at=source.published_at,
            authors=source.authors,
            doi=source.doi,
            address=source.address,
            abstract_only=source.abstract_only,
            snippet=" ".join(statements[source.id])[:600],
            rank=rank,
            provider=EARLIER_PROVIDER,
            content_hash=source.text.hash if source.text else None,
            archived=source.entry or "",
            archived_pages=source.pages,
        )
        for rank, source in enumerate(known[:MAX_OFFERED], start=1)
    ]


def match_earlier_sources(
    hits: Sequence[SearchHit], texts: Mapping[str, str], request: SearchRequest
) -> SearchResponse:
    """Return the sources of a thread with a passage that fits the query, best first, with these passages as sections.

    `texts` are archived texts by hash.
    """
    language = request.language or "en"
    queried = frozenset(question_stems(request.text, language))
    archived = {hit.url: texts[hit.content_hash] for hit in hits if hit.content_hash and hit.content_hash in texts}
    (passages,) = find_passages(archived, [[request.text]], language, MAX_PASSAGES)
    named = {hit.url: hit for hit in hits}
    fitting: dict[str, list[SectionHint]] = {}
    for passage in passages:
        hit = named[passage.source_id]
        text = archived[hit.url][passage.start : passage.end]
        words = stems(" ".join([hit.title, hit.snippet, *passage.path, text]))
        if len(queried & set(words)) >= MIN_MATCHING_SHARE * len(queried):
            heading = passage.path[-1] if passage.path else ""
            section = SectionHint(start=passage.start, end=passage.end, heading=heading)
            fitting.setdefault(hit.url, []).append(section)
    ranked = [
        named[url].with_fields(rank=rank, sections=sections)
        for rank, (url, sections) in enumerate(fitting.items(), start=1)
    ]
    return SearchResponse(provider=EARLIER_PROVIDER, hits=ranked[: request.max_results], cached=True)


def _may_read(source: Source, resolved: ResolvedResearch) -> bool:
    """Return whether this run may read a source: of its corpus, of a server that it searches, or of the web."""
    if source.url.startswith(CORPUS_SCHEME):
        return resolved.corpus is not None and source.url.startswith(f"{CORPUS_SCHEME}{resolved.corpus.name}/")
    if source.url.startswith(SERVER_SCHEME):
        provider = SERVER_PREFIX + source.url.removeprefix(SERVER_SCHEME).partition("/")[0]
        return any(choice.name == provider and choice.available for choice in resolved.providers)
    return resolved.web
