"""Sessions in an object store that several hosts share."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
import pytest

from contracts.state import SCHEMA_VERSION
from providers.errors import NotConfigured, Unavailable
from providers.storage.content import ObstoreContentStore, open_store
from providers.storage.sessions import SESSIONS, UNREADABLE, RecordSessionStore, SessionUnreadable
from providers.storage.stored_records import FIRST_BYTES, FolderRecords, ObjectRecords, open_records
from tests.fakes.object_store import ObjectStoreServer

PREFIX = "/below"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ObjectStoreServer]:
    """A bucket, named by this process's environment."""
    async with ObjectStoreServer() as made:
        for name, value in made.environment(PREFIX).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def url(server: ObjectStoreServer) -> str:
    """What RESEARCH_CONTENT_URL would hold."""
    return server.environment(PREFIX)["RESEARCH_CONTENT_URL"]


def sessions_of(url: str, home: Path) -> RecordSessionStore:
    """The sessions as a host with this home opens them."""
    return RecordSessionStore(open_records(url, home, SESSIONS))


def state(question: str, **more: object) -> str:
    """The JSON of a state, as far as the store looks at it."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "status": "running", "resolved": {"query": question}, **more})


async def test_hosts_see_each_others_sessions(server: ObjectStoreServer, url: str, tmp_path: Path) -> None:
    """What one host saves another one lists, loads, replaces and deletes, and nothing lies on a host's disk."""
    here, there = sessions_of(url, tmp_path / "here"), sessions_of(url, tmp_path / "there")
    for number in range(8):
        await here.save(f"r-{number}", state(f"Question {number}?\n"), closed=False)
    await there.save("r-3", state("Question 3?\n"), closed=True)
    assert [one.research_id for one in await here.list()] == ["r-3", *(f"r-{n}" for n in (7, 6, 5, 4, 2, 1, 0))]
    assert json.loads(await here.load("r-3") or "")["resolved"]["query"] == "Question 3?\n"
    await there.delete("r-3")
    await there.delete("r-3")
    assert await here.load("r-3") is None
    assert len(await here.list()) == 7
    assert not list(tmp_path.iterdir())
    assert {key.rpartition("/")[0] for key in server.objects} == {"below/sessions"}


async def test_a_list_reads_the_beginnings_only(server: ObjectStoreServer, url: str, tmp_path: Path) -> None:
    """However large sessions are, a list reads a bounded part of each, and of one with an endless question all."""
    store = sessions_of(url, tmp_path)
    await store.save("large", state("Why?", big="x" * 1_000_000), closed=False)
    await store.save("wordy", state("ü" * 10_000), closed=False)
    server.requests.clear()
    listed = {one.research_id: one.query for one in await store.list()}
    assert listed == {"large": "Why?", "wordy": "ü" * 10_000}
    read = [size for method, key, size in server.requests if key.endswith("large.json")]
    assert read == [FIRST_BYTES]


@pytest.mark.parametrize("data", [b"", b"{", b'{"head": {}, "state": {}}', b"\xff\xfe"])
async def test_a_foreign_object_harms_no_session(
    server: ObjectStoreServer, url: str, tmp_path: Path, data: bytes
) -> None:
    """An object that is no session is listed as unreadable and named when it is loaded; keys below are none of ours."""
    store, bucket = sessions_of(url, tmp_path), open_store(url)
    await store.save("r-1", state("Why?"), closed=False)
    for key in ("sessions/r-2.json", "sessions/deeper/r-3.json", "sessions/r-4.txt"):
        await asyncio.to_thread(obstore.put, bucket, key, data)
    assert {one.research_id: one.status for one in await store.list()} == {"r-1": "running", "r-2": UNREADABLE}
    with pytest.raises(SessionUnreadable, match=r"r-2\.json is damaged"):
        await store.load("r-2")


@pytest.mark.parametrize("there_before", [True, False])
async def test_a_late_write_replaces_no_newer_session(
    server: ObjectStoreServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there_before: bool
) -> None:
    """A save that another host's save overtakes fails, to be tried again: the newer checkpoint stays."""
    late, newer = ObjectRecords(open_store(url), SESSIONS), sessions_of(url, tmp_path)
    if there_before:
        await newer.save("r-1", state("First?"), closed=False)
    condition = await asyncio.to_thread(late._condition_write, "r-1")
    monkeypatch.setattr(late, "_condition_write", lambda _: condition)
    await newer.save("r-1", state("Newer?"), closed=False)
    with pytest.raises(Unavailable, match=r"another worker wrote sessions/r-1\.json meanwhile"):
        await RecordSessionStore(late).save("r-1", state("Late?"), closed=False)
    assert [one.query for one in await newer.list()] == ["Newer?"]


async def test_a_store_that_is_down_is_no_empty_one(server: ObjectStoreServer, url: str, tmp_path: Path) -> None:
    """While the store does not answer every question to it fails, and may be asked again."""
    store = sessions_of(url, tmp_path)
    await store.save("r-1", state("Why?"), closed=False)
    server.down = True
    for attempt in (store.list(), store.load("r-1"), store.save("r-1", state("New?"), closed=False), store.delete("r")):
        with pytest.raises(Unavailable):
            await attempt
    server.down = False
    assert [one.query for one in await store.list()] == ["Why?"]


async def test_documents_lie_beside_the_sessions(server: ObjectStoreServer, url: str, tmp_path: Path) -> None:
    """The same address carries documents, and no document is taken for a session."""
    await sessions_of(url, tmp_path).save("r-1", state("Why?"), closed=True)
    content = ObstoreContentStore(url)
    reference = await content.put_text("A page.")
    assert await content.get_text(reference) == "A page."
    assert len(await sessions_of(url, tmp_path).list()) == 1


def test_what_is_on_this_host_stays_in_the_home(tmp_path: Path) -> None:
    """A folder for documents moves no session: they stay where they were, below the home."""
    for address in (None, str(tmp_path / "content"), f"file://{tmp_path}/content"):
        records = open_records(address, tmp_path, SESSIONS)
        assert isinstance(records, FolderRecords)
        assert records.folder == tmp_path / "sessions"


def test_an_address_of_no_store_is_told_as_such() -> None:
    """An address with an unknown scheme names the variable to set."""
    with pytest.raises(NotConfigured, match="RESEARCH_CONTENT_URL"):
        open_store("gopher://somewhere/deep")
