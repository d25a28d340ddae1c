"""Timeouts, retries and priority of every call.

Temporal retries a call that failed for a reason that may pass (`activities/failures.py`) until its time is over:
attempts are not counted. The time of a call ends with the time for work, so that the reserve is left for the report.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import RetryPolicy

from contracts import names
from contracts.texts import as_markdown
from contracts.vocabulary import EngineKind

HEARTBEAT = timedelta(seconds=15)
"""A killed worker's call is made again 15 s after its last beat. Workers send one a second: one that stands still for
10 s is not taken for dead."""
RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
"""For attempts without a report, of a worker that died. After a failure the activity names the pause, with jitter."""
MARGIN_SECONDS = 2.0
"""A call ends this long before the time for work does, so that the run learns what it was waiting for."""

MODEL_CALL_SECONDS = 600.0
"""Longest single model call (synthesis in the design of supervisor and specialists: 600 s)."""
EXTRACTIVE_CALL_SECONDS = 120.0
SEARCH_SECONDS = 65.0
"""A model's own web search takes up to a minute; other providers are given up after 10 s."""
READ_SECONDS = 65.0
RECORD_SECONDS = 60.0
SELECTION_SECONDS = 120.0
"""A report can do without further passages: the search for them is not retried for longer."""
CLOSING_SECONDS = 300.0
"""Time for which the report is rendered and saved after the deadline while a store is away or full."""
CANCEL_SAVE_SECONDS = 5.0
"""A cancelled run saves its session within this time."""


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


def role_options(activity_id: str, summary: str, engine: EngineKind, remaining_seconds: float) -> CallOptions:
    """Schedule a role within the time for work."""
    longest = MODEL_CALL_SECONDS if engine is EngineKind.MODEL else EXTRACTIVE_CALL_SECONDS
    return _options(names.MODELS_QUEUE, activity_id, summary, longest, max(10.0, remaining_seconds - MARGIN_SECONDS))


def search_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """Schedule a search within the time for work."""
    whole = max(5.0, remaining_seconds - MARGIN_SECONDS)
    return _options(names.SEARCH_QUEUE, activity_id, summary, SEARCH_SECONDS, whole)


def read_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """Schedule fetch and extraction of a document within the time for work."""
    whole = max(5.0, remaining_seconds - MARGIN_SECONDS)
    return _options(names.READING_QUEUE, activity_id, summary, READ_SECONDS, whole)


def selection_options(activity_id: str, summary: str, remaining_seconds: float) -> CallOptions:
    """Schedule a search for passages in stored texts."""
    whole = max(5.0, min(SELECTION_SECONDS, remaining_seconds))
    return _options(names.READING_QUEUE, activity_id, summary, READ_SECONDS, whole)


def prepare_options(deadline_seconds: float) -> CallOptions:
    """Schedule the first call of a run, which waits for a worker as long as the run may last."""
    return _options(names.RECORDS_QUEUE, "prepare", "prepare the run", RECORD_SECONDS, deadline_seconds)


def check_options(activity_id: str, remaining_seconds: float) -> CallOptions:
    """Schedule a look at the search providers."""
    return _options(names.SEARCH_QUEUE, activity_id, "check the search providers", SEARCH_SECONDS, remaining_seconds)


def turn_options() -> CallOptions:
    """Schedule the wait for a turn, which has no limit."""
    return _options(names.RECORDS_QUEUE, "turn", "wait for a turn", RECORD_SECONDS, None)


def record_options(activity_id: str, summary: str, remaining_seconds: float | None = None) -> CallOptions:
    """Schedule book-keeping: for as long as it takes, or at least one whole attempt within the remaining time."""
    whole = None if remaining_seconds is None else max(RECORD_SECONDS, remaining_seconds - MARGIN_SECONDS)
    return _options(names.RECORDS_QUEUE, activity_id, summary, RECORD_SECONDS, whole)


def cancel_save_options(activity_id: str) -> CallOptions:
    """Schedule the one save of a cancelled run."""
    limit = timedelta(seconds=CANCEL_SAVE_SECONDS)
    retry = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=2)
    return CallOptions(names.RECORDS_QUEUE, activity_id, limit, limit, retry, "save the cancelled session", first=True)


def hook_options(activity_id: str, task_queue: str, remaining_seconds: float) -> CallOptions:
    """Schedule an operator's think-pause hook, on the operator's own queue; it need not send heartbeats."""
    limit = timedelta(seconds=min(60.0, max(10.0, remaining_seconds)))
    retry = RetryPolicy(maximum_attempts=2)
    return CallOptions(task_queue, activity_id, limit, limit, retry, "think-pause hook", heartbeat=limit)


def _options(
    queue: str, activity_id: str, summary: str, longest_seconds: float, whole_seconds: float | None
) -> CallOptions:
    """`longest_seconds` bounds one attempt, `whole_seconds` all of them with their pauses."""
    longest = longest_seconds if whole_seconds is None else min(longest_seconds, whole_seconds)
    whole = None if whole_seconds is None else timedelta(seconds=whole_seconds)
    return CallOptions(queue, activity_id, timedelta(seconds=longest), whole, RETRY, show_summary(summary))


def show_summary(text: str) -> str:
    """Shorten a summary to one line of the web UI: 200 bytes as JSON is the server's limit."""
    return as_markdown(text, 120, 200)
