"""What the owners of sites let robots read: robots.txt, as RFC 9309 has it, fetched like any other document."""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import httpx2
from protego import Protego  # type: ignore[attr-defined, unused-ignore]

from providers.errors import SourceUnreadable
from providers.reading.egress import Egress
from providers.reading.egress_body import FetchPolicy, Limits

ROBOTS_BYTES: Final = 500 * 1024
ROBOTS_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 24 * 3600.0
KEPT_SITES: Final = 1_000
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
    check_type=lambda _: None,
    kind_of=_any_kind,
    opening_bytes=0,
    limits_of=lambda _: Limits(ROBOTS_BYTES, ROBOTS_SECONDS),
    seconds=ROBOTS_SECONDS,
    cut=True,
)


def parse(text: str) -> Protego:
    """The rules of a file. Raises `SourceUnreadable` robots for one that would take too long to understand."""
    lines = text.splitlines()
    agents = sum(AGENT_LINE.match(line) is not None for line in lines)
    if agents > MOST_AGENTS or agents * len(lines) > MOST_WORK:
        raise SourceUnreadable("robots", "the site's robots.txt is too large to be understood")
    return Protego.parse(text.removeprefix("\ufeff"))


class Robots:
    """The rules of sites, each fetched once a day; waits for nobody but the site itself."""

    def __init__(self, egress: Egress, agent: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._egress = egress
        self._agent = agent
        self._clock = clock
        self._rules: OrderedDict[str, tuple[float, Protego | None]] = OrderedDict()
        self._loading: dict[str, asyncio.Lock] = {}

    async def check(self, url: httpx2.URL) -> None:
        """Whether a page may be read.

        Raises `SourceUnreadable` robots if its site says no; whatever fetching the rules raised if that failed.
        """
        site = f"{url.scheme}://{url.netloc.decode('ascii')}"
        rules = await self._of_site(site)
        if rules is not None and not await asyncio.to_thread(rules.can_fetch, str(url), self._agent):
            raise SourceUnreadable("robots", "the site asks robots not to read this page")

    async def _of_site(self, site: str) -> Protego | None:
        """The rules of a site, null where it has none; requests for one site wait for one another."""
        lock = self._loading.setdefault(site, asyncio.Lock())
        try:
            async with lock:
                known = self._rules.get(site)
                if known is None or self._clock() - known[0] > KEPT_SECONDS:
                    known = (self._clock(), await self._load(site))
                    self._rules[site] = known
                    if len(self._rules) > KEPT_SITES:
                        self._rules.popitem(last=False)
                return known[1]
        finally:
            if not lock.locked():
                self._loading.pop(site, None)

    async def _load(self, site: str) -> Protego | None:
        try:
            fetched = await self._egress.fetch(f"{site}/robots.txt", POLICY)
        except SourceUnreadable as error:
            if error.kind in NO_RULES:
                return None
            raise SourceUnreadable(error.kind, f"the site's robots.txt: {error}") from error
        return await asyncio.to_thread(parse, fetched.body.decode("utf-8", "replace"))
