"""The services of docker-compose.yml as plain processes: a set-up, and one worker process per pool."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode

from contracts.names import OUTCOME_ATTRIBUTE, POOLS
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.acceptance.topology import PYTHON, ROOT
from tests.fakes.corpus import MANUAL
from tests.integration.conftest import Server
from tests.integration.runs import QUESTION
from workers.settings.loading import Settings
from workers.setup import SetupError, ensure_namespace, set_up

pytestmark = pytest.mark.integration

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
COMMANDS = {name: SERVICES[name]["command"] for name in POOLS}
RESEARCH = str(Path(PYTHON).with_name("research"))
LONGEST_RUN = 120.0


@dataclass
class Hosts:
    """What the containers share: the address of the server, the environment, the volumes."""

    address: str
    folder: Path
    namespace: str

    def lay_out(self) -> None:
        """Documents and configuration, where the containers mount them; a working directory with nothing in it."""
        documents, configuration = self.folder / "documents", self.folder / "etc" / "durable-research"
        for place in (documents, configuration, self.folder / "data", self.folder / "empty"):
            place.mkdir(parents=True)
        for name, text in MANUAL.items():
            (documents / name).write_text(text, encoding="utf-8")
        (configuration / "research.toml").write_text(f'[corpus.documents]\npath = "{documents}"\n', encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """As the image and docker-compose.yml set it, with the places of this machine."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return kept | {
            "TEMPORAL_ADDRESS": self.address,
            "TEMPORAL_NAMESPACE": self.namespace,
            "RESEARCH_HOME": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "etc"),
            "PYTHONSAFEPATH": "1",
        }

    async def process(self, *command: str, log: str) -> asyncio.subprocess.Process:
        """Start a program of the image, its output in a file."""
        with (self.folder / log).open("wb") as file:
            return await asyncio.create_subprocess_exec(
                *command, cwd=self.folder / "empty", env=self.environment(), stdout=file, stderr=file
            )

    async def completed(self, *command: str) -> tuple[int, str]:
        """Run a program to its end: exit code and output."""
        process = await self.process(*command, log="once.log")
        return await process.wait(), (self.folder / "once.log").read_text(encoding="utf-8")

    def health_address(self, log: str) -> str:
        """Where a worker says that it serves its health."""
        lines = (self.folder / log).read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return next(str(event["address"]) for event in events if event["event"] == "worker.health")


@asynccontextmanager
async def workers_of(hosts: Hosts, services: list[str]) -> AsyncIterator[dict[str, asyncio.subprocess.Process]]:
    """A process for each service, by `service-number`; killed afterwards if they did not end before."""
    running: dict[str, asyncio.subprocess.Process] = {}
    try:
        for number, service in enumerate(services):
            name = f"{service}-{number}"
            command = [RESEARCH, "worker", "--log-format", "json", "--health-port", "0", *COMMANDS[service]]
            running[name] = await hosts.process(*command, log=f"{name}.log")
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


async def healthy(address: str) -> bool:
    """Whether a worker's health endpoint says that it can get work."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: worker\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.timeout(240)
async def test_one_process_per_pool_carries_a_run_through(server: Server, tmp_path: Path) -> None:
    """Set up, with pools in processes of their own, a run completes, and each process ends in good order."""
    hosts = Hosts(server.address, tmp_path, "topology")
    hosts.lay_out()
    code, output = await hosts.completed(PYTHON, "-m", "workers.setup")
    assert (code, "created" in output, OUTCOME_ATTRIBUTE in output) == (0, True, True), output

    client = await Client.connect(server.address, namespace="topology", data_converter=pydantic_data_converter)
    async with workers_of(hosts, list(COMMANDS)) as running:
        told = await hosts.completed(RESEARCH, "start", QUESTION, "--corpus", "documents", "--id", "clustered")
        assert told[0] == 0, told[1]
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
        assert [name for name in running if not await healthy(hosts.health_address(f"{name}.log"))] == []

        for process in running.values():
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(float(SERVICES["workflows"]["stop_grace_period"].removesuffix("s"))):
            assert [await process.wait() for process in running.values()] == [0] * len(running)


async def test_a_set_up_leaves_the_retention_of_others_alone(server: Server) -> None:
    """A namespace that somebody made, who may run other programs there, keeps its retention; a second set-up changes
    nothing.
    """
    short = await Client.connect(server.address, namespace="short-lived")
    assert await ensure_namespace(short, timedelta(days=1))
    variables = {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": "short-lived"}
    settings = Settings(home=Path("unused"), temporal_variables=variables)
    async with asyncio.timeout(60):
        prepared = await set_up(settings)
    assert prepared[0] == "namespace short-lived: there already"
    assert prepared[1].count("Research") == 5
    assert await set_up(settings) == [prepared[0], "search attributes: as they should be"]
    described = await short.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="short-lived"))
    assert described.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=1)


@pytest.mark.soak
async def test_an_attribute_of_another_type_is_named(server: Server) -> None:
    """A search attribute that somebody made with another type ends the set-up with a sentence, not with silence."""
    variables = {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": "taken"}
    settings = Settings(home=Path("unused"), temporal_variables=variables)
    client = await Client.connect(server.address, namespace="taken")
    await ensure_namespace(client, timedelta(days=30))
    kind = IndexedValueType.INDEXED_VALUE_TYPE_INT
    request = AddSearchAttributesRequest(namespace="taken", search_attributes={OUTCOME_ATTRIBUTE: kind})
    async with asyncio.timeout(60):
        while True:
            try:
                await client.operator_service.add_search_attributes(request)
                break
            except RPCError as error:
                if error.status is RPCStatusCode.ALREADY_EXISTS:
                    break
        with pytest.raises(SetupError, match=OUTCOME_ATTRIBUTE):
            await set_up(settings, wait_seconds=2)
