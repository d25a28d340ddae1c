"""The watchdog: a process whose event loop is silent for too long is ended, so that another can take up its work.

A pattern that takes for ever keeps the interpreter to itself: no thread of Python runs then, no handler of a signal,
no timeout. So the loop is watched from another process (`watchdog_child`), and what ends this one is no Python code.
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog

from workers import watchdog_child
from workers.telemetry import LogFormat
from workers.watchdog_child import SIGNAL, Options

SILENCE_SECONDS: Final = 30.0
"""Of its own time, that a loop may be silent: far more than any callback takes, and than a heartbeat may be late."""
BEAT_SECONDS: Final = 1.0
EXIT_CODE: Final = int(SIGNAL)
"""What a process exits with that the watchdog ended."""

logger = structlog.get_logger(__name__)


@asynccontextmanager
async def watched(
    form: LogFormat, log: int = 2, said: str = "", limit_seconds: float = SILENCE_SECONDS
) -> AsyncIterator[None]:
    """End this process with `EXIT_CODE` should its loop be silent for too long while the block runs.

    The reason goes as one line to the file descriptor `log`; `said` goes to standard error after it.
    """
    beats, beaten = os.pipe()
    stacks, stacked = os.pipe()
    async with contextlib.AsyncExitStack() as after, contextlib.AsyncExitStack() as files:
        for end in (beaten, stacked):
            files.callback(os.close, end)
        with contextlib.ExitStack() as theirs:
            for end in (beats, stacks):
                theirs.callback(os.close, end)
            options = Options(os.getpid(), beats, stacks, log, form, limit_seconds, said)
            watcher = await _started(options)
        after.push_async_callback(watcher.wait)
        os.set_blocking(beaten, False)
        _exit_on_signal()
        faulthandler.register(SIGNAL, file=stacked, all_threads=True, chain=True)
        files.callback(faulthandler.unregister, SIGNAL)
        beating = asyncio.create_task(_beat(beaten, watcher))
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])


async def _started(options: Options) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", str(Path(watchdog_child.__file__)), json.dumps(asdict(options))),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        pass_fds=(options.beats, options.stacks, options.log),
        env={},
        cwd="/",
    )


async def _beat(beaten: int, watcher: asyncio.subprocess.Process) -> None:
    while watcher.returncode is None:
        # A full pipe means that the watcher stands still itself.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(beaten, b".")
        await asyncio.sleep(BEAT_SECONDS)
    logger.warning("watchdog.gone", consequence="a loop that stands still is not noticed from now on")


def _exit_on_signal() -> None:
    """Make the C library's own `_exit` the handler, which gets the signal's number as the exit code.

    A handler in Python would wait for the interpreter, and the first process of a container is spared by every signal
    that it has no handler for.
    """
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.signal.restype = ctypes.c_void_p
    library.signal(SIGNAL, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001  that is its name
