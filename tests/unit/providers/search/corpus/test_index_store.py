"""The index file: full disks, other owners, what goes, and how large it is."""

import random
from contextlib import closing

import pytest

from contracts.messages import SearchRequest
from providers.errors import StorageFull, Unavailable
from providers.search.corpus.index_query import search_index
from providers.search.corpus.index_reader import open_index
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


SYLLABLES = [f"{first}{second}{third}" for first in "bdfgklmnprst" for second in "aeiou" for third in ("ch", "lm", "x")]
WORDS = SYLLABLES + [f"{one}{other}" for one in SYLLABLES[::7] for other in SYLLABLES[::5]]
OFTEN = [1 / rank for rank in range(1, len(WORDS) + 1)]
"""How often each word stands in a made page: as in a language, few make most of a text."""


def made_pages(folder, count):
    """Pages of Markdown: nothing in them is markup that an index leaves out."""
    chance = random.Random(7)
    for number in range(count):
        sections = [
            f"## {' '.join(chance.choices(WORDS, k=3))}\n\n"
            + "\n\n".join(" ".join(chance.choices(WORDS, OFTEN, k=60)) + "." for _ in range(4))
            for _ in range(1 + number % 9)
        ]
        text = f"# {' '.join(chance.choices(WORDS, k=3))}\n\n" + "\n\n".join(sections)
        yield a_file(folder, f"page-{number:03}.md", text), len(text)


def searched(index, text):
    request = SearchRequest(research_id="r-1", operation="search/1", provider="corpus", corpus="manual", text=text)
    return search_index(index, "manual", "en", request)


def test_what_is_replaced_or_gone_leaves_no_trace(tmp_path):
    """Counts of stems, scores and answers are those of an index that never held anything else."""
    pages = [page for page, _ in made_pages(tmp_path, 12)]
    older = a_file(tmp_path, pages[3][0].path, "# Older\n\nquicksilver bach bach falm.\n\n```\ngone words\n```\n")
    changed, fresh = tmp_path / "changed.sqlite3", tmp_path / "fresh.sqlite3"
    with closing(IndexWriter(changed, "me")) as writer:
        writer.write([*pages[:3], older, *pages[4:8]])
        writer.write([pages[3], *pages[8:]])
        writer.finish([pages[0][0].path, pages[9][0].path], (), {})
        stems = writer._database.execute("SELECT * FROM stems").fetchall()
    with closing(IndexWriter(fresh, "me")) as writer:
        writer.write([*pages[1:9], *pages[10:]])
        assert writer._database.execute("SELECT * FROM stems").fetchall() == stems
    for text in ("quicksilver", "gone words", "bach falm", "telm sich port", pages[3][1].title):
        assert searched(changed, text) == searched(fresh, text), text


def test_a_reader_sees_one_moment(tmp_path):
    """What a search has found can be read to its end while the index changes under it."""
    pages = [page for page, _ in made_pages(tmp_path, 2)]
    index = tmp_path / "index.sqlite3"
    with closing(IndexWriter(index, "me")) as writer:
        writer.write(pages)
        with open_index(index) as reader:
            matches = reader.matches(["bach", "dalm"])
            writer.finish([page.path for page, _ in pages], (), {})
            assert len(reader.passage_stems([match.passage for match in matches])) == len(matches)
            assert all(reader.snippet(match) for match in matches)
        with open_index(index) as reader:
            assert reader.matches(["bach", "dalm"]) == []


def test_an_index_is_smaller_than_twice_its_documents(tmp_path):
    """Of plain text, which has no markup to leave out, the index takes less than twice the room."""
    pages, sizes = zip(*made_pages(tmp_path, 40), strict=True)
    index = tmp_path / "index.sqlite3"
    with closing(IndexWriter(index, "me")) as writer:
        writer.write(pages)
        writer.optimize()
        writer.give_back()
    assert index.stat().st_size < 2 * sum(sizes)


def test_room_that_is_not_used_is_given_back(tmp_path):
    """Where most documents are gone, the file shrinks."""
    pages = [page for page, _ in made_pages(tmp_path, 40)]
    index = tmp_path / "index.sqlite3"
    with closing(IndexWriter(index, "me")) as writer:
        writer.write(pages)
    full = index.stat().st_size
    with closing(IndexWriter(index, "me")) as writer:
        writer.finish([page.path for page, _ in pages[4:]], (), {})
        writer.optimize()
        writer.give_back()
    assert index.stat().st_size < full / 3


@pytest.mark.parametrize("table", ["packed_stems", "text_pieces"])
def test_a_damaged_pack_is_told_as_an_index_that_cannot_be_used(tmp_path, table):
    """Whether stems or text cannot be unpacked: a failure that the run can name, and no crash of its worker."""
    index = tmp_path / "index.sqlite3"
    with closing(IndexWriter(index, "me")) as writer:
        writer.write([a_file(tmp_path, "a.md", "some words of a vacuum")])
        writer._database.execute(f"UPDATE {table} SET packed = x'00ff00'")
        writer._database.commit()
    asked = SearchRequest(
        research_id="r-1", operation="o", text="vacuum", corpus="m", provider="corpus", permission=None
    )
    with pytest.raises(Unavailable, match="the index of the corpus cannot be used"):
        search_index(index, "m", "en", asked)
