"""This process: its event loop, its exit without waiting for unneeded threads, and its umask."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import uvloop

from providers.isolation.confinement import refuse_inspection

T = TypeVar("T")

COLLECTION_THRESHOLDS = (50_000, 20, 20)
"""Thresholds of the garbage collector, by generation. With the default of 700 objects, a worker spends a tenth of its
processor time on collections that find little, as messages are trees, which reference counts free."""

M_ARENA_MAX = -8
"""Parameter of glibc's `mallopt`: the greatest number of arenas."""
MEMORY_ARENAS = 2
"""Number of arenas: one for each of forty threads costs a worker 17 MB."""


class UnawaitedThreads(ThreadPoolExecutor):
    """Threads that the event loop does not wait for: walking a huge folder cannot be interrupted."""

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Start no more calls; running ones continue."""
        super().shutdown(wait=False, cancel_futures=True)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run work like `uvloop.run`, without waiting for threads at the end. Raises its errors, and KeyboardInterrupt.

    Other processes of the same user, such as a reader that a document has taken over, cannot read its keys.
    """
    refuse_inspection()
    with contextlib.suppress(AttributeError):  # another C library has no `mallopt`
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, MEMORY_ARENAS)
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_default_executor(UnawaitedThreads(thread_name_prefix="blocking"))
        return runner.run(work)


def exit_process(code: int) -> NoReturn:
    """Flush all output, and end a process that used Temporal's SDK without the interpreter's shutdown.

    Threads of the SDK's core may call into the interpreter during shutdown, which aborts one process in ten under load.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


PRIVATE_UMASK: Final = 0o077

_user_umask = PRIVATE_UMASK


def restrict_files_to_owner() -> None:
    """Make files of this process and its children private to their owner: SQLite, object stores, the dev server."""
    global _user_umask  # noqa: PLW0603  a process has one umask
    previous = os.umask(PRIVATE_UMASK)
    _user_umask = _user_umask if previous == PRIVATE_UMASK else previous


def user_umask() -> int:
    """Return the umask of the user's shell, for reports and for the user's own commands."""
    return _user_umask


@contextlib.contextmanager
def files_of_user() -> Iterator[None]:
    """Create files with the user's own umask during the block."""
    previous = os.umask(_user_umask)
    try:
        yield
    finally:
        os.umask(previous)
