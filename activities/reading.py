"""The activity `read_source`: read, archive, and tell in short what was read."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from temporalio import activity

from activities.attempts import attempted
from activities.failures import READING, RECORDS, translated
from activities.judging import Judge
from contracts.activities import ReadRecord, ReadRequest
from providers.domains import domains_named
from providers.errors import SourceUnreadable
from providers.interfaces import ContentStore, ExtractedDocument, TenantReader

MOST_WARNINGS: Final = 5


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class ReadingActivities:
    """Made with a reader, the content store and the judgement of quality."""

    def __init__(
        self, reader: TenantReader, content: ContentStore, judge: Judge, clock: Callable[[], datetime] = now
    ) -> None:
        self._reader = reader
        self._content = content
        self._judge = judge
        self._clock = clock

    @activity.defn(name="read_source")
    async def read_source(self, request: ReadRequest) -> ReadRecord:
        """Fetch, extract and archive one document; the text stays in the content store (S0-055)."""
        async with attempted(READING):
            if request.holds_private:
                raise SourceUnreadable("refused_private", "the address carries words that only this run knows")
            domains = domains_named(request.domains_allow, request.domains_deny)
            document = await self._reader.read(request.url, tenant=request.tenant, domains=domains)
            if not document.text.strip():
                raise SourceUnreadable("no_text", "the document holds no text")
            with translated(RECORDS):
                return await self._archive(request, document)

    async def _archive(self, request: ReadRequest, document: ExtractedDocument) -> ReadRecord:
        raw, text = await asyncio.gather(
            self._content.put(document.raw, document.media_type), self._content.put_text(document.text)
        )
        judgement = await self._judge(request, document)
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
            quality=judgement.quality,
            quality_reason=judgement.reason,
            assessment=judgement.assessment,
            access=document.access,
            language=document.language,
            cached=document.cached,
            warnings=document.warnings[:MOST_WARNINGS],
        )
