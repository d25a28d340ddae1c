"""Folders and files that a person names: which can be used."""

import os
import tempfile
from pathlib import Path
from typing import Final

from client.cli.command_errors import CommandError, ExitCode, quote, reason_of
from client.cli.research_ids import ALLOWED
from contracts.addresses import short_hash

SET_HOME: Final = "set RESEARCH_HOME to a folder that can be"
NO_DOCUMENTS: Final = ("/proc", "/sys", "/dev")
"""What the kernel shows as files: endless, ever changing, and without any documents."""
NAME_CHARACTERS: Final = 48


def folder_named(given: str) -> Path:
    """The folder that a text names. Raises `CommandError`, also for no text: an unset variable is not this folder."""
    if not given.strip():
        raise CommandError("the folder's name is empty: write . for the current folder")
    return usable_folder(Path(given))


def usable_folder(given: Path) -> Path:
    """The folder with its real path. Raises `CommandError` for what is no folder or can be no corpus."""
    try:
        path = given.expanduser().resolve()
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "no usable path"
        raise CommandError(f"the folder cannot be used: {reason}") from None
    if not is_folder:
        raise CommandError(
            f"{given} is a file; a corpus is a folder of documents" if exists else f"{given} is no folder"
        )
    if path == Path(path.anchor):
        raise CommandError(f"{path} is the root of the file system: name the folder of your documents")
    if any(path.is_relative_to(place) for place in NO_DOCUMENTS):
        raise CommandError(f"{path} holds kernel files and no documents: name another folder")
    if not os.access(path, os.R_OK | os.X_OK):
        raise CommandError(f"{given} cannot be read: permission denied")
    return path


def exists(given: str) -> bool:
    """Whether there is anything at a path; a path that cannot be one is none."""
    try:
        return Path(given).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def start_of_file(path: Path, size: int, what: str) -> bytes:
    """At most so many bytes of a file. Raises `CommandError` when there is none or it cannot be read."""
    try:
        if path.is_dir():
            raise CommandError(f"{what} {path} is a folder")
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "no usable path"
        raise CommandError(f"{what} {path} cannot be read: {reason}") from None


def ensure_folder(path: Path, what: str) -> None:
    """Make a folder that is to be written to. Raises `CommandError` while nothing has been done for it yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {reason_of(error)}; {what}", ExitCode.FAILED) from None


def find_corpus(given: str, registered: dict[str, Path]) -> tuple[str, Path | None]:
    """Name, and the folder to register for it: none for a name that is known.

    Raises `CommandError`, also for a name that means two folders: the wrong one would be searched without a word.
    """
    known = None if looks_like_path(given) else registered.get(given)
    if known is None:
        if given.strip() and not exists(given):
            raise CommandError(unknown_corpus(given, registered))
        folder = folder_named(given)
        return name_of_folder(folder, registered), folder
    beside = Path(given).resolve()
    if not beside.is_dir() or beside == known.resolve():
        if not known.is_dir():
            raise CommandError(
                f"the folder of the corpus {given} is gone: {known}; "
                f"name another folder, or forget it with: research corpus remove {given}"
            )
        return given, None
    if known.is_dir():
        raise CommandError(f"{given} names both a corpus and a folder here: write {known} or ./{given}")
    return name_of_folder(beside, registered), usable_folder(beside)


def corpus_of_cluster(given: str) -> str:
    """A name that the cluster's workers may know. Raises `CommandError`."""
    if looks_like_path(given):
        raise CommandError("a cluster's workers cannot read your folders: name a corpus of their configuration")
    return given


def looks_like_path(given: str) -> bool:
    """Whether a folder is meant, whatever corpora there are."""
    return "/" in given or given.startswith((".", "~"))


def name_of_folder(folder: Path, registered: dict[str, Path]) -> str:
    """A stable name for a folder: the one it has, else its own, with a hash when that means another folder."""
    for name, path in registered.items():
        if path == folder:
            return name
    allowed = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in folder.name)
    plain = allowed.strip("._-")[:NAME_CHARACTERS] or "corpus"
    return plain if plain not in registered else f"{plain}-{short_hash(str(folder))[:6]}"


def name_for(wanted: str, folder: Path | None, registered: dict[str, Path]) -> str:
    """The name that a person gives a folder. Raises `CommandError`, also for one that is another folder's."""
    if not ALLOWED.fullmatch(wanted):
        raise CommandError("--name takes up to 64 letters, digits, dots, underscores and hyphens")
    if folder is None:
        raise CommandError("--name names a folder, and --corpus names none: write --corpus ./FOLDER --name NAME")
    if registered.get(wanted, folder) != folder:
        raise CommandError(
            f"the name {wanted} is that of {registered[wanted]}: choose another --name, "
            f"or forget it with: research corpus remove {wanted}"
        )
    return wanted


def unknown_corpus(given: str, registered: dict[str, Path]) -> str:
    """What to say when neither a folder nor a corpus is called so."""
    known = f"known corpora: {', '.join(sorted(registered))}" if registered else "no corpus is registered yet"
    return f"there is no folder and no corpus {quote(given)}; {known}"
