"""What a process keeps of a shared store on its own machine, for when the shared one does not answer."""

from dataclasses import dataclass
from typing import Final

from providers.interfaces import SharedStore

FOREVER: Final = b"-"


@dataclass(frozen=True)
class LocalCopy:
    """A value as it lies in the local store."""

    value: bytes | None
    ttl_seconds: float | None
    """How long it still lives; null means for good."""
    now: float
    """By the local store's clock."""
    raw: bytes | None
    """Value and end in one, for swapping."""


class LocalCopies:
    """Values with the time of their end written beside them, so that they can go on elsewhere with what is left."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def get(self, key: str) -> LocalCopy:
        """The copy under a key; its value is null where there is none, or none that can be understood."""
        stored = await self._store.get(key)
        end, found, value = (stored.value or b"").partition(b"\n")
        if not found:
            return LocalCopy(None, None, stored.now, stored.value)
        if end == FOREVER:
            return LocalCopy(value, None, stored.now, stored.value)
        try:
            return LocalCopy(value, max(0.0, float(end) - stored.now), stored.now, stored.value)
        except ValueError:
            return LocalCopy(None, None, stored.now, stored.value)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None) -> bool:
        """As of a shared store."""
        held = await self.get(key)
        return held.value == old and await self._replace(key, held, new, ttl_seconds)

    async def put(self, key: str, value: bytes | None, ttl_seconds: float | None = None) -> None:
        """Write over whatever is there; of two that do so at once, either may win."""
        held = await self.get(key)
        if held.value is not None or value is not None:
            await self._replace(key, held, value, ttl_seconds)

    async def _replace(self, key: str, held: LocalCopy, new: bytes | None, ttl_seconds: float | None) -> bool:
        if new is None:
            return await self._store.swap(key, held.raw, None)
        end = FOREVER if ttl_seconds is None else repr(held.now + ttl_seconds).encode()
        return await self._store.swap(key, held.raw, end + b"\n" + new, ttl_seconds)

    async def remove(self, prefix: str) -> int:
        """As of a shared store."""
        return await self._store.remove(prefix)

    async def close(self) -> None:
        """Close the local store."""
        await self._store.close()
