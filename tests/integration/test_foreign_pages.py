"""A web page in the user's browser can do nothing with the dev server. With the real server."""

import asyncio
import http.client
import json
import re
import sys
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.integration.test_dev_server import LISTENERS
from workers.dev_server import ensure_server

pytestmark = [pytest.mark.integration, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

PLACE = "/api/v1/namespaces/default/workflows/planted"
START = json.dumps({"workflowType": {"name": "DeepResearch"}, "taskQueue": {"name": "research"}}).encode()
SIMPLE = {"content-type": "text/plain"}
"""A content type that pages may send anywhere without a preflight request."""


def ask(port: int, method: str, place: str, headers: dict[str, str], host: str = "127.0.0.1") -> int:
    """Return the status of an answer; 0 for none that HTTP knows."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, place, START if method == "POST" else None, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


async def ports_of(pid: int) -> set[int]:
    """Return the ports at which a process listens on 127.0.0.1, the address that pages can name."""
    script = LISTENERS.replace('fields[1].split(":")[0]', "fields[1]")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(pid), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return {int(line.split(":")[1], 16) for line in output.decode().split() if re.search("0100007F:", line)}


async def test_a_foreign_page_neither_starts_nor_reads_nor_steers(server_home: Path) -> None:
    """No port of 127.0.0.1 answers requests of other sites and of rebound names, and no workflow begins by them."""
    server = await ensure_server(server_home, ui=True)
    ports = await ports_of(server.pid)
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


async def test_the_web_ui_is_at_an_address_that_no_page_can_guess(server_home: Path) -> None:
    """The printed address serves the UI and its requests; the same port of 127.0.0.1 serves nothing."""
    server = await ensure_server(server_home, ui=True)
    host, _, port = server.ui_address.rpartition(":")
    assert server.ui_url == f"http://{server.ui_address}"
    assert host not in {"", "127.0.0.1"}
    async with asyncio.timeout(20):  # the UI itself finds the server within a second or two
        while await asyncio.to_thread(ask, int(port), "GET", "/api/v1/namespaces/default/workflows", {}, host) != 200:
            await asyncio.sleep(0.1)
    assert await asyncio.to_thread(ask, int(port), "GET", "/namespaces/default/workflows", {}, host) == 200
    assert await asyncio.to_thread(ask, int(port), "GET", "/", {}) == 0


async def test_other_users_cannot_read_runs(server_home: Path) -> None:
    """The folder of the server's database is for its owner alone, whatever the umask."""
    await ensure_server(server_home)
    assert list((server_home / "engine").glob("*.db-wal"))
    assert (server_home / "engine").stat().st_mode & 0o777 == 0o700
