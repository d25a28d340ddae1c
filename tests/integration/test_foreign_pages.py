"""What a web page in the user's browser can do with the dev server: nothing. With the real server."""

import asyncio
import http.client
import json
import os
import signal
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.integration.server_homes import SOON, kill_server, running, until
from workers.dev_server.attach import detach_server, ensure_server
from workers.dev_server.server_files import ServerDescription, ServerFiles

pytestmark = pytest.mark.integration

PLACE = "/api/v1/namespaces/default/workflows/planted"
LIST = "/api/v1/namespaces/default/workflows"
START = json.dumps({"workflowType": {"name": "DeepResearch"}, "taskQueue": {"name": "research"}}).encode()
JSON = {"content-type": "application/json"}
SIMPLE = {"content-type": "text/plain"}
"""A content type that pages may send anywhere without asking first."""


def ask(port: int, method: str, place: str, headers: dict[str, str], host: str = "127.0.0.1") -> int:
    """The status of an answer; 0 for none that HTTP knows."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, place, START if method == "POST" else None, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


async def exists(address: str, name: str) -> bool:
    """Whether a workflow of this id was ever started."""
    client = await Client.connect(address)
    try:
        await client.get_workflow_handle(name).describe()
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND
    return True


def attacks(server: ServerDescription) -> list[tuple[int, dict[str, str]]]:
    """Every port that speaks HTTP/1.1, with what a page on another site and one whose name leads here can send."""
    tries = []
    for port in (server.ui_port, server.http_port, server.port):
        own, foreign = f"127.0.0.1:{port}", f"evil.example:{port}"
        tries += [
            (port, SIMPLE | {"host": own, "origin": "http://evil.example"}),
            (port, SIMPLE | {"host": own, "origin": "null"}),
            (port, SIMPLE | {"host": own, "sec-fetch-site": "cross-site"}),
            (port, SIMPLE | {"host": own, "origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"}),
            (port, JSON | {"host": foreign}),
            (port, JSON | {"host": foreign, "origin": f"http://{foreign}", "sec-fetch-site": "same-origin"}),
        ]
    return tries


async def test_a_foreign_page_neither_starts_nor_reads_nor_steers(tmp_path: Path) -> None:
    """Requests of other sites and of rebound names get 403 or no answer at all, and no workflow begins by them."""
    home = tmp_path / "home"
    try:
        address = (await ensure_server(home)).address
        server = running(home)
        for port, headers in attacks(server):
            for method, place in (("POST", PLACE), ("POST", PLACE + "/terminate"), ("GET", PLACE), ("GET", LIST)):
                status = await asyncio.to_thread(ask, port, method, place, headers)
                assert status == (0 if port == server.port else 403), (port, headers, method, place)
        assert not await exists(address, "planted")
    finally:
        detach_server(home)
        kill_server(home)


async def test_the_web_ui_itself_works_as_before(tmp_path: Path) -> None:
    """The address that is printed serves the page, its files and its own requests; the real UI is elsewhere."""
    home = tmp_path / "home"
    try:
        server = await ensure_server(home)
        found = running(home)
        assert server.ui_url == f"http://127.0.0.1:{found.ui_port}"
        own = {"host": f"127.0.0.1:{found.ui_port}", "origin": server.ui_url, "sec-fetch-site": "same-origin"}
        opened = {"host": f"127.0.0.1:{found.ui_port}", "sec-fetch-site": "none"}
        assert await asyncio.to_thread(ask, found.ui_port, "GET", "/namespaces/default/workflows", opened) == 200
        async with asyncio.timeout(SOON):  # the UI itself finds the server within a second or two
            while await asyncio.to_thread(ask, found.ui_port, "GET", LIST, own) == 503:
                await asyncio.sleep(0.1)
        assert await asyncio.to_thread(ask, found.ui_port, "GET", LIST, own) == 200
        assert await asyncio.to_thread(ask, found.ui_port, "POST", PLACE, JSON | own) == 200
        assert await exists(server.address, "planted")
        assert found.ui_server_host not in {"", "127.0.0.1"}
        assert await asyncio.to_thread(ask, found.ui_server_port, "GET", "/", opened) == 0
    finally:
        detach_server(home)
        kill_server(home)


async def test_the_web_ui_comes_back_with_its_keeper(tmp_path: Path) -> None:
    """A keeper that takes over the server of a killed one lets browsers in again, at the same address."""
    home = tmp_path / "home"
    try:
        await ensure_server(home)
        before = running(home)
        os.kill(before.keeper_pid, signal.SIGKILL)
        await until(ServerFiles(home).keeper_lock().is_free)
        detach_server(home)
        await ensure_server(home)
        after = running(home)
        assert (after.server_pid, after.ui_port) == (before.server_pid, before.ui_port)
        assert await asyncio.to_thread(ask, after.ui_port, "GET", "/", {"host": "localhost"}) == 200
    finally:
        detach_server(home)
        kill_server(home)


async def test_the_engine_keeps_its_files_to_itself(tmp_path: Path) -> None:
    """Whoever starts it, and with whatever umask: database, logs and locks are for the owner alone."""
    home = tmp_path / "home"
    before = os.umask(0o022)
    try:
        await ensure_server(home)
        assert (home / "engine" / "temporal.db-wal").exists()
        assert [path for path in (home, *home.rglob("*")) if path.stat().st_mode & 0o077] == []
    finally:
        os.umask(before)
        detach_server(home)
        kill_server(home)
