"""How often a call is tried: what failed in passing is counted, being told to wait is not.

The engine is asked for attempts without number, so that waiting can never use up a call; the counting is done here.
Each attempt tells its heartbeats how earlier ones ended and what they paid for nothing, and the engine hands that to
the next.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import Area, application_error
from contracts.usage import Usage
from providers.errors import CallInFlight, ProviderError, RateLimited, WorkerLost, usage_of

MOST_FAILURES: Final = 3
"""What failed in passing so often is given up (architecture, section 5)."""
FIRST_PAUSE: Final = timedelta(seconds=1)
MOST_LOSSES: Final = 3
"""Attempts that ended without a word: the worker died. A document that kills its workers is not tried for ever."""


@dataclass(frozen=True)
class Past:
    """How the attempts before this one ended."""

    failures: int = 0
    waits: int = 0
    losses: int = 0
    spent: Usage = field(default_factory=Usage)
    """What was paid although nothing came of it."""


def past_of(attempt: int, details: tuple[object, ...] | list[object]) -> Past:
    """From the number of this attempt and what the last heartbeat told: whatever is not accounted for was lost."""
    known = [value for value in details[:2] if isinstance(value, int)]
    failures, waits = known if len(known) == 2 else (0, 0)
    spent = Usage.model_validate(details[2]) if len(details) > 2 and isinstance(details[2], dict) else Usage()
    return Past(failures, waits, max(0, attempt - 1 - failures - waits), spent)


@asynccontextmanager
async def count_attempts(area: Area, *, most_failures: int | None = MOST_FAILURES) -> AsyncIterator[Past]:
    """Beat while the block runs; its provider errors come out as `ApplicationError`, final when it was tried enough.

    The block is given how earlier attempts ended. With no `most_failures` the retry policy says how often, and
    how long after one another, what fails in passing is tried.
    """
    info = activity.info()
    past = past_of(info.attempt, list(info.heartbeat_details))
    try:
        async with send_heartbeats(*_beat_details(past.failures, past.waits, past.spent)):
            if past.losses >= MOST_LOSSES:
                raise WorkerLost(f"{past.losses} workers were lost while they tried this")
            yield past
    except (RateLimited, CallInFlight) as error:
        activity.heartbeat(*_beat_details(past.failures, past.waits + 1, past.spent.plus(usage_of(error))))
        raise application_error(error, area, spent=past.spent) from None
    except ProviderError as error:
        activity.heartbeat(*_beat_details(past.failures + 1, past.waits, past.spent.plus(usage_of(error))))
        final = most_failures is not None and past.failures + 1 >= most_failures
        pause = None if most_failures is None else _pause(past)
        # Without its cause: a client library's own message may repeat what was sent to it.
        raise application_error(error, area, final=final, pause=pause, spent=past.spent) from None
    except ApplicationError as error:  # translated already, by a part of the work that has an area of its own
        activity.heartbeat(*_beat_details(past.failures + 1, past.waits, past.spent))
        if most_failures is not None and past.failures + 1 >= most_failures:
            raise _final(error) from None
        raise


def _beat_details(failed: int, waited: int, spent: Usage) -> tuple[Any, ...]:
    """What a heartbeat hands on; few calls pay for nothing."""
    return (failed, waited) if spent == Usage() else (failed, waited, spent.model_dump(mode="json"))


def _pause(past: Past) -> timedelta:
    """How long to wait where the error does not say: the server counts attempts that only waited, too."""
    return FIRST_PAUSE * (1 << past.failures)


def _final(error: ApplicationError) -> ApplicationError:
    """The same failure, not to be tried again."""
    return ApplicationError(error.message, *error.details, type=error.type, non_retryable=True, category=error.category)


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
