"""The activity `read_source`: read and archive a document, and return a short record of it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio import activity

from activities.assessment.source_assessment import Judge, Judgement, best_quality
from activities.failures import READING, attempt, check_permission, is_repeated
from activities.roles.untrusted import INVISIBLE
from contracts import activities
from contracts.addresses import digest
from contracts.evidence import CHOSEN_BY_OPERATOR, MAX_LINKS, DocumentRef, PageList, SearchHit, SourceDetails
from contracts.lenient import to_line
from contracts.messages import ReadRecord, ReadRequest
from contracts.names import OWN_SCHEMES
from contracts.notebooks import SourceEntry
from contracts.sentences import Message
from providers.domains import Domains, domains_named
from providers.errors import ContentMissing, ProviderError, SourceUnreadable
from providers.interfaces import ContentStore, ExtractedDocument, SourceReader
from providers.storage.stored_notebooks import Notebooks
from providers.text import detect_language

MAX_WARNINGS: Final = 5
MAX_AUTHORS: Final = 50
TITLE_CHARACTERS: Final = 500
NAME_CHARACTERS: Final = 200
LABEL_CHARACTERS: Final = 100
WAIT_SECONDS: Final = 180.0  # longest wait for a site that names a delay, or for other calls that read it
PDF: Final = "application/pdf"
CLOSED: Final = Message("abstract_closed")
NO_PDF: Final = Message("abstract_no_pdf")
CLEANING_MARGIN: Final = 8  # page metadata is cut to this multiple of its limit before it is cleaned


@dataclass(frozen=True, eq=False)
class ReadingActivities:
    """The activity that reads sources."""

    reader: SourceReader
    content: ContentStore
    judge: Judge
    notebooks: Notebooks
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @activity.defn(name=activities.READ_SOURCE.name)
    async def read_source(self, request: ReadRequest) -> ReadRecord:
        """Fetch, extract and archive one document; the text stays in the content store.

        Of a paper whose text is not open, or cannot be read, it archives the abstract, with the reason.
        """
        began = time.monotonic()
        async with attempt(READING, request.patience_seconds, WAIT_SECONDS):
            check_permission(request.permitted)
            if request.exposes_private_text:
                raise SourceUnreadable("refused_private", "the address carries words that only this run knows")
            if request.known_entry:
                return await self._read_again(request, domains_named(request.domains_allow, request.domains_deny))
            request, hit = await self.notebooks.complete_read(request)
            domains = domains_named(request.domains_allow, request.domains_deny)
            hit = hit or SearchHit(url=request.url, provider="")
            known = None
            if hit.archived:
                with suppress(ContentMissing):  # the run that had read it may be deleted since
                    known = await self.notebooks.read(hit.archived, SourceEntry)
            document = None
            if known is not None and not request.url.startswith(OWN_SCHEMES):
                domains.check(request.url)
                domains.check(known.url)
                document = await self._archived_document(known, hit)
            at = known.retrieved_at if document is not None and known is not None else None
            if document is None:
                document = await self._read_document(request, hit, domains, began)
            record = await self._archive(request, hit, document, at)
            is_same = known is not None and known.text is not None and known.text.hash == record.text.hash
            return record.with_fields(earlier=is_same)

    async def _read_document(
        self, request: ReadRequest, hit: SearchHit, domains: Domains, began: float
    ) -> ExtractedDocument:
        """Read a document; of a paper whose text is not open, or stays unreadable, its abstract.

        `began` is the time of the attempt, by the monotonic clock. Raises as the reader does.
        """
        if hit.abstract_only and hit.abstract:
            return _abstract_of(request, hit, CLOSED)
        try:
            document = await self.reader.read(request.url, tenant=request.tenant, domains=domains, given=hit.document)
        except ProviderError as error:
            if not hit.abstract or is_repeated(error, began, request.patience_seconds, WAIT_SECONDS):
                raise
            why = error.reason if isinstance(error, SourceUnreadable) else str(error)
            return _abstract_of(request, hit, Message("abstract_instead", why=why))
        if hit.abstract and hit.expects_pdf and document.media_type != PDF:
            return _abstract_of(request, hit, Message("abstract_instead", why=NO_PDF))
        return document

    async def _archived_document(self, known: SourceEntry, hit: SearchHit) -> ExtractedDocument | None:
        """Return a page as an earlier run of the thread read it; None if its text is no longer in the store."""
        if known.raw is None or known.text is None:
            return None
        pages = PageList()
        try:
            text = await self.content.get_text(known.text)
            if hit.archived_pages is not None:
                pages = PageList.read(await self.content.get_text(hit.archived_pages))
        except ContentMissing:
            return None
        return ExtractedDocument(
            url=known.url,
            title=known.title,
            language=known.language,
            authors=known.authors,
            publisher=known.publisher,
            published_at=known.published_at,
            warnings=known.warnings,
            reader=known.reader,
            links=known.links,
            text=text,
            raw=b"",
            address=known.address,
            abstract_only=known.abstract_only,
            media_type=known.media_type,
            pages=pages.starts,
            uncertain=pages.uncertain,
            cached=True,
            stored=(known.raw, known.text),
            validators=known.validators,
        )

    async def _read_again(self, request: ReadRequest, domains: Domains) -> ReadRecord:
        """Read a document, bypassing the caches; if its text is unchanged, return the record of the stored entry."""
        known = await self.notebooks.read(request.known_entry, SourceEntry)
        assert known.raw is not None
        assert known.text is not None
        document = None
        if not known.abstract_only:  # its address is not that of the abstract
            document = await self.reader.read_again(request.url, known.validators, domains=domains)
        if document is None or digest(document.text) == known.text.hash:
            return ReadRecord(
                content_hash=known.raw.hash,
                text=known.text,
                quality=known.quality,
                abstract_only=known.abstract_only,
                entry=request.known_entry,
            )
        details = {name: getattr(known, name) for name in SourceDetails.model_fields}
        hit = SearchHit(url=request.url, provider="", **details | {"published_at": None})
        return await self._archive(request.with_fields(needs_title=True), hit, document)

    async def _archive(
        self, request: ReadRequest, hit: SearchHit, document: ExtractedDocument, retrieved_at: str | None = None
    ) -> ReadRecord:
        """Store a document's raw bytes and text; its own metadata takes precedence over the hit's.

        `retrieved_at` is the time of reading, ISO 8601, of a document that an earlier run read. Raises
        `SourceUnreadable` for a document without text.
        """
        if not document.text.strip():
            raise SourceUnreadable("no_text", Message("skip_document"))
        raw, text = document.stored or await asyncio.gather(
            self.content.put(document.raw, _line(document.media_type, LABEL_CHARACTERS)),
            self.content.put_text(document.text),
        )
        pages = None
        if document.pages:
            starts = PageList(starts=document.pages, uncertain=document.uncertain)
            pages = await self.content.put_text(starts.model_dump_json(exclude_defaults=True), "application/json")
        judgement = await self.judge(request, document)
        at = retrieved_at or self.clock().isoformat(timespec="seconds")
        entry = _entry_of(request, hit, document, judgement, raw=raw, text=text, retrieved_at=at)
        return ReadRecord(
            url="" if entry.url == request.url else entry.url,
            title="" if entry.title == request.title and not request.needs_title else entry.title,
            publisher=entry.publisher,
            content_hash=raw.hash,
            text=text,
            media_type=entry.media_type,
            pages=pages,
            quality=entry.quality,
            quality_reason=entry.quality_reason if entry.quality_reason.startswith(CHOSEN_BY_OPERATOR) else "",
            best_quality=best_quality(judgement.assessment),
            cached=document.cached,
            abstract_only=entry.abstract_only,
            entry=await self.notebooks.write(entry),
        )


def _entry_of(
    request: ReadRequest,
    hit: SearchHit,
    document: ExtractedDocument,
    judgement: Judgement,
    *,
    raw: DocumentRef,
    text: DocumentRef,
    retrieved_at: str,
) -> SourceEntry:
    """Return the notebook entry of a document whose bytes and text are stored; its metadata comes before the hit's."""
    authors = [_line(name, NAME_CHARACTERS) for name in document.authors[:MAX_AUTHORS]]
    return SourceEntry(
        source_id=request.source_id,
        quality=judgement.quality,
        url=document.url,
        title=_line(document.title, TITLE_CHARACTERS) or _line(request.title, TITLE_CHARACTERS),
        snippet=hit.snippet,
        source_type=hit.source_type,
        authors=[name for name in authors if name] or hit.authors,
        publisher=_line(document.publisher, NAME_CHARACTERS) or None,
        venue=hit.venue,
        doi=hit.doi,
        published_at=_line(document.published_at, LABEL_CHARACTERS) or hit.published_at,
        address=document.address or hit.address,
        abstract_only=document.abstract_only,
        retrieved_at=retrieved_at,
        media_type=_line(document.media_type, LABEL_CHARACTERS),
        quality_reason=judgement.reason,
        assessment=judgement.assessment,
        language=_line(document.language, LABEL_CHARACTERS) or None,
        raw=raw,
        text=text,
        sections=hit.sections if hit.content_hash in (None, text.hash) else [],
        warnings=[_note(warning) for warning in document.warnings[:MAX_WARNINGS]],
        reader=_line(document.reader, LABEL_CHARACTERS),
        validators=document.validators,
        links=document.links[:MAX_LINKS],
    )


def _abstract_of(request: ReadRequest, hit: SearchHit, reason: Message) -> ExtractedDocument:
    """Return the abstract of a paper as a document, with the reason why its text was not read.

    Its publisher is the journal: all papers of one resolver of identifiers would be one voice.
    """
    return ExtractedDocument(
        url=request.url,
        text=hit.abstract,
        raw=hit.abstract.encode(),
        title=hit.title,
        media_type="text/plain",
        language=detect_language(hit.abstract),
        authors=hit.authors,
        publisher=hit.venue,
        published_at=hit.published_at,
        warnings=[reason],
        abstract_only=True,
    )


def _note(warning: str) -> str:
    """Return a warning of a reader; one that is not a short clean line becomes one, and is no message any more."""
    line = _line(warning, TITLE_CHARACTERS)
    return warning if line == warning else line


def _line(text: str | None, limit: int) -> str:
    """Shorten page metadata to one line without invisible characters."""
    return to_line(INVISIBLE.sub("", (text or "")[: limit * CLEANING_MARGIN]), limit)
