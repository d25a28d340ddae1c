"""Encryption as an operator has it: nothing readable is stored, and the runbook of the documentation, as it is written."""

import asyncio
import json
import re
import sys
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from tests.acceptance.topology import Topology, topology
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import running_valkey
from tests.integration.server_homes import running

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(600)]

QUESTION = "How does vacuum prevent wraparound, and what would a quindlebrack change?"
WORDS = (b"quindlebrack", b"wraparound", b"circular order", b"zorvathine")
"""Of the question, of its answer, and of the pages."""
PAGE = "# The zorvathine\n\nA zorvathine prevents transaction ID wraparound by vacuum in circular order.\n"
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def blocks() -> dict[str, list[str]]:
    """The commands of the runbook by heading."""
    text = OPERATIONS.read_text(encoding="utf-8").partition("\n## Encryption\n")[2].partition("\n## ")[0]
    found = {}
    for part in text.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        found[heading] = re.findall(r"```sh\n(.*?)```", body, re.DOTALL)
    return found


async def do(made: Topology, commands: str) -> str:
    """Run commands of the runbook as they are written, in the folder of `research.toml`; return what they print."""
    environment = made.environment()
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash", "-uc", commands, cwd=made.home, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode()


async def restart(made: Topology) -> None:
    await made.kill_workers()
    await made.start_workers()


async def waits(made: Topology, research_id: str) -> None:
    """Wait until a run waits for the approval of its plan."""
    while True:
        _, output, _ = await made.command("status", research_id, "--json")
        with suppress(ValueError):
            if json.loads(output)["status"] == "awaiting_approval":
                return
        await asyncio.sleep(0.5)


async def start_waiting(made: Topology, research_id: str) -> None:
    words = ("start", QUESTION, "--corpus", "documents", "--approve", "plan", "--id", research_id)
    code, _, errors = await made.command(*words)
    assert code == 0, errors
    await waits(made, research_id)


async def approve(made: Topology, research_id: str) -> None:
    """Approve, again while the server pauses between two tries; wait for a run that completes and passes its audit."""
    code, _, errors = await made.command("approve", research_id)
    while "did not answer" in errors:
        await asyncio.sleep(2)
        code, _, errors = await made.command("approve", research_id)
    assert code == 0, errors
    code, _, errors = await made.command("watch", research_id, "--quiet")
    assert code == 0, errors
    code, output, errors = await made.command("audit", research_id)
    assert code == 0, output + errors


async def status_on_server(made: Topology, research_id: str) -> WorkflowExecutionStatus | None:
    client = await Client.connect(running(made.home).address)
    return (await client.get_workflow_handle(research_id).describe()).status


@pytest.mark.parametrize("encrypted", [True, False])
async def test_no_word_is_stored_readably(tmp_path: Path, encrypted: bool) -> None:
    """No word of question, pages and report is in the server's database, in Redis or in the object store.

    Without encryption the words are found in each of these places, so the search is no empty one.
    """
    configuration = '[encryption]\ncurrent = "k1"\n' if encrypted else ""
    with running_valkey(tmp_path) as valkey:
        async with ObjectStoreServer() as store, topology(tmp_path / "home", configuration=configuration) as made:
            (made.documents / "zorvathine.md").write_text(PAGE, encoding="utf-8")
            made.variables = {
                **store.environment(),
                "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0",
                "RESEARCH_ENCRYPTION_KEYS": f"k1={b64encode(bytes(range(32))).decode()}",
            }
            await made.start_workers()
            await start_waiting(made, "r-words")
            await approve(made, "r-words")
            code, report, _ = await made.command("report", "r-words")
            assert code == 0
            assert b"wraparound" in report.encode()
            places = {
                "server": b"".join(path.read_bytes() for path in sorted((made.home / "engine").glob("*.db*"))),
                "redis": b"".join(valkey.command("GET", key) or b"" for key in valkey.command("KEYS", "*")),
                "store": b"".join(store.objects.values()),
                "names": "\n".join(store.objects).encode(),
                "home": b"".join(
                    path.read_bytes()
                    for path in made.home.rglob("*")
                    if path.is_file()
                    and "documents" not in path.parts
                    and "corpora" not in path.parts
                    and "indexes" not in path.parts
                ),
            }
    found = {place: [word for word in WORDS if word in data] for place, data in places.items()}
    assert all(len(data) > 1_000 for data in places.values()), {place: len(data) for place, data in places.items()}
    if encrypted:
        assert not any(found.values()), found
    else:
        assert all(found[place] for place in ("server", "redis", "store")), found


async def test_the_runbook_does_what_it_says(tmp_path: Path) -> None:
    """Switched on, with another key, and without it: each with runs in flight, none of which is lost or fails.

    The commands are those of the documentation. Nothing is paid twice.
    """
    runbook = blocks()
    (switch_on,) = runbook["Switch it on"]
    add_key, make_current = runbook["Change the key"]
    (give_back,) = runbook["A key is missing"]
    async with topology(tmp_path / "home", 0.05) as made:
        await made.start_workers()
        await start_waiting(made, "r-plain")
        printed = await do(made, switch_on)
        assert "AES-256-GCM with the key 2026-11; texts of before are read" in printed
        await restart(made)
        await approve(made, "r-plain")

        await start_waiting(made, "r-first")
        assert "the key 2026-11; also read: 2026-12" in await do(made, add_key)
        await restart(made)
        assert "the key 2026-12; also read: 2026-11" in await do(made, make_current)
        await restart(made)
        await approve(made, "r-first")

        await start_waiting(made, "r-second")
        await made.kill_workers()
        settings = made.home / "research.toml"
        text = settings.read_text(encoding="utf-8")
        lost = text.replace(', 2026-12 = "2026-12.key"', "").replace('current = "2026-12"', 'current = "2026-11"')
        assert lost != text
        settings.write_text(lost, encoding="utf-8")
        await made.start_workers()
        code, output, errors = await made.command("status", "r-second")
        assert code != 0
        assert "the encryption key 2026-12 is missing" in output + errors
        while "encryption.key_missing" not in (made.home / "workers.log").read_text(encoding="utf-8"):
            await asyncio.sleep(0.5)
        await asyncio.sleep(5)
        assert await status_on_server(made, "r-second") is WorkflowExecutionStatus.RUNNING
        assert "the key 2026-11; also read: 2026-12" in await do(made, give_back)
        await restart(made)
        await approve(made, "r-second")
        assert made.answered_twice() == []
