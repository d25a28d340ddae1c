"""Scoped runs in one process: agents of a toy strategy, driven by the real driver over real activities."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.vocabulary import AgentStatus, Outcome
from tests.fakes.world import World
from tests.toy.party import party_declared
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of

TASKS = [
    "How does the engine prevent transaction ID wraparound?",
    "How does vacuum freeze old rows?",
    "What locks does the engine take?",
]


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


async def test_a_run_is_made_of_what_its_agents_found(tmp_path: Path) -> None:
    """Three tasks, three agents, one report that cites what they read."""
    world = World(tmp_path)
    state = await begin(world, strategy="party", metadata={"tasks": TASKS})
    host = world.host()
    outcome = await Driver(ResearchRun(state, Inbox(), host), strategy_of("party")).conduct()
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert [record.status for record in state.agents] == [AgentStatus.DONE] * 3
    assert [request.resolved.query for request in host.agents] == TASKS
    assert state.findings
    assert state.citations
