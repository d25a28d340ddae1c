"""From what a gathering brought to the state: in sub-query and rank order, never in order of arrival."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from temporalio.exceptions import ActivityError

from contracts.addresses import canonical_url
from contracts.evidence import Candidate, SearchHit, Source
from contracts.messages import ReadRecord, SearchResponse
from contracts.names import CORPUS_SCHEME
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.vocabulary import AgentRole, NodeStatus, SourceStatus
from workflows.phases.provider_searches import Answers
from workflows.rules.allocation import Allotment, Identity
from workflows.rules.duplicates import register_sources
from workflows.rules.query_matching import record_of
from workflows.run.accounting import account
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.research_run import ResearchRun

MOST_SECTIONS = 6


@dataclass
class Gathered:
    """Answers by sub-query, reads by source."""

    run: ResearchRun
    per_query: int
    answers: dict[str, Answers] = field(default_factory=dict)
    """What providers gave in this pass; a sub-query whose hits were stored has none."""
    responses: dict[str, SearchResponse] = field(default_factory=dict)
    reads: "dict[str, asyncio.Task[ReadRecord]]" = field(default_factory=dict)

    def hits(self, query_id: str) -> list[SearchHit]:
        """Hits of a sub-query in rank order, without those that the request excludes."""
        response = self.responses.get(query_id)
        if response is None:
            return []
        return [hit for hit in response.hits if not self.run.is_excluded(hit)]

    def error(self, query_id: str) -> str | None:
        """Why the search of a sub-query failed."""
        answers = self.answers.get(query_id)
        return answers.failed if answers else None


def merge(
    run: ResearchRun,
    sub_queries: list[PlanNode],
    found: Gathered,
    allotment: Allotment,
    identity_of: Identity,
    *,
    complete: bool,
) -> None:
    """Take over what was finished. `complete` is false when the gathering was cut off."""
    _Merge(run, sub_queries, found, allotment, identity_of, complete=complete).carry_out()


class _Merge:
    def __init__(
        self,
        run: ResearchRun,
        sub_queries: list[PlanNode],
        found: Gathered,
        allotment: Allotment,
        identity_of: Identity,
        *,
        complete: bool,
    ) -> None:
        self._run = run
        self._state = run.state
        self._sub_queries = sub_queries
        self._found = found
        self._allotment = allotment
        self._identity_of = identity_of
        self._complete = complete
        self._new: dict[str, int] = {}
        self._twice: dict[str, int] = {}

    def carry_out(self) -> None:
        self._take_reads()
        self._take_repeats()
        if self._complete:
            # What a gathering before had counted is not counted again.
            first = [query.id for query in self._sub_queries if query.status is not NodeStatus.COMPLETED]
            self._state.duplicates += sum(self._allotment.duplicates_by_sub_query.get(name, 0) for name in first)
        for query in self._sub_queries:
            self._take_query(query)

    # --- sources ---------------------------------------------------------------------------------------------------
    def _take_reads(self) -> None:
        """What was read enters the registry; a page that turns out to be a known one joins it."""
        state = self._state
        fresh: list[tuple[SearchHit, Source]] = []
        finders: dict[str, str] = {}
        for choice in self._allotment.chosen:
            source = self._read(choice)
            if source is not None:
                fresh.append((choice.hit, source))
                finders[source.id] = choice.sub_query_id
        after = register_sources(state.sources, state.aliases, fresh)
        state.sources, state.aliases = after.sources, after.aliases
        for identity, query_id in finders.items():
            counts = self._twice if identity in after.dropped else self._new
            is_read = identity in after.dropped or state.sources[identity].status is SourceStatus.FULL
            counts[query_id] = counts.get(query_id, 0) + is_read
        state.duplicates += len(after.dropped)

    def _read(self, choice: Candidate) -> Source | None:
        """The source of a read that ended; null for one that was cut off."""
        identity = self._identity_of(choice.hit)
        task = self._found.reads.get(identity)
        if task is None or task.cancelled() or not task.done():
            return None
        source = self._source(identity, choice, self._allotment.owners[identity], task)
        if source is not None:
            cached = source.status is SourceStatus.FULL and task.result().cached
            account(self._state, AgentRole.GATHERER, Usage(reads=1, cached_reads=int(cached)))
        return source

    def _source(
        self, identity: str, choice: Candidate, owners: list[str], task: "asyncio.Task[ReadRecord]"
    ) -> Source | None:
        hit = choice.hit
        known = _as_found(identity, hit, owners, self._state.iteration)
        error = task.exception()
        if error is not None:
            if not isinstance(error, ActivityError):
                raise error
            if is_cancelled(error):
                return None
            reason = reason_of(error)
            self._run.note("source.failed", f"skipped: {hit.title or hit.url} ({reason})", kind=reason, title=hit.title)
            return Source(**known, status=SourceStatus.FAILED, status_reason=reason, hit_entries=hit.entries)
        self._state.note_entry(task.result().entry)
        return _as_read(known, hit, task.result())

    def _take_repeats(self) -> None:
        """A source known before gains the sub-queries that found it again, and the sections they found."""
        state = self._state
        for query in self._sub_queries:
            for hit in self._found.hits(query.id)[: self._found.per_query]:
                source = state.sources.get(self._identity_of(hit))
                if source is None or source.status is not SourceStatus.FULL:
                    continue
                owners = source.sub_query_ids + ([query.id] if query.id not in source.sub_query_ids else [])
                fits = source.text is not None and hit.content_hash in (None, source.text.hash)
                places = {(part.start, part.end) for part in source.sections}
                fresh = [part for part in hit.sections if fits and (part.start, part.end) not in places]
                # Only a corpus tells where in a document it found something.
                told = hit.entries if source.entry and hit.url.startswith(CORPUS_SCHEME) else []
                update = {
                    "sub_query_ids": owners,
                    "sections": [*source.sections, *fresh][:MOST_SECTIONS],
                    "hit_entries": list(dict.fromkeys([*source.hit_entries, *told])),
                }
                state.sources[source.id] = source.model_copy(update=update)

    # --- sub-queries -----------------------------------------------------------------------------------------------
    def _take_query(self, query: PlanNode) -> None:
        state, found = self._state, self._found
        response, error, answers = (
            found.responses.get(query.id), found.error(query.id), found.answers.get(query.id)
        )  # fmt: skip
        if response is not None:
            self._keep_response(query, response)
        if answers is not None:
            state.query_ledger += [record_of(query, name, found=n, source_type=kind) for name, kind, n in answers.asked]
        folded = answers.folded if answers else 0
        state.duplicates += folded
        merged_count = query.merged_count + folded
        finished = self._complete or error is not None
        repeated = query.status is NodeStatus.COMPLETED
        duplicates = self._allotment.duplicates_by_sub_query.get(query.id, 0) + self._twice.get(query.id, 0)
        duplicates += merged_count
        merged = query.model_copy(
            update={
                "status": _status(finished=finished, failed=error is not None, answered=response is not None),
                "status_reason": "",
                "error": error or (_missing_answers(answers) if answers else query.error),
                "provider": response.provider if response else query.provider,
                "result_count": len(response.hits) if response else 0,
                "new_source_count": query.new_source_count + self._new.get(query.id, 0),
                "merged_count": merged_count,
                "duplicate_count": duplicates if finished and not repeated else query.duplicate_count + folded,
            }
        )
        state.plan = state.plan.with_nodes(merged)
        if finished:
            self._tell(merged, self._new.get(query.id, 0), error)

    def _tell(self, query: PlanNode, new: int, error: str | None) -> None:
        text = f"{query.result_count} found · {new} read · {query.duplicate_count} duplicates: {query.text}"
        self._run.note(
            "task.finished",
            text if error is None else f"failed: {query.text}: {error}",
            sub_query_id=query.id,
            text=query.text,
            found=query.result_count,
            new=new,
            duplicates=query.duplicate_count,
            error=error,
        )

    def _keep_response(self, query: PlanNode, response: SearchResponse) -> None:
        state = self._state
        if any(candidate.sub_query_id == query.id for candidate in state.candidates):
            return
        state.candidates += [Candidate(sub_query_id=query.id, hit=hit) for hit in response.hits]
        state.term_documents.update(response.term_documents)
        state.spellings.update(response.spellings)
        if response.documents_searched is not None:
            state.documents_searched = response.documents_searched


def _status(*, finished: bool, failed: bool, answered: bool) -> NodeStatus:
    if failed:
        return NodeStatus.FAILED
    if finished:
        return NodeStatus.COMPLETED
    return NodeStatus.EXECUTING if answered else NodeStatus.PENDING


def _missing_answers(answers: Answers) -> str | None:
    """Which providers did not answer although others did."""
    return "; ".join(f"{name}: {why}" for name, why in answers.errors.items()) or None


def _as_found(identity: str, hit: SearchHit, owners: list[str], iteration: int) -> dict[str, Any]:
    return {
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
        "iteration": iteration,
    }


def _as_read(known: dict[str, Any], hit: SearchHit, record: ReadRecord) -> Source:
    fits = hit.content_hash in (None, record.text.hash)
    return Source(
        **known
        | {
            "url": record.url or canonical_url(hit.url),
            "title": record.title or hit.title,
            "authors": record.authors or hit.authors,
            "published_at": record.published_at or hit.published_at,
        },
        publisher=record.publisher,
        retrieved_at=record.retrieved_at or None,
        status=SourceStatus.FULL,
        quality=record.quality,
        quality_reason=record.quality_reason,
        assessment=record.assessment,
        language=record.language,
        content_hash=record.content_hash,
        raw=record.raw,
        text=record.text,
        pages=record.pages,
        sections=hit.sections if fits else [],
        best_quality=record.best_quality,
        entry=record.entry,
    )
