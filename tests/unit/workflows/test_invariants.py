"""Invariants of the domain model, over whole runs in worlds drawn at random."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.request import Gates
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, GatePolicy, NodeStatus, Outcome, Phase, SourceStatus, ThinkMode
from tests.fakes import states
from tests.fakes.pauses import pause_after
from tests.fakes.random_world import RandomWorld
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

WORLDS = st.builds(RandomWorld, st.integers(0, 10**9), trouble=st.sampled_from([0.0, 0.2, 0.6]))
THINK = st.sampled_from([ThinkMode.MODEL, ThinkMode.RULES, ThinkMode.OFF])
POLICY = st.sampled_from(list(GatePolicy))
ITERATIONS = st.integers(1, 4)
BOUNDED = settings(max_examples=25, deadline=None)


def beginning(think_mode: ThinkMode, policy: GatePolicy, iterations: int) -> ResearchState:
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
    """Citation→source, evidence→source, finding→evidence resolve; budgets and widths hold.

    Also: each source has an owner, and unknown ids change nothing
    (invariants 3, 4, 6, 7, 14, S0-049, S0-052, S0-058, S0-175).
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


@BOUNDED
@given(WORLDS, THINK, POLICY, ITERATIONS)
def test_decide_iteration_follows_synthesis_alone(world, think_mode, policy, iterations) -> None:
    """The decision is taken after synthesis only, the supervisor does no research, the gatherer asks no model
    (S0-002, S0-004, S0-027, S0-085, S0-092, S0-093).
    """
    state = beginning(think_mode, policy, iterations)
    conduct(world, state)
    for decision in state.decisions:
        if decision.action == "evaluate_phase" and decision.inputs["phase"] == "refinement":
            assert decision.outputs.keys() == {"quality_ok", "unaddressed_gaps", "should_iterate"}
        if decision.action == "decide_iteration":
            assert decision.phase == Phase.SYNTHESIS
            assert decision.outputs["next_phase"] in ("refinement", "completed")
        if decision.agent == "supervisor":
            assert not decision.action.startswith("execute_")
    assert not any(operation.startswith(("search", "read")) for operation in world.paid)
    assert state.result.outcome in set(Outcome)
