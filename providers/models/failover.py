"""Failures of models: whether another one is asked, how the time is shared, which error is told. Pure."""

from collections.abc import Sequence
from typing import Final

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Retryable, Unavailable
from providers.models.model_directory import ModelCandidate

SHARE_OF_TIME_LIMIT: Final = 0.9
LONGEST_MARGIN_SECONDS: Final = 10.0
SHARE_OF_ONE: Final = 0.7
"""Of the time that is left, for a model after which another could be asked."""
FAILURES_OF_ONE_MODEL: Final = {"unknown_model", "unknown_address", "unsupported_parameter"}
MOST_NAMED: Final = 4


def time_for_call(limit_seconds: float) -> float:
    """Seconds that a call may take so that the caller, whose limit is given, hears of its failure in time."""
    return max(limit_seconds * SHARE_OF_TIME_LIMIT, limit_seconds - LONGEST_MARGIN_SECONDS)


def time_share(left_seconds: float, *, last: bool) -> float:
    """Seconds for the next model: the last one has all that is left."""
    return left_seconds if last else left_seconds * SHARE_OF_ONE


def may_go_on(error: ProviderError, failed: ModelCandidate, following: ModelCandidate) -> bool:
    """Whether the following model may be asked after this error of another one.

    What a model refuses because of its content, every model is entitled to refuse; a prompt that is too long fits
    only into a larger window.
    """
    if isinstance(error, InvalidCall):
        larger = following.capabilities.window > failed.capabilities.window
        return error.kind in FAILURES_OF_ONE_MODEL or (error.kind == "context_too_long" and larger)
    return isinstance(error, (Retryable, NotConfigured))


def most_helpful(failures: Sequence[tuple[ModelCandidate, ProviderError]]) -> ProviderError:
    """The error of a call that nobody answered: to wait if that can help, else what the preferred model said."""
    if len(failures) == 1:
        return failures[0][1]
    named = (f"{one.shown} ({type(error).__name__})" for one, error in failures[:MOST_NAMED])
    told = f"no model answered: {', '.join(named)}"
    for kind in (RateLimited, Unavailable, Retryable):
        waiting = [error for _, error in failures if isinstance(error, kind)]
        if waiting:
            return kind(
                told, retry_after=min((w.retry_after for w in waiting if w.retry_after is not None), default=None)
            )
    return failures[0][1]


def replaced_warning(failed: ModelCandidate, reason: str, answered: ModelCandidate) -> str:
    """The line of the account for a model that another one stood in for."""
    return f"model {failed.shown} did not answer ({reason}): {answered.shown} did"
