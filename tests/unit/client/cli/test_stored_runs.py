"""Commands that read runs from the session store, without a server or with one that does not answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from client.agent_events import AnyAgentEvent, Translation
from client.cli import talk, watch
from client.cli.context import CommandContext, RunInfo, ServerRun, ServerRuns, open_context
from client.cli.options import RunOptions
from client.cli.output import CommandError
from client.cli.preflight import RequestedRun
from client.cli.read import load_documents
from client.cli.run import RunCommand, check_request, follow_up_options, request_again, require_resumable
from client.client_errors import NoWorker
from contracts.addresses import digest
from contracts.messages import QueueTurn
from contracts.outcome import AgentDecision, Citation, ReportFiles, ResearchResult, ResearchStatus
from contracts.report import run_fidelity
from contracts.request import ResearchRequest
from contracts.resolved import ProviderChoice
from contracts.state import ResearchState
from contracts.tokens import ContentEntry, FidelityTotals, ItemFidelity, Level
from contracts.vocabulary import Outcome, RunStatus, SourceStatus, StopReason
from providers.encryption import Keyring
from providers.interfaces import StoredSession
from providers.storage.sessions import SESSIONS
from providers.storage.stored_records import Records
from tests.fakes import states
from tests.unit.client.cli.command_line import put_text, research, save_run
from workers.settings.loading import Flags

TIERS = ("simple", "analytical", "complex")
QUESTION = "How does the engine prevent wraparound?"
BEGUN = datetime.now(tz=UTC) - timedelta(seconds=40)


def stored(**changes: Any) -> ResearchState:
    return states.state(clock_started_at=BEGUN.timestamp(), **changes)


def test_a_list_says_what_to_do_about_an_unreadable_run(home: Path) -> None:
    """One line names the command that says why, and that command says it with a remedy."""
    save_run(home, "good", stored(status=RunStatus.RUNNING), closed=False)
    assert "unreadable" not in research("list").stderr
    Records(home, SESSIONS, Keyring({"lost": bytes(32)}, "lost")).write("sealed", b"{}")
    assert "unreadable: `research status sealed` says why, and what to do" in research("list").stderr
    shown = research("status", "sealed")
    assert (shown.exit_code, "the encryption key lost is missing: name its file in" in shown.stderr) == (4, True)


def test_a_detached_resume_starts_no_server_and_no_worker(home: Path) -> None:
    """With --detach no server and no worker are started here, as with `start`."""
    save_run(home, "cut-off", stored(status=RunStatus.CANCELLED), closed=True)
    resumed = research("resume", "cut-off", "--detach")
    assert (resumed.exit_code, "research serve" in resumed.stderr) == (4, True), resumed.stderr
    assert not (home / "engine").exists()


def test_the_status_of_a_stored_run(home: Path) -> None:
    """A cancelled one has its end and its time; an interrupted one has neither, and how to continue is printed."""
    save_run(home, "ended", stored(status=RunStatus.CANCELLED), closed=True)
    longest = (datetime.now(tz=UTC) - BEGUN).total_seconds() + 1
    save_run(home, "cut-off", stored(status=RunStatus.RUNNING), closed=False)
    ended = json.loads(research("status", "ended", "--json").stdout)
    assert (ended["outcome"], ended["stop_reason"]) == ("cancelled", "user_cancelled")
    assert 39 <= ended["elapsed_seconds"] <= longest
    assert ended["note"] == "its state is saved: research resume ended"
    shown = research("status", "cut-off")
    assert (shown.exit_code, QUESTION in shown.stdout) == (0, True)
    assert shown.stdout.splitlines()[0].endswith(" interrupted")
    assert research("status", "ended").stdout.splitlines()[0].endswith(" cancelled")
    assert "the run was interrupted: research resume cut-off" in shown.stderr


def test_the_status_of_a_run_without_workers(home: Path) -> None:
    """It is that of the last checkpoint, with the reason; without a checkpoint there is only the reason."""
    save_run(home, "r-1", stored(status=RunStatus.RUNNING), closed=False)
    handle = AsyncMock(status=AsyncMock(side_effect=NoWorker("no worker answers: start one")))

    async def status(state: ResearchState | None) -> tuple[ResearchStatus, str]:
        async with open_context(Flags()) as context:
            return await watch.find_status(context, RunInfo("r-1", state, handle, running=True))

    known, note = asyncio.run(status(stored(status=RunStatus.RUNNING)))
    assert (known.query, note) == (QUESTION, "no worker answers: start one")
    with pytest.raises(NoWorker):
        asyncio.run(status(None))


def test_a_run_that_was_killed_before_its_clock_began_has_taken_no_time(home: Path) -> None:
    """Its first checkpoint has no beginning to count from."""
    save_run(home, "begun", states.state(status=RunStatus.RUNNING), closed=False)
    assert json.loads(research("status", "begun", "--json").stdout)["elapsed_seconds"] == 0


def test_a_run_that_nothing_works_on_is_interrupted_in_json_too(home: Path) -> None:
    """Scripts read the same word as people, here and in the list."""
    save_run(home, "waits", stored(status=RunStatus.RUNNING), closed=False)
    status = json.loads(research("status", "waits", "--json").stdout)
    assert (status["status"], status["note"]) == ("interrupted", "the run was interrupted: research resume waits")
    assert "interrupted" in research("status", "waits").stdout.splitlines()[0]


def test_a_refused_run_with_a_session_can_be_resumed(home: Path) -> None:
    """Every command that shows why no provider could be reached names the same way to continue."""
    why = "no search provider can be asked"
    save_run(home, "away", stored(status=RunStatus.REFUSED, last_failure=why), closed=True)
    for command in ("status", "report", "watch"):
        shown = research(command, "away").output
        assert why in shown
        assert "research resume away" in shown
        assert "cannot be resumed" not in shown


def test_the_list_of_stored_runs(home: Path) -> None:
    """Newest first, chosen by words and number; a run whose worker is gone is interrupted."""
    for name, status, closed in (("r-1", RunStatus.CANCELLED, True), ("r-2", RunStatus.RUNNING, False)):
        save_run(home, name, stored(status=status), closed=closed)

    def listed(*options: str) -> dict[str, str]:
        return {row["research_id"]: row["status"] for row in json.loads(research("list", "--json", *options).stdout)}

    assert list(listed().items()) == [("r-2", "interrupted"), ("r-1", "cancelled")]
    assert list(listed("--limit", "1")) == ["r-2"]
    assert (len(listed("--query", "WRAPAROUND")), listed("--query", "locks")) == (2, {})
    line = research("list", "--limit", "1").stdout
    assert (line.startswith("r-2  interrupted"), QUESTION in line) == (True, True)
    save_run(home, "r-3", stored(status=RunStatus.AWAITING_APPROVAL), closed=True)
    assert len({line.index(QUESTION) for line in research("list").stdout.splitlines()}) == 1


async def test_the_list_does_not_wait_for_a_run_without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open run that nothing is stored of is listed with its question, and with what is not known of it."""
    monkeypatch.setattr(watch, "LISTING_SECONDS", 0.01)
    silent = Mock(question=AsyncMock(return_value=QUESTION), status=asyncio.Event().wait)
    context = AsyncMock()
    context.running_client.return_value = Mock(handle=Mock(return_value=silent))
    row = await asyncio.wait_for(
        watch._unstored_row(context, ServerRun("r-1", "running", BEGUN.isoformat()), "", None), 60
    )
    assert row is not None
    assert (row.status, row.query) == ("running", QUESTION)
    assert row.reason == "no worker answers: whether it is queued is unknown"


def queued_run(number: int) -> ServerRun:
    """Return an open run that began on this day of a month."""
    return ServerRun(f"r-{number}", "running", f"2026-11-2{number}T10:00:00+00:00", f"Question {number}?")


async def test_only_runs_that_are_listed_are_asked() -> None:
    """Of a long queue the newest up to the limit, and of those only the ones whose question fits."""
    asked = list[str]()

    def handle(research_id: str) -> Mock:
        asked.append(research_id)
        return Mock(question=AsyncMock(return_value=QUESTION), status=AsyncMock(return_value=Mock(queue_place=None)))

    context = AsyncMock()
    context.server_runs.return_value = ServerRuns([queued_run(number) for number in reversed(range(9))], 9)
    context.sessions.return_value = []
    context.queue_places.return_value = None
    context.running_client.return_value = Mock(handle=handle)
    page = await watch.list_rows(context, "", 2)
    # One more than the page is asked, to know whether there are older ones.
    assert ([row.research_id for row in page.rows], asked) == (["r-8", "r-7"], ["r-8", "r-7", "r-6"])
    page = await watch.list_rows(context, "question 3", 2)
    assert ([row.research_id for row in page.rows], page.total) == (["r-3"], 9)
    page = await watch.list_rows(context, QUESTION.casefold(), 2)  # longer than the memo has it
    assert [row.query for row in page.rows] == [QUESTION] * 2


async def test_a_long_queue_is_listed_without_asking_its_runs() -> None:
    """Places come from the queue itself: of runs that are only on the server, and of a stored one that waits again."""
    context = AsyncMock(server_away="")
    context.server_runs.return_value = ServerRuns([queued_run(number) for number in range(4)], 4)
    context.sessions.return_value = [
        StoredSession(research_id="r-3", query=QUESTION, status="running", saved_at="2026-11-20T10:00:00", closed=False)
    ]
    context.queue_places.return_value = {f"r-{n}": QueueTurn(place=n, waiting=3) for n in range(1, 4)}
    page = await watch.list_rows(context, "", 50)
    assert [(row.research_id, row.status, row.reason) for row in page.rows] == [
        ("r-3", "queued", "place 3 of 3"),
        ("r-2", "queued", "place 2 of 3"),
        ("r-1", "queued", "place 1 of 3"),
        ("r-0", "running", ""),
    ]
    page = await watch.list_rows(context, "question 2", 50)
    assert [row.research_id for row in page.rows] == ["r-2"]
    context.running_client.assert_not_awaited()


async def test_a_page_of_a_long_list_asks_the_server_for_a_page() -> None:
    """A page says how many runs there are; a stored run that is open further back in the line is not interrupted."""
    sessions = [
        StoredSession(research_id=name, query=QUESTION, status="running", saved_at=saved, closed=False)
        for name, saved in (("r-at-work", "2026-11-30T10:00:00+00:00"), ("r-gone", "2026-11-27T12:00:00+00:00"))
    ]
    context = AsyncMock(server_away="")
    context.sessions.return_value = sessions
    context.queue_places.return_value = {}
    context.open_among.return_value = {"r-at-work"}
    newest = [queued_run(number) for number in (8, 7, 6)]
    context.server_runs.return_value = ServerRuns(newest, 2_000, is_complete=False)
    page = await watch.list_rows(context, "", 2)
    context.server_runs.assert_awaited_with(3)
    context.open_among.assert_awaited_with(["r-at-work", "r-gone"])
    assert [(row.research_id, row.status) for row in page.rows] == [("r-8", "running"), ("r-gone", "interrupted")]
    assert (page.has_more, page.total, page.is_exact) == (True, 2_000, False)
    page = await watch.list_rows(context, "", 2, 2)
    context.server_runs.assert_awaited_with(5)
    assert [row.research_id for row in page.rows] == ["r-7", "r-6"]


def test_the_list_says_how_to_see_older_runs(home: Path) -> None:
    """A page that is not all names its place and the command for the next page, with the same options."""
    for number in range(3):
        save_run(home, f"r-{number}", stored(status=RunStatus.CANCELLED), closed=True)
    first = research("list", "--limit", "2", "--query", "wrap around", "--json")
    assert "older ones" not in research("list").stderr
    shown = research("list", "--limit", "2")
    assert "runs 1 to 2 of 3; older ones: research list --limit 2 --skip 2" in shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["r-2", "r-1"]
    assert json.loads(first.stdout) == []
    worded = research("list", "--limit", "2", "--query", "wraparound", "--json")
    assert "runs 1 to 2; older ones: research list --query wraparound --limit 2 --skip 2" in worded.stderr
    assert [row["research_id"] for row in json.loads(research("list", "--skip", "2", "--json").stdout)] == ["r-0"]


async def test_a_run_whose_server_restarts_is_not_interrupted() -> None:
    """A message starts the dev server again where it is down, and then only the server knows whether the run waits."""
    waiting = RunInfo("r-1", stored(status=RunStatus.RUNNING), Mock(), running=True)
    context = AsyncMock(server_away="")
    context.find.return_value = RunInfo("r-1", stored(status=RunStatus.RUNNING))
    context.load_run.return_value = waiting
    assert await talk.running_handle(context, "r-1") is waiting.handle
    context.client_of_runs.assert_awaited_once()
    context.client_of_runs.return_value = None
    with pytest.raises(CommandError, match="the run r-1 is interrupted"):  # there never was a server
        await talk.running_handle(context, "r-1")
    context.server_away = "the server does not answer"
    with pytest.raises(CommandError, match=r"^the server does not answer: send it again when the server answers$"):
        await talk.running_handle(context, "r-1")


def test_a_cluster_that_is_away_leaves_the_stored_runs(home: Path) -> None:
    """An open run is of unknown status, never interrupted; a command that needs the server fails with its address."""
    save_run(home, "r-1", stored(status=RunStatus.RUNNING), closed=False)
    away = {"TEMPORAL_ADDRESS": "127.0.0.1:1"}
    done = research("list", "--json", **away)
    assert json.loads(done.stdout)[0]["status"] == "unknown"
    assert done.stderr.count("127.0.0.1:1") == 1
    assert research("status", "r-1", **away).exit_code == 0
    stopped = research("stop", "r-1", **away)
    assert (stopped.exit_code, "127.0.0.1:1" in stopped.stderr) == (4, True)


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.RUNNING])
def test_a_draft_is_printed_and_marked(home: Path, status: RunStatus) -> None:
    """Cancelled or interrupted: the first line says that it is a draft and how to finish it; a folder is no file."""
    document = put_text(home, "# Answer\n\nSo it is.\n")
    save_run(home, "r-1", stored(status=status, draft=states.draft(document=document)), closed=False)
    done = research("report", "r-1")
    first, _, rest = done.stdout.partition("\n\n")
    assert first.startswith("> **Draft:** the run ")
    assert "`research resume r-1 --now`" in first
    assert rest == "# Answer\n\nSo it is.\n"
    without = research("report", "r-1", "--format", "html")
    assert (without.exit_code, "use --format md" in without.stderr) == (4, True)
    folder = research("report", "r-1", "--out", ".")
    assert (folder.exit_code, folder.stderr.splitlines()[-1]) == (2, "research: . is a folder: name a file in it")


def test_of_a_running_run_the_newest_text_is_printed(home: Path) -> None:
    """The state names it before a checkpoint does; it comes through the server where the store is away (S2-022)."""
    old, new = put_text(home, "old"), put_text(home, "new")
    away = states.EMPTY_REF.model_copy(update={"hash": digest("away")})
    handle = AsyncMock(report=AsyncMock(return_value=states.draft(document=new)))
    handle.document.return_value = "from afar"
    run = RunInfo("r-1", stored(status=RunStatus.RUNNING, draft=states.draft(document=old)), handle, running=True)

    async def print_it() -> bytes:
        async with open_context(Flags()) as context:
            return (await load_documents(context, run))["md"]

    assert asyncio.run(print_it()).endswith(b"not checked.\n\nnew")
    handle.report.return_value = states.draft(document=away)
    assert asyncio.run(print_it()).endswith(b"not checked.\n\nfrom afar")
    handle.document.assert_awaited_once_with("draft.md", tenant="default")


def test_events_of_agents_are_printed_as_lines(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One JSON document a line, the exit code of the run, and no other form beside them (S2-019, S2-021)."""
    result = ResearchResult(research_id="r-1", outcome=Outcome.PARTIAL, stop_reason=StopReason.USER_STOPPED)
    events = [*Translation(QUESTION).begin(), *Translation(QUESTION).end(result)]

    async def agent_events(tenant: str) -> AsyncIterator[AnyAgentEvent]:
        assert tenant == "default"
        for event in events:
            yield event

    handle = AsyncMock(agent_events=agent_events, result=AsyncMock(return_value=result))
    found = AsyncMock(return_value=RunInfo("r-1", stored(status=RunStatus.RUNNING), handle, running=True))
    monkeypatch.setattr(CommandContext, "find", found)
    done = research("watch", "r-1", "--events", "agent")
    assert done.exit_code == 3
    assert [json.loads(line) for line in done.stdout.splitlines()] == [one.model_dump(mode="json") for one in events]
    for options, words in ((["others"], "'others' is not"), (["agent", "--json"], "without --out, --json and --quiet")):
        refused = research("watch", "r-1", "--events", *options)
        assert (refused.exit_code, words in refused.stderr, refused.stdout) == (2, True, "")


@pytest.mark.parametrize("shown", [400, 900])
def test_a_report_is_printed_with_what_models_were_shown(home: Path, shown: int) -> None:
    """Figures, levels, dropped ids and advice, for people and as JSON; `status` has a line (S0-156, S0-166, S0-167)."""
    totals = FidelityTotals(calls=2, considered=1_000, shown=shown, items=6, shortened=2, lowest=0.25)
    items = [
        ItemFidelity(id=f"src-{number}", kind="source", original_tokens=500, current_tokens=tokens, current_level=level)
        for number, tokens, level in ((1, shown, Level.COMPRESSED), (2, 0, Level.DROPPED))
    ]
    fidelity = run_fidelity({"analysis": totals}, [ContentEntry(role="analyzer", items=items)], ["src-2"], 1)
    document = json.dumps({"fidelity": fidelity and fidelity.model_dump(mode="json")})
    files = ReportFiles(
        markdown=put_text(home, "# Answer\n"), html=put_text(home, "<p>"), json_document=put_text(home, document)
    )
    result = ResearchResult(
        research_id="r-1", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS, files=files
    )
    dropped = states.source("https://example.org/dropped").model_copy(update={"id": "src-2", "title": "Dropped page"})
    ended = stored(status=RunStatus.COMPLETED, result=result, fidelity={"analysis": totals}, sources={"src-2": dropped})
    save_run(home, "r-1", ended, closed=True)
    advice = "limits.max_sources_per_query"
    done = research("report", "r-1", "--include-metadata")
    assert done.stdout == "# Answer\n"
    band = {400: "40% (compressed)", 900: "90% (full)"}[shown]
    for words in (
        f"shown to models: {band}",
        f"analysis: {band}, 25% in one call",
        "2 of 6 items",
        "dropped: src-2 “Dropped page”",
    ):
        assert words in done.stderr
    assert "levels: 4 full, 1 compressed, 1 dropped" in done.stderr
    assert "not analyzed: 1 source" in done.stderr
    document = json.loads(research("report", "r-1", "--include-metadata", "--json").stdout)
    assert (document["report"], document["fidelity"]["phases"]["analysis"]["shown"]) == ("# Answer\n", shown)
    assert document["levels"] == {"full": 4, "compressed": 1, "dropped": 1}
    assert (advice in done.stderr) is (advice in document["advice"]) is (shown < 500)
    status = research("status", "r-1").stdout
    assert f"shown      {band}" in status
    assert (advice in status) is (shown < 500)


def test_sources_decisions_and_plan_of_a_stored_run(home: Path) -> None:
    """The list of sources, the archived text by number or id, the decisions with their reasons, the plan."""
    text = put_text(home, "Vacuum removes dead rows.")
    read = states.source("https://a.example/", text=text)
    lost = states.source("https://b.example/", status=SourceStatus.FAILED, status_reason="not found")
    decision = AgentDecision(seq=1, agent="supervisor", action="decide_iteration", rationale="gaps\x1b are left")
    state = stored(
        status=RunStatus.CANCELLED,
        sources=states.sources(read, lost),
        citations=[Citation(number=1, source_id=read.id)],
        decisions=[decision],
        plan=states.plan(states.sub_query("What is frozen?")),
    )
    save_run(home, "r-1", state, closed=True)
    lines = research("sources", "r-1").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["[1]", lost.id]
    assert "failed: not found" in lines[1]
    for name in ("1", read.id[:9]):
        assert research("sources", "last", name).stdout == "Vacuum removes dead rows."
    missing = research("sources", "r-1", lost.id)
    assert (missing.exit_code, "nothing of" in missing.stderr) == (4, True)
    assert "supervisor: decide iteration  gaps are left" in research("decisions", "r-1").stdout
    assert "- What is frozen?" in research("plan", "r-1").stdout


def test_the_list_of_sources_says_what_was_not_read(home: Path) -> None:
    """Share and kinds on the line below the source, and as a list for programs."""
    missing = "92% of the words are read; not read: footers (7)"
    read = states.source("https://a.example/", text=put_text(home, "Vacuum removes dead rows."), warnings=[missing])
    other = states.source("https://b.example/", text=put_text(home, "Rows are dead."))
    save_run(home, "r-1", stored(status=RunStatus.COMPLETED, sources=states.sources(read, other)), closed=True)
    lines = research("sources", "r-1").stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if "https://a.example/" in line)
    assert (lines[place + 1].strip(), len(lines)) == (missing, 3)
    listed = {each["url"]: each["warnings"] for each in json.loads(research("sources", "r-1", "--json").stdout)}
    assert listed == {"https://a.example/": [missing], "https://b.example/": []}


@pytest.mark.parametrize(
    "command", [("stop",), ("steer", "go on"), ("approve",), ("answer", "yes"), ("plan", "--edit")]
)
def test_a_message_to_a_run_that_is_over_says_so(home: Path, command: tuple[str, ...]) -> None:
    """Without a server, too: the run is finished, or it is interrupted and can be resumed."""
    save_run(home, "done", stored(status=RunStatus.CANCELLED), closed=True)
    save_run(home, "cut", stored(status=RunStatus.RUNNING), closed=False)
    done, cut = (research(command[0], name, *command[1:]) for name in ("done", "cut"))
    assert (done.exit_code, "the run done has already finished: see `research status done`" in done.stderr) == (2, True)
    assert (cut.exit_code, "cut is interrupted: `research resume cut` continues it" in cut.stderr) == (4, True)


@pytest.mark.parametrize("attached", [True, False])
async def test_an_id_of_another_question_cannot_be_used(attached: bool) -> None:
    """The run is neither joined nor resumed, and nothing of its question or result is revealed."""
    problem = r"^the id r-1 belongs to another question: leave --id out for a new run$"
    with pytest.raises(CommandError, match=problem):
        await check_request(RunInfo("r-1", states.state()), ResearchRequest(query="Something else?"))
    handle = AsyncMock(attached=attached)
    handle.question.return_value = QUESTION
    client = AsyncMock(start=AsyncMock(return_value=handle), resume=AsyncMock(return_value=handle))
    same, other = (RequestedRun(ResearchRequest(query=query)) for query in (QUESTION, "Something else?"))
    for known, how in ((RunInfo("r-1"), "started"), (RunInfo("r-1", states.state()), "resumed")):
        _, begun = await RunCommand(AsyncMock(), same, known, RunOptions())._start(client)
        assert begun == ("joined" if attached else how)
    if attached:  # by a server that did not run when the id was looked up
        with pytest.raises(CommandError, match=problem):
            await RunCommand(AsyncMock(), other, RunInfo("r-1"), RunOptions())._start(client)


async def test_a_run_is_resumed_with_its_own_question_unless_it_cannot_be() -> None:
    """A completed or refused run is not resumed; the request of a resumed one adds another model at most."""
    done = ResearchResult(research_id="r-1", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS)
    refused = done.model_copy(update={"outcome": Outcome.REFUSED, "limitations": ["no corpus"]})
    known = RunInfo("r-1", states.state())
    require_resumable(known, None)
    require_resumable(known, done.model_copy(update={"outcome": Outcome.PARTIAL, "resumable": True}))
    for outcome in (Outcome.PARTIAL, Outcome.EMPTY):  # its statements are not borne out, or it searched everything
        nothing_left = done.model_copy(update={"outcome": outcome})
        with pytest.raises(CommandError, match=f"is {outcome.value} and has nothing left to do: .* with --set"):
            require_resumable(known, nothing_left)
        require_resumable(known, nothing_left, changed=True)
    for run, closed, problem in (
        (known, done, "see `research report r-1`"),
        (known, refused, "was refused: no corpus"),
        (RunInfo("r-1"), None, "start a new run"),
    ):
        with pytest.raises(CommandError, match=problem):
            require_resumable(run, closed)
    known = RunInfo("r-1", states.state(resolved=states.resolved(models=dict.fromkeys(TIERS, "m"))))
    same, other = [(await request_again(known, RunOptions(model=model))).request for model in ("m", "other")]
    assert (same.query, "models" in same.model_fields_set) == (QUESTION, False)
    assert set(other.models.model_dump().values()) == {"other"}


def test_a_follow_up_question_keeps_strategy_and_corpus() -> None:
    """Those of the earlier run, unless others are named; one about private documents stays with their servers."""
    before = RunInfo("r-1", states.state(resolved=states.resolved(strategy="orchestrator")))
    asked = follow_up_options(RunOptions(), "And then?", before)
    assert (asked.question, asked.strategy, asked.assignments) == ("And then?", "orchestrator", ["follow_up_of=r-1"])
    assert follow_up_options(RunOptions(strategy="reflective"), "And then?", before).strategy == "reflective"
    servers = [ProviderChoice(name=f"mcp.{name}", available=True, host="here") for name in ("wiki", "notes")]
    confined = RunInfo("r-1", states.state(resolved=states.resolved(providers=servers, web=True)))
    asked = follow_up_options(RunOptions(), "And then?", confined)
    assert asked.assignments == ["search.providers=mcp.wiki,mcp.notes", "follow_up_of=r-1"]
    assert follow_up_options(RunOptions(web=True), "And then?", confined).assignments == ["follow_up_of=r-1"]
    with pytest.raises(CommandError, match="nothing is stored of the run r-2"):
        follow_up_options(RunOptions(), "And then?", RunInfo("r-2"))


def test_a_run_that_cannot_be_refreshed_says_why(home: Path) -> None:
    """A report of another strategy does not change by updates, and one that is not there cannot be compared with."""
    known = stored(status=RunStatus.CANCELLED)
    save_run(home, "other", known, closed=True)
    living = known.model_copy(deep=True)
    living.work.resolved = known.resolution.model_copy(update={"strategy": "living"})
    save_run(home, "unfinished", living, closed=True)
    for name, words in (("other", "only runs of the strategy living"), ("unfinished", "research resume unfinished")):
        done = research("refresh", name)
        assert (done.exit_code, done.stdout) == (2, "")
        assert words in done.stderr


@pytest.mark.usefixtures("no_children")
def test_two_reports_are_compared_by_files(home: Path) -> None:
    """Each change with its words before and after; nothing but the changes, and the same as one JSON document."""
    claim = {"id": "c-1", "text": "Three workers run by default. [1]", "section": "Limits", "verdict": "supported"}
    report = {"research_id": "r-1", "report": {"markdown": ""}, "ended_at": "2026-11-01", "claims": [claim]}
    changed = report | {"claims": [claim | {"text": "Five workers run by default. [2]"}]}
    paths = [home.parent / name for name in ("a.json", "b.json")]
    for path, document in zip(paths, (report, changed), strict=True):
        path.write_text(json.dumps(document))
    shown = research("diff", *map(str, paths))
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "worded anew, under “Limits”:",
        "- Three workers run by default. (supported)",
        "+ Five workers run by default. (supported)",
    ]
    assert research("diff", str(paths[0]), str(paths[0])).stdout == "no difference\n"
    found = json.loads(research("diff", *map(str, paths), "--json").stdout)
    assert [one["kind"] for one in found["claims"]] == ["worded_anew"]
    assert found["since"] == "2026-11-01"
