"""Indexes that hosts without the documents search: the newest state of each corpus, in the object store.

An index file, stored by its hash, holds the texts of all documents; a record for each corpus names its present one. A
host fetches an index file once, and has that of the newest state alone.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import ValidationError

from contracts.base import Contract
from contracts.evidence import DocumentRef
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot
from providers.errors import ContentCorrupt, CorpusUnknown, SourceUnreadable
from providers.interfaces import ExtractedDocument, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.definitions import CorpusDefinition, address_path, document_url, path_address, split_url
from providers.search.corpus.index import BUSY_SECONDS, FORMAT, IndexDamaged, IndexReader, open_index, translated_errors
from providers.search.corpus.library import CorpusLibrary, corpus_of, document_of, look_up
from providers.search.corpus.query import search_index
from providers.search.corpus.refreshing import file_lock
from providers.storage.content import ObstoreContentStore, is_on_this_host
from providers.storage.stored_records import open_records

RETAINED: Final = timedelta(days=1)
"""Time for which an older index file stays: another host may be fetching it."""


class State(Contract):
    """A published state of a corpus."""

    format: str
    corpus: CorpusSnapshot
    index: DocumentRef


def open_library(
    content_url: str | None, home: Path, corpora: Path, pool: SubprocessPool, definitions: Iterable[CorpusDefinition]
) -> CorpusLibrary:
    """The corpora of this host, with indexes below `corpora`; over a store that hosts share, those of all hosts."""
    if content_url is None or is_on_this_host(content_url):
        return CorpusLibrary(corpora, pool, definitions)
    return PublishedLibrary(content_url, home, corpora, pool, definitions)


class PublishedLibrary(CorpusLibrary):
    """Corpora that any host searches and reads as published; a host with the folder publishes them.

    Every method raises `Unavailable` while the store does not answer.
    """

    def __init__(
        self,
        content_url: str,
        home: Path,
        corpora: Path,
        pool: SubprocessPool,
        definitions: Iterable[CorpusDefinition],
    ) -> None:
        super().__init__(corpora, pool, definitions)
        self._records = open_records(content_url, home, "corpora")
        self._files_url = f"{content_url.rstrip('/')}/corpus-content"
        self._cache = home / "cache" / "indexes"
        self._authorities: dict[str, str] = {}

    async def remove(self, name: str) -> None:
        """Forget a registered folder and its index, and let no host search it any more."""
        await super().remove(name)
        await asyncio.to_thread(self._records.remove, name)

    async def searchable(self) -> dict[str, Path | None]:
        """Folder by name of every corpus that this host can search; None where another host has the folder."""
        return dict.fromkeys(await asyncio.to_thread(self._records.names)) | await super().searchable()

    def authority(self, name: str) -> str:
        """The authority of a corpus: as published where one was read, else as declared. Raises `CorpusUnknown`."""
        return self._authorities.get(name) or super().authority(name)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order, by document. Raises `CorpusUnknown`."""
        name = corpus_of(request)
        index = await self._index_file(await self._get(name))
        try:
            return await asyncio.to_thread(search_index, index, name, request)
        except IndexDamaged:  # in the cache of this host: the next attempt fetches it again
            await asyncio.to_thread(index.unlink, missing_ok=True)
            raise

    async def refresh(self, name: str, progress: Callable[[IndexProgress], None] | None = None) -> CorpusSnapshot:
        """Bring the index up to date and publish it; without the folder, the newest published one.

        Raises `CorpusUnknown`, `StorageFull`.
        """
        folder = (await super().searchable()).get(name)
        if folder is None or not await asyncio.to_thread(folder.is_dir):
            return (await self._get(name)).corpus
        await super().refresh(name, progress)
        return await self._publish(self.definition(name), self.index_path(name))

    async def describe(self, name: str) -> CorpusSnapshot:
        """The newest published state; no files before the first `refresh`. Raises `CorpusUnknown`."""
        found = await self._find(name)
        if found is not None:
            return found.corpus
        definition = self.definition(name)
        return CorpusSnapshot(name=name, title=definition.title, authority=definition.authority)

    async def skipped(self, name: str) -> list[SkippedFile]:
        """Files that could not be used, with reasons, by path. Raises `CorpusUnknown`."""
        index = await self._index_file(await self._get(name))
        return await look_up(index, IndexReader.skipped, [])

    async def read(self, url: str) -> ExtractedDocument:
        """Read `corpus:NAME/relative/path` of the published state; its bytes are those of its text.

        Raises `SourceUnreadable`, `CorpusUnknown`.
        """
        name, address = split_url(url)
        place = path_address(address_path(address))
        state = await self._get(name)
        self._authorities[name] = state.corpus.authority
        found = await look_up(await self._index_file(state), lambda index: index.document(place), None)
        if found is None:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        document, text = found
        return document_of(document_url(name, place), text.encode(), text, document.facts)

    def _files(self, name: str) -> ObstoreContentStore:
        """Index files of one corpus; no two corpora share any."""
        return ObstoreContentStore(f"{self._files_url}/{name}")

    async def _find(self, name: str) -> State | None:
        data = await asyncio.to_thread(self._records.read, name)
        try:
            return None if data is None else State.model_validate_json(data)
        except ValidationError:
            raise ContentCorrupt(f"the record of the corpus {name} in the object store is damaged") from None

    async def _get(self, name: str) -> State:
        found = await self._find(name)
        if found is None:
            raise CorpusUnknown("no host has published the corpus: index it where its folder is")
        return found

    async def _index_file(self, state: State) -> Path:
        """The index as a file of this host, fetched if need be. Raises `CorpusUnknown`, `ContentMissing`."""
        if state.format != FORMAT:
            raise CorpusUnknown("the corpus was published by another version: index it again where its folder is")
        name = state.corpus.name
        path = self._cache / name / f"{state.index.hash.rpartition(':')[2]}.sqlite3"
        async with file_lock(path.with_name("index.lock")):
            if not path.exists():
                await asyncio.to_thread(self._files(name).get_file, state.index, path)
                for older in set(path.parent.glob("*.sqlite3")) - {path}:  # who reads one goes on
                    older.unlink(missing_ok=True)
        return path

    async def _publish(self, definition: CorpusDefinition, index: Path) -> CorpusSnapshot:
        """Publish the present state of an index, unless it is published already.

        An index is stored before the record that names it. Raises `StorageFull`.
        """
        name, files = definition.name, self._files(definition.name)
        async with file_lock(index.with_suffix(".publishing")):
            before = await self._find(name)
            with TemporaryDirectory(dir=index.parent, prefix=".publishing-") as folder:
                copy = Path(folder) / "index.sqlite3"
                corpus = await asyncio.to_thread(_copy, index, copy, definition)
                same = {"indexed_at": corpus.indexed_at}
                if before and (before.format, before.corpus.model_copy(update=same)) == (FORMAT, corpus):
                    return before.corpus
                index_file = await asyncio.to_thread(files.put_file, copy, "application/vnd.sqlite3")
            state = State(format=FORMAT, corpus=corpus, index=index_file)
            await asyncio.to_thread(self._records.write, name, state.model_dump_json().encode())
            await files.delete_others({index_file.hash}, unless_put_since=datetime.now(UTC) - RETAINED)
            return corpus


def _copy(index: Path, copy: Path, definition: CorpusDefinition) -> CorpusSnapshot:
    """Copy the index as of one moment into one file, and return its state."""
    with translated_errors():
        database = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("VACUUM INTO ?", (str(copy),))
        finally:
            database.close()
    with open_index(copy) as reader:
        return reader.snapshot(definition)
