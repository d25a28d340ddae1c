"""The one translator from the provider error tree to Temporal's failures.

The catcher finds the type name (`contracts.failures`) and one dictionary in `details`:

- `kind`: why a document cannot be used (`SourceUnreadable`), or what it did to its reader (`InputUnprocessable`);
- `problem`: what is wrong with an answer, at most 600 characters, fit for a repair prompt (`InvalidModelOutput` only);
- `usage`: paid for nothing, by this attempt and by those before it, the fields of `contracts.outcome.Usage`;
- `model`: the model that gave an unusable answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from contracts import failures
from contracts.outcome import Usage
from providers import errors

MESSAGE_CHARACTERS: Final = 300
PROBLEM_CHARACTERS: Final = 600
LONGEST_DELAY_SECONDS: Final = 300.0
"""A longer wait is the workflow's business, not a retry's."""


@dataclass(frozen=True)
class Area:
    """What "unavailable", "rejected" and "not configured" are called in one part of the outside world."""

    unavailable: str
    rejected: str
    not_configured: str | None = None
    """None: as what is rejected."""


MODELS: Final = Area(failures.MODEL_UNAVAILABLE, failures.MODEL_REJECTED)
SEARCHING: Final = Area(failures.SEARCH_UNAVAILABLE, failures.SEARCH_REJECTED, failures.SEARCH_NOT_CONFIGURED)
READING: Final = Area(failures.SOURCE_UNREADABLE, failures.SOURCE_UNREADABLE)
RECORDS: Final = Area(failures.STORE_UNAVAILABLE, failures.REFUSED)

TYPE_NAMES: Final[tuple[tuple[type[errors.ProviderError], str], ...]] = (
    (errors.RateLimited, failures.RATE_LIMITED),
    (errors.CallInFlight, failures.CALL_IN_FLIGHT),
    (errors.WorkerLost, failures.WORKER_LOST),
    (errors.InputUnprocessable, failures.INPUT_UNPROCESSABLE),
    (errors.SourceUnreadable, failures.SOURCE_UNREADABLE),
    (errors.CorpusUnknown, failures.CORPUS_UNAVAILABLE),
    (errors.ContentCorrupt, failures.CONTENT_CORRUPT),
    (errors.ContentMissing, failures.CONTENT_MISSING),
    (errors.AnswerCut, failures.ANSWER_CUT),
    (errors.AnswerRefused, failures.ANSWER_REFUSED),
    (errors.AnswerUnusable, failures.INVALID_MODEL_OUTPUT),
    (errors.StorageFull, failures.STORAGE_FULL),
)
"""Subclasses stand before their parents."""

EXPECTED: Final = (errors.RateLimited, errors.CallInFlight, errors.SourceUnreadable)
"""Part of everyday work: no entry in the worker's error log."""


def application_error(
    error: errors.ProviderError,
    area: Area,
    *,
    final: bool = False,
    pause: timedelta | None = None,
    spent: Usage | None = None,
) -> ApplicationError:
    """The failure that Temporal is told.

    `final` forbids another attempt although the error allows one; `pause` is the time until it where the error says
    nothing; `spent` is what earlier attempts paid for nothing.
    """
    retryable = isinstance(error, (errors.Retryable, errors.StorageFull)) and not final
    details = _details(error, spent or Usage())
    category = ApplicationErrorCategory.BENIGN if isinstance(error, EXPECTED) else ApplicationErrorCategory.UNSPECIFIED
    return ApplicationError(
        (str(error) or type(error).__name__)[:MESSAGE_CHARACTERS],
        *([details] if details else []),
        type=_type_name(error, area),
        non_retryable=not retryable,
        next_retry_delay=_delay(error, pause) if retryable else None,
        category=category,
    )


@contextmanager
def translate_errors(area: Area) -> Iterator[None]:
    """Raise provider errors of the block as `ApplicationError`; anything else passes.

    So does a full disk, which is called the same everywhere and is waited for.
    """
    try:
        yield
    except errors.StorageFull:
        raise
    except errors.ProviderError as error:
        # Without its cause: a client library's own message may repeat what was sent to it.
        raise application_error(error, area) from None


def _type_name(error: errors.ProviderError, area: Area) -> str:
    for kind, name in TYPE_NAMES:
        if isinstance(error, kind):
            return name
    if isinstance(error, errors.NotConfigured) and area.not_configured is not None:
        return area.not_configured
    return area.unavailable if isinstance(error, errors.Retryable) else area.rejected


def _delay(error: errors.ProviderError, otherwise: timedelta | None) -> timedelta | None:
    seconds = error.retry_after if isinstance(error, errors.Retryable) else None
    return otherwise if seconds is None else timedelta(seconds=min(LONGEST_DELAY_SECONDS, max(0.0, seconds)))


def _details(error: errors.ProviderError, spent: Usage) -> dict[str, Any]:
    details: dict[str, Any] = {}
    usage = spent.plus(errors.usage_of(error))
    if isinstance(error, (errors.SourceUnreadable, errors.InputUnprocessable)):
        details["kind"] = error.kind
    if isinstance(error, errors.AnswerUnusable) or usage != Usage():
        details["usage"] = usage.model_dump(mode="json")
    if isinstance(error, errors.AnswerUnusable):
        details["model"] = error.model
    if isinstance(error, errors.InvalidOutput):
        details["problem"] = error.problem[:PROBLEM_CHARACTERS]
    return details
