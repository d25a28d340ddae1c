"""Gathering: search, read as soon as the own search returned, merge in a fixed order."""

import asyncio
from typing import Any

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.addresses import canonical_url
from contracts.evidence import SearchHit, Source
from contracts.messages import ReadRecord, ReadRequest, SearchResponse
from contracts.names import CORPUS_SCHEME
from contracts.plan import PlanNode
from contracts.request import SourceType, published_between
from contracts.texts import shorten
from workflows.phases.gathering_results import Gathered, merge
from workflows.phases.provider_searches import Answers, Searching
from workflows.rules.allocation import Allotment, Identity, allot, guaranteed_share, unread
from workflows.rules.duplicates import Identities
from workflows.rules.scoping import known_record
from workflows.rules.sub_queries import room_of, sources_left
from workflows.run.activity_options import read_options
from workflows.run.call_errors import is_cancelled
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun


class Gathering:
    """One pass over a set of sub-queries."""

    def __init__(
        self,
        run: ResearchRun,
        sub_queries: list[PlanNode],
        most: int | None = None,
        only: frozenset[str] | None = None,
    ) -> None:
        """With `most`, at most so many sources are read in this pass; with `only`, those at these addresses.

        Addresses are canonical, and such as searches of these sub-queries have found.
        """
        self._run = run
        self._sub_queries = sub_queries
        self._known = frozenset(run.state.sources)
        self._ledger = {page.id: page for page in run.state.ledger.pages}
        """Pages that were read before this agent began: what was read then is taken, and no request is made."""
        limits = run.resolved.limits
        left = sources_left(run.state, limits)
        self._budget = left if most is None else min(left, most)
        self._only = only
        self._room = {query.id: room_of(query, limits) if only is None else self._budget for query in sub_queries}
        self._searching = Searching(run, sub_queries)
        self._turns = asyncio.Semaphore(limits.max_parallel)
        self._reading = asyncio.Semaphore(limits.max_parallel_reads)
        self._found = Gathered(run, limits.max_sources_per_query)
        self._requests: dict[str, tuple[SearchHit, ReadRequest]] = {}
        """The hit for which each read was begun, and with what, by source."""

    async def carry_out(self) -> None:
        """Search and read; whatever happens, what was finished is merged into the state.

        Raises `Interrupted` or `asyncio.CancelledError` after the merge.
        """
        pipelines = [asyncio.ensure_future(self._pipeline(i, query)) for i, query in enumerate(self._sub_queries)]
        try:
            await self._run.within_limits(self._everything(pipelines))
        except (Interrupted, asyncio.CancelledError):
            await self._run.abandon([*pipelines, *self._found.reads.values()])
            self._merge(complete=False)
            raise
        self._merge(complete=True)

    async def _everything(self, pipelines: list["asyncio.Task[None]"]) -> None:
        await asyncio.gather(*pipelines)
        identity_of = self._identities().identity_of
        for choice in self._allotment(identity_of).chosen:
            self._start_read(identity_of(choice.hit), choice.hit)
        await self._run.host.settle(list(self._found.reads.values()))
        await self._judge_as_owned(identity_of)

    async def _judge_as_owned(self, identity_of: Identity) -> None:
        """A page that was read for the hit that came first is judged by the one that it belongs to in the end.

        The snippet and the date of a hit count in a judgement; the page itself is in the cache by now.
        """
        again: list[asyncio.Task[ReadRecord]] = []
        for choice in self._allotment(identity_of).chosen:
            identity = identity_of(choice.hit)
            if identity in self._ledger:
                continue
            first, (hit, begun) = self._found.reads[identity], self._requests[identity]
            request = begun if choice.hit == hit else self._read_request(identity, choice.hit)
            if request != begun and not first.cancelled() and first.exception() is None:
                # What the first reading left in the notebook goes with the run.
                self._run.state.note_entry(first.result().entry)
                self._found.reads[identity] = asyncio.ensure_future(
                    self._read_again(request, choice.hit, first.result())
                )
                again.append(self._found.reads[identity])
        await self._run.host.settle(again)

    async def _pipeline(self, position: int, query: PlanNode) -> None:
        """One sub-query: its search, then at once the reads of its guaranteed share."""
        stored = [candidate.hit for candidate in self._run.state.candidates if candidate.sub_query_id == query.id]
        if stored:
            # An interrupted or repeated gathering has this answer already: it is not asked for again.
            self._found.responses[query.id] = SearchResponse(provider=stored[0].provider, hits=stored)
        else:
            async with self._turns:
                self._run.note("task.started", f"search: {query.text}", sub_query_id=query.id, text=query.text)
                self._take(query, await self._searching.search(query))
        share = guaranteed_share(self._budget, len(self._sub_queries), position, self._room[query.id])
        identities = self._identities()
        for hit in unread(self._to_read(query.id), self._known, identities.identity_of)[:share]:
            self._start_read(identities.identity_of(hit), identities.leader_of(hit))

    def _take(self, query: PlanNode, answers: Answers) -> None:
        run, why = self._run, answers.failed
        self._found.answers[query.id] = answers
        if why is not None:
            run.branch_failed(f"search for “{shorten(query.text, 150)}”: {why}")
            run.note("task.failed", f"search failed: {query.text}: {why}", sub_query_id=query.id)
            return
        response = self._searching.response(answers)
        self._found.responses[query.id] = response
        run.note("status", f"{len(response.hits)} found: {query.text}", sub_query_id=query.id, found=len(response.hits))

    def _start_read(self, identity: str, hit: SearchHit) -> None:
        if identity not in self._found.reads and identity not in self._known:
            request = self._read_request(identity, hit)
            self._requests[identity] = hit, request
            page = self._ledger.get(identity)
            work = self._read(request, hit) if page is None else self._take_known(page)
            self._found.reads[identity] = asyncio.ensure_future(work)

    async def _read(self, request: ReadRequest, hit: SearchHit) -> ReadRecord:
        record = await self._execute_read(request, hit)
        title = record.title or hit.title
        self._run.note("source.added", f"read: {title}", source_id=request.source_id, title=title)
        return record

    async def _take_known(self, page: Source) -> ReadRecord:
        record = known_record(page)
        self._run.note("source.added", f"known: {page.title}", source_id=page.id, title=page.title)
        return record

    async def _read_again(self, request: ReadRequest, hit: SearchHit, first: ReadRecord) -> ReadRecord:
        try:
            record = await self._execute_read(request, hit)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            return first
        return record.model_copy(update={"cached": first.cached})

    async def _execute_read(self, request: ReadRequest, hit: SearchHit) -> ReadRecord:
        run = self._run
        async with self._reading:
            summary = f"read: {hit.title or hit.url}"
            options = read_options(f"read/{request.source_id}", summary, run.remaining_work_seconds())
            return await run.host.execute(activities.read_source, request, options)

    def _read_request(self, identity: str, hit: SearchHit) -> ReadRequest:
        resolved = self._run.resolved
        request = ReadRequest(
            source_id=identity,
            url=canonical_url(hit.url),
            corpus_digest=resolved.corpus.digest if resolved.corpus and hit.url.startswith(CORPUS_SCHEME) else "",
            holds_private=self._run.holds_private(hit.url),
            hit_entries=hit.entries,
            wants_title=not hit.title,
            permission=self._run.permission(),
        )
        # What is left out here, the entries tell.
        return request if hit.entries else request.model_copy(update=self._told_in_full(hit))

    def _told_in_full(self, hit: SearchHit) -> dict[str, Any]:
        """With what a page of the web is judged by, and kept to; what a corpus is worth is declared."""
        resolved, search, today = self._run.resolved, self._run.resolved.search, self._run.state.started_at[:10]
        told = {"tenant": resolved.tenant, "title": hit.title}
        if hit.url.startswith(CORPUS_SCHEME):
            return told
        return told | {
            # All of them: which one returned first must not decide what a page is worth.
            "query": "\n".join(query.text for query in self._sub_queries),
            "snippet": hit.snippet,
            "source_type": hit.source_type,
            "published_at": hit.published_at,
            "venue": hit.venue,
            "doi": hit.doi,
            "mode": search.source_types[0] if search.source_types else SourceType.WEB,
            "published_from": published_between(search.timeframe, today)[0],
            "date": today,
            "domains_allow": search.domains_allow,
            "domains_deny": search.domains_deny,
        }

    def _to_read(self, query_id: str) -> list[SearchHit]:
        """Hits of a sub-query that may be read in this pass."""
        hits = self._found.hits(query_id)
        return hits if self._only is None else [hit for hit in hits if canonical_url(hit.url) in self._only]

    def _identities(self) -> Identities:
        """Which hits are one source, as far as searches have returned; made anew, so that arrival decides nothing."""
        hits = [hit for query in self._sub_queries for hit in self._found.hits(query.id)]
        return Identities({**self._ledger, **self._run.state.sources}, self._run.state.aliases, hits)

    def _allotment(self, identity_of: Identity) -> Allotment:
        hits = {query.id: self._to_read(query.id) for query in self._sub_queries}
        return allot(hits, self._known, self._budget, self._room, identity_of)

    def _merge(self, *, complete: bool) -> None:
        identity_of = self._identities().identity_of
        merge(self._run, self._sub_queries, self._found, self._allotment(identity_of), identity_of, complete=complete)
