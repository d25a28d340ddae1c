"""`delete` on stores of its own: what is removed, what stays, and when it refuses."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from temporalio.service import RPCError, RPCStatusCode

from client.cli.context import CommandContext
from client.client_errors import RunUnknown
from contracts.evidence import DocumentRef, Source
from contracts.state import EvidenceState, ResearchState, WorkState
from contracts.vocabulary import RunStatus
from providers.storage.content import name_of
from tests.unit.client.cli.command_line import make_old, put_text, research, save_run
from workers import retention
from workers.settings.loading import load_settings
from workers.shared_state import open_shared_state


def save(home: Path, research_id: str, *texts: str, noted: Sequence[str] = ()) -> list[DocumentRef]:
    """Store a run that has read these texts, and has the noted ones in its notebook."""
    references = [put_text(home, text) for text in (*texts, *noted)]
    sources = {
        text: Source(id=text, url="https://host/", title=text, provider="corpus", text=reference)
        for text, reference in zip(texts, references, strict=False)
    }
    notebook = [reference.hash for reference in references[len(texts) :]]
    state = ResearchState(
        work=WorkState(status=RunStatus.COMPLETED), evidence=EvidenceState(sources=sources, notebook=notebook)
    )
    save_run(home, research_id, state, closed=True)
    return references


def journal(research_id: str, *keys: str) -> None:
    """Store paid calls of a run."""

    async def write() -> None:
        async with open_shared_state(load_settings()) as shared:
            for key in keys:
                lease = await shared.calls.begin(key, research_id, 60.0)
                assert not isinstance(lease, str)
                await shared.calls.finish(lease, "answer")

    asyncio.run(write())


def put_long_ago(home: Path, document: DocumentRef, days: float = 9) -> None:
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(home / "content" / name_of(document), (then, then))


def exist(home: Path, *references: DocumentRef) -> list[bool]:
    return [(home / "content" / name_of(reference)).is_file() for reference in references]


def sessions(home: Path) -> set[str]:
    return {path.stem for path in (home / "sessions").glob("*.json")}


class Server:
    """Stands for the client of a server that has forgotten the runs, and knows how old its open ones are."""

    def __init__(self) -> None:
        self.open: list[timedelta] = []
        self.answers = True
        self.schedules: list[str] = []
        self.temporal = self
        self.namespace = "default"

    def handle(self, _: str) -> "Server":
        return self

    async def is_running(self) -> bool:
        raise RunUnknown("unknown")

    async def list_workflows(self, query: str, **_: object) -> AsyncIterator[SimpleNamespace]:
        if query != retention.OPEN_RUNS:
            return
        if not self.answers:
            raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")
        for number, age in enumerate(self.open):
            yield SimpleNamespace(id=f"open-{number}", start_time=datetime.now(UTC) - age)

    def get_schedule_handle(self, schedule: str) -> "Server":
        self.schedules.append(schedule)
        return self

    async def delete(self) -> None:
        raise RPCError("no such schedule", RPCStatusCode.NOT_FOUND, b"")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()

    async def given(_: object) -> Server:
        return made

    monkeypatch.setattr(CommandContext, "client_of_runs", given)
    return made


def test_documents_of_other_runs_stay(home: Path) -> None:
    """Session, journal, documents and notebook of this run alone are removed."""
    own, shared, own_note, shared_note = save(home, "one", "own", "shared", noted=["own entry", "shared entry"])
    save(home, "other", "shared", noted=["shared entry"])
    journal("one", "a", "b")
    done = research("delete", "one", "--yes")
    assert done.stdout == "removed the run one: 2 documents, 2 journalled calls, 0 histories\n"
    assert exist(home, own, shared, own_note, shared_note) == [False, True, False, True]
    assert sessions(home) == {"other"}


def test_documents_stay_while_a_run_that_may_use_them_is_open(home: Path, server: Server) -> None:
    """An open run has read more than its session says, but nothing from before its start; the rest goes later."""
    young, old, again = save(home, "one", "young", "old", "put again")
    save(home, "other")
    for reference in (old, again):
        put_long_ago(home, reference, days=2)
    put_text(home, "put again")
    server.open = [timedelta(minutes=10)]
    done = research("delete", "one", "--yes")
    assert (done.exit_code, sessions(home)) == (0, {"other"})
    assert server.schedules == ["one-refresh"]  # or the server would refresh it again
    assert "2 documents stay while a run that may use them is going on" in done.stderr
    assert exist(home, young, old, again) == [True, False, True]
    server.open = []
    put_long_ago(home, young)
    assert research("delete", "--older-than", "36500", "--yes").exit_code == 0
    assert exist(home, young) == [False]
    repeated = research("delete", "one", "--yes")
    assert (repeated.exit_code, "there is no run 'one'" in repeated.stderr) == (2, True)


def test_old_runs_are_removed_together(home: Path, server: Server) -> None:
    """Open runs, and those saved since, stay with their documents; a server that does not answer stops it."""
    (own,) = save(home, "one", "own")
    save(home, "two", "own", "shared")
    save(home, "open-0", "of an open run")
    for research_id in ("one", "two", "open-0"):
        make_old(home, research_id)
    (shared,) = save(home, "new", "shared")
    server.open = [timedelta(days=-1)]
    server.answers = False
    assert research("delete", "--older-than", "1", "--yes").exit_code == 4
    server.answers = True
    done = research("delete", "--older-than", "1", "--yes")
    assert done.stdout == "removed 2 runs older than 1 days: 1 document, 0 journalled calls, 0 histories\n"
    assert (sessions(home), exist(home, own, shared)) == ({"open-0", "new"}, [False, True])


def test_documents_that_no_run_names_are_swept(home: Path, server: Server) -> None:
    """With --older-than; only documents, and only those that neither a run nor the journal can know."""
    used, lost, young, of_a_run = save(home, "one", "used", "lost", "young", "of a run")
    save(home, "one", "used")
    for document, age in {used: 9, lost: 9, of_a_run: 4}.items():
        put_long_ago(home, document, age)
    other = home / "content" / "corpus-content" / "manual"
    other.parent.mkdir(parents=True)
    other.write_text("other")
    os.utime(other, (0, 0))
    server.open = [timedelta(days=5)]
    done = research("delete", "--older-than", "1", "--yes")
    assert done.stdout.startswith("removed 0 runs older than 1 days: 1 document")
    assert exist(home, used, lost, young, of_a_run) == [True, False, True, True]
    assert other.exists()


@pytest.mark.parametrize("case", ["no session", "damaged session", "silent server", "several homes"])
def test_nothing_is_swept_where_the_uses_are_unknown(
    case: str, home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that are away, damaged or in another home may name any document, and so may an open run."""
    (lost,) = save(home, "one", "lost")
    save(home, "one")
    put_long_ago(home, lost)
    record = home / "sessions" / "one.json"
    if case == "no session":
        record.unlink()
    elif case == "damaged session":
        record.write_text("{}")
    elif case == "silent server":
        server.answers = False
    else:
        monkeypatch.setenv("RESEARCH_CONTENT_URL", f"file://{home / 'content'}")
    research("delete", "--older-than", "36500", "--yes")
    assert exist(home, lost) == [True]


def test_a_run_stays_without_an_answer_of_person_or_store(home: Path) -> None:
    """Without a terminal --yes is needed; while the journal cannot be removed the run can be deleted later (F16)."""
    save(home, "one", "text")
    unasked = research("delete", "one")
    assert (unasked.exit_code, "add --yes" in unasked.stderr, sessions(home)) == (2, True, {"one"})
    away = research("delete", "one", "--yes", REDIS_URL="redis://127.0.0.1:1")
    assert (away.exit_code, sessions(home)) == (4, {"one"}), away.stderr
    assert "research doctor" in away.stderr
