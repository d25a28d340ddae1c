"""The index of one corpus: one SQLite file, written in transactions that a kill cannot tear."""

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from providers.errors import StorageFull, Unavailable
from providers.interfaces import SkippedFile
from providers.search.corpus.indexing_task import IndexedFile
from providers.search.corpus.scanning import FoundFile

FORMAT: Final = "5"
"""Changes with the schema, the extraction, the stems or what is left out: an index of another format is built anew."""
LANGUAGE: Final = "language"
"""Under which the index says in which language its words are."""
BUSY_SECONDS: Final = 30.0
LEAST_FREE_BYTES: Final = 1_000_000
DAMAGED: Final = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CORRUPT_VTAB", "SQLITE_CORRUPT_INDEX"}

# The tokenizer takes our stems as they are: every character outside ASCII belongs to a token, and so do the signs
# that join the parts of a compound.
TOKENIZER: Final = """tokenize="ascii tokenchars '._-'''" """
SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  raw_hash TEXT NOT NULL, text_hash TEXT NOT NULL, characters INTEGER NOT NULL, media_type TEXT NOT NULL,
  title TEXT NOT NULL, language TEXT, authors TEXT NOT NULL, publisher TEXT, published_at TEXT, pages TEXT NOT NULL,
  text BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sections (
  document INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
  heading TEXT NOT NULL, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL, section INTEGER NOT NULL, start INTEGER NOT NULL,
  stop INTEGER NOT NULL, snippet TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS passages_of_document ON passages (document);
CREATE TABLE IF NOT EXISTS skipped (
  path TEXT PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL, size INTEGER, mtime_ns INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS passage_index USING fts5 (body, heading, title, {TOKENIZER});
CREATE VIRTUAL TABLE IF NOT EXISTS document_index USING fts5 (stems, detail=none, columnsize=0, {TOKENIZER});
CREATE VIRTUAL TABLE IF NOT EXISTS document_counts USING fts5vocab (document_index, row);
"""


class IndexDamaged(Exception):
    """The file is no usable index: it has to be built anew."""


@contextmanager
def translated_errors(folder: Path) -> Iterator[None]:
    """Errors of SQLite as ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name in DAMAGED or "malformed" in str(error) or "not a database" in str(error):
            raise IndexDamaged from error
        full = name == "SQLITE_FULL" or (
            name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and shutil.disk_usage(folder).free < LEAST_FREE_BYTES
        )
        if full:
            raise StorageFull("no room left where the indexes are kept") from error
        raise Unavailable("the index of the corpus cannot be used") from error


class IndexWriter:
    """Writes an index; the holder of the corpus's lock has the only one."""

    def __init__(self, path: Path, identity: str) -> None:
        self._folder = path.parent
        with translated_errors(self._folder):
            self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
            self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + SCHEMA)
            self._adopt(f"{FORMAT} {identity}")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

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

    def finish(self, gone: Iterable[str], skipped: Iterable[SkippedFile], values: dict[str, str]) -> None:
        """Take out files that are gone, note what looking alone ruled out, and set what the index says of itself."""
        with translated_errors(self._folder), self._database:
            for path in gone:
                self._remove(path)
            self._database.execute("DELETE FROM skipped WHERE size IS NULL")
            for one in skipped:
                self._remove(one.path)
                self._skip(one, None, None)
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def hashes(self) -> list[tuple[str, str]]:
        """Path and raw hash of every document, by path."""
        return self._database.execute("SELECT path, raw_hash FROM documents ORDER BY path").fetchall()

    def value(self, key: str) -> str | None:
        """What the index says of itself under a key."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def note_language(self, language: str) -> None:
        """Write down at once which language the words are indexed in: what is added later must agree."""
        with translated_errors(self._folder), self._database:
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (LANGUAGE, language))

    def optimize(self) -> None:
        """Merge the segments that a large change has left."""
        with translated_errors(self._folder), self._database:
            for table in ("passage_index", "document_index"):
                self._database.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608

    def _adopt(self, identity: str) -> None:
        """Start over if the file was made by another format or for another folder."""
        row = self._database.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
        if row is not None and row[0] != identity:
            raise IndexDamaged
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO meta VALUES ('identity', ?)", (identity,))

    def _remove(self, path: str) -> None:
        run = self._database.execute
        run("DELETE FROM skipped WHERE path = ?", (path,))
        row = run("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
        if row is None:
            return
        run("DELETE FROM passage_index WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", row)
        for table, column in (("passages", "document"), ("sections", "document"), ("documents", "id")):
            run(f"DELETE FROM {table} WHERE {column} = ?", row)  # noqa: S608
        run("DELETE FROM document_index WHERE rowid = ?", row)

    def _skip(self, skipped: SkippedFile, size: int | None, mtime_ns: int | None) -> None:
        values = (skipped.path, skipped.kind, skipped.reason, size, mtime_ns)
        self._database.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)", values)

    def _insert(self, file: FoundFile, found: IndexedFile) -> None:
        run = self._database.execute
        values = (
            file.address, file.size, file.mtime_ns, found.raw_hash, found.text_hash, found.characters,
            found.media_type, found.title, found.language, json.dumps(found.authors), found.publisher,
            found.published_at, json.dumps(found.pages), found.packed_text,
        )  # fmt: skip
        document = run(f"INSERT INTO documents VALUES (NULL{', ?' * len(values)})", values).lastrowid  # noqa: S608
        sections = [(document, number, *section) for number, section in enumerate(found.sections)]
        self._database.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?)", sections)
        for passage in found.passages:
            place = (document, passage.section, passage.start, passage.end, passage.snippet)
            rowid = run("INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?)", place).lastrowid
            words = (rowid, passage.body, passage.heading, found.title_stems)
            run("INSERT INTO passage_index (rowid, body, heading, title) VALUES (?, ?, ?, ?)", words)
        run("INSERT INTO document_index (rowid, stems) VALUES (?, ?)", (document, found.stems))
