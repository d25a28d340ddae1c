"""Reads pages of the web: fetched through the one way out, understood in a child process."""

import hashlib
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final, Protocol

import httpx2

from providers.domains import ANYWHERE, Domains
from providers.interfaces import ExtractedDocument
from providers.reading.egress.body import BodyLimits, FetchPolicy
from providers.reading.egress.client import Egress, Fetched
from providers.reading.extractor import extract_page
from providers.reading.robots import Robots
from providers.reading.web_types import OPENING_BYTES, PDF, PERHAPS_PDF, check_type, provisional_kind
from providers.subprocess_pool import SubprocessPool

PAGE_LIMITS: Final = BodyLimits(most_bytes=3_000_000, seconds=30)
PDF_LIMITS: Final = BodyLimits(most_bytes=20_000_000, seconds=60)
ACCEPT: Final = "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.1"
POLICY: Final = FetchPolicy(
    accept=ACCEPT,
    check_type=check_type,
    kind_of=provisional_kind,
    opening_bytes=OPENING_BYTES,
    limits_of=lambda kind: PDF_LIMITS if kind in (PDF, PERHAPS_PDF) else PAGE_LIMITS,
    seconds=PAGE_LIMITS.seconds,
)
"""Figures: reliability-and-security 2.2; the time counts for robots.txt, redirects and the page together."""


class PolitenessOfHosts(Protocol):
    """How often, and by how many workers at once, a host is visited."""

    def visit(self, host: str, holder: str, delay_seconds: float) -> AbstractAsyncContextManager[object]:
        """One visitor's place at a host (`name`, or `name:port`) for the time of the block.

        `delay_seconds` is what the host asks for between two visits, 0 if nothing. `holder` is the logical read: told
        to wait, it keeps its place for when it comes back. Raises `RateLimited` before the block when one must wait.
        """
        ...


class WebReader:
    """A `Reader` of http and https URLs. Made with the way out, child processes and the rules of sites."""

    def __init__(
        self,
        egress: Egress,
        pool: SubprocessPool,
        robots: Robots,
        policy: FetchPolicy = POLICY,
        politeness: PolitenessOfHosts | None = None,
    ) -> None:
        self._egress = egress
        self._pool = pool
        self._robots = robots
        self._policy = policy
        self._politeness = politeness

    async def read(self, url: str, domains: Domains = ANYWHERE) -> ExtractedDocument:
        """Fetch and extract; the document's URL is the one that the redirects ended at.

        No host outside the domains is asked for the page. Raises `SourceUnreadable` as `Egress.fetch`, domains and
        extraction do, and robots; `Unavailable`, `RateLimited`.
        """
        way: list[str] = []
        fetched = await self._fetch(url, domains, way)
        found = await extract_page(self._pool, fetched.body, fetched.kind, fetched.charset, fetched.url)
        return ExtractedDocument(
            url=fetched.url,
            title=found.title,
            text=found.text,
            raw=fetched.body,
            media_type=found.media_type,
            authors=found.authors,
            publisher=found.publisher,
            published_at=found.published_at,
            access=found.access,
            language=found.language,
            warnings=found.warnings,
            way=way,
        )

    async def _fetch(self, url: str, domains: Domains, way: list[str]) -> Fetched:
        """The document; every host on the `way` is visited once, and left when the document is here."""
        holder = f"read/{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()[:32]}"
        visited: set[str] = set()

        async with AsyncExitStack() as visits:

            async def permit(target: httpx2.URL) -> None:
                domains.check(str(target))
                way.append(str(target))
                delay = await self._robots.check(target)
                host = target.netloc.decode("ascii")
                if self._politeness is not None and host not in visited:
                    await visits.enter_async_context(self._politeness.visit(host, holder, delay))
                    visited.add(host)

            return await self._egress.fetch(url, self._policy, permit)
