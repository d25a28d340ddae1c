"""What another version of the product has stored: a made-up form of the number before, and one of the number after."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from contracts.evidence import DocumentRef
from contracts.notebooks import ENTRY_TYPE, HitsEntry
from contracts.roles import PLANNER, PlannerAnswer
from contracts.vocabulary import EngineKind
from providers.errors import ContentCorrupt, CorpusUnknown, NewerSchema
from providers.interfaces import EngineAnswer
from providers.models.answers import answer_from_json, answer_to_json
from providers.schemas import ANSWER, CACHED, DAY, INDEX, NOTEBOOK, SESSION
from providers.search.corpus.index import FORMAT, IndexOutdated, IndexWriter, open_index
from providers.shared.cache import SEARCH, Cache
from providers.shared.shared_value import SharedValue
from providers.shared.stores.sqlite_store import SqliteSharedStore
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import Records
from tests.fakes.shared_stores import MemorySharedStore
from tests.unit.activities.scripted import MemoryStore


def renamed(form: dict[str, Any]) -> dict[str, Any]:
    """Bring a made-up older form up: a field had another name."""
    return {name.removeprefix("old_"): value for name, value in form.items()}


def session_after(form: dict[str, Any]) -> dict[str, Any]:
    return {**renamed(form), "schema_version": SESSION.number + 1}


async def test_a_session_of_the_version_before_is_read_and_written_as_one_of_today(tmp_path: Path) -> None:
    """Also as it was written, for a run that keeps to the version before; what is saved again has the number of today."""
    before = {"schema_version": SESSION.number, "old_status": "running"}
    records = Records(tmp_path, SESSIONS)
    await RecordSessionStore(records).save("r-1", json.dumps(before), closed=False)
    newer = RecordSessionStore(records, replace(SESSION, number=SESSION.number + 1, from_before=session_after))
    read = await newer.load("r-1") or ""
    assert json.loads(read) == {"schema_version": SESSION.number + 1, "status": "running"}
    assert json.loads(await newer.load("r-1", as_written=True) or "") == before
    await newer.save("r-1", read, closed=False)
    assert await newer.load("r-1", as_written=True) == read
    with pytest.raises(NewerSchema, match=r"the session r-1\.json has the schema 4, .* reads 3: use the newer version"):
        await RecordSessionStore(records).load("r-1")
    two_later = replace(SESSION, number=SESSION.number + 3, from_before=session_after)
    with pytest.raises(ContentCorrupt, match=r"has the schema 4, .* reads 5 and 6: use a version that reads it"):
        await RecordSessionStore(records, two_later).load("r-1")


async def test_an_entry_of_a_notebook_has_a_number(tmp_path: Path) -> None:
    """One without, as of a released home, has the first; one of before is brought up, and one of later is refused."""
    del tmp_path
    store = MemoryStore()
    now = Notebooks(store)
    later = Notebooks(store, replace(NOTEBOOK, number=2, from_before=renamed))
    entry = HitsEntry(date="today")
    unnumbered = (await store.put_text('{"old_date": "today"}', ENTRY_TYPE)).hash
    numbered = await now.write(entry)
    assert (await store.get_text(DocumentRef(hash=numbered))).startswith('{"schema":1,"date"')
    assert await later.read(unnumbered, HitsEntry) == entry
    assert await later.read(numbered, HitsEntry) == entry
    assert await Notebooks(store).read(numbered, HitsEntry) == entry
    assert await Notebooks(store).read(await now.write(HitsEntry()), HitsEntry) == HitsEntry()
    newest = await later.write(entry)
    assert await Notebooks(store, later._schema).read(newest, HitsEntry) == entry
    with pytest.raises(
        NewerSchema, match=r"the notebook's entry sha256:[0-9a-f]{12} has the schema 2, .* reads 1: use"
    ):
        await now.read(newest, HitsEntry)


def test_a_paid_answer_has_a_number() -> None:
    """An answer of before is not paid again, and one of a newer version waits for it."""
    answer = EngineAnswer(PlannerAnswer(sub_queries=[]), EngineKind.MODEL, model="m", items=[])
    stored = answer_to_json(answer)
    assert stored.startswith('{"schema":1,')
    older = json.dumps({f"old_{name}": value for name, value in json.loads(stored).items() if name != "schema"})
    later = replace(ANSWER, number=2, from_before=renamed)
    assert answer_from_json(older, PLANNER, later) == answer
    assert answer_from_json(stored, PLANNER, later) == answer
    with pytest.raises(NewerSchema, match="a paid answer of the journal has the schema 2"):
        answer_from_json(later.write("{}"), PLANNER)


class Count(BaseModel):
    n: int = 0


class Words:
    """A codec of JSON objects."""

    async def encode(self, value: dict[str, str]) -> str:
        return json.dumps(value)

    async def decode(self, text: str) -> dict[str, str]:
        return {str(name): str(value) for name, value in json.loads(text).items()}


async def test_a_cached_value_has_a_number(tmp_path: Path) -> None:
    """One of before is a hit; one of a newer version is a miss, as nobody has to wait for what can be asked again."""
    store = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False)
    later = Cache(store, schema=replace(CACHED, number=2, from_before=renamed))

    async def make() -> dict[str, str]:
        return {"word": "made"}

    async def ask(cache: Cache, request: str) -> tuple[dict[str, str], bool]:
        cached = await cache.get_or_make(SEARCH, "t", request, make, Words())
        return cached.value, cached.hit

    try:
        assert await ask(Cache(store), "a") == ({"word": "made"}, False)
        assert await ask(Cache(store), "a") == ({"word": "made"}, True)
        assert await ask(later, "a") == ({"word": "made"}, True)
        key = (await _only_key(tmp_path)).decode()
        current = (await store.get(key)).value
        assert current is not None
        assert current.startswith(b"1\n{")
        assert await store.swap(key, current, b'{"old_word": "stored"}', 60.0)
        assert await ask(later, "a") == ({"word": "stored"}, True)
        assert await ask(later, "b") == ({"word": "made"}, False)
        assert await ask(Cache(store), "b") == ({"word": "made"}, False)
    finally:
        await store.close()


async def test_a_shared_value_has_a_number() -> None:
    """One without has the first; one of before is changed as one of today, and one of a newer version waits for it."""
    store = MemorySharedStore()
    counts = SharedValue(store, Count, DAY, None)
    later = SharedValue(store, Count, replace(DAY, number=2, from_before=renamed), None)

    async def add(values: SharedValue[Count]) -> int:
        return await values.update("n", lambda count, _: (Count(n=count.n + 1), count.n + 1))

    await store.swap("n", None, b'{"n":1}')
    assert await add(counts) == 2
    assert (await store.get("n")).value == b'{"schema":1,"n":2}'
    await store.swap("n", b'{"schema":1,"n":2}', b'{"schema":1,"old_n":2}')
    assert await add(later) == 3
    assert (await store.get("n")).value == b'{"schema":2,"n":3}'
    with pytest.raises(NewerSchema, match="the money of the day n has the schema 2"):
        await add(counts)


async def _only_key(folder: Path) -> bytes:
    connection = sqlite3.connect(folder / "shared.sqlite3")
    try:
        [(key,)] = connection.execute("SELECT key FROM shared").fetchall()
    finally:
        connection.close()
    return bytes(key)


def without_titles(database: sqlite3.Connection) -> sqlite3.Connection:
    """Bring a made-up older index up, in one statement."""
    database.execute("UPDATE meta SET value = 'brought up' WHERE key = 'digest'")
    return database


def test_an_index_of_the_version_before_is_brought_up_by_its_writer(tmp_path: Path) -> None:
    """No file is read again; a newer one is left alone and named, and an older one has to be made again."""
    path = tmp_path / "manual.sqlite3"
    writer = IndexWriter(path, "folder")
    writer.set_values(digest="d")
    writer.close()
    later = replace(INDEX, number=INDEX.number + 1, from_before=without_titles)
    with pytest.raises(IndexOutdated), open_index(path, later):
        pass
    IndexWriter(path, "folder", later).close()
    with open_index(path, later) as index:
        assert index.value("digest") == "brought up"
    refusal = rf"the index manual\.sqlite3 has the format 16\.\d, .* reads {FORMAT} \(to go back for good, delete that"
    with pytest.raises(NewerSchema, match=refusal), open_index(path):
        pass
    with pytest.raises(NewerSchema, match=refusal):
        IndexWriter(path, "folder")
    with pytest.raises(CorpusUnknown, match="another version"), open_index(path, replace(INDEX, number=18)):
        pass
