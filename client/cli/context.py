"""What every command needs: the configuration, the stored runs, and the engine if one is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

from client.cli import output, stored
from client.cli.configured import command_settings
from client.cli.deleted_histories import buried
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from client.cli.research_ids import resolve
from client.cli.stores import Stores, open_stores
from client.errors import EngineUnreachable, NoWorker, RunUnknown, WorkerStuck
from client.handle import ResearchClient
from contracts import names
from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from providers.storage.sessions import SAFE_ID
from workers.dev_server.attach import describe_server, detach_server, ensure_server
from workers.dev_server.files import ServerMovedError
from workers.settings.loading import Flags, Settings
from workers.telemetry import temporal_runtime
from workers.temporal import open_connection

NO_ENGINE = "no engine is running here: start one with `research serve`, or set TEMPORAL_ADDRESS"
LISTED = 500
RUNNING = "running"
RECOVERY_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class EngineRun:
    """A run as the engine lists it."""

    research_id: str
    status: str
    started_at: str
    run_id: str = ""


@dataclass
class CommandContext:
    """One command's view of the world."""

    settings: Settings
    stores: Stores
    ui_url: str | None = None
    _client: ResearchClient | None = None
    _address: str = ""
    _runs: list[EngineRun] | None = field(default=None, repr=False)

    # --- the engine ------------------------------------------------------------------------------------------------
    async def ensured_client(self) -> ResearchClient:
        """The cluster's client, or the one of the embedded engine, which is started if need be."""
        return await self._connected(start=True)

    async def recover(self) -> None:
        """Bring the embedded engine up again. Raises `ServerMovedError` if its port was taken, `ServerError`."""
        await asyncio.sleep(RECOVERY_PAUSE_SECONDS)
        engine = await ensure_server(self.settings.home)
        if engine.address != self._address:
            raise ServerMovedError(engine.address)

    async def client_if_running(self) -> ResearchClient | None:
        """A client if an engine runs already; null without one. Raises `ServerError` for a silent cluster."""
        if self._client is not None:
            return self._client
        if not self.settings.uses_cluster and describe_server(self.settings.home) is None:
            return None
        return await self._connected(start=False)

    async def running_client(self) -> ResearchClient:
        """A client of the running engine. Raises `CommandError` when there is none."""
        client = await self.client_if_running()
        if client is None:
            raise CommandError(NO_ENGINE, ExitCode.FAILED)
        return client

    async def engine_runs(self) -> list[EngineRun]:
        """The runs that the engine keeps, newest first; empty when no engine runs."""
        if self._runs is None:
            client = await self.client_if_running()
            self._runs = [] if client is None else await _list_runs(client, buried(self.settings.home))
        return self._runs

    async def is_running(self, research_id: str) -> bool:
        """Whether the engine says that a run goes on, as of the list that this command has read."""
        return any(run.research_id == research_id and run.status == RUNNING for run in await self.engine_runs())

    async def engine_knows(self, research_id: str) -> bool:
        """Whether the engine keeps a run of this id."""
        return any(run.research_id == research_id for run in await self.engine_runs())

    async def _connected(self, *, start: bool) -> ResearchClient:
        connection = await open_connection(self.settings, runtime=temporal_runtime(), start=start)
        self.ui_url, self._address = connection.ui_url, connection.address
        moved = connection.embedded.moved_aside if connection.embedded else ""
        if moved:
            output.tell(f"the engine's database was of another version and is kept at {moved}")
        self._client = ResearchClient(connection.client, stored_result=self.stored_result)
        self._runs = None  # what was listed before may have been no engine's list
        return self._client

    def web_address(self, research_id: str) -> str | None:
        """Where the web UI of the embedded engine shows a run."""
        if self.ui_url is None:
            return None
        return f"{self.ui_url}/namespaces/default/workflows/{quote(research_id, safe='')}"

    # --- the record ------------------------------------------------------------------------------------------------
    async def known_ids(self) -> list[str]:
        """Ids of all runs that the engine or the session store knows, newest first."""
        started = {run.research_id: run.started_at for run in reversed(await self.engine_runs())}
        for session in await self.stores.sessions.list():
            started.setdefault(session.research_id, session.saved_at)
        return sorted(started, key=lambda name: started[name], reverse=True)

    async def resolve(self, given: str) -> str:
        """The id that a person means. Raises `CommandError`."""
        return resolve(given, await self.known_ids())

    async def stored_state(self, research_id: str) -> ResearchState | None:
        """The newest checkpoint, or null."""
        text = await self.stores.sessions.load(research_id)
        return None if text is None else ResearchState.model_validate_json(text)

    async def stored_result(self, research_id: str) -> ResearchResult | None:
        """The stored result of a run that is over, or null."""
        state = await self.stored_state(research_id)
        return None if state is None else stored.result_of(research_id, state)

    async def state(self, research_id: str) -> ResearchState:
        """The newest state there is: of the running run, else of the session store. Raises `CommandError`."""
        kept = await self.stored_state(research_id)
        client = await self.client_if_running()
        if client is not None and (kept is None or kept.result is None):
            try:
                return await client.handle(research_id).session()
            except (RunUnknown, NoWorker, WorkerStuck, EngineUnreachable) as error:
                if kept is None:
                    raise CommandError(str(error), ExitCode.FAILED) from error
        if kept is None:
            raise CommandError(f"nothing is stored of the run {research_id} yet: research watch {research_id}")
        return kept

    async def question(self, research_id: str) -> str:
        """The question of a run, from the record or from the engine's own summary."""
        state = await self.stored_state(research_id)
        if state is not None and state.resolved is not None:
            return state.resolved.query
        client = await self.client_if_running()
        summary = None if client is None else await client.handle(research_id).question()
        return summary or ""


@asynccontextmanager
async def open_desk(flags: Flags | None = None) -> AsyncIterator[CommandContext]:
    """The context of one command; closes what it opened."""
    settings = command_settings(flags)
    async with open_stores(settings) as stores:
        try:
            yield CommandContext(settings, stores)
        finally:
            detach_server(settings.home)


async def _list_runs(client: ResearchClient, deleted: set[str]) -> list[EngineRun]:
    runs: list[EngineRun] = []
    found = client.temporal.list_workflows(f'WorkflowType="{names.DEEP_RESEARCH}"', limit=LISTED)
    try:
        async for run in found:
            if run.run_id in deleted or not SAFE_ID.fullmatch(run.id):
                continue  # every program may start workflows there: what has no research id is no run of ours
            status = run.status.name.lower() if run.status else ""
            runs.append(EngineRun(run.id, status, run.start_time.isoformat(), run.run_id))
    except ValueError:
        output.tell("the engine's list is incomplete: a paused run cannot be read by this client")
    newest: dict[str, EngineRun] = {}
    for listed in sorted(runs, key=lambda each: each.started_at, reverse=True):
        newest.setdefault(listed.research_id, listed)
    return list(newest.values())
