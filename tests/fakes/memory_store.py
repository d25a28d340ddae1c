"""A shared store in memory, with a clock that a test may move."""

import time
from collections.abc import Callable

from providers.interfaces import StoredValue


class MemorySharedStore:
    """A dictionary with a clock. Every method is one step of the event loop, and so atomic."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since the epoch."""
        self._clock = clock
        self._entries: dict[str, tuple[bytes, float]] = {}

    async def get(self, key: str) -> StoredValue:
        now = self._clock()
        value, expires = self._entries.get(key, (None, 0.0))
        return StoredValue(value if expires > now else None, now)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        found = await self.get(key)
        if found.value != old:
            return False
        if new is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = (new, float("inf") if ttl_seconds is None else found.now + ttl_seconds)
        return True

    async def remove(self, prefix: str) -> int:
        found = [key for key in self._entries if key.startswith(prefix)]
        live = [key for key in found if (await self.get(key)).value is not None]
        for key in found:
            del self._entries[key]
        return len(live)

    async def close(self) -> None:
        """Close nothing."""
