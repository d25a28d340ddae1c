"""Reads pages of the web: fetched through the one way out, understood in a child process."""

from typing import Final

from providers.interfaces import ExtractedDocument
from providers.reading.egress import Egress
from providers.reading.egress_body import FetchPolicy, Limits
from providers.reading.extractor import extract_document
from providers.reading.robots import Robots
from providers.reading.web_types import FILE_NAMES, OPENING_BYTES, PDF, as_utf8, check_type, judge
from providers.subprocess_pool import SubprocessPool

PAGE_LIMITS: Final = Limits(most_bytes=3_000_000, seconds=30)
PDF_LIMITS: Final = Limits(most_bytes=20_000_000, seconds=60)
ACCEPT: Final = "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.1"
POLICY: Final = FetchPolicy(
    accept=ACCEPT,
    check_type=check_type,
    kind_of=judge,
    opening_bytes=OPENING_BYTES,
    limits_of=lambda kind: PDF_LIMITS if kind == PDF else PAGE_LIMITS,
    seconds=PAGE_LIMITS.seconds,
)
"""Figures: reliability-and-security 2.2; the time counts for robots.txt, redirects and the page together."""


class WebReader:
    """A `Reader` of http and https URLs. Made with the way out, child processes and the rules of sites."""

    def __init__(self, egress: Egress, pool: SubprocessPool, robots: Robots, policy: FetchPolicy = POLICY) -> None:
        self._egress = egress
        self._pool = pool
        self._robots = robots
        self._policy = policy

    async def read(self, url: str) -> ExtractedDocument:
        """Fetch and extract; the document's URL is the one that the redirects ended at.

        Raises `SourceUnreadable` as `Egress.fetch` and extraction do, and robots; `Unavailable`, `RateLimited`.
        """
        fetched = await self._egress.fetch(url, self._policy, self._robots.check)
        readable = fetched.body if fetched.kind == PDF else as_utf8(fetched.body, fetched.charset)
        found = await extract_document(self._pool, readable, FILE_NAMES[fetched.kind])
        return ExtractedDocument(
            url=fetched.url,
            title=found.title,
            text=found.text,
            raw=fetched.body,
            media_type=found.media_type,
            authors=found.authors,
            publisher=found.publisher,
            published_at=found.published_at,
        )
