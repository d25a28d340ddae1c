"""Watching a run."""

import asyncio
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from rich.console import Console

from client.client_errors import NoWorker, RunUnknown, ServerUnreachable
from client.handle import ResearchHandle
from client.view.console import FRAME_BEGINS, FRAME_ENDS, PlainSink, QuietSink, SteadyLive, TerminalSink, follow
from client.view.live_view import LiveView
from client.view.rendering import Frame
from contracts.outcome import Awaited, Event, EventPage, ResearchResult, ResearchStatus
from contracts.plan import Waiting, WaitKind
from contracts.vocabulary import Outcome, RunStatus, StopReason

RESULT = ResearchResult(research_id="r", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS)


@dataclass
class ScriptedRun:
    """Stands for a handle: a fixed list of events, an end after so many looks, and faults."""

    looks: int = 2
    page_size: int = 200
    silent: int = 0
    """How many looks get no answer."""
    outages: int = 0
    """How often waiting for the result finds no server."""
    unknown: int = 0
    """How often waiting for the result finds an engine that does not know the run."""
    seen: list[int] = field(default_factory=list)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def status(self) -> ResearchStatus:
        """A status, unless the run is silent."""
        if self.silent:
            self.silent -= 1
            raise NoWorker("no worker is polling")
        self.looks -= 1
        if self.looks <= 0:
            self._over.set()
        return ResearchStatus(research_id="r", query="q", status=RunStatus.RUNNING)

    async def events(self, after: int = 0) -> EventPage:
        """Pages of five events."""
        self.seen.append(after)
        all_of_them = [Event(seq=place, type="status", time="", text=f"event {place}") for place in range(1, 6)]
        page = [event for event in all_of_them if event.seq > after][: self.page_size]
        return EventPage(events=page, next=page[-1].seq if page else after)

    async def result(self) -> ResearchResult:
        """The result once the looks are used up."""
        if self.outages:
            self.outages -= 1
            raise ServerUnreachable("gone")
        if self.unknown:
            self.unknown -= 1
            raise RunUnknown("the server knows no run r")
        await self._over.wait()
        return RESULT


def as_handle(run: ScriptedRun) -> ResearchHandle:
    """The stand-in as what `follow` takes."""
    return cast("ResearchHandle", run)


async def test_every_event_is_told_once_and_in_order() -> None:
    """Pages are followed to their end; later looks begin where the last one ended."""
    lines: list[str] = []
    run = ScriptedRun(looks=3, page_size=2)
    assert await follow(as_handle(run), PlainSink(lines.append), poll_seconds=0.01) == RESULT
    assert lines == [f"event {place}" for place in range(1, 6)]
    assert run.seen[:4] == [0, 2, 4, 5]


@dataclass
class KeptViews(QuietSink):
    """Keeps what is shown."""

    views: list[LiveView] = field(default_factory=list)

    def show(self, view: LiveView, news: list[Event]) -> None:
        """Keep it."""
        self.views.append(view)


async def test_the_last_picture_is_that_of_a_run_that_is_over() -> None:
    """Also where nobody answers the last look: no clock goes on, and nothing is waited for any more."""

    class Waiting(ScriptedRun):
        async def status(self) -> ResearchStatus:
            status = await super().status()
            self.silent = self.looks <= 0
            since = datetime.now(tz=UTC).isoformat()
            return status.model_copy(update={"as_of": since, "awaiting": [Awaited(what="reflect", since=since)]})

    sink = KeptViews()
    await follow(as_handle(Waiting(looks=2)), sink, poll_seconds=0.01)
    seen, last = sink.views[-2].status, sink.views[-1].status
    assert seen is not None
    assert last is not None
    assert (seen.outcome, len(seen.awaiting)) == (None, 1)
    assert (last.outcome, last.awaiting, last.elapsed_seconds) == (Outcome.COMPLETED, [], 0.0)


def test_a_silent_run_is_told_of_now_and_then() -> None:
    """Without news a line every ten seconds says that the run goes on."""
    now, lines = [0.0], list[str]()
    sink = PlainSink(lines.append, clock=lambda: now[0])
    for second in range(21):
        now[0] = float(second)
        sink.show(LiveView(), [])
    assert len(lines) == 2
    assert all("waiting" in line for line in lines)


def test_a_wait_for_a_person_is_not_repeated_all_the_time() -> None:
    """It may take days: a line every ten minutes is enough for a log."""
    now, lines = [0.0], list[str]()
    sink = PlainSink(lines.append, clock=lambda: now[0])
    waiting = Waiting(kind=WaitKind.APPROVAL, plan_version=1)
    status = ResearchStatus(research_id="r", query="q", status=RunStatus.AWAITING_APPROVAL, waiting=waiting)
    for second in range(0, 1_210, 10):
        now[0] = float(second)
        sink.show(LiveView(status=status), [])
    assert len(lines) == 2
    assert all(line.endswith("research approve r --version 1") for line in lines)


async def test_silence_is_told_and_not_the_end() -> None:
    """No answer for a while is a notice; the view goes on when answers come again."""
    lines: list[str] = []
    await follow(as_handle(ScriptedRun(silent=2)), PlainSink(lines.append), poll_seconds=0.01)
    assert lines[0] == "no worker is polling"
    assert lines.count("no worker is polling") == 1
    assert lines[-1] == "event 5"


async def test_a_server_that_died_is_started_again() -> None:
    """With a way to recover the watcher goes on; the person is told."""
    lines: list[str] = []
    recovered: list[int] = []

    async def recover() -> None:
        recovered.append(1)

    run = ScriptedRun(outages=2)
    result = await follow(as_handle(run), PlainSink(lines.append), recover=recover, poll_seconds=0.01)
    assert (result, len(recovered)) == (RESULT, 2)
    assert any("restarting it" in line for line in lines)


async def test_an_engine_that_does_not_know_the_run_is_doubted_once() -> None:
    """Another engine may have come up in the place of the run's own; one that says so twice is believed."""
    recovered: list[int] = []

    async def recover() -> None:
        recovered.append(1)

    run = ScriptedRun(outages=1, unknown=1)
    assert await follow(as_handle(run), QuietSink(), recover=recover, poll_seconds=0.01) == RESULT
    assert len(recovered) == 2
    with pytest.raises(RunUnknown):
        await follow(as_handle(ScriptedRun(unknown=2)), QuietSink(), recover=recover, poll_seconds=0.01)


async def test_without_a_way_to_recover_the_loss_is_an_error() -> None:
    """A cluster that is gone is not started by us."""
    with pytest.raises(ServerUnreachable):
        await follow(as_handle(ScriptedRun(outages=1)), QuietSink(), poll_seconds=0.01)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_the_picture_changes_although_nothing_happens() -> None:
    """The clock goes on between two things that happen in a run, however often its unchanged status is read."""
    now = [NOON]
    sink = TerminalSink(Console(file=io.StringIO()), Frame("r", "q"), clock=lambda: now[0])
    status = ResearchStatus(
        research_id="r", query="q", status=RunStatus.RUNNING, elapsed_seconds=5, as_of=NOON.isoformat()
    )

    def picture() -> str:
        sink.show(LiveView(status=status.model_copy()), [])
        console = Console(file=io.StringIO(), width=80)
        console.print(sink.draw())
        return cast("io.StringIO", console.file).getvalue()

    assert "0:05" in picture()
    now[0] += timedelta(seconds=2)
    assert "0:07" in picture()


def test_a_frame_is_drawn_once_and_as_a_whole() -> None:
    """Nothing is written while nothing changed; what changed stands between the marks of a synchronised update."""
    now, file = [NOON], io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=True, width=60), Frame("r", "q"), clock=lambda: now[0])
    live = SteadyLive(console=sink.console, get_renderable=sink.draw, auto_refresh=False)
    status = ResearchStatus(research_id="r", query="q", status=RunStatus.RUNNING, as_of=NOON.isoformat())
    sink.show(LiveView(status=status), [])
    live.start(refresh=True)
    first = file.getvalue()
    live.refresh()
    assert file.getvalue() == first
    now[0] += timedelta(seconds=1)
    live.refresh()
    news = file.getvalue().removeprefix(first)
    assert news.startswith(FRAME_BEGINS)
    assert news.endswith(FRAME_ENDS)
    assert "0:01" in news
    live.stop()
