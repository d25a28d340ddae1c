"""The ways in, each used for the first time: `python -m benchmarks.doors [--memory]`, with this machine's Chromium.

Every walk types what a newcomer types, at real processes with a model that answers after half a second; the table says
how long it took until there was an answer and until the report was read. `--memory` gives the memory of an idle `serve`
with none of its doors, with each one alone, and with all.
"""

import argparse
import asyncio
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from openai import AsyncOpenAI

from benchmarks.page import ask as ask_page
from benchmarks.page import browsing, megabytes_of
from tests.acceptance.test_assistants import ask, wait_for_end
from tests.acceptance.topology import PYTHON, Topology, topology
from tests.integration.runs import QUESTION

LATENCY: Final = 0.5
"""Seconds of an answer of the model."""
IDLE_SECONDS: Final = 5.0
"""Until a server that nobody uses is measured."""
DOORS: Final = {"mcp": "tools", "chat": "chat", "page": "page"}
"""Options that close them, and the names under which `serve` prints their addresses."""
KEY: Final = "a key of forty characters, or thereabouts"
PYTHON_CALL: Final = f"""
import asyncio
from durable_research import research
found = asyncio.run(research({QUESTION!r}, corpus="documents"))
print(found.outcome, len(found.sources), found.markdown.splitlines()[0])
"""


class Walk:
    """One way in: what was typed, when it first answered, and what was seen at its end."""

    def __init__(self, typed: str) -> None:
        self.typed = typed
        self.first = 0.0
        self.seen = ""
        self._began = time.monotonic()

    def answered(self) -> None:
        """Note the first answer."""
        if not self.first:
            self.first = time.monotonic() - self._began

    def row(self, name: str) -> str:
        """Return the line of the table."""
        taken = time.monotonic() - self._began
        return f"| {name} | `{self.typed}` | {self.first:.1f} | {taken:.1f} | {self.seen} |"


@asynccontextmanager
async def serving(made: Topology, *options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    """`research serve` with these options, and the addresses that it prints by their names."""
    made.variables["RESEARCH_CHAT_KEY"] = KEY
    process = await made.begin("serve", "--mcp-port", "0", "--chat-port", "0", "--page-port", "0", *options)
    assert process.stdout is not None
    addresses: dict[str, str] = {}
    wanted = {name for door, name in DOORS.items() if f"--no-{door}" not in options} or {"server"}
    while not wanted <= addresses.keys():
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        if not line:
            raise RuntimeError("serve has ended")
        name, _, rest = line.strip().partition(" ")
        addresses[name] = rest.split()[-1] if rest else ""
    try:
        yield process, addresses
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()


async def read_lines(process: asyncio.subprocess.Process, walk: Walk) -> str:
    """Return the output of a process, noting its first line."""
    assert process.stdout is not None
    assert process.stderr is not None

    async def gather(stream: asyncio.StreamReader) -> str:
        lines = []
        while line := await stream.readline():
            walk.answered()
            lines.append(line.decode())
        return "".join(lines)

    output, _ = await asyncio.gather(gather(process.stdout), gather(process.stderr))
    if await process.wait():
        raise RuntimeError(f"{walk.typed}: exit code {process.returncode}")
    return output


async def by_command(made: Topology) -> Walk:
    """A question on the command line, without a server of one's own."""
    walk = Walk('research run "…" --corpus documents')
    output = await read_lines(await made.begin("run", QUESTION, "--corpus", "documents"), walk)
    walk.seen = re.findall(r"completed[^\n]*", output)[0]
    return walk


async def by_follow_up(made: Topology) -> Walk:
    """A question about the last report, then the thread of both."""
    walk = Walk('research ask last "…"; research thread last')
    await read_lines(await made.begin("ask", "last", "What does it cost?"), walk)
    thread = await read_lines(await made.begin("thread", "last"), walk)
    walk.seen = f"both questions and answers, {len(thread.splitlines())} lines"
    return walk


async def by_python(made: Topology) -> Walk:
    """A call from Python."""
    walk = Walk('await research("…", corpus="documents")')
    process = await asyncio.create_subprocess_exec(
        PYTHON, "-c", PYTHON_CALL, cwd=made.home, env=made.environment(), stdout=-1, stderr=-1
    )
    walk.seen = (await read_lines(process, walk)).splitlines()[-1]
    return walk


async def by_temporal(made: Topology) -> Walk:
    """Temporal's own client, which knows nothing of the product."""
    walk = Walk('client.execute_workflow("deep-research", {"query": "…", …})')
    client = await made.client()
    request = {"query": QUESTION, "corpus": "documents"}
    handle = await client.start_workflow("deep-research", request, id="r-doors", task_queue="research-workflows")
    walk.answered()
    result = await handle.result()
    walk.seen = f"{result['outcome']}, {result['usage']['model_calls']} model calls"
    return walk


async def by_assistant(client: Client, walk: Walk) -> Walk:
    """An assistant that has found the tools."""
    tools = (await client.list_tools()).tools
    walk.answered()
    started = await ask(client, "start_research", question=QUESTION, corpus="documents")
    state = await wait_for_end(client, started["research_id"])
    page = await ask(client, "read_report", research_id=started["research_id"], part="report")
    walk.seen = f"{len(tools)} tools; {state['outcome']}; {len(page['content']):,} characters of the report"
    return walk


async def by_pipe(made: Topology) -> Walk:
    """An assistant that starts the program."""
    walk = Walk("research mcp")
    program = str(Path(PYTHON).with_name("research"))
    parameters = StdioServerParameters(command=program, args=["mcp"], env=made.environment(), cwd=made.home)
    with (made.home / "assistant.log").open("a", encoding="utf-8") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            return await by_assistant(client, walk)


async def by_address(address: str) -> Walk:
    """An assistant that is given the address."""
    walk = Walk("research serve, then its address /mcp")
    async with Client(address) as client:
        return await by_assistant(client, walk)


async def by_chat(address: str) -> Walk:
    """A chat window that is given the address and the key."""
    walk = Walk("research serve, then its address /v1")
    async with AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0) as sdk:
        models = [each.id async for each in sdk.models.list()]
        stream = await sdk.chat.completions.create(
            model="deep-research/supervisor/documents",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
        )
        text = ""
        async for chunk in stream:
            walk.answered()
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    citations = re.findall(r"\[[0-9]+\]", text)
    walk.seen = f"{len(models)} models; {len(text):,} characters, {len(citations)} citations"
    return walk


async def by_page(address: str) -> Walk:
    """A browser, from the address to the report."""
    walk = Walk("research serve, then its address in a browser")
    async with browsing() as browser:
        page = await browser.new_page()
        await page.goto(address)
        walk.answered()
        await ask_page(page, address.partition("/?")[0] + "/")
        await page.wait_for_selector("#report-frame", timeout=60_000)
        walk.seen = f"{page.url.rpartition('/')[2].partition('?')[0][:2]}…, its report in the page"
    return walk


async def walk_all() -> None:
    """Print the table of first uses."""
    print("| door | typed | first answer, s | report read, s | seen |\n|---|---|---:|---:|---|")
    own_server: list[tuple[str, Callable[[Topology], Awaitable[Walk]]]] = [
        ("command", by_command),
        ("follow-up and thread", by_follow_up),
        ("Python", by_python),
        ("assistant, standard input", by_pipe),
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), LATENCY) as made:
            for name, walked in own_server:
                print((await walked(made)).row(name), flush=True)
            async with serving(made) as (_, addresses):
                print((await by_temporal(made)).row("Temporal's client"), flush=True)
                print((await by_address(addresses["tools"])).row("assistant, HTTP"), flush=True)
                print((await by_chat(addresses["chat"])).row("chat window"), flush=True)
                print((await by_page(addresses["page"])).row("page"), flush=True)


async def measure() -> None:
    """Print the memory of an idle `serve` by its doors."""
    sizes = {}
    for doors in ((), *((door,) for door in DOORS), tuple(DOORS)):
        closed = [f"--no-{door}" for door in DOORS if door not in doors]
        with tempfile.TemporaryDirectory() as folder:
            async with topology(Path(folder), LATENCY) as made, serving(made, *closed) as (process, _):
                await asyncio.sleep(IDLE_SECONDS)
                sizes[", ".join(doors) or "none"] = megabytes_of(process.pid)
    for name, size in sizes.items():
        print(f"doors: {name}: {size:.1f} MB ({size - sizes['none']:+.1f})")


def main() -> None:
    """Walk through every door, or measure them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", action="store_true", help="memory of an idle serve, by its doors")
    arguments = parser.parse_args()
    asyncio.run(measure() if arguments.memory else walk_all())


if __name__ == "__main__":
    sys.exit(main())
