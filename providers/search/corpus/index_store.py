"""The index of one corpus: one SQLite file, written in transactions that a kill cannot tear."""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from providers.errors import StorageFull, Unavailable
from providers.interfaces import SkippedFile
from providers.search.corpus.indexing_task import IndexedFile
from providers.search.corpus.packing import stems_of, unpack_lines
from providers.search.corpus.scanning import FoundFile

FORMAT: Final = "6"
"""Changes with the schema, the extraction, the stems or what is left out: an index of another format is built anew."""
IDENTITY: Final = "identity"
"""Under which the index says its format, a space, and what it was made for."""
LANGUAGE: Final = "language"
"""Under which the index says in which language its words are."""
BUSY_SECONDS: Final = 30.0
LEAST_FREE_BYTES: Final = 1_000_000
PAGES_TO_A_FREE_ONE: Final = 20
"""An index with more free pages than one in so many gives them back to the disk."""
DAMAGED: Final = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CORRUPT_VTAB", "SQLITE_CORRUPT_INDEX"}

# The tokenizer takes our stems as they are: every character outside ASCII belongs to a token, and so do the signs
# that join the parts of a compound. Passages are found by positions (`detail=full`), since BM25 without them would need
# the words; the words themselves are in no table but `packed_stems`.
TOKENIZER: Final = """tokenize="ascii tokenchars '._-'''" """
PRAGMAS: Final = "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  raw_hash TEXT NOT NULL, text_hash TEXT NOT NULL, characters INTEGER NOT NULL, media_type TEXT NOT NULL,
  title TEXT NOT NULL, language TEXT, authors TEXT NOT NULL, publisher TEXT, published_at TEXT, pages TEXT NOT NULL,
  first_passage INTEGER NOT NULL, passages INTEGER NOT NULL, first_piece INTEGER NOT NULL, pieces INTEGER NOT NULL,
  other_stems BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS text_pieces (id INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sections (
  document INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
  heading TEXT NOT NULL, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL, section INTEGER NOT NULL, start INTEGER NOT NULL,
  stop INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS packed_stems (first_passage INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS stems (stem TEXT PRIMARY KEY, documents INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS skipped (
  path TEXT PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL, size INTEGER, mtime_ns INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS passage_index USING fts5 (body, heading, title, content='', {TOKENIZER});
"""
WORDS: Final = "rowid, body, heading, title"


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
            self._database.executescript(PRAGMAS + SCHEMA)
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
        counts = Counter[str]()
        with translated_errors(self._folder), self._database:
            for file, result in results:
                self._remove(file.address, counts)
                if isinstance(result, SkippedFile):
                    self._skip(result, file.size, file.mtime_ns)
                else:
                    self._insert(file, result)
                    counts.update(result.stems)
            self._count(counts)

    def finish(self, gone: Iterable[str], skipped: Iterable[SkippedFile], values: dict[str, str]) -> None:
        """Take out files that are gone, note what looking alone ruled out, and set what the index says of itself."""
        counts = Counter[str]()
        with translated_errors(self._folder), self._database:
            for path in gone:
                self._remove(path, counts)
            self._database.execute("DELETE FROM skipped WHERE size IS NULL")
            for one in skipped:
                self._remove(one.path, counts)
                self._skip(one, None, None)
            self._count(counts)
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
            self._database.execute("INSERT INTO passage_index (passage_index) VALUES ('optimize')")

    def give_back(self) -> None:
        """Make the file smaller if much of it is unused; it needs no room beside the index, as VACUUM would."""
        with translated_errors(self._folder):
            (free,) = self._database.execute("PRAGMA freelist_count").fetchone()
            (pages,) = self._database.execute("PRAGMA page_count").fetchone()
            if free * PAGES_TO_A_FREE_ONE > pages:
                self._database.executescript("PRAGMA incremental_vacuum")  # `execute` would do its first step alone

    def _adopt(self, identity: str) -> None:
        """Start over if the file was made by another format or for another folder."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (IDENTITY,)).fetchone()
        if row is not None and row[0] != identity:
            raise IndexDamaged
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (IDENTITY, identity))

    def _remove(self, path: str, counts: Counter[str]) -> None:
        """Take out a document, and its stems from `counts`."""
        run = self._database.execute
        run("DELETE FROM skipped WHERE path = ?", (path,))
        query = "SELECT id, other_stems, first_passage, passages, first_piece, pieces FROM documents WHERE path = ?"
        row = run(query, (path,)).fetchone()
        if row is None:
            return
        document, other_stems, first, count, piece, pieces = row
        passages = first, first + count - 1
        stems = set(unpack_lines(other_stems))
        query = "SELECT first_passage, packed FROM packed_stems WHERE first_passage BETWEEN ? AND ?"
        for number, packed in run(query, passages).fetchall():
            for rowid, passage in enumerate(map(stems_of, unpack_lines(packed)), number):
                # An index that does not hold the words must be told which ones go.
                values = ("delete", rowid, *passage)
                run(f"INSERT INTO passage_index (passage_index, {WORDS}) VALUES (?, ?, ?, ?, ?)", values)  # noqa: S608
                stems |= passage.distinct()
        counts.subtract(stems - {""})
        run("DELETE FROM packed_stems WHERE first_passage BETWEEN ? AND ?", passages)
        run("DELETE FROM passages WHERE id BETWEEN ? AND ?", passages)
        run("DELETE FROM text_pieces WHERE id BETWEEN ? AND ?", (piece, piece + pieces - 1))
        for table, column in (("sections", "document"), ("documents", "id")):
            run(f"DELETE FROM {table} WHERE {column} = ?", (document,))  # noqa: S608

    def _count(self, counts: Counter[str]) -> None:
        """Add to the number of documents that hold each stem."""
        changed = sorted((stem, change) for stem, change in counts.items() if change)
        add = "INSERT INTO stems VALUES (?, ?) ON CONFLICT DO UPDATE SET documents = documents + excluded.documents"
        self._database.executemany(add, changed)
        gone = [(stem,) for stem, change in changed if change < 0]
        self._database.executemany("DELETE FROM stems WHERE stem = ? AND documents = 0", gone)

    def _skip(self, skipped: SkippedFile, size: int | None, mtime_ns: int | None) -> None:
        values = (skipped.path, skipped.kind, skipped.reason, size, mtime_ns)
        self._database.execute("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?)", values)

    def _insert(self, file: FoundFile, found: IndexedFile) -> None:
        run, run_for_each = self._database.execute, self._database.executemany
        (first,) = run("SELECT coalesce(max(id), 0) + 1 FROM passages").fetchone()
        (piece,) = run("SELECT coalesce(max(id), 0) + 1 FROM text_pieces").fetchone()
        values = (
            file.address, file.size, file.mtime_ns, found.raw_hash, found.text_hash, found.characters,
            found.media_type, found.title, found.language, json.dumps(found.authors), found.publisher,
            found.published_at, json.dumps(found.pages), first, len(found.passages), piece, len(found.packed_text),
            found.other_stems,
        )  # fmt: skip
        document = run(f"INSERT INTO documents VALUES (NULL{', ?' * len(values)})", values).lastrowid  # noqa: S608
        sections = [(document, number, *section) for number, section in enumerate(found.sections)]
        run_for_each("INSERT INTO text_pieces VALUES (?, ?)", enumerate(found.packed_text, piece))
        run_for_each("INSERT INTO sections VALUES (?, ?, ?, ?, ?)", sections)
        numbered = list(enumerate(found.passages, first))
        places = [(rowid, document, one.section, one.start, one.end) for rowid, one in numbered]
        run_for_each("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", places)
        words = [(rowid, *one.stems) for rowid, one in numbered]
        run_for_each(f"INSERT INTO passage_index ({WORDS}) VALUES (?, ?, ?, ?)", words)  # noqa: S608
        packs = [(first + number, packed) for number, packed in found.packed_stems]
        run_for_each("INSERT INTO packed_stems VALUES (?, ?)", packs)
