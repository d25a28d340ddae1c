"""A reader that fetches a page once a day: the page lies in the content store, the cache knows where."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pydantic import Field

from contracts.base import StrictContract
from contracts.documents import DocumentRef
from contracts.vocabulary import PageAccess
from contracts.web_addresses import canonical_url
from providers.domains import ANYWHERE, DENIED, NOT_ALLOWED, Domains
from providers.errors import ContentMissing, SourceUnreadable
from providers.interfaces import ContentStore, ExtractedDocument, WebPages
from providers.shared.cache import PAGE, Cache, Cached

DEFAULT_TENANT: Final = "default"


class CachedReader:
    """Made with a reader, the content store and the cache. Only what was read is kept, never a failure."""

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

        A page is kept for everybody, and given to those alone whose domains its way keeps to.
        """
        domains.check(url)
        found = await self._found(url, tenant, domains)
        for address in (*found.value.way, found.value.url):
            domains.check(address)
        return replace(found.value, cached=True) if found.hit else found.value

    async def _found(self, url: str, tenant: str, domains: Domains) -> Cached[ExtractedDocument]:
        while True:
            mine = False

            async def made() -> ExtractedDocument:
                nonlocal mine
                mine = True
                return await self._reader.read(url, domains)

            try:
                return await self._cache.get_or_make(PAGE, tenant, self._identity(url), made, self._codec)
            except SourceUnreadable as error:
                # Readers who wait for one page are given one failure; the domains of another say nothing to this one.
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
        page = KeptPage(
            url=value.url,
            title=value.title,
            media_type=value.media_type,
            raw=raw,
            text=text,
            authors=value.authors,
            publisher=value.publisher,
            published_at=value.published_at,
            access=value.access,
            language=value.language,
            warnings=value.warnings,
            way=value.way,
        )
        return page.model_dump_json()

    async def decode(self, text: str) -> ExtractedDocument:
        """Inverse of `encode`. Raises ValueError if the text is none, or the document is gone or damaged."""
        page = KeptPage.model_validate_json(text)
        try:
            raw, words = await asyncio.gather(self._content.get(page.raw), self._content.get_text(page.text))
        except ContentMissing as error:
            raise ValueError("the document of a kept page is gone") from error
        kept = page.model_dump(exclude={"raw", "text"})
        return ExtractedDocument(**kept | {"access": page.access}, raw=raw, text=words)
