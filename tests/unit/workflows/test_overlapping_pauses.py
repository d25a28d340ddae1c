"""Pauses that run beside the next unit: fewer model calls in a row, and the same run whichever answer comes first."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.resolved import EffectiveGates, Hook
from contracts.roles import AnalyzeInput, PlanInput, PlannerAnswer, ReflectInput, SubQuery, SupervisorAnswer
from contracts.state import ResearchState, Unit
from contracts.strategies import declared_roles
from contracts.vocabulary import Action, EngineKind, Outcome, Phase, StopReason, ThinkMode
from tests.fakes import states
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.random_world import RandomWorld
from tests.fakes.world import model_world
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.calls import CallOptions
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

MODEL_ACTIVITIES = {role.activity for role in declared_roles()}
MOST_IN_A_ROW = 6


class CountingHost(InProcessHost):
    """Counts model calls in a row: one more than the longest row that was over when a call was scheduled."""

    longest = 0

    async def _run(self, activity: str, argument: Any, options: CallOptions) -> Any:
        mine = self.longest + (activity in MODEL_ACTIVITIES)
        answer = await super()._run(activity, argument, options)
        self.longest = max(self.longest, mine)
        return answer

    def hold(self, activity: str, held: str, until: str) -> None:
        """Let the answer to operation `held` come only after operation `until` was scheduled."""
        answer = self.implementations[activity]

        async def later(request: Any) -> Any:
            if request.operation == held:
                await self.wait_until(lambda: any(operation == until for _, operation in self.calls))
            return await answer(request)

        self.implementations[activity] = later


class PlannedWorld(RandomWorld):
    """Every plan is good, and the supervisor wants another one than the first."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, trouble=0)
        self.heard: list[list[str]] = []

    async def plan_research(self, request: PlanInput) -> PlannerAnswer:
        words = "again" if request.previous else "first"
        drafts = [SubQuery(query=f"question {number} of the {words} plan", priority=1) for number in range(3)]
        return PlannerAnswer(research_brief="A brief.", sub_queries=drafts, account=self.account(request))

    async def analyze_sources(self, request: AnalyzeInput) -> Any:
        self.heard.append([said.text for said in request.guidance])
        return await super().analyze_sources(request)

    async def reflect_on_phase(self, request: ReflectInput) -> SupervisorAnswer:
        action = Action.RETRY if request.phase == Phase.PLANNING else Action.PROCEED
        return SupervisorAnswer(action=action, guidance=f"after {request.phase}", account=self.account(request))


def beginning(**changes: object) -> ResearchState:
    limits = states.resolved().limits.model_copy(update={"max_iterations": 1})
    chosen = {"limits": limits, "gates": EffectiveGates(think=ThinkMode.MODEL), "engine": EngineKind.MODEL}
    made = states.state(resolved=states.resolved(**(chosen | changes)))
    made.clock_started_at = 1_795_262_400.0
    made.deadline_at = made.clock_started_at + 1e9
    return made


def delayed(answer: Callable[[Any], Awaitable[Any]], turns: int) -> Callable[[Any], Awaitable[Any]]:
    async def later(request: Any) -> Any:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await answer(request)

    return later


async def test_a_run_of_one_iteration_has_six_model_calls_in_a_row(tmp_path: Path) -> None:
    """Plan, reflections on plan and sources side by side, analyses, reflection, report, reflection."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, limits={"max_iterations": 1})
        host = CountingHost(world.host().implementations)
        host.hold("reflect_on_phase", "reflect/planning/1", until="reflect/gathering/1")
        async with asyncio.timeout(60):
            outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
        await world.close()
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert [operation for activity, operation in host.calls if activity == "reflect_on_phase"] == [
        f"reflect/{phase}/1" for phase in ("planning", "gathering", "analysis", "synthesis")
    ]
    assert host.longest == MOST_IN_A_ROW


@pytest.mark.parametrize("turns", [1, 200])
async def test_a_late_retry_is_honoured_whenever_it_comes(turns: int) -> None:
    """The plan is made again, and nothing of the first one is left, whether its gathering is over or not."""
    results = []
    for wait in (0, turns):
        world = PlannedWorld(7)
        host = world.host()
        host.implementations["reflect_on_phase"] = delayed(world.reflect_on_phase, wait)
        state = beginning()
        await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
        assert all("again" in query.text for query in state.plan.sub_queries)
        known = {query.id for query in state.plan.sub_queries}
        assert all(set(source.sub_query_ids) <= known for source in state.sources.values())
        assert "retry" in [item.action for item in state.decisions if item.phase == Phase.PLANNING]
        results.append(state)
    for name in ("findings", "gaps", "citations", "evidence", "sources", "plan", "degraded", "usage", "decisions"):
        assert getattr(results[0], name) == getattr(results[1], name), name


async def test_a_stop_does_not_wait_for_a_reflection_and_a_resumed_run_asks_the_same() -> None:
    """The open pause is in the state; its question is told again word for word, so the journal can answer it."""
    world = PlannedWorld(7)
    asked: list[str] = []

    async def silent(request: ReflectInput) -> SupervisorAnswer:
        asked.append(request.model_dump_json(exclude={"time_limit_seconds"}))
        await asyncio.Event().wait()
        raise AssertionError("never")

    state, inbox, host = beginning(), Inbox(), world.host()
    host.implementations["reflect_on_phase"] = silent
    work = asyncio.ensure_future(Driver(ResearchRun(state, inbox, host), SupervisorStrategy()).conduct())
    await host.wait_until(lambda: len(asked) == 2)
    inbox.interrupt(StopReason.USER_STOPPED)
    await work
    assert [opened.unit.name for opened in state.open_pauses] == ["planning", "gathering"]
    stored = ResearchState.unpack(state.pack())
    stored.hasty_analyses = []
    again = resume_state(stored, beginning().resolved, "2026-11-22", SupervisorStrategy().resume)
    again.guidance = []
    run = ResearchRun(again, Inbox(), host)
    run.steer("look at the appendix")
    driver = asyncio.ensure_future(Driver(run, SupervisorStrategy()).step())
    await host.wait_until(lambda: len(asked) == 4)
    driver.cancel()
    await asyncio.gather(driver, return_exceptions=True)
    assert asked[2:] == asked[:2]


@pytest.mark.parametrize(
    ("queries", "hook"),
    [(3, True), (1, False)],
    ids=["a hook", "a failed gate"],
)
def test_what_may_change_the_next_unit_is_waited_for(queries: int, hook: bool) -> None:
    """A hook speaks after the reflection, and a failed gate decides about a retry: gathering waits."""
    plan = states.plan(*(states.sub_query(f"a question long enough {number}") for number in range(queries)))
    chosen = Hook(name="ours", activity="our_hook", task_queue="ours") if hook else None
    state = beginning(hook=chosen)
    state.plan = plan
    run = ResearchRun(state, Inbox(), RandomWorld(1).host())
    assert SupervisorStrategy().evaluate(run, Unit(name=Phase.PLANNING)).meanwhile is None
    free = beginning()
    free.plan = states.plan(*(states.sub_query(f"a question long enough {number}") for number in range(3)))
    opened = SupervisorStrategy().evaluate(ResearchRun(free, Inbox(), RandomWorld(1).host()), Unit(name=Phase.PLANNING))
    assert opened.meanwhile is not None
