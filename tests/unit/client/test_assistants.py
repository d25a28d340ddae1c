"""Tools for assistants without a server: what they say of themselves, bad input, pages, stored reports and documents."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from client.assistants.answers import pages_of
from client.assistants.runs import Desk
from client.assistants.server import AssistantServer
from client.assistants.tasks import RunTasks
from client.cli.context import open_context
from client.cli.http_doors import TOOLS
from contracts.outcome import ReportFiles, ResearchResult
from contracts.vocabulary import Outcome, RunStatus, SourceStatus, StopReason
from tests.fakes import states
from tests.fakes.corpus import MANUAL
from tests.fakes.task_client import GetTask, TaskParams, TaskState, UpdateTask, WaitingClient
from tests.unit.client.cli.command_line import put_text, save_run
from workers.process import PortUnusableError
from workers.settings.loading import Flags

PAGE = "https://example.org/heat"
CAPPED = "[strategy.supervisor.medium]\nmax_cost_usd = 7.25\n"


@pytest.fixture
def configured(home: Path, tmp_path: Path) -> Path:
    """A configuration with a corpus, one whose folder is gone, and a cap of the operator."""
    documents = tmp_path / "manual"
    documents.mkdir()
    for name, text in MANUAL.items():
        (documents / name).write_text(text, encoding="utf-8")
    gone = f'[corpus.manual]\npath = "{documents}"\n\n[corpus.gone]\npath = "{tmp_path}/nowhere"\n\n'
    file = tmp_path / "research.toml"
    file.write_text(gone + CAPPED, encoding="utf-8")
    return file


@asynccontextmanager
async def assistant(configuration: Path) -> AsyncIterator[Client]:
    """A client of the tools in this process; there is no server, and none is started."""
    async with open_context(Flags(config=configuration)) as context:
        library = await context.stores.corpora()
        await library.refresh("manual")
        async with Client(AssistantServer(Desk(context.settings, context.stores))) as client:
            yield client


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    """The one line of a call that fails."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    (content,) = answer.content
    assert content.type == "text"
    assert "\n" not in content.text
    assert "Traceback" not in content.text
    assert "Error executing" not in content.text
    return content.text


@pytest.mark.usefixtures("no_children")
async def test_tools_say_what_costs_money_and_have_schemas(configured: Path) -> None:
    """The operator's cap is in the words for the assistant; every tool has a schema of its answer; two names are fixed."""
    async with assistant(configured) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "7.25 US dollars" in str(client.instructions)
        paid = {name for name, tool in tools.items() if "7.25 US dollars at most" in str(tool.description)}
        assert paid == {"start_research", "ask_follow_up"}
        assert all(tool.output_schema and "properties" in tool.output_schema for tool in tools.values())
        assert all(tool.description and "{" not in tool.description for tool in tools.values())
        free = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert free == {"research_status", "read_report", "search", "fetch"}
        assert list(tools["search"].input_schema["properties"]) == ["query"]
        assert list(tools["fetch"].input_schema["properties"]) == ["id"]


@pytest.mark.usefixtures("no_children")
async def test_tools_name_the_cap_of_the_ceiling(configured: Path) -> None:
    """That of the presets is higher; a tenant that nothing proves starts no run, and the line names the variable."""
    lower = configured.read_text(encoding="utf-8") + "\n[limits.ceiling]\nmax_cost_usd = 0.75\n"
    configured.write_text(lower, encoding="utf-8")
    async with assistant(configured) as client:
        assert "a run ends at 0.75 US dollars at most" in str(client.instructions)
    configured.write_text(f'tenant = "lab"\n{lower}\n[tenants]\nproof = true\n', encoding="utf-8")
    async with assistant(configured) as client:
        refused = await failure(client, "start_research", question="How?", corpus="manual")
    assert refused.startswith(
        "runs of the tenant lab cannot be started here, as nothing proves it: set RESEARCH_TENANT_"
    )


@pytest.mark.usefixtures("no_children")
async def test_bad_input_is_one_line_with_a_remedy(configured: Path) -> None:
    """Empty, huge, foreign and unknown values; nothing of three million characters comes back."""
    async with assistant(configured) as client:
        assert "the question is empty" in await failure(client, "start_research", question=" \n ")
        for arguments in ({"question": "x" * 3_000_000}, {"question": "How?", "strategy": "y" * 3_000_000}):
            assert len(await failure(client, "start_research", **arguments)) < 200
        assert "known: gone, manual" in await failure(client, "start_research", question="How?", corpus="nowhere")
        assert "choose supervisor" in await failure(client, "start_research", question="How?", strategy="magic")
        assert "corpus" in await failure(client, "start_research", question="How?", corpus="../../etc")
        assert "research serve" in await failure(client, "start_research", question="How?", corpus="manual")
        for tool in ("research_status", "read_report", "stop"):
            assert "../x" in await failure(client, tool, research_id="../x") or tool == "stop"
        assert "research list" not in await failure(client, "read_report", research_id="../x")
        assert "page" in await failure(client, "read_report", research_id="r", page=0)
        assert "45" in await failure(client, "research_status", research_id="r", wait_seconds=60)
        for document in ("../x", "corpus:manual/../../etc/passwd", "research://../sources/src-1", "file:///etc/passwd"):
            assert len(await failure(client, "fetch", id=document)) < 200
        assert "unknown" in (await failure(client, "no_such_tool")).lower()
        misspelt = await failure(client, "start_research", question="How?", corpus="manual", max_cost=0.5)
        assert misspelt.startswith("start_research has no argument 'max_cost': it has question, corpus, ")
        assert "max_cost_usd" in misspelt
        assert len(await failure(client, "search", query="How?", **{"x" * 3_000_000: 1})) < 200
        with pytest.raises(MCPError, match="no run"):
            await client.read_resource("research://nope/report.md")


def stored_run(home: Path, report: str, page: str) -> None:
    """A finished run with a report and an archived page."""
    source = states.source(PAGE).model_copy(
        update={"id": "src-1", "title": "Pumps", "status": SourceStatus.FULL, "text": put_text(home, page)}
    )
    files = ReportFiles(markdown=put_text(home, report), html=put_text(home, ""), json_document=put_text(home, "{}"))
    result = ResearchResult(
        research_id="r-1",
        outcome=Outcome.COMPLETED,
        stop_reason=StopReason.NO_OPEN_GAPS,
        report=report[:2_000],
        files=files,
    )
    state = states.state(status=RunStatus.COMPLETED, result=result, sources={"src-1": source})
    save_run(home, "r-1", state, closed=True)


@pytest.mark.usefixtures("no_children")
async def test_what_is_stored_is_found_and_read_in_pages(home: Path, configured: Path) -> None:
    """Corpora, finished reports and archived pages, in the shape that hosts know; a removed run is found no more."""
    report = "# How?\n\n" + "A sentence about quiet compressors.\n\n" * 2_000
    page = "The inverter modulates its speed. " * 3_000
    await asyncio.to_thread(stored_run, home, report, page)
    async with assistant(configured) as client:
        answer = await client.call_tool("search", {"query": "quiet compressors"})
        assert answer.structured_content is not None
        (found,) = answer.structured_content["results"]
        assert set(found) == {"id", "title", "url"}
        assert found["id"] == found["url"] == "research://r-1/report.md"
        answer = await client.call_tool("search", {"query": "How does an inverter work?"})
        assert answer.structured_content is not None
        (archived,) = answer.structured_content["results"]
        assert (archived["url"], archived["title"]) == (PAGE, "Pumps")
        text, document = "", archived["id"]
        while document:
            answer = await client.call_tool("fetch", {"id": document})
            assert answer.structured_content is not None
            assert set(answer.structured_content) == {"id", "title", "text", "url", "metadata"}
            text += answer.structured_content["text"] + " "
            document = answer.structured_content["metadata"].get("next_id", "")
        assert text.strip() == page.strip()
        answer = await client.call_tool("search", {"query": "wraparound"})
        assert answer.structured_content is not None
        assert answer.structured_content["results"][0]["url"] == "corpus:manual/vacuum.md"
        read, number, pages = "", 1, 2
        while number <= pages:
            answer = await client.call_tool("read_report", {"research_id": "r-1", "page": number})
            assert answer.structured_content is not None
            assert len(answer.structured_content["content"].encode()) <= 20_000
            read += answer.structured_content["content"] + "\n\n"
            number, pages = number + 1, answer.structured_content["pages"]
        assert read.strip() == report.strip()
        answer = await client.call_tool("read_report", {"research_id": "r-1", "part": "thread"})
        assert answer.structured_content is not None
        assert answer.structured_content["content"].startswith(
            "1. How does the engine prevent wraparound? — completed · 0.00 USD · r-1"
        )
        (home / "sessions" / "r-1.json").unlink()
        answer = await client.call_tool("search", {"query": "quiet compressors"})
        assert answer.structured_content == {"results": []}


@pytest.mark.usefixtures("no_children")
async def test_an_assistant_of_a_tenant_finds_its_runs_alone(
    home: Path, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By search, as a resource, by id and by the address of a document: as if there were no others."""
    await asyncio.to_thread(stored_run, home, "# How?\n\nQuiet compressors.", "The inverter modulates its speed.")
    monkeypatch.setenv("RESEARCH_TENANT", "ada")
    async with assistant(configured) as client:
        answer = await client.call_tool("search", {"query": "quiet compressors"})
        assert answer.structured_content == {"results": []}
        assert (await client.list_resources()).resources == []
        for address in ("research://r-1/sources/src-1", "research://r-1/report.md"):
            assert "there is no run 'r-1'" in await failure(client, "fetch", id=address)
        assert "there is no run 'r-1'" in await failure(client, "read_report", research_id="r-1")


@pytest.mark.usefixtures("no_children")
async def test_a_finished_run_is_a_task_that_is_over(home: Path, configured: Path) -> None:
    """With the answer of the tool that started it; an unknown id and answers past the tools are refused in one line."""
    await asyncio.to_thread(stored_run, home, "# How?", "page")
    async with assistant(configured) as client:
        state = await client.session.send_request(GetTask(params=TaskParams(task_id="r-1")), TaskState)
        assert (state.task_id, state.status, state.ttl_ms) == ("r-1", "completed", None)
        assert state.result is not None
        assert state.result["structuredContent"]["next"] == 'call read_report with research_id "r-1"'
        assert not state.result["isError"]
        with pytest.raises(MCPError, match="no run 'nope': see search"):
            await client.session.send_request(GetTask(params=TaskParams(task_id="nope")), TaskState)
        with pytest.raises(MCPError, match="call answer_questions"):
            await client.session.send_request(UpdateTask(params=TaskParams(task_id="r-1")), TaskState)


@pytest.mark.parametrize("speaks_of_tasks", [True, False])
async def test_a_started_run_is_a_task_for_clients_that_say_so(
    home: Path, configured: Path, *, speaks_of_tasks: bool
) -> None:
    """Such a client waits by itself and gets the answer at the end; any other has it at once."""
    await asyncio.to_thread(stored_run, home, "# How?", "page")
    started = {"research_id": "r-1"}
    async with open_context(Flags(config=configured)) as context:
        desk = Desk(context.settings, context.stores)
        server: MCPServer[Any] = MCPServer("runs", extensions=[RunTasks(desk, lambda error, _: str(error))])

        @server.tool(structured_output=False)
        def start_research() -> CallToolResult:
            return CallToolResult(content=[TextContent(type="text", text="Started")], structured_content=started)

        @server.tool(structured_output=False)
        def search() -> CallToolResult:
            return CallToolResult(content=[], structured_content=started)

        waiting = WaitingClient()
        async with Client(server, extensions=[waiting] if speaks_of_tasks else None) as client:
            assert (await client.call_tool("search", {})).structured_content == started
            answer = await client.call_tool("start_research", {})
    assert [state.status for state in waiting.seen] == (["working", "completed"] if speaks_of_tasks else [])
    assert {state.task_id for state in waiting.seen} == ({"r-1"} if speaks_of_tasks else set())
    assert answer.structured_content is not None
    assert ("read_report" in answer.structured_content.get("next", "")) is speaks_of_tasks


@pytest.mark.parametrize("sign", ["x", "ä", "語", "🙂"])
def test_pages_are_cut_by_bytes_and_lose_nothing(sign: str) -> None:
    """At paragraphs where there are some, else anywhere but within a sign."""
    for text in (sign * 30_000, f"{sign * 50}\n\n" * 500, f"{sign * 9} " * 3_000):
        pages = pages_of(text, 20_000)
        assert len(pages) > 1
        assert all(0 < len(page.encode()) <= 20_000 for page in pages)
        assert "".join("".join(pages).split()) == "".join(text.split())


def test_the_usual_port_is_taken_if_it_is_free_and_a_named_one_is_required() -> None:
    """A second server gets a port of its own; a port that was named and is taken is an error with its remedy."""
    with TOOLS.listen(None) as first, TOOLS.listen(None) as second:
        assert {first.getsockname()[0], second.getsockname()[0]} == {"127.0.0.1"}
        assert second.getsockname()[1] != TOOLS.port
        with pytest.raises(PortUnusableError, match="choose --mcp-port"):
            TOOLS.listen(second.getsockname()[1])


def test_the_sdk_is_imported_for_assistants_alone() -> None:
    """`research run`, `serve` and workers cost no memory for a door that nobody uses."""
    modules = "client.cli.run, client.cli.serve, client.cli.assistants, workers.composition, workers.pools"
    check = f"import sys, {modules}; print(sorted({{'mcp', 'uvicorn', 'starlette'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]"
