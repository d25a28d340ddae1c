"""A run as its watchers see it: asked for its state while somebody looks, once for all who do."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

POLL_SECONDS: Final = 0.3
"""A change is seen at most half a second after it happened."""
ENDED_POLL_SECONDS: Final = 5.0
KEEP_ALIVE_SECONDS: Final = 10.0
"""Proxies cut streams that are silent for 30 s."""
CLOSING_CHECK_SECONDS: Final = 0.5
MIN_PAUSE_SECONDS: Final = 0.05
MAX_WATCHERS: Final = 100

logger = structlog.get_logger("workers")


@dataclass(frozen=True)
class View:
    """What one page shows, as HTML, with its number; the number of a page that did not change stays."""

    number: int = 0
    """-1 after a defect."""
    html: str = ""


@dataclass
class Watch:
    """One thing that somebody looks at."""

    draw: Callable[[], Awaitable[tuple[str, bool]]]
    """Returns the HTML, and true if it will hardly change again."""
    view: View = View()
    watchers: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    task: "asyncio.Task[None] | None" = None

    async def run(self) -> None:
        """Draw again and again; each change wakes the watchers, and so does a defect, which ends their streams."""
        try:
            while True:
                began = time.monotonic()
                html, is_final = await self.draw()
                if html != self.view.html:
                    await self._show(View(self.view.number + 1, html))
                pause = ENDED_POLL_SECONDS if is_final else POLL_SECONDS
                await asyncio.sleep(max(MIN_PAUSE_SECONDS, pause - (time.monotonic() - began)))
        except Exception:
            logger.exception("page.ended")
            await self._show(View(-1))

    async def _show(self, view: View) -> None:
        async with self.changed:
            self.view = view
            self.changed.notify_all()


class Watches:
    """What is looked at now, by name."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self.is_closing: Callable[[], bool] = lambda: False
        """Returns true once the server closes, which ends the streams: browsers then ask again by themselves."""

    @property
    def watchers(self) -> int:
        """Return the number of open streams."""
        return sum(watch.watchers for watch in self._watches.values())

    async def follow(self, name: str, draw: Callable[[], Awaitable[tuple[str, bool]]]) -> AsyncIterator[str]:
        """Yield server-sent events: the HTML at first and after each change, and a comment in long silences."""
        watch = self._watches.setdefault(name, Watch(draw))
        watch.watchers += 1
        if watch.task is None:
            watch.task = asyncio.create_task(watch.run())
        seen = 0
        yield "retry: 1000\n\n"
        try:
            silent = 0.0
            while watch.view.number >= 0 and not self.is_closing():
                try:
                    async with asyncio.timeout(CLOSING_CHECK_SECONDS):
                        view = await self._next(watch, seen)
                except TimeoutError:
                    silent += CLOSING_CHECK_SECONDS
                    if silent >= KEEP_ALIVE_SECONDS:
                        silent = 0.0
                        yield ": still here\n\n"
                    continue
                silent = 0.0
                if view.number > seen:
                    seen = view.number
                    yield event(view.html)
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                self._watches.pop(name, None)
                watch.task.cancel()

    @staticmethod
    async def _next(watch: Watch, seen: int) -> View:
        async with watch.changed:
            await watch.changed.wait_for(lambda: watch.view.number > seen or watch.view.number < 0)
            return watch.view


def event(html: str) -> str:
    """Return one server-sent event with this HTML."""
    return "".join(f"data: {line}\n" for line in html.splitlines()) + "\n"
