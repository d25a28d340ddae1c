"""Tools for assistants over both transports: real processes, the protocol's own client, and whatever is killed."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.extension import ClientExtension
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from client.cli.context import open_context
from client.cli.http_doors import TOOLS
from tests.acceptance.topology import PYTHON, Topology, topology
from tests.fakes.task_client import GetTask, TaskParams, TaskState, WaitingClient
from tests.integration.runs import QUESTION
from workers.settings.loading import Flags

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

PROGRAM = str(Path(PYTHON).with_name("research"))
LATENCY = 0.4
SDK_LIBRARY = "cryptography/hazmat"
"""Machine code that `serve` needs for the SDK alone: the maps of a process show whether it was imported."""


@asynccontextmanager
async def assistant(made: Topology, *words: str, extensions: Sequence[ClientExtension] = ()) -> AsyncIterator[Client]:
    """A client that has started `research mcp`; its messages for people go to a file."""
    parameters = StdioServerParameters(command=PROGRAM, args=["mcp", *words], env=made.environment(), cwd=made.home)
    with (made.home / "assistant.log").open("a", encoding="utf-8") as log:
        async with Client(stdio_client(parameters, errlog=log), extensions=extensions) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of an answer; the text beside it says no less."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.content[0].type == "text"
    assert answer.structured_content is not None
    return dict(answer.structured_content)


async def wait_for_end(client: Client, research_id: str) -> dict[str, Any]:
    """Do what each state says is next, until the run is over."""
    seen = None
    while True:
        begun = time.monotonic()
        state = await ask(client, "research_status", research_id=research_id, **({"seen": seen} if seen else {}))
        assert time.monotonic() - begun < 50
        if state["outcome"]:
            assert "read_report" in state["next"]
            return state
        assert "research_status" in state["next"]
        seen = state["seen"]


@pytest.mark.soak
async def test_a_run_outlives_the_client_that_gave_up_on_it(tmp_path: Path) -> None:
    """Over standard input and output, while a model takes its time and a worker serves runs alone."""
    async with topology(tmp_path, LATENCY) as made:
        await made.start_workers()
        await outlive_a_client(made)


async def outlive_a_client(made: Topology) -> str:
    """A call is cut, the program ends, and another one goes on with the run's id, which is returned.

    A client may lower the operator's cap and not raise it. The report is read in pages with sources and verdicts;
    search and fetch find it and the documents. It has to be the first run of its home.
    """
    async with assistant(made, "--no-start") as client:
        asked = {"question": QUESTION, "corpus": "documents"}
        refused = await client.call_tool("start_research", {**asked, "max_cost_usd": 50})
        assert refused.is_error
        assert "at most 2.00 US dollars" in str(refused.content)
        started = await ask(client, "start_research", **asked, max_cost_usd=1.5)
        assert (started["max_cost_usd"], started["strategy"]) == (1.5, "supervisor")
        arguments = {"research_id": started["research_id"]}
        with pytest.raises(MCPError):
            await client.call_tool("research_status", arguments, read_timeout_seconds=0.001)
    async with assistant(made, "--no-start") as client:
        state = await wait_for_end(client, started["research_id"])
        assert state["outcome"] == "completed"
        _, status, _ = await made.ask("status", started["research_id"], "--json")
        assert json.loads(status)["limits"]["max_cost_usd"] == 1.5
        parts = {}
        for part in ("report", "sources", "verdicts"):
            page = await ask(client, "read_report", research_id=started["research_id"], part=part)
            assert len(page["content"].encode()) <= 20_000
            parts[part] = page
        assert QUESTION in parts["report"]["content"]
        assert "corpus:documents/" in parts["sources"]["content"]
        assert sum(parts["verdicts"]["verdicts"].values()) == len(parts["verdicts"]["content"].splitlines())
        found = (await ask(client, "search", query=QUESTION))["results"]
        addresses = [result["url"] for result in found]
        report = f"research://{started['research_id']}/report.md"
        assert report in addresses
        assert "corpus:documents/vacuum.md" in addresses
        texts = [(await ask(client, "fetch", id=result["id"]))["text"] for result in found]
        assert all(texts)
        resources = (await client.list_resources()).resources
        assert [str(resource.uri) for resource in resources] == [report]
        assert texts[addresses.index(report)].startswith(f"# {QUESTION}")
    assert made.answered_twice() == []
    return str(started["research_id"])


@pytest.mark.soak
async def test_a_plan_is_shown_changed_and_approved_by_tools(tmp_path: Path) -> None:
    """Nothing is searched before; what the user wants is passed on, and a version nobody has seen is refused."""
    async with topology(tmp_path) as made:
        await made.start_workers()
        async with assistant(made, "--no-start") as client:
            started = await ask(client, "start_research", question=QUESTION, corpus="documents", approval=True)
            named = {"research_id": started["research_id"]}
            state: dict[str, Any] = {"asked": None}
            while state["asked"] is None:
                state = await ask(client, "research_status", **named, wait_seconds=20)
            assert state["asked"]["plan"]
            assert "approve_plan" in state["next"]
            version = state["asked"]["plan_version"]
            refused = await client.call_tool("approve_plan", {**named, "version": version + 1})
            assert refused.is_error
            approved = await ask(client, "approve_plan", **named, version=version)
            assert "research_status" in approved["next"]
            assert (await wait_for_end(client, started["research_id"]))["outcome"] == "completed"


@asynccontextmanager
async def connected(made: Topology, transport: str, *extensions: ClientExtension) -> AsyncIterator[Client]:
    """A client over one of the two transports, beside workers that run already."""
    if transport == "stdio":
        async with assistant(made, "--no-start", extensions=extensions) as client:
            yield client
        return
    async with open_context(Flags(config=made.home / "research.toml")) as context:
        settings = context.settings.with_fields(home=made.home)
        async with (
            TOOLS.serve(settings, TOOLS.listen(0)) as address,
            Client(address, extensions=extensions) as client,
        ):
            yield client


async def until_asked(client: Client, research_id: str) -> dict[str, Any]:
    """The state of a run once it asks a person."""
    while True:
        state = await ask(client, "research_status", research_id=research_id, wait_seconds=20)
        if state["asked"] is not None:
            return state
        assert state["outcome"] is None


@pytest.mark.soak
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_what_a_user_decides_reaches_a_run_by_tools(tmp_path: Path, transport: str) -> None:
    """Answers, words on a plan, the approval of the version that was seen, an early end, and a question that follows.

    A call that the client gives up changes nothing: the run goes on, and the next call finds it.
    """
    async with topology(tmp_path, 0.3) as made:
        await made.start_workers()
        words = ("--corpus", "documents", "--clarify", "required", "--approve", "plan", "--id", "asked")
        code, _, errors = await made.ask("start", QUESTION, *words)
        assert code == 0, errors
        named = {"research_id": "asked"}
        async with connected(made, transport) as client:
            state = await until_asked(client, "asked")
            assert state["asked"]["questions"]
            assert "answer_questions" in state["next"]
            early = await client.call_tool("approve_plan", {**named, "version": 1})
            assert early.is_error
            await ask(client, "answer_questions", **named, answers=["On Linux."] * len(state["asked"]["questions"]))
            state = await until_asked(client, "asked")
            while not state["asked"]["plan"]:
                state = await until_asked(client, "asked")
            version = state["asked"]["plan_version"]
            wrong = await client.call_tool("approve_plan", {**named, "version": version + 7})
            assert wrong.is_error
            assert "research_status, which shows it" in str(wrong.content)
            assert "`research" not in str(wrong.content)
            steered = await ask(client, "steer", **named, text="Leave out the cost limit.")
            assert "`research" not in steered["reply"]
            newer = version
            while newer == version:
                newer = (await until_asked(client, "asked"))["asked"]["plan_version"]
            outdated = await client.call_tool("approve_plan", {**named, "version": version})
            assert outdated.is_error
            await ask(client, "approve_plan", **named, version=newer)
            while not state["sources"]:
                state = await ask(client, "research_status", **named, wait_seconds=1)
            with pytest.raises(MCPError):
                await client.call_tool("research_status", named, read_timeout_seconds=0.01)
            stopped = await ask(client, "stop", **named)
            assert "report" in stopped["reply"]
            over = await wait_for_end(client, "asked")
            assert over["outcome"] in ("completed", "partial"), over
            asked_again = {**named, "question": "What does freezing do?"}
            refused = await client.call_tool("ask_follow_up", {**asked_again, "max_cost_usd": 50})
            assert refused.is_error
            assert "at most 2.00 US dollars" in str(refused.content)
            following = await ask(client, "ask_follow_up", **asked_again)
            assert following["research_id"] != "asked"
            assert following["searches"] == "the corpus documents"
            assert (await wait_for_end(client, following["research_id"]))["outcome"] == "completed"
        _, report, _ = await made.ask("report", following["research_id"])
        assert f"The run asked (“{QUESTION}”)" in report


@pytest.mark.soak
async def test_tools_of_a_server_that_is_killed_and_started_again(tmp_path: Path) -> None:
    """Over HTTP: the SDK is not imported before a client comes; the run goes on, and the same client with it.

    A page of another origin and a name that leads here are refused.
    """
    async with topology(tmp_path, LATENCY) as made:
        serving = await made.begin("serve", "--mcp-port", "0")
        address = await printed(serving, "tools")
        maps = Path(f"/proc/{serving.pid}/maps")
        assert SDK_LIBRARY not in maps.read_text()
        port = int(re.search(r":(\d+)/mcp$", address)[1])  # type: ignore[index]
        async with httpx2.AsyncClient() as http:
            for headers, status in (({"origin": "http://example.org"}, 403), ({"host": f"example.org:{port}"}, 421)):
                sent = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
                answer = await http.post(address, content=b"{}", headers=sent)
                assert answer.status_code == status
        assert SDK_LIBRARY in maps.read_text()
        async with Client(address, mode="legacy") as client:  # of the protocol with sessions, which a restart would end
            started = await ask(client, "start_research", question=QUESTION, corpus="documents")
            serving.send_signal(signal.SIGKILL)
            await serving.communicate()
            again = await made.begin("serve", "--mcp-port", str(port))
            assert await printed(again, "tools") == address
            assert (await wait_for_end(client, started["research_id"]))["outcome"] == "completed"
        again.send_signal(signal.SIGTERM)
        _, log = await again.communicate()
        assert again.returncode == 0, log.decode()
        assert b"Traceback" not in log
        assert made.answered_twice() == []


async def printed(process: asyncio.subprocess.Process, name: str) -> str:
    """The address that `serve` prints under a name."""
    assert process.stdout is not None
    while True:
        line = (await process.stdout.readline()).decode()
        assert line, name
        if line.startswith(f"{name} "):
            return line.split()[-1]


@pytest.mark.soak
async def test_an_assistant_alone_has_a_server_started(tmp_path: Path) -> None:
    """No server runs: the first run starts one in a session of its own, which goes on when the assistant ends."""
    async with topology(tmp_path) as made:
        async with assistant(made) as client:
            started = await ask(client, "start_research", question=QUESTION, corpus="documents")
        match = re.search(r"background as process (\d+)", (made.home / "assistant.log").read_text())
        assert match is not None
        try:
            assert os.getsid(int(match[1])) == int(match[1])
            async with assistant(made) as client:
                assert (await wait_for_end(client, started["research_id"]))["outcome"] == "completed"
        finally:
            os.kill(int(match[1]), signal.SIGKILL)


@pytest.mark.soak
async def test_a_server_ends_when_nothing_is_left_to_do(tmp_path: Path) -> None:
    """As after SIGTERM, with code 0; its port is free, and `--no-mcp` has shown no tools."""
    async with topology(tmp_path) as made:
        serving = await made.begin("serve", "--no-mcp", "--idle-minutes", "0.02")
        output, log = await asyncio.wait_for(serving.communicate(), 90)
    assert serving.returncode == 0, log.decode()
    assert b"metrics" in output
    assert b"tools" not in output


@pytest.mark.soak
async def test_a_client_that_speaks_of_tasks_waits_for_a_run_by_itself(tmp_path: Path) -> None:
    """The run is the task: its id, its state, and its cancellation; a client without the extension sees none of it."""
    async with topology(tmp_path, 0.2) as made:
        await made.start_workers()
        asked = {"question": QUESTION, "corpus": "documents"}
        waiting, cancelling = WaitingClient(), WaitingClient(cancels=True)
        async with connected(made, "http", waiting) as client:
            answer = await client.call_tool("start_research", asked)
            refused = await client.call_tool("start_research", {**asked, "max_cost_usd": 50})
            assert refused.is_error
        async with connected(made, "stdio", cancelling) as client:
            ended = await client.call_tool("start_research", asked)
        async with connected(made, "http") as client:
            plain = await ask(client, "start_research", **asked)
            unknown = GetTask(params=TaskParams(task_id="unknown-run"))
            with pytest.raises(MCPError, match="no run"):
                await client.session.send_request(unknown, TaskState)
            assert (await wait_for_end(client, plain["research_id"]))["outcome"] == "completed"
        assert not answer.is_error
        assert answer.structured_content is not None
        assert "read_report" in answer.structured_content["next"]
        assert {state.task_id for state in waiting.seen} == {answer.structured_content["research_id"]}
        statuses = [state.status for state in waiting.seen]
        assert statuses == ["working"] * (len(statuses) - 1) + ["completed"]
        assert waiting.seen[0].status_message.startswith("Started ")
        assert ended.is_error
        assert cancelling.seen[-1].status == "cancelled"
