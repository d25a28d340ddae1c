"""Indexes that hosts without the documents search: each state of a corpus is an immutable snapshot in the object store.

A snapshot is the index file and the raw documents, by their hashes, and a small record that names them. Another record
names the newest snapshot of each corpus. A host fetches an index file once and keeps it in a bounded cache.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import ValidationError

from contracts.base import Contract
from contracts.evidence import DocumentRef
from contracts.resolved import CorpusSnapshot
from providers.errors import ContentCorrupt, ContentMissing, CorpusUnknown, SourceUnreadable, Unavailable
from providers.interfaces import ExtractedDocument, SessionStore
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.definitions import CorpusDefinition
from providers.search.corpus.document_addresses import address_path
from providers.search.corpus.file_lock import file_lock
from providers.search.corpus.index_reader import DocumentRow, IndexStatus, document_of, open_index
from providers.search.corpus.index_store import BUSY_SECONDS, FORMAT, translated_errors
from providers.search.corpus.indexing_task import sha256
from providers.storage.content import ObstoreContentStore, is_on_this_host
from providers.storage.sessions import SESSIONS, UNREADABLE, RecordSessionStore
from providers.storage.stored_records import Records, open_records

NEWEST, SNAPSHOTS, DOCUMENTS = "corpora", "snapshots", "corpus-content"
"""What the records of corpora and of snapshots are called, and the part of the store with their files and documents."""
CACHE_BYTES: Final = 4_000_000_000
"""Index files of a host beyond that are removed, those longest unused first."""
LOADS_AT_ONCE: Final = 8
KEPT: Final = timedelta(days=1)
"""How long a snapshot that no session names is kept after the next one: a run that began may not have one yet."""


class Snapshot(Contract):
    """A published state of a corpus."""

    format: str
    corpus: CorpusSnapshot
    language: str
    index: DocumentRef
    documents: DocumentRef
    """The hashes of the raw documents, as a JSON list."""


def open_published(content_url: str | None, home: Path) -> "PublishedIndexes | None":
    """The snapshots of a store that hosts share; None where nothing is shared."""
    if content_url is None or is_on_this_host(content_url):
        return None
    newest, snapshots = (open_records(content_url, home, kind) for kind in (NEWEST, SNAPSHOTS))
    files = f"{content_url.rstrip('/')}/{DOCUMENTS}"
    return PublishedIndexes(
        newest,
        snapshots,
        RecordSessionStore(open_records(content_url, home, SESSIONS)),
        cache(lambda name: ObstoreContentStore(f"{files}/{name}")),
        home / "cache" / "indexes",
    )


def snapshot_of(definition: CorpusDefinition, status: IndexStatus) -> CorpusSnapshot:
    """What runs are told of an index."""
    return CorpusSnapshot(
        name=definition.name,
        title=definition.title,
        digest=status.digest,
        files=status.files,
        skipped=status.skipped,
        indexed_at=status.indexed_at,
        authority=definition.authority,
    )


class PublishedIndexes:
    """The snapshots of all corpora, as every host sees them."""

    def __init__(
        self,
        newest: Records,
        snapshots: Records,
        sessions: SessionStore,
        documents_of: Callable[[str], ObstoreContentStore],
        cache: Path,
    ) -> None:
        """`documents_of` gives the files of a corpus: no two share one, so that each is looked after by itself."""
        self._newest = newest
        self._snapshots = snapshots
        self._sessions = sessions
        self._documents_of = documents_of
        self._cache = cache

    async def names(self) -> list[str]:
        """Names of all published corpora, sorted. Raises `Unavailable`."""
        return await asyncio.to_thread(self._newest.names)

    async def withdraw(self, name: str) -> None:
        """Let no further run search a corpus; those that go on keep their snapshots. Raises `Unavailable`."""
        await asyncio.to_thread(self._newest.remove, name)

    async def find(self, name: str, digest: str = "") -> Snapshot | None:
        """The snapshot of that digest, or the newest one; None if it is not published. Raises `Unavailable`."""
        records, key = (self._snapshots, _key(name, digest)) if digest else (self._newest, name)
        data = await asyncio.to_thread(records.read, key)
        if data is None:
            return None
        try:
            return Snapshot.model_validate_json(data)
        except ValidationError:
            raise ContentCorrupt(f"the record of the corpus {name} in the object store is damaged") from None

    async def get(self, name: str, digest: str = "") -> Snapshot:
        """The same. Raises `CorpusUnknown` if it is not published."""
        found = await self.find(name, digest)
        if found is None:
            raise CorpusUnknown("no host has published such a state of the corpus: index it where its folder is")
        return found

    async def publish(self, definition: CorpusDefinition, index: Path) -> Snapshot:
        """Publish what an index holds now, unless it is the newest snapshot already.

        Documents and index are stored before the records that name them. Raises `Unavailable`, `StorageFull`.
        """
        async with file_lock(index.with_suffix(".publishing")):
            before = await self.find(definition.name)
            with TemporaryDirectory(dir=index.parent, prefix=".publishing-") as folder:
                copy = Path(folder) / "index.sqlite3"
                corpus, hashes = await asyncio.to_thread(_copy, index, copy, definition)
                if before is not None and _same(before, corpus, definition.language):
                    return before
                await self._store_documents(definition, hashes)
                stored = await asyncio.to_thread(
                    self._documents_of(definition.name).put_file, copy, "application/vnd.sqlite3"
                )
            names = json.dumps(sorted({raw_hash for _, raw_hash in hashes}))
            listed = await self._documents_of(definition.name).put_text(names, "application/json")
            made = Snapshot(format=FORMAT, corpus=corpus, language=definition.language, index=stored, documents=listed)
            data = made.model_dump_json().encode()
            await asyncio.to_thread(self._snapshots.write, _key(definition.name, corpus.digest), data)
            await asyncio.to_thread(self._newest.write, definition.name, data)
            await self._prune(made)
            return made

    async def index_file(self, snapshot: Snapshot) -> Path:
        """The index as a file of this host, fetched if need be. Raises `CorpusUnknown`, `ContentMissing`."""
        if snapshot.format != FORMAT:
            raise CorpusUnknown("the corpus was published by another version: index it again where its folder is")
        path = self._cache / f"{snapshot.index.hash.rpartition(':')[2]}.sqlite3"
        if not path.exists():
            self._cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            async with file_lock(path.with_suffix(".lock")):
                if not path.exists():
                    documents = self._documents_of(snapshot.corpus.name)
                    await asyncio.to_thread(documents.get_file, snapshot.index, path)
                    await asyncio.to_thread(_make_room, self._cache, path)
        await asyncio.to_thread(os.utime, path)
        return path

    async def read(self, snapshot: Snapshot, address: str, url: str) -> ExtractedDocument:
        """A document of a snapshot with the text that was indexed. Raises `SourceUnreadable`, `Unavailable`."""
        row, text = await asyncio.to_thread(_row_and_text, await self.index_file(snapshot), address)
        try:
            raw = await self._documents_of(snapshot.corpus.name).get(
                DocumentRef(hash=row.raw_hash, media_type=row.media_type)
            )
        except ContentMissing:
            raise SourceUnreadable("not_found", "the document is not in the object store any more") from None
        return document_of(url, raw, text, row)

    async def _prune(self, newest: Snapshot) -> None:
        """Remove what only old snapshots hold that no session names; the holder of the publishing lock does it.

        A run that is just beginning has no session yet, so a snapshot stays for a day after the next one. A session
        that cannot be read may name any: then all stay. The record goes after what it names, so an interrupted
        removal is done again.
        """
        name, digest = newest.corpus.name, newest.corpus.digest
        sessions = await self._sessions.list()
        if any(session.status == UNREADABLE for session in sessions):
            return
        lines = [line for line in await asyncio.to_thread(self._snapshots.first_lines) if _corpus_of(line.name) == name]
        lines.sort(key=lambda line: (line.written_at, line.name == _key(name, digest)))
        named = {_key(name, session.corpus_digest) for session in sessions} | {_key(name, digest)}
        gone = [
            line
            for line, following in pairwise(lines)
            if line.name not in named and lines[-1].written_at - following.written_at >= KEPT
        ]
        if not gone:
            return
        documents = self._documents_of(name)
        needed: set[str] = set()
        for line in lines:
            if line not in gone:
                needed |= await self._list_held(Snapshot.model_validate_json(line.lines))
        for line in gone:
            snapshot = Snapshot.model_validate_json(line.lines)
            for each in await self._list_held(snapshot) - needed - {snapshot.documents.hash}:
                await documents.delete(DocumentRef(hash=each))
            await asyncio.to_thread(self._snapshots.remove, line.name)
            if snapshot.documents.hash not in needed:
                await documents.delete(snapshot.documents)

    async def _list_held(self, snapshot: Snapshot) -> set[str]:
        """The hashes of all that a snapshot needs."""
        raw = json.loads(await self._documents_of(snapshot.corpus.name).get_text(snapshot.documents))
        return {*raw, snapshot.index.hash, snapshot.documents.hash}

    async def _store_documents(self, definition: CorpusDefinition, hashes: list[tuple[str, str]]) -> None:
        limit = asyncio.Semaphore(LOADS_AT_ONCE)
        root, documents = definition.path.resolve(), self._documents_of(definition.name)

        async def store(address: str, raw_hash: str) -> None:
            async with limit:
                await documents.put(await asyncio.to_thread(_read_unchanged, root, address, raw_hash), "")

        await asyncio.gather(*(store(address, raw_hash) for address, raw_hash in hashes))


def _corpus_of(key: str) -> str:
    return key.rpartition(".")[0]


def _key(name: str, digest: str) -> str:
    return f"{name}.{digest.rpartition(':')[2]}"


def _same(snapshot: Snapshot, corpus: CorpusSnapshot, language: str) -> bool:
    published = snapshot.corpus.model_copy(update={"indexed_at": corpus.indexed_at})
    return (snapshot.format, snapshot.language, published) == (FORMAT, language, corpus)


def _copy(index: Path, copy: Path, definition: CorpusDefinition) -> tuple[CorpusSnapshot, list[tuple[str, str]]]:
    """A copy of the index at one moment, in one file; what it says of itself, and address and hash of its documents."""
    with translated_errors(index.parent):
        database = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("VACUUM INTO ?", (str(copy),))
        finally:
            database.close()
    with open_index(copy) as reader:
        return snapshot_of(definition, reader.status()), reader.hashes()


def _read_unchanged(root: Path, address: str, raw_hash: str) -> bytes:
    """The document that was indexed. Raises `Unavailable` if the folder has another one now."""
    try:
        raw = read_regular_file(root / address_path(address), root)
    except SourceUnreadable:
        raw = b""
    if sha256(raw) != raw_hash:
        raise Unavailable("a document of the corpus has changed since it was indexed: index it again")
    return raw


def _row_and_text(index: Path, address: str) -> tuple[DocumentRow, str]:
    with open_index(index) as reader:
        row = reader.document(path=address)
        if row is None:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        return row, reader.text(row.id)


def _make_room(cache: Path, newest: Path) -> None:
    """Remove the index files that were unused for longest until the rest is small enough; readers keep theirs open."""
    files = sorted(((path.stat().st_mtime, path) for path in cache.glob("*.sqlite3")), reverse=True)
    size = 0
    for _, path in files:
        size += path.stat().st_size
        if size > CACHE_BYTES and path != newest:
            path.unlink(missing_ok=True)
