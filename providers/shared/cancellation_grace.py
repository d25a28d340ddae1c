"""A grace period for cancelled calls: an answer that is just arriving is still taken, and no new request is made."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")

LAST_MOMENT_SECONDS: Final = 0.2
"""Enough for an answer that is on its way; a cancellation takes this much longer at the most."""


class _Ending:
    """The state of a call, shared with everything that works for it."""

    cancelled = False


_ending: ContextVar[_Ending | None] = ContextVar("ending", default=None)


async def finish_within_grace(work: Coroutine[Any, Any, T], seconds: float = LAST_MOMENT_SECONDS) -> T:
    """Return the result of the work. Cancelled, let the work run for so many seconds more, then cancel it too.

    An answer that arrives in the moment of a cancellation was paid for: the work itself stores it. The cancellation
    continues afterwards.
    """
    ending = _Ending()
    outer = _ending.set(ending)
    task = asyncio.ensure_future(work)
    _ending.reset(outer)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        ending.cancelled = True
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # no caller is left to await it
        raise


def begin_request() -> None:
    """Mark the start of a request that is paid for. Raises `asyncio.CancelledError` in the grace period."""
    ending = _ending.get()
    if ending is not None and ending.cancelled:
        raise asyncio.CancelledError
