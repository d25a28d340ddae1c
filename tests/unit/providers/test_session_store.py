"""The record of runs in files."""

import asyncio
import json
from pathlib import Path

import pytest

from contracts.state import SCHEMA_VERSION, ResearchState
from contracts.vocabulary import RunStatus
from providers.errors import ContentCorrupt, InvalidCall, NotConfigured, StorageFull
from providers.storage import stored_records
from providers.storage.sessions import UNREADABLE, RecordSessionStore, SessionUnreadable
from providers.storage.stored_records import FolderRecords


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that does not exist yet."""
    return tmp_path / "data" / "sessions"


@pytest.fixture
def store(folder: Path) -> RecordSessionStore:
    """A store in the folder."""
    return RecordSessionStore(FolderRecords(folder))


def state(question: str = "Why?", status: str = "running", **more: object) -> str:
    """The JSON of a state, as far as the store looks at it."""
    resolved = {"query": question}
    return json.dumps({"schema_version": SCHEMA_VERSION, "status": status, "resolved": resolved, **more})


async def test_a_saved_state_is_loaded_again(store: RecordSessionStore) -> None:
    """What was saved last is loaded, and it is a state; what was never saved is null."""
    saved = ResearchState(status=RunStatus.RUNNING, limitations=["ü 字 \u2028"])
    await store.save("r-1", "{}", closed=False)
    await store.save("r-1", saved.model_dump_json(), closed=True)
    loaded = await store.load("r-1")
    assert loaded is not None
    assert ResearchState.model_validate_json(loaded) == saved
    assert await store.load("r-2") is None


async def test_lists_the_newest_first(store: RecordSessionStore, folder: Path) -> None:
    """A list shows question and status of every session, and does not read the states for it."""
    assert await store.list() == []
    for number in (1, 2, 3):
        await store.save(f"r-{number}", state(f"Question {number}?\n", big="x" * 100_000), closed=False)
    await store.save("r-1", state("Question 1?\n", "completed"), closed=True)
    listed = await store.list()
    assert [session.research_id for session in listed] == ["r-1", "r-3", "r-2"]
    assert (listed[0].query, listed[0].status, listed[0].closed) == ("Question 1?\n", "completed", True)
    assert not listed[1].closed
    for path in folder.glob("*.json"):
        head = path.read_bytes().split(b"\n", 1)[0]
        path.write_bytes(head + b"\n what follows is no JSON at all")
    assert await store.list() == listed


async def test_a_file_is_one_json_document(store: RecordSessionStore, folder: Path) -> None:
    """A session can be read by any program, and only by its owner."""
    await store.save("r-1", state(), closed=False)
    path = folder / "r-1.json"
    document = json.loads(path.read_text())
    assert document["head"]["query"] == "Why?"
    assert document["state"]["status"] == "running"
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"head": 1}', '{"head": {}, "state": {}}', "\x00\x00", "é" * 9])
async def test_a_damaged_file_is_named_and_harms_no_other(store: RecordSessionStore, folder: Path, text: str) -> None:
    """Loading a damaged session raises an error with the file's name; listing shows it as unreadable."""
    await store.save("r-1", state(), closed=False)
    (folder / "r-2.json").write_text(text, encoding="latin-1")
    with pytest.raises(SessionUnreadable, match=r"r-2\.json is damaged"):
        await store.load("r-2")
    assert {session.research_id: session.status for session in await store.list()} == {
        "r-1": "running",
        "r-2": UNREADABLE,
    }


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, None])
async def test_a_state_of_another_version_is_refused(store: RecordSessionStore, version: int | None) -> None:
    """A session that this version cannot read is refused with both versions, never half understood."""
    await store.save("r-1", json.dumps({"schema_version": version}), closed=False)
    with pytest.raises(ContentCorrupt, match=r"r-1\.json is of version"):
        await store.load("r-1")
    assert [session.research_id for session in await store.list()] == ["r-1"]


async def test_a_renamed_file_is_not_another_session(store: RecordSessionStore, folder: Path) -> None:
    """A file under another name than its own id is damaged: no run is shown under a foreign id."""
    await store.save("r-1", state(), closed=False)
    (folder / "r-1.json").rename(folder / "r-9.json")
    with pytest.raises(SessionUnreadable):
        await store.load("r-9")


@pytest.mark.parametrize("name", ["../r-1", "/etc/passwd", "a/b", "", ".", "..", ".hidden", "a\x00b", "x" * 200, "a b"])
async def test_an_id_that_is_a_path_is_refused(store: RecordSessionStore, folder: Path, name: str) -> None:
    """No id reaches outside the folder."""
    for attempt in (store.load(name), store.delete(name), store.save(name, state(), closed=False)):
        with pytest.raises(InvalidCall):
            await attempt
    assert not folder.exists()


async def test_deleting_leaves_nothing(store: RecordSessionStore, folder: Path) -> None:
    """A deleted session is gone with what an interrupted save left; deleting again is no error."""
    await store.save("r-1", state(), closed=False)
    (folder / ".r-1.half.tmp").write_text("half")
    await store.delete("r-1")
    await store.delete("r-1")
    assert list(folder.iterdir()) == []


async def test_what_is_no_state_is_refused(store: RecordSessionStore) -> None:
    """A text that is no JSON object never replaces a good checkpoint."""
    await store.save("r-1", state(), closed=False)
    for text in ("nonsense", "[]"):
        with pytest.raises(ValueError):
            await store.save("r-1", text, closed=False)
    assert await store.load("r-1") is not None


async def test_a_full_disk_keeps_the_old_checkpoint(
    store: RecordSessionStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No space left raises `StorageFull`, leaves the earlier checkpoint and no rubbish."""
    await store.save("r-1", state("Old?"), closed=False)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored_records.os, "fsync", full)
    with pytest.raises(StorageFull):
        await store.save("r-1", state("New?"), closed=False)
    assert [path.name for path in folder.iterdir()] == ["r-1.json"]
    assert [session.query for session in await store.list()] == ["Old?"]


async def test_an_unusable_folder_is_told_as_such(tmp_path: Path) -> None:
    """Where a folder cannot be, the error says which and why."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NotConfigured, match="sessions"):
        await RecordSessionStore(FolderRecords(tmp_path / "file" / "sessions")).save("r-1", state(), closed=False)


async def test_a_cancelled_save_is_whole(store: RecordSessionStore) -> None:
    """Cancelling the caller in the middle of a save leaves a readable session or none."""
    saving = asyncio.create_task(store.save("r-1", state(big="x" * 1_000_000), closed=False))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await store.save("r-2", state(), closed=False)
    assert all(session.status != UNREADABLE for session in await store.list())


async def test_parallel_saves_leave_one_whole_file(store: RecordSessionStore, folder: Path) -> None:
    """Saves that overlap do not mix."""
    await asyncio.gather(*(store.save("r-1", state(f"Q{number}"), closed=False) for number in range(20)))
    assert [path.name for path in folder.iterdir()] == ["r-1.json"]
    loaded = await store.load("r-1")
    assert loaded is not None
    assert json.loads(loaded)["resolved"]["query"].startswith("Q")


async def test_what_sessions_refer_to_is_told_without_reading_them(store: RecordSessionStore, folder: Path) -> None:
    """Hashes of documents stand in front of the state; a record of before that is read as a whole; a damaged one says so."""
    one, two = (f"sha256:{digit * 64}" for digit in "12")
    nested = {"sources": {"s": {"text": {"hash": one, "size": 3}, "title": one}}, "result": {"files": [{"hash": two}]}}
    for name in ("new", "old", "damaged"):
        await store.save(name, state(**nested), closed=True)
    head, _, rest = (folder / "old.json").read_bytes().split(b"\n", 2)
    (folder / "old.json").write_bytes(head + b"\n" + rest)
    (folder / "damaged.json").write_bytes(head)
    head, second, _ = (folder / "new.json").read_bytes().split(b"\n", 2)
    (folder / "new.json").write_bytes(head + b"\n" + second + b"\n what follows is no JSON at all")
    both = frozenset({one, two})
    assert await store.documents() == {"new": both, "old": both, "damaged": None}
