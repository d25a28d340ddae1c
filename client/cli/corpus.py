"""Folders of documents: `corpus add|list|status|remove`, the folder of `--corpus`, and its index before a run."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from client.cli.context import CommandContext
from client.cli.options import AsJson, Commands, Quiet, check_name
from client.cli.output import CommandError, ensure_folder, print_hint, print_json, print_progress, print_result, quote
from client.view.words import pasteable, printable
from contracts.addresses import short_hash
from contracts.resolved import CorpusSnapshot
from contracts.texts import plural
from providers.errors import NewerSchema

SET_HOME: Final = "set RESEARCH_HOME to another folder"
KERNEL_FOLDERS: Final = ("/proc", "/sys", "/dev")
NAME_CHARACTERS: Final = 48
OTHER_HOST: Final = "published by another host"
PROGRESS_STEP: Final = 320  # documents per line of progress; a multiple of the batch size of an index

corpus = Commands(no_args_is_help=True, help="Folders of documents that runs may search.")
commands = Commands()
commands.add_typer(corpus, name="corpus")
CorpusName = Annotated[str, Argument(metavar="NAME", help="the name of the corpus")]


@corpus.command("add")
async def add_corpus(
    context: CommandContext,
    folder: Annotated[str, Argument(metavar="DIR", help="the folder")],
    *,
    name: Annotated[str | None, Option(metavar="NAME", help="[the folder's name]", callback=check_name)] = None,
    quiet: Quiet = False,
) -> None:
    """Register a folder under a name and index it."""
    unknown = f"{quote(folder)} is not there: name a folder of documents"
    path = usable_folder(folder, unknown)
    registered = await context.stores.corpus_folders()
    chosen = name_of_folder(path, registered) if name is None else name
    if registered.get(chosen, path) != path:
        raise CommandError(f"the name {chosen} is that of {registered[chosen]}: choose another --name")
    snapshot = await index_corpus(context, chosen, path, quiet=quiet)
    print_result(pasteable(f"{snapshot.name}: {summary(snapshot)}"))
    print_hint(f'research run "…" --corpus {snapshot.name}')


@corpus.command("list")
async def list_corpora(context: CommandContext) -> None:
    """List the corpora known here with their folders."""
    library = await context.stores.corpora()
    folders = await library.searchable()
    for name in sorted(folders):
        try:
            found = summary(await library.describe(name))
        except NewerSchema as error:  # it hides no other
            found = str(error)
        location = folders[name] or OTHER_HOST
        print_result(pasteable(f"{name:<20} {found:<40} {location}"))
    if not folders:
        print_hint("there is no corpus yet: research corpus add ./folder")


@corpus.command("status")
async def corpus_status(context: CommandContext, name: CorpusName, *, as_json: AsJson = False) -> None:
    """Print the contents of an index, the files that were skipped with their reasons, and the parts not read."""
    library = await context.stores.corpora()
    snapshot = await library.describe(name)
    skipped = await library.skipped(name)
    warnings = await library.warnings(name)
    folder = str((await library.searchable())[name] or OTHER_HOST)
    if as_json:
        files = [entry.__dict__ for entry in skipped]
        print_json(snapshot.model_dump(mode="json") | {"folder": folder, "skipped_files": files, "warnings": warnings})
        return
    print_result(f"{snapshot.name}: {summary(snapshot)} in {folder}")
    print_result(f"digest {snapshot.digest or '-'}, indexed {snapshot.indexed_at or 'not yet'}")
    for entry in skipped:
        print_result(f"  skipped {printable(entry.path)}  {entry.kind}: {printable(entry.reason)}")
    for path, warning in warnings:
        print_result(f"  warning {printable(path)}  {printable(warning)}")


@corpus.command("remove")
async def remove_corpus(context: CommandContext, name: CorpusName) -> None:
    """Forget a folder and its index; the documents themselves stay."""
    library = await context.stores.corpora()
    with suppress(NewerSchema):
        await library.describe(name)  # raises for an unknown one
    await library.remove(name)
    print_result(f"{name} is removed; its documents stay in their folder")


# --- the folder of a run -------------------------------------------------------------------------------------------


def find_corpus(target: str, registered: Mapping[str, Path], *, cluster: bool) -> tuple[str, Path | None]:
    """Return the name of a corpus, and the folder to register for it (None for a known name).

    Raises `CommandError`, also if a name means both a corpus and a different folder.
    """
    is_path = "/" in target or target.startswith((".", "~"))
    if cluster:
        if is_path:
            raise CommandError("a cluster's workers cannot read your folders: name a corpus of their configuration")
        return target, None
    path = None if is_path else registered.get(target)
    if path is None:
        folder = usable_folder(target, unknown_corpus(target, registered))
        return name_of_folder(folder, registered), folder
    if not path.is_dir():
        raise CommandError(f"the folder of the corpus {target} is gone: {path}; research corpus remove {target}")
    local_folder = Path(target).resolve()
    if local_folder.is_dir() and local_folder != path.resolve():
        raise CommandError(f"{target} names both a corpus and a folder here: write {path} or ./{target}")
    return target, None


def usable_folder(folder: str, message: str) -> Path:
    """Return the real path of a usable folder. Raises `CommandError`, with the message `message` if there is none."""
    if not folder.strip():  # an unset variable of the shell must not mean the current folder
        raise CommandError("the folder's name is empty: write . for the current folder")
    try:
        path = Path(folder).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise CommandError(message) from None
    if not path.is_dir():
        raise CommandError(f"{folder} is a file: name a folder of documents")
    if path == Path(path.anchor) or any(path.is_relative_to(system_folder) for system_folder in KERNEL_FOLDERS):
        raise CommandError(f"{path} belongs to the system: name the folder of your documents")
    if str(path) != os.fsencode(path).decode("utf-8", "replace"):
        raise CommandError(f"the name of {folder} is not valid UTF-8: rename the folder")
    if not os.access(path, os.R_OK | os.X_OK):
        raise CommandError(f"you may not read {folder}: change its permissions, or name another folder")
    return path


def name_of_folder(folder: Path, registered: Mapping[str, Path]) -> str:
    """Return the registered name of a folder, else its own name, with a hash if another folder has that name."""
    for name, path in registered.items():
        if path == folder:
            return name
    allowed = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in folder.name)
    plain = allowed.strip("._-")[:NAME_CHARACTERS] or "corpus"
    if plain not in registered:
        return plain
    return f"{plain}-{short_hash(str(folder))[:6]}"


def unknown_corpus(target: str, registered: Mapping[str, Path]) -> str:
    """Return the message that no folder or corpus has this name."""
    known = "no corpus is registered yet"
    if registered:
        known = f"known corpora: {', '.join(sorted(registered))}"
    return f"there is no folder and no corpus {quote(target)}; {known}"


async def index_corpus(context: CommandContext, name: str, folder: Path | None, *, quiet: bool) -> CorpusSnapshot:
    """Register a folder, if given, and bring its index up to date, printing progress."""
    ensure_folder(context.settings.home, SET_HOME)
    library = await context.stores.corpora()
    if folder is not None and (name not in library.names() or library.definition(name).path != folder):
        library.add(name, folder)
    return await library.refresh(name, None if quiet else _show_progress)


def summary(snapshot: CorpusSnapshot) -> str:
    """Return the numbers of documents and skipped files as text, or what an index is missing for."""
    if not snapshot.indexed_at:
        return f"not indexed yet (`research corpus add FOLDER --name {snapshot.name}`, or a run, indexes it)"
    skipped = ""
    if snapshot.skipped:
        skipped = f", {snapshot.skipped} skipped (`research corpus status {snapshot.name}`)"
    return plural(snapshot.files, "document") + skipped


def _show_progress(done: int, total: int) -> None:
    if done and done % PROGRESS_STEP == 0:
        print_progress(f"{done:,} of {total:,} documents read")
