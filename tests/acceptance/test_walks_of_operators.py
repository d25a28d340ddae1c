"""Two walks of an operator, by the commands of the documentation as they are written."""

import asyncio
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from client.client_errors import NoWorker
from client.handle import ResearchClient, ResearchHandle
from contracts.vocabulary import Outcome, RunStatus
from tests.acceptance.topology import PYTHON, RESEARCH, Topology, topology
from tests.integration.runs import QUESTION
from tests.integration.server_homes import give_port, stop_server
from workers.dev_server import detach_server, ensure_server

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(400)]

LATENCY = 1.0
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def blocks(heading: str) -> list[str]:
    """The commands below a heading of the operator's page."""
    text = OPERATIONS.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2]
    return re.findall(r"```sh\n(.*?)```", re.split(r"\n##+ ", text)[0], re.DOTALL)


async def do(made: Topology, commands: str) -> str:
    """Run commands as they are written, and return what they print; each has to succeed."""
    environment = made.environment()
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", commands, cwd=made.home.parent, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate()
    assert process.returncode == 0, (commands, output.decode(), errors.decode())
    return output.decode()


@asynccontextmanager
async def worker(made: Topology, build_id: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`research worker` of one version, which is stopped as a service manager does."""
    environment = made.environment() | {"RESEARCH_BUILD_ID": build_id}
    with (made.home.parent / f"{build_id}.log").open("ab") as log:
        command = (PYTHON, *RESEARCH, "worker", "--log-format", "json")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def wait_for(made: Topology, research_id: str, *statuses: RunStatus) -> None:
    """Wait until a run has one of these states, and first for a worker that answers."""
    await reach(ResearchClient(await made.client()).handle(research_id), *statuses)


async def reach(handle: ResearchHandle, *statuses: RunStatus) -> None:
    """Wait until the run of a handle has one of these states."""
    status = None
    async with asyncio.timeout(240):
        while status not in statuses:
            with suppress(NoWorker):  # it is starting
                status = (await handle.status()).status
            await asyncio.sleep(0.3)


async def ask(made: Topology, research_id: str, *words: str) -> None:
    """Start a run by the command."""
    code, _, errors = await made.command(
        "start", QUESTION, "--corpus", "documents", "--depth", "light", "--id", research_id, *words
    )
    assert code == 0, errors


async def test_a_cluster_that_is_lost_is_restored_from_the_back_up(tmp_path: Path) -> None:
    """Server, home and their disks are gone; of the back-up each open run goes on, and no answered call is paid again."""
    (back_up, prepare, resume) = blocks("Restore on an empty cluster")
    async with topology(tmp_path / "home", LATENCY) as made:
        made.variables = {"TEMPORAL_ADDRESS": (await ensure_server(made.home)).address, "RESEARCH_BUILD_ID": "one"}
        async with worker(made, "one"):
            await ask(made, "r-done")
            await wait_for(made, "r-done", RunStatus.COMPLETED)
            await ask(made, "r-waits", "--approve", "plan")
            await wait_for(made, "r-waits", RunStatus.AWAITING_APPROVAL)
            await ask(made, "r-works")
            while made.journalled("r-works") < 2:
                await asyncio.sleep(0.1)
        await do(made, back_up)
        await stop_server(made.home)
        detach_server(made.home)
        shutil.rmtree(made.home)

        new = tmp_path / "new-cluster"
        give_port(new)
        made.variables["TEMPORAL_ADDRESS"] = (await ensure_server(new)).address
        try:
            printed = await do(made, prepare)
            assert "search attributes" in printed
            async with worker(made, "one"):
                await do(made, resume)
                assert set((tmp_path / "open-runs").read_text().split()) == {"r-waits", "r-works"}
                address = made.variables["TEMPORAL_ADDRESS"]
                client = await ResearchClient.connect(address)
                for research_id in ("r-works", "r-waits"):
                    handle = client.handle(research_id)
                    if research_id == "r-waits":
                        await reach(handle, RunStatus.AWAITING_APPROVAL)
                        await handle.approve_plan((await handle.status()).waiting.plan_version)  # type: ignore[union-attr]
                    async with asyncio.timeout(120):
                        assert (await handle.result()).outcome is Outcome.COMPLETED
                listed = json.loads((await made.command("list", "--json"))[1])
                assert {run["status"] for run in listed} == {"completed"}
                for run in listed:
                    code, output, errors = await made.command("audit", run["research_id"])
                    assert (code, "no difference" in output) == (0, True), errors
            assert made.answered_twice() == []
        finally:
            await stop_server(new)
            detach_server(new)


async def test_a_version_is_replaced_with_open_runs(tmp_path: Path) -> None:
    """A run at work ends with the old version, one that waits moves, and then no run needs the old one."""
    (commands,) = blocks("With open runs")
    first, *others = [line.partition("#")[0].strip().replace("VERSION", "two") for line in commands.splitlines()]
    assert first == "research worker"
    async with topology(tmp_path / "home", LATENCY) as made:
        made.variables = {"RESEARCH_BUILD_ID": "one"}
        async with worker(made, "one") as old:
            await ask(made, "r-waits", "--approve", "plan")
            await wait_for(made, "r-waits", RunStatus.AWAITING_APPROVAL)
            await ask(made, "r-works")
            async with worker(made, "two"):
                async with asyncio.timeout(120):
                    while "two" not in await do(made, "research workers versions"):
                        await asyncio.sleep(0.3)
                printed = {command: await do(made, command) for command in others}
                versions = printed["research workers versions"]
                assert "one" in versions
                assert "two" in versions
                assert list(printed) == [
                    "research workers versions", "research workers ramp two 10", "research workers promote two",
                    "research workers drain --wait 60",
                ]  # fmt: skip
                old.terminate()
                await old.wait()
                client = ResearchClient(await made.client())
                await client.handle("r-waits").approve_plan(1)
                for research_id in ("r-waits", "r-works"):
                    async with asyncio.timeout(120):
                        assert (await client.handle(research_id).result()).outcome is Outcome.COMPLETED
        assert made.answered_twice() == []
