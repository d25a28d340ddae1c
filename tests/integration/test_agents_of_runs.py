"""Agents as child workflows on the real server: no host of a test passes on cancellations, closes or restarts as it does."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle

from client.handle import ResearchClient
from contracts import names
from contracts.agents import TaskResult
from contracts.outcome import ResearchStatus
from contracts.vocabulary import AgentStatus, Outcome, RunStatus, StopReason
from providers.storage.content_archive import RecordArchive
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until
from tests.toy.party import party_declared
from workers.retention import Retention

pytestmark = pytest.mark.integration

TASKS = [QUESTION, "How does vacuum freeze old rows?", "What locks does the engine take?"]
REQUEST: dict[str, Any] = {"query": QUESTION, "corpus": "manual", "strategy": "party", "gates": {"think": "rules"}}
HEARD_WITHIN = 6.0
"""Seconds from a cancellation to the end of calls, which beat every 2.5 s."""
AGENTS = REQUEST | {"metadata": {"tasks": TASKS}}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


def at_work(status: ResearchStatus) -> bool:
    return [agent.status for agent in status.agents] == [AgentStatus.RUNNING] * 3


def agents_of(client: Client, status: ResearchStatus) -> list[WorkflowHandle[Any, TaskResult]]:
    return [client.get_workflow_handle(agent.workflow_id, result_type=TaskResult) for agent in status.agents]


async def slow_run(client: Client, api: MessagesApi, **more: Any) -> tuple[WorkflowHandle[Any, Any], ResearchStatus]:
    handle = await start(client, AGENTS | more)
    shown = await until(handle, at_work)
    while len(api.calls) < 3:
        await asyncio.sleep(0.05)
    return handle, shown


async def test_agents_are_child_workflows_which_go_with_their_run(client: Client, tmp_path: Path) -> None:
    """Each agent is a workflow of its own with its task as its query; its run lists it, the session store does not.

    The report is made of what they found; deleting the run deletes its history and theirs, and those of no
    other run (S3-021).
    """
    world = World(tmp_path)
    async with running_workers(client, world):
        handle, other = await start(client, AGENTS, id="r-gone"), await start(client, AGENTS, id="r-gone-not")
        result, _ = await asyncio.gather(handle.result(), other.result())
        shown = await handle.query(names.STATUS, result_type=ResearchStatus)
        asked = [await agent.query(names.STATUS, result_type=ResearchStatus) for agent in agents_of(client, shown)]
        described = [await agent.describe() for agent in agents_of(client, shown)]
        sessions = {session.research_id for session in await world.sessions.list()}
        retention = Retention(
            world.sessions, world.content, world.calls, client, RecordArchive(None, tmp_path), sole=True
        )
        listed = f'WorkflowType="{names.RESEARCH_AGENT}" AND WorkflowId STARTS_WITH "r-gone"'
        while len([run async for run in client.list_workflows(listed)]) < 6:
            await asyncio.sleep(0.1)
        assert (await retention.remove([handle.id])).histories == 1 + len(shown.agents)
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert [agent.status for agent in shown.agents] == [AgentStatus.DONE] * 3
    assert [agent.workflow_id for agent in shown.agents] == [f"{handle.id}/agent-{n}" for n in (1, 2, 3)]
    assert [one.query for one in asked] == TASKS
    assert [one.strategy for one in asked] == ["errand"] * 3
    assert [one.status for one in asked] == [RunStatus.COMPLETED] * 3
    assert [await one.static_summary() for one in described] == [f"agent-{n}: {TASKS[n - 1]}" for n in (1, 2, 3)]
    assert sessions == {handle.id, other.id}


@pytest.mark.soak
async def test_a_stop_reaches_the_agents_and_the_report_is_written_from_what_they_have(
    client: Client, tmp_path: Path
) -> None:
    """Asked, they say how far they are; they end at once with what they read, and no call follows (S3-033)."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle, shown = await slow_run(client, api)
            run = ResearchClient(client).handle(handle.id)
            # Who does not answer a query within its time is shown as the run knows it.
            asked = (await run.status()).agents
            while [agent.phase for agent in asked] != ["looking"] * 3:
                await asyncio.sleep(0.1)
                asked = (await run.status()).agents
            assert min(agent.counts.sources for agent in asked) > 0
            begun = time.monotonic()
            await handle.execute_update(names.STOP_AND_REPORT)
            result = await handle.result()
            took = time.monotonic() - begun
            after = await handle.query(names.STATUS, result_type=ResearchStatus)
            ended = [(await agent.describe()).status for agent in agents_of(client, shown)]
    assert result.stop_reason is StopReason.USER_STOPPED
    assert result.outcome is Outcome.PARTIAL, result
    assert result.counts.findings
    assert [agent.status for agent in after.agents] == [AgentStatus.CUT_OFF] * 3
    assert ended == [WorkflowExecutionStatus.COMPLETED] * 3
    assert [call.role for call in api.calls].count("analyzer") == 3
    assert took < 60  # the calls of a model that are under way would take ten minutes


async def test_a_cancelled_run_pays_for_nothing_more_and_leaves_no_agent_behind(client: Client, tmp_path: Path) -> None:
    """Calls hear of it with their next heartbeat, all agents are over, and the session is kept to go on from."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle, shown = await slow_run(client, api)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            calls = len(api.calls)
            async with asyncio.timeout(HEARD_WITHIN):
                while [call for call in api.calls if call.ended is None]:
                    await asyncio.sleep(0.05)
            assert len(api.calls) == calls
            ended = [(await agent.describe()).status for agent in agents_of(client, shown)]
            api.plan.by_role.clear()
            again = await start(client, AGENTS | {"continue_from": handle.id}, id=handle.id)
            result = await again.result()
            agents = (await again.query(names.STATUS, result_type=ResearchStatus)).agents
    assert WorkflowExecutionStatus.RUNNING not in ended
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert [agent.status for agent in agents] == [AgentStatus.DONE] * 3
    assert [agent.workflow_id for agent in agents] == [f"{handle.id}/agent-{n}/again-2" for n in (1, 2, 3)]


@pytest.mark.soak
async def test_an_agent_that_an_operator_ends_costs_its_own_branch(client: Client, tmp_path: Path) -> None:
    """Terminated, it brings nothing; cancelled, what it has; the run goes on with the others (S3-045)."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle, shown = await slow_run(client, api)
            first, second, third = agents_of(client, shown)
            await first.terminate("no more of this")
            await second.cancel()
            cut = await second.result()
            await until(handle, lambda status: [agent.status for agent in status.agents][1] is AgentStatus.DONE)
            await handle.execute_update(names.STOP_AND_REPORT)
            result = await handle.result()
            agents = (await handle.query(names.STATUS, result_type=ResearchStatus)).agents
            await third.result()
    assert [agent.status for agent in agents] == [AgentStatus.FAILED, AgentStatus.DONE, AgentStatus.CUT_OFF]
    assert agents[0].problem == "it failed: TerminatedError"
    assert cut.problem == "it was told to stop"
    assert cut.counts.sources
    assert result.outcome is Outcome.PARTIAL
    assert result.failed_branches == ["agent-1: it failed: TerminatedError"]
