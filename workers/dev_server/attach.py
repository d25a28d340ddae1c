"""The embedded engine as its users see it: attach to the one of a home folder, starting it if nobody has."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from workers.dev_server.files import (
    READY,
    STARTING,
    EngineDescription,
    EngineError,
    EngineFiles,
    EngineMovedError,
    FileLock,
)
from workers.dev_server.ports import PortLeases
from workers.dev_server.server import Server
from workers.settings.loading import child_environment

IDLE_SECONDS = 60.0
"""How long the server outlives its last user."""
START_SECONDS = 45.0
STOP_SECONDS = 25.0
POLL_SECONDS = 0.05
WATCH_SECONDS = 3.0

logger = structlog.get_logger(__name__)

__all__ = [
    "EngineAddress",
    "EngineError",
    "describe_engine",
    "detach_engine",
    "ensure_engine",
    "stop_engine",
    "watch_engine",
]


@dataclass(frozen=True)
class EngineAddress:
    """Where the engine is."""

    address: str
    ui_url: str
    started: bool = False
    """Whether this call started it."""
    moved_aside: str = ""
    """Where a database of another server version was put by this start."""

    @property
    def port(self) -> int:
        """The server's port on the loopback interface."""
        return int(self.address.rpartition(":")[2])


_attached: dict[Path, FileLock] = {}
"""Shared locks of this process by home: they tell the keeper that somebody is there, however this process ends."""
_leases: dict[Path, PortLeases] = {}
"""The ports of those engines: nobody else comes up there while this process still speaks to them."""


async def ensure_engine(home: Path, *, idle_seconds: float = IDLE_SECONDS) -> EngineAddress:
    """Attach to the engine of a home folder for the life of this process, starting it if need be.

    Two simultaneous calls, in one process or in two, get the same engine. Raises `EngineError`.
    """
    files = EngineFiles.of(home)
    files.prepare()
    end = time.monotonic() + START_SECONDS
    attached_now = False
    try:
        attached_now = await _attach(files, end)
        engine = await _find_or_start(files, idle_seconds, end)
    except BaseException as error:
        if attached_now:
            detach_engine(home)
        if isinstance(error, OSError):
            raise EngineError(f"{files.folder} cannot be used: {error.strerror}; set RESEARCH_HOME") from None
        raise
    _leases.setdefault(files.home, PortLeases(files.home)).take(engine.port)
    return engine


def detach_engine(home: Path) -> None:
    """Say that this process no longer needs the engine; no error if it never did."""
    key = EngineFiles.of(home).home
    for held in (_attached.pop(key, None), _leases.pop(key, None)):
        if held is not None:
            held.release()


def describe_engine(home: Path) -> EngineDescription | None:
    """The running engine of a home folder, or null; starts nothing."""
    files = EngineFiles.of(home)
    if not files.folder.is_dir() or files.keeper_lock().is_free():
        return None
    return files.read()


async def stop_engine(home: Path) -> bool:
    """Stop the engine of a home folder, whoever is attached; whether there was one. Raises `EngineError`."""
    files = EngineFiles.of(home)
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
            raise EngineError(f"the engine does not stop; see {files.keeper_log}")
        await asyncio.sleep(POLL_SECONDS)
    if not server.is_free():
        await asyncio.to_thread(Server(files.read().server_pid, server).stop)
    return ran


async def watch_engine(home: Path) -> None:
    """Bring back the keeper of an engine that this process uses, should it be killed; runs until it is cancelled.

    An engine that was stopped on purpose stays stopped. Raises `EngineMovedError` if the engine comes back elsewhere.
    """
    files = EngineFiles.of(home)
    address = files.read().address
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if files.home in _attached and files.keeper_lock().is_free() and files.read().status in {READY, STARTING}:
            logger.warning("engine.keeper_gone")
            try:
                await ensure_engine(home)
            except EngineError as error:
                logger.error("engine.not_back", reason=str(error))  # noqa: TRY400  it will be tried again
        now = files.read()
        if now.status == READY and now.address != address:
            logger.warning("engine.moved", address=now.address)
            raise EngineMovedError(now.address)


async def _attach(files: EngineFiles, end: float) -> bool:
    """Take the shared lock, if this process has not; a keeper that is just stopping holds it for a few seconds."""
    if files.home in _attached:
        return False
    lock = files.attached_lock()
    while not lock.acquire(shared=True):
        if time.monotonic() > end:
            raise EngineError(f"the engine is stopping and does not come to an end; see {files.keeper_log}")
        await asyncio.sleep(POLL_SECONDS)
    if _attached.setdefault(files.home, lock) is not lock:
        lock.release()
        return False
    os.utime(lock.fileno())
    return True


async def _find_or_start(files: EngineFiles, idle_seconds: float, end: float) -> EngineAddress:
    keeper, started = files.keeper_lock(), False
    while time.monotonic() < end:
        if keeper.is_free():
            started = await _start_keeper(files, idle_seconds, end) == "ready" or started
        description = files.read()
        if description.status == READY and await _listens(description):
            moved = description.moved_aside if started else ""
            return EngineAddress(description.address, description.ui_url, started, moved)
        await asyncio.sleep(POLL_SECONDS)
    reason = files.read().error or "no answer"
    raise EngineError(f"the engine did not come up within {START_SECONDS:.0f} s: {reason}; see {files.keeper_log}")


async def _start_keeper(files: EngineFiles, idle_seconds: float, end: float) -> str:
    """Start a keeper and wait for its one line. Raises `EngineError` with its reason."""
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
        raise EngineError(f"the engine does not start; see {files.keeper_log}") from None
    answer = output.decode("utf-8", "replace").strip()
    if answer.startswith("failed: "):
        raise EngineError(answer.removeprefix("failed: "))
    if answer not in {"ready", "other"}:
        raise EngineError(f"the engine's keeper ended without a word; see {files.keeper_log}")
    return answer


async def _listens(description: EngineDescription) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", description.port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
