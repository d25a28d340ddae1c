"""Sessions: there from the beginning, kept by every end, and nobody else's."""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from contracts import names
from contracts.names import POOLS
from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


async def failure_of(handle: WorkflowHandle[object, ResearchResult]) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


async def test_a_terminated_run_finds_its_paid_answers(client: Client, tmp_path: Path) -> None:
    """A run that is terminated in its first iteration has a session; under its id nothing answered is paid again (S0-131, C0-20)."""
    async with MessagesApi(plan=["good", "good", *["slow"] * 4]) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST, id="r-terminated")
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.terminate("an operator")
            state = ResearchState.model_validate_json(await world.sessions.load("r-terminated") or "")
            answered = [call.role for call in api.calls if call.delivered]
            api.plan.sequence = ()
            result = await (await start(client, REQUEST, id="r-terminated")).result()
    assert state.work.resolved is not None
    assert answered == ["planner", "analyzer"]
    assert result.outcome is Outcome.COMPLETED
    delivered = [call.role for call in api.calls if call.delivered]
    assert delivered.count("planner") == 1
    assert delivered.count("analyzer") == 1


async def test_a_document_of_another_tenant_is_not_served(client: Client, tmp_path: Path) -> None:
    """Through the workflow for other clients: a tenant reads its own report, another one is told that there is none."""
    async with running_workers(client, World(tmp_path)):
        handle = await start(client, {**REQUEST, "tenant": "acme"})
        result = await handle.result()

        async def document(name: str, **fields: str) -> dict[str, Any]:
            asked = {"research_id": handle.id, "name": name, **fields}
            identity = f"document-{uuid.uuid4().hex}"
            piece: dict[str, Any] = await client.execute_workflow(
                names.RESEARCH_DOCUMENT, asked, id=identity, task_queue=names.WORKFLOWS_QUEUE
            )
            return piece

        assert (await document("report.md", tenant="acme"))["text"] == result.report
        with pytest.raises(WorkflowFailureError) as failed:
            await document("report.md", tenant="other")
        assert isinstance(failed.value.cause, ActivityError)
        assert "there is no such session" in str(failed.value.cause.cause)


async def test_a_cancel_while_the_end_is_saved_loses_nothing(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine calls cancelled is stored as cancelled, and can go on (S0-123)."""
    world = World(tmp_path)
    save = world.sessions.save
    closing = asyncio.Event()

    async def slow(research_id: str, state_json: str, *, closed: bool) -> None:
        if json.loads(state_json).get("result") is not None and not closing.is_set():
            closing.set()
            await asyncio.Event().wait()
        await save(research_id, state_json, closed=closed)

    monkeypatch.setattr(world.sessions, "save", slow)
    async with running_workers(client, world):
        handle = await start(client, REQUEST, id="r-late")
        await asyncio.wait_for(closing.wait(), 60)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        description = await handle.describe()
        state = ResearchState.model_validate_json(await world.sessions.load("r-late") or "")
        result = await (await start(client, REQUEST | {"continue_from": "r-late"}, id="r-late")).result()
    assert isinstance(failed.value.cause, CancelledError)
    assert description.status is WorkflowExecutionStatus.CANCELED
    assert state.work.status is RunStatus.CANCELLED
    assert result.outcome is Outcome.COMPLETED


async def test_a_run_that_cannot_begin_ends_at_its_deadline(client: Client, tmp_path: Path) -> None:
    """The deadline holds from the first moment; the end says which workers are missing."""
    async with running_workers(client, World(tmp_path), tuple(pool for pool in POOLS if pool != "records")):
        failure = await failure_of(await start(client, REQUEST | {"limits": {"deadline_seconds": 1}}))
    assert "pool records" in failure.message
    assert ResearchResult.model_validate(failure.details[0]).outcome is Outcome.FAILED
