"""Let a cancelled call take in the answer that is just arriving, and start no new request."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")

LAST_MOMENT_SECONDS: Final = 0.2
"""An answer that is on its way is in by then; a cancellation takes this much longer at the most."""


class _Ending:
    """Whether the call was cancelled; seen by everything that works for it."""

    cancelled = False


_ending: ContextVar[_Ending | None] = ContextVar("ending", default=None)


async def finish_within_grace(work: Coroutine[Any, Any, T], seconds: float = LAST_MOMENT_SECONDS) -> T:
    """The outcome of the work. Cancelled, it has so many seconds to come to its end; then it is cancelled, too.

    An answer that arrives in the moment of a cancellation was paid for: the work itself stores it. The
    cancellation goes on afterwards, whatever came of it.
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
    """To be called before a request that is paid for. Raises `asyncio.CancelledError` in a last moment."""
    ending = _ending.get()
    if ending is not None and ending.cancelled:
        raise asyncio.CancelledError
