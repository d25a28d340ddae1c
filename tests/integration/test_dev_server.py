"""The dev server with real processes: start, share, kill, restart, stop; and who cannot use it."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.integration.server_homes import SOON, give_port, kill_server, running, stop_server, until
from workers.dev_server import (
    RETENTION_SECONDS,
    WATCH_SECONDS,
    ServerDescription,
    ServerError,
    ServerFiles,
    describe_server,
    detach_server,
    ensure_server,
    watch_server,
)
from workers.settings.loading import Settings
from workers.temporal import ServerUnreachableError, has_search_attributes, open_connection

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
ATTACH = """
import asyncio, sys
from pathlib import Path
from workers.dev_server import detach_server, ensure_server
async def main():
    print((await ensure_server(Path(sys.argv[1]))).address, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    detach_server(Path(sys.argv[1]))
asyncio.run(main())
"""
LISTENERS = """
import os, sys
folder = f"/proc/{sys.argv[1]}"
inodes = set()
for name in os.listdir(f"{folder}/fd"):
    try: inodes.add(os.readlink(f"{folder}/fd/{name}"))
    except OSError: pass
for table in ("tcp", "tcp6"):
    for line in open(f"{folder}/net/{table}").read().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            print(fields[1])
"""
"""Prints the addresses at which a process listens, as the kernel writes them."""
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
SECRET = "secret-of-the-test"
PLACE = "/api/v1/namespaces/default/workflows/planted"
START = json.dumps({"workflowType": {"name": "DeepResearch"}, "taskQueue": {"name": "research"}}).encode()
SIMPLE = {"content-type": "text/plain"}
"""A content type that pages may send anywhere without a preflight request."""


@dataclass
class Shared:
    """A server and its home folder."""

    server: ServerDescription
    home: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    """A server with its web UI, for tests that look at it and change nothing; a key is in the environment."""
    home = tmp_path_factory.mktemp("shared")
    give_port(home)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ANTHROPIC_API_KEY", SECRET)
        yield Shared(await ensure_server(home, ui=True), home)
    detach_server(home)
    kill_server(home)


async def listeners(pid: int) -> list[tuple[str, int]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LISTENERS, str(pid)), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    pairs = (line.split(":") for line in output.decode().split())
    return [(address, int(port, 16)) for address, port in pairs]


def ask(port: int, method: str, place: str, headers: dict[str, str], host: str = "127.0.0.1") -> int:
    """Return the status of an answer; 0 for none that HTTP knows."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        connection.request(method, place, START if method == "POST" else None, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


async def attached_process(home: Path) -> asyncio.subprocess.Process:
    """Start another process that uses the server until its standard input ends."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", ATTACH, str(home), stdin=pipe, stdout=pipe, cwd=ROOT
    )


async def address_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(SOON):
        return (await process.stdout.readline()).decode().strip()


async def test_commands_share_one_server_and_the_last_one_stops_it(server_home: Path) -> None:
    """Two processes that start at the same moment get one server, which ends after both have left, and not before."""
    one, other = await asyncio.gather(attached_process(server_home), attached_process(server_home))
    addresses = {await address_of(process) for process in (one, other)}
    assert len(addresses) == 1
    await one.communicate(b"")
    assert running(server_home).address in addresses
    await other.communicate(b"")
    assert describe_server(server_home) is None
    await until(ServerFiles(server_home).server_lock().is_free)


async def test_a_server_is_set_up_for_runs_and_for_its_owner_alone(shared: Shared) -> None:
    """Closed runs stay for 30 days, and search attributes are registered; no other user can read the database, whatever
    the umask, and no key of the environment reaches the server.
    """
    client = await Client.connect(shared.server.address)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    assert described.config.workflow_execution_retention_ttl.ToSeconds() == RETENTION_SECONDS
    assert await has_search_attributes(client)
    assert list((shared.home / "engine").glob("*.db-wal"))
    assert (shared.home / "engine").stat().st_mode & 0o777 == 0o700
    if (environment := Path(f"/proc/{shared.server.pid}/environ")).exists():
        assert SECRET.encode() not in environment.read_bytes()


@ON_LINUX
async def test_a_server_listens_on_loopback_alone(shared: Shared) -> None:
    """Nobody on the network reaches the server or its web UI: they ask for no password."""
    listening = await listeners(shared.server.pid)
    assert len(listening) > 2
    assert all(re.fullmatch("[0-9A-F]{6}7F", address) for address, _ in listening)


@ON_LINUX
async def test_a_foreign_page_neither_starts_nor_reads_nor_steers(shared: Shared) -> None:
    """No port of 127.0.0.1 answers requests of other sites and of rebound names, and no workflow begins by them."""
    server = shared.server
    ports = {port for address, port in await listeners(server.pid) if address == "0100007F"}
    assert server.port in ports
    for port in ports:
        own, foreign = f"127.0.0.1:{port}", f"evil.example:{port}"
        for headers in (
            SIMPLE | {"host": own, "origin": "http://evil.example"},
            SIMPLE | {"host": own, "origin": "null"},
            SIMPLE | {"host": foreign, "origin": f"http://{foreign}"},
        ):
            for method, place in (("POST", PLACE), ("POST", PLACE + "/terminate"), ("GET", PLACE)):
                status = await asyncio.to_thread(ask, port, method, place, headers)
                assert status in {0, 403, 404}, (port, headers, method, place, status)
    client = await Client.connect(server.address)
    with pytest.raises(RPCError) as missing:
        await client.get_workflow_handle("planted").describe()
    assert missing.value.status is RPCStatusCode.NOT_FOUND


async def test_the_web_ui_is_at_an_address_that_no_page_can_guess(shared: Shared) -> None:
    """The printed address serves the UI and its requests; the same port of 127.0.0.1 serves nothing."""
    server = shared.server
    host, _, port = server.ui_address.rpartition(":")
    assert server.ui_url == f"http://{server.ui_address}"
    assert host not in {"", "127.0.0.1"}
    async with asyncio.timeout(60):  # the UI itself finds the server within a second or two
        while await asyncio.to_thread(ask, int(port), "GET", "/api/v1/namespaces/default/workflows", {}, host) != 200:
            await asyncio.sleep(0.1)
    assert await asyncio.to_thread(ask, int(port), "GET", "/namespaces/default/workflows", {}, host) == 200
    assert await asyncio.to_thread(ask, int(port), "GET", "/", {}) == 0


async def test_a_server_outlives_killed_commands_and_starts_again(server_home: Path) -> None:
    """After kill -9 of the only command its server is found by the next one; after kill -9 of both the next command
    starts a server on the same database, and stops it when it leaves.
    """
    process = await attached_process(server_home)
    await address_of(process)
    before = running(server_home)
    process.kill()
    await process.wait()
    assert (await ensure_server(server_home)).pid == before.pid
    detach_server(server_home)
    await until(ServerFiles(server_home).server_lock().is_free)
    process = await attached_process(server_home)
    await address_of(process)
    for pid in (process.pid, running(server_home).pid):
        os.kill(pid, signal.SIGKILL)
    await process.wait()
    after = await ensure_server(server_home)
    assert (after.port, after.pid != before.pid) == (before.port, True)


def is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


async def test_a_port_in_use_is_reported(server_home: Path) -> None:
    """A server whose port another program took while it was dead comes back elsewhere, and its users are told so."""
    before = await ensure_server(server_home)
    os.kill(before.pid, signal.SIGKILL)
    await until(lambda: is_free(before.port))  # a moment after its lock
    with (
        socket.create_server(("127.0.0.1", before.port)),
        pytest.raises(ServerError, match="start the command again"),
    ):
        async with asyncio.timeout(SOON):
            await watch_server(server_home)


async def test_a_stopped_server_stays_stopped(server_home: Path) -> None:
    """No watcher starts a server again that was stopped on purpose; who comes while one is ending gets a new one."""
    before = await ensure_server(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    assert await stop_server(server_home)
    await asyncio.sleep(1.5 * WATCH_SECONDS)
    assert describe_server(server_home) is None
    assert not watching.done()
    watching.cancel()
    again = await ensure_server(server_home)
    detach_server(server_home)
    after = await ensure_server(server_home)
    assert len({before.pid, again.pid, after.pid}) == 3


async def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A damaged database is named with the remedy, and a file in the place of the home with the variable to set."""
    files = ServerFiles(tmp_path / "damaged")
    files.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.database.write_bytes(b"no database" * 1_000)
    with pytest.raises(ServerError, match="damaged; move"):
        await ensure_server(tmp_path / "damaged")
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="set RESEARCH_HOME"):
        await ensure_server(tmp_path / "file")


async def test_looking_for_a_server_starts_none(tmp_path: Path) -> None:
    """A home without a server has no description, and a command that only reads creates no folder."""
    assert describe_server(tmp_path / "home") is None
    with pytest.raises(ServerUnreachableError, match="no dev server is running"):
        await open_connection(Settings(home=tmp_path / "home"), start=False)
    assert not (tmp_path / "home").exists()
