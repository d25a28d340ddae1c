"""Documents and sessions: in the home of one host, and in an object store that hosts share."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import obstore
import pytest

from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.names import SCHEMA_VERSION
from contracts.state import ResearchState, WorkState
from contracts.vocabulary import RunStatus
from providers.errors import ContentCorrupt, ContentMissing, InvalidCall, NewerSchema, StorageFull, Unavailable
from providers.storage import content
from providers.storage.content import ObstoreContentStore, name_of
from providers.storage.sessions import SESSIONS, UNREADABLE, RecordSessionStore
from providers.storage.stored_records import Records, open_records
from tests.fakes.object_store import ObjectStoreServer

Opened = Callable[[], RecordSessionStore]


@pytest.fixture
async def bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ObjectStoreServer]:
    async with ObjectStoreServer() as server:
        for name, value in server.environment("/below").items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def url(bucket: ObjectStoreServer) -> str:
    return bucket.environment("/below")["RESEARCH_CONTENT_URL"]


@pytest.fixture(params=["folder", "bucket"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    url = request.getfixturevalue("url") if request.param == "bucket" else None
    return lambda: RecordSessionStore(open_records(url, tmp_path, SESSIONS))


def state(question: str = "Why?", status: str = "running", **more: object) -> str:
    resolved = {"query": question}
    return json.dumps({"schema_version": SCHEMA_VERSION, "status": status, "resolved": resolved, **more})


async def test_processes_share_their_sessions(opened: Opened) -> None:
    """A session that one process saves another one lists, newest first, loads, replaces and deletes."""
    here, there = opened(), opened()
    assert await here.list() == []
    for number in range(8):
        await here.save(f"r-{number}", state(f"Question {number}?\n", big="x" * 100_000), closed=False)
    saved = ResearchState(work=WorkState(status=RunStatus.COMPLETED, limitations=["ü 字 \u2028"]))
    await there.save("r-3", saved.model_dump_json(), closed=True)
    assert ResearchState.model_validate_json(await here.load("r-3") or "") == saved
    listed = await here.list()
    assert [one.research_id for one in listed] == ["r-3", *(f"r-{n}" for n in (7, 6, 5, 4, 2, 1, 0))]
    assert [(one.query, one.status, one.closed) for one in listed[:2]] == [
        ("", "completed", True), ("Question 7?\n", "running", False),
    ]  # fmt: skip
    for _ in range(2):
        await there.delete("r-3")
    assert await here.load("r-3") is None
    assert len(await here.list()) == 7


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"head": 1}', b"\xff\xfe", pytest.param(b'{"head": ' + b"[" * 100_000, id="nested")]
)
async def test_a_damaged_session_is_named_and_harms_no_other(opened: Opened, data: bytes) -> None:
    """It is listed as unreadable, and loading it names its file; a record under a foreign name is damaged, too."""
    store = opened()
    await store.save("r-1", state(), closed=False)
    for key in ("r-2.json", "deeper/r-3.json", "r-4.txt"):
        await asyncio.to_thread(obstore.put, store._records._store, f"sessions/{key}", data)
    assert {one.research_id: one.status for one in await store.list()} == {"r-1": "running", "r-2": UNREADABLE}
    assert (await store.documents())["r-2"] is None
    whole = await asyncio.to_thread(store._records.read, "r-1")
    await asyncio.to_thread(store._records.write, "r-9", whole or b"")
    for name in ("r-2", "r-9"):
        with pytest.raises(ContentCorrupt, match=rf"{name}\.json is damaged"):
            await store.load(name)


@pytest.mark.parametrize("version", [1, 2, SCHEMA_VERSION + 1, None])
async def test_a_state_of_another_version_is_refused(opened: Opened, version: int | None) -> None:
    """The error names file and schema, and one of a newer version is an outage, not damage; nothing is half understood."""
    await opened().save("r-1", json.dumps({"schema_version": version}), closed=False)
    kind = NewerSchema if version and version > SCHEMA_VERSION else ContentCorrupt
    with pytest.raises(kind, match=rf"the session r-1\.json has the schema {version}, and this version of the product"):
        await opened().load("r-1")


async def test_a_session_with_a_head_of_a_newer_version_is_no_damage(tmp_path: Path) -> None:
    """It is listed as unreadable; loading it names the newer version, and its state can be had as it was written."""
    store = RecordSessionStore(Records(tmp_path, SESSIONS))
    await store.save("r-1", state(), closed=False)
    file = tmp_path / SESSIONS / "r-1.json"
    file.write_text(file.read_text("utf-8").replace('"schema_version": 1,', '"schema_version": 2,', 1), "utf-8")
    assert [one.status for one in await store.list()] == [UNREADABLE]
    with pytest.raises(NewerSchema, match=r"head of the session r-1\.json has the schema 2, .* reads 1: use the newer"):
        await store.load("r-1")
    assert json.loads(await store.load("r-1", as_written=True) or "") == json.loads(state())


@pytest.mark.parametrize("name", ["../r-1", "/etc/passwd", "a/b", "", "..", ".hidden", "a\x00b", "x" * 200])
async def test_an_id_that_is_a_path_is_refused(opened: Opened, tmp_path: Path, name: str) -> None:
    """No id reaches outside the folder."""
    store = opened()
    for attempt in (store.load(name), store.delete(name), store.save(name, state(), closed=False)):
        with pytest.raises(InvalidCall):
            await attempt
    assert list(tmp_path.iterdir()) == []


async def test_documents_of_sessions_are_listed_without_reading_the_states(opened: Opened) -> None:
    """The hashes that a state refers to stand in front of it, the newest texts of a live report among them; those in
    other fields are not taken for documents.
    """
    one, two, three, four = (f"sha256:{digit * 64}" for digit in "1234")
    sources = {"s": {"text": {"hash": one, "size": 3}, "title": three, "content_hash": two}}
    await opened().save("r-1", state(sources=sources, notebook=["", two], revisions=[four]), closed=True)
    assert await opened().documents() == {"r-1": frozenset({one, two, four})}


async def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    """A write without room raises `StorageFull`; the earlier checkpoint stays, and nothing else."""
    store = RecordSessionStore(Records(tmp_path, SESSIONS))
    await store.save("r-1", state("Old?"), closed=False)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(StorageFull):
            await store.save("r-1", state("New?", big="x" * 1_000_000), closed=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / SESSIONS).iterdir()] == ["r-1.json"]
    assert [session.query for session in await store.list()] == ["Old?"]


async def test_a_late_write_replaces_no_newer_session(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save that another host's save overtakes fails, to be tried again: the newer checkpoint stays."""
    late, newer = Records(url, SESSIONS), RecordSessionStore(open_records(url, tmp_path, SESSIONS))
    await newer.save("r-1", state("First?"), closed=False)
    condition = await asyncio.to_thread(late._condition, "r-1")
    monkeypatch.setattr(late, "_condition", lambda _: condition)
    await newer.save("r-1", state("Newer?"), closed=False)
    with pytest.raises(Unavailable, match="another worker wrote the record meanwhile"):
        await RecordSessionStore(late).save("r-1", state("Late?"), closed=False)
    assert [one.query for one in await newer.list()] == ["Newer?"]


async def test_a_change_replaces_no_more_than_what_it_was_made_of(
    bucket: ObjectStoreServer, url: str, tmp_path: Path
) -> None:
    """A save after a load asks for nothing more, and fails once if another host has saved between both, also the first."""
    here, there = (RecordSessionStore(open_records(url, tmp_path, SESSIONS)) for _ in range(2))
    for before in (None, "Newer?"):
        loaded = await here.load("r-1")
        assert before is None if loaded is None else before in loaded
        await there.save("r-1", state("Newer?"), closed=False)
        with pytest.raises(Unavailable, match="another worker wrote the record meanwhile"):
            await here.save("r-1", state("Late?"), closed=False)
    assert [one.query for one in await there.list()] == ["Newer?"]
    bucket.requests.clear()
    await here.load("r-1")
    await here.save("r-1", state("Newest?"), closed=False)
    await here.save("r-1", state("Newest of all?"), closed=False)
    assert [method for method, _, _ in bucket.requests] == ["GET", "PUT", "HEAD", "PUT"]
    await here.load("r-1")
    await here.delete("r-1")
    await here.save("r-1", state("Again?"), closed=False)
    assert [one.query for one in await there.list()] == ["Again?"]


async def test_a_store_that_is_down_is_no_empty_one(bucket: ObjectStoreServer, url: str, tmp_path: Path) -> None:
    """While the store does not answer, every call fails and may be repeated; documents lie beside the sessions."""
    store, content = RecordSessionStore(open_records(url, tmp_path, SESSIONS)), ObstoreContentStore(url)
    await store.save("r-1", state("Why?"), closed=False)
    page = await content.put_text("A page.")
    bucket.down = True
    for attempt in (store.list(), store.load("r-1"), store.save("r-1", state("New?"), closed=False), store.delete("r")):
        with pytest.raises(Unavailable):
            await attempt
    with pytest.raises(Unavailable):
        await content.get(page)
    bucket.down = False
    assert [one.query for one in await store.list()] == ["Why?"]
    assert await content.get_text(page) == "A page."


# --- documents -------------------------------------------------------------------------------------------------------
async def test_equal_content_is_stored_once_at_its_sharded_name(tmp_path: Path) -> None:
    """Puts of the same bytes at the same time give one reference and one file; the size of a text is in characters."""
    store = ObstoreContentStore(tmp_path)
    references = await asyncio.gather(*(store.put(b"\0\xff" * 1_000, "application/pdf") for _ in range(8)))
    assert len(set(references)) == 1
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")] == [name_of(references[0])]
    assert await store.get(references[0]) == b"\0\xff" * 1_000
    text = await store.put_text("2^32 – é 😀")
    assert (await store.get_text(text), text.size) == ("2^32 – é 😀", 10)


async def test_a_new_document_is_one_request_and_its_text_is_remembered(
    bucket: ObjectStoreServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another process has put is looked at after the refusal; a large one is looked for before it is sent."""
    here, there = ObstoreContentStore(url), ObstoreContentStore(url)
    page = await here.put_text("A page.")
    assert await here.get_text(page) == "A page."
    assert await there.put_text("A page.") == page
    assert await there.put_text("A page.") == page
    monkeypatch.setattr(content, "MAX_PART_BYTES", len(large := b"A book.") - 1)
    await here.put(large, "application/pdf")
    name, large_name = f"below/{name_of(page)}", f"below/{name_of(DocumentRef(hash=digest(large)))}"
    asked = [(method, key) for method, key, _ in bucket.requests]
    assert asked[:4] == [("PUT", name), ("PUT", name), ("HEAD", name), ("HEAD", name)]
    assert asked[4:] == [("HEAD", large_name), ("PUT", large_name)]
    assert bucket.objects[name] == b"A page."


async def test_a_document_that_was_read_is_not_sent_again(bucket: ObjectStoreServer, url: str) -> None:
    """A page of the cache is looked at alone; one that has been deleted since is stored again."""
    page = await ObstoreContentStore(url).put_text("A page.")
    reader = ObstoreContentStore(url)
    assert await reader.get_text(page) == "A page."
    bucket.requests.clear()
    await reader.put_text("A page.")
    assert [method for method, _, _ in bucket.requests] == ["HEAD"]
    bucket.objects.clear()
    await reader.put_text("A page.")
    assert list(bucket.objects.values()) == [b"A page."]


async def test_a_text_that_several_ask_for_at_once_is_read_once(bucket: ObjectStoreServer, url: str) -> None:
    """Who does not wait for it takes it from no other; a failure is that of all who wait, and the next one asks again."""
    page = await ObstoreContentStore(url).put_text("A page.")
    bucket.requests.clear()
    reader = ObstoreContentStore(url)
    first, *others = (asyncio.create_task(reader.get_text(page)) for _ in range(4))
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == ["A page."] * 3
    assert len(bucket.requests) == 1
    missing = DocumentRef(hash=digest(b"gone"))
    failed = await asyncio.gather(*(reader.get_text(missing) for _ in range(2)), return_exceptions=True)
    assert [type(error) for error in failed] == [ContentMissing] * 2
    assert sum(bool(key) for _, key, _ in bucket.requests) == 2  # besides one look for encrypted ones
    await ObstoreContentStore(url).put_text("gone")
    assert await reader.get_text(missing) == "gone"


async def test_a_changed_document_is_corrupt_and_a_deleted_one_missing(tmp_path: Path) -> None:
    """A stored document that is not what its hash says is never served; deleting twice is no error (invariant 10)."""
    store = ObstoreContentStore(tmp_path)
    reference = await store.put(b"original", "text/plain")
    (tmp_path / name_of(reference)).write_bytes(b"0riginal")
    with pytest.raises(ContentCorrupt):
        await store.get(reference)
    for _ in range(2):
        await store.delete(reference)
    with pytest.raises(ContentMissing):
        await store.get(reference)
