"""Waiting for somebody else: the time in which this process itself did not run is not counted against them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

LOOKS: Final = 10
"""How often one wait is looked after; a standstill of this process counts as one look, however long it was."""


@asynccontextmanager
async def patience(seconds: float) -> AsyncIterator[None]:
    """Give up what the block waits for after so many seconds of waiting. Raises TimeoutError.

    A plain timeout that ends while the process stands still (a busy host, a long collection of garbage) fires before
    an answer that has long arrived is read, and takes a server in good health for one that is gone.
    """
    async with asyncio.timeout(None) as limit:
        watch = _Watch(limit, seconds / LOOKS)
        try:
            yield
        finally:
            watch.end()


class _Watch:
    """Looks a few times, one pause apart, and lets the limit fire at the last look."""

    def __init__(self, limit: asyncio.Timeout, pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._pause = pause
        self._left = LOOKS
        self._next = self._loop.call_later(pause, self._look)

    def end(self) -> None:
        """Look no more."""
        self._next.cancel()

    def _look(self) -> None:
        self._left -= 1
        if self._left:
            self._next = self._loop.call_later(self._pause, self._look)
        else:
            self._limit.reschedule(self._loop.time())
