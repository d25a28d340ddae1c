"""Folders and files that a person names: which can be used."""

import os
import tempfile
from pathlib import Path
from typing import Final

from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError

SET_HOME: Final = "set RESEARCH_HOME to a folder that can be"
NO_DOCUMENTS: Final = ("/proc", "/sys", "/dev")
"""What the kernel shows as files: endless, ever changing, and without any documents."""


def folder_named(given: str) -> Path:
    """The folder that a text names. Raises `CommandError`, also for no text: an unset variable is not this folder."""
    if not given.strip():
        raise CommandError("the name of the folder is empty; the one you are in is written .")
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
        raise CommandError(f"{path} is the whole file system: name the folder of the documents")
    if any(path.is_relative_to(place) for place in NO_DOCUMENTS):
        raise CommandError(f"{path} holds no documents, but what the kernel shows as files")
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
        reason = (error.strerror or type(error).__name__).lower()
        raise CommandError(f"{path} cannot be written: {reason}; {what}", ExitCode.FAILED) from None
