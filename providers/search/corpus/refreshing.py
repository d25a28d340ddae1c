"""Bringing an index up to date: only files that changed are read, in children, several at a time."""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from contracts.addresses import short_hash
from providers.errors import CorpusUnknown
from providers.interfaces import NO_DOCUMENT, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.reader import as_unreadable
from providers.search.corpus.definitions import CorpusDefinition
from providers.search.corpus.file_lock import file_lock
from providers.search.corpus.index_store import LANGUAGE, IndexDamaged, IndexWriter
from providers.search.corpus.indexing_task import LANGUAGE_TASK, TASK, IndexedFile
from providers.search.corpus.scanning import FoundFile, Scan, scan_folder, skipped_file

BATCH_FILES: Final = 16
BATCH_BYTES: Final = 2_000_000
FILES_ASKED: Final = 7
"""Files whose words tell the language of a collection that does not say it."""
LARGE_FILE: Final = 2_000_000
OPTIMIZE_FROM: Final = 200
"""Changed files from which merging the index's segments is worth its time."""

Progress = Callable[[IndexProgress], None]
Result = tuple[FoundFile, IndexedFile | SkippedFile]


def identity_of(definition: CorpusDefinition) -> str:
    """What an index was made for: another folder or language needs another index."""
    return short_hash(definition.path.resolve(), definition.language)


def digest_of(hashes: Iterable[tuple[str, str]]) -> str:
    """The state of a corpus in one hash, over path and content of every document."""
    total = hashlib.sha256()
    for path, raw_hash in hashes:
        total.update(f"{path}\0{raw_hash}\n".encode())
    return "sha256:" + total.hexdigest()


def batches_of(files: Iterable[FoundFile]) -> list[list[FoundFile]]:
    """Files in groups that are worth a trip to a child."""
    batches: list[list[FoundFile]] = []
    size = 0
    for file in files:
        if not batches or len(batches[-1]) >= BATCH_FILES or size + file.size > BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(file)
        size += file.size
    return batches


async def refresh_index(
    definition: CorpusDefinition, index: Path, pool: SubprocessPool, progress: Progress | None
) -> None:
    """Make the index match the folder. Raises `CorpusUnknown`, `StorageFull`, `Unavailable`."""
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with file_lock(index.with_suffix(".lock")):
        try:
            await _refresh(definition, index, pool, progress)
        except IndexDamaged:
            for suffix in ("", "-wal", "-shm"):
                index.with_name(index.name + suffix).unlink(missing_ok=True)
            await _refresh(definition, index, pool, progress)


async def _refresh(definition: CorpusDefinition, index: Path, pool: SubprocessPool, progress: Progress | None) -> None:
    root = definition.path.resolve()
    if not await asyncio.to_thread(root.is_dir):
        raise CorpusUnknown("the folder of the corpus is gone")
    writer = await asyncio.to_thread(IndexWriter, index, identity_of(definition))
    try:
        scan = await asyncio.to_thread(scan_folder, root, definition.selects)
        known = await asyncio.to_thread(writer.known)
        changed = [file for file in scan.files if known.get(file.address) != (file.size, file.mtime_ns)]
        language = definition.language or await _language_of(definition, pool, writer, scan.files)
        definition = definition.model_copy(update={"language": language})
        await _read_changed(definition, pool, writer, scan=scan, changed=changed, progress=progress)
        await asyncio.to_thread(_finish, writer, scan, known, changed)
    finally:
        await asyncio.to_thread(writer.close)


async def _language_of(
    definition: CorpusDefinition, pool: SubprocessPool, writer: IndexWriter, files: Sequence[FoundFile]
) -> str:
    """The language that the index is made in, or that of most of a few files where it is only begun."""
    known = await asyncio.to_thread(writer.value, LANGUAGE)
    if known is not None:
        return known
    root = definition.path.resolve()
    likely = [file for file in files if file.size <= LARGE_FILE] or list(files)
    chosen = likely[:: max(1, len(likely) // FILES_ASKED)][:FILES_ASKED]
    items = [(str(root), one.path, PurePosixPath(one.path).name) for one in chosen]
    outcomes = await pool.call_each(LANGUAGE_TASK, items)
    spoken = Counter(outcome.value for outcome in outcomes if outcome.error is None)
    language = min(spoken, key=lambda code: (-spoken[code], code)) if spoken else "en"
    await asyncio.to_thread(writer.note_language, language)
    return language


async def _read_changed(
    definition: CorpusDefinition,
    pool: SubprocessPool,
    writer: IndexWriter,
    *,
    scan: Scan,
    changed: Sequence[FoundFile],
    progress: Progress | None,
) -> None:
    root = definition.path.resolve()
    unchanged, skipped, done = len(scan.files) - len(changed), _told(scan.skipped), 0
    total = len(changed)

    def tell(current: str) -> None:
        if progress is not None:
            progress(IndexProgress(done=done, total=total, unchanged=unchanged, skipped=skipped, current=current))

    tell("")
    async for results in _in_order(pool, [(batch, definition, root) for batch in batches_of(changed)]):
        await asyncio.to_thread(writer.write, results)
        done += len(results)
        skipped += _told(result for _, result in results if isinstance(result, SkippedFile))
        tell(results[-1][0].address)


def _told(skipped: Iterable[SkippedFile]) -> int:
    return sum(file.kind != NO_DOCUMENT for file in skipped)


async def _in_order(
    pool: SubprocessPool, work: Sequence[tuple[list[FoundFile], CorpusDefinition, Path]]
) -> AsyncIterator[list[Result]]:
    """The results of all batches in their order, with a few batches on their way at any time."""
    waiting = deque(work)
    running: deque[asyncio.Task[list[Result]]] = deque()
    try:
        while waiting or running:
            while waiting and len(running) < pool.size + 2:
                running.append(asyncio.create_task(_read_batch(pool, *waiting.popleft())))
            yield await running.popleft()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _read_batch(
    pool: SubprocessPool, batch: list[FoundFile], definition: CorpusDefinition, root: Path
) -> list[Result]:
    items = [(str(root), file.path, PurePosixPath(file.path).name, definition.language) for file in batch]
    results: list[Result] = []
    for file, outcome in zip(batch, await pool.call_each(TASK, items), strict=True):
        if outcome.error is None:
            results.append((file, outcome.value))
        else:
            results.append((file, skipped_file(file.address, as_unreadable(outcome.error))))
    return results


def _finish(writer: IndexWriter, scan: Scan, known: dict[str, tuple[int, int]], changed: Sequence[FoundFile]) -> None:
    gone = known.keys() - {file.address for file in scan.files}
    if len(changed) >= min(OPTIMIZE_FROM, len(scan.files) / 2):
        writer.optimize()
    writer.finish(sorted(gone), scan.skipped, {})
    digest = digest_of(writer.hashes())
    if changed or gone or writer.value("digest") != digest:
        writer.finish(
            (), scan.skipped, {"digest": digest, "indexed_at": datetime.now(UTC).isoformat(timespec="seconds")}
        )
    writer.give_back()
