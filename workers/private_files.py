"""The umask: files of the product are for their owner alone; reports have the permissions that the person's shell sets.

Every process that writes to `RESEARCH_HOME` starts with `restrict_files_to_owner`. Its umask then applies to all that
writes there: our own code, SQLite, object stores, and the dev server, which inherits it.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

PRIVATE: Final = 0o077

_umask_of_person = PRIVATE


def restrict_files_to_owner() -> None:
    """Let this process and its children create files for their owner alone."""
    global _umask_of_person  # noqa: PLW0603  a process has one umask
    before = os.umask(PRIVATE)
    _umask_of_person = _umask_of_person if before == PRIVATE else before


def umask_of_person() -> int:
    """Return the umask of the person's shell, for reports and for the person's own commands."""
    return _umask_of_person


@contextlib.contextmanager
def files_of_person() -> Iterator[None]:
    """Create files with the person's own umask."""
    before = os.umask(_umask_of_person)
    try:
        yield
    finally:
        os.umask(before)
