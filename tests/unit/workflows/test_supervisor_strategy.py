"""The strategy `supervisor`, driven by the real engine loop over real activities, without a server."""

from pathlib import Path

from contracts.messages import PrepareRequest, SearchRequest, SearchResponse
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus, StopReason
from providers.errors import Unavailable
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

QUESTION = "How does the engine prevent transaction ID wraparound?"


async def begin(world: World, **fields: object) -> ResearchState:
    request = ResearchRequest.model_validate({"query": QUESTION, "corpus": "manual", **fields})
    host = world.host()
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id="r-unit", request_json=request.model_dump_json())
    )
    state = ResearchState(
        resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat()
    )
    state.clock_started_at = host.now().timestamp()
    state.deadline_at = state.clock_started_at + prepared.resolved.limits.deadline_seconds
    return state


async def report_of(world: World, state: ResearchState) -> str:
    return await world.content.get_text(state.result.files.markdown)


async def test_a_run_answers_from_the_documents(tmp_path: Path) -> None:
    """Plan, gather, analyze, synthesize: a completed run with citations that resolve (S0-008, S0-011, S0-016, S0-022)."""
    world = World(tmp_path)
    state = await begin(world)
    assert (state.status, state.phase, state.iteration) == (RunStatus.CREATED, None, 1)
    run = ResearchRun(state, Inbox(), world.host())
    outcome = await Driver(run, SupervisorStrategy()).conduct()
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.status is RunStatus.COMPLETED
    assert state.citations
    report = await report_of(world, state)
    assert "two\nbillion transactions" in report or "two billion transactions" in report.replace("\n> ", " ")
    for item in state.evidence.values():
        text = await world.content.get_text(state.sources[item.source_id].text)
        assert text[item.start : item.end].strip()


async def test_every_phase_is_evaluated_and_logged(tmp_path: Path) -> None:
    """Each phase has a dispatch, an evaluation and a decision, in order (S0-080, S0-083 to S0-091, S0-093, S0-183)."""
    world = World(tmp_path)
    state = await begin(world)
    await Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct()
    evaluated = [item.inputs["phase"] for item in state.decisions if item.action == "evaluate_phase"]
    assert evaluated[:4] == ["planning", "gathering", "analysis", "synthesis"]
    actions = [item.action for item in state.decisions]
    for action in (
        "execute_planning",
        "execute_gathering",
        "execute_analysis",
        "execute_synthesis",
        "decide_iteration",
    ):
        assert action in actions
    assert [item.seq for item in state.decisions] == list(range(1, len(state.decisions) + 1))
    assert all(item.timestamp for item in state.decisions)
    figures = {item.inputs["phase"]: item.outputs for item in state.decisions if item.action == "evaluate_phase"}
    high = sum(finding.confidence.value in ("high", "confirmed") for finding in state.findings)
    expected = {
        "planning": {"sub_query_count": len(state.plan.sub_queries), "has_research_brief": True},
        "gathering": {"source_count": len(state.readable_sources())},
        "analysis": {"finding_count": len(state.findings), "high_confidence_count": high},
        "synthesis": {"has_report": True, "report_length": state.draft.characters},
    }
    for phase, outputs in expected.items():
        assert (outputs | {"quality_ok": figures[phase]["quality_ok"]}).items() <= figures[phase].items()


async def test_an_outage_of_the_search_is_no_empty_answer(tmp_path: Path) -> None:
    """The run goes on without sources, claims nothing, cites nothing and fails as an outage (S0-097, C0-13)."""
    world = World(tmp_path)

    async def down(request: SearchRequest) -> SearchResponse:
        raise Unavailable("no answer")

    world.corpus.search = down
    state = await begin(world)
    host = world.host()
    outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
    assert outcome is Outcome.FAILED
    assert state.result.stop_reason is StopReason.PROVIDER_OUTAGE
    assert state.citations == []
    assert all(query.error for query in state.plan.sub_queries)
