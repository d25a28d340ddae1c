"""Rules of sites for robots: robots.txt according to RFC 9309, fetched like any other document."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import httpx2
from cachetools import TLRUCache
from protego import Protego  # type: ignore[attr-defined, unused-ignore]

from providers.errors import Retryable, SourceUnreadable
from providers.reading.egress.client import Egress, FetchPolicy

FRESH_SECONDS: Final = 24 * 3600.0
FAILURE_SECONDS: Final = 30.0  # a failure is cached: a silent site costs one deadline, not one for each page
MAX_DELAY_SECONDS: Final = 10.0  # longest delay that is obeyed between two requests: six pages a minute
MAX_SITES: Final = 1_000
NO_RULES: Final = {"not_found", "permission_denied", "http_status", "empty"}
"""Failures after which everything may be read: the site has no such file for us. After any other, nothing may be."""
AGENT_LINE: Final = re.compile(r"[ \t]*user[ -]?agent", re.IGNORECASE)
MAX_PARSE_COST: Final = 1_000_000
"""User agents times lines: the parser's time grows with it, to minutes for a malicious file."""
# RFC 9309 2.5 requires at least 500 KiB to be read.
POLICY: Final = FetchPolicy("text/plain, */*;q=0.1", max_bytes=500 * 1024, seconds=10, is_document=False)


@dataclass(frozen=True)
class _SiteRules:
    """Rules of a site (None: it has none), or the failure to fetch them, valid for some seconds."""

    seconds: float
    rules: Protego | None = None
    failure: SourceUnreadable | Retryable | None = None


class Robots:
    """Rules of sites, each fetched once a day; a request waits only for the rules of its own site."""

    def __init__(self, egress: Egress, agent: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._egress = egress
        self._agent = agent
        self._rules: TLRUCache[str, _SiteRules] = TLRUCache(MAX_SITES, lambda _, rules, now: now + rules.seconds, clock)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(self, url: httpx2.URL) -> float:
        """Return the site's delay in seconds. Raises `SourceUnreadable` robots, or the failure to fetch its rules."""
        site = f"{url.scheme}://{url.netloc.decode('ascii')}"
        async with self._locks.setdefault(site, asyncio.Lock()):
            site_rules = self._rules.get(site)
            if site_rules is None:
                site_rules = self._rules[site] = await self._fetch(site)
        if site_rules.failure is not None:
            raise site_rules.failure.with_traceback(None)
        if site_rules.rules is None:
            return 0.0
        if not await asyncio.to_thread(site_rules.rules.can_fetch, str(url), self._agent):
            raise SourceUnreadable("robots", "the site asks robots not to read this page")
        delay = site_rules.rules.crawl_delay(self._agent)
        if delay is None or not delay > 0:
            return 0.0
        return min(float(delay), MAX_DELAY_SECONDS)

    async def _fetch(self, site: str) -> _SiteRules:
        try:
            fetched = await self._egress.fetch(f"{site}/robots.txt", POLICY)
            rules = await asyncio.to_thread(parse, fetched.body.decode("utf-8", "replace"))
        except SourceUnreadable as error:
            if error.kind in NO_RULES:
                return _SiteRules(FRESH_SECONDS)
            failure = SourceUnreadable(error.kind, f"the site's robots.txt: {error}")
            return _SiteRules(FAILURE_SECONDS, failure=failure)
        except Retryable as error:
            return _SiteRules(FAILURE_SECONDS, failure=error)
        return _SiteRules(FRESH_SECONDS, rules)


def parse(text: str) -> Protego:
    """Parse a file. Raises `SourceUnreadable` robots for one that takes too long to parse."""
    lines = text.splitlines()
    agents = sum(AGENT_LINE.match(line) is not None for line in lines)
    if agents * len(lines) > MAX_PARSE_COST:
        raise SourceUnreadable("robots", "the file is too large to be understood")
    return Protego.parse(text.removeprefix("\ufeff"))
