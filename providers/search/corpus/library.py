"""`CorpusLibrary`: named folders of documents, indexed and searchable."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from contracts.evidence import DocumentRef
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot
from providers.errors import ContentMissing, CorpusUnknown, SourceUnreadable
from providers.interfaces import ExtractedDocument, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.canonical_text import Extraction
from providers.reading.reader import extract_document
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.definitions import (
    CorpusDefinition,
    CorpusRegistry,
    address_path,
    corpus_name,
    document_url,
    path_address,
    split_url,
)
from providers.search.corpus.index import IndexDamaged, IndexReader, open_index
from providers.search.corpus.indexed_file import DocumentFacts, sha256
from providers.search.corpus.published import PublishedIndexes
from providers.search.corpus.query import PROVIDER, search_index
from providers.search.corpus.refreshing import refresh_index, remove_index
from providers.search.corpus.scanning import refuse_key, refuse_key_name

T = TypeVar("T")


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
        """With `published`, runs use snapshots that every host sees; without, the indexes below `home`."""
        self._home = home
        self._pool = pool
        self._registry = CorpusRegistry(home, definitions)
        self._published = published
        self._authorities: dict[str, str] = {}

    def add(self, name: str | None, path: Path, *, include: Iterable[str] = (), language: str = "") -> CorpusDefinition:
        """Register a folder for all processes that share `home`; without a name it gets one from its folder.

        Raises `CorpusUnknown` if there is no such folder, `InvalidCall` if the configuration has that name, and
        pydantic's ValidationError for a name that cannot be.
        """
        folder = path.expanduser().absolute()
        if not folder.is_dir():
            raise CorpusUnknown("there is no such folder")
        definition = CorpusDefinition(
            name=name or corpus_name(folder), path=folder, include=tuple(include), language=language
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
        remove_index(self._index(name))

    def names(self) -> list[str]:
        """Names of all corpora, sorted."""
        return list(self._registry.all())

    async def searchable(self) -> dict[str, Path | None]:
        """Folder by name of every corpus that this host can search; None where another host has the folder."""
        published: list[str] = [] if self._published is None else await self._published.names()
        return dict.fromkeys(published) | {name: known.path for name, known in self._registry.all().items()}

    def definition(self, name: str) -> CorpusDefinition:
        """The definition of a corpus. Raises `CorpusUnknown`."""
        return self._registry.get(name)

    def authority(self, name: str) -> str:
        """The authority of a corpus: as published where one was read, else as defined here. Raises `CorpusUnknown`."""
        return self._authorities.get(name) or self._registry.get(name).authority

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order, by document. Raises `CorpusUnknown`, `Unavailable`, and what `refresh` raises.

        A corpus without a usable index is indexed first.
        """
        name = request.corpus
        if name is None:
            raise CorpusUnknown("the search names no corpus")
        if self._published is not None:
            snapshot = await self._published.get(name, request.corpus_digest)
            index = await self._published.index_file(snapshot)
            return await asyncio.to_thread(search_index, index, name, snapshot.language, request)
        index, definition = self._index(name), self._registry.get(name)
        try:
            return await asyncio.to_thread(search_index, index, name, definition.language, request)
        except (CorpusUnknown, IndexDamaged):
            await refresh_index(definition, index, self._pool, None, rebuild=True)
            return await asyncio.to_thread(search_index, index, name, definition.language, request)

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
        """The documents that a run would search now; none before the first `refresh`. Raises `CorpusUnknown`."""
        if self._published is not None and (found := await self._published.find(name)) is not None:
            return found.corpus
        definition = self._registry.get(name)
        empty = CorpusSnapshot(name=name, title=definition.title, authority=definition.authority)
        if self._published is not None:
            return empty
        return await asyncio.to_thread(_look_up, self._index(name), lambda index: index.snapshot(definition), empty)

    async def skipped(self, name: str, digest: str = "") -> list[SkippedFile]:
        """Files that could not be used, with reasons, by path. Raises `CorpusUnknown`."""
        if self._published is not None and (found := await self._published.find(name, digest)) is not None:
            index = await self._published.index_file(found)
        else:
            self._registry.get(name)
            index = self._index(name)
        return await asyncio.to_thread(_look_up, index, IndexReader.skipped, [])

    async def read(self, url: str, digest: str = "") -> ExtractedDocument:
        """Read `corpus:NAME/relative/path`: of a published snapshot, else of the folder.

        Of the folder the text is the indexed one as long as the file is the same. Raises `SourceUnreadable`,
        `CorpusUnknown`.
        """
        name, address = split_url(url)
        path = address_path(address)
        if self._published is not None:
            return await self._read_published(self._published, name, path_address(path), digest)
        definition = self._registry.get(name)
        if not definition.selects(path):
            raise SourceUnreadable("not_found", "the corpus has no such document")
        root = definition.path.resolve()
        raw = await asyncio.to_thread(read_regular_file, root / path, root)
        refuse_key_name((root / path).resolve().relative_to(root).as_posix())
        refuse_key(raw)
        place = document_url(name, path_address(path))
        indexed = await asyncio.to_thread(
            _look_up, self._index(name), lambda index: index.document(path=path_address(path)), None
        )
        if indexed is not None and indexed[1].raw_hash == sha256(raw):
            return _document(place, raw, indexed[2], indexed[1])
        found = await extract_document(self._pool, raw, PurePosixPath(path).name)
        refuse_key(found.text)
        return _document(place, raw, found.text, found)

    async def _read_published(
        self, published: PublishedIndexes, name: str, address: str, digest: str
    ) -> ExtractedDocument:
        snapshot = await published.get(name, digest)
        self._authorities[name] = snapshot.corpus.authority
        index = await published.index_file(snapshot)
        found = await asyncio.to_thread(_look_up, index, lambda reader: reader.document(path=address), None)
        if found is None:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        _, facts, text = found
        try:
            raw = await published.files_of(name).get(DocumentRef(hash=facts.raw_hash, media_type=facts.media_type))
        except ContentMissing:
            raise SourceUnreadable("not_found", "the document is not in the object store any more") from None
        return _document(document_url(name, address), raw, text, facts)

    def _has_folder(self, name: str) -> bool:
        known = self._registry.all().get(name)
        return known is not None and known.path.is_dir()

    def _index(self, name: str) -> Path:
        return self._home / "indexes" / f"{name}.sqlite3"


async def ingest_file(pool: SubprocessPool, path: Path) -> ExtractedDocument:
    """Read one file outside any corpus, exactly as a corpus would. Raises `SourceUnreadable`."""
    raw = await asyncio.to_thread(read_regular_file, path)
    found = await extract_document(pool, raw, path.name)
    place = await asyncio.to_thread(path.absolute)
    return _document(place.as_uri(), raw, found.text, found)


def _look_up(path: Path, query: Callable[[IndexReader], T], default: T) -> T:
    """Query an index; the default where there is no usable one, which the next refresh builds."""
    try:
        with open_index(path) as index:
            return query(index)
    except (CorpusUnknown, IndexDamaged):
        return default


def _document(url: str, raw: bytes, text: str, found: DocumentFacts | Extraction) -> ExtractedDocument:
    return ExtractedDocument(
        url=url,
        title=found.title,
        text=text,
        raw=raw,
        media_type=found.media_type,
        authors=found.authors,
        publisher=found.publisher,
        published_at=found.published_at,
        pages=found.pages,
    )
