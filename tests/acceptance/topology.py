"""A deployment made of real processes: engine, fake model endpoint, workers, one home."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from tests.fakes.corpus import MANUAL
from tests.integration.server_homes import give_port, stop_server
from workers.dev_server import ServerDescription, describe_server, detach_server, ensure_server

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
RESEARCH = ("-m", "client.cli")


@dataclass
class Process:
    """A worker of a pool."""

    pool: str
    log: Path
    running: asyncio.subprocess.Process

    def health_address(self) -> str | None:
        """Where it serves its health; null as long as it does not."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return next((str(event["address"]) for event in events if event["event"] == "worker.health"), None)

    async def healthy(self) -> bool:
        """What its health check would say."""
        address = self.health_address()
        if address is None:
            assert self.running.returncode is None, self.log.read_text(encoding="utf-8")
            return False
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: worker\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.startswith(b"HTTP/1.1 200 ")

    def kill(self) -> None:
        """SIGKILL."""
        self.running.send_signal(signal.SIGKILL)


class Topology:
    """Processes around one home."""

    def __init__(self, home: Path, latency: float, scenario: str = "good") -> None:
        self.home = home
        self.journal = home / "model-calls.jsonl"
        self.documents = home / "documents"
        self.engine: ServerDescription | None = None
        self._latency, self._scenario = latency, scenario
        self._workers: list[asyncio.subprocess.Process] = []
        self._model: asyncio.subprocess.Process | None = None
        self._model_url = ""

    # --- starting and killing --------------------------------------------------------------------------------------
    async def open(self) -> None:
        """Documents, engine and model endpoint; no worker yet."""
        self.documents.mkdir(parents=True)
        for name, text in MANUAL.items():
            (self.documents / name).write_text(text, encoding="utf-8")
        give_port(self.home)
        self.engine = await ensure_server(self.home)
        command = ["-m", "tests.fakes.messages_api", "--port", "0", "--latency", str(self._latency)]
        command += ["--journal", str(self.journal), "--scenario", self._scenario]
        self._model = await asyncio.create_subprocess_exec(PYTHON, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        assert self._model.stdout is not None
        first = json.loads(await self._model.stdout.readline())
        self._model_url = f"http://127.0.0.1:{first['port']}"

    async def close(self) -> None:
        """End every process."""
        await self.kill_workers()
        if self._model is not None:
            self._model.kill()
            await self._model.wait()
        await stop_server(self.home)
        detach_server(self.home)

    def environment(self) -> dict[str, str]:
        """What our processes see: nothing of the developer's."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        return kept | {
            "RESEARCH_HOME": str(self.home),
            "RESEARCH_MODEL": "test-model",
            "ANTHROPIC_API_KEY": "planted-secret-key",
            "ANTHROPIC_BASE_URL": self._model_url,
            "NO_COLOR": "1",
        }

    async def start_workers(self, count: int = 1) -> None:
        """Worker processes with all pools."""
        for _ in range(count):
            log = (self.home / "workers.log").open("ab")
            worker = await asyncio.create_subprocess_exec(
                PYTHON,
                *RESEARCH,
                "worker",
                "--log-format",
                "json",
                cwd=ROOT,
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
            log.close()
            self._workers.append(worker)

    async def kill_workers(self) -> None:
        """SIGKILL for every worker."""
        for worker in self._workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGKILL)
            await worker.wait()
        self._workers.clear()

    def worker_pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers]

    def kill_server(self) -> None:
        """SIGKILL for the engine's server; a worker that watches it starts it again."""
        description = describe_server(self.home)
        assert description is not None
        os.kill(description.pid, signal.SIGKILL)

    # --- talking ---------------------------------------------------------------------------------------------------
    async def command(self, *words: str) -> tuple[int, str, str]:
        """Run the `research` command to its end: exit code, standard output, standard error."""
        process = await self.begin(*words)
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    async def begin(self, *words: str) -> asyncio.subprocess.Process:
        """Start the `research` command."""
        return await asyncio.create_subprocess_exec(
            str(Path(PYTHON).with_name("research")),
            *words,
            cwd=self.home,
            env=self.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def client(self) -> Client:
        """A client of the engine."""
        assert self.engine is not None
        return await Client.connect(self.engine.address, data_converter=pydantic_data_converter)

    def calls(self) -> list[dict[str, object]]:
        """Every request that reached the model endpoint."""
        if not self.journal.exists():
            return []
        lines = [json.loads(line) for line in self.journal.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line["event"] == "received"]

    def in_flight(self) -> int:
        """Requests that have arrived and not been answered."""
        return len(self.calls()) - sum(self.delivered().values())

    def delivered(self) -> Counter[str]:
        """Answers that arrived whole, by request."""
        if not self.journal.exists():
            return Counter()
        lines = [json.loads(line) for line in self.journal.read_text(encoding="utf-8").splitlines()]
        return Counter(str(line["request_hash"]) for line in lines if line["event"] == "ended" and line["delivered"])


@asynccontextmanager
async def topology(home: Path, latency: float = 0.0, scenario: str = "good") -> AsyncIterator[Topology]:
    """A deployment for the time of a block."""
    made = Topology(home, latency, scenario)
    try:
        await made.open()
        yield made
    finally:
        await made.close()
