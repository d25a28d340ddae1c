"""The strategy `orchestrator`, driven by the real driver over real activities, without a server."""

from pathlib import Path
from typing import Any

from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Outcome
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin, report_of
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.orchestrator_strategy import OrchestratorStrategy
from workflows.strategies.orchestrator.task_nodes import steps_of, tasks_of


async def conduct(world: World, **fields: Any) -> tuple[ResearchState, InProcessHost]:
    """A whole run: its state and its host."""
    state = await begin(world, strategy="orchestrator", **fields)
    host = world.host()
    await Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy()).conduct()
    return state, host


async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """A plan, an agent for each step, and a report from what all of them found (S3-001, S3-005, S3-008)."""
    world = World(tmp_path)
    state, host = await conduct(world)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.citations
    assert {"outliner", "orchestrator", "agent"} <= set(state.engine_by_role)
    steps = steps_of(state.plan)
    assert 1 <= len(steps) <= 6
    assert {step.status for step in steps} == {NodeStatus.COMPLETED}
    assert len(tasks_of(state.plan)) == len(steps) == len(host.agents)
    assert "strategy orchestrator" in await report_of(world, state)


async def with_model(folder: Path, **fields: Any) -> tuple[ResearchState, InProcessHost, MessagesApi, World]:
    """The same with a model."""
    async with MessagesApi() as api:
        world = model_world(folder, api.base_url)
        state, host = await conduct(world, **fields)
        await world.close()
    return state, host, api, world


async def test_a_model_directs_agents_that_search_read_and_report(tmp_path: Path) -> None:
    """Control tools alone for the orchestrator, research tools for its agents; a thought in between (S3-012, S3-016)."""
    state, host, api, _ = await with_model(tmp_path)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert state.citations
    assert state.degraded == []
    assert len(host.agents) == 3
