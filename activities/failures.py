"""Failures of outside calls as Temporal sees them: type, whether they are retried, and the retry delay.

Temporal retries a transient failure until the call times out (`workflows/run/calls.py`). The one dictionary in
`details` may have `kind` (of unusable text or of a refused call), `problem` (a fault of an answer, fit for a repair
prompt), `usage` (cost without a result, including earlier attempts), `model`, and `defect` (an unforeseen error).
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from contracts import failures
from contracts.base import CheckedModel
from contracts.defects import describe_error
from contracts.outcome import Usage
from contracts.packages import packages_by_module
from providers import errors
from providers.errors import ProviderError, Retryable

log = structlog.get_logger()

RUN_ANSWER: Final = timedelta(seconds=5)
"""How long the server may take to say if a run is open."""


@dataclass(frozen=True)
class Area:
    """A kind of outside service, with its failure types for the errors that all kinds share."""

    unavailable: str
    rejected: str
    not_configured: str
    malformed: str = ""
    """Of answers that stay malformed; empty where that is an outage like any other."""


MODELS: Final = Area(failures.MODEL_UNAVAILABLE, failures.MODEL_REJECTED, failures.MODEL_REJECTED)
SEARCHING: Final = Area(
    failures.SEARCH_UNAVAILABLE, failures.SEARCH_REJECTED, failures.SEARCH_NOT_CONFIGURED, failures.SEARCH_MALFORMED
)
READING: Final = Area(failures.SOURCE_UNAVAILABLE, failures.SOURCE_UNREADABLE, failures.SOURCE_UNREADABLE)
NOTIFYING: Final = Area(failures.NOTICE_UNDELIVERED, failures.NOTICE_REFUSED, failures.NOTICE_REFUSED)
RECORDS: Final = Area(failures.STORE_UNAVAILABLE, failures.REFUSED, failures.REFUSED)


def _always(name: str) -> Callable[[Area], str]:
    return lambda _: name


FAILURES: Final[tuple[tuple[type[ProviderError], Callable[[Area], str]], ...]] = (
    # Transient.
    (errors.RateLimited, _always(failures.RATE_LIMITED)),  # 429, or a limit of ours: it names the delay
    (errors.CallInFlight, _always(failures.CALL_IN_FLIGHT)),  # another attempt finishes the call, or its lease expires
    (errors.StorageFull, _always(failures.STORAGE_FULL)),  # an operator frees space
    (errors.ProcessStalled, _always(failures.PROCESS_STALLED)),  # the machine continues, or has less to do
    (errors.StoreUnavailable, _always(failures.STORE_UNAVAILABLE)),  # the object store or Redis recovers
    (errors.AnswerMalformed, lambda area: area.malformed or area.unavailable),  # retried for a minute
    (errors.Unavailable, lambda area: area.unavailable),  # 5xx, 529, timeout, refused or reset connection, DNS failure
    # Permanent.
    (errors.WorkerLost, _always(failures.WORKER_LOST)),  # the call killed several workers and would kill the next
    (errors.InputUnprocessable, _always(failures.INPUT_UNPROCESSABLE)),  # text that crashed the processes handling it
    (errors.SourceUnreadable, _always(failures.SOURCE_UNREADABLE)),  # the document itself, or a rule against reading it
    (errors.CorpusUnknown, _always(failures.CORPUS_UNAVAILABLE)),  # only an operator can add a corpus
    (errors.ContentCorrupt, _always(failures.CONTENT_CORRUPT)),  # stored text never changes
    (errors.ContentMissing, _always(failures.CONTENT_MISSING)),  # the same
    (errors.AnswerCut, _always(failures.ANSWER_CUT)),  # paid: a repair is a call of its own
    (errors.AnswerRefused, _always(failures.ANSWER_REFUSED)),  # paid: the model declines this content
    (errors.AnswerUnusable, _always(failures.INVALID_MODEL_OUTPUT)),  # paid: a repair is a call of its own
    (errors.NotConfigured, lambda area: area.not_configured),  # 401, 402, 403, a missing key: an operator must act
    (errors.Rejected, lambda area: area.rejected),  # 400, 404 of a model, 413, 422: asked again, it answers the same
)
"""Failure type by error and kind of service, subclasses before their parents."""

EXPECTED_ERRORS: Final = (errors.RateLimited, errors.CallInFlight, errors.SourceUnreadable)
"""Routine failures: benign for Temporal, and not logged."""
MAX_BACKOFF_SECONDS: Final = 30.0  # after several failures that named no delay: 1 s, 2 s, 4 s, … up to this
MAX_DELAY_SECONDS: Final = 300.0  # longest Retry-After that is obeyed
MAX_JITTER: Final = 1.1  # by which a delay is lengthened at most
PROGRAM_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors of code and its arguments, as opposed to those of a disk or a network."""
MAX_PROGRAM_ERRORS: Final = 3  # attempts that fail in this way before the call is given up
MALFORMED_SECONDS: Final = 60.0
"""Time for retries of a call whose service does not answer in the documented form."""
MAX_LOSSES: Final = 3  # worker deaths after which a call is given up
LEAVING_SECONDS: Final = 0.25
"""Time that a heartbeat gets to leave the process, after an attempt that ended without a word."""
FIRST_BEAT_SECONDS: Final = 1.25
"""Most searches, pages and short calls end sooner. A heartbeat costs the server a sixth of a short activity."""
BEAT_SECONDS: Final = 2.5
"""After 15 s without a heartbeat, a call is lost: a pause of ten seconds fits, and its lease of 12 s has ended.

The answer to a heartbeat brings a cancellation.
"""


class AttemptHistory(CheckedModel):
    """Earlier attempts of a call, carried to the next one by heartbeat details.

    An attempt that sent no heartbeat is no loss: a worker that stands still, or a host that is cut off, is given
    attempts that it never begins, one after the other, while its requests for work are open on the server.
    """

    reported: int = 0  # number of the newest attempt that reported a failure itself
    waiting: bool = False  # true while a service works on the call, and no text from outside is handled here
    usage: Usage = Usage()  # their cost without a result
    losses: int = 0  # attempts that had begun, and whose worker died
    begun: int = 0  # number of the attempt that sends this

    @property
    def follows_silence(self) -> bool:
        """Whether an attempt before this one ended without a report."""
        return self.begun - 1 > self.reported


@asynccontextmanager
async def attempt(
    area: Area, patience: float | None = None, max_wait: float | None = None, *, handles_text: bool = True
) -> AsyncIterator[AttemptHistory]:
    """Send heartbeats while the block runs, and raise its provider errors as `ApplicationError`.

    An unavailable service (not a store of ours) is retried for `patience` seconds after the first attempt, a
    rate-limited one for `max_wait`; None: until the call times out. A call that `handles_text` from outside is given up
    after `MAX_LOSSES` deaths of workers that had begun it; any other is made again, since only the machine can be the
    cause.
    """
    began = time.monotonic()
    info = activity.info()
    history = attempt_history(info.attempt, info.heartbeat_details)
    try:
        with send_heartbeats(lambda: _to_details(history)):
            if handles_text and history.losses >= MAX_LOSSES:
                raise errors.WorkerLost(f"{history.losses} workers were lost while they tried this")  # noqa: TRY301
            if handles_text and history.follows_silence:
                activity.heartbeat(*_to_details(history))
                await asyncio.sleep(LEAVING_SECONDS)  # a text that ends this process is known to have done so
            yield history
    except ProviderError as error:
        remaining = _seconds_left(error, began, patience, max_wait)
        # Without its cause: a client library's message may repeat the request.
        raise _record(history, application_error(error, area, history.usage, remaining, info.attempt), error) from None
    except ApplicationError as failure:
        raise _record(history, failure) from None
    except Exception as error:  # noqa: BLE001  the edge of the process: the error's message may hold text of a page
        raise _record(history, _unforeseen(error, info.attempt)) from None
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or not details.worker_shutdown or details.cancel_requested:
            raise
        # A worker's shutdown is not a failure of the call: another worker retries at once.
        stopped = ApplicationError(
            "the worker was stopped",
            type=failures.WORKER_STOPPED,
            next_retry_delay=timedelta(milliseconds=100),
            category=ApplicationErrorCategory.BENIGN,
        )
        raise _record(history, stopped) from None


def is_repeated(error: ProviderError, began: float, patience: float | None, max_wait: float | None) -> bool:
    """Return whether `attempt`, with these limits and begun at this time, has the call made again after the error.

    Times are in seconds, `began` by the monotonic clock.
    """
    if not isinstance(error, Retryable):
        return False
    left = _seconds_left(error, began, patience, max_wait)
    return left is None or _delay(error, activity.info().attempt) * MAX_JITTER <= left


def _seconds_left(error: ProviderError, began: float, patience: float | None, max_wait: float | None) -> float | None:
    """Return the seconds that are left for retries; None if nothing but the time of the call limits them."""
    limit = max_wait if isinstance(error, errors.RateLimited) else patience
    if isinstance(error, errors.AnswerMalformed):
        limit = MALFORMED_SECONDS if limit is None else min(limit, MALFORMED_SECONDS)
    is_service = isinstance(error, (errors.RateLimited, errors.Unavailable))
    if limit is None or not is_service or isinstance(error, errors.StoreUnavailable):
        return None
    info = activity.info()
    earlier = info.current_attempt_scheduled_time - info.scheduled_time  # both by the server's clock
    return limit - (earlier.total_seconds() + time.monotonic() - began)


def _delay(error: Retryable, number: int) -> float:
    """Return the seconds until the attempt after attempt `number`: those that a service named, else more each time."""
    if error.retry_after is None:
        return min(MAX_BACKOFF_SECONDS, 2.0 ** min(number - 1, 10))
    return max(0.0, min(error.retry_after, MAX_DELAY_SECONDS))


@contextmanager
def waiting_for_service(history: AttemptHistory) -> Iterator[None]:
    """Mark the block as the work of a service: a worker that dies during it was not killed by a text.

    The next heartbeat, after 2.5 s at most, says so; after an attempt without a report one is sent at once, so that
    several deaths within a second of a start are not blamed on the call.
    """
    history.waiting = True
    if history.follows_silence:
        activity.heartbeat(*_to_details(history))
    try:
        yield
    finally:
        history.waiting = False


def application_error(
    error: ProviderError,
    area: Area,
    spent: Usage | None = None,
    seconds_left: float | None = None,
    number: int = 1,
) -> ApplicationError:
    """Translate the error of attempt `number`.

    `spent` is the cost of earlier attempts, `seconds_left` the time for retries (None: any).
    """
    name_of = next(name_of for kind, name_of in FAILURES if isinstance(error, kind))
    delay = 0.0
    final = True
    if isinstance(error, Retryable):
        delay = _delay(error, number)
        delay *= random.uniform(1.0, MAX_JITTER)  # noqa: S311  calls that failed together should not return together
        final = seconds_left is not None and delay > seconds_left
    usage = (spent or Usage()).plus(error.usage)
    details: dict[str, Any] = {}
    if isinstance(error, (errors.UnusableText, errors.InvalidCall)):
        details["kind"] = error.kind
    if isinstance(error, errors.InputUnprocessable) and error.defect is not None:
        details["defect"] = error.defect.model_dump(mode="json")
    if isinstance(error, errors.AnswerUnusable):
        details["model"] = error.model
    if isinstance(error, errors.InvalidOutput):
        details["problem"] = str(error)[:600]
    if isinstance(error, errors.AnswerUnusable) or usage != Usage():
        details["usage"] = usage.model_dump(mode="json")
    expected = isinstance(error, EXPECTED_ERRORS)
    return ApplicationError(
        (str(error) or type(error).__name__)[:300],
        *([details] if details else []),
        type=name_of(area),
        non_retryable=final,
        next_retry_delay=None if final else timedelta(seconds=delay),
        category=ApplicationErrorCategory.BENIGN if expected else ApplicationErrorCategory.UNSPECIFIED,
    )


def _unforeseen(error: Exception, number: int) -> ApplicationError:
    """Log the unforeseen error of attempt `number` with its frames, and return its failure.

    An error that depends on the arguments alone is not retried for ever: waiting does not repair it.
    """
    defect = describe_error(error, packages_by_module())
    log.error("call.defect", error=defect.error, place=defect.place, frames=defect.frames)
    final = isinstance(error, PROGRAM_ERRORS) and number >= MAX_PROGRAM_ERRORS
    details = {"defect": defect.model_dump(mode="json")}
    return ApplicationError(defect.text, details, type=defect.error, non_retryable=final)


def attempt_history(number: int, heartbeat_details: Any) -> AttemptHistory:
    """Read the history from the last heartbeat, for attempt `number`.

    The attempt that sent it is a loss unless it reported its end or waited for a service.
    """
    history = AttemptHistory.model_validate(next((part for part in heartbeat_details if isinstance(part, dict)), {}))
    is_lost = history.begun > history.reported and not history.waiting
    return history.with_fields(waiting=False, losses=history.losses + is_lost, begun=number)


def check_permission(permitted: bool) -> None:
    """Raise a non-retryable `ApplicationError` of type `NotPermitted` unless permitted."""
    if not permitted:
        message = "not asked: a person has yet to approve the plan of this run (`research approve`)"
        raise ApplicationError(message, type=failures.NOT_PERMITTED, non_retryable=True)


async def is_attempt_lost() -> bool:
    """Return true if this attempt was cancelled because the server has given it up, and neither its run nor its worker.

    That is so after a time without heartbeats, as on a loaded machine: the next attempt is due. The server answers
    the heartbeat of such an attempt as it does that of a run that has ended, so the run is looked at.
    """
    details = activity.cancellation_details()
    if details is None or details.cancel_requested or details.worker_shutdown:
        return False
    if details.timed_out:
        return True
    info = activity.info()
    if not details.not_found or info.workflow_id is None:
        return False
    run = activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)
    try:
        description = await run.describe(rpc_timeout=RUN_ANSWER)
    except RPCError:
        return True  # a server that does not answer has given up attempts more likely than ended runs
    return description.status is WorkflowExecutionStatus.RUNNING


def count(name: str, description: str, **attributes: str | bool) -> None:
    """Increment a counter of the worker's metrics."""
    if activity.in_activity():
        activity.metric_meter().create_counter(name, description).add(1, attributes)


@contextmanager
def send_heartbeats(
    details: Callable[[], list[Any]] = list, *, first: float = FIRST_BEAT_SECONDS, interval: float = BEAT_SECONDS
) -> Iterator[None]:
    """Send a heartbeat after `first` seconds, then every `interval` seconds, until the block ends.

    The next attempt gets the newest `details` as `activity.info().heartbeat_details`; the server keeps those of an
    earlier attempt until then.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def beat() -> None:
        nonlocal timer
        activity.heartbeat(*details())
        timer = loop.call_later(interval, beat)

    timer = loop.call_later(first, beat)  # a task would cost more than a short activity itself
    try:
        yield
    finally:
        timer.cancel()


def _record(history: AttemptHistory, failure: ApplicationError, error: ProviderError | None = None) -> ApplicationError:
    """Record a failure in the history, the metrics and the log, and return it."""
    usage = history.usage.plus(error.usage) if error else history.usage
    activity.heartbeat(*_to_details(history.with_fields(reported=history.begun, waiting=False, usage=usage)))
    info = activity.info()
    kind = failure.type or "unknown"
    description = "Attempts that failed, by activity, type, and whether the call was given up"
    count("research_call_failures", description, activity=info.activity_type, type=kind, final=failure.non_retryable)
    if isinstance(error, errors.RateLimited) and error.service:
        count("research_refusals", "Calls that a service refused because there were too many", service=error.service)
    if failure.category is not ApplicationErrorCategory.BENIGN:
        log.warning(
            "call.failed",
            activity=info.activity_type,
            research_id=info.workflow_id,
            failure_reason=kind,
            attempt=info.attempt,
            final=failure.non_retryable,
        )
    return failure


def _to_details(history: AttemptHistory) -> list[dict[str, Any]]:
    """Pack a history into heartbeat details."""
    return [history.model_dump(mode="json", exclude_defaults=True)]
