"""Watch a run: ask for `status` and `events(after)` once a second, and show both live or as plain lines."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

from rich.console import Console, RenderableType
from rich.live import Live

from client.client_errors import ClientError, RunUnknown, ServerUnreachable
from client.handle import ResearchHandle
from client.view.rendering import Frame, render_live
from client.view.words import AGENT_EVENTS, event_lines, fidelity_words, queue_words
from contracts.outcome import Event, ResearchResult, ResearchStatus
from contracts.plan import Waiting, WaitKind
from contracts.tokens import Band
from contracts.vocabulary import AgentStatus

Ask = Callable[[Waiting], Awaitable[None]]
"""Asks the person at this terminal, or prints the commands that answer."""

POLL_SECONDS: Final = 1.0
FRAMES_PER_SECOND: Final = 4
SHOWN_NEWS: Final = 4  # lines below the live view


@dataclass
class TerminalSink:
    """The live view: it is drawn several times a second, so that clocks continue between two answers of the run."""

    console: Console
    frame: Frame
    clock: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())
    _status: ResearchStatus | None = None
    _news: deque[str] = field(default_factory=lambda: deque(maxlen=SHOWN_NEWS))
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
        if self._live is not None:
            self.frame = replace(self.frame, hint="", notice="")
            self._live.stop()

    def show(self, status: ResearchStatus, news: list[Event]) -> None:
        """Use this status and the newest lines for the next frame."""
        self._status = status
        self._news.extend(event_lines(news))

    def notice(self, text: str) -> None:
        """Show a line of the watcher itself."""
        self.frame = replace(self.frame, notice=text)

    def pause(self) -> None:
        """Stop drawing; the last frame stays above the question."""
        if self._live is not None:
            self._live.stop()

    def resume(self) -> None:
        """Draw below the answer."""
        self.__enter__()

    def draw(self) -> RenderableType:
        """Draw one frame."""
        return render_live(self._status, self._news, self.frame, self.clock())


@dataclass
class PlainSink:
    """Lines for logs and pipes; with an empty `write`, a quiet command."""

    write: Callable[[str], None]
    _notice: str = ""
    _bands: set[Band] = field(default_factory=lambda: {Band.FULL})
    """Bands of fidelity that need no line, or had one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, status: ResearchStatus, news: list[Event]) -> None:
        """Write the news, and once for each band below `full` how much models were shown."""
        for line in event_lines(news):
            self.write(line)
        if status.fidelity is not None and status.fidelity.band not in self._bands:
            self._bands.add(status.fidelity.band)
            self.write(f"shown to models: {fidelity_words(status.fidelity)}")

    def notice(self, text: str) -> None:
        """Write a notice once."""
        if text and text != self._notice:
            self.write(text)
        self._notice = text

    def pause(self) -> None:
        """Continue: lines are never in the way."""

    def resume(self) -> None:
        """Continue."""


Sink = TerminalSink | PlainSink


async def follow(
    handle: ResearchHandle,
    sink: Sink,
    *,
    recover: Callable[[], Awaitable[None]] | None = None,
    poll_seconds: float = POLL_SECONDS,
    ask: Ask | None = None,
) -> ResearchResult:
    """Show a run until it is over and give its result.

    `ask` is called for each new wait for a person, and cancelled when that is over; its errors end the following.
    `recover` is called when the server does not answer, or does not know the run: a dev server may have been replaced
    by another one. Without it raises `ServerUnreachable` and `RunUnknown`.
    """
    watcher = _Watcher(handle, sink, ask)
    ending = asyncio.create_task(_result(handle, recover, sink))
    try:
        while not ending.done():
            await watcher.look()
            await asyncio.wait({ending}, timeout=poll_seconds)
        result = await ending
        await watcher.look()
        watcher.conclude(result)
    finally:
        await watcher.stop_asking()
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError, ClientError):
            await ending
    return result


class _Watcher:
    """Passes answers of the run on to a sink; a query that fails becomes a notice, the next one may work."""

    def __init__(self, handle: ResearchHandle, sink: Sink, ask: Ask | None) -> None:
        self._handle, self._sink, self._ask = handle, sink, ask
        self._waiting: tuple[WaitKind, int, int] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._status: ResearchStatus | None = None
        self._cursor = 0
        self._agents: dict[str, int] = {}
        """Cursors of the agents that were at work at the last look, by workflow."""

    async def look(self) -> None:
        """Read status and events once, and ask the person if the run waits for one."""
        try:
            self._status = await self._handle.status()
            news = [*await self._news(), *await self._news_of_agents(self._status)]
        except ClientError as error:
            self._sink.notice(str(error))
            return
        self._sink.notice(queue_words(self._status))
        self._sink.show(self._status, sorted(news, key=lambda event: event.time))
        await self._ask_person(self._status.waiting)

    def conclude(self, result: ResearchResult) -> None:
        """Show that the run is over, also where no worker answers any more."""
        if self._status is not None:
            over = {"outcome": result.outcome, "awaiting": [], "elapsed_seconds": result.usage.active_seconds}
            self._sink.show(self._status.model_copy(update=over), [])

    async def stop_asking(self) -> None:
        """Withdraw an open question."""
        if self._asking is not None:
            asking, self._asking = self._asking, None
            asking.cancel()
            self._sink.resume()
            with contextlib.suppress(asyncio.CancelledError, ClientError):
                await asking

    async def _ask_person(self, waiting: Waiting | None) -> None:
        """Ask a new question, and withdraw one that was answered from another terminal."""
        now = None if waiting is None else (waiting.kind, waiting.round, waiting.plan_version)
        if self._asking is not None and (self._asking.done() or now != self._waiting):
            await self.stop_asking()
        if waiting is not None and now != self._waiting and self._ask is not None:
            self._sink.pause()
            self._asking = asyncio.ensure_future(self._ask(waiting))
        self._waiting = now

    async def _news(self) -> list[Event]:
        news: list[Event] = []
        while (page := await self._handle.events(self._cursor)).events:
            news += page.events
            self._cursor = page.next
        return news

    async def _news_of_agents(self, status: ResearchStatus) -> list[Event]:
        """Return turns and thoughts of agents at work, and of those that have ended since the last look."""
        at_work, news = dict[str, int](), list[Event]()
        for _, agent in (each for top in status.agents for each in top.with_all_below()):
            is_working = agent.status is AgentStatus.RUNNING
            if is_working or agent.workflow_id in self._agents:
                page = await self._handle.events_of(agent, self._agents.get(agent.workflow_id, 0))
                news += [event for event in page.events if event.type in AGENT_EVENTS]
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
