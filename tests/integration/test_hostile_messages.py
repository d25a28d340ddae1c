"""What clients and hooks send that is not what was declared: refused or noted, and the run goes on."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Worker

from activities.configuration import ResearchConfiguration
from contracts import failures, names
from contracts.resolved import Hook
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}
BINARY = b"\xff\x00 no text"


async def test_words_that_are_none_are_refused(client: Client, tmp_path: Path) -> None:
    """Bytes, numbers and lists in place of words are refused before they come into the run, which completes (S0-081)."""
    async with MessagesApi(latency=0.3) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.phase is not None)
            for words in (BINARY, 5, ["look"], None):
                with pytest.raises(WorkflowUpdateFailedError):
                    await handle.execute_update(names.STEER, words)
            result = await handle.result()
    assert result.outcome is Outcome.COMPLETED


async def test_a_hook_that_answers_anything_else_is_noted(client: Client, tmp_path: Path) -> None:
    """Hooks are written by others, in other languages: what is neither text nor null is noted, a flood of words is cut,
    and the run goes on (S0-172).
    """
    answers: list[Any] = [{"a": 1}, BINARY, "look here " * 100_000]

    @activity.defn(name="odd")
    async def odd(state: dict[str, Any], prompt: str) -> Any:
        assert state["phase"]
        assert prompt
        return answers.pop(0) if answers else None

    hook = Hook(name="odd", activity="odd", task_queue="odd")
    configuration = ResearchConfiguration(hooks={hook.name: hook}, product_version="0.1.0")
    request = REQUEST | {"gates": {"hook": hook.name}}
    async with running_workers(client, World(tmp_path, configuration=configuration)):
        async with Worker(client, task_queue=hook.task_queue, activities=[odd]):
            handle = await start(client, request)
            result = await handle.result()
            session = await handle.query(names.SESSION)
    assert result.report
    assert any("neither text nor null" in note for note in result.degraded)
    assert [len(item["text"]) <= 2_000 for item in session["guidance"] if item["origin"] == "hook"] == [True]


async def test_a_document_that_nobody_can_mean_is_refused(client: Client, tmp_path: Path) -> None:
    """The workflow for other clients ends at once with what is wrong with its input, and never hangs."""
    async with running_workers(client, World(tmp_path)):
        for argument in ({}, BINARY, None, {"research_id": 5, "name": []}):
            with pytest.raises(WorkflowFailureError) as failed:
                await client.execute_workflow(
                    names.RESEARCH_DOCUMENT, argument, id="document-nobody", task_queue=names.WORKFLOWS_QUEUE
                )
            assert isinstance(failed.value.cause, ApplicationError)
            assert failed.value.cause.type == failures.INVALID_REQUEST


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
        for name in ("report.md", "session.json"):
            with pytest.raises(WorkflowFailureError) as failed:
                await document(name, tenant="other")
            assert isinstance(failed.value.cause, ActivityError)
            assert isinstance(failed.value.cause.cause, ApplicationError)
            assert failed.value.cause.cause.message == "there is no such session"
        refused = await start(client, {**REQUEST, "tenant": "other"}, id=handle.id)
        with pytest.raises(WorkflowFailureError) as ended:
            await refused.result()
        assert f"the id {handle.id} cannot be used" in str(ended.value.cause)
        assert (await document("report.md", tenant="acme"))["text"] == result.report
