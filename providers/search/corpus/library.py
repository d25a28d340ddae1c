"""`CorpusLibrary`: named folders of documents, indexed and searchable."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot
from providers.errors import CorpusUnknown, SourceUnreadable
from providers.interfaces import ExtractedDocument, IndexProgress, SkippedFile
from providers.isolation.pool import SubprocessPool
from providers.reading.canonical_text import DocumentFacts
from providers.reading.reader import extract_document
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.definitions import (
    CorpusDefinition,
    CorpusRegistry,
    address_path,
    document_url,
    path_address,
    split_url,
)
from providers.search.corpus.index import IndexDamaged, IndexReader, open_index
from providers.search.corpus.query import PROVIDER, search_index
from providers.search.corpus.refreshing import refresh_index, remove_index
from providers.search.corpus.scanning import refuse_key, refuse_key_name
from providers.storage.content import hash_of

T = TypeVar("T")


class CorpusLibrary(CorpusRegistry):
    """`Corpora` of one host: search, reading and care of the indexes below `home`; extraction runs in the pool."""

    name = PROVIDER

    def __init__(self, home: Path, pool: SubprocessPool, definitions: Iterable[CorpusDefinition] = ()) -> None:
        super().__init__(home, definitions)
        self._pool = pool

    async def remove(self, name: str) -> None:
        """Forget a registered folder and its index; its files stay. Raises `CorpusUnknown`, `InvalidCall`."""
        self.unregister(name)
        remove_index(self.index_path(name))

    async def searchable(self) -> dict[str, Path | None]:
        """Folder by name of every corpus that this host can search; None where another host has the folder."""
        return {name: self.definition(name).path for name in self.names()}

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order, by document. Raises `CorpusUnknown`, `Unavailable`, and what `refresh` raises.

        A corpus without a usable index is indexed first.
        """
        name = corpus_of(request)
        index, definition = self.index_path(name), self.definition(name)
        try:
            return await asyncio.to_thread(search_index, index, name, request)
        except (CorpusUnknown, IndexDamaged):
            await refresh_index(definition, index, self._pool, None, rebuild=True)
            return await asyncio.to_thread(search_index, index, name, request)

    async def refresh(self, name: str, progress: Callable[[IndexProgress], None] | None = None) -> CorpusSnapshot:
        """Bring the index up to date; only changed files are read. Raises `CorpusUnknown`, `StorageFull`."""
        await refresh_index(self.definition(name), self.index_path(name), self._pool, progress)
        return await self.describe(name)

    async def describe(self, name: str) -> CorpusSnapshot:
        """The documents that a run would search now; none before the first `refresh`. Raises `CorpusUnknown`."""
        definition = self.definition(name)
        empty = CorpusSnapshot(name=name, title=definition.title, authority=definition.authority)
        return await look_up(self.index_path(name), lambda index: index.snapshot(definition), empty)

    async def skipped(self, name: str) -> list[SkippedFile]:
        """Files that could not be used, with reasons, by path. Raises `CorpusUnknown`."""
        self.definition(name)
        return await look_up(self.index_path(name), IndexReader.skipped, [])

    async def read(self, url: str) -> ExtractedDocument:
        """Read `corpus:NAME/relative/path`; the text is the indexed one as long as the file is the same.

        Raises `SourceUnreadable`, `CorpusUnknown`.
        """
        name, address = split_url(url)
        path, definition = address_path(address), self.definition(name)
        if not definition.selects(path):
            raise SourceUnreadable("not_found", "the corpus has no such document")
        root = definition.path.resolve()
        raw = await asyncio.to_thread(read_regular_file, root / path, root)
        refuse_key_name((root / path).resolve().relative_to(root).as_posix())
        refuse_key(raw)
        place = path_address(path)
        indexed = await look_up(self.index_path(name), lambda it: it.document(place), None)
        if indexed is not None and indexed[0].raw_hash == hash_of(raw):
            return document_of(document_url(name, place), raw, indexed[1], indexed[0].facts)
        found = await extract_document(self._pool, raw, PurePosixPath(path).name)
        refuse_key(found.text)
        return document_of(document_url(name, place), raw, found.text, found)

    def index_path(self, name: str) -> Path:
        """Path of an index of this host."""
        return self.home / "indexes" / f"{name}.sqlite3"


def corpus_of(request: SearchRequest) -> str:
    """The corpus of a search. Raises `CorpusUnknown`."""
    if request.corpus is None:
        raise CorpusUnknown("the search names no corpus")
    return request.corpus


async def ingest_file(pool: SubprocessPool, path: Path) -> ExtractedDocument:
    """Read one file outside any corpus, exactly as a corpus would. Raises `SourceUnreadable`."""
    raw = await asyncio.to_thread(read_regular_file, path)
    found = await extract_document(pool, raw, path.name)
    place = await asyncio.to_thread(path.absolute)
    return document_of(place.as_uri(), raw, found.text, found)


async def look_up(path: Path, query: Callable[[IndexReader], T], default: T) -> T:
    """Query an index; the default where there is no usable one, which the next refresh replaces."""

    def ask() -> T:
        with open_index(path) as index:
            return query(index)

    try:
        return await asyncio.to_thread(ask)
    except (CorpusUnknown, IndexDamaged):
        return default


def document_of(url: str, raw: bytes, text: str, facts: DocumentFacts) -> ExtractedDocument:
    """A document with its text and its facts."""
    return ExtractedDocument(url=url, text=text, raw=raw, **facts.facts())
