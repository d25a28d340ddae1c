"""Named folders of documents, indexed and searchable: on this host, or on any host through the object store.

In an object store, an index file, stored by its hash, contains the texts of all documents of a corpus, and a record
names the current one. A host fetches an index file once, and stores only the newest.
"""

import asyncio
import fcntl
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from contracts.addresses import digest, name_page, short_hash
from contracts.base import Contract
from contracts.evidence import DocumentRef
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot, SkippedFile
from contracts.sentences import Message
from providers.encryption import Keyring
from providers.errors import (
    ContentCorrupt,
    ContentMissing,
    CorpusUnknown,
    InvalidCall,
    ProcessStalled,
    ProviderError,
    SourceUnreadable,
)
from providers.interfaces import ExtractedDocument, Progress
from providers.isolation.pool import SubprocessPool
from providers.reading.reader import as_unreadable, extract_in_child
from providers.schemas import INDEX
from providers.search.corpus.folders import (
    NAME,
    CorpusDefinition,
    FoundFile,
    address_path,
    document_url,
    path_address,
    read_regular_file,
    refuse_key,
    refuse_key_name,
    scan_folder,
    skipped_file,
    split_url,
)
from providers.search.corpus.index import (
    BUSY_SECONDS,
    FORMAT,
    IndexDamaged,
    IndexedFile,
    IndexOutdated,
    IndexReader,
    IndexWriter,
    open_index,
    require_format,
    translated_errors,
)
from providers.search.corpus.overview import overview_of, series_form
from providers.search.corpus.query import PROVIDER, search_index
from providers.storage.content import ObstoreContentStore, is_on_this_host
from providers.storage.stored_records import Records, open_records

T = TypeVar("T")
Result = tuple[FoundFile, IndexedFile | SkippedFile]

TASK: Final = f"{__package__}.index:read_for_index"
INDEXED: Final = TypeAdapter(IndexedFile)
FILES_AT_ONCE: Final = 8  # whose bytes are in memory: children open no files
BATCH_FILES: Final = 32  # per transaction; a kill loses no more than one that is written and one that is read
NEVER_READ: Final = -1  # time of change in the index of a file that the next refresh reads again
MAX_OF_SERIES: Final = 3  # titles that differ in their numbers alone, among those closest to a question
SAMPLE_FILES: Final = 7  # sampled files, whose language becomes that of a corpus without one
SAMPLE_BYTES: Final = 2_000_000
POLL_SECONDS: Final = 0.05
INDEX_RETENTION: Final = timedelta(days=1)  # of older index files, which another host may be fetching


def open_library(
    content_url: str | None,
    home: Path,
    corpora: Path,
    pool: SubprocessPool,
    definitions: Iterable[CorpusDefinition],
    keyring: Keyring | None = None,
) -> "CorpusLibrary":
    """Open the corpora of this host, or of all hosts that share a store; own indexes are below `corpora`.

    `keyring` encrypts those that are published; an index on this host is searched, so it is as plain as its documents.
    """
    if content_url is None or is_on_this_host(content_url):
        return CorpusLibrary(corpora, pool, definitions)
    return PublishedLibrary(content_url, home, corpora, pool, definitions, keyring)


class CorpusLibrary:
    """`Corpora` of one host: those of the configuration, and those registered by commands.

    A registration is a record below `home`, read each time, so that workers see it; a damaged one raises `InvalidCall`.
    """

    name = PROVIDER

    def __init__(self, home: Path, pool: SubprocessPool, definitions: Iterable[CorpusDefinition] = ()) -> None:
        self.home = home
        self._pool = pool
        self._configured = {definition.name: definition for definition in definitions}
        self._registered = Records(home, "registered")

    def names(self) -> list[str]:
        """Return the names of all corpora of this host, sorted."""
        return sorted({*self._registered.names(), *self._configured})

    def definition(self, name: str) -> CorpusDefinition:
        """Return a corpus by name. Raises `CorpusUnknown`."""
        if name in self._configured:
            return self._configured[name]
        data = None
        if re.fullmatch(NAME, name):
            data = self._registered.read(name)
        if data is None:
            raise CorpusUnknown("no corpus of that name is known here: see `research corpus list`")
        try:
            return CorpusDefinition.model_validate_json(data)
        except ValueError as error:
            raise InvalidCall("the registration of a corpus in the data folder is damaged") from error

    def authority(self, name: str) -> str:
        """Return the declared authority of a corpus. Raises `CorpusUnknown`."""
        return self.definition(name).authority

    def add(self, name: str, path: Path) -> None:
        """Register a folder for all processes that share `home`, or replace its registration.

        Raises `CorpusUnknown` without such a folder, `InvalidCall` if the configuration has that name, and
        pydantic's ValidationError for a malformed name.
        """
        folder = path.expanduser().absolute()
        if not folder.is_dir():
            raise CorpusUnknown("there is no such folder")
        if name in self._configured:
            raise InvalidCall("the configuration already defines a corpus of that name")
        definition = CorpusDefinition(name=name, path=folder)
        self._registered.write(name, definition.model_dump_json(indent=2).encode())

    async def remove(self, name: str) -> None:
        """Forget a registered folder and its index; its files stay. Raises `CorpusUnknown`, `InvalidCall`."""
        if name in self._configured:
            raise InvalidCall("the corpus is defined in the configuration")
        self.definition(name)
        self._registered.remove(name)
        remove_index(self.index_path(name))

    async def searchable(self) -> dict[str, Path | None]:
        """Return the folder of every searchable corpus by name; None if it is on another host."""
        return {name: self.definition(name).path for name in self.names()}

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order, by document; an unusable index is rebuilt. Raises as `refresh` does."""
        if (name := request.corpus) is None:
            raise CorpusUnknown("the search names no corpus")
        index = await self._index(name)
        try:
            return await asyncio.to_thread(search_index, index, name, request)
        except IndexOutdated:
            await self.refresh(name)
            return await asyncio.to_thread(search_index, await self._index(name), name, request)
        except (CorpusUnknown, IndexDamaged):
            return await asyncio.to_thread(search_index, await self._replaced(name, index), name, request)

    async def refresh(self, name: str, progress: Progress | None = None) -> CorpusSnapshot:
        """Bring the index up to date; only changed files are read. Raises `CorpusUnknown`, `StorageFull`."""
        await refresh_index(self.definition(name), self.index_path(name), self._pool, progress)
        return await self.describe(name)

    async def describe(self, name: str) -> CorpusSnapshot:
        """Describe what a run would search now: nothing before the first `refresh`. Raises `CorpusUnknown`."""
        definition = self.definition(name)
        return await look_up(self.index_path(name), lambda index: index.snapshot(definition), definition.snapshot())

    async def count(self, name: str, folder: Path | None = None) -> CorpusSnapshot:
        """Return how much there is to read, without reading it: as indexed, else the files of the folder.

        `folder` is that of a corpus that is not registered yet. Raises `CorpusUnknown`.
        """
        if folder is None:
            definition = self.definition(name)
        else:
            definition = CorpusDefinition(name=name, path=folder)
        if folder is None and (indexed := await self.describe(name)).indexed_at:
            return indexed
        files, _ = await asyncio.to_thread(scan_folder, definition.path, definition.selects)
        return definition.snapshot(files=len(files), size_bytes=sum(file.size for file in files))

    async def closest_titles(self, name: str, question: str, limit: int) -> list[str]:
        """Return the titles of the documents that fit a question best, best first, each with its path in brackets.

        Of titles that differ in their numbers alone, such as those of releases, only the best few are among them, so
        that they do not take the place of all others. Raises as `refresh` does.
        """
        request = SearchRequest(
            research_id="", operation="titles", provider=PROVIDER, corpus=name, text=question, max_results=2 * limit
        )
        hits = (await self.search(request)).hits
        links = await look_up(await self._index(name), IndexReader.link_pages, frozenset[str]())
        named = list[str]()
        listed = Counter[str]()
        for hit in hits:
            form = series_form(hit.title)
            listed[form] += 1
            is_listed = not form or listed[form] <= MAX_OF_SERIES
            if is_listed and path_address(address_path(split_url(hit.url)[1])) not in links:
                named.append(name_page(hit.title, hit.url).strip())
        return named[:limit]

    async def skipped(self, name: str) -> list[SkippedFile]:
        """Return the files that could not be used, with reasons, by path. Raises `CorpusUnknown`."""
        return await look_up(await self._index(name), IndexReader.skipped, [])

    async def has(self, url: str) -> bool:
        """Return whether the document `corpus:NAME/path` is in its folder and belongs to the corpus."""
        try:
            name, address = split_url(url)
            definition = self.definition(name)
            path = address_path(address)
        except (CorpusUnknown, SourceUnreadable):
            return False
        return definition.selects(path) and await asyncio.to_thread((definition.path / path).is_file)

    async def warnings(self, name: str) -> list[tuple[str, str]]:
        """Return path and warning of each document that could not be read to the last word. Raises `CorpusUnknown`."""
        return await look_up(await self._index(name), IndexReader.warnings, [])

    async def read(self, url: str) -> ExtractedDocument:
        """Read a document, with the indexed text if the file is unchanged. Raises as the Protocol does."""
        name, address = split_url(url)
        path = address_path(address)
        definition = self.definition(name)
        if not definition.selects(path):
            raise SourceUnreadable("not_found", "the corpus has no such document")
        root = definition.path.resolve()
        raw = await asyncio.to_thread(read_regular_file, root / path, root)
        refuse_key_name((root / path).resolve().relative_to(root).as_posix())
        refuse_key(raw)
        address_in_index = path_address(path)
        url = document_url(name, address_in_index)
        indexed = await look_up(self.index_path(name), lambda index: index.document(address_in_index), None)
        if indexed is not None and indexed[0].raw_hash == digest(raw):
            return ExtractedDocument(url=url, text=indexed[1], raw=raw, **indexed[0].facts.facts())
        extraction = await extract_in_child(self._pool, "extract", raw, PurePosixPath(path).name)
        refuse_key(extraction.text)
        return ExtractedDocument(url=url, text=extraction.text, raw=raw, **extraction.facts())

    def index_path(self, name: str) -> Path:
        """Return the path of an index of this host."""
        return self.home / "indexes" / f"{name}.sqlite3"

    async def _index(self, name: str) -> Path:
        """Return the path of the index of a corpus, which may not exist yet. Raises `CorpusUnknown`."""
        self.definition(name)
        return self.index_path(name)

    async def _replaced(self, name: str, index: Path) -> Path:
        """Replace a damaged or missing index; return the path of a usable one."""
        await refresh_index(self.definition(name), index, self._pool, None, rebuild=True)
        return index


class State(Contract):
    """A published state of a corpus, with its index file."""

    format: str
    corpus: CorpusSnapshot
    index: DocumentRef


class PublishedLibrary(CorpusLibrary):
    """Corpora that any host searches as published by the host with the folder. Methods raise `Unavailable`."""

    def __init__(
        self,
        content_url: str,
        home: Path,
        corpora: Path,
        pool: SubprocessPool,
        definitions: Iterable[CorpusDefinition],
        keyring: Keyring | None = None,
    ) -> None:
        super().__init__(corpora, pool, definitions)
        self._keyring = keyring
        self._records = open_records(content_url, home, "corpora", keyring)
        self._files_url = f"{content_url.rstrip('/')}/corpus-content"
        self._cache = home / "cache" / "indexes"
        self._authorities: dict[str, str] = {}

    async def remove(self, name: str) -> None:
        """Forget a registered folder and its index, here and in the object store."""
        await super().remove(name)
        await asyncio.to_thread(self._records.remove, name)

    async def searchable(self) -> dict[str, Path | None]:
        """Return the folder of every searchable corpus by name; None if it is on another host."""
        return dict.fromkeys(await asyncio.to_thread(self._records.names)) | await super().searchable()

    def authority(self, name: str) -> str:
        """Return the authority of a corpus: as published if it was read, else as declared. Raises `CorpusUnknown`."""
        return self._authorities.get(name) or super().authority(name)

    async def refresh(self, name: str, progress: Progress | None = None) -> CorpusSnapshot:
        """Update and publish the index; without the folder, return the published state. Raises as the base does."""
        folder = (await super().searchable()).get(name)
        if folder is None or not await asyncio.to_thread(folder.is_dir):
            return (await self._get(name)).corpus
        await super().refresh(name, progress)
        return await self._publish(self.definition(name), self.index_path(name))

    async def describe(self, name: str) -> CorpusSnapshot:
        """Describe the newest published state: no files before the first `refresh`. Raises `CorpusUnknown`."""
        state = await self._find(name)
        if state:
            return state.corpus
        return self.definition(name).snapshot()

    async def read(self, url: str) -> ExtractedDocument:
        """Read `corpus:NAME/path` as published; its bytes are its text. Raises `SourceUnreadable`, `CorpusUnknown`."""
        name, address = split_url(url)
        path = path_address(address_path(address))
        self._authorities[name] = (await self._get(name)).corpus.authority
        entry = await look_up(await self._index(name), lambda index: index.document(path), None)
        if entry is None:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        document, text = entry
        return ExtractedDocument(url=document_url(name, path), text=text, raw=text.encode(), **document.facts.facts())

    async def has(self, url: str) -> bool:
        """Return whether the document `corpus:NAME/path` is in the published index."""
        try:
            name, address = split_url(url)
            path = path_address(address_path(address))
            return await look_up(await self._index(name), lambda index: index.document(path), None) is not None
        except (CorpusUnknown, SourceUnreadable, ContentMissing):
            return False

    def _files(self, name: str) -> ObstoreContentStore:
        """Return the store of one corpus's index files, which no other corpus shares."""
        return ObstoreContentStore(f"{self._files_url}/{name}", self._keyring)

    async def _find(self, name: str) -> State | None:
        data = await asyncio.to_thread(self._records.read, name)
        try:
            if data is None:
                return None
            return State.model_validate_json(data)
        except ValidationError:
            raise ContentCorrupt(f"the record of the corpus {name} in the object store is damaged") from None

    async def _get(self, name: str) -> State:
        if (state := await self._find(name)) is None:
            raise CorpusUnknown("no host has published the corpus: index it where its folder is")
        return state

    async def _index(self, name: str) -> Path:
        """Return the published index, fetching it if needed. Raises `CorpusUnknown`, `ContentMissing`."""
        state = await self._get(name)
        try:
            require_format(state.format, INDEX, name, f"`research corpus remove {name}`, and add its folder again")
        except CorpusUnknown:
            message = "the corpus was published by another version: index it again where its folder is"
            raise CorpusUnknown(message) from None
        path = self._cache / name / f"{state.index.hash.rpartition(':')[2]}.sqlite3"
        async with file_lock(path.with_name("index.lock")):
            if not path.exists():
                await asyncio.to_thread(self._files(name).get_file, state.index, path)
                for older in set(path.parent.glob("*.sqlite3")) - {path}:  # a process that reads one is not affected
                    older.unlink(missing_ok=True)
        return path

    async def _replaced(self, name: str, index: Path) -> Path:
        await asyncio.to_thread(index.unlink, missing_ok=True)
        return await self._index(name)

    async def _publish(self, definition: CorpusDefinition, index: Path) -> CorpusSnapshot:
        """Publish an index unless it is published already, then the record that names it. Raises `StorageFull`."""
        name = definition.name
        files = self._files(definition.name)
        async with file_lock(index.with_suffix(".publishing")):
            published = await self._find(name)
            if published is not None:
                with suppress(CorpusUnknown):  # an older one is replaced
                    require_format(published.format, INDEX, name, f"`research corpus remove {name}`, and add it again")
            with TemporaryDirectory(dir=index.parent, prefix=".publishing-") as folder:
                copy = Path(folder) / "index.sqlite3"
                corpus = await asyncio.to_thread(_copy, index, copy, definition)
                has_format = published is not None and published.format == FORMAT
                if published and has_format and published.corpus.with_fields(indexed_at=corpus.indexed_at) == corpus:
                    return published.corpus
                index_file = await asyncio.to_thread(files.put_file, copy, "application/vnd.sqlite3")
            state = State(format=FORMAT, corpus=corpus, index=index_file)
            await asyncio.to_thread(self._records.write, name, state.model_dump_json().encode())
            await files.delete_others({index_file.hash}, unless_put_since=datetime.now(UTC) - INDEX_RETENTION)
            return corpus


async def ingest_file(pool: SubprocessPool, path: Path) -> ExtractedDocument:
    """Read one file outside any corpus, exactly as a corpus would. Raises `SourceUnreadable`."""
    raw = await asyncio.to_thread(read_regular_file, path)
    extraction = await extract_in_child(pool, "extract", raw, path.name)
    absolute_path = await asyncio.to_thread(path.absolute)
    return ExtractedDocument(url=absolute_path.as_uri(), text=extraction.text, raw=raw, **extraction.facts())


async def look_up(path: Path, query: Callable[[IndexReader], T], default: T) -> T:
    """Query an index in a thread; return the default if none is usable, which the next refresh repairs."""

    def run() -> T:
        try:
            with open_index(path) as index:
                return query(index)
        except (CorpusUnknown, IndexDamaged):
            return default

    return await asyncio.to_thread(run)


def _copy(index: Path, copy: Path, definition: CorpusDefinition) -> CorpusSnapshot:
    """Copy a consistent snapshot of the index into one file, and return its state."""
    with translated_errors():
        database = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("VACUUM INTO ?", (str(copy),))
        finally:
            database.close()
    with open_index(copy) as reader:
        return reader.snapshot(definition)


# --- bringing an index up to date: only changed files are read, in children, several at a time
@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Take an exclusive lock, which the kernel releases when the process dies; waiting can be cancelled."""
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
    """Make the index match the folder, from scratch with `rebuild`. Raises `CorpusUnknown`, and as its writer."""
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
        file_states = await asyncio.to_thread(writer.file_states)
        changed = [file for file in files if file_states.get(file.address) != (file.size, file.mtime_ns)]
        language = definition.language or writer.value("language") or await _detect(pool, root, files)
        await asyncio.to_thread(writer.set_values, language=language)
        results = list[Result]()
        for done in range(0, len(changed) + BATCH_FILES, BATCH_FILES):
            batch = changed[done : done + BATCH_FILES]
            if progress is not None:
                progress(min(done, len(changed)), len(changed))
            reading = asyncio.create_task(_read_all(pool, root, batch, language))
            try:
                await asyncio.to_thread(writer.write, results)  # of the batch before, while children read this one
                results = await reading
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        gone = file_states.keys() - {file.address for file in files}
        await asyncio.to_thread(writer.finish, sorted(gone), unusable)
        digest = await asyncio.to_thread(writer.digest)
        if not writer.value("overview") or writer.value("digest") != digest:
            titles = await asyncio.to_thread(writer.titles)
            overview = await asyncio.to_thread(overview_of, titles)
            await asyncio.to_thread(writer.set_values, overview=overview.model_dump_json())
            await asyncio.to_thread(writer.note_link_pages)
        if changed or gone or writer.value("digest") != digest:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            await asyncio.to_thread(writer.set_values, digest=digest, indexed_at=now)
    finally:
        await asyncio.to_thread(writer.close)


async def _detect(pool: SubprocessPool, root: Path, files: Sequence[FoundFile]) -> str:
    """Return the most common language of a few files; English if none can be read."""
    small_files = [file for file in files if file.size <= SAMPLE_BYTES]
    results = await _read_all(pool, root, small_files[:: max(1, len(small_files) // SAMPLE_FILES)][:SAMPLE_FILES], "")
    languages = Counter(result.document.key_language for _, result in results if isinstance(result, IndexedFile))
    return min(languages, key=lambda code: (-languages[code], code), default="en")


async def _read_all(pool: SubprocessPool, root: Path, files: Sequence[FoundFile], language: str) -> list[Result]:
    at_once = asyncio.Semaphore(FILES_AT_ONCE)

    async def read(file: FoundFile) -> Result:
        try:
            async with at_once:
                raw = await asyncio.to_thread(read_regular_file, root / file.path, root)
                return file, await pool.call(TASK, raw, PurePosixPath(file.path).name, language, returns=INDEXED)
        except ProcessStalled:
            # The file is not the cause: with no time of change it counts as changed, and is read at the next refresh.
            stalled = SourceUnreadable("timeout", Message("skip_stalled"))
            return replace(file, mtime_ns=NEVER_READ), skipped_file(file.address, stalled)
        except ProviderError as error:
            return file, skipped_file(file.address, as_unreadable(error))

    return list(await asyncio.gather(*map(read, files)))
