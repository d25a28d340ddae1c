"""Bringing an index up to date: only files that changed are read, in children, several at a time."""

import asyncio
import fcntl
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from contracts.addresses import short_hash
from providers.errors import CorpusUnknown, ProviderError
from providers.interfaces import Progress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.reader import as_unreadable
from providers.search.corpus.folders import CorpusDefinition, FoundFile, scan_folder, skipped_file
from providers.search.corpus.index import IndexDamaged, IndexedFile, IndexWriter, translated_errors

TASK: Final = "providers.search.corpus.index:read_for_index"
BATCH_FILES: Final = 32  # of one transaction: a kill loses no more; they are read at the same time
SAMPLE_FILES: Final = 7  # files whose language decides that of a collection without one
SAMPLE_BYTES: Final = 2_000_000
POLL_SECONDS: Final = 0.05

Result = tuple[FoundFile, IndexedFile | SkippedFile]


@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Take an exclusive lock, which the kernel releases when its process dies; waiting can be cancelled."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(POLL_SECONDS)
        yield


async def refresh_index(
    definition: CorpusDefinition,
    index: Path,
    pool: SubprocessPool,
    progress: Progress | None,
    *,
    rebuild: bool = False,
) -> None:
    """Make the index match the folder, with `rebuild` from the beginning. Raises `CorpusUnknown`, and as its writer."""
    async with file_lock(index.with_suffix(".lock")):
        if rebuild:
            remove_index(index)
        try:
            with translated_errors():
                await _refresh(definition, index, pool, progress)
        except IndexDamaged:
            remove_index(index)
            await _refresh(definition, index, pool, progress)


def remove_index(index: Path) -> None:
    """Remove the files of an index."""
    for suffix in ("", "-wal", "-shm"):
        index.with_name(index.name + suffix).unlink(missing_ok=True)


async def _refresh(definition: CorpusDefinition, index: Path, pool: SubprocessPool, progress: Progress | None) -> None:
    root = definition.path.resolve()
    if not await asyncio.to_thread(root.is_dir):
        raise CorpusUnknown("the folder of the corpus is gone")
    writer = await asyncio.to_thread(IndexWriter, index, short_hash(root, definition.language))
    try:
        files, unusable = await asyncio.to_thread(scan_folder, root, definition.selects)
        known = await asyncio.to_thread(writer.known)
        changed = [file for file in files if known.get(file.address) != (file.size, file.mtime_ns)]
        language = definition.language or writer.value("language") or await _detect(pool, root, files)
        await asyncio.to_thread(writer.note, language=language)
        for done in range(0, len(changed) + BATCH_FILES, BATCH_FILES):
            batch = changed[done : done + BATCH_FILES]
            if progress is not None:
                progress(min(done, len(changed)), len(changed))
            results = await _read_all(pool, root, batch, language)
            await asyncio.to_thread(writer.write, results)
        gone = known.keys() - {file.address for file in files}
        await asyncio.to_thread(writer.finish, sorted(gone), unusable)
        digest = await asyncio.to_thread(writer.digest)
        if changed or gone or writer.value("digest") != digest:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            await asyncio.to_thread(writer.note, digest=digest, indexed_at=now)
    finally:
        await asyncio.to_thread(writer.close)


async def _detect(pool: SubprocessPool, root: Path, files: Sequence[FoundFile]) -> str:
    """Return the language of most of a few files; English where none can be read."""
    likely = [file for file in files if file.size <= SAMPLE_BYTES]
    results = await _read_all(pool, root, likely[:: max(1, len(likely) // SAMPLE_FILES)][:SAMPLE_FILES], "")
    languages = Counter(result.document.key_language for _, result in results if isinstance(result, IndexedFile))
    return min(languages, key=lambda code: (-languages[code], code), default="en")


async def _read_all(pool: SubprocessPool, root: Path, files: Sequence[FoundFile], language: str) -> list[Result]:
    async def read(file: FoundFile) -> Result:
        try:
            return file, await pool.call(TASK, str(root), file.path, language)
        except ProviderError as error:
            return file, skipped_file(file.address, as_unreadable(error))

    return list(await asyncio.gather(*map(read, files)))
