"""The strategy `orchestrator`, driven by the real driver over real activities, without a server."""

from pathlib import Path
from typing import Any

from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Outcome
from tests.fakes.host import InProcessHost
from tests.fakes.world import World
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
