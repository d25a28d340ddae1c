"""The index file: full disks, other owners, removals and its parts."""

from contextlib import closing
from pathlib import Path

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import StorageFull
from providers.search.corpus.index import IndexWriter
from providers.search.corpus.indexed_file import IndexedFile, read_for_index
from providers.search.corpus.query import search_index
from providers.search.corpus.scanning import FoundFile

Page = tuple[FoundFile, IndexedFile]


def a_file(folder: Path, name: str, words: str) -> Page:
    """A file, read for the index."""
    (folder / name).write_text(words)
    return FoundFile(name, name, 1, 1), read_for_index(str(folder), name, "en")


def writer_of(index: Path, identity: str = "me") -> IndexWriter:
    """A writer of an index in English."""
    writer = IndexWriter(index, identity)
    writer.note(language="en")
    return writer


def searched(index: Path, text: str) -> SearchResponse:
    """The answer of an index."""
    request = SearchRequest(research_id="r-1", operation="search/1", provider="corpus", corpus="manual", text=text)
    return search_index(index, "manual", request)


def test_a_full_disk_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """Running out of room undoes the batch: the earlier state can still be used."""
    with closing(writer_of(tmp_path / "index.sqlite3")) as writer:
        writer.write([a_file(tmp_path, "small.md", "some words")])
        (pages,) = writer._database.execute("PRAGMA page_count").fetchone()
        writer._database.execute(f"PRAGMA max_page_count = {pages + 3}")
        large = " ".join(f"word{number}" for number in range(20_000))
        with pytest.raises(StorageFull):
            writer.write([a_file(tmp_path, "other.md", "more words"), a_file(tmp_path, "large.md", large)])
        assert [path for path, _ in writer.hashes()] == ["small.md"]


def pages_of(folder: Path, *words: str) -> list[Page]:
    """A page of Markdown for each of these words, which it has in its heading and its text."""
    return [
        a_file(folder, f"page-{number}.md", f"# About {word}\n\n{word} and {words[number - 1]} are words of a page.\n")
        for number, word in enumerate(words)
    ]


def test_a_replaced_or_removed_document_leaves_no_trace(tmp_path: Path) -> None:
    """Counts, scores and answers are those of an index that never had anything else."""
    pages = pages_of(tmp_path, "bach", "dalm", "telm", "port", "sich")
    older = a_file(tmp_path, pages[3][0].path, "# Older\n\nquicksilver bach bach falm.\n\n```\ngone words\n```\n")
    changed, fresh = tmp_path / "changed.sqlite3", tmp_path / "fresh.sqlite3"
    with closing(writer_of(changed)) as writer:
        writer.write([*pages[:3], older])
        writer.write(pages[3:])
        writer.finish([pages[0][0].path], ())
        writer._database.execute("INSERT INTO chunks (chunks) VALUES ('integrity-check')")
    with closing(writer_of(fresh)) as writer:
        writer.write(pages[1:])
    for text in ("quicksilver", "gone words", "bach falm", "telm sich port", pages[3][1].document.facts.title):
        assert searched(changed, text) == searched(fresh, text), text
