"""`research read URL`: pages exactly as a worker reads them, one JSON object a line."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.cli.app import app
from client.cli.read_search import is_address
from tests.fakes.web import WebServer, page, redirect, reply


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server beside the command, which has a loop of its own."""
    running: Future[WebServer] = Future()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def serve() -> None:
        pages = {"/old": redirect("/new"), "/new": page("Vacuum removes dead rows.", title="Vacuum")}
        async with WebServer(pages) as made:
            running.set_result(made)
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield running.result(10)
    loop.call_soon_threadsafe(ending.set)
    thread.join(10)
    loop.close()


def read(*inputs: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and the lines of `read --json`."""
    result = CliRunner().invoke(app, ["read", "--json", "--", *inputs])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_a_page_is_read_under_its_final_address(
    server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an exception for its host; what cannot be read has a line too, and the exit code says so."""
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path))
    monkeypatch.setenv("RESEARCH_ALLOW_HOSTS", server.host)
    code, (good,) = read(server.url("/old"))
    assert code == 0
    assert good | {"content_hash": "", "characters": 0} == {
        "input": server.url("/old"),
        "ok": True,
        "title": "Vacuum",
        "url": server.url("/new"),
        "content_hash": "",
        "characters": 0,
        "media_type": "text/html",
        "language": None,
        "authors": [],
        "publisher": None,
        "published_at": None,
        "warnings": [],
        "error": None,
    }
    assert good["content_hash"].startswith("sha256:")
    assert good["characters"] > len("Vacuum removes dead rows.")
    code, lines = read(server.url("/new"), server.url("/none"), "http://127.0.0.1/")
    assert (code, [line["ok"] for line in lines]) == (4, [True, False, False])
    assert [line["error"]["type"] for line in lines[1:]] == ["not_found", "refused_address"]
    assert {tuple(line) for line in lines} == {tuple(good)}


def test_the_origin_of_a_page_is_shown(server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wrote it and when."""
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path))
    monkeypatch.setenv("RESEARCH_ALLOW_HOSTS", server.host)
    head = "<title>Vacuum</title><meta name=author content='Ada L.'><meta name=date content=2024-05-17>"
    server.pages["/offer"] = reply(
        f"<html><head>{head}</head><body><p>Subscribe to continue reading.</p></body></html>"
    )
    shown = CliRunner().invoke(app, ["read", server.url("/offer")]).stdout
    assert "Ada L. · 2024-05-17" in shown


@pytest.mark.parametrize(
    "given",
    [
        "http://10.0.0.1/",
        "FILE:///etc/hostname",
        "file:/etc/hostname",
        "//127.0.0.1/",
        "h\nttp://127.0.0.1/",
        "http://",
    ],
)
def test_refused_addresses_say_so(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A malformed address or another scheme is never taken for a file."""
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path))
    code, (line,) = read(given)
    assert code == 4
    assert not line["ok"]
    assert line["error"]["type"].startswith("refused_")


def test_files_are_named_by_their_paths() -> None:
    """A path is no address, wherever it lies."""
    assert not any(map(is_address, ["a.md", "./a: b.md", "/tmp/x:y.md", "c:\\x.md", "../x", "a/b:c.md"]))
    assert all(map(is_address, ["http://x", "HTTPS:x", "data:text/html,x", " http://x", "//x", "view-source:http://x"]))
