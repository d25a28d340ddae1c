"""Files of the product are for their owner alone; files that a person asked for keep the person's permissions.

Every process that writes to `RESEARCH_HOME` begins with `keep_files_private`. Its umask then holds for all that writes
there: our own code, SQLite, object stores, and the dev server, which inherits it.

The standard library alone: the keeper of the dev server uses this module.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o077
CONTENTS: Final = frozenset(
    (
        "engine sessions content corpora cache shared.sqlite3 logs opened crashes deleted left-behind report-folders"
    ).split()
)
"""What the product creates in its home; SQLite adds further files beside its own."""

_umask_of_person: int | None = None


def keep_files_private() -> None:
    """Let this process and its children create files for their owner alone."""
    global _umask_of_person  # noqa: PLW0603  a process has one umask
    before = os.umask(PRIVATE)
    if _umask_of_person is None:
        _umask_of_person = before


def umask_of_person() -> int:
    """The umask of the person's shell: it holds for reports and for the person's own commands."""
    return PRIVATE if _umask_of_person is None else _umask_of_person


@contextlib.contextmanager
def files_of_person() -> Iterator[None]:
    """Create files with the person's own umask."""
    if _umask_of_person is None:
        yield
        return
    os.umask(_umask_of_person)
    try:
        yield
    finally:
        os.umask(PRIVATE)


@dataclass(frozen=True)
class Repair:
    """What `repair_home` found and changed."""

    owner: int
    closed: int = 0
    """How many files and folders other users could read until now."""
    foreign: int = 0
    """How many belong to another user, or could not be changed."""
    shared: bool = False
    """Whether the home contains files of other programs; then the folder itself is left as it is."""


def repair_home(home: Path, user: int) -> Repair:
    """Make what the product created in its home private to the owner. Raises OSError.

    A home of another user is left alone, and so is everything that the product did not create: the folder may have
    other uses.
    """
    found = home.stat()
    if found.st_uid != user:
        return Repair(found.st_uid)
    ours = [entry for entry in os.scandir(home) if _is_ours(entry.name)]
    shared = len(ours) < sum(1 for _ in os.scandir(home))
    done = [] if shared else [_close(home, user, follow=True)]
    for entry in ours:
        done += [_close(Path(entry.path), user)]
        if entry.is_dir(follow_symlinks=False):
            for folder, folders, files in os.walk(entry.path):
                done += [_close(Path(folder, name), user) for name in (*folders, *files)]
    return Repair(user, done.count(True), done.count(None), shared)


def _is_ours(name: str) -> bool:
    return name in CONTENTS or name.startswith("shared.sqlite3-")


def _close(path: Path, user: int, *, follow: bool = False) -> bool | None:
    """Make a path private; whether it was not, or None if it belongs to another user."""
    try:
        found = path.stat(follow_symlinks=follow)
        if stat.S_ISLNK(found.st_mode) or not found.st_mode & PRIVATE:
            return False
        if found.st_uid != user:
            return None
        path.chmod(stat.S_IMODE(found.st_mode) & ~PRIVATE)
    except FileNotFoundError:
        return False
    except PermissionError:
        return None
    return True
