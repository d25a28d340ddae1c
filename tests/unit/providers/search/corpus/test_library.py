"""The corpus: indexing, searching and reading a folder of documents."""

import asyncio
import contextlib
import os
import sqlite3
import sys

import pytest
import pytest_asyncio

from contracts.addresses import digest
from contracts.messages import SearchRequest
from contracts.sentences import Message
from providers.errors import CorpusUnknown, InvalidCall, ProcessStalled, SourceUnreadable, StorageFull
from providers.isolation.pool import SubprocessPool, import_path
from providers.search.corpus.folders import CorpusDefinition, FoundFile, refuse_key_name
from providers.search.corpus.index import IndexWriter, open_index, read_for_index
from providers.search.corpus.library import MAX_OF_SERIES, CorpusLibrary, ingest_file
from tests.fakes.office_documents import one_page_pdf

PAGES = {
    "wal.html": "<title>Write-Ahead Log</title><h1>Write-Ahead Log</h1><p>Every change is first written to the log.</p>"
    "<h2>Checkpoints</h2><p>A checkpoint moves the content of the log into the database file.</p>"
    "<p>The checkpoint runs when the log holds 1000 pages, that is 2<sup>10</sup> or so.</p>",
    "vacuum.html": "<title>Vacuum</title><h1>Vacuum</h1><p>Vacuum rebuilds the database file and needs no log.</p>",
    "guide/notes.md": "# Notes\n\nThe default page size is 4096 bytes.\n\n```\ncheckpoint checkpoint checkpoint\n```\n",
    "guide/index.html": "<h1>Index</h1><ul>" + "<li><a href=x>checkpoint of the log</a></li>" * 20 + "</ul>",
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool():
    async with SubprocessPool(1) as started:
        yield started


def written(root, files):
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "manual", {path: text.encode() for path, text in PAGES.items()})


@pytest.fixture
def library(tmp_path, folder, pool):
    made = CorpusLibrary(tmp_path / "home", pool)
    made.add("manual", folder)
    return made


async def ask(library, text, **options):
    request = SearchRequest(research_id="r-1", operation="search/1", provider="corpus", corpus="manual", text=text)
    return await library.search(request.model_copy(update=options))


async def test_indexes_a_folder_and_finds_the_section_that_answers(library):
    """The best section comes first, with exact offsets into the stored text (S0-055, X-16)."""
    snapshot = await library.refresh("manual")
    assert (snapshot.files, snapshot.skipped, snapshot.authority) == (4, 0, "high")
    response = await ask(library, "When does the checkpoint run?")
    hit = response.hits[0]
    assert (hit.url, hit.title, hit.rank) == ("corpus:manual/wal.html", "Write-Ahead Log", 1)
    document = await library.read(hit.url)
    section = hit.sections[0]
    assert section.heading == "Write-Ahead Log › Checkpoints"
    assert document.text[section.start : section.end].startswith("## Checkpoints\n\nA checkpoint moves")
    assert hit.content_hash == digest(document.text)
    assert "2^10" in document.text
    assert document.raw == PAGES["wal.html"].encode()


async def test_a_corpus_says_what_is_in_it(library, folder):
    """Titles, folders and languages come with the snapshot, and follow the documents; an unchanged index has them too."""
    overview = (await library.refresh("manual")).overview
    assert sorted(overview.titles) == ["Index", "Notes", "Vacuum", "Write-Ahead Log"]
    assert [(one.path, one.files) for one in overview.folders] == [("guide", 2)]
    assert overview.languages == ["en"]
    (folder / "guide" / "locks.md").write_text("# Locks\n\nA lock is held until the end.\n")
    assert "Locks" in (await library.refresh("manual")).overview.titles
    assert (await library.refresh("manual")).overview == (await library.describe("manual")).overview


async def test_what_there_is_to_read_is_counted_before_it_is_read(library, folder):
    """By names and sizes of the files before the first indexing, by the documents after it, also where none is registered."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".md", ".html")]
    size = sum(path.stat().st_size for path in files)
    for counted in (await library.count("manual"), await library.count("new", folder)):
        assert not counted.indexed_at
        assert counted.files >= len(files)
        assert counted.size_bytes >= size
    snapshot = await library.refresh("manual")
    assert await library.count("manual") == snapshot
    assert snapshot.size_bytes == size
    with pytest.raises(CorpusUnknown):
        await library.count("x")


async def test_titles_follow_the_question(library):
    """The document with the rarest words of the question comes first, with its path; others without any are left out."""
    await library.refresh("manual")
    [first, *others] = await library.closest_titles("manual", "Does a vacuum rebuild the database file?", 2)
    assert first == "Vacuum [vacuum.html]"
    assert others == ["Write-Ahead Log [wal.html]"]
    assert len(await library.closest_titles("manual", "vacuum checkpoint notes index", 1)) == 1


async def test_titles_that_differ_in_numbers_leave_room_for_others(library, folder):
    """Of nine releases that all name the subject the best three are listed, and the page after them."""
    for number in range(1, 10):
        text = f"# E.{number}. Release 15.{number}\n\nThe checkpoint of the log, the checkpoint, and the log.\n"
        (folder / f"release-{number}.md").write_text(text)
    (folder / "tuning.md").write_text("# Tuning\n\nA checkpoint is one of many subjects here, all of them at length.\n")
    await library.refresh("manual")
    titles = await library.closest_titles("manual", "checkpoint of the log", 8)
    assert sum("Release 15." in title for title in titles) == MAX_OF_SERIES
    assert "Tuning [tuning.md]" in titles


async def test_pages_of_links_come_last(library, folder):
    """A cross-reference has every word of every question: it is found after all pages with content, and not named."""
    lines = (f"- checkpoint log number {number} of all - wal.html#part{number}" for number in range(60))
    (folder / "crossref.md").write_text("# Crossreference\n\nVacuum, log and checkpoint.\n\n" + "\n".join(lines))
    (folder / "list.md").write_text("# List\n\n- the log - wal.html#log\n- vacuum - vacuum.html\n")
    await library.refresh("manual")
    hits = (await ask(library, "checkpoint of the log")).hits
    assert hits[-1].title == "Crossreference"
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    titles = await library.closest_titles("manual", "checkpoint of the log", 9)
    assert "List [list.md]" in titles
    assert not any(title.startswith("Crossreference") for title in titles)


NAMED = {
    "man/git-prune.txt": "# git-prune(1)\n\nRemoves objects that nothing reaches.\n",
    "man/git-gc.txt": "# git-gc(1)\n\nObjects to prune: git prune removes what expired. Objects that expire are unreachable.\n",
    "sql/sql-droptable.md": "# DROP TABLE\n\nRemoves a table.\n",
    "sql/altertable.md": "# F.7. ALTER TABLE\n\nChanges columns.\n",
    "sql/columns.md": "# Columns\n\nA table has columns: alter a column, or drop it.\n",
    "withoutrowid.md": "# An optimization\n\nA rowid takes room in tables.\n",
    "rows.md": "# Rows\n\nIn tables, a rowid is the number of a row. Tables give each row a rowid.\n",
    "wait.md": "# Waiting\n\nThe sqlite3_busy_timeout is a number of milliseconds.\n",
    "busy_timeout.md": "# Set how long to wait\n\nCall sqlite3_busy_timeout before any other function, and call it once for each connection.\n",
    "rules.md": "# 港口规则\n\n船舶停靠前应当登记。\n",
    "fees.md": "# 费用\n\n港口规则规定费用。港口规则由港口发布，费用见港口规则。\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("git prune: expire unreachable objects", "man/git-prune.txt"),
        ("git-prune, expire unreachable objects", "man/git-prune.txt"),
        ("ALTER TABLE, drop a column", "sql/altertable.md"),
        ("WITHOUT ROWID tables", "withoutrowid.md"),
        ("sqlite3_busy_timeout", "busy_timeout.md"),
        ("港口规则 费用", "rules.md"),
    ],
)
async def test_a_page_that_the_query_names_comes_first(library, folder, query, page):
    """By its whole title without numbers of sections, or its file name, before pages that repeat the query's words."""
    written(folder, {path: text.encode() for path, text in NAMED.items()})
    await library.refresh("manual")
    assert (await ask(library, query)).hits[0].url == f"corpus:manual/{page}"


async def test_a_snippet_is_about_the_query(library, folder):
    """It is the sentence with the rarest words of the question, not the beginning of the section; of a long sentence, the
    part around them.
    """
    filler = "Nothing of interest stands in this place. " * 8
    long = "and so on " * 40
    (folder / "wal.html").write_text(
        f"<h1>Introduction</h1><p>{filler}The archiver waits sixty seconds. {filler}</p>"
        f"<h1>Other</h1><p>{long} until the hypervisor awakes, {long}.</p>"
    )
    await library.refresh("manual")
    assert (
        (await ask(library, "How long does the archiver wait?")).hits[0].snippet.startswith("The archiver waits sixty")
    )
    cut = (await ask(library, "hypervisor")).hits[0].snippet
    assert cut.startswith("…")
    assert "until the hypervisor awakes" in cut
    assert len(cut) <= 200


async def test_code_is_searched_and_words_are_counted_by_document(library):
    """A listing is found like any other block; a word counts once for each document, and an absent one is spelled."""
    await library.refresh("manual")
    response = await ask(library, "checkpoint")
    assert {hit.url for hit in response.hits} >= {"corpus:manual/wal.html", "corpus:manual/guide/notes.md"}
    assert response.term_documents == {"checkpoint": 3}
    assert response.documents_searched == 4
    absent = await ask(library, "CockroachDB sharding")
    assert (absent.hits, absent.term_documents) == ([], {"cockroachdb": 0, "shard": 0})
    assert (await ask(library, "Vaccum of the databse")).spellings == {"vaccum": "Vacuum", "databs": "database"}


async def test_a_word_that_all_of_few_documents_have_counts(library, folder):
    """In a folder of a few notes on one subject the words of the subject find them, beside one that no note has."""
    (folder / "wal.html").write_text("<p>Backups of the database are checked by a script.</p>")
    (folder / "vacuum.html").write_text("<p>The database is backed up at two. Backups are kept for a year.</p>")
    for path in ("guide/notes.md", "guide/index.html"):
        (folder / path).unlink()
    await library.refresh("manual")
    assert len((await ask(library, "How are backups of the database made?")).hits) == 2


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("会费在三月支付。水闸每天晚上十点关闭。", "水闸几点关闭？"),
        ("水門は毎晩十時に閉まる。", "水門は何時に閉まりますか。"),
        ("수문은 매일 밤 열 시에 닫힌다.", "수문이 몇 시에 닫힙니까?"),
        ("ประตูน้ำปิดทุกคืนเวลาสี่ทุ่ม", "ประตูน้ำปิดกี่โมง"),
    ],
)
async def test_writing_without_spaces_is_found(library, folder, text, question):
    """A question and the index are cut into the same pairs of letters, also beside documents in other writing."""
    (folder / "harbour.txt").write_text(f"{text}\n", "utf-8")
    (folder / "other.txt").write_text("会員 회비 ค่าสมาชิก 港口\n", "utf-8")
    await library.refresh("manual")
    response = await ask(library, question)
    assert response.hits[0].url == "corpus:manual/harbour.txt"
    assert response.spellings == {}


async def test_every_line_and_every_form_of_a_word_counts(library, folder):
    """One line of a long list leads to its chunk, a heading without text is indexed, a word inside another is counted."""
    lines = [f"Berth {number}: {number * 7} metres of quay for rent" for number in range(200)]
    (folder / "berths.txt").write_text("\n".join(lines))
    (folder / "slides.md").write_text("# Dredging in autumn\n\n# Deposit1200 euro\n")
    await library.refresh("manual")
    hit = (await ask(library, "Berth 173")).hits[0]
    assert hit.snippet.startswith("Berth 1")
    assert (await ask(library, "dredging")).hits[0].url == "corpus:manual/slides.md"
    counts = (await ask(library, "deposit of zirconium")).term_documents
    assert counts == {"deposit": 1, "zirconium": 0}


HOSTILE_QUERIES = (
    '"', '""" OR', "NEAR(", "NEAR(a b, 2)", "*", "log*", "title:log", "a AND", "-log", "^log", "", "   ", "😀",
    "the of and", "log' OR 1=1 --", "\u202elog", "\x00log", "(((", "{a b} : c", "log " * 2_000, "\ud800log",
)  # fmt: skip


async def test_any_text_is_a_valid_query(library):
    """No input becomes search syntax, or an error."""
    for text in HOSTILE_QUERIES:
        response = await ask(library, text)
        assert response.provider == "corpus"
    assert (await ask(library, "")).hits == []


async def test_only_changed_files_are_read_again(library, folder, tmp_path, pool):
    """A second refresh reads no file; changed, new and removed ones are noticed, and leave no trace of what was."""
    seen = []
    before = await library.refresh("manual")
    assert await library.refresh("manual", lambda *numbers: seen.append(numbers)) == before
    assert (seen, before.files) == ([(0, 0)], 4)
    (folder / "vacuum.html").write_text("<p>Vacuum now mentions zirconium.</p>")
    (folder / "new.md").write_text("zirconium too\n")
    (folder / "guide/notes.md").unlink()
    after = await library.refresh("manual", lambda *numbers: seen.append(numbers))
    assert seen[-1] == (2, 2)
    assert (after.files, after.digest != before.digest) == (4, True)
    response = await ask(library, "zirconium")
    assert sorted(hit.url for hit in response.hits) == ["corpus:manual/new.md", "corpus:manual/vacuum.html"]
    fresh = CorpusLibrary(tmp_path / "fresh", pool)
    fresh.add("manual", folder)
    for text in ("default page size", "rebuilds the database file", "checkpoint log", "zirconium"):
        assert await ask(library, text) == await ask(fresh, text), text
    (folder / "vacuum.html").write_text("<p>Other words.</p>")
    assert (await library.read("corpus:manual/vacuum.html")).text == "Other words."


async def test_the_digest_depends_on_paths_and_contents_alone(tmp_path, folder, pool, library):
    """The same folder gives the same digest in another home, and after a touch (invariant 13)."""
    first = await library.refresh("manual")
    os.utime(folder / "wal.html", (1, 1))
    assert (await library.refresh("manual")).digest == first.digest
    other = CorpusLibrary(tmp_path / "other", pool)
    other.add("manual", folder)
    assert (await other.refresh("manual")).digest == first.digest


async def test_files_that_cannot_be_used_are_skipped_with_a_reason(library, folder, tmp_path):
    """No file of a folder can hang or break indexing; each odd one is named with its kind, unless it is no document."""
    binary = bytes(range(256)) * 8
    written(folder, dict.fromkeys(("blob.md", "photo.heic", "table.parquet", "core", "picture.png"), binary) | {
        "empty.txt": b"", "style.css": b"p { color: red }", "scan.pdf": one_page_pdf(""), "deep.html": b"<div>" * 50_000,
        ".hidden.md": b"never looked at", "x.pdf": b"<!DOCTYPE html><html><p>A page by another name.</p>",
        "half.ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["rhu',
    })  # fmt: skip
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(2 * 1024**3)
    os.mkfifo(folder / "pipe.txt")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "up").symlink_to(folder)
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "inside.md").symlink_to("guide/notes.md")
    (folder / os.fsdecode(b"b\xe4d")).mkdir()
    snapshot = await library.refresh("manual")
    kinds = {skipped.path: skipped.kind for skipped in await library.skipped("manual")}
    assert kinds == {
        "empty.txt": "empty",
        "blob.md": "binary",
        "scan.pdf": "no_text",
        "deep.html": "too_large",
        "huge.txt": "too_large",
        "half.ipynb": "malformed",
        "pipe.txt": "not_a_file",
        **dict.fromkeys(("loop.md", "up", "out.md", "inside.md"), "not_a_file"),
    }
    assert (snapshot.files, snapshot.skipped) == (5, len(kinds))
    assert (await library.read("corpus:manual/x.pdf")).media_type == "text/html"


async def test_a_file_that_kills_its_reader_costs_only_itself(tmp_path, folder):
    """A PDF that never ends is skipped as timeout; its neighbours of the same batch are indexed."""
    operators = b"BT /F1 12 Tf " + b"(a)Tj " * 2_000_000 + b"ET"
    (folder / "bomb.pdf").write_bytes(one_page_pdf("", stream=operators))
    # By the time of the processor: on a busy machine the neighbours take long, too.
    async with SubprocessPool(1, cpu_seconds=1, wall_factor=120) as pool:
        definition = CorpusDefinition(name="manual", path=folder, language="en")
        library = CorpusLibrary(tmp_path / "home", pool, [definition])
        snapshot = await library.refresh("manual")
        assert snapshot.files == 4
        assert [(one.path, one.kind) for one in await library.skipped("manual")] == [("bomb.pdf", "timeout")]


async def test_names_with_odd_characters_are_found_and_read(library, folder):
    """Spaces, signs and undecodable bytes in names survive the way through an address."""
    names = [b"a b#c?100%.md", "größe ☃.md".encode(), b"bad\xff.md"]
    written(folder, dict.fromkeys(map(os.fsdecode, names), b"all about rhubarb\n"))
    response = await ask(library, "rhubarb")
    assert sorted(hit.title for hit in response.hits) == ["a b#c?100%", "bad\ufffd", "größe ☃"]
    for hit in response.hits:
        assert "rhubarb" in (await library.read(hit.url)).text


OUTSIDE = (
    "../secret.md", "guide/../../secret.md", "%2e%2e/secret.md", "..%2fsecret.md", "/etc/passwd", "%2Fetc/passwd",
    "./wal.html", "guide//notes.md", "wal.html%00.md", ".hidden.md", "out.md", "guide", "nothing.md", "",
)  # fmt: skip


async def test_addresses_stay_within_the_folder(library, folder, tmp_path):
    """No spelling of a path reaches a file outside the corpus."""
    (tmp_path / "secret.md").write_text("secret")
    (folder / ".hidden.md").write_text("secret")
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    for path in OUTSIDE:
        with pytest.raises(SourceUnreadable) as caught:
            await library.read(f"corpus:manual/{path}")
        assert caught.value.kind in {"outside", "not_found", "not_a_file"}, path


async def test_include_and_exclude_patterns(tmp_path, folder, pool):
    """Patterns choose the files of a corpus, and no other file can be read from it."""
    definition = CorpusDefinition(
        name="manual", path=folder, include=("*.html",), exclude=("guide/*",), authority="low"
    )
    library = CorpusLibrary(tmp_path / "home", pool, [definition])
    snapshot = await library.refresh("manual")
    assert (snapshot.files, snapshot.authority) == (2, "low")
    with pytest.raises(SourceUnreadable):
        await library.read("corpus:manual/guide/notes.md")


async def test_other_processes_see_what_a_command_registered(tmp_path, folder, pool, library):
    """A library that was made before sees a corpus that another one adds or removes."""
    other = CorpusLibrary(tmp_path / "home", pool)
    assert other.names() == ["manual"]
    library.add("second", folder)
    assert other.names() == ["manual", "second"]
    assert (await other.describe("second")).files == 0
    await other.refresh("second")
    await library.remove("second")
    with pytest.raises(CorpusUnknown):
        await other.describe("second")


async def test_unknown_corpora_and_lost_folders(library, folder, tmp_path, pool):
    """An undefined name and a folder that is gone have errors of their own."""
    for call in (library.refresh("x"), library.describe("x"), library.skipped("x"), library.read("corpus:x/y")):
        with pytest.raises(CorpusUnknown):
            await call
    with pytest.raises(CorpusUnknown):
        library.add("x", tmp_path / "nowhere")
    folder.rename(tmp_path / "moved")
    for name in ("manual", "../manual", "..", ""):
        with pytest.raises(CorpusUnknown):
            await library.refresh(name)
    configured = CorpusLibrary(tmp_path / "home", pool, [CorpusDefinition(name="c", path=tmp_path)])
    with pytest.raises(InvalidCall):
        configured.add("c", tmp_path / "moved")


async def test_two_refreshes_at_once_do_the_work_once(library, tmp_path, pool):
    """The second one waits for the first and finds no file left to read."""
    other = CorpusLibrary(tmp_path / "home", pool)
    seen = []
    refreshes = (each.refresh("manual", lambda *numbers: seen.append(numbers)) for each in (library, other))
    first, second = await asyncio.gather(*refreshes)
    assert first == second
    assert sorted(total for done, total in seen if done == total) == [0, 4]


def damage(index):
    index.write_bytes(b"no database at all" * 1_000)


def damage_in_part(index):
    index.write_bytes(index.read_bytes()[:8_192] + b"x" * 40_000)


def make_old(index):
    with contextlib.closing(sqlite3.connect(index)) as database:
        database.executescript(
            "DROP TABLE chunks; ALTER TABLE files DROP COLUMN document;"
            "UPDATE meta SET value = '5 ' || substr(value, 3) WHERE key = 'identity'"
        )


def drop_a_table(index):
    with contextlib.closing(sqlite3.connect(index)) as database:
        database.execute("DROP TABLE chunks")


async def test_a_wrong_query_is_no_damage(library, tmp_path):
    """An index is not thrown away for a mistake of ours, which would be the same over the next one."""
    await library.refresh("manual")
    index = tmp_path / "home/indexes/manual.sqlite3"
    with pytest.raises(sqlite3.OperationalError, match="no such column"), open_index(index) as reader:
        reader._database.execute("SELECT absent FROM files")
    with open_index(index) as reader:
        assert reader.documents() > 0


async def test_a_full_disk_leaves_the_index_as_it_was(tmp_path):
    """Running out of room undoes the batch: the earlier state can still be used."""

    def read(name, words):
        (tmp_path / name).write_text(words)
        return FoundFile(name, name, 1, 1), read_for_index((tmp_path / name).read_bytes(), name, "en")

    with contextlib.closing(IndexWriter(tmp_path / "index.sqlite3", "me")) as writer:
        writer.write([read("small.md", "some words")])
        (pages,) = writer._database.execute("PRAGMA page_count").fetchone()
        writer._database.execute(f"PRAGMA max_page_count = {pages + 3}")
        large = " ".join(f"word{number}" for number in range(20_000))
        with pytest.raises(StorageFull):
            writer.write([read("other.md", "more words"), read("large.md", large)])
        assert list(writer.file_states()) == ["small.md"]


async def test_several_batches_are_read_while_those_before_are_written(library, folder):
    """Every file of every batch is in the index, and progress counts up to all of them."""
    files = {f"notes/{number}.md": f"Note {number} names the word w{number}x.".encode() for number in range(70)}
    written(folder, files)
    steps = []
    snapshot = await library.refresh("manual", lambda done, total: steps.append((done, total)))
    assert snapshot.files == len(PAGES) + 70
    assert steps == [(0, 74), (32, 74), (64, 74), (74, 74)]
    for number in (0, 31, 32, 63, 64, 69):
        assert [hit.url for hit in (await ask(library, f"w{number}x")).hits] == [f"corpus:manual/notes/{number}.md"]


@pytest.mark.parametrize("spoil", [damage, damage_in_part, make_old, drop_a_table])
async def test_a_damaged_index_and_one_of_another_version_are_replaced(library, tmp_path, spoil):
    """Searching, reading and indexing do without it, and it is never reported as an empty corpus."""
    before = await library.refresh("manual")
    answer = await ask(library, "checkpoint")
    index = tmp_path / "home/indexes/manual.sqlite3"
    spoil(index)
    assert "checkpoint" in (await library.read("corpus:manual/wal.html")).text
    assert await ask(library, "checkpoint") == answer
    spoil(index)
    assert (await library.refresh("manual")).digest == before.digest


async def test_what_readers_say_of_files_stays_data(library, folder, pool):
    """From the child that reads a file through the index to a report, so that a report can say it in its language."""
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    footer = "<footer>All of this may be copied by anybody.</footer>"
    (folder / "page.html").write_text(f"<p>Rows are dead when nobody sees them.</p>{footer}")
    await library.refresh("manual")
    (skipped,) = await library.skipped("manual")
    ((path, warning),) = await library.warnings("manual")
    read = await library.read("corpus:manual/page.html")
    assert path == "page.html"
    assert all(isinstance(text, Message) for text in (skipped.reason, warning, *read.warnings))
    assert (await ingest_file(pool, folder / "page.html")).warnings[0].data() == warning.data()
    assert (skipped.reason.id, warning.id, read.warnings) == ("skip_pdf", "words_read", [warning])


INDEXING = """
import asyncio, sys
from pathlib import Path
from providers.isolation.pool import SubprocessPool, import_path
from providers.search.corpus.library import CorpusLibrary
async def main():
    async with SubprocessPool(1) as pool:
        await CorpusLibrary(Path(sys.argv[1]), pool).refresh("manual")
asyncio.run(main())
"""


async def test_an_index_whose_process_was_killed_is_completed(library, folder, tmp_path, pool):
    """After SIGKILL between two batches the next refresh reads the rest, and finds what an undisturbed index finds."""
    for number in range(200):
        (folder / f"page-{number}.md").write_text(
            f"# Page {number}\n\n" + f"Zirconium melts at {number} degrees. " * 99
        )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", INDEXING, str(tmp_path / "home"), env={"PYTHONPATH": import_path()}
    )
    async with asyncio.timeout(60):
        while not indexed(tmp_path / "home/indexes/manual.sqlite3"):
            await asyncio.sleep(0.01)
    process.kill()
    await process.wait()
    assert 0 < indexed(tmp_path / "home/indexes/manual.sqlite3") < 204
    snapshot = await library.refresh("manual")
    fresh = CorpusLibrary(tmp_path / "fresh", pool)
    fresh.add("manual", folder)
    assert snapshot.files == 204
    assert snapshot.digest == (await fresh.refresh("manual")).digest
    assert await ask(library, "zirconium degrees") == await ask(fresh, "zirconium degrees")


def indexed(index):
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(index)) as database:
        return database.execute("SELECT count(*) FROM files").fetchone()[0]
    return 0


# --- keys between the documents ----------------------------------------------------------------------------------------
PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nYSBwbGFudGVkIHNlY3JldA==\n-----END OPENSSH PRIVATE KEY-----\n"
ACCOUNT = '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\nYSBwbGFudGVk"}'
CERTIFICATES = "# Certificates\n\nA key file begins with `-----BEGIN PRIVATE KEY-----`; keep it for yourself.\n"


NAMED_LIKE_KEYS = ("id_ed25519", "keys/Server.PEM", ".env", ".env.local", ".ssh/config", "credentials")
PROJECT = dict.fromkeys(NAMED_LIKE_KEYS, b"planted") | {
    "certificates.md": CERTIFICATES.encode(),
    ".hidden.md": b"hidden, and no key",
    "notes/backup.txt": b"\n" + PEM.encode(),
    "notes/wide.txt": PEM.encode("utf-16"),
    "notes/account.json": ACCOUNT.encode(),
}
SECRET = {*PROJECT, ".ssh"} - {"certificates.md", ".hidden.md", ".ssh/config"}


async def test_keys_are_skipped_and_never_read(tmp_path, pool):
    """By name or by content, hidden or linked, by the index or by address; a page about keys is a document until it is one."""
    project = written(tmp_path / "project", PROJECT)
    (project / "notes" / "linked.md").symlink_to("../credentials")
    (project / "notes" / "out").symlink_to("/etc")
    library = CorpusLibrary(tmp_path / "home", pool)
    library.add("project", project)
    snapshot = await library.refresh("project")
    skipped = {one.path: one.kind for one in await library.skipped("project")}
    assert {path for path, kind in skipped.items() if kind == "secret"} == SECRET
    assert skipped["notes/out"] == skipped["notes/linked.md"] == "not_a_file"
    assert snapshot.files == 1
    assert "keep it for yourself" in (await library.read("corpus:project/certificates.md")).text
    for path in sorted(SECRET):
        with pytest.raises(SourceUnreadable) as caught:
            await library.read(f"corpus:project/{path}")
        assert caught.value.kind in {"secret", "not_found"}, path
    for name in ("keys.md", "environment.md", "pem.html", "id_rsa.md", "monkey.txt"):
        refuse_key_name(name)
    (project / "certificates.md").write_text(PEM)
    os.utime(project / "certificates.md", (1, 1))
    assert (await library.refresh("project")).files == 0


class StalledPool(SubprocessPool):
    """Children that get no processor time."""

    async def call(self, function, *arguments, returns, seconds=None):
        raise ProcessStalled("paused")


async def test_a_file_whose_reader_stalled_is_read_at_the_next_refresh(tmp_path, folder, pool):
    """A paused machine leaves no file out for good, although the file does not change."""
    definition = CorpusDefinition(name="manual", path=folder, language="en")
    stalled = CorpusLibrary(tmp_path / "home", StalledPool(1), [definition])
    assert (await stalled.refresh("manual")).files == 0
    assert {one.kind for one in await stalled.skipped("manual")} == {"timeout"}
    again = CorpusLibrary(tmp_path / "home", pool, [definition])
    assert (await again.refresh("manual")).files == 4
    assert not await again.skipped("manual")
