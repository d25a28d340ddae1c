"""Work that several callers of a process wait for together, done once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.waiting = 0
        self.delivered = False


class Flights(Generic[T]):
    """One task per key; it ends early only when nobody waits for it any more."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def join(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of the work under way, else of `work`; and whether this caller is the first to get it.

        Raises what the work raises, to all who wait.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(work()))
            flight.task.add_done_callback(lambda task: self._landed(key, task))
        flight.waiting += 1
        try:
            result = await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                await self._abandon(key, flight)
        first, flight.delivered = not flight.delivered, True
        return result, first

    async def _abandon(self, key: str, flight: _Flight[T]) -> None:
        """End the work, and let it clean up before its last caller goes."""
        if self._flights.get(key) is flight:
            del self._flights[key]
        flight.task.cancel()
        await asyncio.wait([flight.task])

    def _landed(self, key: str, task: "asyncio.Future[Any]") -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.task is task:
            del self._flights[key]
        if not task.cancelled():
            task.exception()  # everybody may have gone before it failed
