"""What a failed call means for a run. Pure."""

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from contracts import failures


def is_cancelled(error: ActivityError) -> bool:
    """Whether an activity ended because it was cancelled."""
    return isinstance(error.cause, CancelledError)


def must_stop(error: ActivityError) -> bool:
    """Whether going on would only waste work: there is no room left to keep anything."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == failures.STORAGE_FULL


def reason_of(error: ActivityError) -> str:
    """A short typed reason for a failed call: the kind of an unreadable source, else the failure's type."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        return str(detail.get("kind") or cause.type or "failed")
    return type(cause).__name__ if cause else "failed"
