"""Machines as plain processes: the services of docker-compose.yml on one, and several with nothing in common."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowHistory

from contracts.names import OUTCOME_ATTRIBUTE, POOLS
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.acceptance.topology import PYTHON, ROOT, Process
from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import running_valkey
from tests.integration.conftest import Server
from tests.integration.runs import QUESTION
from workers.settings.loading import Settings
from workers.setup import ensure_namespace, set_up
from workers.temporal import DATA_CONVERTER
from workers.versions import own_build_id

pytestmark = pytest.mark.integration

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
COMMANDS = {name: SERVICES[name]["command"] for name in POOLS}
RESEARCH = str(Path(PYTHON).with_name("research"))
LONGEST_RUN = 120.0


@dataclass
class Host:
    """A machine: its disk, and what it shares with others, such as the address of the server."""

    disk: Path
    shared: dict[str, str]

    def lay_out(self, texts: Mapping[str, str] = MANUAL) -> None:
        """Documents and configuration, where the containers mount them; a working directory with nothing in it."""
        documents, configuration = self.disk / "documents", self.disk / "etc" / "durable-research"
        for place in (configuration, self.disk / "data", self.disk / "empty"):
            place.mkdir(parents=True)
        for name, text in texts.items():
            documents.mkdir(exist_ok=True)
            (documents / name).write_text(text, encoding="utf-8")
        (configuration / "research.toml").write_text(f'[corpus.documents]\npath = "{documents}"\n', encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """As the image and docker-compose.yml set it, with the places of this machine."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        own = {"RESEARCH_HOME": str(self.disk / "data"), "XDG_CONFIG_HOME": str(self.disk / "etc")}
        return kept | own | self.shared | {"PYTHONSAFEPATH": "1", "NO_COLOR": "1"}

    async def process(self, *command: str, log: str) -> asyncio.subprocess.Process:
        with (self.disk / log).open("wb") as file:
            return await asyncio.create_subprocess_exec(
                *command, cwd=self.disk / "empty", env=self.environment(), stdout=file, stderr=file
            )

    async def completed(self, *command: str) -> tuple[int, str]:
        process = await self.process(*command, log="once.log")
        return await process.wait(), (self.disk / "once.log").read_text(encoding="utf-8")

    async def research(self, *command: str) -> str:
        code, output = await self.completed(*command)
        assert code == 0, output
        return output


@asynccontextmanager
async def workers_of(host: Host, services: list[str]) -> AsyncIterator[dict[str, asyncio.subprocess.Process]]:
    """A process for each service, by `service-number`; killed afterwards if they did not end before."""
    running: dict[str, asyncio.subprocess.Process] = {}
    try:
        for number, service in enumerate(services):
            name = f"{service}-{number}"
            command = [RESEARCH, "worker", "--log-format", "json", "--health-port", "0", *COMMANDS[service]]
            running[name] = await host.process(*command, log=f"{name}.log")
        yield running
    finally:
        for process in running.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


def workers_by_queue(history: WorkflowHistory) -> dict[str, set[int]]:
    """Process ids of the workers that took a task, by task queue."""
    found: dict[str, set[int]] = {}
    scheduled = {event.event_id: event.activity_task_scheduled_event_attributes for event in history.events}
    for event in history.events:
        started = event.activity_task_started_event_attributes
        if started.scheduled_event_id:
            queue = scheduled[started.scheduled_event_id].task_queue.name
            found.setdefault(queue, set()).add(int(started.identity.split("@")[0].rpartition("-")[2]))
    return found


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_one_process_per_pool_carries_a_run_through(server: Server, tmp_path: Path) -> None:
    """Set up, with pools in processes of their own, a run completes, and each process ends in good order."""
    host = Host(tmp_path, {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": "topology"})
    host.lay_out()
    output = await host.research(PYTHON, "-m", "workers.setup")
    assert ("created" in output, OUTCOME_ATTRIBUTE in output) == (True, True), output

    client = await Client.connect(server.address, namespace="topology", data_converter=DATA_CONVERTER)
    async with workers_of(host, list(COMMANDS)) as running:
        await host.research(RESEARCH, "start", QUESTION, "--corpus", "documents", "--id", "clustered")
        handle = client.get_workflow_handle("clustered", result_type=ResearchResult)
        async with asyncio.timeout(LONGEST_RUN):
            result = await handle.result()
        assert result.outcome is Outcome.COMPLETED
        assert result.counts.sources_cited > 0
        description = await handle.describe()
        assert {pair.key.name: pair.value for pair in description.typed_search_attributes}[OUTCOME_ATTRIBUTE] == (
            "completed"
        )
        took = workers_by_queue(await handle.fetch_history())
        for pool, queue in POOLS.items():
            processes = {process.pid for name, process in running.items() if name.startswith(f"{pool}-")}
            assert pool == "workflows" or (took[queue] and took[queue] <= processes)
        for name, process in running.items():
            assert await Process(name, tmp_path / f"{name}.log", process).healthy()

        for number, process in enumerate(running.values()):
            process.send_signal(signal.SIGINT if number % 2 else signal.SIGTERM)
        async with asyncio.timeout(float(SERVICES["workflows"]["stop_grace_period"].removesuffix("s"))):
            assert [await process.wait() for process in running.values()] == [0] * len(running)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_a_host_is_lost_with_its_disk_and_others_carry_on(server: Server, tmp_path: Path) -> None:
    """Hosts share a server, Valkey and an object store. One run goes on elsewhere by itself, one is resumed there from
    its session; a third host reads and deletes both.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(ObjectStoreServer())
        model = await stack.enter_async_context(MessagesApi(latency=0.6))
        shared = {
            "TEMPORAL_ADDRESS": server.address,
            "TEMPORAL_NAMESPACE": "hosts",
            "REDIS_URL": stack.enter_context(running_valkey(tmp_path)).url,
            "RESEARCH_MODEL": "test-model",
            "ANTHROPIC_API_KEY": "planted-secret-key",
            "ANTHROPIC_BASE_URL": model.base_url,
            **store.environment("/team"),
        }
        one, two, three = [Host(tmp_path / name, shared) for name in ("one", "two", "three")]
        for host in (one, two, three):
            host.lay_out(MANUAL if host is one else {})
        await one.research(PYTHON, "-m", "workers.setup")
        lost = await one.process(RESEARCH, "worker", log="worker.log")
        for research_id in ("goes-on", "resumed"):
            await three.research(RESEARCH, "start", QUESTION, "--corpus", "documents", "--id", research_id)
        sessions = {f"team/sessions/{name}.json" for name in ("goes-on", "resumed")}
        async with asyncio.timeout(LONGEST_RUN):
            while not (sessions <= store.objects.keys() and model.counts()["analyzer"] >= 2):
                await asyncio.sleep(0.02)
        lost.kill()
        await lost.wait()
        shutil.rmtree(one.disk)

        client = await Client.connect(server.address, namespace="hosts", data_converter=DATA_CONVERTER)
        await client.get_workflow_handle("resumed").terminate("its history is lost")
        assert json.loads(await three.research(RESEARCH, "status", "resumed", "--json"))["status"] == "running"
        worker = await two.process(RESEARCH, "worker", log="worker.log")
        stack.push_async_callback(worker.wait)
        stack.callback(worker.kill)
        await three.research(RESEARCH, "resume", "resumed", "--quiet")
        for research_id in ("goes-on", "resumed"):
            handle = client.get_workflow_handle(research_id, result_type=ResearchResult)
            async with asyncio.timeout(LONGEST_RUN):
                result = await handle.result()
            assert result.outcome is Outcome.COMPLETED
            assert result.counts.sources_cited > 0
            assert "no difference" in await three.research(RESEARCH, "audit", research_id)
            await three.research(RESEARCH, "delete", research_id, "--yes")
        left = {key.split("/")[1] for key in store.objects}
        # What the lost host had stored for a call that another one made again is known to nobody.
        assert {name for name in left if len(name) > 2} - {"snapshots"} == {"corpora", "corpus-content"}
        assert not (three.disk / "data" / "sessions").exists()


async def test_a_set_up_leaves_the_retention_of_others_alone(server: Server) -> None:
    """A namespace that somebody made, who may run other programs there, keeps its retention; the version of
    the code becomes current where none is; a second set-up changes nothing.
    """
    short = await Client.connect(server.address, namespace="short-lived")
    assert await ensure_namespace(short, timedelta(days=1))
    variables = {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": "short-lived"}
    settings = Settings(home=Path("unused"), temporal_variables=variables)
    async with asyncio.timeout(60):
        prepared = await set_up(settings)
    assert prepared[0] == "namespace short-lived: there already"
    assert prepared[1].count("Research") == 5
    assert prepared[2] == f"version of the workflow code: {own_build_id()} is current"
    assert await set_up(settings) == [prepared[0], "search attributes: as they should be", prepared[2]]
    described = await short.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="short-lived"))
    assert described.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=1)
