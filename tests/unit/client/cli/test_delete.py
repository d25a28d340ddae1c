"""`delete` on stores of its own: what goes, what stays, and when it refuses."""

import asyncio
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from temporalio.service import RPCError, RPCStatusCode

from client.cli import delete as deleting
from client.cli.command_errors import CommandError, ExitCode
from client.cli.stores import open_stores
from client.client_errors import RunUnknown
from contracts.evidence import DocumentRef, Source
from contracts.state import ResearchState
from contracts.vocabulary import RunStatus
from providers.errors import ContentCorrupt
from providers.storage.content import name_of
from providers.storage.left_behind import LEFT_BEHIND, read_noted_documents
from providers.storage.stored_records import FolderRecords
from tests.fakes.valkey import ValkeyServer, running_valkey
from workers import retention
from workers.settings.loading import load_settings
from workers.shared_state import open_shared_state

NOTHING_GOES_ON: list[timedelta] = []
GOES_ON = [timedelta(minutes=10)]
"""How long ago other runs began that are going on."""


class Home:
    """A RESEARCH_HOME with sessions and documents."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def save(self, research_id: str, *texts: str, closed: bool = True) -> list[DocumentRef]:
        """A run that has read these texts."""
        async with open_stores(load_settings()) as stores:
            references = [await stores.content.put_text(text) for text in texts]
            sources = {}
            for text, reference in zip(texts, references, strict=True):
                sources[text] = Source(id=text, url="https://host/", title=text, provider="corpus", text=reference)
            state = ResearchState(status=RunStatus.COMPLETED, sources=sources)
            await stores.sessions.save(research_id, state.model_dump_json(), closed=closed)
        return references

    async def journal(self, research_id: str, *keys: str) -> None:
        """Paid calls of a run."""
        async with open_shared_state(load_settings()) as shared:
            for key in keys:
                assert await shared.calls.begin(key, research_id, 60.0) is None
                await shared.calls.finish(key, "answer")
            assert not shared.degraded

    async def save_notebook(self, research_id: str, *entries: str, original: str) -> list[DocumentRef]:
        """A run whose state knows the hashes of its notebook's entries, and of an original that only they name."""
        async with open_stores(load_settings()) as stores:
            *noted, raw = [await stores.content.put_text(text) for text in [*entries, original]]
            source = Source(id="s", url="https://host/", title="s", provider="corpus", content_hash=raw.hash)
            state = ResearchState(
                status=RunStatus.COMPLETED, notebook=[each.hash for each in noted], sources={"s": source}
            )
            await stores.sessions.save(research_id, state.model_dump_json(), closed=True)
        return [*noted, raw]

    def make_old(self, research_id: str) -> None:
        """Have the run saved years ago."""
        record = self.path / "sessions" / f"{research_id}.json"
        record.write_text(re.sub('"saved_at": "[0-9]{4}', '"saved_at": "2019', record.read_text(), count=1))

    def put(self, document: DocumentRef, days: float) -> None:
        """Have a document put so many days ago, for the last time."""
        then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
        os.utime(self.path / "content" / name_of(document), (then, then))

    async def sessions(self) -> set[str]:
        """Ids of the runs that are stored."""
        async with open_stores(load_settings()) as stores:
            return {session.research_id for session in await stores.sessions.list()}

    def holds(self, reference: DocumentRef) -> bool:
        """Whether a document is there."""
        return (self.path / "content" / name_of(reference)).is_file()


class Engine:
    """Stands for the client of an engine that has forgotten the runs, and says how many others are open."""

    def __init__(self, others: list[timedelta]) -> None:
        self.others = others
        self.says = True
        self.temporal = self
        self.namespace = "default"

    def handle(self, research_id: str) -> "Engine":
        """A handle on a run."""
        return self

    async def is_running(self) -> bool:
        """As of a run that the engine does not know."""
        raise RunUnknown("unknown")

    async def list_workflows(self, query: str, **_: object):  # type: ignore[no-untyped-def]
        """The others, where open runs are asked for; histories: none."""
        if query != retention.OPEN_RUNS:
            return
        if not self.says:
            raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")
        for number, age in enumerate(self.others):
            yield SimpleNamespace(id=f"other-{number}", start_time=datetime.now(UTC) - age)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty one, named by the environment; no engine was ever started there."""
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path / "home")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine where nothing goes on, until the test says otherwise."""
    made = Engine(NOTHING_GOES_ON)

    async def given(_: object) -> Engine:
        return made

    monkeypatch.setattr(deleting, "_server", given)
    return made


async def test_what_other_runs_use_stays(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Session, journal and the documents of this run alone are removed; no note is left."""
    own, shared = await home.save("one", "own", "shared")
    await home.save("other", "shared")
    await home.journal("one", "a", "b")
    assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
    assert capsys.readouterr().out == "one removed: session, 1 document, 2 journalled calls, 0 histories\n"
    assert (home.holds(own), home.holds(shared)) == (False, True)
    assert await home.sessions() == {"other"}
    assert read_noted_documents(FolderRecords(home.path / LEFT_BEHIND)) == {}


async def test_documents_stay_while_any_run_goes_on(
    home: Home, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a run in flight has read is in no session, so nothing is taken from it; the same delete again removes it."""
    (read_by_both,) = await home.save("one", "read by both")
    engine.others = GOES_ON
    assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
    told = capsys.readouterr()
    assert told.out == "one removed: session, 0 documents, 0 journalled calls, 0 histories\n"
    assert "1 document is kept while a run that may use them is going on" in told.err
    assert await home.sessions() == set()
    assert home.holds(read_by_both)
    await home.save("in-flight", "read by both")
    engine.others = NOTHING_GOES_ON
    await deleting.delete("in-flight", yes=True)
    assert not home.holds(read_by_both)
    assert read_noted_documents(FolderRecords(home.path / LEFT_BEHIND)) == {}


async def test_what_was_kept_is_removed_under_the_same_id(home: Home, engine: Engine) -> None:
    """A deleted run that left documents behind can be named again, also after a second run of that id."""
    first, *_ = await home.save("one", "first")
    engine.others = GOES_ON
    await deleting.delete("one", yes=True)
    second, *_ = await home.save("one", "second")
    await deleting.delete("one", yes=True)
    assert home.holds(first)
    assert home.holds(second)
    engine.others = NOTHING_GOES_ON
    assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
    assert (home.holds(first), home.holds(second)) == (False, False)
    with pytest.raises(CommandError, match="no run"):
        await deleting.delete("one", yes=True)


async def test_an_engine_that_does_not_say_what_goes_on(home: Home, engine: Engine) -> None:
    """Where runs may not be listed, some are taken to go on."""
    (document,) = await home.save("one", "text")
    engine.says = False
    await deleting.delete("one", yes=True)
    assert home.holds(document)
    await home.save("two", "other text")
    with pytest.raises(retention.ServerSilent):
        await deleting.delete_older_than(0, yes=True)


async def test_a_run_that_goes_on_keeps_only_what_it_may_have_read(home: Home, engine: Engine) -> None:
    """A document that was put long before the oldest open run began, and never again, is nothing that it has read."""
    old, put_again = await home.save("one", "old", "put again")
    long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for reference in (old, put_again):
        os.utime(home.path / "content" / name_of(reference), (long_ago, long_ago))
    async with open_stores(load_settings()) as stores:
        await stores.content.put_text("put again")
    engine.others = GOES_ON
    await deleting.delete("one", yes=True)
    assert (home.holds(old), home.holds(put_again)) == (False, True)


async def test_a_notebook_goes_with_its_run(home: Home) -> None:
    """Entries and originals that another run's notebook names as well stay with that one."""
    own, *_ = await home.save_notebook("one", "own entry", "common entry", original="common page")
    kept = await home.save_notebook("two", "common entry", original="common page")
    other = await home.save_notebook("three", "common entry", "last entry", original="page")
    await deleting.delete("one", yes=True)
    assert not home.holds(own)
    assert all(home.holds(each) for each in [*kept, *other])
    await deleting.delete("three", yes=True)
    assert [home.holds(each) for each in other] == [True, False, False]
    assert all(home.holds(each) for each in kept)


async def test_runs_of_long_ago_are_removed_together(
    home: Home, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that go on, and those saved since, stay with their documents."""
    (own,) = await home.save("one", "own")
    await home.save("two", "own", "shared")
    await home.save("other-0", "of a run that goes on")
    for research_id in ("one", "two", "other-0"):
        home.make_old(research_id)
    (shared,) = await home.save("new", "shared")
    engine.others = [timedelta(days=-1)]
    assert await deleting.delete_older_than(1, yes=True) == ExitCode.COMPLETED
    assert capsys.readouterr().out == "2 runs removed: 1 document, 0 journalled calls, 0 histories\n"
    assert await home.sessions() == {"other-0", "new"}
    assert (home.holds(own), home.holds(shared)) == (False, True)


async def test_a_sweep_goes_by_the_configuration(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word on how long runs are kept nothing is swept; with one, workers of `records` do it by themselves."""
    with pytest.raises(CommandError, match="retention_days"):
        await deleting.sweep()
    monkeypatch.setenv("RESEARCH_RETENTION_DAYS", "30")
    await home.save("old", "text")
    await home.save("new", "text")
    home.make_old("old")
    settings = load_settings()
    async with open_stores(settings) as stores, open_shared_state(settings) as shared:
        own = retention.Retention(stores.sessions, stores.content, stores.records(LEFT_BEHIND), stores.calls, None)
        sweeping = asyncio.ensure_future(retention.sweep_now_and_then(own, settings.retention_days or 0, shared.store))
        async with asyncio.timeout(10):
            while await home.sessions() != {"new"}:
                await asyncio.sleep(0.01)
        sweeping.cancel()
        assert not await shared.store.swap(retention.SWEPT, None, b"1", 1)


async def test_documents_of_nobody_are_swept(home: Home, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """What a lost host's calls had put, and no session names, goes once no run or journal can know of it."""
    used, lost, young, of_a_run = await home.save("one", "used", "lost", "young", "of a run")
    await home.save("one", "used")
    days = {used: 9, lost: 9, of_a_run: 4}
    for document, age in days.items():
        home.put(document, age)
    engine.others = [timedelta(days=5)]
    assert await deleting.delete_older_than(1, yes=True) == ExitCode.COMPLETED
    assert [home.holds(each) for each in (used, lost, young, of_a_run)] == [True, False, True, True]
    assert capsys.readouterr().out == "no run is older than 1 day; 1 document removed that no run uses\n"
    engine.others = NOTHING_GOES_ON
    await deleting.delete_older_than(1, yes=True)
    assert [home.holds(each) for each in (used, young, of_a_run)] == [True, True, False]


async def test_a_sweep_takes_only_documents(home: Home) -> None:
    """Other files of the store, such as records and what a corpus published, are no documents of runs."""
    (lost,) = await home.save("one", "lost")
    await home.save("one")
    others = [home.path / "content" / name for name in ("corpus-content/manual/ab/cd", "sessions/one.json", "ab/notes")]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("other")
        os.utime(path, (0, 0))
    home.put(lost, days=9)
    await deleting.delete_older_than(1, yes=True)
    assert not home.holds(lost)
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("case", ["no session", "damaged session", "silent server", "folder of several homes"])
async def test_nothing_is_swept_where_the_uses_are_unknown(
    case: str, home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that are away, unreadable or another home's may name any document, and so may a run that goes on."""
    (lost,) = await home.save("one", "lost")
    await home.save("one")
    home.put(lost, days=9)
    record = home.path / "sessions" / "one.json"
    if case == "no session":
        record.unlink()
    elif case == "damaged session":
        record.write_text("{}")
    elif case == "silent server":
        engine.says = False
    else:
        monkeypatch.setenv("RESEARCH_CONTENT_URL", f"file://{home.path / 'content'}")
    await deleting.delete_older_than(36_500, yes=True)
    assert home.holds(lost)


async def test_a_run_that_was_known_and_ends_while_sessions_are_read(
    home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has saved since its session was read is what it uses, though the server says that nothing goes on."""
    (document,) = await home.save("one", "text")
    await home.save("other")
    asked, ended = engine.list_workflows, False

    def ended_meanwhile(query: str, **options: object):  # type: ignore[no-untyped-def]
        async def listed():  # type: ignore[no-untyped-def]
            nonlocal ended
            if query == retention.OPEN_RUNS and not ended:
                ended = True
                await home.save("other", "text")
            async for run in asked(query):
                yield run

        return listed()

    monkeypatch.setattr(engine, "list_workflows", ended_meanwhile)
    await deleting.delete("one", yes=True)
    assert home.holds(document)
    assert read_noted_documents(FolderRecords(home.path / LEFT_BEHIND)) == {}


async def test_a_run_that_ends_while_sessions_are_read(
    home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was in flight and is over when the engine is asked has saved what it uses, and keeps it."""
    (document,) = await home.save("one", "text")
    asked = engine.list_workflows

    def ended_meanwhile(query: str, **options: object):  # type: ignore[no-untyped-def]
        async def listed():  # type: ignore[no-untyped-def]
            if query == retention.OPEN_RUNS:
                await home.save("other", "text")
            async for run in asked(query):
                yield run

        return listed()

    monkeypatch.setattr(engine, "list_workflows", ended_meanwhile)
    await deleting.delete("one", yes=True)
    assert home.holds(document)


async def test_a_session_that_cannot_be_read_keeps_documents(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows what a damaged session uses: the run is removed, its documents wait until that is mended."""
    (document,) = await home.save("one", "text")
    damaged = home.path / "sessions" / "damaged.json"
    damaged.write_text("{}")
    assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
    assert "until all sessions can be read" in capsys.readouterr().err
    assert home.holds(document)
    damaged.unlink()
    await deleting.delete("one", yes=True)
    assert not home.holds(document)


async def test_a_damaged_note_is_told(home: Home) -> None:
    """Before anything is removed."""
    await home.save("one", "text")
    (home.path / "left-behind").mkdir()
    (home.path / "left-behind" / "older.json").write_text("[")
    with pytest.raises(ContentCorrupt, match=r"older\.json is damaged"):
        await deleting.delete("one", yes=True)
    assert await home.sessions() == {"one"}


def answers(valkey: ValkeyServer) -> int:
    """How many answers of the run lie in the server."""
    return len(valkey.command("KEYS", "research:calls/one/answer/*"))


async def test_a_full_redis_is_emptied(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Redis takes no changes any more, deleting still removes what it holds of the run (F16)."""
    with running_valkey(tmp_path) as valkey:
        monkeypatch.setenv("REDIS_URL", valkey.url)
        await home.save("one", "text")
        await home.journal("one", "a", "b")
        await valkey.tell("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
        assert answers(valkey) == 2
        assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
        assert answers(valkey) == 0


async def test_nothing_is_removed_while_redis_is_away(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails and the run stays whole, so that it can be deleted once Redis is back."""
    with running_valkey(tmp_path) as valkey:
        monkeypatch.setenv("REDIS_URL", valkey.url)
        (document,) = await home.save("one", "text")
        await home.journal("one", "a", "b")
        valkey.pause()
        with pytest.raises(CommandError, match="are kept: delete it again") as told:
            await deleting.delete("one", yes=True)
        valkey.resume()
        assert told.value.code == ExitCode.FAILED
        assert await home.sessions() == {"one"}
        assert home.holds(document)
        assert answers(valkey) == 2
        assert capsys.readouterr().out == ""
        assert await deleting.delete("one", yes=True) == ExitCode.COMPLETED
        assert answers(valkey) == 0
        assert "1 document, 2 journalled calls" in capsys.readouterr().out
