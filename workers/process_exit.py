"""Running a process's work to its end, and ending the process: neither waits for what nobody needs any more."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class UnawaitedThreads(ThreadPoolExecutor):
    """Threads for blocking calls. The end of the loop does not wait for them.

    A look through a huge or slow folder cannot be interrupted; a command that was told to stop must not wait for it.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Start nothing more; whatever `wait` says, running calls are left alone."""
        del wait, cancel_futures
        super().shutdown(wait=False, cancel_futures=True)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, without waiting for threads at the end. Raises what the work raises, and KeyboardInterrupt."""

    def loop() -> asyncio.AbstractEventLoop:
        made = asyncio.new_event_loop()
        made.set_default_executor(UnawaitedThreads(thread_name_prefix="blocking"))
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(work)


def leave(code: int) -> NoReturn:
    """End a process that used the engine, when everything is closed and written.

    Threads of the SDK's core may still hand something over for a moment, and an interpreter that is just taking itself
    apart is aborted by that (exit code 134, seen in one of ten ends under load). So it is not taken apart.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
