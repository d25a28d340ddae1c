"""Gathering: search, read as soon as the own search returned, merge in a fixed order (S0-049 to S0-059)."""

import asyncio
from typing import TYPE_CHECKING

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from contracts import activities, failures
from contracts.activities import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.identity import canonical_url, source_id
from contracts.plan import SubQuery
from contracts.sources import Candidate, SearchHit, Source
from contracts.vocabulary import SourceStatus, SubQueryStatus
from workflows.activity_options import read_options, search_options
from workflows.allocation import Allotment, allot, guaranteed_share, unread
from workflows.desk import Interrupted

if TYPE_CHECKING:
    from workflows.run import ResearchRun


class Gathering:
    """One pass over a set of sub-queries."""

    def __init__(self, run: "ResearchRun", sub_queries: list[SubQuery]) -> None:
        self._run = run
        self._sub_queries = sub_queries
        self._known = frozenset(run.state.sources)
        limits = run.resolved.limits
        room = limits.max_sources - len(run.state.readable_sources())
        self._budget = max(0, min(limits.max_new_sources, room))
        self._per_query = limits.max_sources_per_query
        self._searching = asyncio.Semaphore(limits.max_parallel)
        self._reading = asyncio.Semaphore(limits.max_parallel_reads)
        self._responses: dict[str, SearchResponse] = {}
        self._errors: dict[str, str] = {}
        self._reads: dict[str, asyncio.Task[ReadRecord]] = {}

    async def carry_out(self) -> None:
        """Search and read; whatever happens, what was finished is merged into the state.

        Raises `Interrupted` or `asyncio.CancelledError` after the merge.
        """
        pipelines = [asyncio.ensure_future(self._pipeline(i, query)) for i, query in enumerate(self._sub_queries)]
        try:
            await self._run.within_limits(self._everything(pipelines))
        except (Interrupted, asyncio.CancelledError):
            await self._run.abandon([*pipelines, *self._reads.values()])
            self._merge(complete=False)
            raise
        self._merge(complete=True)

    async def _everything(self, pipelines: list["asyncio.Task[None]"]) -> None:
        await asyncio.gather(*pipelines)
        for choice in self._allotment().chosen:
            self._start_read(choice.hit)
        await self._run.host.settle(list(self._reads.values()))

    async def _pipeline(self, position: int, query: SubQuery) -> None:
        """One sub-query: its search, then at once the reads of its guaranteed share."""
        stored = [candidate.hit for candidate in self._run.state.candidates if candidate.sub_query_id == query.id]
        if stored:
            # An interrupted or repeated gathering has this answer already: it is not asked for again (S0-131).
            self._responses[query.id] = SearchResponse(provider=stored[0].provider, hits=stored)
        else:
            async with self._searching:
                await self._search(query)
        hits = self._hits(query.id)
        share = guaranteed_share(self._budget, len(self._sub_queries), position, self._per_query)
        for hit in unread(hits, self._known)[:share]:
            self._start_read(hit)

    async def _search(self, query: SubQuery) -> None:
        run = self._run
        provider = next(choice.name for choice in run.resolved.providers if choice.available)
        run.note("task.started", f"search: {query.text}", sub_query_id=query.id, text=query.text)
        operation = f"search/{query.id}/{provider}"
        request = SearchRequest(
            research_id=run.resolved.research_id,
            tenant=run.resolved.tenant,
            operation=operation,
            provider=provider,
            corpus=run.resolved.corpus.name if run.resolved.corpus else None,
            text=query.text,
            max_results=self._per_query * 2,
        )
        options = search_options(operation, f"search: {query.text}", run.remaining_work_seconds())
        try:
            name = activities.search.__name__
            response = await run.host.execute(name, request, SearchResponse, options)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._errors[query.id] = reason_of(error)
            run.branch_failed(f"search for “{query.text[:150]}”: {reason_of(error)}")
            run.note("task.failed", f"search failed: {query.text}: {reason_of(error)}", sub_query_id=query.id)
            return
        self._responses[query.id] = response
        run.note("status", f"{len(response.hits)} found: {query.text}", sub_query_id=query.id, found=len(response.hits))

    def _start_read(self, hit: SearchHit) -> None:
        identity = source_id(hit.url)
        if identity not in self._reads and identity not in self._known:
            self._reads[identity] = asyncio.ensure_future(self._read(identity, hit))

    async def _read(self, identity: str, hit: SearchHit) -> ReadRecord:
        run = self._run
        async with self._reading:
            operation = f"read/{identity}"
            request = ReadRequest(
                research_id=run.resolved.research_id,
                tenant=run.resolved.tenant,
                operation=operation,
                source_id=identity,
                url=hit.url,
                title=hit.title,
            )
            options = read_options(operation, f"read: {hit.title or hit.url}", run.remaining_work_seconds())
            record = await run.host.execute(activities.read_source.__name__, request, ReadRecord, options)
        run.note("source.added", f"read: {record.title}", source_id=identity, title=record.title)
        return record

    def _hits(self, query_id: str) -> list[SearchHit]:
        response = self._responses.get(query_id)
        return response.hits if response else []

    def _allotment(self) -> Allotment:
        hits = {query.id: self._hits(query.id) for query in self._sub_queries}
        return allot(hits, self._known, self._budget, self._per_query)

    # --- merging: in sub-query and rank order, never in order of arrival ------------------------------------------
    def _merge(self, *, complete: bool) -> None:
        state = self._run.state
        allotment = self._allotment()
        counts: dict[str, int] = {}
        for choice in allotment.chosen:
            identity = source_id(choice.hit.url)
            task = self._reads.get(identity)
            if task is None or task.cancelled() or not task.done():
                continue
            source = self._source(identity, choice, allotment.owners[identity], task)
            if source is not None:
                state.sources[identity] = source
                state.aliases[canonical_url(choice.hit.url)] = identity
                state.usage = state.usage.model_copy(update={"reads": state.usage.reads + 1})
                counts[choice.sub_query_id] = counts.get(choice.sub_query_id, 0) + (source.status is SourceStatus.FULL)
        self._merge_repeats()
        if complete:
            state.duplicates += allotment.duplicates
        finished = {query.id for query in self._sub_queries} if complete else set(self._errors)
        for query in self._sub_queries:
            self._merge_query(query, query.id in finished, counts.get(query.id, 0), allotment.duplicates_by_sub_query)

    def _source(
        self, identity: str, choice: Candidate, owners: list[str], task: "asyncio.Task[ReadRecord]"
    ) -> Source | None:
        hit = choice.hit
        known = {
            "id": identity,
            "url": hit.url,
            "title": hit.title,
            "snippet": hit.snippet[:300],
            "provider": hit.provider,
            "source_type": hit.source_type,
            "published_at": hit.published_at,
            "authors": hit.authors,
            "venue": hit.venue,
            "doi": hit.doi,
            "sub_query_ids": owners,
            "rank": hit.rank,
            "iteration": self._run.state.iteration,
        }
        error = task.exception()
        if error is not None:
            if not isinstance(error, ActivityError):
                raise error
            if is_cancelled(error):
                return None
            if must_stop(error):
                raise error
            reason = reason_of(error)
            self._run.note("source.failed", f"skipped: {hit.title or hit.url} ({reason})", kind=reason, title=hit.title)
            return Source(**known, status=SourceStatus.FAILED, status_reason=reason)
        record = task.result()
        known |= {
            "url": record.url,
            "title": record.title or hit.title,
            "authors": record.authors or hit.authors,
            "published_at": record.published_at or hit.published_at,
        }
        usable = hit.content_hash in (None, record.text.hash)
        return Source(
            **known,
            publisher=record.publisher,
            retrieved_at=record.retrieved_at,
            status=SourceStatus.FULL,
            quality=record.quality,
            quality_reason=record.quality_reason,
            content_hash=record.content_hash,
            raw=record.raw,
            text=record.text,
            sections=hit.sections if usable else [],
        )

    def _merge_repeats(self) -> None:
        """A source known before gains the sub-queries that found it again, and the sections they found."""
        state = self._run.state
        for query in self._sub_queries:
            for hit in self._hits(query.id)[: self._per_query]:
                source = state.sources.get(source_id(hit.url))
                if source is None or source.status is not SourceStatus.FULL:
                    continue
                owners = source.sub_query_ids + ([query.id] if query.id not in source.sub_query_ids else [])
                fits = source.text is not None and hit.content_hash in (None, source.text.hash)
                places = {(part.start, part.end) for part in source.sections}
                fresh = [part for part in hit.sections if fits and (part.start, part.end) not in places]
                update = {"sub_query_ids": owners, "sections": [*source.sections, *fresh][:6]}
                state.sources[source.id] = source.model_copy(update=update)

    def _merge_query(self, query: SubQuery, finished: bool, new: int, duplicates: dict[str, int]) -> None:
        state = self._run.state
        response, error = self._responses.get(query.id), self._errors.get(query.id)
        if response is not None:
            self._keep_response(query, response)
        if error is not None:
            status = SubQueryStatus.FAILED
        elif finished:
            status = SubQueryStatus.COMPLETED
        else:
            status = SubQueryStatus.EXECUTING if response is not None else SubQueryStatus.PENDING
        found = len(response.hits) if response else 0
        update = {
            "status": status,
            "error": error,
            "provider": response.provider if response else query.provider,
            "result_count": found,
            "new_source_count": query.new_source_count + new,
            "duplicate_count": duplicates.get(query.id, 0) if finished else query.duplicate_count,
        }
        merged = query.model_copy(update=update)
        queries = [merged if other.id == query.id else other for other in state.plan.sub_queries]
        state.plan = state.plan.model_copy(update={"sub_queries": queries})
        if finished:
            text = f"{found} found · {new} read · {merged.duplicate_count} duplicates: {query.text}"
            self._run.note(
                "task.finished",
                text if error is None else f"failed: {query.text}: {error}",
                sub_query_id=query.id,
                text=query.text,
                found=found,
                new=new,
                duplicates=merged.duplicate_count,
                error=error,
            )

    def _keep_response(self, query: SubQuery, response: SearchResponse) -> None:
        state = self._run.state
        if any(candidate.sub_query_id == query.id for candidate in state.candidates):
            return
        state.candidates += [Candidate(sub_query_id=query.id, hit=hit) for hit in response.hits]
        state.usage = state.usage.model_copy(update={"searches": state.usage.searches + 1})
        state.term_documents.update(response.term_documents)
        if response.documents_searched is not None:
            state.documents_searched = response.documents_searched


def is_cancelled(error: ActivityError) -> bool:
    """Whether an activity ended because it was cancelled."""
    return isinstance(error.cause, CancelledError)


def must_stop(error: ActivityError) -> bool:
    """Whether going on would only waste work: there is no room left to keep anything."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == failures.STORAGE_FULL


def reason_of(error: ActivityError) -> str:
    """A short typed reason for a failed call: the kind of an unreadable source, else the failure's type."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        return str(detail.get("kind") or cause.type or "failed")
    return type(cause).__name__ if cause else "failed"
