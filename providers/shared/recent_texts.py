"""Texts that one process used lately."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MOST_BYTES: Final = 64_000_000
MOST_ENTRIES: Final = 4_000


@dataclass(frozen=True)
class _Entry:
    text: str
    size: int
    until: float


class RecentTexts:
    """Bounded in bytes and in number; what was not used for longest goes first."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        most_entries: int = MOST_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` shows seconds and never jumps."""
        self._most_bytes = most_bytes
        self._most_entries = most_entries
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self.size = 0
        """Bytes of UTF-8 that are held."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> str | None:
        """The text while it is fresh, else null."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.until <= self._clock():
            self.drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.text

    def put(self, key: str, text: str, fresh_seconds: float) -> None:
        """Keep a text for so long; one that is larger than all there may be is not kept."""
        self.drop(key)
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > self._most_bytes or fresh_seconds <= 0:
            return
        self._entries[key] = _Entry(text, size, self._clock() + fresh_seconds)
        self.size += size
        while self.size > self._most_bytes or len(self._entries) > self._most_entries:
            self.drop(next(iter(self._entries)))

    def drop(self, key: str) -> None:
        """Forget a text; no error if there is none."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry.size
