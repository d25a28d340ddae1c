"""A shared store in memory whose clock a test moves, and which can be down."""

from providers.errors import SharedStateUnavailable
from providers.interfaces import StoredValue


class MemoryStore:
    """Keeps `values` until their time has come."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.now = 1_000_000.0
        self.down = False
        self._until: dict[str, float] = {}

    async def get(self, key: str) -> StoredValue:
        """The value, null where it has expired."""
        self._look(key)
        return StoredValue(self.values.get(key), self.now)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Replace a value if it still is the old one."""
        self._look(key)
        if self.values.get(key) != old:
            return False
        self.values.pop(key, None)
        self._until.pop(key, None)
        if new is not None:
            self.values[key] = new
            if ttl_seconds is not None:
                self._until[key] = self.now + ttl_seconds
        return True

    async def remove(self, prefix: str) -> int:
        """Forget all keys that begin so."""
        keys = [key for key in self.values if key.startswith(prefix)]
        for key in keys:
            del self.values[key]
        return len(keys)

    async def close(self) -> None:
        """Nothing is open."""

    def _look(self, key: str) -> None:
        if self.down:
            raise SharedStateUnavailable("the store is down")
        if self._until.get(key, self.now) < self.now:
            self.values.pop(key, None)
