"""`corpus add|list|status|remove`, and the index of a folder before a run."""

from collections.abc import Awaitable
from pathlib import Path

from client.cli import output
from client.cli.context import CommandContext, open_desk
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError, quoted
from client.cli.folders import SET_HOME, ensure_folder, folder_named
from client.cli.index_progress import index_progress
from client.cli.research_ids import ALLOWED
from client.view.rendering import plural, printable
from contracts.resolved import CorpusSnapshot
from providers.errors import CorpusUnknown

SHOWN_SKIPPED = 20


async def add(folder: str, *, name: str | None, quiet: bool) -> int:
    """Register a folder and index it."""
    if name is not None and not ALLOWED.fullmatch(name):
        raise CommandError("--name takes up to 64 letters, digits, dots, underscores and hyphens")
    path = folder_named(folder)
    async with open_desk() as context:
        chosen = name or await named_folder(context, path)
        snapshot = await index(context, chosen, path, quiet=quiet)
    output.say(f"{snapshot.name}: {summary(snapshot)}")
    output.tell(f'research run "…" --corpus {snapshot.name}')
    return ExitCode.COMPLETED


async def list_corpora(*, as_json: bool) -> int:
    """Every corpus with its folder."""
    async with open_desk() as context:
        library = await context.stores.corpora()
        folders = await library.searchable()
        rows = [(await library.describe(name), folders[name]) for name in sorted(folders)]
    if as_json:
        output.document([snapshot.model_dump(mode="json") | {"folder": _shown(path)} for snapshot, path in rows])
    for snapshot, path in [] if as_json else rows:
        output.say(f"{snapshot.name:<20} {summary(snapshot):<40} {_shown(path)}")
    if not rows and not as_json:
        output.tell("no corpus yet: research corpus add ./folder")
    return ExitCode.COMPLETED


async def status(name: str, *, as_json: bool) -> int:
    """What the index holds and what was left out."""
    async with open_desk() as context:
        library = await context.stores.corpora()
        snapshot = await _known(library.describe(name), name)
        skipped = await library.skipped(name)
        folder = _shown((await library.searchable())[name])
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
    async with open_desk() as context:
        library = await context.stores.corpora()
        try:
            library.remove(name)
            await library.withdraw(name)
        except CorpusUnknown:
            raise CommandError(_unknown(name)) from None
    output.say(f"{name} is forgotten; its documents are where they were")
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


async def named_folder(context: CommandContext, folder: Path) -> str:
    """The name that a folder has or gets."""
    from client.cli.asking import name_of_folder  # noqa: PLC0415  the request comes with it, which `list` does not need

    return name_of_folder(folder, await registered_folders(context))


async def _known(work: Awaitable[CorpusSnapshot], name: str) -> CorpusSnapshot:
    try:
        return await work
    except CorpusUnknown:
        raise CommandError(_unknown(name)) from None


def _shown(folder: Path | None) -> str:
    return "published by another host" if folder is None else str(folder)


def _unknown(name: str) -> str:
    return f"no corpus is called {quoted(name)}: research corpus list shows the known ones"


def summary(snapshot: CorpusSnapshot) -> str:
    """How many documents there are, and how many were left out."""
    skipped = f", {snapshot.skipped} skipped (research corpus status {snapshot.name})" if snapshot.skipped else ""
    return plural(snapshot.files, "document") + skipped
