"""Calls that share a long beginning: the first one writes it into the endpoint's cache, the others then read it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

KEPT_SECONDS: Final = 290.0
"""An endpoint keeps a beginning for five minutes after its last use."""
MOST_REMEMBERED: Final = 1_000


class PrefixQueue:
    """Lets one call per beginning go ahead while nobody has written it lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: OrderedDict[str, float] = OrderedDict()
        self._leaders: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, key: str, patience_seconds: float) -> AsyncIterator[None]:
        """Hold the block back until the first call over this beginning has ended, however it ended.

        A call waits once and no longer than `patience_seconds`: if the first one failed, all others go at once.
        """
        leader = self._leaders.get(key)
        if leader is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_seconds):
                    await leader.wait()
        elif not self._fresh(key):
            async with self._leading(key):
                yield
            self._remember(key)
            return
        yield
        self._remember(key)

    @asynccontextmanager
    async def _leading(self, key: str) -> AsyncIterator[None]:
        ended = self._leaders[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._leaders[key]
            ended.set()

    def _fresh(self, key: str) -> bool:
        written = self._written.get(key)
        return written is not None and self._clock() - written < KEPT_SECONDS

    def _remember(self, key: str) -> None:
        self._written[key] = self._clock()
        self._written.move_to_end(key)
        while len(self._written) > MOST_REMEMBERED:
            self._written.popitem(last=False)
