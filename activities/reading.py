"""The activity `read_source`: read, archive, and tell in short what was read."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from temporalio import activity

from activities.failures import READING, RECORDS, translated
from activities.heartbeats import heartbeating
from activities.wording import named
from contracts.activities import ReadRecord, ReadRequest
from contracts.names import CORPUS_SCHEME
from contracts.vocabulary import Quality
from providers.errors import SourceUnreadable
from providers.interfaces import ContentStore, ExtractedDocument, Reader

QualityOf = Callable[[str], tuple[Quality, str]]
"""From the URL of a document to what it is worth, and why."""


def declared_quality(authority_by_corpus: Mapping[str, str]) -> QualityOf:
    """Quality as the operator declares it for each corpus (C0-24); unknown for anything else."""

    def quality_of(url: str) -> tuple[Quality, str]:
        if not url.startswith(CORPUS_SCHEME):
            return Quality.UNKNOWN, ""
        authority = authority_by_corpus.get(url.removeprefix(CORPUS_SCHEME).partition("/")[0], "")
        quality = named(Quality, authority)
        return (Quality.UNKNOWN, "") if quality is None else (quality, "chosen by the operator")

    return quality_of


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class ReadingActivities:
    """Made with a reader, the content store and the judgement of quality."""

    def __init__(
        self, reader: Reader, content: ContentStore, quality_of: QualityOf, clock: Callable[[], datetime] = now
    ) -> None:
        self._reader = reader
        self._content = content
        self._quality_of = quality_of
        self._clock = clock

    @activity.defn(name="read_source")
    async def read_source(self, request: ReadRequest) -> ReadRecord:
        """Fetch, extract and archive one document; the text stays in the content store (S0-055)."""
        async with heartbeating():
            with translated(READING):
                document = await self._reader.read(request.url)
                if not document.text.strip():
                    raise SourceUnreadable("no_text", "the document holds no text")
            with translated(RECORDS):
                return await self._archive(request, document)

    async def _archive(self, request: ReadRequest, document: ExtractedDocument) -> ReadRecord:
        raw, text = await asyncio.gather(
            self._content.put(document.raw, document.media_type), self._content.put_text(document.text)
        )
        quality, reason = self._quality_of(document.url)
        return ReadRecord(
            url=document.url,
            title=document.title or request.title,
            authors=document.authors,
            publisher=document.publisher,
            published_at=document.published_at,
            retrieved_at=self._clock().isoformat(timespec="seconds"),
            media_type=document.media_type,
            content_hash=raw.hash,
            raw=raw,
            text=text,
            characters=len(document.text),
            quality=quality,
            quality_reason=reason,
        )
