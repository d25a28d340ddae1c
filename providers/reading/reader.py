"""Readers: of the web, and of all sources by their address, with a cache in front of the web."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
from pydantic import TypeAdapter

from contracts.addresses import canonical_url
from contracts.evidence import DocumentRef, Validators
from contracts.names import CORPUS_SCHEME, SERVER_SCHEME
from contracts.sentences import AS_DATA, Message
from providers.domains import ANYWHERE, Domains
from providers.errors import (
    ContentMissing,
    InputUnprocessable,
    NotConfigured,
    ProviderError,
    SourceUnreadable,
    StoreUnavailable,
)
from providers.interfaces import ContentStore, Corpora, ExtractedDocument, PrivateDocuments
from providers.isolation.pool import SubprocessPool
from providers.reading.canonical_text import READERS, Extraction
from providers.reading.document_kinds import MAX_FILE_BYTES, DocumentKind
from providers.reading.egress.client import NOT_MODIFIED, Egress, FetchPolicy
from providers.reading.firecrawl import Firecrawl
from providers.reading.robots import Robots
from providers.shared.cache import PAGE, Cache

DEFAULT_TENANT: Final = "default"
MIN_TEXT_CHARACTERS: Final = 20
"""Least characters of a page: one that needs scripts, or checks for a human, often has less."""
SHELL_CHARACTERS: Final = 200
"""A page of scripts with less text than this may show more of it in a browser: menus and notices are no content."""
SCRIPT: Final = b"<script"
HTML_TYPE: Final = "text/html"
POLICY: Final = FetchPolicy(
    "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.1",
    max_bytes=MAX_FILE_BYTES,
    seconds=60,
)
"""The whole has a time-out, because a trickle of bytes never exceeds that of one step."""
EXTRACTION: Final = TypeAdapter(Extraction)
DOCUMENT: Final = TypeAdapter(ExtractedDocument)
CACHED: Final = TypeAdapter(tuple[DocumentRef, DocumentRef, dict[str, Any]])
"""Bytes and text of a cached page in the content store, and its other fields."""
KILLED: Final = {
    "timeout": ("timeout", Message("skip_too_long")),
    "memory": ("memory", Message("skip_memory")),
    "crash": ("malformed", Message("skip_crashed")),
    "failed": ("malformed", Message("skip_failed")),
}

Visit = Callable[[str, float], AbstractAsyncContextManager[object]]
"""Visit to a host (`name`, or `name:port`), given the seconds it demands between two visits. Raises `RateLimited`."""


class WebReader:
    """Reads http and https URLs."""

    def __init__(
        self,
        egress: Egress,
        pool: SubprocessPool,
        robots: Robots,
        visit: Visit | None = None,
        browser: Firecrawl | None = None,
    ) -> None:
        """Take the ways out; `browser` opens pages that have no text without their scripts."""
        self._browser = browser
        self._egress = egress
        self._pool = pool
        self._robots = robots
        self._visit = visit

    async def read(self, url: str, domains: Domains = ANYWHERE) -> ExtractedDocument:
        """Fetch and extract a document. Raises as `read_again` does."""
        document = await self.read_again(url, None, domains)
        assert document is not None
        return document

    async def read_again(
        self, url: str, known: Validators | None, domains: Domains = ANYWHERE
    ) -> ExtractedDocument | None:
        """Fetch and extract a document; its URL is that of the last redirect. None for the `known` one.

        Only hosts of the domains get requests; every host on the way is visited once, until the document has arrived.
        Raises `SourceUnreadable` as `Egress.fetch`, domains, robots and extraction do, and too_little_text;
        `Unavailable`, `RateLimited`.
        """
        way: list[str] = []
        visited: set[str] = set()
        async with AsyncExitStack() as visits:

            async def permit(target: httpx2.URL) -> None:
                domains.check(str(target))
                way.append(str(target))
                delay = await self._robots.check(target)
                host = target.netloc.decode("ascii")
                if self._visit is not None and host not in visited:
                    await visits.enter_async_context(self._visit(host, delay))
                    visited.add(host)

            fetched = await self._egress.fetch(url, POLICY, permit, known)
        if fetched.status == NOT_MODIFIED:
            return None
        arguments = fetched.body, fetched.media_type, fetched.charset, fetched.url
        extraction = await extract_in_child(self._pool, "read_page", *arguments)
        fields = extraction.facts() | {"way": way, "validators": fetched.validators}
        document = ExtractedDocument(url=fetched.url, text=extraction.text, raw=fetched.body, **fields)
        if self._browser is not None and _may_need_browser(document):
            return await self._open_in_browser(self._browser, document, domains)
        return _require_text(document)

    async def _open_in_browser(
        self, browser: Firecrawl, document: ExtractedDocument, domains: Domains
    ) -> ExtractedDocument:
        """Return a page as a browser shows it, if that has more text; a failure counts where there is none without it.

        Only a public address within the domains goes to the service, and only at such a one may its browser end.
        """
        length = len(document.text.strip())
        try:
            address = await self._egress.check_public(document.url)
        except SourceUnreadable:  # of a private place, which only this machine may read
            return _require_text(document)
        try:
            opened = await browser.open(address)
            url = await self._egress.check_public(opened.url)
            domains.check(url)
            await self._robots.check(httpx2.URL(url))
            body = opened.html.encode("utf-8", "replace")
            extraction = await extract_in_child(self._pool, "read_page", body, HTML_TYPE, "utf-8", url)
        except StoreUnavailable:
            raise
        except ProviderError as error:
            if length < MIN_TEXT_CHARACTERS:
                raise
            note = Message("browser_failed", host=browser.host, reason=str(error))
            return replace(document, warnings=[*document.warnings, note])
        if len(extraction.text.strip()) <= length:
            return _require_text(document)
        notes = [Message("read_in_browser", host=browser.host), *extraction.warnings]
        way = list(dict.fromkeys([*document.way, url]))
        fields = extraction.facts() | {"way": way, "warnings": notes}  # no validators: they are those of the shell
        return _require_text(ExtractedDocument(url=url, text=extraction.text, raw=body, **fields))


def _may_need_browser(document: ExtractedDocument) -> bool:
    """Return whether a page of HTML has no text, or little text beside scripts."""
    length = len(document.text.strip())
    if document.media_type != DocumentKind.HTML:
        return False
    return length < MIN_TEXT_CHARACTERS or (length < SHELL_CHARACTERS and SCRIPT in document.raw.lower())


def _require_text(document: ExtractedDocument) -> ExtractedDocument:
    """Return a document with text. Raises `SourceUnreadable` too_little_text."""
    length = len(document.text.strip())
    if length < (MIN_TEXT_CHARACTERS if document.media_type == DocumentKind.HTML else 1):
        raise SourceUnreadable("too_little_text", f"too little text ({length} characters), HTTP status 200")
    return document


async def extract_in_child(pool: SubprocessPool, function: str, *arguments: object) -> Extraction:
    """Extract a document with a function of `documents` in a child process. Raises `SourceUnreadable`."""
    try:
        return await pool.call(f"{__package__}.documents:{function}", *arguments, returns=EXTRACTION)
    except InputUnprocessable as error:
        raise as_unreadable(error) from error


def as_unreadable(error: ProviderError) -> SourceUnreadable:
    """Translate the end of a child into the reason that a document cannot be used; raise any other error again."""
    if isinstance(error, SourceUnreadable):
        return error
    if isinstance(error, InputUnprocessable):
        return SourceUnreadable(*KILLED[error.kind])
    raise error


class CachedReader:
    """Reads corpus documents from their corpus, and any other at most once a day. Failures are not cached."""

    def __init__(
        self,
        corpora: Corpora,
        reader: WebReader,
        content: ContentStore,
        cache: Cache,
        servers: Mapping[str, PrivateDocuments] | None = None,
    ) -> None:
        """Take the servers of documents by the name in the addresses of theirs."""
        self._corpora = corpora
        self._reader = reader
        self._servers = servers or {}
        self._content = content
        self._cache = cache
        self._codec = PageCodec(content)

    async def read(
        self,
        url: str,
        *,
        tenant: str = DEFAULT_TENANT,
        domains: Domains = ANYWHERE,
        given: DocumentRef | None = None,
    ) -> ExtractedDocument:
        """Return the document, `cached` if no site was contacted. Raises as the reader does, and `StorageFull`.

        A page is cached for all runs, but returned only to those whose domains allow every address on its way. The
        domains restrict only the web.
        """
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url)
        if given is not None:
            return replace(await self._server_of(url).read(url, given), cached=True)
        is_private = url.startswith(SERVER_SCHEME)
        if not is_private:
            domains.check(url)
        page = await self._cache.get_or_make(
            PAGE, tenant, f"{READERS} {canonical_url(url)}", lambda: self._read_and_store(url, domains), self._codec
        )
        document = page.value
        for address in filter(None, (document.address,) if is_private else (*document.way, document.url)):
            domains.check(address)
        if page.hit:
            return replace(page.value, cached=True)
        return page.value

    async def read_again(
        self, url: str, known: Validators | None, *, domains: Domains = ANYWHERE
    ) -> ExtractedDocument | None:
        """Read a document without the cache; None if it is the `known` one. Raises as `read` does."""
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url)
        if url.startswith(SERVER_SCHEME):
            return await self._server_of(url).read(url)
        return await self._reader.read_again(url, known, domains)

    def _server_of(self, url: str) -> PrivateDocuments:
        """Return the server of a private document. Raises `NotConfigured`."""
        name = url.removeprefix(SERVER_SCHEME).partition("/")[0]
        server = self._servers.get(name)
        if server is None:
            raise NotConfigured(f"this worker knows no server of documents of that name: set search.mcp.{name}")
        return server

    async def _read_and_store(self, url: str, domains: Domains) -> ExtractedDocument:
        if url.startswith(SERVER_SCHEME):
            page = await self._server_of(url).read(url)
        else:
            page = await self._reader.read(url, domains)
        raw, text = await asyncio.gather(
            self._content.put(page.raw, page.media_type), self._content.put_text(page.text)
        )
        return replace(page, stored=(raw, text))


@dataclass(frozen=True)
class PageCodec:
    """Writes pages for the cache as references to their stored bytes and text."""

    content: ContentStore

    async def encode(self, value: ExtractedDocument) -> str:
        """Return JSON that refers to the stored bytes and text."""
        assert value.stored is not None
        facts = DOCUMENT.dump_python(value, mode="json", exclude={"raw", "text", "stored"}, context=AS_DATA)
        return CACHED.dump_json((*value.stored, facts)).decode()

    async def decode(self, text: str) -> ExtractedDocument:
        """Invert `encode`. Raises ValueError if the text is malformed, or the document is gone or damaged."""
        raw, text_reference, facts = CACHED.validate_json(text)
        try:
            stored = await asyncio.gather(self.content.get(raw), self.content.get_text(text_reference))
        except ContentMissing as error:
            raise ValueError("the document of a cached page is gone") from error
        return DOCUMENT.validate_python(facts | dict(zip(("raw", "text"), stored, strict=True)))
