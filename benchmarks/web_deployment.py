"""Real worker processes on a Temporal server, with a web and a model of this process."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from tests.acceptance.topology import PYTHON, RESEARCH, ROOT, Process
from tests.fakes.messages_api import Call, MessagesApi
from tests.fakes.web_world import WebWorld
from tests.integration.conftest import FAST
from tests.integration.server_homes import stop_server
from workers.dev_server import detach_server, ensure_server, find_binary
from workers.settings.loading import child_environment
from workers.settings.sections import APPLICATION

MODEL: Final = "test-model"
PRICE: Final = (3.0, 15.0)
"""US dollars per million tokens of input and output."""
READY_SECONDS: Final = 120.0

TemporalStore = Literal["memory", "file"]
"""Where the Temporal server keeps histories: nowhere, or in the embedded engine's SQLite file."""


@dataclass
class WebDeployment:
    """Worker processes and what they see."""

    home: Path
    world: WebWorld
    model: MessagesApi
    address: str
    """Of the Temporal server."""
    redis_url: str | None = None
    content: Mapping[str, str] = field(default_factory=dict)
    """Variables that lead to an object store; none: everything is in the home."""
    workers: list[Process] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """What a worker sees: nothing of the developer's, and no way out of this machine."""
        seen = child_environment()
        kept = {name: seen[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in seen}
        return kept | {
            "TEMPORAL_ADDRESS": self.address,
            "RESEARCH_HOME": str(self.home),
            "RESEARCH_MODEL": MODEL,
            "ANTHROPIC_API_KEY": "planted-secret-key",
            "ANTHROPIC_BASE_URL": self.model.base_url,
            "XDG_CONFIG_HOME": str(self.home / "etc"),
            **({"REDIS_URL": self.redis_url} if self.redis_url else {}),
            **self.content,
            **self.world.variables(),
        }

    def configure(
        self, *, slots: Mapping[str, int] | None = None, most_new_sources: int = 100, at_once: int = 20
    ) -> None:
        """Write the research.toml of workers that are started afterwards: the model's price, room for many sources."""
        lines = [f'[models.prices."{MODEL}"]', f"input = {PRICE[0]}", f"output = {PRICE[1]}"]
        lines += ["[runs]", f"at_once = {at_once}"]
        lines += ["[strategy.supervisor.medium]", f"max_new_sources = {most_new_sources}"]
        lines += ["[workers.slots]", *(f"{pool} = {count}" for pool, count in (slots or {}).items())]
        folder = self.home / "etc" / APPLICATION
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "research.toml").write_text("\n".join(lines), encoding="utf-8")

    async def start_workers(self, count: int = 1, *, pools: Sequence[str] = ()) -> list[Process]:
        """So many processes more, when all of them can get work."""
        started = [await self._start(",".join(pools)) for _ in range(count)]
        async with asyncio.timeout(READY_SECONDS):
            waiting = list(started)
            while waiting:
                waiting = [worker for worker in waiting if not await worker.healthy()]
                await asyncio.sleep(0.1)
        return started

    async def _start(self, pools: str) -> Process:
        log = self.home / f"worker-{len(self.workers)}.log"
        command = [*RESEARCH, "worker", "--log-format", "json", *(["--pool", pools] if pools else [])]
        with log.open("wb") as file:
            running = await asyncio.create_subprocess_exec(
                PYTHON, *command, cwd=ROOT, env=self.environment(), stdout=file, stderr=file
            )
        self.workers.append(Process(pools, log, running))
        return self.workers[-1]

    async def end_workers(self) -> None:
        """SIGTERM for every worker: each drains, and ends its children."""
        for worker in self.workers:
            if worker.running.returncode is None:
                worker.running.terminate()
        for worker in self.workers:
            await worker.running.wait()
        self.workers.clear()

    async def client(self) -> Client:
        """A client of the server."""
        return await Client.connect(self.address, data_converter=pydantic_data_converter)


@asynccontextmanager
async def web_deployment(
    home: Path,
    world: WebWorld,
    model: MessagesApi,
    *,
    temporal: TemporalStore,
    redis_url: str | None = None,
    content: Mapping[str, str] | None = None,
) -> AsyncIterator[WebDeployment]:
    """A server and the fakes, opened here; no worker yet. Everything is ended with the block."""
    home.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(world)
        await stack.enter_async_context(model)
        if temporal == "file":
            address = (await ensure_server(home)).address
            stack.callback(detach_server, home)
            stack.push_async_callback(stop_server, home)
        else:
            server = await WorkflowEnvironment.start_local(
                dev_server_existing_path=str(find_binary()), dev_server_extra_args=FAST
            )
            await stack.enter_async_context(server)
            address = server.client.service_client.config.target_host
        made = WebDeployment(home, world, model, address, redis_url, content or {})
        made.configure()
        stack.push_async_callback(made.end_workers)
        yield made


def answered(calls: Sequence[Call]) -> Counter[str]:
    """How often each request to the model was answered with a message."""
    return Counter(call.request_hash for call in calls if call.status == 200 and call.delivered)
