"""Gathering: search for sub-queries, read the best hits, merge the results into the state.

Searches run in parallel, as do reads. Hits are chosen in sub-query order: each sub-query may read its guaranteed share
once its own search and those before it have returned; the rest of the budget is spent rank by rank once all have
returned. A source found twice belongs to the lowest (sub-query, rank). So the result does not depend on the order of
arrival.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from temporalio.exceptions import ActivityError

from contracts import activities, failures
from contracts.addresses import canonical_url
from contracts.evidence import Candidate, SearchHit, Source
from contracts.messages import ReadRecord, ReadRequest, SearchResponse, reading_conditions
from contracts.names import CORPUS_SCHEME, READING_QUEUE
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.protected_sources import NAMED
from contracts.sentences import Message
from contracts.texts import plural, shorten
from contracts.vocabulary import AgentRole, NodeStatus, SourceStatus, StopReason
from workflows.phases.analysis import pages_waiting
from workflows.phases.drafts import withdraw_evidence
from workflows.phases.searching import Answers, Searching
from workflows.rules.agents import known_record
from workflows.rules.duplicates import Identities, hits_to_protect, register_sources
from workflows.rules.sub_queries import reads_left, sources_left
from workflows.run.budget import account
from workflows.run.calls import call_options, is_cancelled, reason_of
from workflows.run.host import abandon, ended_calls, run_parallel
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.run_budget import CallRefused

PATIENCE_SECONDS = 10.0
"""Time for retries of one unresponsive site among several."""
OUTAGE_SECONDS = 300.0
"""Time for retries if most sites are unresponsive."""


@dataclass
class Read:
    """A read in flight: the source's first hit, and the task for its record."""

    hit: SearchHit
    record: "asyncio.Task[ReadRecord]"


class Gathering:
    """One pass over a set of sub-queries."""

    def __init__(
        self,
        run: ResearchRun,
        sub_queries: list[PlanNode],
        cap: int | None = None,
        only: frozenset[str] | None = None,
        *,
        labelled: bool = False,
    ) -> None:
        """Read at most `cap` sources in this pass and, if `only` is given, only these canonical URLs.

        With `only`, a role chooses the pages by the titles and snippets of all hits; `labelled` if it may choose later.
        """
        limits = run.resolved.limits
        state = run.state
        self._run = run
        self._sub_queries = sub_queries
        self._only = only
        self._ledger = {page.id: page for page in state.evidence.ledger.pages}
        """Pages that the run had read before this agent started; their records are reused without a request."""
        self._known = frozenset(state.evidence.fetched_sources())
        left = sources_left(state, limits)
        self._protected = hits_to_protect(state) if sub_queries else []
        """Unread protected sources of the request, read before all others, for the first sub-query."""
        if cap is None:
            self._budget = left
        else:
            self._budget = min(left, cap + len(self._protected))
        self._bound_by: StopReason | None = None
        """The limit of spending that bounds `_budget`."""
        self._room = {query.id: reads_left(query, limits) if only is None else self._budget for query in sub_queries}
        """Number of sources that each sub-query may still read."""
        self._searching = Searching(run, sub_queries, titled=labelled or only is not None)
        self._searches_at_once = asyncio.Semaphore(limits.max_parallel)
        self._reads_at_once = asyncio.Semaphore(limits.max_parallel_reads)
        self._identities = Identities({**self._ledger, **state.evidence.sources}, state.evidence.aliases)
        self._answers: dict[str, Answers] = {}
        """By sub-query; missing for those whose hits an earlier pass stored."""
        self._responses: dict[str, SearchResponse] = {}
        self._reads: dict[str, Read] = {}

    async def carry_out(self) -> None:
        """Search and read. Finished searches and reads are in the state afterwards, even if this raises.

        Raises `Interrupted` or `asyncio.CancelledError`.
        """
        if self._sub_queries and self._only is None:  # else a role has chosen the pages by what is left
            self._keep_within_money()
        searches = [asyncio.ensure_future(self._search(query)) for query in self._sub_queries]
        try:
            await self._run.within_limits(self._choose_and_read(searches))
        except (Interrupted, asyncio.CancelledError):
            await abandon(self._run.host, [*searches, *(read.record for read in self._reads.values())])
            self._take_results(complete=False)
            raise
        self._take_results(complete=True)

    def _keep_within_money(self) -> None:
        """Read no more pages than can be analyzed with what is left of the budget, beside those that are read and wait.

        A run without a finding of a model reads on: rules read what no model can. Raises `CallRefused` if no part of a
        page can be paid for, and none waits.
        """
        run = self._run
        payable = run.budget.payable_pages()
        if payable is None or all(finding.by_rules for finding in run.state.evidence.findings):
            return
        count, reason = payable
        waiting = len(pages_waiting(run)) + len(self._protected)
        if not count and not waiting:
            text = f"no further page: its analysis does not fit into what is left ({reason.value})"
            run.note("budget.exhausted", text, reason=reason.value)
            raise CallRefused(reason)
        if (most := max(len(self._protected), count - waiting)) < self._budget:
            self._budget = most
            self._bound_by = reason

    # --- search and choose -----------------------------------------------------------------------------------------
    async def _search(self, query: PlanNode) -> None:
        """Search for one sub-query, unless an interrupted or repeated pass already has its hits."""
        run = self._run
        stored = [
            candidate.hit for candidate in self._run.state.evidence.candidates if candidate.sub_query_id == query.id
        ]
        if stored:
            self._responses[query.id] = SearchResponse(provider=stored[0].provider, hits=stored)
            return
        async with self._searches_at_once:
            run.note("task.started", f"search: {query.text}", sub_query_id=query.id, text=query.text)
            self._answers[query.id] = answers = await self._searching.search(query)
        if answers.failed is not None:
            reason = answers.failed_in_words
            run.branch_failed(Message("search_failed", query=shorten(query.text, 150), reason=reason))
        else:
            self._responses[query.id] = self._searching.response(answers)

    async def _choose_and_read(self, searches: list["asyncio.Task[None]"]) -> None:
        for hit in self._protected:
            self._identities.add(hit)
            self._start(self._identities.identity_of(hit), hit)
        share = max(1, (self._budget - len(self._reads)) // max(1, len(searches)))
        for query, search in zip(self._sub_queries, searches, strict=True):
            await search
            hits = self._hits(query)
            for hit in hits:
                self._identities.add(hit)
            self._read_best(query, hits, share)
        # Spend the rest of the budget rank by rank, in sub-query order.
        for rank in zip_longest(*(self._hits(query) for query in self._sub_queries)):
            for query, hit in zip(self._sub_queries, rank, strict=True):
                self._read_best(query, [hit] if hit else [], 1)
        if self._bound_by is not None and len(self._reads) >= self._budget:
            text = f"reading {plural(self._budget, 'page')}: what is left pays for no more ({self._bound_by.value})"
            self._run.note("status", text, level="info")
        await self._run.host.settle([read.record for read in self._reads.values()])
        await self._read_again_after_outage()

    async def _read_again_after_outage(self) -> None:
        """Read unavailable sources again if most are unavailable, which suggests a transient outage on this side."""
        run = self._run
        count = len(self._reads)
        if not (failed := self._unavailable()):
            return
        run.note("status", f"{len(failed)} of {count} sources are away: trying again later", level="warning")
        for identity in failed:
            hit = self._reads[identity].hit
            self._reads[identity] = Read(hit, asyncio.ensure_future(self._read(identity, hit, OUTAGE_SECONDS)))
        await run.host.settle([self._reads[identity].record for identity in failed])
        if lost := self._unavailable():
            run.branch_failed(Message("sources_unavailable", count=len(lost), all=count))

    def _unavailable(self) -> list[str]:
        """Return the unavailable sources if most are unavailable, once all reads have ended."""
        errors = {identity: read.record.exception() for identity, read in self._reads.items()}
        kinds = {name: reason_of(error) for name, error in errors.items() if isinstance(error, ActivityError)}
        failed = [name for name, kind in kinds.items() if kind == failures.SOURCE_UNAVAILABLE]
        if 2 * len(failed) <= len(self._reads):
            return []
        return failed

    def _hits(self, query: PlanNode) -> list[SearchHit]:
        """Return the hits of a sub-query in rank order, without those excluded by the request."""
        response = self._responses.get(query.id)
        hits = []
        if response:
            hits = sorted(response.hits, key=lambda hit: hit.rank)
        return [hit for hit in hits if not self._run.is_excluded(hit)]

    def _read_best(self, query: PlanNode, hits: list[SearchHit], cap: int) -> None:
        """Start reading the first new ones of these hits, at most `cap`, within the sub-query's and total budget."""
        for hit in hits:
            identity = self._identities.identity_of(hit)
            if not cap or not self._room[query.id] or len(self._reads) >= self._budget:
                return
            is_chosen = self._only is None or canonical_url(hit.url) in self._only
            if identity in self._known or identity in self._reads or not is_chosen:
                continue
            self._start(identity, self._identities.leader_of(hit))
            self._room[query.id] -= 1
            cap -= 1

    def _start(self, identity: str, hit: SearchHit) -> None:
        """Start reading a source by its first hit, once."""
        if identity not in self._reads:
            self._reads[identity] = Read(hit, asyncio.ensure_future(self._read(identity, hit)))

    async def _read(self, identity: str, hit: SearchHit, patience: float = PATIENCE_SECONDS) -> ReadRecord:
        run = self._run
        if (page := self._ledger.get(identity)) is not None:
            run.note("source.added", f"read before: {page.title}", source_id=page.id, title=page.title)
            return known_record(page)
        questions = None
        if hit.provider == NAMED:
            questions = [query.text for query in self._sub_queries]
        entries = list(hit.entries)
        if entries and run.resolved.follow_up is not None and run.resolved.follow_up.entry:
            entries.append(run.resolved.follow_up.entry)  # the text of a page that the thread above has archived
        fields = {
            "hit_entries": list(dict.fromkeys(entries)),
            "needs_title": not hit.title,
            "patience_seconds": patience,
        }
        request = _read_request(run, identity, canonical_url(hit.url), questions, **fields)
        async with self._reads_at_once:
            remaining = run.clock.remaining_work_seconds()
            options = call_options(READING_QUEUE, f"read/{identity}", f"read: {hit.title or hit.url}", remaining)
            record = await run.host.execute(activities.READ_SOURCE, request, options)
        title = record.title or hit.title
        extent = " (abstract only)" if record.abstract_only else ""
        run.note("source.added", f"read: {title}{extent}", source_id=identity, title=title)
        return record

    # --- results ---------------------------------------------------------------------------------------------------
    def _take_results(self, *, complete: bool) -> None:
        """Merge finished searches and reads, in sub-query and rank order; not `complete` after an interruption."""
        state = self._run.state
        found_by = {self._identities.identity_of(hit): [self._sub_queries[0].id] for hit in self._protected}
        for query in self._sub_queries:
            for hit in self._hits(query):
                self._identities.add(hit)  # not added yet if an earlier search was unfinished
                found_by.setdefault(self._identities.identity_of(hit), []).append(query.id)
        order = {query.id: index for index, query in enumerate(self._sub_queries)}
        fresh: list[tuple[SearchHit, Source]] = []
        for identity, read in self._reads.items():
            # The first sub-query that found a source owns it.
            source = self._build_source(identity, read, list(dict.fromkeys(found_by[identity])))
            if source is not None:
                fresh.append((read.hit, source))
                cached = source.status is SourceStatus.FULL and read.record.result().cached
                account(state, AgentRole.GATHERER, Usage(reads=1, cached_reads=int(cached)))
        fresh.sort(key=lambda pair: (order[pair[1].sub_query_ids[0]], pair[0].rank))
        state.evidence.sources, state.evidence.aliases, dropped = register_sources(
            state.evidence.sources, state.evidence.aliases, fresh
        )
        self._extend_known_sources(found_by)
        readable = [source for _, source in fresh if source.status is SourceStatus.FULL]
        new = Counter(source.sub_query_ids[0] for source in readable if source.id not in dropped)
        for query in self._sub_queries:
            self._take_query(query, new[query.id], complete=complete)

    def _build_source(self, identity: str, read: Read, found_by: list[str]) -> Source | None:
        """Return the source of a read, readable or failed; None if the read was cut off."""
        task = read.record
        hit = read.hit
        if not task.done() or task.cancelled():
            return None
        source = Source.of_hit(hit, found_by).with_fields(
            id=identity, iteration=self._run.state.work.iteration, hit_entries=[]
        )
        error = task.exception()
        if isinstance(error, ActivityError):
            if is_cancelled(error):
                return None
            reason = reason_of(error)
            self._run.note("source.failed", f"skipped: {hit.title or hit.url} ({reason})", kind=reason, title=hit.title)
            return source.with_fields(status=SourceStatus.FAILED, status_reason=reason, hit_entries=hit.entries)
        record = task.result()
        self._run.state.evidence.note_entry(record.entry)
        return source.read(record, canonical_url(hit.url), hit.title)

    def _extend_known_sources(self, found_by: dict[str, list[str]]) -> None:
        """Add to known sources the sub-queries that found them again, and the matching sections from a corpus."""
        state = self._run.state
        cap = self._run.resolved.limits.max_sources_per_query
        for query in self._sub_queries:
            for hit in self._hits(query)[:cap]:
                source = state.evidence.sources.get(self._identities.identity_of(hit))
                if source is None:
                    continue
                finders = [*source.sub_query_ids, *found_by[self._identities.identity_of(hit)]]
                sections = hit.entries if source.entry and hit.url.startswith(CORPUS_SCHEME) else []
                state.evidence.sources[source.id] = source.with_fields(
                    sub_query_ids=list(dict.fromkeys(finders)),
                    hit_entries=list(dict.fromkeys([*source.hit_entries, *sections])),
                )

    def _take_query(self, query: PlanNode, new: int, *, complete: bool) -> None:
        """Update a sub-query with its search results and the number of its `new` sources."""
        state = self._run.state
        answers = self._answers.get(query.id)
        response = self._responses.get(query.id)
        error = answers.failed if answers else None
        if response is not None and not any(
            candidate.sub_query_id == query.id for candidate in state.evidence.candidates
        ):
            state.evidence.candidates += [Candidate(sub_query_id=query.id, hit=hit) for hit in response.hits]
            state.evidence.term_documents.update(response.term_documents)
            state.evidence.spellings.update(response.spellings)
            if response.documents_searched is not None:
                state.evidence.documents_searched = response.documents_searched
        if answers is not None:
            state.evidence.query_ledger += answers.asked
        duplicates = answers.duplicate_hits if answers else 0
        if complete and query.status is not NodeStatus.COMPLETED and not query.duplicate_count:
            # Of its first hits, those repeating a source, and those whose source another sub-query found first.
            identities = Identities({**self._ledger, **state.evidence.sources}, state.evidence.aliases)
            top_hits = self._hits(query)[: self._run.resolved.limits.max_sources_per_query]
            fetched = state.evidence.fetched_sources().values()
            other_sources = {source.id for source in fetched if source.sub_query_ids[:1] != [query.id]}
            duplicates += len(top_hits) - len({identities.identity_of(hit) for hit in top_hits} - other_sources)
        state.evidence.duplicates += duplicates
        unfinished = NodeStatus.EXECUTING if response else NodeStatus.PENDING
        status = NodeStatus.COMPLETED if complete else unfinished
        unanswered = ""
        if answers:
            unanswered = "; ".join(f"{name}: {reason}" for name, reason in answers.errors.items())
        query = state.work.plan.newest(query).with_fields(
            status=NodeStatus.FAILED if error is not None else status,
            status_reason="",
            error=error or (unanswered or None if answers else query.error),
            provider=response.provider if response else query.provider,
            result_count=max(query.result_count, len(response.hits) if response else 0),
            new_source_count=query.new_source_count + new,
            duplicate_count=query.duplicate_count + duplicates,
        )
        state.work.plan = state.work.plan.with_nodes(query)
        if complete or error is not None:
            counts = f"{query.result_count} found · {new} read · {query.duplicate_count} duplicates"
            text = f"failed: {query.text}: {error}" if error is not None else f"{counts}: {query.text}"
            data = {"found": query.result_count, "new": new, "duplicates": query.duplicate_count, "error": error}
            self._run.note("task.finished", text, sub_query_id=query.id, text=query.text, **data)


def _read_request(
    run: ResearchRun, identity: str, url: str, questions: Sequence[str] | None, **fields: Any
) -> ReadRequest:
    """Return the request for a page.

    A page without a search entry is fetched and assessed by explicit conditions, with the `questions`.
    """
    if questions is not None:
        fields["tenant"] = run.resolved.tenant
    if questions is not None and not url.startswith(CORPUS_SCHEME):
        fields |= reading_conditions(run.resolved, questions, run.state.clock.started_at[:10])
    private = run.exposes_private_text(url)
    return ReadRequest(source_id=identity, url=url, exposes_private_text=private, permitted=run.is_permitted, **fields)


# --- refresh: read the sources of a finished run again ---------------------------------------------------------------
async def read_again(run: ResearchRun) -> dict[str, ReadRecord]:
    """Read the due sources again, concurrently; return the records of those whose text changed, by source id.

    A source that cannot be read again remains archived, so its passages can still be shown and checked. A changed
    source stays due until its record is merged (`withdraw_sources`). Raises `Interrupted`.
    """
    state = run.state
    refresh = run.state.work.refresh
    if refresh is None:
        return {}
    questions = [query.text for query in state.work.plan.sub_queries]
    sources = [state.evidence.sources[name] for name in refresh.due if name in state.evidence.sources]

    async def read(source: Source) -> ReadRecord:
        remaining = run.clock.remaining_work_seconds()
        options = call_options(READING_QUEUE, f"read-again/{source.id}", f"read again: {source.title}", remaining)
        fields = {"title": source.title, "known_entry": source.entry or ""}
        request = _read_request(run, source.id, source.url, questions, **fields)
        return await run.host.execute(activities.READ_SOURCE, request, options)

    reads = [partial(read, source) for source in sources]
    calls = await run.within_limits(run_parallel(run.host, reads, run.resolved.limits.max_parallel))
    changed = dict[str, ReadRecord]()
    done = list[str]()
    for source, call, reason in ended_calls(sources, calls):
        if reason is not None:
            refresh.lost[source.id] = reason
            run.note("source.failed", f"not read again: {source.title} ({reason})", kind=reason, title=source.title)
        elif source.text is None or call.result().text.hash != source.text.hash:
            changed[source.id] = call.result()
            run.note("source.changed", f"changed: {source.title}", source_id=source.id, title=source.title)
            continue
        else:
            refresh.lost.pop(source.id, None)
        done.append(source.id)
    account(state, AgentRole.GATHERER, Usage(reads=len(sources)))
    refresh.due = [name for name in refresh.due if name not in done]
    read_count = len(sources) - len(refresh.lost)
    text = f"{plural(read_count, 'source')} read again, {len(changed)} changed, {len(refresh.lost)} gone or unreachable"
    run.note("status", text, changed=len(changed), lost=len(refresh.lost))
    return changed


async def withdraw_sources(run: ResearchRun, changed: Mapping[str, ReadRecord]) -> None:
    """Remove the findings of changed sources from report and state, and adopt their new texts. Raises `Interrupted`."""
    state = run.state
    withdrawn = [key for key, item in state.evidence.passages.items() if item.source_id in changed]
    await withdraw_evidence(run, withdrawn)
    # Remove passages of these sources, and findings based only on them.
    state.evidence.passages = {
        key: item for key, item in state.evidence.passages.items() if item.source_id not in changed
    }
    remaining = []
    for finding in state.evidence.findings:
        if evidence := [key for key in finding.evidence_ids if key in state.evidence.passages]:
            sources = [name for name in finding.source_ids if name not in changed]
            remaining.append(finding.with_fields(evidence_ids=evidence, source_ids=sources))
    state.evidence.findings = remaining
    for name, record in changed.items():
        source = state.evidence.sources[name]
        state.evidence.note_entry(record.entry)
        read = source.read(record, source.url, source.title)
        state.evidence.sources[name] = read.with_fields(analyzed=False, hit_entries=[], found_quality=None)
    if state.work.refresh is not None:
        state.work.refresh.due = [name for name in state.work.refresh.due if name not in changed]
