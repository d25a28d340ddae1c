"""`corpus add|list|status|remove`, and the index of a folder before a run."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode, quote
from client.cli.folders import SET_HOME, ensure_folder, folder_named, name_for, name_of_folder
from client.view.rendering import printable
from contracts.resolved import CorpusSnapshot
from contracts.texts import plural
from providers.errors import CorpusUnknown
from providers.interfaces import IndexProgress

SHOWN_SKIPPED = 20


async def add(folder: str, *, name: str | None, quiet: bool) -> int:
    """Register a folder and index it."""
    path = folder_named(folder)
    async with open_context() as context:
        registered = await registered_folders(context)
        chosen = name_of_folder(path, registered) if name is None else name_for(name, path, registered)
        snapshot = await index(context, chosen, path, quiet=quiet)
    output.say(f"{snapshot.name}: {summary(snapshot)}")
    output.tell(f'research run "…" --corpus {snapshot.name}')
    return ExitCode.COMPLETED


async def list_corpora(*, as_json: bool) -> int:
    """Every corpus with its folder."""
    async with open_context() as context:
        library = await context.stores.corpora()
        folders = await library.searchable()
        rows = [(await library.describe(name), folders[name]) for name in sorted(folders)]
    if as_json:
        output.document([snapshot.model_dump(mode="json") | {"folder": _show(path)} for snapshot, path in rows])
    for snapshot, path in [] if as_json else rows:
        output.say(f"{snapshot.name:<20} {summary(snapshot):<40} {_show(path)}")
    if not rows and not as_json:
        output.tell("no corpus yet: research corpus add ./folder")
    return ExitCode.COMPLETED


async def status(name: str, *, as_json: bool) -> int:
    """What the index holds and what was left out."""
    async with open_context() as context:
        library = await context.stores.corpora()
        try:
            snapshot = await library.describe(name)
        except CorpusUnknown:
            raise CommandError(_unknown(name)) from None
        skipped = await library.skipped(name)
        folder = _show((await library.searchable())[name])
    if as_json:
        output.document(
            snapshot.model_dump(mode="json")
            | {"folder": folder, "skipped_files": [entry.__dict__ for entry in skipped]}
        )
        return ExitCode.COMPLETED
    output.say(f"{snapshot.name}: {summary(snapshot)} in {folder}")
    output.say(f"digest {snapshot.digest or '-'}, indexed {snapshot.indexed_at or 'not yet'}")
    for entry in skipped[:SHOWN_SKIPPED]:
        output.say(f"  skipped {printable(entry.path)}  {entry.kind}: {printable(entry.reason)}")
    if len(skipped) > SHOWN_SKIPPED:
        output.say(f"  … and {len(skipped) - SHOWN_SKIPPED} more: research corpus status {name} --json")
    return ExitCode.COMPLETED


async def remove(name: str) -> int:
    """Forget a folder and its index."""
    async with open_context() as context:
        library = await context.stores.corpora()
        try:
            library.remove(name)
            await library.withdraw(name)
        except CorpusUnknown:
            raise CommandError(_unknown(name)) from None
    output.say(f"{name} is forgotten; its documents stay where they are")
    return ExitCode.COMPLETED


async def index(context: CommandContext, name: str, folder: Path | None, *, quiet: bool) -> CorpusSnapshot:
    """Register a folder if one is given, and bring its index up to date, showing how far it is."""
    ensure_folder(context.settings.home, SET_HOME)
    library = await context.stores.corpora()
    if folder is not None and (name not in library.names() or library.definition(name).path != folder):
        library.add(name, folder)
    async with index_progress(name, quiet=quiet) as show:
        return await library.refresh(name, show)


async def registered_folders(context: CommandContext) -> dict[str, Path]:
    """Folder by name of every corpus that is known here."""
    library = await context.stores.corpora()
    return {name: library.definition(name).path for name in library.names()}


def _show(folder: Path | None) -> str:
    return "published by another host" if folder is None else str(folder)


def _unknown(name: str) -> str:
    return f"no corpus is called {quote(name)}: research corpus list shows the known ones"


def summary(snapshot: CorpusSnapshot) -> str:
    """How many documents there are, and how many were left out."""
    skipped = f", {snapshot.skipped} skipped (research corpus status {snapshot.name})" if snapshot.skipped else ""
    return plural(snapshot.files, "document") + skipped


NAME_COLUMNS = 48
LINE_SECONDS = 2.0

Show = Callable[[IndexProgress], None]


@asynccontextmanager
async def index_progress(name: str, *, quiet: bool) -> AsyncIterator[Show | None]:
    """A callback for `refresh`; looking through a large folder is shown, too, although nothing can be counted yet."""
    if quiet:
        yield None
    elif output.terminal().is_terminal:
        with _draw_bar(printable(name)) as show:
            yield show
    else:
        seen: deque[IndexProgress] = deque(maxlen=1)
        ticking = asyncio.create_task(_write_lines(name, seen))
        try:
            yield seen.append
        finally:
            ticking.cancel()


async def _write_lines(name: str, seen: deque[IndexProgress]) -> None:
    """Write where it stands, but nothing of an index that is ready at once."""
    started = time.monotonic()
    while True:
        await asyncio.sleep(LINE_SECONDS)
        what = f"{seen[-1].done:,} of {seen[-1].total:,} documents read" if seen else "looking through the folder"
        output.tell(f"corpus {name}: {what} ({time.monotonic() - started:.0f} s)")


@contextmanager
def _draw_bar(name: str) -> Iterator[Show]:
    from rich import progress as bars  # noqa: PLC0415  only a terminal needs it

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(bar_width=24),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.fields[current]}", markup=False),
    )
    with bars.Progress(*columns, console=output.terminal(), transient=True) as bar:
        task = bar.add_task(f"looking through {name}", total=None, current="")

        def show(progress: IndexProgress) -> None:
            current = printable(progress.current)[-NAME_COLUMNS:]
            bar.update(
                task, description=f"reading {name}", completed=progress.done, total=progress.total, current=current
            )

        yield show
