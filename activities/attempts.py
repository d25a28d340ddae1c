"""How often a call is tried: what failed in passing is counted, being told to wait is not.

The engine is asked for attempts without number, so that waiting can never use up a call; the counting is done here.
Each attempt tells its heartbeats how earlier ones ended, and the engine hands that to the next.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import Area, application_error
from activities.heartbeats import heartbeating
from providers.errors import CallInFlight, ProviderError, RateLimited, WorkerLost

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


def past_of(attempt: int, details: tuple[object, ...] | list[object]) -> Past:
    """From the number of this attempt and what the last heartbeat told: whatever is not accounted for was lost."""
    known = [value for value in details[:2] if isinstance(value, int)]
    failures, waits = known if len(known) == 2 else (0, 0)
    return Past(failures, waits, max(0, attempt - 1 - failures - waits))


@asynccontextmanager
async def attempted(area: Area) -> AsyncIterator[None]:
    """Beat while the block runs; its provider errors come out as `ApplicationError`, final when it was tried enough."""
    info = activity.info()
    past = past_of(info.attempt, list(info.heartbeat_details))
    try:
        async with heartbeating(past.failures, past.waits):
            if past.losses >= MOST_LOSSES:
                raise WorkerLost(f"{past.losses} workers were lost while they tried this")
            yield
    except (RateLimited, CallInFlight) as error:
        activity.heartbeat(past.failures, past.waits + 1)
        raise application_error(error, area) from None
    except ProviderError as error:
        activity.heartbeat(past.failures + 1, past.waits)
        # Without its cause: a client library's own message may repeat what was sent to it.
        raise application_error(error, area, final=past.failures + 1 >= MOST_FAILURES, pause=_pause(past)) from None
    except ApplicationError as error:  # translated already, by a part of the work that has an area of its own
        activity.heartbeat(past.failures + 1, past.waits)
        if past.failures + 1 >= MOST_FAILURES:
            raise _final(error) from None
        raise


def _pause(past: Past) -> timedelta:
    """How long to wait where nobody says: the engine would count the attempts that were told to wait, too."""
    return FIRST_PAUSE * (1 << past.failures)


def _final(error: ApplicationError) -> ApplicationError:
    """The same failure, not to be tried again."""
    return ApplicationError(error.message, *error.details, type=error.type, non_retryable=True, category=error.category)
