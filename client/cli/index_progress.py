"""How far the index of a folder is: a bar on a terminal, a line every few seconds elsewhere."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from client.cli import output
from client.view.rendering import printable
from providers.interfaces import IndexProgress

NAME_COLUMNS = 48
LINE_SECONDS = 2.0

Show = Callable[[IndexProgress], None]


@asynccontextmanager
async def index_progress(name: str, *, quiet: bool) -> AsyncIterator[Show | None]:
    """A callback for `refresh`; looking through a large folder is shown, too, although nothing can be counted yet."""
    if quiet:
        yield None
    elif output.terminal().is_terminal:
        with _Bar(name) as show:
            yield show
    else:
        lines = _Lines(name)
        ticking = asyncio.create_task(lines.tick())
        try:
            yield lines.show
        finally:
            ticking.cancel()


class _Lines:
    """Writes where it stands, but nothing of an index that is ready at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._started = time.monotonic()
        self._progress: IndexProgress | None = None

    def show(self, progress: IndexProgress) -> None:
        self._progress = progress

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(LINE_SECONDS)
            seen = self._progress
            seconds = time.monotonic() - self._started
            what = "looking through the folder" if seen is None else f"{seen.done:,} of {seen.total:,} documents read"
            output.tell(f"corpus {self._name}: {what} ({seconds:.0f} s)")


class _Bar:
    def __init__(self, name: str) -> None:
        from rich.progress import (  # noqa: PLC0415  only a terminal needs it
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[current]}", markup=False),
        )
        self._progress = Progress(*columns, console=output.terminal(), transient=True)
        self._task = self._progress.add_task(f"looking through {printable(name)}", total=None, current="")
        self._name = printable(name)

    def __enter__(self) -> Show:
        self._progress.start()
        return self.show

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def show(self, progress: IndexProgress) -> None:
        self._progress.update(
            self._task,
            description=f"reading {self._name}",
            completed=progress.done,
            total=progress.total,
            current=printable(progress.current)[-NAME_COLUMNS:],
        )
