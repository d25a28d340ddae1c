"""The rules of sites as workers share them: one of them asks a site, the others find what it got."""

import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from providers.errors import SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.store_keys import quote_part

PREFIX: Final = "robots/"
HEAD: Final = struct.Struct(">dB")
"""When the site was asked by the store's clock, and whether it has rules."""
MOST_CHARACTERS: Final = 2_000_000
"""More than the longest text that is ever put there, each of its bytes being one character of three."""


@dataclass(frozen=True)
class FetchedRules:
    """The text of a robots.txt (null: the site has none), and the seconds since it was fetched."""

    text: str | None
    age: float = 0.0


class SharedRules:
    """Rules under the key of their site, for `kept_seconds` since the site was asked."""

    def __init__(self, store: SharedStore, kept_seconds: float) -> None:
        self._store = store
        self._kept_seconds = kept_seconds

    async def get_or_fetch(self, site: str, fetch: Callable[[str], Awaitable[str | None]]) -> FetchedRules:
        """What the store holds, else what the site says, which is put there; raises what `fetch` raises.

        A store that does not answer costs the sharing, not the reading: the site itself is asked then.
        """
        key = key_of(site)
        try:
            stored = await self._store.get(key)
        except SharedStateUnavailable:
            return FetchedRules(await fetch(site))
        known = unpack(stored.value, stored.now) if stored.value is not None else None
        if known is not None and known.age < self._kept_seconds:
            return known
        fetched = await fetch(site)
        try:
            await self._store.swap(key, stored.value, pack(fetched, stored.now), self._kept_seconds)
        except (SharedStateUnavailable, StorageFull):
            return FetchedRules(fetched)
        return FetchedRules(fetched)


def key_of(site: str) -> str:
    """The key of a site's rules."""
    return PREFIX + quote_part(site)


def pack(text: str | None, asked_at: float) -> bytes:
    """Rules as the store holds them."""
    body = b"" if text is None else zlib.compress(text.encode("utf-8", "replace"))
    return HEAD.pack(asked_at, text is not None) + body


def unpack(value: bytes, now: float) -> FetchedRules | None:
    """Inverse of `pack`; null for a value that is none, whoever wrote it."""
    if len(value) < HEAD.size:
        return None
    asked_at, has_rules = HEAD.unpack_from(value)
    age = max(0.0, now - asked_at)
    if not has_rules:
        return FetchedRules(None, age)
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(value[HEAD.size :], MOST_CHARACTERS)
    except zlib.error:
        return None
    return FetchedRules(data.decode("utf-8", "replace"), age) if unpacker.eof else None
