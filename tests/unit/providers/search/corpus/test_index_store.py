"""The index file: full disks and other owners."""

import pytest

from providers.errors import StorageFull
from providers.search.corpus.index_store import IndexDamaged, IndexWriter
from providers.search.corpus.indexing_task import read_for_index
from providers.search.corpus.scanning import FoundFile


def a_file(folder, name, words):
    (folder / name).write_text(words)
    found = read_for_index(str(folder), name, name, "en")
    return FoundFile(name, name, 1, 1), found


def test_a_full_disk_is_said_so_and_leaves_the_index_as_it_was(tmp_path):
    """Running out of room undoes the batch: what was there before can still be used."""
    writer = IndexWriter(tmp_path / "index.sqlite3", "me")
    writer.write([a_file(tmp_path, "small.md", "some words")])
    (pages,) = writer._database.execute("PRAGMA page_count").fetchone()
    writer._database.execute(f"PRAGMA max_page_count = {pages + 3}")
    large = " ".join(f"word{number}" for number in range(20_000))
    with pytest.raises(StorageFull):
        writer.write([a_file(tmp_path, "other.md", "more words"), a_file(tmp_path, "large.md", large)])
    assert [path for path, _ in writer.hashes()] == ["small.md"]
    writer.close()


def test_an_index_of_another_folder_is_not_reused(tmp_path):
    """An index belongs to one folder and language; for another it is built anew."""
    IndexWriter(tmp_path / "index.sqlite3", "one").close()
    IndexWriter(tmp_path / "index.sqlite3", "one").close()
    with pytest.raises(IndexDamaged):
        IndexWriter(tmp_path / "index.sqlite3", "two")
