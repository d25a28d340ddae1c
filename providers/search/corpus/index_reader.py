"""Reading an index: what it holds, and which passages match."""

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from providers.errors import CorpusUnknown, Unavailable
from providers.interfaces import NO_DOCUMENT, ExtractedDocument, SkippedFile
from providers.reading.canonical_text import Extraction
from providers.search.corpus.index_store import BUSY_SECONDS, FORMAT, IDENTITY, LANGUAGE
from providers.search.corpus.indexed_passages import snippet_of
from providers.search.corpus.packing import PIECE_CHARACTERS, stems_of, unpack_lines, unpack_text

MOST_PASSAGES: Final = 1_000
"""Best passages of a query that are looked at; sections are made of these."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What an index says of itself."""

    digest: str
    indexed_at: str
    files: int
    skipped: int


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document of the index, without its text."""

    id: int
    path: str
    raw_hash: str
    text_hash: str
    media_type: str
    title: str
    authors: list[str]
    publisher: str | None
    published_at: str | None
    pages: list[int]


class Match(NamedTuple):
    """A passage that matches, with its BM25 score (higher is better): a tuple, since each query makes a thousand."""

    passage: int
    score: float
    document: int
    section: int
    start: int
    end: int


@contextmanager
def open_index(path: Path) -> Iterator["IndexReader"]:
    """Open an index for reading, as it is at this moment.

    Raises `CorpusUnknown` if there is none of this format, `Unavailable` if it cannot be used.
    """
    if not path.exists():
        raise CorpusUnknown("the corpus has not been indexed yet")
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            database.execute("PRAGMA query_only=ON")
            database.execute("BEGIN")  # all that is read is of one moment, and is locked once
            reader = IndexReader(database)
            if reader.format() != FORMAT:
                raise CorpusUnknown("another version has indexed the corpus: index it again")
            yield reader
        finally:
            database.close()
    except (sqlite3.DatabaseError, zlib.error) as error:
        raise Unavailable("the index of the corpus cannot be used") from error


def document_of(url: str, raw: bytes, text: str, found: DocumentRow | Extraction) -> ExtractedDocument:
    """A document with its text, and what the index or its reading says of it."""
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


class IndexReader:
    """Questions to one index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def format(self) -> str:
        """The format that it was made in."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (IDENTITY,)).fetchone()
        return str(row[0]).partition(" ")[0] if row else ""

    def status(self) -> IndexStatus:
        """Digest, time and counts."""
        meta = dict(self._database.execute("SELECT key, value FROM meta"))
        (skipped,) = self._database.execute("SELECT count(*) FROM skipped WHERE kind != ?", (NO_DOCUMENT,)).fetchone()
        return IndexStatus(meta.get("digest", ""), meta.get("indexed_at", ""), self.documents(), skipped)

    def language(self) -> str:
        """The language that its words were brought to their stems in."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (LANGUAGE,)).fetchone()
        return str(row[0]) if row else "en"

    def documents(self) -> int:
        """Number of documents."""
        (count,) = self._database.execute("SELECT count(*) FROM documents").fetchone()
        return int(count)

    def hashes(self) -> list[tuple[str, str]]:
        """Path and raw hash of every document, by path."""
        return self._database.execute("SELECT path, raw_hash FROM documents ORDER BY path").fetchall()

    def skipped(self) -> list[SkippedFile]:
        """Documents that were left out, by path; what never was to be a document is not told."""
        wanted = "SELECT path, kind, reason FROM skipped WHERE kind != ? ORDER BY path"
        rows = self._database.execute(wanted, (NO_DOCUMENT,))
        return [SkippedFile(*row) for row in rows]

    def document_counts(self, stems: Iterable[str]) -> dict[str, int]:
        """In how many documents each stem occurs."""
        counts = {}
        for stem in stems:
            row = self._database.execute("SELECT documents FROM stems WHERE stem = ?", (stem,)).fetchone()
            counts[stem] = int(row[0]) if row else 0
        return counts

    def matches(self, stems: Sequence[str]) -> list[Match]:
        """The best passages that hold any of the stems; a heading counts three times, the title twice."""
        if not stems:
            return []
        expression = " OR ".join('"' + stem.replace('"', '""') + '"' for stem in stems)
        rows = self._database.execute(
            "WITH best AS (SELECT rowid AS id, bm25(passage_index, 1.0, 3.0, 2.0) AS score FROM passage_index"
            " WHERE passage_index MATCH ? ORDER BY score, rowid LIMIT ?)"
            " SELECT p.id, -best.score, p.document, p.section, p.start, p.stop FROM best JOIN passages p USING (id)",
            (expression, MOST_PASSAGES),
        )
        return list(map(Match._make, rows))

    def passage_stems(self, passages: Sequence[int]) -> list[tuple[frozenset[str], frozenset[str]]]:
        """For each passage the stems of its words, and those of its headings and title."""
        found = {}
        query = "SELECT first_passage, packed FROM packed_stems WHERE first_passage <= ? ORDER BY 1 DESC LIMIT 1"
        first, lines = 0, list[str]()
        for passage in sorted(passages):
            if passage - first >= len(lines):
                first, packed = self._database.execute(query, (passage,)).fetchone()
                lines = unpack_lines(packed)
            body, heading, title = stems_of(lines[passage - first])
            found[passage] = frozenset(body.split()), frozenset(f"{heading} {title}".split())
        return [found[passage] for passage in passages]

    def section(self, document: int, number: int) -> tuple[int, int, str]:
        """Start, end and heading path of a section."""
        query = "SELECT start, stop, heading FROM sections WHERE document = ? AND number = ?"
        start, end, heading = self._database.execute(query, (document, number)).fetchone()
        return start, end, heading

    def headings(self, sections: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Heading path of sections, by document and number."""
        wanted = json.dumps(sorted(sections))
        rows = self._database.execute(
            "SELECT s.document, s.number, s.heading FROM json_each(?) AS wanted JOIN sections s"
            " ON s.document = wanted.value ->> 0 AND s.number = wanted.value ->> 1",
            (wanted,),
        )
        return {(document, number): heading for document, number, heading in rows}

    def sizes(self, documents: Iterable[int]) -> dict[int, tuple[str, int]]:
        """Title and length in characters of documents."""
        wanted = json.dumps(sorted(documents))
        rows = self._database.execute(
            "SELECT id, title, characters FROM documents WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
        )
        return {number: (title, characters) for number, title, characters in rows}

    def paths(self, documents: Iterable[int]) -> dict[int, str]:
        """Path of each document."""
        wanted = list(documents)
        marks = ", ".join("?" * len(wanted))
        return dict(self._database.execute(f"SELECT id, path FROM documents WHERE id IN ({marks})", wanted))  # noqa: S608

    def document(self, *, path: str | None = None, number: int | None = None) -> DocumentRow | None:
        """A document by its path or its number; null if there is none."""
        row = self._database.execute(
            "SELECT id, path, raw_hash, text_hash, media_type, title, authors, publisher, published_at, pages"
            " FROM documents WHERE path = ? OR id = ?",
            (path, number),
        ).fetchone()
        if row is None:
            return None
        place, found, raw_hash, text_hash, media_type, title, authors, publisher, published_at, pages = row
        return DocumentRow(
            place, found, raw_hash, text_hash, media_type, title, json.loads(authors), publisher, published_at,
            json.loads(pages),
        )  # fmt: skip

    def snippet(self, passage: Match) -> str:
        """The beginning of a passage on one line."""
        first, last = passage.start // PIECE_CHARACTERS, (passage.end - 1) // PIECE_CHARACTERS
        start = passage.start - first * PIECE_CHARACTERS
        text = self._pieces(passage.document, first, last)
        return snippet_of(text[start : start + passage.end - passage.start])

    def text(self, document: int) -> str:
        """The stored text of a document."""
        return self._pieces(document, 0, sys.maxsize)

    def _pieces(self, document: int, first: int, last: int) -> str:
        rows = self._database.execute(
            "SELECT p.packed FROM documents d JOIN text_pieces p"
            " ON p.id BETWEEN d.first_piece + ? AND d.first_piece + min(?, d.pieces - 1) WHERE d.id = ? ORDER BY p.id",
            (first, last, document),
        )
        return unpack_text(packed for (packed,) in rows)
