"""The index of one corpus: a SQLite file with an FTS5 table, written in transactions that survive a kill.

`read_for_index` extracts the text of a file in a child process; the writer only inserts its result.
"""

import difflib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Base64UrlBytes

from contracts.addresses import digest
from contracts.base import Contract
from contracts.resolved import NO_DOCUMENT, CorpusOverview, CorpusSnapshot, SkippedFile
from contracts.sentences import AS_DATA, from_data, to_data
from providers.errors import CorpusUnknown, NewerSchema, StorageFull, Unavailable
from providers.extractive.blocks import is_index
from providers.reading.canonical_text import READERS, DocumentFacts, Extraction
from providers.schemas import INDEX, StoredSchema
from providers.search.corpus.folders import CorpusDefinition, FoundFile, refuse_key
from providers.search.corpus.overview import DocumentTitle
from providers.text import detect_language, word_keys, words

FORMAT: Final = f"{INDEX.number}.{READERS}"
"""Number of the schema, and of the readers of documents: an older index is brought to it or made again."""
BUSY_SECONDS: Final = 30.0
MAX_CHUNKS: Final = 1_000  # best chunks of a query, from which sections are made
CHUNKS_OF_DOCUMENT: Final = 1_000_000  # row ids reserved for the chunks of a document: more than its text can have
LINK_PAGES: Final = "link_pages"  # key of their paths among the metadata
INDEX_SAMPLE: Final = 100_000  # characters from which a page of links is recognized
LANGUAGE_SAMPLE: Final = 20_000  # characters used to detect the language of a file
CHUNK_CHARACTERS: Final = 700
"""Neighbouring blocks of a section are ranked together up to this length; other lengths found less."""
PATH_SEPARATOR: Final = " › "
MIN_SIMILARITY: Final = 0.75  # ratio of `difflib` above which a word may replace one that no document has
MIN_CONTAINED_LETTERS: Final = 4  # shorter words are in others by chance: `fee` in `coffee`
# The tokenizer takes stems as they are: every character outside ASCII belongs to a token, and so do the characters that
# join the parts of a compound.
SCHEMA: Final = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER, mtime_ns INTEGER, kind TEXT NOT NULL,
  reason TEXT NOT NULL, document TEXT, text BLOB, title TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS chunks USING fts5 (
  keys, section UNINDEXED, start UNINDEXED, stop UNINDEXED, tokenize="ascii tokenchars '._-'''");
"""
COLUMNS: Final = (
    "key, value FROM meta",
    "id, path, size, mtime_ns, kind, reason, document, text, title FROM files",
    "rowid, keys, section, start, stop FROM chunks",
)
"""Columns of each table of the schema."""


class IndexedDocument(Contract):
    """A document of the index without its text."""

    raw_hash: str
    text_hash: str
    key_language: str
    facts: DocumentFacts
    sections: list[tuple[int, int, str]]
    """Start, end and heading path of each section; together they cover the text."""
    is_index: bool = False
    """True for a page of links, titles and page numbers: a search names it after all pages with content."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Everything that the index stores of a file."""

    document: IndexedDocument
    packed_text: Base64UrlBytes
    chunks: list[tuple[int, int, int, str]]
    """Section number, start, end and keys of each chunk that is ranked."""


class IndexDamaged(Unavailable):
    """The file is not a usable index and must be replaced."""

    def __init__(self) -> None:
        super().__init__("the index of the corpus is damaged")


class Chunk(NamedTuple):
    """A part of a section that matches a query, with its BM25 score (higher is better) and its document's names."""

    score: float
    path: str
    title: str
    section: int
    start: int
    stop: int


class IndexOutdated(CorpusUnknown):
    """The index is of the version before: the writer brings it to the form of today, without reading a file."""


def require_format(identity: str, schema: StoredSchema[sqlite3.Connection], name: str, way_back: str = "") -> None:
    """Check the identity of an index called `name`, which begins with its format; `way_back` undoes a newer one.

    Raises `NewerSchema`, `IndexOutdated`, and `CorpusUnknown` for any other format: the index has to be made again.
    """
    stored = identity.partition(" ")[0]
    number, _, readers = stored.partition(".")
    if stored == f"{schema.number}.{READERS}":
        return
    if number.isdecimal() and readers.isdecimal():
        if (int(number), int(readers)) > (schema.number, int(READERS)):
            raise NewerSchema(
                f"{schema.what} {name} has the format {stored}, and this version of the product reads "
                f"{schema.number}.{READERS} (to go back for good, {way_back or 'delete that file: it is made again'})"
            )
        if int(number) == schema.number - 1 and readers == READERS and schema.from_before is not None:
            raise IndexOutdated("the version before has indexed the corpus: index it again")
    raise CorpusUnknown("another version has indexed the corpus: index it again")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise `IndexDamaged`, `StorageFull` or `Unavailable` instead of SQLite's errors."""
    try:
        yield
    except zlib.error as error:
        raise IndexDamaged from error
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise IndexDamaged from error
        if name == "SQLITE_ERROR":  # a query that is wrong: an index built again would not answer it either
            raise
        if name == "SQLITE_FULL":
            raise StorageFull("no room left for the indexes: make room where RESEARCH_HOME is") from error
        raise Unavailable("the index of the corpus cannot be used") from error


def check_tables(database: sqlite3.Connection, tables: Sequence[str] = COLUMNS) -> None:
    """Look for tables and their columns in an index. Raises `IndexDamaged` if one is missing."""
    try:
        for columns in tables:
            database.execute(f"SELECT {columns} LIMIT 0")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname == "SQLITE_ERROR":
            raise IndexDamaged from error
        raise


@contextmanager
def open_index(path: Path, schema: StoredSchema[sqlite3.Connection] = INDEX) -> Iterator["IndexReader"]:
    """Open an index as of now.

    Raises `CorpusUnknown` without one of this format, `IndexDamaged`, `NewerSchema`, `Unavailable`.
    """
    if not path.exists():
        raise CorpusUnknown("the corpus has not been indexed yet")
    with translated_errors():
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("BEGIN")  # all reads see one snapshot
            check_tables(database, COLUMNS[:1])
            reader = IndexReader(database)
            require_format(reader.value("identity"), schema, path.name)
            check_tables(database)
            yield reader
        finally:
            database.close()


def _written(reason: str) -> str:
    """Return a reason as the index stores it."""
    return json.dumps(to_data(reason), ensure_ascii=False)


class IndexReader:
    """Queries to one index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def value(self, key: str) -> str:
        """Return a metadata value of the index; empty if there is none."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def snapshot(self, definition: CorpusDefinition) -> CorpusSnapshot:
        """Return the state of the index, as runs refer to it."""
        return definition.snapshot(
            digest=self.value("digest"),
            indexed_at=self.value("indexed_at"),
            files=self.documents(),
            size_bytes=self._count("SELECT coalesce(sum(size), 0) FROM files WHERE document NOT NULL"),
            skipped=len(self.skipped()),
            overview=CorpusOverview.model_validate_json(self.value("overview") or "{}"),
        )

    def titles(self) -> list[DocumentTitle]:
        """Return every document with its title, language and date, by path."""
        rows = self._database.execute(
            "SELECT path, title, document ->> '$.key_language', document ->> '$.facts.published_at'"
            " FROM files WHERE document NOT NULL ORDER BY path"
        )
        return [DocumentTitle(path, title or "", language or "", date) for path, title, language, date in rows]

    def link_pages(self) -> frozenset[str]:
        """Return the paths of the pages that consist of links, as of the last change of the index."""
        return frozenset(json.loads(self.value(LINK_PAGES) or "[]"))

    def documents(self) -> int:
        """Return the number of documents."""
        return self._count("SELECT count(document) FROM files")

    def digest(self) -> str:
        """Return one hash of the state of a corpus, over path and content of every document."""
        query = "SELECT path, document ->> 'raw_hash' FROM files WHERE document NOT NULL ORDER BY path"
        total = sha256()
        for path, raw_hash in self._database.execute(query):
            total.update(f"{path}\0{raw_hash}\n".encode())
        return "sha256:" + total.hexdigest()

    def skipped(self) -> list[SkippedFile]:
        """Return the documents that could not be used, by path, without files that are not documents."""
        query = "SELECT path, kind, reason FROM files WHERE document IS NULL AND kind != ? ORDER BY path"
        rows = self._database.execute(query, (NO_DOCUMENT,))
        return [SkippedFile(path=path, kind=kind, reason=from_data(json.loads(reason))) for path, kind, reason in rows]

    def warnings(self) -> list[tuple[str, str]]:
        """Return path and warning of each document of which words are missing or uncertain, by path."""
        rows = self._database.execute(
            "SELECT files.path, warning.value, warning.type"
            " FROM files, json_each(document, '$.facts.warnings') AS warning"
            " WHERE document NOT NULL ORDER BY files.path"  # `json_each` has a column of that name, too
        )
        return [(path, from_data(json.loads(value)) if kind == "object" else value) for path, value, kind in rows]

    def document(self, path: str) -> tuple[IndexedDocument, str] | None:
        """Return a document and its text; None if there is none."""
        query = "SELECT document, text FROM files WHERE path = ? AND document NOT NULL"
        row = self._database.execute(query, (path,)).fetchone()
        return row and (IndexedDocument.model_validate_json(row[0]), zlib.decompress(row[1]).decode("utf-8"))

    def document_count(self, key: str) -> int:
        """Return the number of documents that contain a key."""
        query = "SELECT count(DISTINCT rowid / ?) FROM chunks WHERE chunks MATCH ?"
        return self._count(query, CHUNKS_OF_DOCUMENT, _quoted([key]))

    def best_chunks(self, keys: Sequence[str]) -> list[Chunk]:
        """Return the best chunks with any of the keys, best first."""
        if not keys:
            return []
        rows = self._database.execute(
            "WITH best AS (SELECT rowid AS id, bm25(chunks) AS score, section, start, stop FROM chunks"
            " WHERE chunks MATCH ? ORDER BY score, id LIMIT ?)"
            " SELECT -score, path, title, section, start, stop FROM best JOIN files f ON f.id = best.id / ?"
            " ORDER BY score, best.id",
            (_quoted(keys), MAX_CHUNKS, CHUNKS_OF_DOCUMENT),
        )
        return [Chunk._make(row) for row in rows]

    def contains(self, key: str) -> bool:
        """Return whether a key of the index contains this one; a short one, at its beginning."""
        self._open_vocabulary()
        if len(key) < MIN_CONTAINED_LETTERS:
            query = "SELECT EXISTS (SELECT 1 FROM vocabulary WHERE term >= ?1 AND term < ?1 || char(0x10ffff))"
        else:
            query = "SELECT EXISTS (SELECT 1 FROM vocabulary WHERE instr(term, ?1))"
        return bool(self._count(query, key))

    def _open_vocabulary(self) -> None:
        self._database.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, chunks, row)")

    def nearest_key(self, key: str) -> str | None:
        """Return the most similar key of the index with the same first letter, or None."""
        self._open_vocabulary()
        rows = self._database.execute(
            "SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?2 AND abs(length(term) - ?3) <= 2",
            (key[:1], chr(ord(key[0]) + 1), len(key)),
        )
        return next(iter(difflib.get_close_matches(key, [term for (term,) in rows], n=1, cutoff=MIN_SIMILARITY)), None)

    def _count(self, query: str, *values: object) -> int:
        return int(self._database.execute(query, values).fetchone()[0])


class IndexWriter(IndexReader):
    """Writes an index, under the lock of the corpus."""

    def __init__(self, path: Path, identity: str, schema: StoredSchema[sqlite3.Connection] = INDEX) -> None:
        """Open or create the index of a folder and language, its `identity`; one of the version before is brought up.

        Raises `IndexDamaged` for another one, `NewerSchema` for one of a newer version.
        """
        form = f"{schema.number}.{READERS}"
        with translated_errors():
            super().__init__(sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False))
            stored = self._stored_identity()
            try:
                if stored:
                    require_format(stored, schema, path.name)
            except IndexOutdated:
                with self._database:  # one transaction
                    self._database.execute("BEGIN IMMEDIATE")
                    schema.current(self._database, schema.number - 1)
                    stored = f"{form} {stored.partition(' ')[2]}"
                    self._database.execute("UPDATE meta SET value = ? WHERE key = 'identity'", (stored,))
            except CorpusUnknown:
                raise IndexDamaged from None
            self._database.executescript(SCHEMA)
            check_tables(self._database)
            if stored and stored != f"{form} {identity}":
                raise IndexDamaged
            self.set_values(identity=f"{form} {identity}")

    def _stored_identity(self) -> str:
        """Return the identity of an index; empty for a new file."""
        tables = self._database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()
        return self.value("identity") if tables[0] else ""

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def set_values(self, **values: str) -> None:
        """Set metadata values of the index."""
        with translated_errors(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def note_link_pages(self) -> None:
        """Note the pages that consist of links, so that no search has to look at each document for them."""
        rows = self._database.execute("SELECT path FROM files WHERE document ->> '$.is_index' ORDER BY path")
        self.set_values(**{LINK_PAGES: json.dumps([path for (path,) in rows])})

    def file_states(self) -> dict[str, tuple[int, int]]:
        """Return size and modification time of every file that was read, used or not."""
        rows = self._database.execute("SELECT path, size, mtime_ns FROM files WHERE size NOT NULL")
        return {path: (size, mtime_ns) for path, size, mtime_ns in rows}

    def write(self, results: Iterable[tuple[FoundFile, IndexedFile | SkippedFile]]) -> None:
        """Write the results of a batch into the index, in one transaction. Raises `StorageFull`."""
        with translated_errors(), self._database:
            for file, result in results:
                self._remove(file.address)
                if isinstance(result, SkippedFile):
                    self._add(result.path, file.size, file.mtime_ns, result.kind, _written(result.reason))
                    continue
                document = result.document.model_dump_json(context=AS_DATA)
                title = result.document.facts.title
                added = self._add(file.address, file.size, file.mtime_ns, "", "", document, result.packed_text, title)
                self._database.executemany(
                    "INSERT INTO chunks (rowid, section, start, stop, keys) VALUES (?, ?, ?, ?, ?)",
                    [(added * CHUNKS_OF_DOCUMENT + number, *chunk) for number, chunk in enumerate(result.chunks)],
                )

    def finish(self, gone: Iterable[str], skipped: Iterable[SkippedFile]) -> None:
        """Remove the files that are gone, and record those that could not even be opened."""
        with translated_errors(), self._database:
            self._database.execute("DELETE FROM files WHERE size IS NULL")
            for path in gone:
                self._remove(path)
            for file in skipped:
                self._remove(file.path)
                self._add(file.path, None, None, file.kind, _written(file.reason))

    def _remove(self, path: str) -> None:
        row = self._database.execute("DELETE FROM files WHERE path = ? RETURNING id", (path,)).fetchone()
        if row is not None:
            first = row[0] * CHUNKS_OF_DOCUMENT
            span = first, first + CHUNKS_OF_DOCUMENT
            self._database.execute("DELETE FROM chunks WHERE rowid >= ? AND rowid < ?", span)

    def _add(self, *columns: str | int | bytes | None) -> int:
        """Insert a row into `files` from all columns but the id; return the id."""
        row = (*columns, *[None] * (8 - len(columns)))
        return self._database.execute("INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid or 0


def _quoted(keys: Iterable[str]) -> str:
    """Return an FTS5 expression that matches any of the keys, with their syntax escaped."""
    return " OR ".join('"' + key.replace('"', '""') + '"' for key in keys)


# --- reading one file
def read_for_index(raw: bytes, name: str, language: str) -> IndexedFile:
    """Extract and cut the file of a name; without a language, in the detected one. Raises `SourceUnreadable`.

    The process that does this can open no file of the user.
    """
    from providers.reading.documents import extract  # noqa: PLC0415  only children load its libraries

    refuse_key(raw)
    document = extract(raw, name)
    refuse_key(document.text)  # a key in another encoding
    language = language or detect_language(document.text[:LANGUAGE_SAMPLE])
    sections = sections_of(document)
    chunks: list[tuple[int, int, int, str]] = []
    keys_of: dict[str, str] = {}  # of the words of this document: most of them come again
    for number, start, stop in chunks_of(document, sections):
        text = f"{document.text[start:stop]}\n{sections[number][2]}\n{document.title}"
        named = words(text)
        for word in named:
            if word not in keys_of:
                keys_of[word] = " ".join(word_keys(word, language))
        chunks.append((number, start, stop, " ".join(map(keys_of.__getitem__, named))))
    encoded = document.text.encode("utf-8")
    indexed = IndexedDocument(
        raw_hash=digest(raw),
        text_hash=digest(encoded),
        key_language=language,
        facts=DocumentFacts(**document.facts()),
        sections=sections,
        is_index=is_index(document.text[:INDEX_SAMPLE]),
    )
    return IndexedFile(indexed, zlib.compress(encoded, 6), chunks)


def sections_of(document: Extraction) -> list[tuple[int, int, str]]:
    """Return start, end and heading path of the sections of a document."""
    sections: list[tuple[int, int, str]] = []
    path: list[tuple[int, str]] = []
    start = 0
    for block in document.blocks:
        if block.level:
            begin = block.start - block.level - 1  # the `#` marks and a space
            if begin > start:
                sections.append((start, begin, PATH_SEPARATOR.join(title for _, title in path)))
            title = document.text[block.start : block.end]
            path = [*(entry for entry in path if entry[0] < block.level), (block.level, title)]
            start = begin
    return [*sections, (start, len(document.text), PATH_SEPARATOR.join(title for _, title in path))]


def chunks_of(document: Extraction, sections: list[tuple[int, int, str]]) -> list[tuple[int, int, int]]:
    """Return section number, start and end of groups of neighbouring blocks; a long block is its own group.

    A heading is one only if no block follows it in its section.
    """
    chunks: list[tuple[int, int, int]] = []
    number = 0
    for block, following in zip_longest(document.blocks, document.blocks[1:]):
        while block.start >= sections[number][1]:
            number += 1
        if block.level and following is not None and not following.level:
            continue
        if chunks and chunks[-1][0] == number and block.end - chunks[-1][1] <= CHUNK_CHARACTERS:
            chunks[-1] = (number, chunks[-1][1], block.end)
        else:
            chunks.append((number, block.start, block.end))
    return chunks
