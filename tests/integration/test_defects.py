"""Defects of the product in workflow code: a run ends with its session kept, or waits for a good deploy, and never freezes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from contracts import failures, names
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes.failing_strategy import FAILS, ReorderedStrategy, failing_strategy
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import BUILD_ID, QUESTION, start, until
from workers.pools import set_deadlock_timeout
from workflows.registry import WORKFLOWS

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual"}
LOST_TASK = timedelta(seconds=3)
"""After that a workflow task is given to another worker; the server's default is 10 s."""


async def test_an_unforeseen_error_ends_the_run_and_keeps_its_session(client: Client, tmp_path: Path) -> None:
    """An exception that no code expects fails the run by type and place, without its words; resume goes on."""
    world = World(tmp_path)
    async with AsyncExitStack() as stack:
        request = {**REQUEST, "strategy": stack.enter_context(failing_strategy())}
        await stack.enter_async_context(running_workers(client, world))
        handle = await start(client, {**request, "limits": {"max_parallel": FAILS}}, id="r-defect")
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        stored = ResearchState.model_validate_json(await world.sessions.load("r-defect") or "")
        again = await (
            await start(client, {**request, "continue_from": "r-defect", "limits": {"max_parallel": 3}}, id="r-defect")
        ).result()
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == failures.RESEARCH_FAILED
    assert "KeyError at tests/fakes/failing_strategy.py:" in cause.message
    assert "words of a page" not in cause.message
    assert stored.work.status is RunStatus.FAILED
    (defect,) = stored.work.defects
    assert defect.place in defect.frames
    assert any(frame.startswith("workflows/driver.py:") for frame in defect.frames)
    assert stored.evidence.readable_sources()
    assert again.outcome is Outcome.COMPLETED


@asynccontextmanager
async def _bad_deploy(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A workflow worker whose code schedules other calls than those in the histories."""
    monkeypatch.setattr("workflows.deep_research.load_strategy", lambda _: ReorderedStrategy())
    worker = Worker(
        client,
        task_queue=names.WORKFLOWS_QUEUE,
        workflows=list(WORKFLOWS),
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=0,
        build_id=BUILD_ID,
    )
    set_deadlock_timeout(worker)
    async with worker:
        yield
    monkeypatch.undo()


async def test_a_bad_deploy_blocks_a_run_and_a_good_one_frees_it(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A non-determinism error fails no run: it waits, and goes on as soon as workers have the right code again."""
    world = World(tmp_path)
    async with running_workers(client, world, ("workflows", "models", "records")):
        handle = await start(client, REQUEST, task_timeout=LOST_TASK)
        await until(handle, lambda status: status.phase == "gathering")
    async with _bad_deploy(client, monkeypatch):
        await handle.signal("wake-up")
        failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
        while failed not in [event.event_type async for event in handle.fetch_history_events()]:
            await asyncio.sleep(0.1)
        assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    async with running_workers(client, World(tmp_path)):
        result = await handle.result()
    assert result.outcome is Outcome.COMPLETED
