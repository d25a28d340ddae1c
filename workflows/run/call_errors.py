"""What a failed call means for a run. Pure."""

import traceback

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from contracts import activities, failures
from contracts.outcome import Usage

GIVEN_UP = (failures.INPUT_UNPROCESSABLE, failures.WORKER_LOST)


def is_cancelled(error: ActivityError) -> bool:
    """Whether an activity ended because it was cancelled."""
    return isinstance(error.cause, CancelledError)


def is_full(error: ActivityError) -> bool:
    """Whether there was no room to keep the result, for as long as it could be waited for."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == failures.STORAGE_FULL


def is_given_up(error: ActivityError) -> bool:
    """Whether work on a text from outside ended those who did it, so that doing it again would, too."""
    return isinstance(error.cause, ApplicationError) and error.cause.type in GIVEN_UP


def describe_unstarted(error: ActivityError) -> str:
    """What to say of a call that a run cannot begin without, and that nobody carried out."""
    if isinstance(error.cause, ActivityTimeout) and error.cause.type in (
        TimeoutType.SCHEDULE_TO_START,
        TimeoutType.SCHEDULE_TO_CLOSE,
    ):
        pool = "search" if error.activity_type == activities.check_providers.__name__ else "records"
        return (
            f"no worker of the pool {pool} took the run's first work before its deadline: start one with "
            f"`research serve` (this machine) or `research worker --pool {pool}` (a cluster), and ask again"
        )
    return str(error.cause or error)


def describe_unforeseen(error: Exception) -> str:
    """What to say of an error of the product itself: its type and place, never its words, which may be a page's."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = "/".join(last.filename.split("/")[-2:])
    return f"internal error: {type(error).__name__} at {place}:{last.lineno}"


def reason_of(error: ActivityError) -> str:
    """A short typed reason for a failed call: the kind of an unreadable source, else the failure's type."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        return str(detail.get("kind") or cause.type or "failed")
    return type(cause).__name__ if cause else "failed"


def spent_by(error: ActivityError) -> Usage:
    """What the attempts of a failed call paid for nothing, as far as the last of them told."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        told = [part.get("usage") for part in cause.details if isinstance(part, dict)]
    else:
        # Out of time: heartbeats handed on what `activities.attempts` counted.
        told = list(cause.last_heartbeat_details) if isinstance(cause, ActivityTimeout) else []
    return next((Usage.model_validate(usage) for usage in told if isinstance(usage, dict)), Usage())
