"""The picture of a run's calls: lanes, waits, repeats, failures and costs."""

import re
from collections.abc import AsyncIterator

import pytest
from temporalio.api.common.v1 import ActivityType, Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history import v1 as history
from temporalio.api.taskqueue.v1 import TaskQueue

from client.run_calls import Call, read_calls
from client.view.picture import MAX_LANES, describe, draw, lanes
from contracts.names import POOLS
from providers.encryption import Keyring
from workers.encryption import KeyringCodec

CHILD = "child_workflow_execution_started_event_attributes"


def call(scheduled: float, ended: float, **changes: object) -> Call:
    values = {"name": "plan", "what": "plan: x", "pool": "models", "scheduled": scheduled, "started": scheduled}
    return Call(**{**values, "ended": ended, **changes})  # type: ignore[arg-type]


def test_calls_side_by_side_have_lanes_of_their_own() -> None:
    """A lane is used again when its call is over, and there are never more than can be seen."""
    bars = lanes([call(0, 4), call(1, 2), call(2, 3), call(3, 0.0)], now=9)
    assert [bar.lane for bar in bars] == [0, 1, 1, 1]
    many = lanes([call(0, 9) for _ in range(100)], now=9)
    assert max(bar.lane for bar in many) == MAX_LANES - 1


def test_a_bar_says_what_waited_was_repeated_and_cost() -> None:
    """Its title has the words that the colours stand for, and hostile text is text."""
    repeated = call(0, 10, started=6.0, attempt=3, cost_usd=0.0123, what="<b>page</b>")
    assert describe(repeated, now=10) == "<b>page</b> · 4.0 s · waited 6.0 s · attempt 3 · 0.012 US dollars"
    assert describe(call(3, 0.0, started=0.0), now=12) == "plan: x · 9.0 s"
    picture = draw([repeated, call(1, 2, failed=True), call(3, 0.0, started=0.0)], now=12)
    assert "&lt;b&gt;page" in picture
    assert "<b>" not in picture
    assert "<li>models: &lt;b&gt;page&lt;/b&gt; · 4.0 s" in picture
    assert 'fill="#' in picture
    assert {"wait", "repeated", "failed", "open", "tick"} <= set(re.findall(r'class="([a-z]+)"', picture))
    assert 'aria-label="3 calls in 0:12"' in picture


def test_a_long_run_has_few_lines_of_time() -> None:
    """A scale of hours and one of seconds have about as many."""
    for seconds in (1, 90, 40_000, 5_000_000):
        picture = draw([call(0, seconds)], now=seconds)
        assert 1 <= picture.count('class="tick"') <= 70


def test_several_pictures_in_a_page_have_ids_of_their_own() -> None:
    """The hatching and the list of each belong to it alone."""
    calls = [call(0, 4, started=2.0)]
    for number, suffix in ((0, ""), (1, "-1"), (12, "-12")):
        picture = draw(calls, now=9, number=number)
        assert re.findall(r'id="([^"]+)"', picture) == [f"waited{suffix}", f"longest{suffix}"]
        assert f'fill="url(#waited{suffix})"' in picture


@pytest.mark.parametrize("codec", [None, KeyringCodec(Keyring({"k1": bytes(32)}, "k1"))], ids=["plain", "encrypted"])
async def test_calls_of_agents_and_of_earlier_parts_belong_to_the_run(codec: KeyringCodec | None) -> None:
    """A history names the agents that it started and the part that it continues; the calls have pool, times and cost."""
    started = history.WorkflowExecutionStartedEventAttributes(continued_execution_run_id="part-1")
    agent = history.ChildWorkflowExecutionStartedEventAttributes(
        workflow_execution=WorkflowExecution(workflow_id="r-1/agent", run_id="agent-1")
    )
    scheduled = history.ActivityTaskScheduledEventAttributes(
        activity_type=ActivityType(name="plan"), task_queue=TaskQueue(name=POOLS["models"])
    )
    begun = history.ActivityTaskStartedEventAttributes(scheduled_event_id=3, attempt=2)
    summary = Payload(data=b'"plan: vacuum"')
    cost = Payload(data=b'{"account": {"usage": {"cost_usd": 0.25}}}')
    if codec is not None:
        summary, cost = await codec.encode([summary, cost])
    paid = Payloads(payloads=[cost])
    completed = history.ActivityTaskCompletedEventAttributes(scheduled_event_id=3, result=paid)
    kind = EventType
    events = [
        (kind.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, {"workflow_execution_started_event_attributes": started}),
        (kind.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED, {CHILD: agent}),
        (kind.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, {"activity_task_scheduled_event_attributes": scheduled}),
        (kind.EVENT_TYPE_ACTIVITY_TASK_STARTED, {"activity_task_started_event_attributes": begun}),
        (kind.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, {"activity_task_completed_event_attributes": completed}),
    ]

    async def listed() -> AsyncIterator[history.HistoryEvent]:
        for number, (event_type, details) in enumerate(events, 1):
            event = history.HistoryEvent(event_id=number, event_type=event_type, **details)
            event.event_time.FromSeconds(100 + number)
            if event_type == kind.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                event.user_metadata.summary.CopyFrom(summary)
            yield event

    read = await read_calls(listed(), "r-1", codec)
    assert read.others == [("r-1", "part-1"), ("r-1/agent", "agent-1")]
    assert read.calls == [Call("plan", "plan: vacuum", "models", 103, 104, 105, attempt=2, cost_usd=0.25)]
