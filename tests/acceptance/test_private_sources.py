"""Runs over a private source that speaks the protocol of tools: by a program, by our own tools, and through kills."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.topology import PYTHON, Topology, topology
from tests.fakes.document_servers import DOCUMENTS, FILE, LINK
from tests.integration.runs import QUESTION

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

PROGRAM = str(Path(PYTHON).with_name("research"))
ONLY_WIKI = ("--set", "search.providers=mcp.wiki", "--json", "--set", "limits.max_iterations=1")


def settings(folder: Path) -> str:
    """The configuration of a private source; its calls are noted in the folder."""
    command = json.dumps([sys.executable, FILE, "good", str(folder)])
    return f'[search.mcp.wiki]\ncommand = {command}\nauthority = "high"\n'


async def audited(made: Topology, research_id: str) -> None:
    code, output, errors = await made.ask("audit", research_id)
    assert code == 0, output + errors


def is_running(process: int) -> bool:
    """Whether a process has not ended; one whose parent has not asked for its end yet has."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.soak
async def test_a_run_over_a_private_source_survives_a_kill_and_pays_nothing_again(tmp_path: Path) -> None:
    """Every worker is killed while the model answers: the program ends with it, and no answer or document is asked twice.

    What is cited is archived, shown by its web address, and rated as the operator says.
    """
    async with topology(tmp_path, 0.5, configuration=settings(tmp_path)) as made:
        await made.start_workers()
        code, _, errors = await made.command("start", QUESTION, *ONLY_WIKI, "--id", "private")
        assert code == 0, errors
        calls = tmp_path / "calls"
        async with asyncio.timeout(90):
            while not calls.exists() or calls.read_text().count(" fetch\n") < len(DOCUMENTS) or not made.in_flight():
                await asyncio.sleep(0.02)
        await made.quiet_moment()
        await made.kill_workers()
        before = {int(line.split()[0]) for line in calls.read_text().splitlines()}
        async with asyncio.timeout(30):
            while any(map(is_running, before)):
                await asyncio.sleep(0.02)
        await made.start_workers()
        code, output, errors = await made.command("watch", "private", "--json")
        assert code == 0, output + errors
        report = json.loads((await made.ask("report", "private", "--format", "json"))[1])
        await audited(made, "private")
        assert made.answered_twice() == []
    cited = {citation["source_id"] for citation in report["citations"]}
    sources = [source for source in report["sources"] if source["id"] in cited]
    assert sources
    assert all(source["url"].startswith("mcp:wiki/") and source["address"].startswith(LINK) for source in sources)
    assert {source["quality"] for source in sources} == {"high"}
    assert LINK in report["report"]["markdown"]
    assert Counter(line.split()[1] for line in calls.read_text().splitlines())["fetch"] == len(DOCUMENTS)


@pytest.mark.soak
async def test_the_tools_of_another_home_are_a_private_source(tmp_path: Path) -> None:
    """`research mcp` beside another home: its corpus is searched, fetched, archived here and cited; audit is good."""
    other = tmp_path / "other"
    here = tmp_path / "here"
    other.mkdir()
    here.mkdir()
    async with topology(other) as elsewhere:
        await elsewhere.ask("corpus", "refresh", "documents")
        variables = [f"{name}={elsewhere.environment()[name]}" for name in ("RESEARCH_HOME", "RESEARCH_CONFIG")]
        command = json.dumps(["/usr/bin/env", *variables, PROGRAM, "mcp", "--no-start"])
        async with topology(here, configuration=f"[search.mcp.wiki]\ncommand = {command}\n") as made:
            code, output, errors = await made.command("run", QUESTION, *ONLY_WIKI, "--id", "ours")
            assert code == 0, output + errors
            report = json.loads((await made.ask("report", "ours", "--format", "json"))[1])
            await audited(made, "ours")
    cited = {citation["source_id"] for citation in report["citations"]}
    urls = [source["url"] for source in report["sources"] if source["id"] in cited]
    assert urls
    assert all(url.startswith("mcp:wiki/corpus%3Adocuments%2F") for url in urls)
