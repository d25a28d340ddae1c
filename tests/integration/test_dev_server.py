"""The dev server with real processes: start, share, kill, restart, stop."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from contracts.names import WORKFLOWS_QUEUE
from tests.integration.pool_calls import Calls
from tests.integration.server_homes import SOON, alive, kill_server, running, until
from workers.dev_server import attach
from workers.dev_server.attach import describe_server, detach_server, ensure_server, stop_server, watch_server
from workers.dev_server.server import API_HOST
from workers.dev_server.server_files import READY, ServerDescription, ServerError, ServerFiles
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.temporal import open_connection

pytestmark = pytest.mark.integration
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

ROOT = Path(__file__).resolve().parents[2]
ATTACH = """
import asyncio, sys
from pathlib import Path
from workers.dev_server.attach import ensure_server
async def main():
    server = await ensure_server(Path(sys.argv[1]), idle_seconds=float(sys.argv[2]))
    print(server.address, server.started, flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


async def attached_process(home: Path, idle_seconds: float = 60.0) -> asyncio.subprocess.Process:
    """Another process that uses the server until its standard input ends."""
    pipe = asyncio.subprocess.PIPE
    arguments = (sys.executable, "-c", ATTACH, str(home), str(idle_seconds))
    return await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, cwd=ROOT)


async def first_line(process: asyncio.subprocess.Process) -> list[str]:
    """The address, and whether the process started the server."""
    assert process.stdout is not None
    async with asyncio.timeout(SOON):
        return (await process.stdout.readline()).decode().split()


def namespace(description: ServerDescription) -> dict[str, dict[str, object]]:
    """What the server says of its namespace."""
    place = f"http://127.0.0.1:{description.http_port}/api/v1/namespaces/default"
    with urllib.request.urlopen(urllib.request.Request(place, headers={"host": API_HOST}), timeout=10) as response:
        return json.load(response)


async def test_starts_once_and_is_set_up(server_home: Path) -> None:
    """The first call starts the server, the second finds it; runs are kept 30 days and can be searched for."""
    first = await ensure_server(server_home)
    second = await ensure_server(server_home)
    assert (first.started, second.started) == (True, False)
    assert first.address == second.address
    config = namespace(running(server_home))["config"]
    assert config["workflowExecutionRetentionTtl"] == f"{30 * 24 * 3600}s"
    assert set(config["customSearchAttributeAliases"].values()) == {  # type: ignore[attr-defined]
        "ResearchPhase",
        "ResearchStrategy",
        "ResearchOutcome",
        "ResearchTenant",
        "ResearchCostUsd",
    }


@needs_proc
async def test_listens_on_loopback_alone(server_home: Path) -> None:
    """Nobody on the network reaches the server: it has no password."""
    description = await ensure_server(server_home)
    port = int(description.address.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    listening = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LISTENERS, str(running(server_home).server_pid)), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await listening.communicate()
    addresses = set(output.decode().split())
    assert all(re.fullmatch("[0-9A-F]{6}7F", address) for address in addresses), "all of 127.0.0.0/8 is loopback"
    assert "0100007F" in addresses


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


async def test_two_first_starts_make_one_engine(server_home: Path) -> None:
    """Two processes that start at the same moment share one server."""
    processes = await asyncio.gather(attached_process(server_home), attached_process(server_home))
    try:
        (one, other) = await asyncio.gather(*(first_line(process) for process in processes))
        assert one[0] == other[0]
        assert sorted([one[1], other[1]]) == ["False", "True"]
    finally:
        for process in processes:
            await process.communicate(b"")


async def test_a_killed_server_comes_back_at_the_same_place(server_home: Path) -> None:
    """After kill -9 of the server its keeper starts it again on the same ports with the same database."""
    await ensure_server(server_home)
    before = running(server_home)
    os.kill(before.server_pid, signal.SIGKILL)
    await until(lambda: (d := describe_server(server_home)) is not None and d.server_pid not in {0, before.server_pid})
    after = running(server_home)
    assert (after.port, after.ui_port, after.keeper_pid) == (before.port, before.ui_port, before.keeper_pid)
    assert namespace(after)["namespaceInfo"]["id"] == namespace(before)["namespaceInfo"]["id"]


async def test_runs_survive_a_killed_server(server_home: Path) -> None:
    """A run whose server was killed in the middle of a call ends as if nothing had happened, with one attempt."""
    calls = Calls()
    client = (await open_connection(Settings(home=server_home))).client
    async with asyncio.timeout(60), run_pools(client, calls.contents(), ("workflows", "models")):
        run = await client.start_workflow("one-call", "waits", id="r-1", task_queue=WORKFLOWS_QUEUE)
        await calls.begun.wait()
        os.kill(running(server_home).server_pid, signal.SIGKILL)
        calls.go_on.set()
        assert await run.result() == "attempt 1"


async def test_the_server_of_a_killed_keeper_is_adopted(server_home: Path) -> None:
    """After kill -9 of the keeper the next call finds a new keeper for the very same server."""
    await ensure_server(server_home)
    before = running(server_home)
    os.kill(before.keeper_pid, signal.SIGKILL)
    await until(lambda: describe_server(server_home) is None)
    assert alive(before.server_pid)
    await ensure_server(server_home)
    after = running(server_home)
    assert after.server_pid == before.server_pid
    assert after.keeper_pid != before.keeper_pid
    assert await stop_server(server_home)
    assert not alive(before.server_pid)


async def test_an_adopted_server_is_watched_too(server_home: Path) -> None:
    """A server that its keeper did not start is brought back as well."""
    await ensure_server(server_home)
    before = running(server_home)
    os.kill(before.keeper_pid, signal.SIGKILL)
    await until(lambda: describe_server(server_home) is None)
    await ensure_server(server_home)
    os.kill(before.server_pid, signal.SIGKILL)
    await until(lambda: (d := describe_server(server_home)) is not None and d.server_pid not in {0, before.server_pid})
    assert running(server_home).port == before.port


async def test_a_process_that_uses_the_engine_replaces_a_killed_keeper(
    server_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While workers run nobody has to call again: they notice that the keeper has gone, but respect a stop."""
    monkeypatch.setattr(attach, "WATCH_SECONDS", 0.05)
    await ensure_server(server_home)
    before = running(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    try:
        os.kill(before.keeper_pid, signal.SIGKILL)
        await until(lambda: (d := describe_server(server_home)) is not None and d.keeper_pid != before.keeper_pid)
        await until(lambda: (d := describe_server(server_home)) is not None and d.status == READY)
        assert running(server_home).server_pid == before.server_pid
        await stop_server(server_home)
        await asyncio.sleep(0.2)
        assert describe_server(server_home) is None
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_a_server_without_keeper_is_stopped_too(server_home: Path) -> None:
    """Stopping finds the server that a killed keeper left."""
    await ensure_server(server_home)
    before = running(server_home)
    os.kill(before.keeper_pid, signal.SIGKILL)
    await until(lambda: describe_server(server_home) is None)
    assert await stop_server(server_home)
    assert not alive(before.server_pid)
    assert not await stop_server(server_home)


async def test_both_killed_starts_anew(server_home: Path) -> None:
    """A stale description of a server that no longer runs misleads nobody."""
    first = await ensure_server(server_home)
    before = running(server_home)
    os.kill(before.keeper_pid, signal.SIGKILL)
    os.kill(before.server_pid, signal.SIGKILL)
    await until(lambda: not alive(before.server_pid) and describe_server(server_home) is None)
    second = await ensure_server(server_home)
    assert second.started
    assert second.address == first.address


async def test_stops_after_the_last_attached_process(server_home: Path) -> None:
    """The server outlives each user but the last, however that one ends."""
    one, other = await attached_process(server_home, 0.5), await attached_process(server_home, 0.5)
    try:
        await asyncio.gather(first_line(one), first_line(other))
        description = running(server_home)
        await one.communicate(b"")
        one_more = await attached_process(server_home, 0.5)
        assert (await first_line(one_more))[1] == "False"
        await one_more.communicate(b"")
        assert alive(description.server_pid)
        other.kill()
        await until(lambda: not alive(description.server_pid) and describe_server(server_home) is None)
    finally:
        await asyncio.gather(one.communicate(b""), other.communicate(b""))


async def test_a_new_user_of_a_stopping_engine_gets_a_new_one(server_home: Path) -> None:
    """Attaching while the last server stops waits for its end instead of using a dying server."""
    process = await attached_process(server_home, 0.0)
    await first_line(process)
    old = running(server_home)
    await process.communicate(b"")
    await until(lambda: not ServerFiles(server_home).attached_lock().is_free() or describe_server(server_home) is None)
    server = await ensure_server(server_home)
    assert server.started
    assert running(server_home).server_pid != old.server_pid


async def test_a_database_of_another_version_is_moved_aside(server_home: Path) -> None:
    """A server never opens a database that another version wrote; the old one is kept."""
    await ensure_server(server_home)
    detach_server(server_home)
    kill_server(server_home)
    files = ServerFiles(server_home)
    files.version.write_text("temporal version 0.1.0 (Server 1.0.0)")
    server = await ensure_server(server_home)
    assert server.moved_aside
    moved = Path(server.moved_aside)
    assert (moved / "temporal.db").exists()
    assert (moved / "version").read_text() == "temporal version 0.1.0 (Server 1.0.0)"
    assert "Server 1.0.0" not in files.version.read_text()
    assert not (await ensure_server(server_home)).moved_aside


async def test_a_damaged_database_is_named(server_home: Path) -> None:
    """A database that is none ends the start with a sentence that says what to move away."""
    await ensure_server(server_home)
    detach_server(server_home)
    kill_server(server_home)
    files = ServerFiles(server_home)
    for path in files.folder.glob("temporal.db*"):
        path.unlink()
    files.database.write_bytes(b"this is no database at all, " * 200)
    with pytest.raises(ServerError, match=r"database is damaged: move .*temporal\.db away"):
        await ensure_server(server_home)
    assert describe_server(server_home) is None
    assert files.server_lock().is_free()


async def test_an_unusable_home_is_named(tmp_path: Path) -> None:
    """A home that is a file ends the start with a sentence that says what to set."""
    (tmp_path / "file").write_text("")
    (tmp_path / "home" / "engine" / "engine.attached").mkdir(parents=True)
    for home in (tmp_path / "file", tmp_path / "home"):
        with pytest.raises(ServerError, match="set RESEARCH_HOME"):
            await ensure_server(home)


async def test_sigterm_stops_the_engine_in_order(server_home: Path) -> None:
    """SIGTERM to the keeper stops the server and leaves a description of a stopped server."""
    await ensure_server(server_home)
    description = running(server_home)
    os.kill(description.keeper_pid, signal.SIGTERM)
    await until(lambda: describe_server(server_home) is None)
    assert not alive(description.server_pid)
    stopped = ServerFiles(server_home).read()
    assert (stopped.status, stopped.server_pid, stopped.port) == ("stopped", 0, description.port)


@needs_proc
async def test_the_engine_sees_no_secrets(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeper and server do not inherit keys from the environment of whoever started them."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-not-to-be-inherited")
    await ensure_server(server_home)
    description = running(server_home)
    environments = [Path("/proc", str(pid), "environ") for pid in (description.keeper_pid, description.server_pid)]
    assert all(b"not-to-be-inherited" not in path.read_bytes() for path in environments)


def test_nothing_is_described_where_nothing_runs(tmp_path: Path) -> None:
    """Asking for the server of a home that never had one starts nothing and makes no folder."""
    assert describe_server(tmp_path) is None
    assert not (tmp_path / "engine").exists()
    assert attach.detach_server(tmp_path) is None
