"""The activity `read_source`: read, archive, and tell in short what was read."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from temporalio import activity

from activities.assessment.source_assessment import Judge
from activities.attempts import count_attempts
from activities.failures import READING, RECORDS, translate_errors
from activities.roles.lenient_values import one_line, shorten
from activities.roles.untrusted import INVISIBLE
from contracts.activities import ReadRecord, ReadRequest
from providers.domains import domains_named
from providers.errors import Retryable, SourceUnreadable
from providers.interfaces import ContentStore, ExtractedDocument, SourceReader

MOST_WARNINGS: Final = 5
MOST_AUTHORS: Final = 50
LONGEST_TITLE: Final = 500
LONGEST_NAME: Final = 200
LONGEST_LABEL: Final = 100
MARGIN: Final = 8
"""A text is looked at up to so many times its limit."""


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class ReadingActivities:
    """Made with a reader, the content store and the judgement of quality."""

    def __init__(
        self, reader: SourceReader, content: ContentStore, judge: Judge, clock: Callable[[], datetime] = now
    ) -> None:
        self._reader = reader
        self._content = content
        self._judge = judge
        self._clock = clock

    @activity.defn(name="read_source")
    async def read_source(self, request: ReadRequest) -> ReadRecord:
        """Fetch, extract and archive one document; the text stays in the content store."""
        async with count_attempts(READING):
            if request.holds_private:
                raise SourceUnreadable("refused_private", "the address carries words that only this run knows")
            domains = domains_named(request.domains_allow, request.domains_deny)
            try:
                document = await self._reader.read(
                    request.url, tenant=request.tenant, domains=domains, corpus_digest=request.corpus_digest
                )
            except Retryable as error:
                self._check_wait(error)
                raise
            if not document.text.strip():
                raise SourceUnreadable("no_text", "the document holds no text")
            with translate_errors(RECORDS):
                return await self._archive(request, document)

    def _check_wait(self, error: Retryable) -> None:
        """Give a page up at once where it wants to be waited for longer than there is time for its read."""
        info = activity.info()
        if error.retry_after is None or info.schedule_to_close_timeout is None:
            return
        left = (info.scheduled_time + info.schedule_to_close_timeout - self._clock()).total_seconds()
        if error.retry_after >= left:
            message = f"the site asks to wait {error.retry_after:.0f} s, longer than its pages are waited for"
            raise SourceUnreadable("asked_to_wait", message) from error

    async def _archive(self, request: ReadRequest, document: ExtractedDocument) -> ReadRecord:
        media_type = _line(document.media_type, LONGEST_LABEL)
        raw, text = await asyncio.gather(
            self._content.put(document.raw, media_type), self._content.put_text(document.text)
        )
        starts = json.dumps(document.pages) if document.pages else ""
        pages = await self._content.put_text(starts, "application/json") if starts else None
        judgement = await self._judge(request, document)
        return ReadRecord(
            url=document.url,
            title=_line(document.title, LONGEST_TITLE) or _line(request.title, LONGEST_TITLE),
            authors=[name for given in document.authors[:MOST_AUTHORS] if (name := _line(given, LONGEST_NAME))],
            publisher=_line(document.publisher, LONGEST_NAME) or None,
            published_at=_line(document.published_at, LONGEST_LABEL) or None,
            retrieved_at=self._clock().isoformat(timespec="seconds"),
            media_type=media_type,
            content_hash=raw.hash,
            raw=raw,
            text=text,
            pages=pages,
            characters=len(document.text),
            quality=judgement.quality,
            quality_reason=judgement.reason,
            assessment=judgement.assessment,
            access=document.access,
            language=_line(document.language, LONGEST_LABEL) or None,
            cached=document.cached,
            warnings=[_line(warning, LONGEST_TITLE) for warning in document.warnings[:MOST_WARNINGS]],
        )


def _line(text: str | None, limit: int) -> str:
    """What a page says of itself, as it is kept: one short line without invisible characters."""
    return shorten(one_line(INVISIBLE.sub("", (text or "")[: limit * MARGIN])), limit)
