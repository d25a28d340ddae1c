"""How often a call is tried: what failed in passing is counted; being told to wait, a full disk and a stop are not.

The engine is asked for attempts without number, so that waiting can never use up a call; the counting is done here.
Each attempt tells its heartbeats how earlier ones ended and what they paid for nothing, and the engine hands that to
the next.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failure_translation import Area, application_error
from activities.metrics import CALL_FAILURES, REFUSALS, count
from contracts import failures as kinds
from contracts.outcome import Usage
from providers.errors import CallInFlight, ProviderError, RateLimited, StorageFull, WorkerLost, usage_of

log = structlog.get_logger()

MOST_FAILURES: Final = 3
"""What failed in passing so often is given up (architecture, section 5)."""
MOST_FAILURES_OF_STORES: Final = 10
"""Our own stores are tried for about a minute: what they hold cannot be had elsewhere."""
FULL_DISK_SECONDS: Final = 300.0
"""How long book-keeping waits for room, which has no deadline of its own."""
FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=10)
"""Also between two looks at a full disk: one that has room again is noticed after this long."""
AT_ONCE: Final = timedelta(milliseconds=100)
MOST_LOSSES: Final = 3
"""Attempts that ended without a word: the worker died. A document that kills its workers is not tried for ever."""


@dataclass(frozen=True)
class Past:
    """How the attempts before this one ended."""

    failures: int = 0
    waits: int = 0
    """Those that were told to wait, found the disk full, or were stopped together with their worker."""
    losses: int = 0
    spent: Usage = field(default_factory=Usage)
    """What was paid although nothing came of it."""
    begun: float | None = None
    """When the first attempt that told anything ended, in seconds since the epoch; none before that."""


def past_of(attempt: int, details: tuple[object, ...] | list[object]) -> Past:
    """From the number of this attempt and what the last heartbeat told: whatever is not accounted for was lost."""
    known = [value for value in details[:2] if isinstance(value, int)]
    failures, waits = known if len(known) == 2 else (0, 0)
    spent = next((Usage.model_validate(value) for value in details if isinstance(value, dict)), Usage())
    begun = next((value for value in details if isinstance(value, float)), None)
    return Past(failures, waits, max(0, attempt - 1 - failures - waits), spent, begun)


def _now() -> float:
    return datetime.now(UTC).timestamp()


@asynccontextmanager
async def count_attempts(
    area: Area,
    *,
    most_failures: int = MOST_FAILURES,
    most_losses: int = MOST_LOSSES,
    full_disk_seconds: float | None = None,
) -> AsyncIterator[Past]:
    """Beat while the block runs; its provider errors come out as `ApplicationError`, final when it was tried enough.

    The block is given how earlier attempts ended. A full disk is waited for until the time of the call is over, or
    `full_disk_seconds` after it was asked for.
    """
    info = activity.info()
    past = past_of(info.attempt, list(info.heartbeat_details))
    try:
        async with send_heartbeats(*_beat_details(past)):
            if past.losses >= most_losses:
                raise lost_workers(past.losses)
            yield past
    except (RateLimited, CallInFlight, StorageFull) as error:
        full = isinstance(error, StorageFull)
        final = full and _waited(info) > (full_disk_seconds or float("inf"))
        pause = _pause(past.waits) if full else None
        activity.heartbeat(*_beat_details(past, waits=1, spent=usage_of(error)))
        if isinstance(error, RateLimited) and error.service:
            count(REFUSALS, service=error.service)
        raise _told(application_error(error, area, final=final, pause=pause, spent=past.spent)) from None
    except ProviderError as error:
        activity.heartbeat(*_beat_details(past, failures=1, spent=usage_of(error)))
        final = past.failures + 1 >= most_failures
        # Without its cause: a client library's own message may repeat what was sent to it.
        raise _told(
            application_error(error, area, final=final, pause=_pause(past.failures), spent=past.spent)
        ) from None
    except ApplicationError as error:  # translated already, by a part of the work that has an area of its own
        activity.heartbeat(*_beat_details(past, failures=1))
        most = MOST_FAILURES_OF_STORES if error.type == kinds.STORE_UNAVAILABLE else most_failures
        raise _told(_again(error, past, final=past.failures + 1 >= most)) from None
    except asyncio.CancelledError:
        if not _is_stopped():
            raise
        # A stop of the worker says nothing about the call: another worker takes it up at once.
        activity.heartbeat(*_beat_details(past, waits=1))
        raise ApplicationError(
            "the worker was stopped",
            type=kinds.WORKER_STOPPED,
            next_retry_delay=AT_ONCE,
            category=ApplicationErrorCategory.BENIGN,
        ) from None


def _told(error: ApplicationError) -> ApplicationError:
    """The failure, counted by its type and logged: the SDK's own metrics know no types of ours."""
    info, kind = activity.info(), error.type or "unknown"
    count(CALL_FAILURES, activity=info.activity_type, type=kind, final=error.non_retryable)
    if error.category is not ApplicationErrorCategory.BENIGN:
        log.warning(
            "call.failed",
            activity=info.activity_type,
            research_id=info.workflow_id,
            failure_reason=kind,
            attempt=info.attempt,
            final=error.non_retryable,
        )
    return error


def lost_workers(losses: int) -> WorkerLost:
    """Why a call is given up that so many workers did not survive."""
    return WorkerLost(f"{losses} workers were lost while they tried this")


def _is_stopped() -> bool:
    """Whether a cancellation comes from the worker's own stop, and not from the run."""
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown and not details.cancel_requested


def _waited(info: activity.Info) -> float:
    """Seconds since the call was asked for, with all its attempts."""
    return _now() - info.scheduled_time.timestamp()


def _beat_details(past: Past, *, failures: int = 0, waits: int = 0, spent: Usage | None = None) -> tuple[Any, ...]:
    """What a heartbeat hands on: the past with what this attempt adds. Few calls pay for nothing."""
    after = past.spent.plus(spent or Usage())
    paid = () if after == Usage() else (after.model_dump(mode="json"),)
    begun = () if past.begun is None and not failures + waits else (past.begun or _now(),)
    return (past.failures + failures, past.waits + waits, *paid, *begun)


def _pause(before: int) -> timedelta:
    """How long to wait where the error does not say: by our own count, for the server counts every attempt."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(before, 10)))


def _again(error: ApplicationError, past: Past, *, final: bool) -> ApplicationError:
    """The same failure with a pause of ours, or not to be tried again."""
    final = final or error.non_retryable
    return ApplicationError(
        error.message,
        *error.details,
        type=error.type,
        non_retryable=final,
        next_retry_delay=None if final else error.next_retry_delay or _pause(past.failures),
        category=error.category,
    )


FIRST_BEAT_SECONDS: Final = 1.25
"""Most searches, pages and short calls are done by then. A beat costs the server a sixth of what the whole of a short
activity does (decision 0019)."""
BEAT_SECONDS: Final = 0.5
"""Workers send one beat a second at most, so a cancellation arrives in about a second."""


@asynccontextmanager
async def send_heartbeats(
    *details: Any, first: float = FIRST_BEAT_SECONDS, interval: float = BEAT_SECONDS
) -> AsyncIterator[None]:
    """Beat after `first` seconds, then every `interval` seconds, until the block ends.

    `details` come back as `activity.info().heartbeat_details` in the next attempt: if there is anything to hand on,
    a beat goes at once.
    """
    if any(details):
        activity.heartbeat(*details)
    beating = asyncio.create_task(_beat(first, interval, details))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])
    if not beating.cancelled():
        beating.result()


async def _beat(first: float, interval: float, details: tuple[Any, ...]) -> None:
    await asyncio.sleep(first)
    while True:
        activity.heartbeat(*details)
        await asyncio.sleep(interval)
