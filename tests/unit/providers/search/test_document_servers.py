"""Servers of documents over both transports, good and bad: what is found and read, and what each fault becomes."""

import asyncio
import os
import signal
import sqlite3
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from contracts.messages import SearchRequest
from contracts.names import SERVER_SCHEME
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, SourceUnreadable, Unavailable
from providers.isolation.pool import SubprocessPool
from providers.search import server_connection
from providers.search.declarations import FieldNames, ServerDefinition
from providers.search.document_servers import DocumentServer, document_id, document_url
from providers.storage.content import ObstoreContentStore
from tests.fakes.document_servers import DOCUMENTS, FILE, LINK, STRANGE, serving

pytestmark = pytest.mark.usefixtures("no_children")
SECRET = "planted-secret-of-the-operator"


def asking(**fields: Any) -> SearchRequest:
    """A search for words of the documents."""
    return SearchRequest(research_id="r", operation="search", provider="mcp.wiki", text="vacuum", **fields)


@asynccontextmanager
async def opened(folder: Path, kind: str = "good", **fields: Any) -> AsyncIterator[DocumentServer]:
    """A server of a kind, as a program unless an address is given; calls are noted in the folder."""
    if "url" not in fields:
        fields = {"command": (sys.executable, FILE, kind, str(folder)), **fields}
    definition = ServerDefinition(name="mcp.wiki", **fields)
    async with SubprocessPool(1) as pool:
        server = DocumentServer(definition, pool, ObstoreContentStore((folder / "content").as_uri()))
        try:
            yield server
        finally:
            await server.close()


@asynccontextmanager
async def answering(folder: Path, kind: str = "good", **fields: Any) -> AsyncIterator[DocumentServer]:
    """A server of a kind in this process, by its address: what it answers is the same over both transports."""
    async with serving(kind, folder) as url, opened(folder, url=url, **fields) as server:
        yield server


def calls(folder: Path) -> list[str]:
    """The calls that were noted, without the process."""
    return [line.partition(" ")[2] for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]


def processes(folder: Path) -> list[int]:
    """The processes that were called, in order."""
    return [int(line.split()[0]) for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]


def is_alive(process: int) -> bool:
    """Return whether a process runs."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return False


async def failure(server: DocumentServer) -> ProviderError:
    """The error of a search."""
    with pytest.raises(ProviderError) as raised:
        await server.search(asking())
    assert "secret of the server" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize("by_address", [False, True])
async def test_what_a_server_gives_is_found_and_read(tmp_path: Path, *, by_address: bool) -> None:
    """Any id is an address that leads back to it; the web address is shown; one process serves all calls."""

    async def check(server: DocumentServer) -> None:
        hits = (await server.search(asking())).hits
        assert [document_id(hit.url) for hit in hits] == list(DOCUMENTS)
        assert all(hit.url.startswith(f"{SERVER_SCHEME}wiki/") and hit.url.isascii() for hit in hits)
        assert [hit.address for hit in hits] == [f"{LINK}{len(key)}" for key in DOCUMENTS]
        assert [hit.title for hit in hits] == ["Vacuum", "Wraparound", "Costs"]
        assert all(hit.document is None for hit in hits)
        for hit in hits:
            document = await server.read(hit.url)
            title, text = DOCUMENTS[document_id(hit.url)]
            assert (document.url, document.title, document.text.strip()) == (hit.url, title, text)
            assert (document.address, document.published_at) == (hit.address, "2026-03-01")
        assert calls(tmp_path) == ["search", "fetch", "fetch", "fetch"]
        assert len(set(processes(tmp_path))) == 1

    if by_address:
        async with serving("good", tmp_path) as url, opened(tmp_path, url=url) as server:
            await check(server)
    else:
        async with opened(tmp_path) as server:
            await check(server)
        async with asyncio.timeout(60):
            while is_alive(processes(tmp_path)[0]):
                await asyncio.sleep(0.02)


async def test_a_tool_without_the_usual_names_is_mapped(tmp_path: Path) -> None:
    """Query, limit, results and fields by their names; a hit with its whole text needs no fetch, and is read from it."""
    fields = FieldNames(
        query="words", limit="most", results="found.hits", id="key.number", title="name", text="body", url="link"
    )
    async with answering(tmp_path, "one_tool", search_tool="find", fields=fields) as server:
        hits = (await server.search(asking(max_results=2))).hits
        assert [hit.url for hit in hits] == ["mcp:wiki/0", "mcp:wiki/1"]
        assert [hit.snippet[:6] for hit in hits] == ["VACUUM", "A tran"]
        for hit, (_, text) in zip(hits, DOCUMENTS.values(), strict=False):
            assert hit.document is not None
            assert (await server.read(hit.url, hit.document)).text.strip() == text
        assert calls(tmp_path) == ["find vacuum"]
        with pytest.raises(SourceUnreadable, match="no tool to fetch"):
            await server.read("mcp:wiki/0")


async def test_a_wrong_mapping_is_named_with_its_setting(tmp_path: Path) -> None:
    """Before a call if a tool is missing; the definition says which argument there is not."""
    async with answering(tmp_path, search_tool="find") as server:
        assert "has no tool “find”" in str(await failure(server))
    definition = ServerDefinition(name="mcp.wiki", search_tool="find", fields=FieldNames(query="words", limit="most"))
    assert definition.missing_in({"search": ["query"]}) == "it has no tool find: set search.mcp.wiki.search_tool"
    assert definition.missing_in({"find": ["query"]}) == (
        "find has no argument words: set search.mcp.wiki.fields.query; "
        "find has no argument most: set search.mcp.wiki.fields.limit"
    )
    fitting = ServerDefinition(name="mcp.wiki")
    tools = {"search": ["query"], "fetch": ["id"]}
    assert fitting.missing_in(tools) == ""
    assert "search(query) gives results: id, title, text, url, date; fetch(id) gives text" in fitting.mapping(tools)


@pytest.mark.soak
async def test_a_slow_server_is_given_up_in_time(tmp_path: Path) -> None:
    """Each call is; after two in a row its process is replaced, as it may stand still."""
    async with opened(tmp_path, "slow", seconds=1.5) as server:
        for _ in range(3):
            began = time.monotonic()
            error = await failure(server)
            assert isinstance(error, Unavailable)
            assert "no answer in 1.5 s" in str(error)
            assert time.monotonic() - began < 6
    assert [number == processes(tmp_path)[0] for number in processes(tmp_path)] == [True, True, False]


async def test_a_server_that_dies_in_a_call_is_started_again(tmp_path: Path) -> None:
    """The call fails as one that may be repeated, and the next one is answered."""
    async with opened(tmp_path, "dies") as server:
        assert isinstance(await failure(server), Unavailable)
        assert len((await server.search(asking())).hits) == len(DOCUMENTS)
        os.kill(processes(tmp_path)[-1], signal.SIGKILL)
        while server._connection is not None and not server._connection.broken:
            await asyncio.sleep(0.01)
        assert (await server.read("mcp:wiki/1")).title == "Vacuum"  # noticed without a call that fails


@pytest.mark.soak
async def test_a_server_that_always_dies_is_not_started_for_ever(tmp_path: Path) -> None:
    """After three starts within a minute callers are asked to wait until it is over."""
    async with opened(tmp_path, "mortal") as server:
        for _ in range(3):
            await failure(server)
        error = await failure(server)
        assert isinstance(error, Unavailable)
        assert 0 < (error.retry_after or 0) <= 60
    assert len(calls(tmp_path)) == 3


@pytest.mark.parametrize("by_address", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_an_answer_of_fifty_megabytes_is_not_taken(tmp_path: Path, *, by_address: bool) -> None:
    """Neither of a search nor of a document, over either transport; the next call is answered."""

    async def check(server: DocumentServer) -> None:
        assert isinstance(await failure(server), Unavailable)
        with pytest.raises(Unavailable):
            await server.read("mcp:wiki/1")
        assert "search" in await server.tools()

    if by_address:
        async with serving("huge", tmp_path) as url, opened(tmp_path, url=url) as server:
            await check(server)
    else:
        async with opened(tmp_path, "huge") as server:
            await check(server)


async def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    """Markup, control and invisible characters do not pass; addresses that are no plain web pages are not shown."""
    async with answering(tmp_path, "hostile") as server:
        hits = (await server.search(asking())).hits
        assert [hit.address for hit in hits] == ["", "", ""]
        shown = hits[0].title + hits[0].snippet
        assert len(shown) < 1_500
        assert not {"<", "\u202e", "\u200b", "\x07", "\n"} & set(shown)
        document = await server.read(hits[0].url)
        assert "VACUUM reclaims the storage" in document.text
        assert not {"\u202e", "\x07"} & set(document.text)
        assert document.address == "http://169.254.169.254/latest"  # text to show: nothing opens it


@pytest.mark.parametrize(
    ("kind", "expected", "words"),
    [
        ("wrong", Unavailable, "no list at “results”"),
        ("useless", Unavailable, "results have no “id”"),
        ("fails", InvalidCall, "reports an error"),
    ],
)
async def test_answers_of_another_form_are_errors(
    tmp_path: Path, kind: str, expected: type[ProviderError], words: str
) -> None:
    """Never an empty result; a tool that refuses a query refuses only that one."""
    async with answering(tmp_path, kind) as server:
        error = await failure(server)
        assert isinstance(error, expected)
        assert words in str(error)


async def test_duplicates_and_long_lists_are_bounded(tmp_path: Path) -> None:
    """A document is found once, and of twenty thousand results as many as were asked for."""
    async with answering(tmp_path, "twice") as server:
        hits = (await server.search(asking())).hits
        assert [(document_id(hit.url), hit.rank) for hit in hits] == list(zip(DOCUMENTS, (1, 4, 7), strict=True))
    async with answering(tmp_path, "many") as server:
        assert len((await server.search(asking(max_results=7))).hits) == 7


async def test_results_keep_to_the_domains_and_days_of_a_request(tmp_path: Path) -> None:
    """By the web address of a document, if it has one; for what a server cannot do the answer has warnings."""
    async with answering(tmp_path) as server:
        assert not (await server.search(asking(domains_deny=["example.org"]))).hits
        answer = await server.search(asking(domains_allow=["example.org"], language="de"))
        assert len(answer.hits) == len(DOCUMENTS)
        assert "cannot keep to a language" in answer.warnings
    async with answering(tmp_path, "hostile") as server:
        assert (await server.search(asking(domains_allow=["example.org"]))).hits


async def test_documents_of_several_forms_are_read(tmp_path: Path) -> None:
    """Pages that name the next one, a file of another type, and plain text that is no JSON."""
    async with answering(tmp_path, "pages") as server:
        document = await server.read("mcp:wiki/1")
        assert [f"page {number}" in document.text for number in (1, 2, 3, 4)] == [True, True, True, False]
    async with answering(tmp_path, "resource") as server:
        document = await server.read("mcp:wiki/1")
        assert (document.media_type, document.text) == (
            "text/html",
            "# Freezing\n\nRows older than fifty million transactions are frozen.",
        )
    async with answering(tmp_path, "plain") as server:
        assert "a < b" in (await server.read("mcp:wiki/1")).text


@pytest.mark.parametrize(("kind", "reason"), [("endless", "too_large"), ("wrong", "malformed"), ("good", "not_found")])
async def test_documents_that_cannot_be_read_have_a_reason(tmp_path: Path, kind: str, reason: str) -> None:
    """One that never ends, one without a text, and one that the server does not have."""
    async with answering(tmp_path, kind) as server:
        with pytest.raises(SourceUnreadable) as raised:
            await server.read("mcp:wiki/unknown")
        assert raised.value.kind == reason


async def test_a_program_gets_only_the_variables_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither keys of this process nor its search path."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    async with opened(tmp_path, environment={"WIKI_TOKEN": "a"}) as server:
        await server.search(asking())
        text = Path(f"/proc/{processes(tmp_path)[0]}/environ").read_bytes()
    assert text.split(b"\0")[:-1] == [b"WIKI_TOKEN=a"]


async def test_a_header_is_sent_and_its_refusal_names_the_setting(tmp_path: Path) -> None:
    """A wrong one is an error of the configuration, without any word of the server."""
    async with serving("good", tmp_path, token=SECRET) as url:
        async with opened(tmp_path, url=url, headers={"authorization": SECRET}) as server:
            assert (await server.search(asking())).hits
        async with opened(tmp_path, url=url, headers={"authorization": "wrong"}) as server:
            error = await failure(server)
            assert isinstance(error, NotConfigured)
            assert "refuses the credentials (401)" in str(error)


@pytest.mark.parametrize(
    ("status", "expected", "wait"),
    [(429, RateLimited, 7.0), (503, Unavailable, 7.0), (400, InvalidCall, None), (403, NotConfigured, None)],
)
async def test_refusals_over_http_are_those_of_any_service(
    tmp_path: Path, status: int, expected: type[ProviderError], wait: float | None
) -> None:
    """With the time that the server names, and without its words; one that asks to wait is not connected to again."""
    async with serving("good", tmp_path, status=status) as url, opened(tmp_path, url=url) as server:
        error = await failure(server)
        assert isinstance(error, expected)
        assert getattr(error, "retry_after", None) == wait
        connection = server._connection
        await failure(server)
        assert (server._connection is connection) is (status in (429, 400))


async def test_places_without_a_server_have_reasons_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing program is never tried again; one that ends, that says nonsense or is silent, and an empty port are."""
    commands: Mapping[str, tuple[str, ...]] = {
        "no program": ("research-no-such-program",),
        "its program ended": (sys.executable, "-c", "pass"),
        "no messages": (sys.executable, "-c", "print('hello')"),
        "was not ready": (sys.executable, "-c", "import time; time.sleep(60)"),
    }
    for words, command in commands.items():
        monkeypatch.setattr(server_connection, "START_SECONDS", 1.0 if words == "was not ready" else 60.0)
        async with opened(tmp_path, command=command) as server:
            error = await failure(server)
            assert words in str(error)
            assert isinstance(error, NotConfigured if words == "no program" else Unavailable)
    async with opened(tmp_path, url="http://127.0.0.1:1/mcp") as server:
        assert isinstance(await failure(server), Unavailable)


async def test_a_program_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    """Also one that does not read its input, with all that it has started."""
    program = (
        "import os, subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(90)']);"
        f"open({str(tmp_path / 'calls')!r}, 'w').write(f'{{os.getpid()}} a\\n{{child.pid}} b\\n'); time.sleep(90)"
    )
    worker = (
        "import asyncio, sys\n"
        "from providers.search.server_connection import Endpoint, ServerConnection\n"
        "async def main():\n"
        f"    await ServerConnection(Endpoint('mcp.x', (sys.executable, '-c', {program!r}), {{}})).open()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", worker, env={"PYTHONPATH": str(Path(FILE).parents[2])}
    )
    async with asyncio.timeout(60):
        while not (tmp_path / "calls").exists() or len(processes(tmp_path)) < 2:
            await asyncio.sleep(0.02)
        assert all(map(is_alive, processes(tmp_path)))
        process.kill()
        await process.wait()
        while any(map(is_alive, processes(tmp_path))):
            await asyncio.sleep(0.02)


def test_any_id_has_an_address() -> None:
    """Of plain letters, in which nothing of the id has a meaning of its own."""
    for identity in (STRANGE, "a", "https://example.org/x?y#z", "/", "..", "语言"):
        url = document_url("mcp.wiki", identity)
        assert document_id(url) == identity
        assert url.removeprefix("mcp:wiki/").replace("%", "").replace("_", "").isascii()
        assert "/" not in url.removeprefix("mcp:wiki/")


async def test_the_example_of_the_documentation_is_searched_as_it_says(tmp_path: Path) -> None:
    """One tool over a SQLite file, with the names of the page about private sources."""
    page = (Path(FILE).parents[2] / "docs" / "private-sources.md").read_text(encoding="utf-8")
    configured = next(block for block in page.split("```toml\n") if block.startswith("[search.mcp.notes]"))
    settings = tomllib.loads(configured.partition("```")[0])["search"]["mcp"]["notes"]
    with closing(sqlite3.connect(tmp_path / "notes.sqlite")) as database, database:
        database.execute("CREATE TABLE notes (number, title, body, link, day)")
        rows = [(7, "Vacuum", "VACUUM frees rows.", f"{LINK}7", "2026-02-01"), (8, "Tea", "Green.", "", None)]
        database.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", rows)
    command = (
        sys.executable,
        str(Path(FILE).parents[2] / "examples" / "notes_server.py"),
        str(tmp_path / "notes.sqlite"),
    )
    async with opened(
        tmp_path, command=command, search_tool=settings["search_tool"], fields=FieldNames(**settings["fields"])
    ) as server:
        assert server.definition.missing_in(await server.tools()) == ""
        (hit,) = (await server.search(asking())).hits
        assert (hit.url, hit.title, hit.address, hit.published_at) == ("mcp:wiki/7", "Vacuum", f"{LINK}7", "2026-02-01")
        assert (await server.read(hit.url, hit.document)).text == "VACUUM frees rows."
