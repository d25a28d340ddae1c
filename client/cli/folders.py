"""Folders that a person names as a corpus: which can be one."""

import os
from pathlib import Path
from typing import Final

from client.cli.failures import CommandError

NO_DOCUMENTS: Final = ("/proc", "/sys", "/dev")
"""What the kernel shows as files: endless, ever changing, and without any documents."""


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
