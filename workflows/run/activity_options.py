"""Timeouts and retries of every call: bounded attempts, a heartbeat, and never past the deadline."""

from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import RetryPolicy

from contracts import names
from contracts.display_text import as_markdown
from contracts.vocabulary import EngineKind

HEARTBEAT = timedelta(seconds=10)
"""Activities beat every half second; a killed worker is noticed after this long."""

MODEL_CALL_SECONDS = 600.0
"""Longest single model call (synthesis in the original of S0: 600 s)."""
EXTRACTIVE_CALL_SECONDS = 120.0
SEARCH_SECONDS = 65.0
"""The model's own web search takes up to a minute; the others give up after 20 s by themselves."""
SEARCH_PATIENCE_SECONDS = 75.0
"""How long one of several providers is waited for when it says to wait."""
READ_SECONDS = 65.0
READ_PATIENCE_SECONDS = 180.0
"""How long a page is waited for when its site says to wait, or when others read from it."""
RECORD_SECONDS = 60.0
CANCEL_SAVE_SECONDS = 5.0
"""A cancelled run saves its session within this time."""
SUMMARY_CHARACTERS = 120
SUMMARY_BYTES = 200
"""What the engine takes at most, as JSON."""


@dataclass(frozen=True)
class CallOptions:
    """How one activity is scheduled."""

    task_queue: str
    activity_id: str
    start_to_close: timedelta
    schedule_to_close: timedelta | None
    retry: RetryPolicy
    summary: str
    heartbeat: timedelta = HEARTBEAT


def role_options(activity_id: str, summary: str, engine: EngineKind, remaining_seconds: float) -> CallOptions:
    """A role: a model may be told to wait until the deadline, the extractive engine has three attempts."""
    longest = MODEL_CALL_SECONDS if engine is EngineKind.MODEL else EXTRACTIVE_CALL_SECONDS
    remaining = max(10.0, remaining_seconds)
    retry = RetryPolicy(
        initial_interval=timedelta(seconds=1),
        maximum_interval=timedelta(seconds=60),
        # The time left bounds a model's attempts, so that being told to wait cannot use up a call.
        maximum_attempts=0 if engine is EngineKind.MODEL else 5,
    )
    return CallOptions(
        names.MODELS_QUEUE,
        activity_id,
        timedelta(seconds=min(longest, remaining)),
        timedelta(seconds=remaining),
        retry,
        _shown(summary),
    )


def search_options(activity_id: str, summary: str, remaining_seconds: float, *, alone: bool = True) -> CallOptions:
    """A search: short attempts, within the time left; one of several providers is not waited for that long."""
    patience = remaining_seconds if alone else min(SEARCH_PATIENCE_SECONDS, remaining_seconds)
    return _bounded(names.SEARCH_QUEUE, activity_id, summary, SEARCH_SECONDS, patience)


def prepare_options(patience_seconds: float) -> CallOptions:
    """What a run begins with: a worker is waited for as long as the run may last."""
    return _beginning(names.RECORDS_QUEUE, "prepare", "prepare the run", RECORD_SECONDS, patience_seconds)


def check_options(activity_id: str, patience_seconds: float) -> CallOptions:
    """Looking at the providers before a run begins: a worker is waited for as long as the run may last."""
    return _beginning(names.SEARCH_QUEUE, activity_id, "check the search providers", SEARCH_SECONDS, patience_seconds)


def read_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """A read: fetch and extraction in one attempt, within the time left."""
    patience = min(READ_PATIENCE_SECONDS, remaining_seconds)
    return _bounded(names.READING_QUEUE, activity_id, summary, READ_SECONDS, patience)


def record_options(activity_id: str, summary: str) -> CallOptions:
    """Book-keeping: it must succeed, so it is tried for long, also through an outage of its pool."""
    retry = RetryPolicy(maximum_interval=timedelta(seconds=10), maximum_attempts=10)
    return CallOptions(
        names.RECORDS_QUEUE, activity_id, timedelta(seconds=RECORD_SECONDS), None, retry, _shown(summary)
    )


def cancel_save_options(activity_id: str) -> CallOptions:
    """The one save of a cancelled run."""
    limit = timedelta(seconds=CANCEL_SAVE_SECONDS)
    retry = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=2)
    return CallOptions(names.RECORDS_QUEUE, activity_id, limit, limit, retry, "save the cancelled session")


def hook_options(activity_id: str, task_queue: str, remaining_seconds: float) -> CallOptions:
    """An operator's think-pause hook, on the operator's own queue; it need not send heartbeats."""
    limit = timedelta(seconds=min(60.0, max(10.0, remaining_seconds)))
    retry = RetryPolicy(maximum_attempts=2)
    return CallOptions(task_queue, activity_id, limit, limit, retry, "think-pause hook", heartbeat=limit)


def _beginning(queue: str, activity_id: str, summary: str, longest: float, patience_seconds: float) -> CallOptions:
    retry = RetryPolicy(maximum_interval=timedelta(seconds=10), maximum_attempts=10)
    limit = timedelta(seconds=longest)
    return CallOptions(queue, activity_id, limit, timedelta(seconds=patience_seconds), retry, summary)


def _bounded(queue: str, activity_id: str, summary: str, longest: float, remaining_seconds: float) -> CallOptions:
    remaining = max(5.0, remaining_seconds)
    # The time left bounds the attempts: activities count those that failed, and not those that were told to wait.
    retry = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=20))
    return CallOptions(
        queue,
        activity_id,
        timedelta(seconds=min(longest, remaining)),
        timedelta(seconds=remaining),
        retry,
        _shown(summary),
    )


def _shown(text: str) -> str:
    return as_markdown(text, SUMMARY_CHARACTERS, SUMMARY_BYTES)
