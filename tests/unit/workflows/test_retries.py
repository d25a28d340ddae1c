"""Doing a phase again: its input changes, what it gives replaces what it gave, and no limit is passed twice."""

import asyncio

import pytest

from contracts.request import Gates
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    PlanInput,
    PlannerAnswer,
    ReflectInput,
    SubQuery,
    SupervisorAnswer,
)
from contracts.state import ResearchState
from contracts.vocabulary import Action, EngineKind, GapStatus, Phase, ThinkMode
from tests.fakes import states
from tests.fakes.random_world import RandomWorld
from workflows.driver import Driver
from workflows.phases.analysis import withdraw
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


class SecondThoughts(RandomWorld):
    """The supervisor is content with everything but the first analyses, whose gate passes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, trouble=0)
        self.issues: list[list[str]] = []
        self.under_way = self.most_under_way = 0

    async def plan_research(self, request: PlanInput) -> PlannerAnswer:
        queries = [SubQuery(query=f"question {number} of the plan", priority=1) for number in range(3)]
        return PlannerAnswer(research_brief="A brief.", sub_queries=queries, account=self.account(request))

    async def analyze_sources(self, request: AnalyzeInput) -> AnalyzerResult:
        self.issues.append([issue.message for issue in request.issues])
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return await super().analyze_sources(request)

    async def reflect_on_phase(self, request: ReflectInput) -> SupervisorAnswer:
        action = Action.RETRY if request.phase == Phase.ANALYSIS else Action.PROCEED
        return SupervisorAnswer(action=action, rationale="weigh both sides", account=self.account(request))


def beginning() -> ResearchState:
    limits = states.resolved().limits.model_copy(update={"max_iterations": 1})
    gates = Gates(think=ThinkMode.MODEL)
    made = states.state(resolved=states.resolved(limits=limits, gates=gates, engine=EngineKind.MODEL))
    made.clock_started_at = 1_795_262_400.0
    made.deadline_at = made.clock_started_at + 1e9
    return made


def conduct(world: RandomWorld, state: ResearchState) -> None:
    asyncio.run(Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct())


def wished(seed: int) -> tuple[SecondThoughts, ResearchState]:
    world, state = SecondThoughts(seed), beginning()
    conduct(world, state)
    return world, state


@pytest.mark.parametrize("seed", range(4))
def test_a_supervisor_who_wants_the_analysis_again_gets_another_one(seed: int) -> None:
    """Its reason is told to the analyzer, and the findings of the second analyses stand instead of the first."""
    world, state = wished(seed)
    first, second = [told for told in world.issues if not told], [told for told in world.issues if told]
    assert len(first) == len(second) > 0
    assert all(told == ["weigh both sides"] or told for told in second)
    again = [operation for operation in world.paid if operation.startswith("analyze") and "again-2" in operation]
    assert len(again) == len(second)
    by_query = {query.id: [one for one in state.findings if one.sub_query_id == query.id] for query in state.plan.nodes}
    assert all(len(found) <= 5 for found in by_query.values())
    assert {query.id: query.finding_count for query in state.plan.nodes} == {
        name: len(found) for name, found in by_query.items()
    }
    assert set(state.evidence) == {item for finding in state.findings for item in finding.evidence_ids}


def test_what_is_analyzed_again_opens_what_it_had_closed() -> None:
    """Open gaps of the first analysis are superseded; a gap that it had closed waits for the second one."""
    query = states.sub_query("a question", origin="gap:gap-closed")
    closed = states.gap("closed", id="gap-closed", status=GapStatus.ADDRESSED)
    mine = states.gap("mine", origin=f"sub_query:{query.id}")
    other = states.gap("other", origin="sub_query:another")
    made = states.state(plan=states.plan(query), gaps=[closed, mine, other], findings=[states.finding("x")])
    withdraw(made, [query])
    assert [gap.status for gap in made.gaps] == [GapStatus.OPEN, GapStatus.SUPERSEDED, GapStatus.OPEN]
    assert len(made.findings) == 1
