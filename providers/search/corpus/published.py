"""Indexes that hosts without the documents search: each state of a corpus is an immutable snapshot in the object store.

A snapshot is the index file, the raw documents by their hashes, and a small record that names them. Another record
names the newest snapshot of each corpus. A host fetches an index file once and stores it in a bounded cache. A snapshot
is removed `RETAINED` after its successor was published.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import ValidationError

from contracts.base import Contract
from contracts.evidence import DocumentRef
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot
from providers.errors import ContentCorrupt, ContentMissing, CorpusUnknown, SourceUnreadable, Unavailable
from providers.interfaces import ExtractedDocument, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.definitions import CorpusDefinition, address_path, document_url, path_address, split_url
from providers.search.corpus.index import BUSY_SECONDS, FORMAT, IndexDamaged, IndexReader, open_index, translated_errors
from providers.search.corpus.library import CorpusLibrary, corpus_of, document_of, look_up
from providers.search.corpus.query import search_index
from providers.search.corpus.refreshing import file_lock
from providers.storage.content import ObstoreContentStore, hash_of, is_on_this_host
from providers.storage.stored_records import open_records

CACHE_BYTES: Final = 4_000_000_000
"""Of index files of a host; beyond that those longest unused are removed."""
STORES_AT_ONCE: Final = 8
RETAINED: Final = timedelta(days=30)
"""A run searches the snapshot with which it began; none lasts so long."""


class Snapshot(Contract):
    """A published state of a corpus; `documents` is a JSON list of the hashes of the raw documents."""

    format: str
    corpus: CorpusSnapshot
    index: DocumentRef
    documents: DocumentRef


def open_library(
    content_url: str | None, home: Path, corpora: Path, pool: SubprocessPool, definitions: Iterable[CorpusDefinition]
) -> CorpusLibrary:
    """The corpora of this host, with indexes below `corpora`; over a store that hosts share, those of all hosts."""
    if content_url is None or is_on_this_host(content_url):
        return CorpusLibrary(corpora, pool, definitions)
    return PublishedLibrary(content_url, home, corpora, pool, definitions)


class PublishedLibrary(CorpusLibrary):
    """Corpora that any host searches and reads as published snapshots; a host with the folder publishes them.

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
        self._newest = open_records(content_url, home, "corpora")
        self._snapshots = open_records(content_url, home, "snapshots")
        self._files_url = f"{content_url.rstrip('/')}/corpus-content"
        self._cache = home / "cache" / "indexes"
        self._authorities: dict[str, str] = {}

    async def remove(self, name: str) -> None:
        """Forget a registered folder and its index, and let no host search it any more; present runs do."""
        await super().remove(name)
        await asyncio.to_thread(self._newest.remove, name)

    async def searchable(self) -> dict[str, Path | None]:
        """Folder by name of every corpus that this host can search; None where another host has the folder."""
        return dict.fromkeys(await asyncio.to_thread(self._newest.names)) | await super().searchable()

    def authority(self, name: str) -> str:
        """The authority of a corpus: as published where one was read, else as declared. Raises `CorpusUnknown`."""
        return self._authorities.get(name) or super().authority(name)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order, by document. Raises `CorpusUnknown`."""
        name = corpus_of(request)
        index = await self._index_file(await self._get(name, request.corpus_digest))
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

    async def skipped(self, name: str, digest: str = "") -> list[SkippedFile]:
        """Files that could not be used, with reasons, by path. Raises `CorpusUnknown`."""
        index = await self._index_file(await self._get(name, digest))
        return await look_up(index, IndexReader.skipped, [])

    async def read(self, url: str, digest: str = "") -> ExtractedDocument:
        """Read `corpus:NAME/relative/path` of a snapshot. Raises `SourceUnreadable`, `CorpusUnknown`."""
        name, address = split_url(url)
        place = path_address(address_path(address))
        snapshot = await self._get(name, digest)
        self._authorities[name] = snapshot.corpus.authority
        found = await look_up(await self._index_file(snapshot), lambda index: index.document(place), None)
        if found is None:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        document, text = found
        try:
            raw = await self._files(name).get(DocumentRef(hash=document.raw_hash))
        except ContentMissing:
            raise SourceUnreadable("not_found", "the document is not in the object store any more") from None
        return document_of(document_url(name, place), raw, text, document.facts)

    def _files(self, name: str) -> ObstoreContentStore:
        """Index files and documents of one corpus; no two corpora share any."""
        return ObstoreContentStore(f"{self._files_url}/{name}")

    async def _find(self, name: str, digest: str = "") -> Snapshot | None:
        """The snapshot of that digest, or the newest one; None if it is not published."""
        records, key = (self._snapshots, _key(name, digest)) if digest else (self._newest, name)
        data = await asyncio.to_thread(records.read, key)
        if data is None:
            return None
        try:
            return Snapshot.model_validate_json(data)
        except ValidationError:
            raise ContentCorrupt(f"the record of the corpus {name} in the object store is damaged") from None

    async def _get(self, name: str, digest: str = "") -> Snapshot:
        found = await self._find(name, digest)
        if found is None:
            raise CorpusUnknown("no host has published such a state of the corpus: index it where its folder is")
        return found

    async def _index_file(self, snapshot: Snapshot) -> Path:
        """The index as a file of this host, fetched if need be. Raises `CorpusUnknown`, `ContentMissing`."""
        if snapshot.format != FORMAT:
            raise CorpusUnknown("the corpus was published by another version: index it again where its folder is")
        path = self._cache / f"{snapshot.index.hash.rpartition(':')[2]}.sqlite3"
        async with file_lock(path.with_suffix(".lock")):
            if not path.exists():
                await asyncio.to_thread(self._files(snapshot.corpus.name).get_file, snapshot.index, path)
                await asyncio.to_thread(_make_room, self._cache, path)
        await asyncio.to_thread(os.utime, path)
        return path

    async def _publish(self, definition: CorpusDefinition, index: Path) -> CorpusSnapshot:
        """Publish the present state of an index, unless it is the newest snapshot already.

        Documents and index are stored before the records that name them. Raises `StorageFull`.
        """
        name, files = definition.name, self._files(definition.name)
        async with file_lock(index.with_suffix(".publishing")):
            before = await self._find(name)
            with TemporaryDirectory(dir=index.parent, prefix=".publishing-") as folder:
                copy = Path(folder) / "index.sqlite3"
                corpus, hashes = await asyncio.to_thread(_copy, index, copy, definition)
                same = {"indexed_at": corpus.indexed_at}
                if before and (before.format, before.corpus.model_copy(update=same)) == (FORMAT, corpus):
                    return before.corpus
                stored = set[str]() if before is None else set(json.loads(await files.get_text(before.documents)))
                await self._store_documents(definition, [one for one in hashes if one[1] not in stored])
                index_file = await asyncio.to_thread(files.put_file, copy, "application/vnd.sqlite3")
            listed = await files.put_text(json.dumps(sorted({raw for _, raw in hashes})), "application/json")
            made = Snapshot(format=FORMAT, corpus=corpus, index=index_file, documents=listed)
            data = made.model_dump_json().encode()
            await asyncio.to_thread(self._snapshots.write, _key(name, corpus.digest), data)
            await asyncio.to_thread(self._newest.write, name, data)
            await self._prune(corpus)
            return corpus

    async def _store_documents(self, definition: CorpusDefinition, hashes: list[tuple[str, str]]) -> None:
        limit = asyncio.Semaphore(STORES_AT_ONCE)
        root, files = definition.path.resolve(), self._files(definition.name)

        async def store(address: str, raw_hash: str) -> None:
            async with limit:
                await files.put(await asyncio.to_thread(_read_unchanged, root, address, raw_hash), "")

        await asyncio.gather(*(store(address, raw_hash) for address, raw_hash in hashes))

    async def _prune(self, newest: CorpusSnapshot) -> None:
        """Remove old snapshots of a corpus, and the files that no other one needs."""
        name, latest, files = newest.name, datetime.now(UTC) - RETAINED, self._files(newest.name)
        records = [one for one in await asyncio.to_thread(self._snapshots.first_lines) if _corpus_of(one.name) == name]
        records.sort(key=lambda record: (record.written_at, record.name == _key(name, newest.digest)))
        old = [record.name for record, following in pairwise(records) if following.written_at < latest]
        if not old:
            return
        needed = set[str]()
        for record in records[len(old) :]:
            snapshot = Snapshot.model_validate_json(record.lines)
            needed |= {snapshot.index.hash, snapshot.documents.hash}
            needed.update(json.loads(await files.get_text(snapshot.documents)))
        for key in old:
            await asyncio.to_thread(self._snapshots.remove, key)
        await files.delete_others(needed, unless_put_since=latest)


def _corpus_of(key: str) -> str:
    return key.rpartition(".")[0]


def _key(name: str, digest: str) -> str:
    return f"{name}.{digest.rpartition(':')[2]}"


def _copy(index: Path, copy: Path, definition: CorpusDefinition) -> tuple[CorpusSnapshot, list[tuple[str, str]]]:
    """Copy the index as of one moment into one file; its state, and address and hash of its documents."""
    with translated_errors(index.parent):
        database = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("VACUUM INTO ?", (str(copy),))
        finally:
            database.close()
    with open_index(copy) as reader:
        return reader.snapshot(definition), reader.hashes()


def _read_unchanged(root: Path, address: str, raw_hash: str) -> bytes:
    """The document that was indexed. Raises `Unavailable` if the folder has another one now."""
    try:
        raw = read_regular_file(root / address_path(address), root)
    except SourceUnreadable:
        raw = b""
    if hash_of(raw) != raw_hash:
        raise Unavailable("a document of the corpus has changed since it was indexed: index it again")
    return raw


def _make_room(cache: Path, newest: Path) -> None:
    """Remove the index files that were unused for longest until the rest is small enough; open ones stay readable."""
    files = sorted(((path.stat().st_mtime, path) for path in cache.glob("*.sqlite3")), reverse=True)
    size = 0
    for _, path in files:
        size += path.stat().st_size
        if size > CACHE_BYTES and path != newest:
            path.unlink(missing_ok=True)
