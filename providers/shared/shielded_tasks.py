"""Work that goes on to its end although the one who waits for it was cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """Tasks that settle what calls leave behind."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begun(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start; an error that nobody waits for any more is let go."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def completed(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; if the one who waits is cancelled, the work is not."""
        return await asyncio.shield(self.begun(work))

    async def close(self) -> None:
        """Wait for all of it."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
