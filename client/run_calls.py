"""The calls of a run, read from the histories of its workflow and of its agents."""

import asyncio
import json
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, RPCError, RPCStatusCode
from temporalio.converter import PayloadCodec

from contracts.names import POOLS

POOL_NAMES: Final = {queue: pool for pool, queue in POOLS.items()}
COST_PATH: Final = ("account", "usage", "cost_usd")
"""Place of the cost in the result of a role."""
ENDED: Final = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "activity_task_completed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "activity_task_failed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "activity_task_timed_out_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "activity_task_canceled_event_attributes",
}
"""Events that end a call → the field with their details."""
MAX_HISTORIES: Final = 200
"""Of one run with its agents and what it was before it continued as new; further ones are not read."""
READ_AT_ONCE: Final = 8

Execution = tuple[str, str]
"""Id of a workflow and of its run; the latter empty for the newest."""


@dataclass(frozen=True)
class Call:
    """An activity of a run; times in seconds since the epoch."""

    name: str
    what: str
    pool: str
    scheduled: float
    started: float = 0.0
    """Start of its last attempt; 0 until that is known."""
    ended: float = 0.0
    """0 while it is in flight."""
    attempt: int = 1
    failed: bool = False
    cost_usd: float = 0.0


@dataclass(frozen=True)
class CallsRead:
    """What a history says of calls."""

    calls: list[Call]
    """In the order in which they were made."""
    others: list[Execution]
    """Agents that it started, and the execution that it continues."""


async def read_run(client: Client, research_id: str) -> list[Call]:
    """Return the calls of a run and its agents, in the order in which they were made.

    An agent or an earlier part whose history the server no longer has is passed over. Raises `RPCError`.
    """
    codec = client.data_converter.payload_codec
    first = await read_calls(client.get_workflow_handle(research_id).fetch_history_events(), research_id, codec)
    calls = list(first.calls)
    waiting = first.others
    seen = set(waiting)
    while waiting and len(seen) <= MAX_HISTORIES:
        batch, waiting = waiting[:READ_AT_ONCE], waiting[READ_AT_ONCE:]
        for read in await asyncio.gather(*(_read_other(client, *other) for other in batch)):
            calls += read.calls
            fresh = [other for other in read.others if other not in seen]
            seen.update(fresh)
            waiting += fresh
    return sorted(calls, key=lambda call: call.scheduled)


async def _read_other(client: Client, workflow_id: str, run_id: str) -> CallsRead:
    try:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        return await read_calls(handle.fetch_history_events(), workflow_id, client.data_converter.payload_codec)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return CallsRead([], [])
        raise


async def read_calls(
    events: AsyncIterable[HistoryEvent], workflow_id: str, codec: PayloadCodec | None = None
) -> CallsRead:
    """Return what the history of a workflow says of calls; `codec` decodes its payloads."""
    calls: dict[int, Call] = {}
    others: list[Execution] = []
    async for event in events:
        seconds = event.event_time.ToNanoseconds() / 1e9
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            earlier = event.workflow_execution_started_event_attributes.continued_execution_run_id
            if earlier:
                others.append((workflow_id, earlier))
        elif event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            agent = event.child_workflow_execution_started_event_attributes.workflow_execution
            others.append((agent.workflow_id, agent.run_id))
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            queue = scheduled.task_queue.name
            summary = _text(await _data(event.user_metadata.summary, codec))
            calls[event.event_id] = Call(
                scheduled.activity_type.name, summary, POOL_NAMES.get(queue, queue), scheduled=seconds
            )
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            _change(calls, started.scheduled_event_id, started=seconds, attempt=started.attempt)
        elif event.event_type in ENDED:
            details = getattr(event, ENDED[event.event_type])
            completed = event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
            cost = 0.0
            if completed and details.result.payloads:
                cost = _cost(await _data(details.result.payloads[0], codec))
            _change(calls, details.scheduled_event_id, ended=seconds, failed=not completed, cost_usd=cost)
    return CallsRead(list(calls.values()), others)


def _change(calls: dict[int, Call], number: int, **changes: Any) -> None:
    if number in calls:
        calls[number] = replace(calls[number], **changes)


async def _data(payload: Payload, codec: PayloadCodec | None) -> bytes:
    """Return the data of a payload; empty for none."""
    if codec is not None and payload.data:
        (payload,) = await codec.decode([payload])
    return payload.data


def _text(data: bytes) -> str:
    """Return a summary; empty for one that this client cannot read."""
    try:
        text = json.loads(data) if data else ""
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def _cost(data: bytes) -> float:
    """Return the cost that a result names, in US dollars; 0 for one without."""
    try:
        result = json.loads(data)
    except (ValueError, RecursionError):
        return 0.0
    value: Any = result
    for name in COST_PATH:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else 0.0
