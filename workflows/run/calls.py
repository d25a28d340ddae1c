"""Calls of a run: their queues and time limits, and the meaning of a failed one."""

import math
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from contracts import activities, failures, names
from contracts.outcome import Usage
from contracts.texts import as_markdown

HEARTBEAT = timedelta(seconds=15)
"""A killed worker's call is made again 15 s after its last beat. Workers send one a second, and may pause for 10 s."""
RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
"""For attempts without a report, of a worker that died. After a failure the activity names the pause, with jitter."""
MARGIN_SECONDS = 2.0
"""A call ends this long before the time for work does, so that the run learns what it was waiting for."""

SECONDS = {
    names.MODELS_QUEUE: (600.0, 10.0),  # synthesis in the design of supervisor and specialists: 600 s
    names.SEARCH_QUEUE: (65.0, 5.0),  # a search is given up after 10 s, and may wait for its turn
    names.READING_QUEUE: (65.0, 5.0),
    names.RECORDS_QUEUE: (60.0, 60.0),
}
"""Longest single attempt of a call, and the time that a call has even where hardly any is left."""
EXTRACTIVE_CALL_SECONDS = 120.0
CLOSING_SECONDS = 300.0
"""Time after the deadline in which the report is rendered and saved while a store is away or full."""
CANCEL_SAVE_SECONDS = 5.0
"""A cancelled run saves its session within this time."""
GIVEN_UP = (failures.INPUT_UNPROCESSABLE, failures.WORKER_LOST)


@dataclass(frozen=True)
class CallOptions:
    """Schedule of one activity."""

    task_queue: str
    activity_id: str
    start_to_close: timedelta
    schedule_to_close: timedelta | None
    retry: RetryPolicy
    summary: str
    heartbeat: timedelta = HEARTBEAT
    first: bool = False
    """The call goes before those of other runs: it ends its run."""

    def within(self, seconds: float) -> "CallOptions":
        """Return the schedule with at most so many seconds for all attempts together."""
        limit = timedelta(seconds=seconds)
        whole = limit if self.schedule_to_close is None else min(self.schedule_to_close, limit)
        return replace(self, start_to_close=min(self.start_to_close, limit), schedule_to_close=whole)


def call_options(
    queue: str,
    activity_id: str,
    summary: str,
    remaining_seconds: float | None = None,
    *,
    attempt_seconds: float = math.inf,
    first: bool = False,
) -> CallOptions:
    """Schedule a call within the remaining time for it, all attempts with their pauses; None sets no end.

    One attempt takes at most `attempt_seconds`, or the limit of its queue if that is less.
    """
    longest, least = SECONDS[queue]
    longest, whole = min(attempt_seconds, longest), None
    if remaining_seconds is not None:
        seconds = max(least, remaining_seconds - MARGIN_SECONDS)
        longest, whole = min(longest, seconds), timedelta(seconds=seconds)
    summary = show_summary(summary)
    return CallOptions(queue, activity_id, timedelta(seconds=longest), whole, RETRY, summary, first=first)


def hook_options(activity_id: str, task_queue: str, remaining_seconds: float) -> CallOptions:
    """Schedule an operator's think-pause hook, on the operator's own queue; it need not send heartbeats."""
    limit = timedelta(seconds=min(60.0, max(10.0, remaining_seconds)))
    retry = RetryPolicy(maximum_attempts=2)
    return CallOptions(task_queue, activity_id, limit, limit, retry, "think-pause hook", heartbeat=limit)


def show_summary(text: str) -> str:
    """Shorten a summary to one line of the web UI: 200 bytes as JSON is the server's limit."""
    return as_markdown(text, 120, 200)


def is_cancelled(error: ActivityError) -> bool:
    """Return true if an activity ended because it was cancelled."""
    return isinstance(error.cause, CancelledError)


def is_outage(error: ActivityError) -> bool:
    """Return true for a failure that may pass but lasted until the time of the call was over."""
    cause = error.cause
    return isinstance(cause, ActivityTimeout) or (
        isinstance(cause, ApplicationError) and cause.type in failures.PASSING
    )


def is_given_up(error: ActivityError) -> bool:
    """Return true if work on a text from outside ended its processes, so that it would end further ones."""
    return isinstance(error.cause, ApplicationError) and error.cause.type in GIVEN_UP


def reason_of(error: ActivityError) -> str:
    """Return a short typed reason for a failed call: the kind of an unreadable source, else the failure's type."""
    cause = last_failure(error)
    if isinstance(cause, ApplicationError):
        return str(details_of(cause).get("kind") or cause.type or "failed")
    return type(cause).__name__ if cause else "failed"


def explain(error: ActivityError) -> str:
    """Explain a failed call to a person, in a clause."""
    reason = reason_of(error)
    return failures.WORDS.get(reason, reason)


def describe_failure(error: ActivityError) -> str:
    """Describe a failed call in the words of its last failure, at most 200 characters."""
    cause = last_failure(error)
    return (cause.message if isinstance(cause, ApplicationError) else str(cause))[:200]


def last_failure(error: ActivityError) -> BaseException | None:
    """Return the last failure of a call; of one that ran out of time, that of the last attempt with a report."""
    cause = error.cause
    before = cause.__cause__ if isinstance(cause, ActivityTimeout) else None
    return before if isinstance(before, ApplicationError) else cause


def details_of(cause: BaseException | None) -> dict[str, Any]:
    """Return the details of a failure (`activities/failures.py`)."""
    return _first_dict(cause.details if isinstance(cause, ApplicationError) else ())


def spent_by(error: ActivityError) -> Usage:
    """Return the cost of a failed call, of all its attempts as far as the last one reported."""
    cause = error.cause
    beats = cause.last_heartbeat_details if isinstance(cause, ActivityTimeout) else ()
    details = _first_dict(beats) or details_of(cause)
    return Usage.model_validate(details.get("usage") or {})


def describe_unstarted(error: ActivityError) -> str:
    """Describe the failure of a call that a run cannot start without."""
    cause = last_failure(error)
    if isinstance(cause, ActivityTimeout) and cause.type in (
        TimeoutType.SCHEDULE_TO_START,
        TimeoutType.SCHEDULE_TO_CLOSE,
    ):
        pool = "search" if error.activity_type == activities.CHECK_PROVIDERS.name else "records"
        return (
            f"no worker of the pool {pool} took the run's first work before its deadline: start one with "
            f"`research serve` (this machine) or `research worker --pool {pool}` (a cluster), and ask again"
        )
    return str(cause or error)


def describe_unforeseen(error: Exception) -> str:
    """Describe an error of the product itself by its type and place, without its words, which may be a page's."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = "/".join(last.filename.split("/")[-2:])
    return f"internal error: {type(error).__name__} at {place}:{last.lineno}"


def _first_dict(parts: Sequence[object]) -> dict[str, Any]:
    return next((part for part in parts if isinstance(part, dict)), {})
