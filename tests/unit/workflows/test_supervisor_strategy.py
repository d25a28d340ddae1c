"""The strategy `supervisor`, driven by the real engine loop: over real activities, and in worlds drawn at random."""

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.messages import PrepareRequest
from contracts.request import Gates, ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, GatePolicy, JudgeMode, NodeStatus, Outcome, Phase, RunStatus, SourceStatus
from tests.fakes import states
from tests.fakes.pauses import pause_after
from tests.fakes.random_world import RandomWorld
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

QUESTION = "How does the engine prevent transaction ID wraparound?"


async def begin(world: World, research_id: str = "r-unit", **fields: object) -> ResearchState:
    """The state of a run that has done nothing yet."""
    request = ResearchRequest.model_validate({"query": QUESTION, "corpus": "manual", **fields})
    host = world.host()
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id=research_id, request_json=request.model_dump_json())
    )
    state = ResearchState(
        resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat()
    )
    state.note_entry(prepared.resolved_entry)
    state.clock_started_at = host.now().timestamp()
    state.deadline_at = state.clock_started_at + prepared.resolved.limits.deadline_seconds
    return state


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
    report = await world.content.get_text(state.result.files.markdown)
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
    actions = {item.action for item in state.decisions}
    assert {"decide_iteration", *(f"execute_{phase}" for phase in evaluated[:4])} <= actions
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


WORLDS = st.builds(RandomWorld, st.integers(0, 10**9), trouble=st.sampled_from([0.0, 0.2, 0.6]))
THINK = st.sampled_from([JudgeMode.MODEL, JudgeMode.RULES, JudgeMode.OFF])
POLICY = st.sampled_from(list(GatePolicy))
ITERATIONS = st.integers(1, 4)
BOUNDED = settings(max_examples=25, deadline=None)


def beginning(think_mode: JudgeMode, policy: GatePolicy, iterations: int) -> ResearchState:
    limits = states.resolved().limits.model_copy(
        update={"max_iterations": iterations, "max_sources": 8, "max_new_sources": 4, "max_parallel": 2}
    )
    gates = Gates(policy=policy, think=think_mode)
    made = states.state(resolved=states.resolved(limits=limits, gates=gates, engine=EngineKind.MODEL))
    made.clock_started_at = 1_795_262_400.0
    made.deadline_at = made.clock_started_at + 1e9
    return made


def conduct(world: RandomWorld, state: ResearchState) -> Outcome:
    return asyncio.run(Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct())


@BOUNDED
@given(WORLDS, THINK, POLICY, ITERATIONS)
def test_whatever_the_world_answers_every_reference_resolves(world, think_mode, policy, iterations) -> None:
    """Citation→source, evidence→source, finding→evidence resolve; budgets and widths hold; each source has an owner;
    the decision is taken after synthesis only, the supervisor does no research, the gatherer asks no model
    (invariants 3, 4, 6, 7, 14, S0-002, S0-004, S0-027, S0-049, S0-052, S0-058, S0-085, S0-092, S0-093, S0-175).
    """
    state = beginning(think_mode, policy, iterations)
    conduct(world, state)
    assert all(item.source_id in state.sources for item in state.evidence.values())
    for finding in state.findings:
        assert set(finding.evidence_ids) <= set(state.evidence)
        assert set(finding.source_ids) <= set(state.sources)
    numbers = [citation.number for citation in state.citations]
    assert len(set(numbers)) == len(numbers)
    assert len({citation.source_id for citation in state.citations}) == len(numbers)
    assert world.most_searching <= 2
    assert len(state.readable_sources()) <= 8
    assert sum(event.type == "run.finished" for event in state.events) <= 1
    queries = {query.id: query for query in state.plan.sub_queries}
    assert all(source.sub_query_ids[0] in queries for source in state.sources.values())
    read = sum(source.status is SourceStatus.FULL for source in state.sources.values())
    assert sum(query.new_source_count for query in queries.values()) == read
    ended = (NodeStatus.COMPLETED, NodeStatus.FAILED)
    assert all(query.status in ended for query in queries.values() if query.iteration < state.iteration)
    for decision in state.decisions:
        if decision.action == "evaluate_phase" and decision.inputs["phase"] == "refinement":
            assert decision.outputs.keys() == {"quality_ok", "unaddressed_gaps", "should_iterate"}
        if decision.action == "decide_iteration":
            assert decision.phase == Phase.SYNTHESIS
            assert decision.outputs["next_phase"] in ("refinement", "completed")
        if decision.agent == "supervisor":
            assert not decision.action.startswith("execute_")
    assert not any(operation.startswith(("search", "read")) for operation in world.paid)


@BOUNDED
@given(WORLDS, THINK, POLICY, ITERATIONS)
def test_iterations_rise_and_sources_never_fall(world, think_mode, policy, iterations) -> None:
    """Unit by unit: the iteration rises by one up to its limit, nothing known is lost (invariants 1, 2, S0-023 to S0-026)."""

    async def watch() -> None:
        run = ResearchRun(beginning(think_mode, policy, iterations), Inbox(), world.host())
        seen, sources, findings, syntheses = 1, set(), set(), 0
        for _ in range(200):
            replaces = run.retries(Phase.ANALYSIS)
            step = await SupervisorStrategy().advance(run)
            if isinstance(step, Finished):
                break
            await pause_after(run, step.name, can_change=step.can_change)
            state = run.state
            assert state.iteration in (seen, seen + 1)
            assert state.iteration <= iterations
            assert sources <= set(state.sources)
            assert replaces or findings <= {finding.id for finding in state.findings}
            seen, sources = state.iteration, set(state.sources)
            findings = {finding.id for finding in state.findings}
            syntheses += step.name == Phase.SYNTHESIS
        else:
            raise AssertionError("the run never ends")
        assert syntheses <= 2 * iterations

    asyncio.run(watch())
