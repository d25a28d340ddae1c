"""Watching a run: the queries `status` and `events(after)` once a second, shown live or as plain lines."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import Segment

from client.client_errors import ClientError, RunUnknown, ServerUnreachable
from client.handle import ResearchHandle
from client.view.live_view import LiveView, fold, with_status
from client.view.plain_lines import SILENT_SECONDS, SILENT_SECONDS_OF_WAITS, PlainLines, describe_standing
from client.view.rendering import Frame, queue_words, render_live
from contracts.outcome import Event, ResearchResult, ResearchStatus
from contracts.plan import Waiting, WaitKind

Ask = Callable[[Waiting], Awaitable[None]]
"""Asks a person at this terminal, or says where an answer can be given."""

POLL_SECONDS: Final = 1.0
FRAMES_PER_SECOND: Final = 4
LAST_LOOK_SECONDS: Final = 5.0
FRAME_BEGINS: Final = "\x1b[?2026h"
FRAME_ENDS: Final = "\x1b[?2026l"


class Sink(Protocol):
    """Where a watcher shows what it sees."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def show(self, view: LiveView, news: list[Event]) -> None:
        """A newer view, and the events that made it newer."""

    def notice(self, text: str) -> None:
        """A word of the watcher itself; empty takes it back."""

    def give_way(self) -> None:
        """Leave the terminal to a question."""

    def come_back(self) -> None:
        """Show the run again."""


class SteadyLive(Live):
    """Draws a frame only when it differs from the one before, and so that the terminal shows it at once.

    Terminals that know DEC's mode 2026 show nothing of what stands between its two marks until the second; the others
    pass over them.
    """

    _shown: list[list[Segment]] | None = None

    def refresh(self) -> None:
        """Draw the frame if there is anything new in it."""
        with self._lock:
            frame = self.console.render_lines(self.get_renderable())
            if frame == self._shown:
                return
            self._shown = frame
            self.console.file.write(FRAME_BEGINS)
            super().refresh()
            self.console.file.write(FRAME_ENDS)
            self.console.file.flush()


@dataclass
class TerminalSink:
    """The live view. It looks several times a second whether there is anything new to draw: the clock goes on."""

    console: Console
    frame: Frame
    view: LiveView = field(default_factory=LiveView)
    clock: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())
    _live: Live | None = None

    def __enter__(self) -> Self:
        self._live = SteadyLive(
            console=self.console,
            get_renderable=self.draw,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self.frame = replace(self.frame, hint="", notice="")
            self._live.stop()

    def show(self, view: LiveView, news: list[Event]) -> None:
        """Keep the newest view for the next frame."""
        del news
        self.view = view

    def notice(self, text: str) -> None:
        """Show a line of the watcher itself."""
        self.frame = replace(self.frame, notice=text)

    def give_way(self) -> None:
        """Stop drawing; what was drawn stays above the question."""
        if self._live is not None:
            self._live.stop()

    def come_back(self) -> None:
        """Draw below what was said."""
        self.__enter__()

    def draw(self) -> RenderableType:
        """One frame: the clock goes on between two answers of the run."""
        return render_live(self.view, replace(self.frame, now=self.clock()))


@dataclass
class PlainSink:
    """Lines for logs and pipes: the news, and after a while without any where the run stands."""

    write: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _lines: PlainLines = field(default_factory=PlainLines)
    _spoke_at: float | None = None
    _notice: str = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, view: LiveView, news: list[Event]) -> None:
        """Write the news."""
        lines = self._lines.of(news)
        now = self.clock()
        over = view.status is not None and view.status.outcome is not None
        waits = view.status is not None and view.status.waiting is not None
        silent = SILENT_SECONDS_OF_WAITS if waits else SILENT_SECONDS
        if not lines and not over and self._spoke_at is not None and now - self._spoke_at >= silent:
            lines = [describe_standing(view, datetime.now().astimezone())]
        for line in lines:
            self.write(line)
        if lines or self._spoke_at is None:
            self._spoke_at = now

    def notice(self, text: str) -> None:
        """Write a notice once."""
        if text and text != self._notice:
            self.write(text)
        self._notice = text

    def give_way(self) -> None:
        """Lines are never in the way."""

    def come_back(self) -> None:
        """Lines are never in the way."""


class QuietSink:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, view: LiveView, news: list[Event]) -> None:
        """Nothing."""

    def notice(self, text: str) -> None:
        """Nothing."""

    def give_way(self) -> None:
        """Nothing."""

    def come_back(self) -> None:
        """Nothing."""


async def follow(
    handle: ResearchHandle,
    sink: Sink,
    *,
    recover: Callable[[], Awaitable[None]] | None = None,
    poll_seconds: float = POLL_SECONDS,
    ask: Ask | None = None,
) -> ResearchResult:
    """Show a run until it is over and give its result.

    `ask` is called each time that the run waits for something new of a person, and cancelled when it no longer does;
    what it raises ends the following.

    `recover` is called when the server does not answer, or when whatever answers does not know the run (the dev
    server can be restarted, and another may have come up in its place); without it `ServerUnreachable` is raised.
    """
    watcher = _Watcher(handle, sink, ask)
    ending = asyncio.create_task(_result(handle, recover, sink))
    try:
        while not ending.done():
            await watcher.look()
            await asyncio.wait({ending}, timeout=poll_seconds)
        result = await ending
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_LOOK_SECONDS):
                await watcher.look()
        watcher.conclude(result)
    finally:
        await watcher.close()
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError, ClientError):
            await ending
    return result


class _Watcher:
    """Folds what the queries tell; a query that fails is told as a notice, the next one may work."""

    def __init__(self, handle: ResearchHandle, sink: Sink, ask: Ask | None) -> None:
        self._handle, self._sink, self._ask_person = handle, sink, ask
        self._asked: tuple[WaitKind, int, int] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._view = LiveView()
        self._cursor = 0

    async def look(self) -> None:
        try:
            status, news = await self._ask()
        except ClientError as error:
            self._sink.notice(str(error))
            return
        self._sink.notice(queue_words(status))
        self._view = with_status(fold(self._view, news), status)
        self._sink.show(self._view, news)
        await self._look_after_person(status.waiting)

    def conclude(self, result: ResearchResult) -> None:
        """Show that the run is over, also where nobody answers any more."""
        status = self._view.status
        if status is not None and status.outcome is None:
            over = {"outcome": result.outcome, "awaiting": [], "elapsed_seconds": result.usage.active_seconds}
            self._view = with_status(self._view, status.model_copy(update=over))
            self._sink.show(self._view, [])

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError, ClientError):
                await self._asking
            self._asking = None
            self._sink.come_back()

    async def _look_after_person(self, waiting: Waiting | None) -> None:
        """Begin to ask for what is new, and stop asking what somebody answered elsewhere."""
        now = None if waiting is None else (waiting.kind, waiting.round, waiting.plan_version)
        if self._asking is not None and (self._asking.done() or now != self._asked):
            asking, self._asking = self._asking, None
            asking.cancel()
            self._sink.come_back()
            with contextlib.suppress(asyncio.CancelledError, ClientError):
                await asking
        if waiting is not None and now != self._asked and self._ask_person is not None:
            self._sink.give_way()
            self._asking = asyncio.ensure_future(self._ask_person(waiting))
        self._asked = now

    async def _ask(self) -> tuple[ResearchStatus, list[Event]]:
        status = await self._handle.status()
        news: list[Event] = []
        while True:
            page = await self._handle.events(self._cursor)
            news.extend(page.events)
            if page.next == self._cursor or not page.events:
                return status, news
            self._cursor = page.next


async def _result(handle: ResearchHandle, recover: Callable[[], Awaitable[None]] | None, sink: Sink) -> ResearchResult:
    doubted = False
    while True:
        try:
            return await handle.result()
        except (ServerUnreachable, RunUnknown) as error:
            if recover is None or (doubted and isinstance(error, RunUnknown)):
                raise
            doubted = isinstance(error, RunUnknown)
            sink.notice("the server stopped: restarting it, the run continues where it was")
            await recover()
