"""Agents as child workflows on the real server: no host of a test passes on cancellations, closes or restarts as it does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from contracts import names
from contracts.outcome import ResearchStatus
from contracts.vocabulary import AgentStatus, Outcome
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from tests.toy.party import party_declared

pytestmark = pytest.mark.integration

TASKS = [QUESTION, "How does vacuum freeze old rows?", "What locks does the engine take?"]
REQUEST: dict[str, Any] = {"query": QUESTION, "corpus": "manual", "strategy": "party"}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


async def test_agents_are_child_workflows_and_the_report_is_made_of_what_they_found(
    client: Client, tmp_path: Path
) -> None:
    """Each agent is a workflow of its own with its task as its query; its run lists it."""
    async with running_workers(client, World(tmp_path)):
        handle = await start(client, REQUEST | {"metadata": {"tasks": TASKS}})
        result = await handle.result()
        shown = await handle.query(names.STATUS, result_type=ResearchStatus)
        agents = [client.get_workflow_handle(agent.workflow_id) for agent in shown.agents]
        told = [await agent.query(names.STATUS, result_type=ResearchStatus) for agent in agents]
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert [agent.status for agent in shown.agents] == [AgentStatus.DONE] * 3
    assert [one.query for one in told] == TASKS
    assert [one.strategy for one in told] == ["errand"] * 3
