"""Readers: of the web, with a cache before it, and by the address of the source.

A page is fetched through the one way out, understood in a child process, and kept for a day: it lies in the content
store, the cache knows where.
"""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Final, Protocol

import httpx2
from pydantic import Field

from contracts.addresses import canonical_url
from contracts.base import StrictContract
from contracts.evidence import DocumentRef
from contracts.names import CORPUS_SCHEME
from contracts.vocabulary import PageAccess
from providers.domains import ANYWHERE, DENIED, NOT_ALLOWED, Domains
from providers.errors import ContentMissing, SourceUnreadable
from providers.interfaces import ContentStore, Corpora, ExtractedDocument, TenantReader, WebPages
from providers.isolation.pool import SubprocessPool
from providers.reading.egress.body import BodyLimits, FetchPolicy
from providers.reading.egress.client import Egress, Fetched
from providers.reading.extractor import extract_page
from providers.reading.robots import Robots
from providers.reading.sniffing import (
    ARCHIVES,
    CSV,
    MAIL,
    NOTEBOOK,
    OPENING_BYTES,
    PDF,
    PERHAPS_PDF,
    check_type,
    provisional_kind,
)
from providers.shared.cache import PAGE, Cache, Cached

DEFAULT_TENANT: Final = "default"
STATED: Final = (
    "title", "media_type", "authors", "publisher", "published_at", "access", "language", "warnings", "pages",
)  # fmt: skip
"""What an extraction, a document and its kept form all say."""
PAGE_LIMITS: Final = BodyLimits(most_bytes=3_000_000, seconds=30)
LARGE_LIMITS: Final = BodyLimits(most_bytes=20_000_000, seconds=60)
LARGE: Final = ARCHIVES | {PDF, PERHAPS_PDF, CSV, MAIL, NOTEBOOK}
ACCEPT: Final = "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.1"
POLICY: Final = FetchPolicy(
    accept=ACCEPT,
    check_type=check_type,
    kind_of=provisional_kind,
    opening_bytes=OPENING_BYTES,
    limits_of=lambda kind: LARGE_LIMITS if kind in LARGE else PAGE_LIMITS,
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
        stated = {name: getattr(found, name) for name in STATED}
        return ExtractedDocument(url=fetched.url, text=found.text, raw=fetched.body, way=way, **stated)

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


class CachedReader:
    """A reader that fetches a page once a day. Only what was read is kept, never a failure."""

    def __init__(
        self, reader: WebPages, content: ContentStore, cache: Cache, identity: Callable[[str], str] = canonical_url
    ) -> None:
        """`identity` gives the same text for addresses of the same page."""
        self._reader = reader
        self._cache = cache
        self._identity = identity
        self._codec = DocumentCodec(content)

    async def read(self, url: str, *, tenant: str = DEFAULT_TENANT, domains: Domains = ANYWHERE) -> ExtractedDocument:
        """The document, `cached` if no site was asked. Raises what the reader raises, and `StorageFull`.

        A page is kept for all runs, and given only to those whose domains its way keeps to.
        """
        domains.check(url)
        found = await self._find(url, tenant, domains)
        for address in (*found.value.way, found.value.url):
            domains.check(address)
        return replace(found.value, cached=True) if found.hit else found.value

    async def _find(self, url: str, tenant: str, domains: Domains) -> Cached[ExtractedDocument]:
        while True:
            mine = False

            async def make() -> ExtractedDocument:
                nonlocal mine
                mine = True
                return await self._reader.read(url, domains)

            try:
                return await self._cache.get_or_make(PAGE, tenant, self._identity(url), make, self._codec)
            except SourceUnreadable as error:
                # Readers that wait for one page are given one failure; the domains of another say nothing to this one.
                if mine or error.kind not in (DENIED, NOT_ALLOWED):
                    raise


class KeptPage(StrictContract):
    """A document without its bytes."""

    url: str
    title: str
    media_type: str
    raw: DocumentRef
    text: DocumentRef
    authors: list[str] = Field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    access: PageAccess = PageAccess.OPEN
    language: str | None = None
    warnings: list[str] = Field(default_factory=list)
    pages: list[int] = Field(default_factory=list)
    way: list[str] = Field(default_factory=list)


class DocumentCodec:
    """Documents as JSON that refers to the content store."""

    def __init__(self, content: ContentStore) -> None:
        self._content = content

    async def encode(self, value: ExtractedDocument) -> str:
        """Store text and bytes, and say where. Raises `StorageFull`, `Unavailable`."""
        raw, text = await asyncio.gather(
            self._content.put(value.raw, value.media_type), self._content.put_text(value.text)
        )
        stated = {name: getattr(value, name) for name in STATED}
        return KeptPage(url=value.url, raw=raw, text=text, way=value.way, **stated).model_dump_json()

    async def decode(self, text: str) -> ExtractedDocument:
        """Inverse of `encode`. Raises ValueError if the text is none, or the document is gone or damaged."""
        page = KeptPage.model_validate_json(text)
        try:
            raw, words = await asyncio.gather(self._content.get(page.raw), self._content.get_text(page.text))
        except ContentMissing as error:
            raise ValueError("the document of a kept page is gone") from error
        stated = {name: getattr(page, name) for name in STATED}
        return ExtractedDocument(url=page.url, text=words, raw=raw, way=page.way, **stated)


class RoutedReader:
    """One reader for all sources: documents of a corpus from there, everything else from the web."""

    def __init__(self, corpora: Corpora, web: TenantReader) -> None:
        self._corpora = corpora
        self._web = web

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, corpus_digest: str = ""
    ) -> ExtractedDocument:
        """Read by the address; domains are of the web alone. Raises what the reader raises that is responsible."""
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url, corpus_digest)
        return await self._web.read(url, tenant=tenant, domains=domains)
