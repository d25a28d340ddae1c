"""Dev servers of tests: whether they run, and their end."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from workers.dev_server.attach import describe_server
from workers.dev_server.server_files import READY, ServerDescription, ServerFiles

SOON = 20.0


def kill_server(home: Path) -> None:
    """End keeper and server at once: an orderly stop takes seconds, and one test each shows it."""
    files = ServerFiles(home)
    while not (files.keeper_lock().is_free() and files.server_lock().is_free()):
        description = files.read()
        for pid in (description.keeper_pid, description.server_pid):
            if pid and alive(pid):
                os.kill(pid, signal.SIGKILL)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.02)


def running(home: Path) -> ServerDescription:
    """The description of a running server."""
    description = describe_server(home)
    assert description is not None
    assert description.status == READY
    return description


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return sys.platform != "linux"
