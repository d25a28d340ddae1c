"""What the owners of sites let robots read: robots.txt, as RFC 9309 has it, fetched like any other document."""

import asyncio
import contextlib
import re
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx2
from cachetools import LRUCache
from protego import Protego  # type: ignore[attr-defined, unused-ignore]

from providers.errors import Retryable, SharedStateUnavailable, SourceUnreadable, StorageFull
from providers.interfaces import SharedStore
from providers.reading.egress.body import BodyLimits, FetchPolicy
from providers.reading.egress.client import Egress
from providers.shared.store_keys import quote_part

ROBOTS_BYTES: Final = 500 * 1024
ROBOTS_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 24 * 3600.0
FAILURE_KEPT_SECONDS: Final = 30.0
"""So that a site that does not answer costs one deadline, not one for each of its pages."""
LONGEST_FAILURE: Final = 300.0
KEPT_SITES: Final = 1_000
LONGEST_DELAY: Final = 10.0
"""Seconds between two requests that a site may ask for."""
HEAD: Final = struct.Struct(">dB")
"""When the site was asked by the store's clock, and whether it has rules."""
MOST_CHARACTERS: Final = 2_000_000
"""More than the longest text that is ever put there, each of its bytes being one character of three."""
NO_RULES: Final = {"not_found", "permission_denied", "http_status", "empty"}
"""The server has no such file for us: everything may be read. Any other failure means that nothing may."""

AGENT_LINE: Final = re.compile(r"[ \t]*user[ -]?agent", re.IGNORECASE)
MOST_AGENTS: Final = 2_000
MOST_WORK: Final = 1_000_000
"""User agents times lines: the parser takes time in proportion to it, and minutes for a file made for that."""


def _any_kind(media_type: str | None, opening: bytes) -> str:
    del media_type, opening  # many sites send robots.txt as something else; what is no rule is no rule
    return "robots"


POLICY: Final = FetchPolicy(
    accept="text/plain, */*;q=0.1",
    check_type=None,
    kind_of=_any_kind,
    opening_bytes=0,
    limits_of=lambda _: BodyLimits(ROBOTS_BYTES, ROBOTS_SECONDS),
    seconds=ROBOTS_SECONDS,
    cut=True,
    statuses=frozenset(range(200, 300)) - {204, 205},
)


def parse(text: str) -> Protego:
    """The rules of a file. Raises `SourceUnreadable` robots for one that would take too long to understand."""
    lines = text.splitlines()
    agents = sum(AGENT_LINE.match(line) is not None for line in lines)
    if agents > MOST_AGENTS or agents * len(lines) > MOST_WORK:
        raise SourceUnreadable("robots", "the site's robots.txt is too large to be understood")
    return Protego.parse(text.removeprefix("\ufeff"))


def delay_of(rules: Protego | None, agent: str) -> float:
    """Seconds that the site wants between two requests of ours, 0 to `LONGEST_DELAY`."""
    asked = None if rules is None else rules.crawl_delay(agent)
    return 0.0 if asked is None or not asked > 0 else min(float(asked), LONGEST_DELAY)


@dataclass(frozen=True)
class FetchedRules:
    """The text of a robots.txt (None: the site has none), and the seconds since it was fetched."""

    text: str | None
    age: float = 0.0


@dataclass(frozen=True)
class _Known:
    """What is known of a site until a time of our clock: its rules (None: it has none), or why they are not known."""

    until: float
    rules: Protego | None = None
    failure: SourceUnreadable | Retryable | None = None


class Robots:
    """The rules of sites, each fetched once a day; a request waits for the rules of its own site only.

    With a store that workers share, a site is asked once a day by all of them together. Failures stay here, briefly.
    """

    def __init__(
        self,
        egress: Egress,
        agent: str,
        clock: Callable[[], float] = time.monotonic,
        store: SharedStore | None = None,
    ) -> None:
        self._egress = egress
        self._agent = agent
        self._clock = clock
        self._store = store
        self._known: LRUCache[str, _Known] = LRUCache(KEPT_SITES)
        self._loading: dict[str, asyncio.Lock] = {}

    async def check(self, url: httpx2.URL) -> float:
        """Seconds that its site wants between two requests, if a page may be read.

        Raises `SourceUnreadable` robots if its site says no; whatever fetching the rules raised if that failed.
        """
        site = f"{url.scheme}://{url.netloc.decode('ascii')}"
        rules = await self._of_site(site)
        if rules is not None and not await asyncio.to_thread(rules.can_fetch, str(url), self._agent):
            raise SourceUnreadable("robots", "the site asks robots not to read this page")
        return delay_of(rules, self._agent)

    async def _of_site(self, site: str) -> Protego | None:
        """The rules of a site, None where it has none; requests for one site wait for one another."""
        lock = self._loading.setdefault(site, asyncio.Lock())
        try:
            async with lock:
                known = self._known.get(site)
                if known is None or self._clock() > known.until:
                    known = self._known[site] = await self._look_up(site)
        finally:
            if not lock.locked():
                self._loading.pop(site, None)
        if known.failure is not None:
            raise _anew(known.failure)
        return known.rules

    async def _look_up(self, site: str) -> _Known:
        try:
            fetched = await self._share_or_fetch(site)
            rules = None if fetched.text is None else await asyncio.to_thread(parse, fetched.text)
        except (SourceUnreadable, Retryable) as error:
            wait = min(error.retry_after or 0.0, LONGEST_FAILURE) if isinstance(error, Retryable) else 0.0
            return _Known(self._clock() + max(wait, FAILURE_KEPT_SECONDS), failure=error)
        return _Known(self._clock() + KEPT_SECONDS - fetched.age, rules)

    async def _share_or_fetch(self, site: str) -> FetchedRules:
        """What the store holds, else what the site says, which is put there.

        A store that does not answer costs the sharing, not the reading: the site itself is asked then.
        """
        if self._store is None:
            return FetchedRules(await self._fetch(site))
        key = key_of(site)
        try:
            stored = await self._store.get(key)
        except SharedStateUnavailable:
            return FetchedRules(await self._fetch(site))
        known = unpack(stored.value, stored.now) if stored.value is not None else None
        if known is not None and known.age < KEPT_SECONDS:
            return known
        fetched = FetchedRules(await self._fetch(site))
        with contextlib.suppress(SharedStateUnavailable, StorageFull):
            await self._store.swap(key, stored.value, pack(fetched.text, stored.now), KEPT_SECONDS)
        return fetched

    async def _fetch(self, site: str) -> str | None:
        """The text of a site's rules, None where it has none."""
        try:
            fetched = await self._egress.fetch(f"{site}/robots.txt", POLICY)
        except SourceUnreadable as error:
            if error.kind in NO_RULES:
                return None
            raise SourceUnreadable(error.kind, f"the site's robots.txt: {error}") from error
        return fetched.body.decode("utf-8", "replace")


def _anew(error: SourceUnreadable | Retryable) -> SourceUnreadable | Retryable:
    """The same failure as a new exception: one that is raised twice would gather the traces of both."""
    if isinstance(error, SourceUnreadable):
        return SourceUnreadable(error.kind, str(error))
    return type(error)(str(error), retry_after=error.retry_after)


def key_of(site: str) -> str:
    """The key of a site's rules in the store that workers share."""
    return f"robots/{quote_part(site)}"


def pack(text: str | None, asked_at: float) -> bytes:
    """Rules as the store holds them."""
    body = b"" if text is None else zlib.compress(text.encode("utf-8", "replace"))
    return HEAD.pack(asked_at, text is not None) + body


def unpack(value: bytes, now: float) -> FetchedRules | None:
    """Inverse of `pack`; None for a value that is none, whatever its origin."""
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
