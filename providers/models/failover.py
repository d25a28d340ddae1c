"""Failover between models: which one is tried after a failure, how the time is shared, which error is raised. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Retryable, Unavailable
from providers.models.model_directory import ModelCandidate

SHARE_OF_TIME_LIMIT: Final = 0.9
LONGEST_MARGIN_SECONDS: Final = 10.0
SHARE_OF_ONE: Final = 0.7
"""Of the time that is left, for a model after which another one can be tried."""
FAILURES_OF_ONE_MODEL: Final = {"unknown_model", "unknown_address", "unsupported_parameter"}
MOST_NAMED: Final = 4


def time_for_call(limit_seconds: float) -> float:
    """Seconds that a call may take so that its failure is reported within the caller's time limit."""
    return max(limit_seconds * SHARE_OF_TIME_LIMIT, limit_seconds - LONGEST_MARGIN_SECONDS)


def time_share(left_seconds: float, *, last: bool) -> float:
    """Seconds for the next model: the last one has all that is left."""
    return left_seconds if last else left_seconds * SHARE_OF_ONE


@dataclass
class Failover:
    """The models of one call: those still to try, those whose circuit is open, and those that failed."""

    waiting: list[ModelCandidate]
    skipped: list[ModelCandidate] = field(default_factory=list)
    failures: list[tuple[ModelCandidate, ProviderError]] = field(default_factory=list)

    def note_failure(self, candidate: ModelCandidate, error: ProviderError) -> None:
        """Keep the error, and of the models still to try those that may be tried after it."""
        self.failures.append((candidate, error))
        self.waiting = [other for other in self.waiting if _may_follow(error, candidate, other)]

    def warnings(self, answering: ModelCandidate) -> list[str]:
        """One line for each preferred model that did not answer."""
        reasons = [(one, type(error).__name__) for one, error in self.failures]
        reasons += [(one, "it failed shortly before") for one in self.skipped]
        return [f"model {one.shown} did not answer ({reason}): {answering.shown} did" for one, reason in reasons]

    def error(self) -> ProviderError:
        """The error of a call without an answer: a retryable one if there is any, else the preferred model's."""
        if len(self.failures) == 1:
            return self.failures[0][1]
        named = (f"{one.shown} ({type(error).__name__})" for one, error in self.failures[:MOST_NAMED])
        message = f"no model answered: {', '.join(named)}"
        for kind in (RateLimited, Unavailable, Retryable):
            errors = [error for _, error in self.failures if isinstance(error, kind)]
            if errors:
                return kind(message, retry_after=_shortest(errors))
        return self.failures[0][1]


def _shortest(errors: Sequence[Retryable]) -> float | None:
    return min((error.retry_after for error in errors if error.retry_after is not None), default=None)


def _may_follow(error: ProviderError, failed: ModelCandidate, following: ModelCandidate) -> bool:
    """Whether the following model may be tried after this error of another one.

    A request refused because of its content is not tried elsewhere; a prompt that is too long fits only into a larger
    window.
    """
    if isinstance(error, InvalidCall):
        larger = following.capabilities.window > failed.capabilities.window
        return error.kind in FAILURES_OF_ONE_MODEL or (error.kind == "context_too_long" and larger)
    return isinstance(error, (Retryable, NotConfigured))
