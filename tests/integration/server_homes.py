"""Dev servers of tests: whether they run, and their end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from workers.dev_server import ServerDescription, ServerFiles, describe_server

SOON = 20.0


def kill_server(home: Path) -> None:
    """End a server at once: an orderly stop takes seconds, and one test shows it."""
    files = ServerFiles(home)
    while files.folder.is_dir() and not files.server_lock().is_free():
        with contextlib.suppress(ProcessLookupError):
            os.kill(files.read().pid, signal.SIGKILL)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.02)


def running(home: Path) -> ServerDescription:
    """Return the description of a running server."""
    description = describe_server(home)
    assert description is not None
    return description
