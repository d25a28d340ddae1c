"""Gathering: searches and reads side by side, merged in a fixed order."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import source_id
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.resolved import ProviderChoice
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Phase, Quality, SourceStatus, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.rules.endings import lost_sources
from workflows.rules.sub_queries import unread_candidates
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

FIRST = states.sub_query("first question of the plan", status=NodeStatus.PENDING)
SECOND = states.sub_query("second question of the plan", status=NodeStatus.PENDING)


class Shelf:
    """Hits by question; pages that fail by address; a gate that holds reads back."""

    def __init__(
        self, hits: dict[str, list[str]], broken: set[str] = frozenset(), failing: set[str] = frozenset()
    ) -> None:
        self.hits, self.broken, self.failing = hits, broken, failing
        self.searched: list[str] = []
        self.read: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.held: set[str] = set()

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.searched.append(request.text)
        if request.text in self.failing:
            raise ApplicationError("down", type=failures.RATE_LIMITED, non_retryable=True)
        found = [states.hit(url, rank) for rank, url in enumerate(self.hits[request.text], start=1)]
        return SearchResponse(provider="corpus", hits=found, documents_searched=7, term_documents={"plan": 3})

    async def read_source(self, request: ReadRequest) -> ReadRecord:
        self.read.append(request.url)
        if request.url in self.held:
            await self.open.wait()
        if request.url in self.broken:
            raise ApplicationError("bad", {"kind": "encrypted"}, type=failures.SOURCE_UNREADABLE, non_retryable=True)
        return ReadRecord(
            url=request.url,
            title=request.title,
            retrieved_at="2026-11-21T12:00:00+00:00",
            content_hash="sha256:" + "1" * 64,
            raw=states.EMPTY_REF,
            text=states.EMPTY_REF,
            quality=Quality.HIGH,
        )


def run_with(shelf: Shelf, **limits: Any) -> ResearchRun:
    base = states.resolved().limits.model_copy(update={"max_new_sources": 4, "max_sources_per_query": 2, **limits})
    state = states.state(resolved=states.resolved(limits=base), plan=states.plan(FIRST, SECOND), phase=Phase.GATHERING)
    state.deadline_at = 4e9
    return ResearchRun(state, Inbox(), InProcessHost({"search": shelf.search, "read_source": shelf.read_source}))


async def gather(run: ResearchRun) -> ResearchState:
    await Gathering(run, run.state.pending_sub_queries()).carry_out()
    return run.state


async def test_sources_are_linked_counted_and_reconciled() -> None:
    """Ids, owners, duplicates and the four figures fit the state (S0-050, S0-052, S0-055, S0-058, S0-059)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a", "corpus:m/b"], SECOND.text: ["corpus:m/b", "corpus:m/c"]})
    state = await gather(run_with(shelf))
    assert [source.url for source in state.sources.values()] == ["corpus:m/a", "corpus:m/b", "corpus:m/c"]
    shared = state.sources[source_id("corpus:m/b")]
    assert shared.sub_query_ids == [FIRST.id, SECOND.id]
    first, second = state.plan.sub_queries
    assert (first.status, second.status) == (NodeStatus.COMPLETED, NodeStatus.COMPLETED)
    assert (first.new_source_count, second.new_source_count, state.duplicates) == (2, 1, 1)
    assert (state.usage.searches, state.usage.reads) == (2, 3)
    assert (state.documents_searched, state.term_documents) == (7, {"plan": 3})
    assert sorted(shelf.read) == ["corpus:m/a", "corpus:m/b", "corpus:m/c"]


async def test_a_failed_search_costs_its_own_sub_query() -> None:
    """Marked failed with its reason; the others go on; the run knows of the failed branch (S0-053, S0-054)."""
    shelf = Shelf({SECOND.text: ["corpus:m/a"]}, failing={FIRST.text})
    state = await gather(run_with(shelf))
    first, second = state.plan.sub_queries
    assert (first.status, first.error) == (NodeStatus.FAILED, failures.RATE_LIMITED)
    assert second.status is NodeStatus.COMPLETED
    assert any(FIRST.text in note for note in state.failed_branches)


async def test_an_unreadable_page_is_kept_with_its_reason() -> None:
    """It is in the registry as failed, never as a source that can be quoted (S0-055)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a"], SECOND.text: []}, broken={"corpus:m/a"})
    state = await gather(run_with(shelf))
    broken = state.sources[source_id("corpus:m/a")]
    assert (broken.status, broken.status_reason) == (SourceStatus.FAILED, "encrypted")
    assert state.readable_sources() == []
    assert any(event.type == "source.failed" for event in state.events)


async def test_who_returns_first_decides_nothing() -> None:
    """Reads that are held back change neither order nor owners (X-5)."""
    hits = {FIRST.text: ["corpus:m/a", "corpus:m/b"], SECOND.text: ["corpus:m/b", "corpus:m/c"]}
    quick = await gather(run_with(Shelf(hits)))
    slow_shelf = Shelf(hits)
    slow_shelf.held = {"corpus:m/a"}
    slow_shelf.open.clear()
    slow = run_with(slow_shelf)
    work = asyncio.ensure_future(gather(slow))
    while "corpus:m/c" not in slow_shelf.read:
        await asyncio.sleep(0)
    slow_shelf.open.set()
    state = await work
    assert state.sources == quick.sources
    assert list(state.sources) == list(quick.sources)


@pytest.mark.parametrize("late", [FIRST.text, SECOND.text])
async def test_a_page_is_judged_by_the_hit_that_it_belongs_to(late: str) -> None:
    """Whichever search returns first: the snippet of the owner's hit counts, and the page is counted once."""
    page = "https://example.org/page"
    shelf = Shelf({FIRST.text: [page], SECOND.text: [page]})
    read = asyncio.Event()

    async def search(request: SearchRequest) -> SearchResponse:
        if request.text == late:
            await read.wait()
        found = await shelf.search(request)
        hits = [hit.model_copy(update={"snippet": f"found for: {request.text}"}) for hit in found.hits]
        return found.model_copy(update={"hits": hits})

    async def read_source(request: ReadRequest) -> ReadRecord:
        record = await shelf.read_source(request)
        read.set()
        return record.model_copy(update={"quality_reason": request.snippet, "cached": len(shelf.read) > 1})

    run = run_with(shelf)
    run.host.implementations |= {"search": search, "read_source": read_source}
    state = await gather(run)
    (source,) = state.sources.values()
    assert source.quality_reason == f"found for: {FIRST.text}"
    assert (state.usage.reads, state.usage.cached_reads) == (1, 0)
    assert len(shelf.read) == (2 if late == FIRST.text else 1)


async def test_a_repeated_gathering_reads_the_next_ranks() -> None:
    """No search is asked again; the next rank window fills the room that unreadable pages left (C0-2, C0-27)."""
    pages = [f"corpus:m/{number}" for number in range(4)]
    shelf = Shelf({FIRST.text: pages, SECOND.text: []}, broken={pages[0]})
    run = run_with(shelf)
    await gather(run)
    assert shelf.read == pages[:2]
    for _ in range(2):
        await Gathering(run, [query for query in run.state.plan.sub_queries if query.id == FIRST.id]).carry_out()
    assert sorted(shelf.read) == pages[:3]
    assert shelf.searched == [FIRST.text, SECOND.text]
    assert run.state.plan.sub_queries[0].new_source_count == 2
    assert run.state.duplicates == 0
    assert unread_candidates(run.state, run.resolved.limits) == []


async def test_what_was_finished_before_an_interruption_is_kept() -> None:
    """The deadline drops the straggler alone; a resumed run neither searches nor reads again (S0-100, S0-128, S0-133)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a"], SECOND.text: ["corpus:m/b"]})
    shelf.held = {"corpus:m/b"}
    shelf.open.clear()
    run = run_with(shelf)
    work = asyncio.ensure_future(gather(run))
    while len(run.state.events) < 5 or "corpus:m/b" not in shelf.read:
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    assert list(run.state.sources) == [source_id("corpus:m/a")]
    assert [query.status for query in run.state.plan.sub_queries] == [NodeStatus.EXECUTING] * 2

    shelf.open.set()
    again = ResearchRun(ResearchState.model_validate_json(run.state.model_dump_json()), Inbox(), run.host)
    state = await gather(again)
    assert sorted(state.sources) == sorted([source_id("corpus:m/a"), source_id("corpus:m/b")])
    assert len(shelf.searched) == 2
    assert shelf.read.count("corpus:m/a") == 1


async def test_what_several_providers_had_is_counted_once_for_good() -> None:
    """Their hits of one page are duplicates of the sub-query and of the run, interrupted or not (S0-050, S0-058)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a", "corpus:m/b"], SECOND.text: []})
    shelf.held = {"corpus:m/a", "corpus:m/b"}
    shelf.open.clear()
    first = run_with(shelf)
    both = [ProviderChoice(name=name, available=True) for name in ("corpus", "second")]
    first.state.resolved = first.resolved.model_copy(update={"providers": both})
    run = ResearchRun(first.state, first.inbox, first.host)
    work = asyncio.ensure_future(gather(run))
    while len(shelf.read) < 2 or len(shelf.searched) < 4:
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    shelf.open.set()
    state = await gather(ResearchRun(run.state, Inbox(), run.host))
    assert (state.plan.sub_queries[0].duplicate_count, state.plan.sub_queries[0].merged_count) == (2, 2)
    assert state.duplicates == 2


async def test_a_full_disk_costs_what_could_not_be_kept() -> None:
    """What was waited for in vain is lost with its reason; the other sources are kept, and the run knows both."""
    shelf = Shelf({FIRST.text: ["corpus:m/a"], SECOND.text: ["corpus:m/b"]})

    async def full(request: ReadRequest) -> ReadRecord:
        if request.url.endswith("a"):
            raise ApplicationError("no room left", type=failures.STORAGE_FULL, non_retryable=True)
        return await shelf.read_source(request)

    run = run_with(shelf)
    run.host.implementations["read_source"] = full
    state = await gather(run)
    lost = state.sources[source_id("corpus:m/a")]
    assert (lost.status, lost.status_reason) == (SourceStatus.FAILED, failures.STORAGE_FULL)
    assert [source.url for source in state.readable_sources()] == ["corpus:m/b"]
    assert lost_sources(state) == "1 of 2 sources were not read: no room was left to keep them."


async def test_the_total_of_sources_is_never_passed() -> None:
    """Neither the budget of an iteration nor that of the run (S0-051)."""
    pages = [f"corpus:m/{number}" for number in range(9)]
    shelf = Shelf({FIRST.text: pages, SECOND.text: pages[::-1]})
    state = await gather(run_with(shelf, max_new_sources=3, max_sources_per_query=9))
    assert len(state.readable_sources()) == 3
