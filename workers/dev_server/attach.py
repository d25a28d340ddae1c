"""Attach this process to the dev server of a home folder, starting the server if none runs."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from workers.dev_server.ports import PortLeases
from workers.dev_server.server import ServerProcess
from workers.dev_server.server_files import (
    READY,
    STARTING,
    FileLock,
    ServerDescription,
    ServerError,
    ServerFiles,
    ServerMovedError,
)
from workers.settings.loading import child_environment

IDLE_SECONDS = 60.0
"""How long the server runs on after the last attached process has gone."""
START_SECONDS = 45.0
STOP_SECONDS = 25.0
POLL_SECONDS = 0.05
WATCH_SECONDS = 3.0

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ServerAddress:
    """Where an attached server listens."""

    address: str
    ui_url: str
    started: bool = False
    """Whether this call started it."""
    moved_aside: str = ""
    """The folder that this start moved a database of another server version to."""

    @property
    def port(self) -> int:
        """The server's port on the loopback interface."""
        return int(self.address.rpartition(":")[2])


_attached: dict[Path, FileLock] = {}
"""Shared locks of this process by home: the keeper sees by them that the server is in use."""
_leases: dict[Path, PortLeases] = {}
"""The ports of those servers: no other server starts there while this process is connected."""


async def ensure_server(home: Path, *, idle_seconds: float = IDLE_SECONDS) -> ServerAddress:
    """Attach to the server of a home folder for the life of this process, starting it if need be.

    Two simultaneous calls, in one process or in two, get the same server. Raises `ServerError`.
    """
    files = ServerFiles(home)
    files.prepare()
    end = time.monotonic() + START_SECONDS
    attached_now = False
    try:
        attached_now = await _attach(files, end)
        server = await _find_or_start(files, idle_seconds, end)
    except BaseException as error:
        if attached_now:
            detach_server(home)
        if isinstance(error, OSError):
            raise ServerError(f"{files.folder} cannot be used: {error.strerror}; set RESEARCH_HOME") from None
        raise
    _leases.setdefault(files.home, PortLeases(files.home)).take(server.port)
    return server


def detach_server(home: Path) -> None:
    """Release the server; does nothing if this process is not attached."""
    key = ServerFiles(home).home
    for held in (_attached.pop(key, None), _leases.pop(key, None)):
        if held is not None:
            held.release()


def describe_server(home: Path) -> ServerDescription | None:
    """Describe the running server of a home folder, or return None; starts nothing."""
    files = ServerFiles(home)
    if not files.folder.is_dir() or files.keeper_lock().is_free():
        return None
    return files.read()


async def stop_server(home: Path) -> bool:
    """Stop the server of a home folder, even if processes are attached; whether one ran. Raises `ServerError`."""
    files = ServerFiles(home)
    if not files.folder.is_dir():
        return False
    keeper, server = files.keeper_lock(), files.server_lock()
    ran = not keeper.is_free() or not server.is_free()
    end = time.monotonic() + STOP_SECONDS
    while not keeper.is_free():
        pid = files.read().keeper_pid
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if time.monotonic() > end:
            raise ServerError(f"the server does not stop; see {files.keeper_log}")
        await asyncio.sleep(POLL_SECONDS)
    if not server.is_free():
        await asyncio.to_thread(ServerProcess(files.read().server_pid, server).stop)
    return ran


async def watch_server(home: Path) -> None:
    """Start the keeper of an attached server again if it is killed; runs until it is cancelled.

    A server that was stopped stays stopped. Raises `ServerMovedError` if the server comes back elsewhere.
    """
    files = ServerFiles(home)
    address = files.read().address
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if files.home in _attached and files.keeper_lock().is_free() and files.read().status in {READY, STARTING}:
            logger.warning("dev_server.keeper_gone")
            try:
                await ensure_server(home)
            except ServerError as error:
                logger.error("dev_server.not_back", reason=str(error))  # noqa: TRY400  the next look tries again
        now = files.read()
        if now.status == READY and now.address != address:
            logger.warning("dev_server.moved", address=now.address)
            raise ServerMovedError(now.address)


async def _attach(files: ServerFiles, end: float) -> bool:
    """Take the shared lock, unless this process holds it; a stopping keeper holds it for a few seconds."""
    if files.home in _attached:
        return False
    lock = files.attached_lock()
    while not lock.acquire(shared=True):
        if time.monotonic() > end:
            raise ServerError(f"the server has been stopping for too long; see {files.keeper_log}")
        await asyncio.sleep(POLL_SECONDS)
    if _attached.setdefault(files.home, lock) is not lock:
        lock.release()
        return False
    os.utime(lock.fileno())
    return True


async def _find_or_start(files: ServerFiles, idle_seconds: float, end: float) -> ServerAddress:
    keeper, started = files.keeper_lock(), False
    while time.monotonic() < end:
        if keeper.is_free():
            started = await _start_keeper(files, idle_seconds, end) == "ready" or started
        description = files.read()
        if description.status == READY and await _listens(description):
            moved = description.moved_aside if started else ""
            return ServerAddress(description.address, description.ui_url, started, moved)
        await asyncio.sleep(POLL_SECONDS)
    reason = files.read().error or "no answer"
    raise ServerError(f"the server did not come up within {START_SECONDS:.0f} s: {reason}; see {files.keeper_log}")


async def _start_keeper(files: ServerFiles, idle_seconds: float, end: float) -> str:
    """Start a keeper and wait for its one line. Raises `ServerError` with the reason in it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.dev_server.keeper", str(files.home), str(idle_seconds)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=Path(__file__).parent.parent.parent,
        env=child_environment(),
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), max(1.0, end - time.monotonic()))
    except TimeoutError:
        raise ServerError(f"the server does not start; see {files.keeper_log}") from None
    answer = output.decode("utf-8", "replace").strip()
    if answer.startswith("failed: "):
        raise ServerError(answer.removeprefix("failed: "))
    if answer not in {"ready", "other"}:
        raise ServerError(f"the server's keeper ended without a reason; see {files.keeper_log}")
    return answer


async def _listens(description: ServerDescription) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", description.port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
