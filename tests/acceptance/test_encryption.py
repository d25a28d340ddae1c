"""Encryption as an operator has it: nothing readable is stored, and the runbook of the documentation, as it is written."""

import asyncio
import re
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from client.client_errors import MessageRefused, NoWorker
from client.handle import ResearchClient, ResearchHandle
from contracts.names import POOLS
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import running_valkey
from tests.integration.server_homes import give_port, stop_server
from workers.composition import compose
from workers.dev_server import ensure_server
from workers.pools import run_pools
from workers.settings.loading import child_environment, load_settings
from workers.temporal import open_connection

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(300)]

QUESTION = "How does vacuum prevent wraparound, and what would a quindlebrack change?"
WORDS = (b"quindlebrack", b"wraparound", b"circular order", b"zorvathine")
"""Of the question, of its answer, and of the pages."""
PAGE = "# The zorvathine\n\nA zorvathine prevents transaction ID wraparound by vacuum in circular order.\n"
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
ANSWER_SECONDS = 60


class Deployment:
    """A folder with a configuration, documents and a home; the workers are in this process."""

    def __init__(self, folder: Path, configuration: str = "") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.variables: dict[str, str] = {}
        (folder / "documents").mkdir()
        for name, text in (MANUAL | {"zorvathine.md": PAGE}).items():
            (folder / "documents" / name).write_text(text, encoding="utf-8")
        corpus = 'home = "home"\n\n[corpus.documents]\npath = "documents"\n'
        (folder / "research.toml").write_text(f"{corpus}\n{configuration}", encoding="utf-8")
        give_port(self.home)

    @asynccontextmanager
    async def workers(self) -> AsyncIterator[ResearchClient]:
        """Run all pools with the configuration of now, as a process that has just been started."""
        settings = load_settings(environment=self.variables, user_folder=self.folder)
        connection = await open_connection(settings)
        async with compose(settings, connection.client, refresh=True, takes_over=True) as contents:
            async with run_pools(
                connection.client, contents, tuple(POOLS), drain=dict.fromkeys(POOLS, timedelta(seconds=1))
            ):
                yield ResearchClient(connection.client)

    async def do(self, commands: str) -> str:
        """Run commands of the runbook as they are written, in the folder of `research.toml`; return what they print."""
        environment = child_environment()
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        environment["RESEARCH_CONFIG"] = str(self.folder / "research.toml")
        process = await asyncio.create_subprocess_exec(
            "bash", "-uc", commands, cwd=self.folder, env=environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        return output.decode()


@asynccontextmanager
async def deployment(folder: Path, configuration: str = "") -> AsyncIterator[Deployment]:
    made = Deployment(folder, configuration)
    await ensure_server(made.home)
    try:
        yield made
    finally:
        await stop_server(made.home)


def blocks() -> dict[str, list[str]]:
    """The commands of the runbook by heading."""
    text = OPERATIONS.read_text(encoding="utf-8").partition("\n## Encryption\n")[2].partition("\n## ")[0]
    found = {}
    for part in text.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        found[heading] = re.findall(r"```sh\n(.*?)```", body, re.DOTALL)
    return found


async def start_waiting(client: ResearchClient, research_id: str) -> None:
    """Start a run, and wait until it waits for the approval of its plan."""
    request = {"query": QUESTION, "corpus": "documents", "depth": "light", "gates": {"approve": "plan"}}
    handle = await client.start(request, research_id)
    async with asyncio.timeout(ANSWER_SECONDS):
        while (await handle.status()).status is not RunStatus.AWAITING_APPROVAL:
            await asyncio.sleep(0.3)


async def finish(handle: ResearchHandle, *, approve: bool = True) -> ResearchResult:
    if approve:
        await handle.approve_plan(1)
    async with asyncio.timeout(2 * ANSWER_SECONDS):
        return await handle.result()


@pytest.mark.parametrize("encrypted", [True, False])
async def test_no_word_is_stored_readably(tmp_path: Path, encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word of question, pages and report is in the server's database, in Redis or in the object store.

    Without encryption the words are found in each of these places, so the search is no empty one.
    """
    configuration = '[encryption]\ncurrent = "k1"\n' if encrypted else ""
    with running_valkey(tmp_path) as valkey:
        async with (
            ObjectStoreServer() as store,
            MessagesApi("good") as model,
            deployment(tmp_path, configuration) as made,
        ):
            for name, value in store.environment().items():
                monkeypatch.setenv(name, value)
            made.variables = {
                "RESEARCH_CONTENT_URL": store.environment()["RESEARCH_CONTENT_URL"],
                "REDIS_URL": valkey.url,
                "RESEARCH_ENCRYPTION_KEYS": f"k1={b64encode(bytes(range(32))).decode()}",
                "RESEARCH_MODEL": "test-model",
                "ANTHROPIC_API_KEY": "planted-secret-key",
                "ANTHROPIC_BASE_URL": model.base_url,
            }
            async with made.workers() as client:
                await start_waiting(client, "r-words")
                result = await finish(client.handle("r-words"))
            assert "wraparound" in (result.report or "")
            keys = valkey.command("KEYS", "*")
            assert any(b"/answer/" in key for key in keys)
            files = [path for path in made.home.rglob("*") if path.is_file() and path.suffix != ".sqlite3-wal"]
            places = {
                "server": b"".join(path.read_bytes() for path in sorted((made.home / "engine").glob("*.db*"))),
                "redis": b"".join(key + valkey.command("GET", key) for key in keys),
                "store": b"".join(store.objects.values()),
                "names": "\n".join(store.objects).encode(),
                "home": b"".join(path.read_bytes() for path in files if not {"indexes"} & set(path.parts)),
            }
    found = {place: [word for word in WORDS if word in data] for place, data in places.items()}
    if encrypted:
        assert not any(found.values()), found
        assert all(len(data) > 1_000 for data in places.values())
    else:
        assert all(found[place] for place in ("server", "redis", "store")), found


async def test_the_runbook_does_what_it_says(tmp_path: Path) -> None:
    """Switched on, with another key, and without it: each with a run in flight, none of which is lost or fails.

    The commands are those of the documentation. A message that arrives while the key is missing is not lost either.
    """
    runbook = blocks()
    (switch_on,) = runbook["Switch it on"]
    add_key, make_current = runbook["Change the key"]
    (give_back,) = runbook["A key is missing"]
    async with deployment(tmp_path) as made:
        async with made.workers() as client:
            await start_waiting(client, "r-plain")
        assert "AES-256-GCM with the key 2026-11; texts of before are read" in await made.do(switch_on)
        async with made.workers() as client:
            assert (await finish(client.handle("r-plain"))).outcome is Outcome.COMPLETED
            await start_waiting(client, "r-first")
        assert "the key 2026-11; also read: 2026-12" in await made.do(add_key)
        assert "the key 2026-12; also read: 2026-11" in await made.do(make_current)
        async with made.workers() as client:
            assert (await finish(client.handle("r-first"))).outcome is Outcome.COMPLETED
            await start_waiting(client, "r-second")

        settings = made.folder / "research.toml"
        text = settings.read_text(encoding="utf-8")
        lost = text.replace(', 2026-12 = "2026-12.key"', "").replace('current = "2026-12"', 'current = "2026-11"')
        assert lost != text
        settings.write_text(lost, encoding="utf-8")
        async with made.workers() as client:
            handle = client.handle("r-second")
            with pytest.raises(MessageRefused, match="the encryption key 2026-12 is missing"):
                await handle.status()
            with pytest.raises(NoWorker):
                await handle.approve_plan(1)
            described = await client.temporal.get_workflow_handle("r-second").describe()
            assert described.status is WorkflowExecutionStatus.RUNNING
        assert "the key 2026-11; also read: 2026-12" in await made.do(give_back)
        async with made.workers() as client:
            assert (await finish(client.handle("r-second"), approve=False)).outcome is Outcome.COMPLETED
