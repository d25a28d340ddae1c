"""Bringing an index up to date: only files that changed are read, in children, several at a time."""

import asyncio
import fcntl
import hashlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from contracts.addresses import short_hash
from providers.errors import CorpusUnknown, ProviderError
from providers.interfaces import NO_DOCUMENT, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.reader import as_unreadable
from providers.search.corpus.definitions import CorpusDefinition
from providers.search.corpus.index import IndexDamaged, IndexWriter
from providers.search.corpus.indexed_file import TASK, IndexedFile
from providers.search.corpus.scanning import FoundFile, scan_folder, skipped_file

BATCH_FILES: Final = 16
BATCH_BYTES: Final = 2_000_000
"""Of one transaction: a kill loses no more."""
READ_AHEAD: Final = 8
"""Files for each child that are read, or wait to be written."""
SAMPLE_FILES: Final = 7
"""Files whose language decides that of a collection without one."""
OPTIMIZE_FROM: Final = 200
"""Changed files from which merging the parts of the index is worth its time."""
POLL_SECONDS: Final = 0.05

Progress = Callable[[IndexProgress], None]
Result = tuple[FoundFile, IndexedFile | SkippedFile]


@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Take an exclusive lock, which the kernel releases when its process dies; waiting can be cancelled."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(POLL_SECONDS)
        yield


async def refresh_index(
    definition: CorpusDefinition, index: Path, pool: SubprocessPool, progress: Progress | None, *, rebuild: bool = False
) -> None:
    """Make the index match the folder; `rebuild` removes it first. Raises `CorpusUnknown`, `StorageFull`,
    `Unavailable`.
    """
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with file_lock(index.with_suffix(".lock")):
        if rebuild:
            remove_index(index)
        try:
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
        scan = await asyncio.to_thread(scan_folder, root, definition.selects)
        known = await asyncio.to_thread(writer.known)
        changed = [file for file in scan.files if known.get(file.address) != (file.size, file.mtime_ns)]
        language = definition.language or writer.value("language") or await _detect(pool, root, scan.files)
        await asyncio.to_thread(writer.note, language=language)
        unchanged, skipped, done = len(scan.files) - len(changed), _documents(scan.skipped), 0

        def report(current: str) -> None:
            if progress is not None:
                progress(IndexProgress(done, len(changed), unchanged, skipped, current))

        report("")
        async for results in _read_in_batches(pool, root, changed, language):
            await asyncio.to_thread(writer.write, results)
            done += len(results)
            skipped += _documents(result for _, result in results if isinstance(result, SkippedFile))
            report(results[-1][0].address)
        gone = known.keys() - {file.address for file in scan.files}
        await asyncio.to_thread(writer.finish, sorted(gone), scan.skipped)
        if len(changed) >= min(OPTIMIZE_FROM, len(scan.files) / 2):
            await asyncio.to_thread(writer.optimize)
        digest = digest_of(await asyncio.to_thread(writer.hashes))
        if changed or gone or writer.value("digest") != digest:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            await asyncio.to_thread(writer.note, digest=digest, indexed_at=now)
    finally:
        await asyncio.to_thread(writer.close)


def digest_of(hashes: Iterable[tuple[str, str]]) -> str:
    """The state of a corpus in one hash, over path and content of every document."""
    total = hashlib.sha256()
    for path, raw_hash in hashes:
        total.update(f"{path}\0{raw_hash}\n".encode())
    return "sha256:" + total.hexdigest()


async def _detect(pool: SubprocessPool, root: Path, files: Sequence[FoundFile]) -> str:
    """The language of most of a few files; English where none can be read."""
    likely = [file for file in files if file.size <= BATCH_BYTES]
    sample = likely[:: max(1, len(likely) // SAMPLE_FILES)][:SAMPLE_FILES]
    results = await asyncio.gather(*(_read(pool, root, file, "") for file in sample))
    languages = Counter(result.facts.language for _, result in results if isinstance(result, IndexedFile))
    return min(languages, key=lambda code: (-languages[code], code), default="en")


def _documents(skipped: Iterable[SkippedFile]) -> int:
    return sum(file.kind != NO_DOCUMENT for file in skipped)


async def _read_in_batches(
    pool: SubprocessPool, root: Path, files: Sequence[FoundFile], language: str
) -> AsyncIterator[list[Result]]:
    """The results of all files in their order; a few files are read ahead."""
    waiting = deque(files)
    running: deque[asyncio.Task[Result]] = deque()
    batch: list[Result] = []
    try:
        while waiting or running:
            while waiting and len(running) < READ_AHEAD * pool.size:
                running.append(asyncio.create_task(_read(pool, root, waiting.popleft(), language)))
            batch.append(await running.popleft())
            if len(batch) == BATCH_FILES or sum(file.size for file, _ in batch) > BATCH_BYTES or not running:
                yield batch
                batch = []
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _read(pool: SubprocessPool, root: Path, file: FoundFile, language: str) -> Result:
    try:
        return file, await pool.call(TASK, str(root), file.path, language)
    except ProviderError as error:
        return file, skipped_file(file.address, as_unreadable(error))
