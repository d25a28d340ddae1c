"""Everything that a client can start by its name: how large its argument may be, its deadline, what malformed input gets."""

import asyncio
import json
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from contracts import failures, names
from contracts.notices import NOTICE_SECONDS
from contracts.parse_request import MAX_REQUEST_BYTES
from contracts.vocabulary import StopReason
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from workflows.registry import ENTRY_SECONDS, MAX_DOCUMENT_REQUEST_BYTES, MAX_NOTICE_BYTES, MAX_PREVIEW_BYTES, WORKFLOWS
from workflows.run.host import MAX_ARGUMENT_BYTES

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Entry:
    """A workflow that a client can start."""

    max_bytes: int | None
    """Size of its argument; None for a workflow that takes none, and drops any."""
    malformed: Any
    line: str
    """Beginning of the message for the malformed argument."""
    failure: str = failures.INVALID_REQUEST
    valid: Any = None
    """An argument with which its one activity is scheduled."""
    seconds: float | None = None
    """Time of that activity with all its attempts; None if the limits of the run set its times."""


PREVIEW = {"research_id": "pv", "request_json": "x"}
NOTICE = {"research_id": "r-1", "kind": "ended", "status": "completed", "occurred_at": "2026-11-29"}
ENTRIES = {
    names.DEEP_RESEARCH: Entry(MAX_REQUEST_BYTES, "x", "request: expected", StopReason.INVALID_INPUT.value),
    names.DEEP_RESEARCH_PLAN: Entry(MAX_REQUEST_BYTES, "x", "request: expected"),
    names.RESEARCH_REFRESH: Entry(MAX_REQUEST_BYTES, "x", "request: expected"),
    names.RESEARCH_AGENT: Entry(MAX_ARGUMENT_BYTES, {"task": 3}, "task"),
    names.RESEARCH_DOCUMENT: Entry(
        MAX_DOCUMENT_REQUEST_BYTES,
        {"research_id": "../x", "name": "report.md"},
        "research_id: must be",
        valid={"research_id": "r-1", "name": "report.md"},
        seconds=ENTRY_SECONDS,
    ),
    names.RESEARCH_PREVIEW: Entry(
        MAX_PREVIEW_BYTES,
        PREVIEW,
        "request: ",
        valid={"research_id": "r-1", "request_json": '{"query": "x"}'},
        seconds=ENTRY_SECONDS,
    ),
    names.RESEARCH_NOTICE: Entry(
        MAX_NOTICE_BYTES,
        NOTICE | {"research_id": "../x"},
        "research_id: must be",
        valid=NOTICE,
        seconds=NOTICE_SECONDS,
    ),
    names.RESEARCH_METADATA: Entry(None, None, "", seconds=ENTRY_SECONDS),
}
LARGE_PREVIEW = {"research_id": "pv", "request_json": json.dumps({"query": "x", "metadata": {"a": "b" * 1_500_000}})}


async def failure_of(client: Client, name: str, argument: Any) -> ApplicationError:
    handle = await client.start_workflow(
        name, argument, id=f"r-{uuid.uuid4().hex[:8]}", task_queue=names.WORKFLOWS_QUEUE
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(handle.result(), 60)
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


def test_the_table_names_every_workflow() -> None:
    """A new workflow cannot be registered without a limit, a deadline and an answer to malformed input."""
    defined = [workflow._Definition.must_from_class(kind).name for kind in WORKFLOWS]
    assert {name for name in defined if name} == set(ENTRIES)
    assert None in defined, "any other name"


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.max_bytes])
async def test_malformed_input_ends_at_once(client: Client, tmp_path: Path, name: str) -> None:
    """No activity is started for it and nothing is tried again; the failure names the field."""
    entry = ENTRIES[name]
    async with running_workers(client, World(tmp_path), ("workflows",)):
        failure = await failure_of(client, name, entry.malformed)
    assert failure.type == entry.failure
    assert failure.message.startswith(entry.line)


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.max_bytes])
async def test_a_large_argument_is_not_parsed(client: Client, tmp_path: Path, name: str) -> None:
    """One byte more than the limit is refused by its size, before its fields are looked at."""
    entry = ENTRIES[name]
    async with running_workers(client, World(tmp_path), ("workflows",)):
        failure = await failure_of(client, name, "x" * (entry.max_bytes or 0))
    assert failure.message == f"request: larger than {entry.max_bytes} bytes"


async def test_a_preview_has_the_limits_of_a_run(client: Client, tmp_path: Path) -> None:
    """What no run may carry, such as metadata of a megabyte, no preview carries to the workers."""
    async with running_workers(client, World(tmp_path), ("workflows",)):
        failure = await failure_of(client, names.RESEARCH_PREVIEW, LARGE_PREVIEW)
    assert failure.message.startswith("request: larger than")


@pytest.mark.parametrize("name", ["no-such-workflow", "Deep-Research", "\x1b[2J", "x" * 900])
async def test_an_unknown_workflow_ends_at_once(client: Client, tmp_path: Path, name: str) -> None:
    """Whatever its argument is: its first task is done once, in place of every ten seconds for ever."""
    async with running_workers(client, World(tmp_path), ("workflows",)):
        for argument in ({"query": "x"}, RawValue(Payload(metadata={"encoding": b"binary/encrypted"}, data=b"x"))):
            failure = await failure_of(client, name, argument)
            assert failure.type == failures.INVALID_REQUEST
            assert failure.message.startswith("workflow: there is none of this name")


async def test_a_path_is_no_research_id(client: Client, tmp_path: Path) -> None:
    """A run under such an id is refused as invalid input before anything looks for its session."""
    async with running_workers(client, World(tmp_path), ("workflows",)):
        handle = await client.start_workflow(
            names.DEEP_RESEARCH, {"query": "x"}, id=f"../{uuid.uuid4().hex}", task_queue=names.WORKFLOWS_QUEUE
        )
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 60)
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == StopReason.INVALID_INPUT.value
    assert failed.value.cause.message.startswith("research_id: must be")


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.seconds])
async def test_an_entry_waits_for_workers_until_its_deadline(client: Client, tmp_path: Path, name: str) -> None:
    """Attempts of its activity end together, so that a failure that lasts makes no work for ever."""
    entry = ENTRIES[name]
    async with running_workers(client, World(tmp_path), ("workflows",)):
        arguments = [entry.valid] if entry.valid else []
        handle = await client.start_workflow(
            name, args=arguments, id=f"r-{uuid.uuid4().hex[:8]}", task_queue=names.WORKFLOWS_QUEUE
        )
        scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        try:
            async with asyncio.timeout(60):
                while not (
                    calls := [one async for one in handle.fetch_history_events() if one.event_type == scheduled]
                ):
                    await asyncio.sleep(0.1)
        finally:
            await handle.terminate()
    (call,) = calls
    seconds = call.activity_task_scheduled_event_attributes.schedule_to_close_timeout.seconds
    assert 0 < seconds <= (entry.seconds or 0)


async def test_a_client_cannot_start_an_activity(client: Client) -> None:
    """The server starts activities for runs only; otherwise any argument would reach the workers unchecked."""
    with pytest.raises(RPCError, match="disabled"):
        await client.start_activity(
            "prepare_research", 3, id="a", task_queue=names.RECORDS_QUEUE, start_to_close_timeout=timedelta(seconds=5)
        )
