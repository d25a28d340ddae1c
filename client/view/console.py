"""Watch a run: read `status` and `events(after)` once a second, and draw both live or as plain lines."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from client.client_errors import ClientError, RunUnknown, ServerUnreachable
from client.handle import ResearchHandle
from client.view import words
from contracts.outcome import Event, Mark, ResearchResult, ResearchStatus
from contracts.plan import Waiting, WaitKind
from contracts.texts import plural
from contracts.tokens import Band
from contracts.vocabulary import NATURAL_STOPS, AgentStatus, Outcome

Ask = Callable[[Waiting], Awaitable[None]]
"""Asks the person at this terminal, or prints the commands that answer."""

POLL_SECONDS: Final = 1.0
FRAMES_PER_SECOND: Final = 4
MAX_NEWS_LINES: Final = 4  # below the live view
MAX_DRAFT_LINES: Final = 10  # of the report so far, below these
WRITTEN: Final = "report.updated"
"""Type of the event of a new text."""
MARKS: Final = {
    Mark.WAITING: ("dim", "○"),
    Mark.RUNNING: ("bold cyan", "▸"),
    Mark.DONE: ("green", "✔"),
    Mark.FAILED: ("red", "✖"),
}
"""Style and symbol of a unit of work."""
AGENT_MARKS: Final = {
    AgentStatus.QUEUED: Mark.WAITING,
    AgentStatus.RUNNING: Mark.RUNNING,
    AgentStatus.DONE: Mark.DONE,
}
"""Marks of agents; an agent with any other status has failed."""
ENDINGS: Final = {
    Outcome.COMPLETED: ("✔", "bold green"),
    Outcome.PARTIAL: ("◐", "bold yellow"),
    Outcome.EMPTY: ("○", "bold yellow"),
    Outcome.CANCELLED: ("■", "bold yellow"),
}
MAX_WAIT_LINES: Final = 5
FIRST_WAIT_SECONDS: Final = 15.0
"""After which a call that fails again and again has a line in a log."""
WAIT_SECONDS: Final = 60.0
"""After which such a call has another line."""
STATIC_ROWS: Final = ("searching", "started", "decided")
"""Labels of the rows for which the live view has no room."""


# --- the lines of a status -------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A line of a status."""

    label: str
    text: str
    style: str = ""
    sign: str = " "

    def line(self) -> str:
        """Return the line as plain text."""
        return f"{self.sign} {self.label:<10} {words.printable(self.text)}".rstrip()


def status_rows(status: ResearchStatus, now: datetime, word: str = "") -> list[Row]:
    """Return everything known about a run, one row per fact; `word` replaces a stored status that no longer holds."""
    started = status.engine != ""
    counts = status.counts
    documents = counts.documents_searched
    searched = ""
    if status.corpus and documents is not None:
        searched = f" ({plural(documents, 'document')})"
    corpus = f"corpus {status.corpus}{searched}" if status.corpus else ""
    limit = ""
    if status.deadline_seconds:
        limit = f" of {words.duration(status.deadline_seconds)}"
    totals = f"{plural(counts.sources, 'source')}, {plural(counts.findings, 'finding')}"
    rows = [
        Row("run", f"{status.research_id}  {word or status.status.value.replace('_', ' ')}"),
        Row("queued", f"place {status.queue_place} of {status.queue_length}" if status.queue_place else ""),
        Row("question", status.query, "bold"),
        Row("with", " · ".join(filter(None, (status.strategy, status.engine, corpus))) if started else ""),
        Row("text", status.egress),
        Row("expected", status.estimate),
        Row("searching", words.providers_text(status.providers) if status.web else ""),
        Row("started", words.local_time(status.started_at)),
        Row("time", words.duration(words.elapsed_at(status, now)) + limit if started or status.elapsed_seconds else ""),
        Row("used", words.usage_text(status) if started else ""),
        Row("shown", words.fidelity_text(status.fidelity), "yellow" if _is_shortened(status) else ""),
        *_work(status),
        *_waits(status, now),
        Row("found", f"{totals}, {plural(counts.gaps_open, 'open gap')}" if started else ""),
        Row("decided", _decision_words(status.last_decision)),
        *(Row("guidance", f"{guidance.origin}: “{guidance.text}”") for guidance in status.guidance),
        Row("failed", status.last_failure, "red"),
        Row("ended", _ended(status)),
    ]
    return [row for row in rows if row.text or row.sign != " "]


def _is_shortened(status: ResearchStatus) -> bool:
    return status.fidelity is not None and status.fidelity.band is not Band.FULL


def _work(status: ResearchStatus) -> Iterable[Row]:
    """Yield a row for each unit of the strategy and for each agent."""
    for unit in status.progress.units:
        iteration = ""
        if status.max_iterations > 1:
            iteration = f"iteration {status.iteration} of {status.max_iterations}"
        parts = (iteration if unit.mark is Mark.RUNNING else "", unit.detail)
        yield Row(unit.label, " · ".join(filter(None, parts)), *MARKS[unit.mark])
    for level, agent in (pair for top in status.agents for pair in top.walk()):
        mark = AGENT_MARKS.get(agent.status, Mark.FAILED)
        yield Row(
            f"{'  ' * (level - 1)}{agent.id}", f"{words.agent_text(agent)}: {words.task_text(agent)}", *MARKS[mark]
        )


def _waits(status: ResearchStatus, now: datetime) -> Iterable[Row]:
    """Yield the open question to a person with the commands that answer it, and the pending calls."""
    waiting = status.waiting if status.outcome is None else None
    if waiting is not None:
        yield Row("asked", f"{waiting.describe()}, until {words.local_time(waiting.expires_at)}", "bold yellow")
        for heading in status.outline:
            yield Row("", f"§ {heading}", "yellow")
        for question in waiting.questions:
            yield Row("", question, "yellow")
        for objection in status.objections:
            yield Row("", f"too wide: {objection.line()}", "yellow")
        if waiting.phrase and not status.objections:  # a narrow terminal cuts the command that ends with it
            yield Row("", f"phrase: {waiting.phrase}", "bold yellow")
        for command in waiting.ways(status.research_id):
            yield Row("", words.pasteable(command), "yellow")
    waits = words.waits_of(status, now)
    more = [f"and {len(waits) - MAX_WAIT_LINES} more"] if len(waits) > MAX_WAIT_LINES else []
    for index, wait in enumerate([*waits[:MAX_WAIT_LINES], *more]):
        yield Row("" if index else "waiting", wait, "cyan")


def _decision_words(decision: str) -> str:
    """Return a decision with its action in words; names of fields in its reason remain."""
    action, colon, reason = decision.partition(":")
    return action.replace("_", " ") + colon + reason


def _ended(status: ResearchStatus) -> str:
    if status.stop_reason is None:
        return ""
    when = ""
    if status.ended_at:
        when = f"{words.local_time(status.ended_at)}: "
    if status.outcome is Outcome.PARTIAL and status.stop_reason in NATURAL_STOPS:
        return f"{when}see the limitations in the report"
    return when + status.stop_reason.text


def render_ending(result: ResearchResult) -> Text:
    """Draw the end of a run in one line."""
    sign, style = ENDINGS.get(result.outcome, ("✖", "bold red"))
    return Text(f"{sign} {words.ending_text(result)}", style=style)


# --- the live view ---------------------------------------------------------------------------------------------------


@dataclass
class TerminalSink:
    """The live view, redrawn several times a second so that its clocks run on between answers of the run."""

    console: Console
    web_address: str | None = None
    hint: str = ""
    clock: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())
    status: ResearchStatus | None = None
    news: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_NEWS_LINES))
    """Newest lines of the log."""
    read_draft: Callable[[], Awaitable[str]] | None = None
    """Reads the text of the report so far, whose end is shown below the log; None: it is not shown."""
    _draft: Sequence[str] = ()
    """Last lines of that text."""
    _reading: asyncio.Task[None] | None = None
    _notice: str = ""
    _live: Live | None = None

    def __enter__(self) -> Self:
        self._live = Live(
            console=self.console,
            get_renderable=self.draw,
            refresh_per_second=FRAMES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._live is not None:
            self.hint = self._notice = ""
            self._draft = ()  # the whole text follows
            self._live.stop()

    def show(self, status: ResearchStatus, news: list[Event]) -> None:
        """Use this status and the newest lines for the next frame."""
        self.status = status
        self.news.extend(words.event_lines(news))
        is_written = any(event.type == WRITTEN for event in news)
        if is_written and self.read_draft is not None and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._show_draft(self.read_draft))

    async def _show_draft(self, read: Callable[[], Awaitable[str]]) -> None:
        """Read the end of the text; a run that does not answer shows what it had before."""
        with contextlib.suppress(ClientError):
            text = await read()
            self._draft = [line for line in map(words.printable, text.splitlines()) if line][-MAX_DRAFT_LINES:]

    def notice(self, text: str) -> None:
        """Show a line of the watcher itself."""
        self._notice = text

    def pause(self) -> None:
        """Stop drawing; the last frame stays above the question."""
        if self._live is not None:
            self._live.stop()

    def resume(self) -> None:
        """Draw again, below the answer."""
        self.__enter__()

    def draw(self) -> RenderableType:
        """Draw one frame."""
        rows = [Row("", "waiting for the first answer of a worker", "dim")]
        if self.status is not None:
            hidden = STATIC_ROWS if _is_shortened(self.status) else (*STATIC_ROWS, "shown")
            rows = [row for row in status_rows(self.status, self.clock()) if row.label not in hidden]
        lines = [(row.line(), row.style) for row in rows]
        if self.web_address:
            lines += [(Row("web UI", self.web_address).line(), "dim")]
        lines += [(line, "dim") for line in self.news]
        lines += [(line, "") for line in self._draft]
        if self._notice:
            lines += [(words.printable(self._notice), "bold yellow")]
        texts = [Text(line, style=style, no_wrap=True, overflow="ellipsis") for line, style in lines]
        if self.hint:
            texts.append(Text(words.printable(self.hint), style="dim"))  # it wraps, so its commands stay whole
        return Group(*texts)


@dataclass
class PlainSink:
    """Lines for logs and pipes; with an empty `write`, a quiet command."""

    write: Callable[[str], None]
    clock: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())
    _notice: str = ""
    _next_wait: float = FIRST_WAIT_SECONDS
    """Seconds of a wait after which it has its next line."""
    _bands: set[Band] = field(default_factory=lambda: {Band.FULL})
    """Bands of fidelity that need no line or already had one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, status: ResearchStatus, news: list[Event]) -> None:
        """Write the news, a call that fails again and again, and once for each band below `full` the share shown."""
        for line in words.event_lines(news):
            self.write(line)
        waited, text = words.retries_of(status, self.clock())
        if waited >= self._next_wait:
            self.write(text)
            self._next_wait = waited + WAIT_SECONDS
        elif not text:
            self._next_wait = FIRST_WAIT_SECONDS
        if status.fidelity is not None and status.fidelity.band not in self._bands:
            self._bands.add(status.fidelity.band)
            self.write(f"shown to models: {words.fidelity_text(status.fidelity)}")

    def notice(self, text: str) -> None:
        """Write a notice unless it repeats the last one."""
        if text and text != self._notice:
            self.write(text)
        self._notice = text

    def pause(self) -> None:
        """Do nothing: lines are never in the way."""

    def resume(self) -> None:
        """Do nothing."""


Sink = TerminalSink | PlainSink


async def follow(
    handle: ResearchHandle,
    sink: Sink,
    *,
    recover: Callable[[], Awaitable[None]] | None = None,
    poll_seconds: float = POLL_SECONDS,
    ask: Ask | None = None,
) -> ResearchResult:
    """Show a run until it is over and return its result.

    `ask` is called for each new wait for a person and cancelled when the wait is over; its errors end the loop.
    `recover` is called when the server does not answer or has no such run, because a dev server may have been replaced
    by another one. Without it raises `ServerUnreachable` and `RunUnknown`.
    """
    watcher = _Watcher(handle, sink, ask)
    ending = asyncio.create_task(_result(handle, recover, sink))
    try:
        while not ending.done():
            await watcher.poll()
            await asyncio.wait({ending}, timeout=poll_seconds)
        result = await ending
        await watcher.poll()
        watcher.conclude(result)
    finally:
        await watcher.stop_asking()
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError, ClientError):
            await ending
    return result


class _Watcher:
    """Passes answers of the run to a sink; a failed query becomes a notice, because the next may succeed."""

    def __init__(self, handle: ResearchHandle, sink: Sink, ask: Ask | None) -> None:
        self._handle = handle
        self._sink = sink
        self._ask = ask
        self._waiting: tuple[WaitKind, int, int] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._status: ResearchStatus | None = None
        self._cursor = 0
        self._agents: dict[str, int] = {}
        """Cursors of the agents that were running at the last poll, by workflow id."""

    async def poll(self) -> None:
        """Query status and events once, and ask the person if the run waits for one."""
        try:
            self._status = await self._handle.status()
            news = [*await self._news(), *await self._news_of_agents(self._status)]
        except ClientError as error:
            self._sink.notice(str(error))
            return
        self._sink.notice(words.queue_text(self._status))
        self._sink.show(self._status, sorted(news, key=lambda event: event.time))
        await self._ask_person(self._status.waiting)

    def conclude(self, result: ResearchResult) -> None:
        """Show that the run is over, even if no worker answers any more."""
        if self._status is not None:
            seconds = result.usage.active_seconds
            self._sink.show(self._status.with_fields(outcome=result.outcome, awaiting=[], elapsed_seconds=seconds), [])

    async def stop_asking(self) -> None:
        """Withdraw an open question."""
        if self._asking is not None:
            asking = self._asking
            self._asking = None
            asking.cancel()
            self._sink.resume()
            with contextlib.suppress(asyncio.CancelledError, ClientError):
                await asking

    async def _ask_person(self, waiting: Waiting | None) -> None:
        """Ask a new question, and withdraw one that another terminal answered."""
        question = None if waiting is None else (waiting.kind, waiting.round, waiting.plan_version)
        if self._asking is not None and (self._asking.done() or question != self._waiting):
            await self.stop_asking()
        if waiting is not None and question != self._waiting and self._ask is not None:
            self._sink.pause()
            self._asking = asyncio.ensure_future(self._ask(waiting))
        self._waiting = question

    async def _news(self) -> list[Event]:
        news: list[Event] = []
        while (page := await self._handle.events(self._cursor)).events:
            news += page.events
            self._cursor = page.next
        return news

    async def _news_of_agents(self, status: ResearchStatus) -> list[Event]:
        """Return the tool calls of running agents, and of those that ended since the last poll."""
        at_work: dict[str, int] = {}
        news: list[Event] = []
        for _, agent in (pair for top in status.agents for pair in top.walk()):
            is_working = agent.status is AgentStatus.RUNNING
            if is_working or agent.workflow_id in self._agents:
                page = await self._handle.events_of(agent, self._agents.get(agent.workflow_id, 0))
                news += [event for event in page.events if event.type in words.AGENT_EVENTS]
                if is_working:
                    at_work[agent.workflow_id] = page.next
        self._agents = at_work
        return news


async def _result(handle: ResearchHandle, recover: Callable[[], Awaitable[None]] | None, sink: Sink) -> ResearchResult:
    forgotten = 0
    while True:
        try:
            return await handle.result()
        except (ServerUnreachable, RunUnknown) as error:
            forgotten += isinstance(error, RunUnknown)
            if recover is None or forgotten > 1:
                raise
            sink.notice("the server stopped: restarting it, the run continues where it was")
            await recover()
