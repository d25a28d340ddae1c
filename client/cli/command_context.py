"""What every command needs: the configuration, the stored runs, and the server if one is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from temporalio.client import RPCError, RPCStatusCode

from client.cli import output
from client.cli.command_errors import CommandError, ExitCode
from client.cli.options import command_settings
from client.cli.research_ids import resolve
from client.cli.stores import Stores, open_stores, read_deleted_histories
from client.client_errors import NoWorker, RunUnknown, ServerUnreachable, WorkerStuck
from client.handle import ResearchClient
from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import Completeness, Outcome, RunStatus, StopReason
from providers.errors import ContentCorrupt, ContentMissing
from providers.storage.sessions import SAFE_ID
from workers.dev_server import ServerError, ServerMovedError, describe_server, detach_server, ensure_server
from workers.settings.loading import Flags, Settings
from workers.telemetry import temporal_runtime
from workers.temporal import open_connection
from workflows.phases.counts import counts_of
from workflows.run_status import status_of

NO_SERVER = "no server is running here: start one with `research serve`, or set TEMPORAL_ADDRESS"
LISTED = 500
RUNNING = "running"
RECOVERY_PAUSE_SECONDS = 0.5

OUTCOME_OF = {
    RunStatus.CANCELLED: (Outcome.CANCELLED, StopReason.USER_CANCELLED),
    RunStatus.TIMED_OUT: (Outcome.TIMED_OUT, StopReason.BUDGET_TIME),
    RunStatus.FAILED: (Outcome.FAILED, StopReason.INTERNAL_ERROR),
    RunStatus.REFUSED: (Outcome.REFUSED, StopReason.INVALID_INPUT),
}
STATUS_OF_SERVER = {
    "running": RunStatus.RUNNING,
    "completed": RunStatus.COMPLETED,
    "failed": RunStatus.FAILED,
    "terminated": RunStatus.FAILED,
    "canceled": RunStatus.CANCELLED,
    "timed_out": RunStatus.TIMED_OUT,
}
"""What the server calls the end of a run."""
INTERRUPTED = "interrupted"
UNKNOWN = "unknown"
"""Of a run that is not over, while the server does not answer."""
UNREACHABLE = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)


@dataclass(frozen=True)
class ServerRun:
    """A run as the server lists it."""

    research_id: str
    status: str
    started_at: str
    run_id: str = ""


@dataclass
class CommandContext:
    """One command's view of the world."""

    settings: Settings
    stores: Stores
    reads_only: bool = False
    """Whether what is stored is enough: then a cluster that does not answer is told of, and done without."""
    ui_url: str | None = None
    _client: ResearchClient | None = None
    _address: str = ""
    _runs: list[ServerRun] | None = field(default=None, repr=False)
    _away: bool = False

    # --- the server ------------------------------------------------------------------------------------------------
    async def ensured_client(self) -> ResearchClient:
        """The cluster's client, or the one of the dev server, which is started if need be."""
        return await self._connect(start=True)

    async def recover(self) -> None:
        """Bring the dev server up again. Raises `ServerMovedError` if its port was taken, `ServerError`."""
        await asyncio.sleep(RECOVERY_PAUSE_SECONDS)
        engine = await ensure_server(self.settings.home)
        if engine.address != self._address:
            raise ServerMovedError(engine.address)

    async def client_if_running(self) -> ResearchClient | None:
        """A client if a server runs already; None without one.

        Raises `ServerError` for a cluster that does not answer, unless what is stored is enough.
        """
        if self._client is not None or self._away:
            return self._client
        if not self.settings.uses_cluster and describe_server(self.settings.home) is None:
            return None
        try:
            return await self._connect(start=False)
        except ServerError as error:
            if not self.reads_only:
                raise
            self._go_without(str(error))
            return None

    @property
    def server_away(self) -> bool:
        """Whether a cluster did not answer: then nobody knows whether a run goes on."""
        return self._away

    def _go_without(self, why: str) -> None:
        self._client, self._away = None, True
        output.tell(f"{why}; this is what is stored: a run that goes on is shown as of its last checkpoint")

    async def running_client(self) -> ResearchClient:
        """A client of the running server. Raises `CommandError` when there is none."""
        client = await self.client_if_running()
        if client is None:
            raise CommandError(NO_SERVER, ExitCode.FAILED)
        return client

    async def server_runs(self) -> list[ServerRun]:
        """The runs that the server keeps, newest first; empty when no server runs."""
        if self._runs is None:
            client = await self.client_if_running()
            self._runs = [] if client is None else await self._listed_runs(client)
        return self._runs

    async def _listed_runs(self, client: ResearchClient) -> list[ServerRun]:
        try:
            return await _list_runs(client, read_deleted_histories(self.settings.home))
        except RPCError as error:
            if not self.reads_only or error.status not in UNREACHABLE:
                raise
            self._go_without("the server stopped answering")
            return []

    async def server_run(self, research_id: str) -> ServerRun | None:
        """The run of this id as the server lists it, as of the list that this command has read."""
        return next((run for run in await self.server_runs() if run.research_id == research_id), None)

    async def is_running(self, research_id: str) -> bool:
        """Whether the server says that a run goes on."""
        run = await self.server_run(research_id)
        return run is not None and run.status == RUNNING

    async def _connect(self, *, start: bool) -> ResearchClient:
        connection = await open_connection(self.settings, runtime=temporal_runtime(), start=start)
        self.ui_url, self._address = connection.ui_url, connection.address
        self._client = ResearchClient(connection.client, stored_result=self.last_result)
        self._runs = None  # what was listed before may have been no server's list
        return self._client

    def web_address(self, research_id: str) -> str | None:
        """Where the web UI of the dev server shows a run."""
        if self.ui_url is None:
            return None
        return f"{self.ui_url}/namespaces/default/workflows/{quote(research_id, safe='')}"

    # --- the record ------------------------------------------------------------------------------------------------
    async def known_ids(self) -> list[str]:
        """Ids of all runs that the server or the session store knows, newest first."""
        started = {run.research_id: run.started_at for run in reversed(await self.server_runs())}
        for session in await self.stores.sessions.list():
            started.setdefault(session.research_id, session.saved_at)
        return sorted(started, key=lambda name: started[name], reverse=True)

    async def resolve(self, given: str) -> str:
        """The id that a person means. Raises `CommandError`."""
        return resolve(given, await self.known_ids())

    async def stored_state(self, research_id: str) -> ResearchState | None:
        """The newest checkpoint, or None."""
        text = await self.stores.sessions.load(research_id)
        return None if text is None else ResearchState.model_validate_json(text)

    async def stored_result(self, research_id: str) -> ResearchResult | None:
        """The stored result of a run that is over, or None."""
        state = await self.stored_state(research_id)
        return None if state is None else result_of(research_id, state)

    async def last_result(self, research_id: str) -> ResearchResult | None:
        """What the record can say of a run that the server has closed: its result, else its last checkpoint."""
        state = await self.stored_state(research_id)
        return None if state is None else result_of(research_id, state) or unclosed_result(research_id, state)

    async def closed_result(self, research_id: str) -> ResearchResult | None:
        """How a run ended, by the record or else by the server (one that never began); None unless it is over."""
        state = await self.stored_state(research_id)
        if state is not None:
            return result_of(research_id, state)
        run, client = await self.server_run(research_id), await self.client_if_running()
        if run is None or run.status == RUNNING or client is None:
            return None
        return await client.handle(research_id).result()

    async def report_documents(self, result: ResearchResult) -> dict[str, bytes]:
        """`md`, `html` and `json` as far as they exist; only `md` where the content store is out of reach."""
        if result.files is None:
            return {"md": result.report.encode()} if result.report else {}
        references = {"md": result.files.markdown, "html": result.files.html, "json": result.files.json_document}
        try:
            return {form: await self.stores.content.get(reference) for form, reference in references.items()}
        except ContentCorrupt:
            raise
        except ContentMissing:
            if not result.report:
                raise
            output.tell("the stored report is missing here: only the Markdown of the result is written")
            return {"md": result.report.encode()}

    async def state(self, research_id: str) -> ResearchState:
        """The newest state there is, with all details: of the running run, else of the session store.

        Raises `CommandError`, and what reading the run's notebook raises.
        """
        return await self.stores.notebooks.complete_state(await self._state(research_id))

    async def _state(self, research_id: str) -> ResearchState:
        kept = await self.stored_state(research_id)
        client = await self.client_if_running()
        if client is not None and (kept is None or kept.result is None):
            try:
                return await client.handle(research_id).session()
            except (RunUnknown, NoWorker, WorkerStuck, ServerUnreachable) as error:
                if kept is None:
                    raise CommandError(str(error), ExitCode.FAILED) from error
        if kept is None:
            raise CommandError(f"nothing is stored of the run {research_id} yet: see `research watch {research_id}`")
        return kept

    async def question(self, research_id: str) -> str:
        """The question of a run, from the record or from the server's own summary."""
        state = await self.stored_state(research_id)
        if state is not None and state.resolved is not None:
            return state.resolved.query
        client = await self.client_if_running()
        summary = None if client is None else await client.handle(research_id).question()
        return summary or ""


@asynccontextmanager
async def open_context(flags: Flags | None = None, *, reads_only: bool = False) -> AsyncIterator[CommandContext]:
    """The context of one command; closes what it opened."""
    settings = command_settings(flags)
    async with open_stores(settings) as stores:
        try:
            yield CommandContext(settings, stores, reads_only)
        finally:
            detach_server(settings.home)


async def _list_runs(client: ResearchClient, deleted: set[str]) -> list[ServerRun]:
    runs: list[ServerRun] = []
    found = client.temporal.list_workflows(f'WorkflowType="{names.DEEP_RESEARCH}"', limit=LISTED)
    try:
        async for run in found:
            if run.run_id in deleted or not SAFE_ID.fullmatch(run.id):
                continue  # any program may start workflows there: one without a research id is not a run
            status = run.status.name.lower() if run.status else ""
            runs.append(ServerRun(run.id, status, run.start_time.isoformat(), run.run_id))
    except ValueError:
        output.tell("the server's list of runs is incomplete: this client cannot read a paused run")
    newest: dict[str, ServerRun] = {}
    for listed in sorted(runs, key=lambda each: each.started_at, reverse=True):
        newest.setdefault(listed.research_id, listed)
    return list(newest.values())


def status_at_checkpoint(state: ResearchState, saved_at: str = "", *, going_on: bool = False) -> ResearchStatus:
    """The status as of the last checkpoint, where the clock of a run that was cut off stands still.

    A run that ended without a report says how; its last checkpoint was its last act.
    """
    status = status_of(state, datetime.fromisoformat(saved_at).timestamp() if saved_at else state.clock_started_at)
    if going_on or state.result is not None or state.status not in OUTCOME_OF:
        return status
    outcome, reason = OUTCOME_OF[state.status]
    return status.model_copy(update={"outcome": outcome, "stop_reason": reason, "ended_at": saved_at or None})


def result_of(research_id: str, state: ResearchState) -> ResearchResult | None:
    """The stored result; one without a report for a run that ended without; None while nothing says it ended."""
    if state.result is not None:
        return state.result
    if state.status not in OUTCOME_OF:
        return None
    return _of_checkpoint(research_id, state, *OUTCOME_OF[state.status])


def unclosed_result(research_id: str, state: ResearchState) -> ResearchResult:
    """What the last checkpoint of a run says that never closed its session, because it was ended from outside."""
    return _of_checkpoint(research_id, state, Outcome.FAILED, StopReason.INTERNAL_ERROR)


def _of_checkpoint(research_id: str, state: ResearchState, outcome: Outcome, reason: StopReason) -> ResearchResult:
    return ResearchResult(
        research_id=research_id,
        outcome=outcome,
        stop_reason=reason,
        completeness=Completeness.EMPTY,
        counts=counts_of(state),
        usage=state.usage,
        degraded=state.degraded,
        failed_branches=state.failed_branches,
        limitations=state.limitations,
        resumable=True,
        started_at=state.started_at,
    )


def last_outcome(state: ResearchState) -> Outcome:
    """How the last run of a session ended; a session that was never closed counts as failed."""
    result = result_of("", state)
    return Outcome.FAILED if result is None else result.outcome
