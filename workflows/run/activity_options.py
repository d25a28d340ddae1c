"""Timeouts and retries of every call: bounded attempts, a heartbeat, and never past the deadline."""

from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import RetryPolicy

from contracts import names
from contracts.texts import as_markdown
from contracts.vocabulary import EngineKind

HEARTBEAT = timedelta(seconds=3.5)
"""A killed worker is noticed this long after its last beat. Workers send one a second (decision 0019), so one that
stands still for less than 2.5 s is not taken for dead."""
FIRST_PAUSE = timedelta(seconds=0.1)
"""Before the second attempt of a call whose worker was lost; after a failure the activity says how long."""

MODEL_CALL_SECONDS = 600.0
"""Longest single model call (synthesis in the design of supervisor and specialists: 600 s)."""
EXTRACTIVE_CALL_SECONDS = 120.0
SEARCH_SECONDS = 65.0
"""The model's own web search takes up to a minute; the others give up after 20 s by themselves."""
SELECTION_PATIENCE_SECONDS = 120.0
SEARCH_PATIENCE_SECONDS = 75.0
"""How long one of several providers is waited for when it says to wait."""
READ_SECONDS = 65.0
RECORD_SECONDS = 60.0
CANCEL_SAVE_SECONDS = 5.0
"""A cancelled run saves its session within this time."""
RECORD_RETRY = RetryPolicy(initial_interval=FIRST_PAUSE, maximum_interval=timedelta(seconds=10))
"""Activities count the attempts that failed."""
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
    first: bool = False
    """Whether the call goes before those of other runs: it brings its run to the end."""


def role_options(activity_id: str, summary: str, engine: EngineKind, remaining_seconds: float) -> CallOptions:
    """A role: it may be told to wait, or its workers be stopped, until the deadline."""
    longest = MODEL_CALL_SECONDS if engine is EngineKind.MODEL else EXTRACTIVE_CALL_SECONDS
    remaining = max(10.0, remaining_seconds)
    # The time left bounds the attempts: activities count those that failed, and no others.
    retry = RetryPolicy(initial_interval=FIRST_PAUSE, maximum_interval=timedelta(seconds=60))
    return CallOptions(
        names.MODELS_QUEUE,
        activity_id,
        timedelta(seconds=min(longest, remaining)),
        timedelta(seconds=remaining),
        retry,
        show_summary(summary),
    )


def search_options(activity_id: str, summary: str, remaining_seconds: float, *, alone: bool = True) -> CallOptions:
    """A search: short attempts, within the time left; one of several providers is not waited for that long."""
    patience = remaining_seconds if alone else min(SEARCH_PATIENCE_SECONDS, remaining_seconds)
    return _bound(names.SEARCH_QUEUE, activity_id, summary, SEARCH_SECONDS, patience)


def prepare_options(patience_seconds: float) -> CallOptions:
    """What a run begins with: a worker is waited for as long as the run may last."""
    return _beginning(names.RECORDS_QUEUE, "prepare", "prepare the run", RECORD_SECONDS, patience_seconds)


def check_options(activity_id: str, patience_seconds: float) -> CallOptions:
    """Looking at the providers before a run begins: a worker is waited for as long as the run may last."""
    return _beginning(names.SEARCH_QUEUE, activity_id, "check the search providers", SEARCH_SECONDS, patience_seconds)


def turn_options() -> CallOptions:
    """Asking for a turn: for as long as it takes, whoever is up."""
    longest = timedelta(seconds=RECORD_SECONDS)
    return CallOptions(names.RECORDS_QUEUE, "turn", longest, None, RECORD_RETRY, "wait for a turn")


def read_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """A read: fetch and extraction in one attempt; a worker, and room for the text, are waited for while time is left.

    How long a site is waited for, the activity knows.
    """
    return _bound(names.READING_QUEUE, activity_id, summary, READ_SECONDS, remaining_seconds)


def selection_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """Looking for passages in stored texts: work for processors, which a report can do without."""
    patience = min(SELECTION_PATIENCE_SECONDS, remaining_seconds)
    return _bound(names.READING_QUEUE, activity_id, summary, READ_SECONDS, patience)


def record_options(activity_id: str, summary: str, patience_seconds: float | None = None) -> CallOptions:
    """Book-keeping: it must succeed, so it is tried for long, also through an outage of its pool.

    What can be done without is waited for at most `patience_seconds`, and at least as long as one attempt may take.
    """
    longest = timedelta(seconds=RECORD_SECONDS)
    patience = None if patience_seconds is None else max(longest, timedelta(seconds=patience_seconds))
    return CallOptions(names.RECORDS_QUEUE, activity_id, longest, patience, RECORD_RETRY, show_summary(summary))


def cancel_save_options(activity_id: str) -> CallOptions:
    """The one save of a cancelled run."""
    limit = timedelta(seconds=CANCEL_SAVE_SECONDS)
    retry = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=2)
    return CallOptions(names.RECORDS_QUEUE, activity_id, limit, limit, retry, "save the cancelled session", first=True)


def hook_options(activity_id: str, task_queue: str, remaining_seconds: float) -> CallOptions:
    """An operator's think-pause hook, on the operator's own queue; it need not send heartbeats."""
    limit = timedelta(seconds=min(60.0, max(10.0, remaining_seconds)))
    retry = RetryPolicy(maximum_attempts=2)
    return CallOptions(task_queue, activity_id, limit, limit, retry, "think-pause hook", heartbeat=limit)


def _beginning(queue: str, activity_id: str, summary: str, longest: float, patience_seconds: float) -> CallOptions:
    limit = timedelta(seconds=longest)
    return CallOptions(queue, activity_id, limit, timedelta(seconds=patience_seconds), RECORD_RETRY, summary)


def _bound(queue: str, activity_id: str, summary: str, longest: float, remaining_seconds: float) -> CallOptions:
    remaining = max(5.0, remaining_seconds)
    # The time left bounds the attempts: activities count those that failed, and not those that were told to wait.
    retry = RetryPolicy(initial_interval=FIRST_PAUSE, maximum_interval=timedelta(seconds=20))
    return CallOptions(
        queue,
        activity_id,
        timedelta(seconds=min(longest, remaining)),
        timedelta(seconds=remaining),
        retry,
        show_summary(summary),
    )


def show_summary(text: str) -> str:
    """One line for the web UI, as short as the engine wants it."""
    return as_markdown(text, SUMMARY_CHARACTERS, SUMMARY_BYTES)
