"""`CorpusLibrary`: named folders of documents, indexed and searchable."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot
from providers.errors import CorpusUnknown, SourceUnreadable
from providers.interfaces import ExtractedDocument, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.reader import extract_document
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.definitions import CorpusDefinition, CorpusRegistry, corpus_name
from providers.search.corpus.document_addresses import address_path, document_url, path_address, split_url
from providers.search.corpus.index_query import PROVIDER, search_index
from providers.search.corpus.index_reader import IndexStatus, document_of, open_index
from providers.search.corpus.indexing_task import sha256
from providers.search.corpus.key_files import refuse_key, refuse_key_name
from providers.search.corpus.published import PublishedIndexes, snapshot_of
from providers.search.corpus.refreshing import refresh_index

NOT_INDEXED: Final = IndexStatus(digest="", indexed_at="", files=0, skipped=0)


class CorpusLibrary:
    """`Corpora`: search, reading and care of the indexes below `home`; extraction runs in the pool."""

    name = PROVIDER

    def __init__(
        self,
        home: Path,
        pool: SubprocessPool,
        definitions: Iterable[CorpusDefinition] = (),
        published: PublishedIndexes | None = None,
    ) -> None:
        """With `published` runs go by snapshots that every host sees; without, by the indexes below `home`."""
        self._home = home
        self._pool = pool
        self._registry = CorpusRegistry(home, definitions)
        self._published = published
        self._authorities: dict[str, str] = {}

    def add(
        self,
        name: str | None,
        path: Path,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        authority: str = "high",
        title: str = "",
        language: str = "",
    ) -> CorpusDefinition:
        """Register a folder for all processes that share `home`; without a name it gets one from its folder.

        Raises `CorpusUnknown` if there is no such folder, `InvalidCall` if the configuration has that name, and
        pydantic's ValidationError for a name or authority that cannot be.
        """
        folder = path.expanduser().absolute()
        if not folder.is_dir():
            raise CorpusUnknown("there is no such folder")
        definition = CorpusDefinition(
            name=name or corpus_name(folder),
            path=folder,
            include=tuple(include),
            exclude=tuple(exclude),
            authority=authority,
            title=title,
            language=language,
        )
        self._registry.add(definition)
        return definition

    async def withdraw(self, name: str) -> None:
        """Let no host search a published corpus any more. Raises `Unavailable`."""
        if self._published is not None:
            await self._published.withdraw(name)

    def remove(self, name: str) -> None:
        """Forget a registered folder and its index; its files stay. Raises `CorpusUnknown`, `InvalidCall`."""
        self._registry.remove(name)
        index = self._index(name)
        for suffix in ("", "-wal", "-shm"):
            index.with_name(index.name + suffix).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Names of all corpora, sorted."""
        return self._registry.names()

    async def searchable(self) -> dict[str, Path | None]:
        """Folder by name of every corpus that this host can search; None where another host has the folder."""
        published: list[str] = [] if self._published is None else await self._published.names()
        return dict.fromkeys(published) | {name: self._registry.get(name).path for name in self.names()}

    def definition(self, name: str) -> CorpusDefinition:
        """How a corpus is defined. Raises `CorpusUnknown`."""
        return self._registry.get(name)

    def authority(self, name: str) -> str:
        """What the documents of a corpus are worth: as published where one was read, else as defined here.

        Raises `CorpusUnknown`.
        """
        return self._authorities.get(name) or self._registry.get(name).authority

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order, by document. Raises `CorpusUnknown`, `Unavailable`, and what `refresh` raises.

        A corpus that was never indexed, or by another version, is indexed first.
        """
        name = request.corpus
        if name is None:
            raise CorpusUnknown("the search names no corpus")
        if self._published is not None:
            snapshot = await self._published.get(name, request.corpus_digest)
            index = await self._published.index_file(snapshot)
            return await asyncio.to_thread(search_index, index, name, snapshot.language, request)
        index, language = self._index(name), self._registry.get(name).language
        try:
            return await asyncio.to_thread(search_index, index, name, language, request)
        except CorpusUnknown:
            await self.refresh(name)
            return await asyncio.to_thread(search_index, index, name, language, request)

    async def refresh(self, name: str, progress: Callable[[IndexProgress], None] | None = None) -> CorpusSnapshot:
        """Bring the index up to date (only changed files are read), and publish it where hosts share snapshots.

        On a host without the folder it is the newest published one. Raises `CorpusUnknown`, `StorageFull`.
        """
        if self._published is not None and not await asyncio.to_thread(self._has_folder, name):
            return (await self._published.get(name)).corpus
        definition = self._registry.get(name)
        await refresh_index(definition, self._index(name), self._pool, progress)
        if self._published is not None:
            return (await self._published.publish(definition, self._index(name))).corpus
        return await self.describe(name)

    async def describe(self, name: str) -> CorpusSnapshot:
        """What a run would search now; no files before the first `refresh`. Raises `CorpusUnknown`."""
        if self._published is not None and (found := await self._published.find(name)) is not None:
            return found.corpus
        definition = self._registry.get(name)
        if self._published is not None:
            return snapshot_of(definition, NOT_INDEXED)
        return snapshot_of(definition, await asyncio.to_thread(self._status, name))

    async def skipped(self, name: str, digest: str = "") -> list[SkippedFile]:
        """Files that were left out, with reasons, by path. Raises `CorpusUnknown`."""
        if self._published is not None and (found := await self._published.find(name, digest)) is not None:
            return await asyncio.to_thread(_list_skipped, await self._published.index_file(found))
        self._registry.get(name)
        return await asyncio.to_thread(_list_skipped, self._index(name))

    async def read(self, url: str, digest: str = "") -> ExtractedDocument:
        """Read `corpus:NAME/relative/path`: of a published snapshot, else of the folder.

        Of the folder the text is the indexed one as long as the file is the same. Raises `SourceUnreadable`,
        `CorpusUnknown`.
        """
        name, address = split_url(url)
        path = address_path(address)
        if self._published is not None:
            snapshot = await self._published.get(name, digest)
            self._authorities[name] = snapshot.corpus.authority
            place = path_address(path)
            return await self._published.read(snapshot, place, document_url(name, place))
        definition = self._registry.get(name)
        if not definition.selects(path):
            raise SourceUnreadable("not_found", "the corpus has no such document")
        root = definition.path.resolve()
        raw = await asyncio.to_thread(read_regular_file, root / path, root)
        refuse_key_name((root / path).resolve().relative_to(root).as_posix())
        refuse_key(raw)
        place = document_url(name, path_address(path))
        indexed = await asyncio.to_thread(self._find_indexed, name, path_address(path), place, raw)
        if indexed is not None:
            return indexed
        found = await extract_document(self._pool, raw, PurePosixPath(path).name)
        refuse_key(found.text)
        return document_of(place, raw, found.text, found)

    def _has_folder(self, name: str) -> bool:
        """Whether this host has the documents of a corpus."""
        return name in self._registry.names() and self._registry.get(name).path.is_dir()

    def _index(self, name: str) -> Path:
        return self._home / "indexes" / f"{name}.sqlite3"

    def _status(self, name: str) -> IndexStatus:
        try:
            with open_index(self._index(name)) as reader:
                return reader.status()
        except CorpusUnknown:
            return NOT_INDEXED

    def _find_indexed(self, name: str, address: str, url: str, raw: bytes) -> ExtractedDocument | None:
        try:
            with open_index(self._index(name)) as reader:
                row = reader.document(path=address)
                if row is None or row.raw_hash != sha256(raw):
                    return None
                return document_of(url, raw, reader.text(row.id), row)
        except CorpusUnknown:
            return None


def _list_skipped(index: Path) -> list[SkippedFile]:
    try:
        with open_index(index) as reader:
            return reader.skipped()
    except CorpusUnknown:
        return []


async def ingest_file(pool: SubprocessPool, path: Path) -> ExtractedDocument:
    """Read one file outside any corpus, exactly as a corpus would. Raises `SourceUnreadable`."""
    raw = await asyncio.to_thread(read_regular_file, path)
    found = await extract_document(pool, raw, path.name)
    place = await asyncio.to_thread(path.absolute)
    return document_of(place.as_uri(), raw, found.text, found)
