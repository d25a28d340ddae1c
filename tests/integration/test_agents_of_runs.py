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
from tests.fakes.web_world import Latencies, WebWorld
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until
from tests.integration.web_pools import over_the_web, web_workers
from tests.toy.party import party_declared
from workers.retention import Retention

pytestmark = pytest.mark.integration

TASKS = [QUESTION, "How does vacuum freeze old rows?", "What locks does the engine take?"]
REQUEST: dict[str, Any] = {"query": QUESTION, "corpus": "manual", "strategy": "party", "gates": {"think": "rules"}}
AGENTS = REQUEST | {"metadata": {"tasks": TASKS}}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


def at_work(status: ResearchStatus) -> bool:
    """Whether all three are at work."""
    return [agent.status for agent in status.agents] == [AgentStatus.RUNNING] * 3


def agents_of(client: Client, status: ResearchStatus) -> list[WorkflowHandle[Any, TaskResult]]:
    """Handles of the agents that a status lists."""
    return [client.get_workflow_handle(agent.workflow_id, result_type=TaskResult) for agent in status.agents]


async def slow_run(client: Client, api: MessagesApi, **more: Any) -> tuple[WorkflowHandle[Any, Any], ResearchStatus]:
    """A run whose three agents wait for the model."""
    handle = await start(client, AGENTS | more)
    shown = await until(handle, at_work)
    while len(api.calls) < 3:
        await asyncio.sleep(0.05)
    return handle, shown


async def test_agents_are_child_workflows_and_the_report_is_made_of_what_they_found(
    client: Client, tmp_path: Path
) -> None:
    """Each agent is a workflow of its own with its task as its query; its run lists it, the session store does not."""
    world = World(tmp_path)
    async with running_workers(client, world):
        handle = await start(client, AGENTS)
        result = await handle.result()
        shown = await handle.query(names.STATUS, result_type=ResearchStatus)
        told = [await agent.query(names.STATUS, result_type=ResearchStatus) for agent in agents_of(client, shown)]
        described = [await agent.describe() for agent in agents_of(client, shown)]
        sessions = [kept.research_id for kept in await world.sessions.list()]
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert [agent.status for agent in shown.agents] == [AgentStatus.DONE] * 3
    assert [agent.workflow_id for agent in shown.agents] == [f"{handle.id}/agent-{n}" for n in (1, 2, 3)]
    assert [one.query for one in told] == TASKS
    assert [one.strategy for one in told] == ["errand"] * 3
    assert [one.status for one in told] == [RunStatus.COMPLETED] * 3
    assert [await one.static_summary() for one in described] == [f"agent-{n}: {TASKS[n - 1]}" for n in (1, 2, 3)]
    assert sessions == [handle.id]


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
    assert took < 15


async def test_a_cancelled_run_pays_for_nothing_more_and_leaves_no_agent_behind(client: Client, tmp_path: Path) -> None:
    """A second later no call is under way, all agents are over, and the session is kept to go on from."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle, shown = await slow_run(client, api)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            calls = len(api.calls)
            await asyncio.sleep(1)
            assert len(api.calls) == calls
            assert not [call for call in api.calls if call.ended is None]
            ended = [(await agent.describe()).status for agent in agents_of(client, shown)]
            api.plan.by_role.clear()
            again = await start(client, AGENTS | {"continue_from": handle.id}, id=handle.id)
            result = await again.result()
            agents = (await again.query(names.STATUS, result_type=ResearchStatus)).agents
    assert WorkflowExecutionStatus.RUNNING not in ended
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert [agent.status for agent in agents] == [AgentStatus.DONE] * 3
    assert [agent.workflow_id for agent in agents] == [f"{handle.id}/agent-{n}/again-2" for n in (1, 2, 3)]


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


async def test_nobody_can_start_an_agent_with_what_makes_no_sense(client: Client, tmp_path: Path) -> None:
    """It ends at once with what is wrong; a scoped strategy is none that a request may name."""
    async with running_workers(client, World(tmp_path)):
        for argument in ({"task": {"id": "AGENT 1"}}, [], None, "agent"):
            handle = await client.start_workflow(
                names.RESEARCH_AGENT, argument, id=f"alone-{time.time_ns()}", task_queue=names.WORKFLOWS_QUEUE
            )
            with pytest.raises(WorkflowFailureError) as refused:
                await asyncio.wait_for(handle.result(), 20)
            assert "task" in str(refused.value.cause) or "request" in str(refused.value.cause)
        refused_run = await start(client, REQUEST | {"strategy": "errand"})
        with pytest.raises(WorkflowFailureError) as unknown:
            await refused_run.result()
    assert "strategy: unknown" in str(unknown.value.cause)


async def test_agents_side_by_side_let_nothing_leave_twice(client: Client, tmp_path: Path) -> None:
    """Five agents, two of them with one question: each query and each page is asked for once (S3-050, S3-059)."""
    tasks = [TASKS[0], TASKS[0], TASKS[1], TASKS[2], TASKS[0]]
    async with WebWorld(latencies=Latencies(0.1)) as world, web_workers(client, tmp_path, world):
        request = over_the_web(strategy="party", metadata={"tasks": tasks}, limits={"max_sources": 10})
        request["search"]["source_types"] = ["web"]
        handle = await start(client, request)
        result = await handle.result()
        shown = await handle.query(names.STATUS, result_type=ResearchStatus)
    pages = [place for place in world.asked if not place.startswith("search") and "robots.txt" not in place]
    searches = [place for place in world.asked if place.startswith("search")]
    assert result.counts.findings
    assert [agent.counts.sources > 0 for agent in shown.agents] == [True] * 5
    assert sorted(searches) == sorted({f"search {task}" for task in tasks})
    assert len(pages) == len(set(pages)) == result.counts.sources
    assert result.usage.reads > len(pages)
    assert result.usage.reads - result.usage.cached_reads == len(pages)
    assert result.usage.searches - result.usage.cached_searches == len(searches)


async def test_what_agents_leave_on_the_server_goes_with_their_run(client: Client, tmp_path: Path) -> None:
    """Deleting a run deletes the histories of its agents, and those of no other run."""
    world = World(tmp_path)
    async with running_workers(client, world):
        gone, kept = await start(client, AGENTS, id="r-gone"), await start(client, AGENTS, id="r-gone-not")
        await asyncio.gather(gone.result(), kept.result())
        shown = [await handle.query(names.STATUS, result_type=ResearchStatus) for handle in (gone, kept)]
        archive = RecordArchive(None, tmp_path)
        retention = Retention(world.sessions, world.content, world.calls, client, archive, sole=True)
        listed = f'WorkflowType="{names.RESEARCH_AGENT}" AND WorkflowId STARTS_WITH "r-gone"'
        while len([run async for run in client.list_workflows(listed)]) < 6:
            await asyncio.sleep(0.1)
        removed = await retention.remove(["r-gone"])
        assert removed.histories == 4
        left = {agent.workflow_id for agent in shown[1].agents}
        while {run.id async for run in client.list_workflows(listed)} != left:
            await asyncio.sleep(0.1)
