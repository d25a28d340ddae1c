"""Hosts with nothing in common but three addresses: server, Valkey and object store. One is lost with its disk."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.acceptance.topology import PYTHON
from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import running_valkey
from tests.integration.runs import QUESTION
from workers.dev_server import find_binary

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(300)]

RESEARCH = str(Path(PYTHON).with_name("research"))
LATENCY = 0.6
LONGEST_WAIT = 120.0


@dataclass
class Host:
    """A machine: a disk and an environment of its own."""

    disk: Path
    shared: dict[str, str]
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)

    def lay_out(self, documents: dict[str, str]) -> None:
        """The configuration that all hosts have, and the folder it names, if this is the host with the documents."""
        place = self.disk / "etc" / "durable-research"
        for folder in (place, self.disk / "empty"):
            folder.mkdir(parents=True)
        path = self.disk / "documents"
        (place / "research.toml").write_text(f'[corpus.documents]\npath = "{path}"\n', encoding="utf-8")
        for name, text in documents.items():
            path.mkdir(exist_ok=True)
            (path / name).write_text(text, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """The shared addresses, and this host's folders."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        own = {"HOME": str(self.disk), "RESEARCH_HOME": str(self.disk / "home"), "TMPDIR": str(self.disk / "empty")}
        return kept | own | self.shared | {"XDG_CONFIG_HOME": str(self.disk / "etc"), "NO_COLOR": "1"}

    async def start(self, *command: str, log: str) -> asyncio.subprocess.Process:
        """Start a program, its output in a file."""
        with (self.disk / log).open("wb") as file:
            return await asyncio.create_subprocess_exec(
                *command, cwd=self.disk / "empty", env=self.environment(), stdout=file, stderr=file
            )

    async def start_worker(self) -> None:
        """A worker of all pools."""
        self.workers.append(await self.start(RESEARCH, "worker", "--log-format", "json", log="worker.log"))

    async def lose(self) -> None:
        """SIGKILL, and the disk is gone."""
        await self.kill()
        shutil.rmtree(self.disk)

    async def kill(self) -> None:
        """SIGKILL for all workers."""
        for worker in self.workers:
            if worker.returncode is None:
                worker.kill()
            await worker.wait()

    async def research(self, *words: str) -> str:
        """What a command says; it succeeds."""
        process = await self.start(RESEARCH, *words, log="command.log")
        code = await process.wait()
        said = (self.disk / "command.log").read_text(encoding="utf-8")
        assert code == 0, said
        return said


@asynccontextmanager
async def hosts(folder: Path, shared: dict[str, str]) -> AsyncIterator[tuple[Host, Host, Host]]:
    """One with the documents, two without."""
    made = Host(folder / "one", shared), Host(folder / "two", shared), Host(folder / "three", shared)
    try:
        for host in made:
            host.lay_out(MANUAL if host is made[0] else {})
        yield made
    finally:
        for host in made:
            await host.kill()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens soon."""
    async with asyncio.timeout(LONGEST_WAIT):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_host_is_lost_with_its_disk_and_others_carry_on(tmp_path: Path) -> None:
    """One run goes on elsewhere by itself, one is resumed there from its session; a third host reads and deletes both."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(ObjectStoreServer())
        model = await stack.enter_async_context(MessagesApi(latency=LATENCY))
        (tmp_path / "valkey").mkdir()
        redis = stack.enter_context(running_valkey(tmp_path / "valkey"))
        server = await WorkflowEnvironment.start_local(dev_server_existing_path=str(find_binary()))
        await stack.enter_async_context(server)
        address = server.client.service_client.config.target_host
        shared = {
            "TEMPORAL_ADDRESS": address,
            "TEMPORAL_NAMESPACE": "hosts",
            "REDIS_URL": redis.url,
            "RESEARCH_MODEL": "test-model",
            "ANTHROPIC_API_KEY": "planted-secret-key",
            "ANTHROPIC_BASE_URL": model.base_url,
            **store.environment("/team"),
        }
        one, two, three = await stack.enter_async_context(hosts(tmp_path, shared))
        assert await (await one.start(PYTHON, "-m", "workers.setup", log="setup.log")).wait() == 0
        await one.start_worker()
        for research_id in ("goes-on", "resumed"):
            await three.research("start", QUESTION, "--corpus", "documents", "--id", research_id)
        sessions = {f"team/sessions/{name}.json" for name in ("goes-on", "resumed")}
        await until(lambda: sessions <= store.objects.keys() and model.counts()["analyzer"] >= 2)
        await one.lose()

        client = await Client.connect(address, namespace="hosts", data_converter=pydantic_data_converter)
        await client.get_workflow_handle("resumed").terminate("its history is lost")
        assert json.loads(await three.research("status", "resumed", "--json"))["status"] == "running"
        await two.start_worker()
        await three.research("resume", "resumed", "--quiet")
        async with asyncio.timeout(LONGEST_WAIT):
            for research_id in ("goes-on", "resumed"):
                handle = client.get_workflow_handle(research_id, result_type=ResearchResult)
                result = await handle.result()
                assert result.outcome is Outcome.COMPLETED
                assert result.counts.sources_cited > 0

        listed = json.loads(await three.research("list", "--json"))
        assert {row["research_id"]: row["status"] for row in listed} == dict.fromkeys(
            ("goes-on", "resumed"), "completed"
        )
        for research_id in ("goes-on", "resumed"):
            report = json.loads(await three.research("report", research_id, "--format", "json"))
            assert any(source["cited"] for source in report["sources"])
            assert "no difference" in await three.research("audit", research_id)
            await three.research("delete", research_id, "--yes")
        left = {key.split("/")[1] for key in store.objects}
        # What the lost host had stored for a call that another one made again is known to nobody.
        assert {name for name in left if len(name) > 2} == {"corpora", "snapshots", "corpus-content"}
        assert not (three.disk / "home" / "sessions").exists()
