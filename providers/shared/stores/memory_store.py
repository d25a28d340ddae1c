"""A shared store for one process: nothing outlives it."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from providers.interfaces import StoredValue

PRUNED_EVERY: Final = 256
"""Changes after which expired values are looked for, so that each change costs little."""


def steady_time() -> Callable[[], float]:
    """A clock of seconds since the epoch that never jumps: the wall clock is read once."""
    ahead = time.time() - time.monotonic()
    return lambda: ahead + time.monotonic()


class StoredEntry(NamedTuple):
    """A value and when it expires; None means never."""

    value: bytes
    expires: float | None


class MemorySharedStore:
    """A dictionary with a clock. Every method is one step of the event loop, and so atomic."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """`clock` shows seconds since the epoch."""
        self._clock = clock or steady_time()
        self._entries: dict[str, StoredEntry] = {}
        self._changes = 0

    async def get(self, key: str) -> StoredValue:
        """Return the value, None where there is none or where it has expired."""
        now = self._clock()
        return StoredValue(self._held(key, now), now)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Replace `old` by `new` if the key still holds `old`; None means absent. Return whether it was done."""
        now = self._clock()
        self._prune(now)
        if self._held(key, now) != old:
            return False
        if new is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = StoredEntry(bytes(new), None if ttl_seconds is None else now + ttl_seconds)
        return True

    async def remove(self, prefix: str) -> int:
        """Remove every key that begins with the prefix; return how many."""
        now = self._clock()
        found = [key for key in self._entries if key.startswith(prefix)]
        live = sum(self._held(key, now) is not None for key in found)
        for key in found:
            del self._entries[key]
        return live

    async def close(self) -> None:
        """Nothing is held open."""

    def _held(self, key: str, now: float) -> bytes | None:
        entry = self._entries.get(key)
        return None if entry is None or _expired(entry, now) else entry.value

    def _prune(self, now: float) -> None:
        self._changes += 1
        if self._changes % PRUNED_EVERY == 0:
            for key in [key for key, entry in self._entries.items() if _expired(entry, now)]:
                del self._entries[key]


def _expired(entry: StoredEntry, now: float) -> bool:
    return entry.expires is not None and entry.expires <= now
