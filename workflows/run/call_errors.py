"""Meaning of a failed call for its run. Pure."""

import traceback
from collections.abc import Sequence
from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from contracts import activities, failures
from contracts.outcome import Usage

GIVEN_UP = (failures.INPUT_UNPROCESSABLE, failures.WORKER_LOST)


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
    told = _first_dict(beats) or details_of(cause)
    return Usage.model_validate(told.get("usage") or {})


def describe_unstarted(error: ActivityError) -> str:
    """Describe the failure of a call that a run cannot begin without."""
    cause = last_failure(error)
    if isinstance(cause, ActivityTimeout) and cause.type in (
        TimeoutType.SCHEDULE_TO_START,
        TimeoutType.SCHEDULE_TO_CLOSE,
    ):
        pool = "search" if error.activity_type == activities.check_providers.__name__ else "records"
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
