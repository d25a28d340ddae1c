"""The dev server with real processes: start, share, kill, restart, stop."""

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from contracts.names import WORKFLOWS_QUEUE
from tests.integration.pool_calls import Calls
from tests.integration.server_homes import SOON, running, stop_server, until
from workers.dev_server import (
    RETENTION_SECONDS,
    ServerError,
    ServerFiles,
    describe_server,
    detach_server,
    ensure_server,
    find_binary,
    watch_server,
)
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.temporal import has_search_attributes, open_connection

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
            print(fields[1].split(":")[0])
"""


async def attached_process(home: Path) -> asyncio.subprocess.Process:
    """Start another process that uses the server until its standard input ends."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", ATTACH, str(home), stdin=pipe, stdout=pipe, cwd=ROOT
    )


async def address_of(process: asyncio.subprocess.Process) -> str:
    """Return the address that such a process printed."""
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


async def test_a_server_is_set_up_for_runs(server_home: Path) -> None:
    """Closed runs stay for 30 days, and the search attributes of runs are registered."""
    server = await ensure_server(server_home)
    client = await Client.connect(server.address)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    assert described.config.workflow_execution_retention_ttl.ToSeconds() == RETENTION_SECONDS
    assert await has_search_attributes(client)
    assert server.ui_url == ""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_server_listens_on_loopback_alone(server_home: Path) -> None:
    """Nobody on the network reaches the server or its web UI: they ask for no password."""
    server = await ensure_server(server_home, ui=True)
    listening = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LISTENERS, str(server.pid)), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await listening.communicate()
    assert len(output.split()) > 2
    assert all(re.fullmatch("[0-9A-F]{6}7F", address) for address in output.decode().split())


async def test_runs_survive_a_killed_server(server_home: Path) -> None:
    """A run whose server is killed during a call ends as if nothing had happened: the server comes back at its port."""
    calls = Calls()
    client = (await open_connection(Settings(home=server_home))).client
    before = running(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    async with asyncio.timeout(60), run_pools(client, calls.contents(), ("workflows", "models")):
        run = await client.start_workflow("one-call", "waits", id="r-1", task_queue=WORKFLOWS_QUEUE)
        await calls.begun.wait()
        os.kill(before.pid, signal.SIGKILL)
        calls.go_on.set()
        assert await run.result() == "attempt 1"
    watching.cancel()
    after = running(server_home)
    assert (after.port, after.pid != before.pid) == (before.port, True)


async def test_a_server_outlives_killed_commands(server_home: Path) -> None:
    """After kill -9 of the only command its server is found by the next one, and stopped by it."""
    process = await attached_process(server_home)
    await address_of(process)
    before = running(server_home)
    process.kill()
    await process.wait()
    assert (await ensure_server(server_home)).pid == before.pid
    detach_server(server_home)
    await until(ServerFiles(server_home).server_lock().is_free)


async def test_everything_killed_starts_again(server_home: Path) -> None:
    """After kill -9 of command and server the next command starts a server on the same database."""
    process = await attached_process(server_home)
    await address_of(process)
    before = running(server_home)
    for pid in (process.pid, before.pid):
        os.kill(pid, signal.SIGKILL)
    await process.wait()
    after = await ensure_server(server_home)
    assert (after.port, after.pid != before.pid) == (before.port, True)


async def test_a_taken_port_is_said(server_home: Path) -> None:
    """A server whose port another program took while it was dead comes back elsewhere, and its users are told so."""
    before = await ensure_server(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    os.kill(before.pid, signal.SIGKILL)
    await until(ServerFiles(server_home).server_lock().is_free)
    with (
        socket.create_server(("127.0.0.1", before.port), reuse_port=False),
        pytest.raises(ServerError, match="start the command again"),
    ):
        async with asyncio.timeout(SOON):
            await watching


async def test_a_new_user_of_a_stopping_server_gets_a_new_one(server_home: Path) -> None:
    """Who comes while the server is ending waits for its end and starts another one."""
    before = await ensure_server(server_home)
    detach_server(server_home)
    after = await ensure_server(server_home)
    assert after.pid != before.pid


async def test_a_stopped_server_stays_stopped(server_home: Path) -> None:
    """No watcher starts a server again that was stopped on purpose."""
    await ensure_server(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    assert await stop_server(server_home)
    await asyncio.sleep(1.5)
    assert describe_server(server_home) is None
    assert not watching.done()
    watching.cancel()


async def test_a_server_that_loses_a_port_is_started_again(
    server_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program took one of the ports that the server had chosen: the next attempt chooses others."""
    program = tmp_path / "temporal"
    lost = f"mkdir '{tmp_path / 'lost'}' && echo 'error: listen tcp: bind: address already in use'"
    program.write_text(f'#!/bin/sh\n({lost}) && exit 1\nexec "{find_binary()}" "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr("workers.dev_server.find_binary", lambda: program)
    await Client.connect((await ensure_server(server_home)).address)
    assert (tmp_path / "lost").is_dir()


async def test_a_damaged_database_is_named(server_home: Path) -> None:
    """The message names the file and the remedy."""
    files = ServerFiles(server_home)
    files.create()
    files.database.write_bytes(b"no database" * 1_000)
    with pytest.raises(ServerError, match="damaged; move"):
        await ensure_server(server_home)


async def test_an_unusable_home_is_named(tmp_path: Path) -> None:
    """A home that is a file is refused with the variable to set."""
    home = tmp_path / "file"
    home.write_text("")
    with pytest.raises(ServerError, match="set RESEARCH_HOME"):
        await ensure_server(home)


async def test_the_server_sees_no_secrets(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """API keys of the environment do not reach the server process."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-the-test")
    server = await ensure_server(server_home)
    assert b"secret-of-the-test" not in Path(f"/proc/{server.pid}/environ").read_bytes()


def test_nothing_is_described_where_nothing_runs(tmp_path: Path) -> None:
    """A home without a server has no description, and looking creates no folder."""
    assert describe_server(tmp_path / "home") is None
    assert not (tmp_path / "home").exists()
