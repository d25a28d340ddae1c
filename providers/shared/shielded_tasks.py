"""Finish work although its caller is cancelled, and renew a lease while its holder works."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class ShieldedTasks:
    """Tasks that go on to their end when their caller is cancelled."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a task; its error is dropped when no caller is left to await it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result; a cancelled caller leaves the work running."""
        return await asyncio.shield(self.start(work))

    async def acquire(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
        """Return what the work acquires; for a cancelled caller, `undo` gives it back."""
        task = self.start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self.start(_undo(task, undo))
            raise

    async def close(self) -> None:
        """Wait for all tasks."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


@asynccontextmanager
async def renew_lease_every(seconds: float, renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Renew a lease again and again while the block runs."""

    async def renew_for_ever() -> None:
        while True:
            await asyncio.sleep(seconds)
            await renew()

    task = asyncio.create_task(renew_for_ever())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _undo(task: "asyncio.Task[T]", undo: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is None:
        await undo(task.result())
