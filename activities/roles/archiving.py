"""Archiving: records of the items that a call showed at a level below compressed, or not at all."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from contracts.roles import AnalyzeInput
from contracts.tokens import RATIOS, ArchiveRecord, CallFidelity, ItemFidelity, Level
from providers.errors import ProviderError
from providers.interfaces import ContentArchive, ContentStore, EngineAnswer, EngineTask

PATIENCE_SECONDS: Final = 30.0
"""A model call waits so long for the archive."""

log = structlog.get_logger()


async def archive_content(
    archive: ContentArchive | None, content: ContentStore, task: EngineTask, answer: EngineAnswer, figures: CallFidelity
) -> CallFidelity:
    """Archive the items of a call, and add their hashes to its figures, or why they could not be archived."""
    hidden = [item for item in answer.items if RATIOS[item.current_level] < RATIOS[Level.COMPRESSED]]
    if archive is None or not hidden or not task.input.tokens.content_archive_enabled:
        return figures
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            records = [await _record(content, task, item) for item in hidden]
            await archive.put(records)
    except (ProviderError, TimeoutError) as error:
        log.warning("archive.not_written", error=type(error).__name__)
        reason = str(error) or "the folder of tokens.research_archive_dir does not answer"
        problem = f"content that was not shown could not be archived: {reason}"
        return figures.model_copy(update={"archive_problem": problem})
    return figures.model_copy(update={"archived": list(dict.fromkeys(record.content_hash for record in records))})


async def _record(content: ContentStore, task: EngineTask, item: ItemFidelity) -> ArchiveRecord:
    """The record of an item: of the whole stored text of a source, else of its part of the prompt as it was whole."""
    request, level, now = task.input, item.current_level, datetime.now(UTC).replace(microsecond=0)
    sources = {one.id: one for one in request.sources} if isinstance(request, AnalyzeInput) else {}
    source, parts = sources.get(item.id), {part.id: part for part in task.whole.items}
    text = source.text if source else None
    text = text or await content.put_text(parts[item.id].render(Level.FULL))
    return ArchiveRecord(
        content_hash=text.hash,
        content=text,
        item_id=item.id,
        item_type=item.kind,
        archived_at=now,
        archive_reason="dropped" if level is Level.DROPPED else f"compressed to {level.value}",
        original_tokens=item.original_tokens,
        metadata={"url": source.url, "title": source.title} if source else {},
        runs={request.research_id: now + timedelta(hours=request.tokens.content_archive_ttl_hours)},
    )
