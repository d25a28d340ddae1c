"""What a terminal and a log show of a run."""

import asyncio
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from rich.console import Console, RenderableType

from client.client_errors import NoWorker, RunUnknown, ServerUnreachable
from client.handle import ResearchHandle
from client.view.console import PlainSink, TerminalSink, follow, status_rows
from client.view.words import MAX_TASK_LENGTH, event_lines, printable, usage_text
from contracts.outcome import (
    AgentProgress,
    Awaited,
    Counts,
    Event,
    EventPage,
    Mark,
    Progress,
    ResearchResult,
    ResearchStatus,
    UnitProgress,
    Usage,
)
from contracts.plan import Waiting, WaitKind
from contracts.presets import preset
from contracts.request import Depth
from contracts.tokens import FidelityTotals
from contracts.vocabulary import AgentStatus, Outcome, RunStatus, StopReason

NOW = datetime(2026, 11, 21, 10, 0, 7, tzinfo=UTC)
UNITS = [
    UnitProgress(name="planning", label="plan", mark=Mark.DONE, detail="4 sub-queries"),
    UnitProgress(name="gathering", label="gather", mark=Mark.RUNNING, detail="3 of 4"),
    UnitProgress(name="analysis", label="analyze"),
]
RESULT = ResearchResult(research_id="r", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS)
RUNNING = ResearchStatus(
    research_id="r-20261121-7k3f",
    query="How does it work?",
    status=RunStatus.RUNNING,
    engine="extractive",
    corpus="manual",
    egress="nothing leaves this machine",
    deadline_seconds=900.0,
    max_iterations=3,
    progress=Progress(units=UNITS),
    counts=Counts(documents_searched=1173, sources=3, findings=1),
    as_of="2026-11-21T10:00:00.000+00:00",
)


def status(**changes: Any) -> ResearchStatus:
    return RUNNING.model_copy(update=changes)


def test_a_decision_keeps_the_names_of_fields() -> None:
    """The action is in words; a setting that its reason names can be copied."""
    rows = status_rows(status(last_decision="judge_scope: raise limits.deadline_seconds"), NOW)
    assert "judge scope: raise limits.deadline_seconds" in [row.text for row in rows]


def plain(*parts: RenderableType, width: int = 100) -> str:
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(*parts)
    return file.getvalue()


def shown(known: ResearchStatus | None, *news: str, width: int = 100) -> str:
    sink = TerminalSink(Console(), "http://127.0.0.1:8233/x", "Ctrl-C …", lambda: NOW, known)
    sink.news.extend(news)
    return plain(sink.draw(), width=width)


def event(kind: str, text: str = "", **data: Any) -> Event:
    return Event(seq=1, type=kind, time="2026-11-21T10:11:12+00:00", text=text, data=data)


# --- the live view -------------------------------------------------------------------------------------------------


def test_a_long_task_is_shown_by_its_beginning() -> None:
    """A task of many sentences takes one row of the status, cut between words; `--json` has the whole."""
    task = "Find out how plans are read.\nReport " + "every option and its default, " * 60
    agent = AgentProgress(id="agent-1", task=task, strategy="agent", status=AgentStatus.RUNNING)
    row = next(row for row in status_rows(status(agents=[agent]), NOW) if row.label == "agent-1")
    assert row.text.startswith("running: Find out how plans are read. Report every option")
    assert row.text.endswith("…")
    assert len(row.text) <= len("running: ") + MAX_TASK_LENGTH


def test_the_live_view_shows_status_and_news() -> None:
    """Question, egress, clock, units, agents of all levels, calls, failures, news, and what a person is asked."""
    lower = AgentProgress(id="node-b", task="Costs", strategy="nest", status=AgentStatus.DONE)
    agent = AgentProgress(id="agent-1", task="History", strategy="agent", status=AgentStatus.RUNNING, phase="looking")
    agent = agent.model_copy(update={"agents": [lower]})
    waits = [Awaited(what="search: settings", since="2026-11-21T10:00:05+00:00")]
    waits += [
        Awaited(what="read \\[1\\]", since="2026-11-21T09:59:00+00:00", attempt=5, last_failure="503 from example.org")
    ]
    known = status(agents=[agent], awaiting=waits, last_failure="broken.pdf: encrypted")
    text = shown(known, "10:00:01 read: Vacuum", width=120)
    for part in (
        "How does it work?",
        "r-20261121-7k3f",
        "corpus manual (1,173 documents)",
        "nothing leaves this machine",
        "0:07 of 15:00",
        "no model, no cost",
        "✔ plan       4 sub-queries",
        "▸ gather     iteration 1 of 3 · 3 of 4",
        "○ analyze",
        "▸ agent-1    running, looking: History",
        "✔   node-b   done: Costs",
        "waiting    1:07 read [1] (attempt 5: 503 from example.org)",
        "0:02 search: settings",
        "found      3 sources, 1 finding, 0 open gaps",
        "failed     broken.pdf: encrypted",
        "10:00:01 read: Vacuum",
        "Ctrl-C …",
    ):
        assert part in text, part
    asked = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which one?"], round=1)
    text = shown(status(waiting=asked), width=140)
    assert ('research answer r-20261121-7k3f "…"' in text, "Which one?" in text) == (True, True)
    approval = Waiting(kind=WaitKind.APPROVAL, questions=["Since when?"], plan_version=2)
    text = shown(status(waiting=approval, outline=["Costs", "Limits"]), width=140)
    for part in (
        "§ Costs",
        "§ Limits",
        "Since when?",
        "research approve r-20261121-7k3f --version 2",
        "research answer",
    ):
        assert part in text, part
    assert "waiting for the first answer of a worker" in shown(None)


def test_the_share_of_shown_content_is_stated_if_it_is_not_all() -> None:
    """A line in the live view below `full`, with what helps below a half; in a log once for each band (S0-166)."""
    lines: list[str] = []
    sink, live = PlainSink(lines.append), list[bool]()
    for tokens in (100, 70, 65, 40, 70, 95):
        totals = FidelityTotals(calls=1, considered=100, shown=tokens, items=1, lowest=tokens / 100)
        sink.show(status(fidelity=totals), [])
        live.append("shown  " in shown(status(fidelity=totals), width=200))
    assert live == [False, True, True, True, True, False]
    assert [line[:40] for line in lines] == [
        "shown to models: 70% (condensed) of the ",
        "shown to models: 40% (compressed) of the",
    ]
    assert ["larger window" in line for line in lines] == [False, True]


def test_a_log_says_what_a_run_waits_for_and_why() -> None:
    """A call that fails again and again has a line after a while, and one a minute from then on."""
    lines: list[str] = []
    now = [NOW]
    sink = PlainSink(lines.append, clock=lambda: now[0])
    failing = Awaited(
        what="search: kilns", since="2026-11-21T10:00:00+00:00", attempt=4, last_failure="Example: a page"
    )
    calls = [failing, Awaited(what="read: a page", since="2026-11-21T09:59:00+00:00")]
    for seconds in (7, 20, 40, 79, 81):
        now[0] = NOW.replace(minute=seconds // 60, second=seconds % 60)
        sink.show(status(awaiting=calls), [])
    told = "search: kilns (attempt 4: Example: a page)"
    assert lines == [f"waiting for 0:20: {told}", f"waiting for 1:21: {told}"]
    sink.show(status(awaiting=[]), [])
    sink.show(status(awaiting=[failing, failing]), [])
    assert lines[2:] == ["waiting for 1:21: search: kilns, and for 1 more call (attempt 4: Example: a page)"]


def test_a_line_never_wraps_and_foreign_words_cannot_drive_the_terminal() -> None:
    """A long title is cut at the width of the terminal; control characters, direction marks and markup are text."""
    hostile = "\x1b[2J[bold]x[/bold]\u202e\r" + "long " * 100
    known, news = status(last_failure=hostile), event_lines([event("source.added", hostile)])
    narrow, wide = shown(known, *news, width=60), shown(known, *news, width=200)
    assert len(narrow.splitlines()) == len(wide.splitlines())
    assert "[bold]x[/bold]" in wide
    assert not set(wide) & set("\x1b\u202e\r")
    assert printable("two\nlines\x1b") == "two lines"


@pytest.mark.parametrize(
    ("engine", "usage", "words"),
    [
        ("extractive", Usage(), "no model, no cost"),
        ("model", Usage(model_calls=3, input_tokens=1000, output_tokens=200, cost_usd=None), "3 model calls · 1,200 tokens · cost unknown"),
        ("model", Usage(model_calls=1, cost_usd=0.5), "1 model call · 0 tokens · cost 0.50 USD of at most 2.00"),
        ("model", Usage(model_calls=1, cost_usd=None, partial_cost_usd=0.5), "1 model call · 0 tokens · cost 0.50 USD and what has no known price of at most 2.00"),
    ],
)  # fmt: skip
def test_cost_is_shown_with_its_cap_and_never_as_a_wrong_zero(engine: str, usage: Usage, words: str) -> None:
    """An unknown price is called unknown."""
    known = status(engine=engine, usage=usage, limits=preset("supervisor", Depth.MEDIUM))
    assert usage_text(known) == words


# --- following -----------------------------------------------------------------------------------------------------


@dataclass
class ScriptedRun:
    """Stands for a handle: five events, an end after so many looks, and faults."""

    looks: int = 2
    page_size: int = 200
    silent: int = 0
    """Looks without an answer."""
    faults: list[Exception] = field(default_factory=list)
    """Raised by waiting for the result, one after the other."""
    waits: list[Waiting | None] = field(default_factory=list)
    """By look."""
    cursors: list[int] = field(default_factory=list)
    agents: list[AgentProgress] = field(default_factory=list)
    """At work in the first look, done in the second."""
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def status(self) -> ResearchStatus:
        """A status, unless the run is silent."""
        if self.silent:
            self.silent -= 1
            raise NoWorker("no worker is polling")
        self.looks -= 1
        if self.looks <= 0:
            self._over.set()
        waiting = self.waits.pop(0) if self.waits else None
        agents = [self.agents.pop(0)] if self.agents else []
        return RUNNING.model_copy(update={"waiting": waiting, "agents": agents})

    async def events_of(self, agent: AgentProgress, after: int = 0) -> EventPage:
        kinds = ("tool.called", "task.started", "tool.called")
        every = [
            event(kind, f"search {n}", scope=agent.id).model_copy(update={"seq": n}) for n, kind in enumerate(kinds, 1)
        ]
        shown = every[:2] if agent.status is AgentStatus.RUNNING else every
        return EventPage(events=[one for one in shown if one.seq > after], next=shown[-1].seq)

    async def events(self, after: int = 0) -> EventPage:
        self.cursors.append(after)
        page = [Event(seq=place, type="x", time="", text=f"event {place}") for place in range(1, 6)]
        page = [each for each in page if each.seq > after][: self.page_size]
        return EventPage(events=page, next=page[-1].seq if page else after)

    async def result(self) -> ResearchResult:
        if self.faults:
            raise self.faults.pop(0)
        await self._over.wait()
        return RESULT


@dataclass
class Recorded(PlainSink):
    """Records each time that the view is paused and resumed."""

    write: Callable[[str], None] = lambda _: None
    pauses: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.pauses.append("pause")

    def resume(self) -> None:
        self.pauses.append("resume")


async def followed(run: ScriptedRun, sink: PlainSink, **options: Any) -> ResearchResult:
    return await follow(cast("ResearchHandle", run), sink, poll_seconds=0.01, **options)


async def test_every_event_is_printed_once_and_in_order() -> None:
    """Pages are followed to their end; later looks begin at the last cursor; silence is a notice and not the end."""
    lines: list[str] = []
    run = ScriptedRun(looks=3, page_size=2, silent=2)
    assert await followed(run, PlainSink(lines.append)) == RESULT
    assert lines == ["no worker is polling", *(f"event {place}" for place in range(1, 6))]
    assert run.cursors[:4] == [0, 2, 4, 5]


async def test_turns_of_agents_are_printed_beside_the_events_of_their_run() -> None:
    """While they work and, once more, after they have ended; what else happens in them is not (S3-015, S3-042)."""
    lines: list[str] = []
    states = (AgentStatus.RUNNING, AgentStatus.DONE, AgentStatus.DONE)
    agents = [
        AgentProgress(id="agent-1", task="x", strategy="agent", status=one, workflow_id="r/agent-1") for one in states
    ]
    await followed(ScriptedRun(looks=3, agents=agents), PlainSink(lines.append))
    assert [line.partition(" ")[2] for line in lines if "agent-1" in line] == ["agent-1: search 1", "agent-1: search 3"]


async def test_a_server_that_died_is_started_again() -> None:
    """Also one that does not know the run, because another came up in its place; the second such answer is final."""
    lines, recoveries = list[str](), list[int]()

    async def recover() -> None:
        recoveries.append(1)

    run = ScriptedRun(faults=[ServerUnreachable("gone"), RunUnknown("no run r")])
    assert await followed(run, PlainSink(lines.append), recover=recover) == RESULT
    assert (len(recoveries), any("restarting it" in line for line in lines)) == (2, True)
    with pytest.raises(RunUnknown):
        await followed(ScriptedRun(faults=[RunUnknown("x"), RunUnknown("x")]), Recorded(), recover=recover)
    with pytest.raises(ServerUnreachable):
        await followed(ScriptedRun(faults=[ServerUnreachable("gone")]), Recorded())


async def test_each_wait_is_asked_once_and_ends_with_it() -> None:
    """The view pauses for each question, and a question that is answered elsewhere is withdrawn."""
    questions = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which?"], round=1)
    approval = Waiting(kind=WaitKind.APPROVAL, plan_version=2)
    asked, withdrawn = list[WaitKind](), list[WaitKind]()

    async def ask(waiting: Waiting) -> None:
        asked.append(waiting.kind)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            withdrawn.append(waiting.kind)
            raise

    sink = Recorded()
    waits = [None, questions, questions, approval, approval]
    await followed(ScriptedRun(looks=6, waits=list[Waiting | None](waits)), sink, ask=ask)
    assert asked == withdrawn == [WaitKind.CLARIFICATION, WaitKind.APPROVAL]
    assert sink.pauses == ["pause", "resume"] * 2
