"""This process: its event loop, its end without waiting for threads that are no longer needed, and its umask."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import uvloop

T = TypeVar("T")

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""Objects, and collections of younger generations, before the garbage collector runs. With the default of 700 a worker
spends a tenth of its processor time on collections that find little: messages are trees, freed by reference counts."""


class UnawaitedThreads(ThreadPoolExecutor):
    """Threads whose end the event loop does not await: a walk through a huge folder cannot be interrupted."""

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Start no further call; running calls continue."""
        super().shutdown(wait=False, cancel_futures=True)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """`uvloop.run`, without waiting for threads at the end. Raises the errors of the work, and KeyboardInterrupt."""
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_default_executor(UnawaitedThreads(thread_name_prefix="blocking"))
        return runner.run(work)


def exit_process(code: int) -> NoReturn:
    """End a process that used Temporal's SDK without the interpreter's shutdown, after everything is written.

    Threads of the SDK's core may call into an interpreter that shuts down, which aborts one process in ten under load.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


PRIVATE: Final = 0o077

_umask_of_person = PRIVATE


def restrict_files_to_owner() -> None:
    """Let this process and its children create files for their owner alone: SQLite, object stores, the dev server."""
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
