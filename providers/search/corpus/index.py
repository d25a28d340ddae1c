"""The index of one corpus: a SQLite file with an FTS5 table, written in transactions that a kill cannot tear."""

import difflib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from contracts.resolved import CorpusSnapshot
from providers.errors import CorpusUnknown, StorageFull, Unavailable
from providers.interfaces import NO_DOCUMENT, SkippedFile
from providers.search.corpus.definitions import CorpusDefinition
from providers.search.corpus.indexed_file import DocumentFacts, IndexedFile, chunk_keys
from providers.search.corpus.scanning import FoundFile

FORMAT: Final = "7"
"""Changes with the schema, the extraction and the stems: an index of another format is built anew."""
BUSY_SECONDS: Final = 30.0
MOST_CHUNKS: Final = 1_000
"""Best chunks of a query from which sections are made."""
LEAST_FREE_BYTES: Final = 1_000_000
"""Room on the disk below which a failed write is due to a full disk."""
NEAR: Final = 0.75
"""Least likeness (`difflib`) of a word that replaces one that no document has."""
# The tokenizer takes stems as they are: every character outside ASCII belongs to a token, and so do the signs that
# join the parts of a compound. The table has no content of its own: the words are in the texts of the documents.
SCHEMA: Final = """
PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  facts TEXT NOT NULL, text BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sections (
  document INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
  heading TEXT NOT NULL, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL, section INTEGER NOT NULL, start INTEGER NOT NULL,
  stop INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS chunks_of_documents ON chunks (document);
CREATE TABLE IF NOT EXISTS skipped (
  path TEXT PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL, size INTEGER, mtime_ns INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (keys, content='', tokenize="ascii tokenchars '._-'''");
"""


class IndexDamaged(Unavailable):
    """The file is no usable index, and has to be replaced."""

    def __init__(self) -> None:
        super().__init__("the index of the corpus is damaged")


class Chunk(NamedTuple):
    """A part of a section that matches a query, with its BM25 score (higher is better)."""

    id: int
    score: float
    document: int
    section: int
    start: int
    stop: int


@contextmanager
def translated_errors(folder: Path) -> Iterator[None]:
    """Raise `IndexDamaged`, `StorageFull` or `Unavailable` in place of SQLite's errors."""
    try:
        yield
    except zlib.error as error:
        raise IndexDamaged from error
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or name == "SQLITE_ERROR":
            raise IndexDamaged from error
        full = name == "SQLITE_FULL" or (
            name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and shutil.disk_usage(folder).free < LEAST_FREE_BYTES
        )
        if full:
            raise StorageFull("no room left where the indexes are stored") from error
        raise Unavailable("the index of the corpus cannot be used") from error


@contextmanager
def open_index(path: Path) -> Iterator["IndexReader"]:
    """Open an index for reading, in its present state.

    Raises `CorpusUnknown` if there is none of this format, `IndexDamaged`, `Unavailable`.
    """
    if not path.exists():
        raise CorpusUnknown("the corpus has not been indexed yet")
    with translated_errors(path.parent):
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("BEGIN")  # everything is read as of one moment
            reader = IndexReader(database)
            if reader.value("identity").partition(" ")[0] != FORMAT:
                raise CorpusUnknown("another version has indexed the corpus: index it again")
            yield reader
        finally:
            database.close()


class IndexReader:
    """Queries to one index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def value(self, key: str) -> str:
        """A statement of the index about itself; empty where it makes none."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def snapshot(self, definition: CorpusDefinition) -> CorpusSnapshot:
        """The state of the index, as runs refer to it."""
        (skipped,) = self._database.execute("SELECT count(*) FROM skipped WHERE kind != ?", (NO_DOCUMENT,)).fetchone()
        return CorpusSnapshot(
            name=definition.name,
            title=definition.title,
            authority=definition.authority,
            digest=self.value("digest"),
            indexed_at=self.value("indexed_at"),
            files=self.documents(),
            skipped=skipped,
        )

    def documents(self) -> int:
        """Number of documents."""
        (count,) = self._database.execute("SELECT count(*) FROM documents").fetchone()
        return int(count)

    def hashes(self) -> list[tuple[str, str]]:
        """Path and raw hash of every document, by path."""
        return self._database.execute("SELECT path, facts ->> 'raw_hash' FROM documents ORDER BY path").fetchall()

    def skipped(self) -> list[SkippedFile]:
        """Documents that could not be used, by path; files that are no documents are not listed."""
        query = "SELECT path, kind, reason FROM skipped WHERE kind != ? ORDER BY path"
        return [SkippedFile(*row) for row in self._database.execute(query, (NO_DOCUMENT,))]

    def document_count(self, key: str) -> int:
        """In how many documents a key occurs."""
        query = "SELECT count(DISTINCT document) FROM words JOIN chunks ON id = words.rowid WHERE words MATCH ?"
        return int(self._database.execute(query, (_quoted([key]),)).fetchone()[0])

    def best_chunks(self, keys: Sequence[str]) -> list[Chunk]:
        """The best chunks with any of the keys, best first."""
        if not keys:
            return []
        rows = self._database.execute(
            "WITH best AS (SELECT rowid AS id, bm25(words) AS score FROM words WHERE words MATCH ?"
            " ORDER BY score, rowid LIMIT ?)"
            " SELECT c.id, -best.score, document, section, start, stop FROM best JOIN chunks c USING (id)"
            " ORDER BY best.score, c.id",
            (_quoted(keys), MOST_CHUNKS),
        )
        return [Chunk._make(row) for row in rows]

    def nearest_key(self, key: str) -> str | None:
        """The most similar key of the index with the same first letter, or None."""
        self._database.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, words, row)")
        rows = self._database.execute(
            "SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?2 AND abs(length(term) - ?3) <= 2",
            (key[:1], chr(ord(key[0]) + 1), len(key)),
        )
        return next(iter(difflib.get_close_matches(key, [term for (term,) in rows], n=1, cutoff=NEAR)), None)

    def paths(self, documents: Iterable[int]) -> dict[int, str]:
        """Path of each document."""
        query = "SELECT id, path FROM documents WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._database.execute(query, (json.dumps(list(documents)),)))

    def section(self, document: int, number: int) -> tuple[int, int, str]:
        """Start, end and heading path of a section."""
        query = "SELECT start, stop, heading FROM sections WHERE document = ? AND number = ?"
        start, stop, heading = self._database.execute(query, (document, number)).fetchone()
        return start, stop, heading

    def document(self, *, path: str = "", number: int = 0) -> tuple[str, DocumentFacts, str] | None:
        """Path, facts and text of a document by its path or its number; None if there is none."""
        query = "SELECT path, facts, text FROM documents WHERE path = ? OR id = ?"
        row = self._database.execute(query, (path, number)).fetchone()
        if row is None:
            return None
        return row[0], DocumentFacts.model_validate_json(row[1]), zlib.decompress(row[2]).decode("utf-8")


class IndexWriter(IndexReader):
    """Writes an index, under the lock of the corpus."""

    def __init__(self, path: Path, identity: str) -> None:
        """`identity` is of the folder and its language: another one needs another index. Raises `IndexDamaged`."""
        self._folder = path.parent
        with translated_errors(self._folder):
            super().__init__(sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False))
            self._database.executescript(SCHEMA)
            stated = self.value("identity")
            if stated and stated != f"{FORMAT} {identity}":
                raise IndexDamaged
            self.note(identity=f"{FORMAT} {identity}")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def note(self, **values: str) -> None:
        """Set statements of the index about itself."""
        with translated_errors(self._folder), self._database:
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def known(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of every file that was read, used or not."""
        rows = self._database.execute(
            "SELECT path, size, mtime_ns FROM documents"
            " UNION ALL SELECT path, size, mtime_ns FROM skipped WHERE size IS NOT NULL"
        )
        return {path: (size, mtime_ns) for path, size, mtime_ns in rows}

    def write(self, results: Iterable[tuple[FoundFile, IndexedFile | SkippedFile]]) -> None:
        """Put the results of a batch into the index, in one transaction. Raises `StorageFull`."""
        with translated_errors(self._folder), self._database:
            for file, result in results:
                self._remove(file.address)
                if isinstance(result, SkippedFile):
                    self._skip(result, file.size, file.mtime_ns)
                else:
                    self._insert(file, result)

    def finish(self, gone: Iterable[str], skipped: Iterable[SkippedFile]) -> None:
        """Remove the files that are gone, note those that could not even be opened, and return unused room."""
        with translated_errors(self._folder):
            with self._database:
                for path in gone:
                    self._remove(path)
                self._database.execute("DELETE FROM skipped WHERE size IS NULL")
                for one in skipped:
                    self._remove(one.path)
                    self._skip(one, None, None)
            # It needs no room beside the index, as VACUUM would; `execute` would do its first step alone.
            self._database.executescript("PRAGMA incremental_vacuum")

    def optimize(self) -> None:
        """Merge the parts of the FTS5 table that a large change has left."""
        with translated_errors(self._folder), self._database:
            self._database.execute("INSERT INTO words (words) VALUES ('optimize')")

    def _remove(self, path: str) -> None:
        run = self._database.execute
        run("DELETE FROM skipped WHERE path = ?", (path,))
        row = run("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
        found = self.document(path=path)
        if row is None or found is None:
            return
        _, facts, text = found
        query = (
            "SELECT c.id, c.start, c.stop, heading FROM chunks c JOIN sections s"
            " ON s.document = c.document AND s.number = c.section WHERE c.document = ?"
        )
        for number, start, stop, heading in run(query, row).fetchall():
            # A table without content of its own must be given the keys that go.
            keys = chunk_keys(text[start:stop], heading, facts.title, self.value("language"))
            run("INSERT INTO words (words, rowid, keys) VALUES ('delete', ?, ?)", (number, keys))
        run("DELETE FROM chunks WHERE document = ?", row)
        run("DELETE FROM sections WHERE document = ?", row)
        run("DELETE FROM documents WHERE id = ?", row)

    def _skip(self, skipped: SkippedFile, size: int | None, mtime_ns: int | None) -> None:
        values = (skipped.path, skipped.kind, skipped.reason, size, mtime_ns)
        self._database.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)", values)

    def _insert(self, file: FoundFile, found: IndexedFile) -> None:
        run = self._database.execute
        values = (file.address, file.size, file.mtime_ns, found.facts.model_dump_json(), found.packed_text)
        document = run("INSERT INTO documents VALUES (NULL, ?, ?, ?, ?, ?)", values).lastrowid
        sections = [(document, number, *section) for number, section in enumerate(found.sections)]
        self._database.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?)", sections)
        for section, start, stop, keys in found.chunks:
            number = run("INSERT INTO chunks VALUES (NULL, ?, ?, ?, ?)", (document, section, start, stop)).lastrowid
            run("INSERT INTO words (rowid, keys) VALUES (?, ?)", (number, keys))


def _quoted(keys: Iterable[str]) -> str:
    """An FTS5 expression for any of the keys, free of syntax in them."""
    return " OR ".join('"' + key.replace('"', '""') + '"' for key in keys)
