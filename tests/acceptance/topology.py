"""A deployment of real processes, engine and workers, around one home, with a fake model endpoint."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.integration.server_homes import give_port, running, stop_server
from tests.unit.client.cli.command_line import research
from workers.dev_server import detach_server, ensure_server
from workers.shared_state import SHARED_FILE

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
        self.running.send_signal(signal.SIGKILL)


class Topology:
    """Worker processes and an engine around one home; the model endpoint is in this process."""

    def __init__(self, home: Path, latency: float, scenario: str = "good", configuration: str = "") -> None:
        self.home = home
        self.configuration = configuration
        self.documents = home / "documents"
        self.model = MessagesApi(scenario, latency=latency)
        self.variables: dict[str, str] = {}
        """Further variables of the environment of our processes."""
        self._workers: list[asyncio.subprocess.Process] = []

    # --- starting and killing --------------------------------------------------------------------------------------
    async def open(self) -> None:
        """Write the documents, which workers index as they start, and start the engine; no worker yet."""
        self.documents.mkdir(parents=True)
        for name, text in MANUAL.items():
            (self.documents / name).write_text(text, encoding="utf-8")
        corpus = f'{self.configuration}\n[corpus.documents]\npath = "{self.documents}"\n'
        (self.home / "research.toml").write_text(corpus, encoding="utf-8")
        give_port(self.home)
        await ensure_server(self.home)

    async def close(self) -> None:
        await self.kill_workers()
        await stop_server(self.home)
        detach_server(self.home)

    def environment(self) -> dict[str, str]:
        """Return what our processes see: nothing of the developer's."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        return kept | {
            "RESEARCH_HOME": str(self.home),
            "RESEARCH_CONFIG": str(self.home / "research.toml"),
            "RESEARCH_MODEL": "test-model",
            "ANTHROPIC_API_KEY": "planted-secret-key",
            "ANTHROPIC_BASE_URL": self.model.base_url,
            "NO_COLOR": "1",
            **self.variables,
        }

    async def start_workers(self, pools: str = "") -> None:
        """Start a worker process with all pools, or with some, separated by commas."""
        command = (PYTHON, *RESEARCH, "worker", "--log-format", "json", *(("--pool", pools) if pools else ()))
        with (self.home / "workers.log").open("ab") as log:
            self._workers.append(
                await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=self.environment(), stdout=log, stderr=log)
            )

    async def kill_workers(self) -> None:
        for worker in self._workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGKILL)
            await worker.wait()
        if self._workers:
            await asyncio.sleep(0.3)  # what they had sent arrives
        self._workers.clear()

    def worker_pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def kill_server(self) -> None:
        """Send SIGKILL to the engine's server; a worker that watches it starts it again."""
        os.kill(running(self.home).pid, signal.SIGKILL)

    # --- talking ---------------------------------------------------------------------------------------------------
    async def command(self, *words: str) -> tuple[int, str, str]:
        """Run the `research` command to its end: exit code, standard output, standard error."""
        process = await self.begin(*words)
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    async def ask(self, *words: str) -> tuple[int, str, str]:
        """Run a command that looks at runs or sends them something in this process, which takes a fraction of the time."""
        done = await asyncio.to_thread(research, *words, **self.environment())
        structlog.reset_defaults()
        return done.exit_code, done.stdout, done.stderr

    async def begin(self, *words: str) -> asyncio.subprocess.Process:
        program, pipe = str(Path(PYTHON).with_name("research")), asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            program, *words, cwd=self.home, env=self.environment(), stdout=pipe, stderr=pipe
        )

    async def client(self) -> Client:
        return await Client.connect(running(self.home).address, data_converter=pydantic_data_converter)

    def in_flight(self) -> int:
        return sum(not call.delivered for call in self.model.calls)

    def journalled(self, research_id: str) -> int:
        """Return the number of answers of a run in the journal: those are never paid for again.

        An answer that the endpoint has sent is not there before its worker has read it; on a busy machine, a worker
        that is killed leaves some on their way.
        """
        with closing(sqlite3.connect(f"file:{self.home / SHARED_FILE}?mode=ro", uri=True, timeout=30)) as database:
            prefix = f"calls/{research_id}/answer/".encode()
            rows = database.execute(
                "SELECT count(*) FROM shared WHERE key >= ? AND key < ?", (prefix, prefix + b"\xff")
            )
            return int(rows.fetchone()[0])

    async def quiet_moment(self) -> None:
        """Wait until calls have just begun and none is being answered: an answer on its way is neither here nor there.

        A run without further calls is waited for at most three seconds.
        """
        end = time.time() + 3.0
        while (now := time.time()) < end:
            open_calls = [call for call in self.model.calls if call.ended is None]
            answered = max((call.ended for call in self.model.calls if call.ended), default=0.0)
            if open_calls and now - answered > 0.1 and all(now - call.started < 0.2 for call in open_calls):
                return
            await asyncio.sleep(0.01)

    def answered_twice(self) -> list[str]:
        """Return the requests whose whole answer arrived more than once."""
        delivered = Counter(call.request_hash for call in self.model.calls if call.delivered)
        return [request for request, count in delivered.items() if count > 1]


@asynccontextmanager
async def topology(
    home: Path, latency: float = 0.0, scenario: str = "good", configuration: str = ""
) -> AsyncIterator[Topology]:
    """Open a deployment for the time of a block; `configuration` is the text of its research.toml."""
    made = Topology(home, latency, scenario, configuration)
    async with made.model:
        try:
            await made.open()
            yield made
        finally:
            await made.close()
