"""Activity calls of a run: their queues and timeouts, and the interpretation of failures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from contracts import activities, failures, names
from contracts.defects import Defect
from contracts.outcome import Usage
from contracts.sentences import Message
from contracts.texts import as_markdown

HEARTBEAT_TIMEOUT = timedelta(seconds=15)
"""A killed worker's call is retried 15 s after its last heartbeat; workers send one per 2.5 s and may pause 10 s."""
RETRY_POLICY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
"""Backoff after a lost worker; after a failure, the activity itself names the delay (`activities/failures.py`)."""
MARGIN_SECONDS = 2.0
"""A call ends this long before the time for work does, so that the run can name what it was waiting for."""

QUEUE_SECONDS = {
    names.MODELS_QUEUE: (600.0, 10.0),  # a model may write a long report for ten minutes
    names.SEARCH_QUEUE: (65.0, 5.0),  # a search times out after 10 s, and may first wait for its rate limit
    names.READING_QUEUE: (180.0, 5.0),  # its child process may take 120 s on an overloaded machine
    names.RECORDS_QUEUE: (180.0, 60.0),  # the same
}
"""Longest single attempt of a call, and the minimum time for a call, both in seconds.

A lost worker is found out by its heartbeats; these times end only attempts whose worker is alive.
"""
EXTRACTIVE_CALL_SECONDS = 120.0
CLOSING_SECONDS = 300.0
"""Time after the deadline for rendering and saving the report while a store is unavailable or full."""
CANCEL_SAVE_SECONDS = 5.0
"""A cancelled run saves its session within this time."""
CRASH_FAILURES = (failures.INPUT_UNPROCESSABLE, failures.WORKER_LOST)


@dataclass(frozen=True)
class CallOptions:
    """Options of one activity call."""

    task_queue: str
    activity_id: str
    start_to_close: timedelta
    schedule_to_close: timedelta | None
    retry: RetryPolicy
    summary: str
    heartbeat: timedelta = HEARTBEAT_TIMEOUT
    first: bool = False
    """True for a call that ends its run; it takes precedence over calls of other runs."""

    def within(self, seconds: float) -> "CallOptions":
        """Return the options with at most `seconds` seconds for all attempts together."""
        limit = timedelta(seconds=seconds)
        if self.schedule_to_close is None:
            total = limit
        else:
            total = min(self.schedule_to_close, limit)
        return replace(self, start_to_close=min(self.start_to_close, limit), schedule_to_close=total)


def call_options(
    queue: str,
    activity_id: str,
    summary: str,
    remaining_seconds: float | None = None,
    *,
    attempt_seconds: float = math.inf,
    first: bool = False,
) -> CallOptions:
    """Return options that fit all attempts and their backoff into the remaining time; None sets no limit.

    One attempt takes at most `attempt_seconds`, or the limit of its queue if that is less.
    """
    attempt, minimum = QUEUE_SECONDS[queue]
    attempt = min(attempt_seconds, attempt)
    total = None
    if remaining_seconds is not None:
        seconds = max(minimum, remaining_seconds - MARGIN_SECONDS)
        attempt = min(attempt, seconds)
        total = timedelta(seconds=seconds)
    summary = show_summary(summary)
    return CallOptions(queue, activity_id, timedelta(seconds=attempt), total, RETRY_POLICY, summary, first=first)


def hook_options(activity_id: str, task_queue: str, remaining_seconds: float) -> CallOptions:
    """Return options for an operator's think-pause hook, on the operator's own queue; it need not send heartbeats."""
    limit = timedelta(seconds=min(60.0, max(10.0, remaining_seconds)))
    retry = RetryPolicy(maximum_attempts=2)
    return CallOptions(task_queue, activity_id, limit, limit, retry, "think-pause hook", heartbeat=limit)


def show_summary(text: str) -> str:
    """Shorten a summary to one line of the web UI; the server's limit is 200 bytes of JSON."""
    return as_markdown(text, 120, 200)


def is_cancelled(error: ActivityError) -> bool:
    """Return true if an activity ended because it was cancelled."""
    return isinstance(error.cause, CancelledError)


def is_outage(error: ActivityError) -> bool:
    """Return true for a timeout, or a transient failure that lasted for the call's whole time."""
    cause = error.cause
    return isinstance(cause, ActivityTimeout) or (
        isinstance(cause, ApplicationError) and cause.type in failures.TRANSIENT
    )


def is_given_up(error: ActivityError) -> bool:
    """Return true if an outside text crashed the processes that handled it, and would crash more."""
    return isinstance(error.cause, ApplicationError) and error.cause.type in CRASH_FAILURES


def reason_of(error: ActivityError) -> str:
    """Return a short typed reason for a failed call: the detail `kind` (of an unreadable source), else the type."""
    cause = last_failure(error)
    if isinstance(cause, ApplicationError):
        return str(failure_details(cause).get("kind") or cause.type or "failed")
    if not cause:
        return "failed"
    return type(cause).__name__


def explain(error: ActivityError) -> str:
    """Return a clause for people that explains a failed call."""
    reason = reason_of(error)
    return failures.EXPLANATIONS.get(reason, reason)


def note_failure(role: str, error: ActivityError) -> Message:
    """Return a note on a failed call of a role: the failure in plain words, and its message."""
    return Message("role_failed_detail", role=role, reason=explain(error), detail=describe_failure(error))


def describe_failure(error: ActivityError) -> str:
    """Return the message of a call's last failure, at most 200 characters."""
    cause = last_failure(error)
    return (cause.message if isinstance(cause, ApplicationError) else str(cause))[:200]


def last_failure(error: ActivityError) -> BaseException | None:
    """Return the last failure of a call; after a timeout, that of the last attempt that reported one."""
    cause = error.cause
    reported = cause.__cause__ if isinstance(cause, ActivityTimeout) else None
    if isinstance(reported, ApplicationError):
        return reported
    return cause


def failure_details(cause: BaseException | None) -> dict[str, Any]:
    """Return the details of a failure (`activities/failures.py`)."""
    return _first_dict(cause.details if isinstance(cause, ApplicationError) else ())


def defects_of(error: ActivityError) -> list[Defect]:
    """Return the unforeseen error that made a call fail, if there is one."""
    defect = failure_details(last_failure(error)).get("defect")
    if not isinstance(defect, dict):
        return []
    return [Defect.model_validate(defect)]


def spent_by(error: ActivityError) -> Usage:
    """Return the usage of a failed call: that of all attempts, as reported by the last one."""
    cause = error.cause
    beats = cause.last_heartbeat_details if isinstance(cause, ActivityTimeout) else ()
    details = _first_dict(beats) or failure_details(cause)
    return Usage.model_validate(details.get("usage") or {})


def describe_unstarted(error: ActivityError) -> str:
    """Describe the failure of a call that is required to start a run."""
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


def _first_dict(parts: Sequence[object]) -> dict[str, Any]:
    return next((part for part in parts if isinstance(part, dict)), {})
