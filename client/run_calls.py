"""The calls of a run, read from the history of its workflow."""

import json
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from typing import Any, Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

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


async def read_calls(events: AsyncIterable[HistoryEvent]) -> list[Call]:
    """Return the calls of a history in the order in which they were made."""
    calls: dict[int, Call] = {}
    async for event in events:
        seconds = event.event_time.ToNanoseconds() / 1e9
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            queue = scheduled.task_queue.name
            summary = _text(event.user_metadata.summary.data)
            calls[event.event_id] = Call(
                scheduled.activity_type.name, summary, POOL_NAMES.get(queue, queue), scheduled=seconds
            )
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            _change(calls, started.scheduled_event_id, started=seconds, attempt=started.attempt)
        elif event.event_type in ENDED:
            details = getattr(event, ENDED[event.event_type])
            completed = event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
            cost = _cost(details.result.payloads[0].data) if completed and details.result.payloads else 0.0
            _change(calls, details.scheduled_event_id, ended=seconds, failed=not completed, cost_usd=cost)
    return list(calls.values())


def _change(calls: dict[int, Call], number: int, **changes: Any) -> None:
    if number in calls:
        calls[number] = replace(calls[number], **changes)


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
