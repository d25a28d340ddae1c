"""The watchdog: it ends a process whose event loop stalls, so that another process takes over its work.

An endless regular expression keeps the interpreter to itself: no Python thread, signal handler or timeout runs. So
another process (`watchdog_child`) watches the loop, and what ends this process is not Python code.
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
"""How long a loop may stall, in processor time of its own: far longer than any callback takes."""
BEAT_SECONDS: Final = 1.0
EXIT_CODE: Final = int(SIGNAL)
"""The exit code of a process that the watchdog ended."""

logger = structlog.get_logger(__name__)


@asynccontextmanager
async def watch_event_loop(
    form: LogFormat, log: int = 2, said: str = "", limit_seconds: float = SILENCE_SECONDS
) -> AsyncIterator[None]:
    """End this process with `EXIT_CODE` if its event loop stalls during the block.

    The reason goes as one line to the file descriptor `log`, then `said` to standard error.
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
            watcher = await _start_child(options)
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


async def _start_child(options: Options) -> asyncio.subprocess.Process:
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
        # A full pipe means that the watching process stalls itself.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(beaten, b".")
        await asyncio.sleep(BEAT_SECONDS)
    logger.warning("watchdog.gone", consequence="a stalled event loop is no longer noticed")


def _exit_on_signal() -> None:
    """Make the C library's own `_exit` the handler; the signal's number becomes the exit code.

    A handler in Python would wait for the interpreter, and the kernel ignores signals without a handler for the first
    process of a container.
    """
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.signal.restype = ctypes.c_void_p
    library.signal(SIGNAL, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001  the name in the C library
