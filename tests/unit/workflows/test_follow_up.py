"""A follow-up question: the sources of an earlier run are offered first, and the report says so."""

from pathlib import Path
from typing import Any

from contracts.evidence import DocumentRef
from contracts.messages import PrepareRequest
from contracts.notebooks import HitsEntry
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import QUESTION, report_of
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of

FOLLOWING = "Which settings control the freezing of old rows?"


async def prepared(world: World, identity: str, **fields: Any) -> ResearchState:
    request = ResearchRequest(corpus="manual", **fields)
    host = world.host()
    ready = await host.implementations["prepare_research"](
        PrepareRequest(research_id=identity, request_json=request.model_dump_json())
    )
    state = ResearchState(resolved=ready.resolved, resolved_entry=ready.resolved_entry)
    state.started_at, state.deadline_at = host.now().isoformat(), 4e9
    return state


async def conducted(world: World, state: ResearchState) -> ResearchState:
    run = ResearchRun(state, Inbox(), world.host())
    assert await Driver(run, strategy_of(run.resolved.strategy)).conduct() in (Outcome.COMPLETED, Outcome.PARTIAL)
    return state


async def test_what_was_found_before_is_offered_first_and_the_report_says_so(tmp_path: Path) -> None:
    """Earlier sources come before those of the search, are read and quoted anew, and are told of (X-22)."""
    world = World(tmp_path)
    first = await conducted(world, await prepared(world, "r-first", query=QUESTION))
    state = await prepared(world, "r-second", query=FOLLOWING, follow_up_of="r-first")
    cited = {citation.source_id for citation in first.citations}
    assert len(cited) <= state.resolved.follow_up.sources <= len(first.sources)
    assert state.resolved.earlier_turns[-1].question == QUESTION
    assert state.resolved.follow_up.entry is not None
    offered = HitsEntry.model_validate_json(
        await world.content.get_text(DocumentRef(hash=state.resolved.follow_up.entry))
    )
    assert {"Routine Vacuuming", "The Autovacuum Daemon"} <= {hit.title for hit in offered.hits}
    assert all(hit.snippet and hit.rank for hit in offered.hits)
    await conducted(world, state)
    again = [source for source in state.sources.values() if source.provider == "earlier"]
    assert again
    ranks = {source.rank for source in again if source.sub_query_ids[0] == state.plan.sub_queries[0].id}
    others = {source.rank for source in state.sources.values() if source.provider != "earlier"}
    assert max(ranks) < min(others)
    assert state.citations
    report = await report_of(world, state)
    assert "r-first" in report
    assert "offered first" in report


async def test_agents_are_offered_the_earlier_sources_and_not_the_earlier_question(tmp_path: Path) -> None:
    """What the report says was offered first was offered, and read (X-22, S3-009)."""
    world = World(tmp_path)
    await conducted(world, await prepared(world, "r-first", query=QUESTION))
    state = await prepared(world, "r-second", query=FOLLOWING, strategy="orchestrator", follow_up_of="r-first")
    host = world.host()
    assert await Driver(ResearchRun(state, Inbox(), host), strategy_of("orchestrator")).conduct() is Outcome.COMPLETED
    again = [source for source in state.sources.values() if source.provider == "earlier"]
    assert again
    assert f"{len(again)} were read again" in await report_of(world, state)
    assert not any(QUESTION in request.model_dump_json() for request in host.agents)


async def test_a_direct_answer_offered_nothing(tmp_path: Path) -> None:
    """Nothing was searched, so the report claims no offer (S1-052)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        await conducted(world, await prepared(world, "r-first", query=QUESTION))
        fields = {"strategy": "reflective", "mode": "direct", "follow_up_of": "r-first"}
        state = await conducted(world, await prepared(world, "r-second", query="Thank you!", **fields))
        report = await report_of(world, state)
        await world.close()
    assert "hello to you, too" in report
    assert "offered first" not in report
