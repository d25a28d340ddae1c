"""Files of the product are for their owner alone; files that a person asked for keep the person's permissions.

Every process that writes to `RESEARCH_HOME` begins with `keep_files_private`. Its umask then holds for all that writes
there: our own code, SQLite, object stores, and the dev server, which inherits it.

The standard library alone: the keeper of the dev server uses this module.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

PRIVATE: Final = 0o077

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
