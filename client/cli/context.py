"""Context of a command: configuration, stored runs, documents, and the server if one is running."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote as url_quote

import structlog

from client.cli.output import CommandError, ExitCode, print_hint, quote
from client.client_errors import RunForeign, RunUnknown
from client.handle import ResearchClient, ResearchHandle
from client.run_results import STOP_REASONS, checkpoint_result
from contracts import names
from contracts.messages import QueueTurn
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.texts import shorten
from contracts.vocabulary import Outcome, RunStatus
from providers.errors import ContentMissing, ProviderError
from providers.interfaces import StoredSession
from providers.isolation.pool import SubprocessPool
from providers.storage.sessions import SAFE_ID
from workers.dev_server import ServerError, ServerFiles, describe_server, detach_server, ensure_server
from workers.settings.loading import Flags, Settings, load_settings
from workers.stores import CHILD_PROCESSES, open_corpora, open_stores
from workers.telemetry import temporal_runtime
from workers.temporal import open_connection

if TYPE_CHECKING:
    from providers.search.corpus.library import CorpusLibrary

NO_SERVER: Final = "no server is running here: start one with `research serve`, or set TEMPORAL_ADDRESS"
PAGE_RUNS: Final = 50
"""Of a list, unless a person asks for another number."""
MAX_LISTED_RUNS: Final = 10_000
"""Runs of the server among which a text, a tenant or the beginning of an id is looked for."""
CHECKED_AT_ONCE: Final = 100
"""Ids in one query."""
PAGE_OF_SERVER: Final = 1_000
"""Most runs that a server returns in one answer by default."""
RUNS: Final = f'WorkflowType="{names.DEEP_RESEARCH}"'
OPEN_RUNS: Final = f'{RUNS} AND ExecutionStatus="Running"'
CLOSED_RUNS: Final = f'{RUNS} AND ExecutionStatus!="Running" AND ExecutionStatus!="ContinuedAsNew"'
RUNNING: Final = "running"
LAST: Final = "last"
"""What a person may write for the newest run."""
ID_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # no look-alike characters
OUTCOMES: Final = {RunStatus(outcome.value): outcome for outcome in STOP_REASONS}
"""Outcome of a stored run without a result, by status."""


@dataclass(frozen=True)
class ServerRun:
    """A run as the server lists it."""

    research_id: str
    status: str
    started_at: str
    question: str = ""
    """As its memo has it, shortened; empty without a memo."""
    tenant: str = ResearchRequest.model_fields["tenant"].default


@dataclass(frozen=True)
class ServerRuns:
    """Runs of a server, newest first, each id once."""

    runs: Sequence[ServerRun] = ()
    total: int = 0
    """Number of its runs; where not all were read, one that was resumed counts for each time."""
    is_complete: bool = True
    """True if all its runs were read."""


class Stores:
    """Stores of the workers, opened for a command on demand and closed together."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._library: CorpusLibrary | None = None
        self._pool: SubprocessPool | None = None
        stores = open_stores(settings)
        self.sessions = stores.sessions
        self.content = stores.content
        self.notebooks = stores.notebooks
        self.archive = stores.archive

    async def corpora(self) -> "CorpusLibrary":
        """Open the corpora of the configuration and those registered here."""
        if self._library is None:
            self._library = open_corpora(self._settings, await self.children())
        return self._library

    async def corpus_folders(self) -> dict[str, Path]:
        """Return the folder of each corpus known on this machine, by name."""
        library = await self.corpora()
        return {name: library.definition(name).path for name in library.names()}

    async def children(self) -> SubprocessPool:
        """Return the pool of subprocesses for untrusted text, starting it if needed."""
        if self._pool is None:
            self._pool = await self._stack.enter_async_context(SubprocessPool(CHILD_PROCESSES))
        return self._pool


@dataclass
class CommandContext:
    """One command's view of runs and server."""

    settings: Settings
    stores: Stores
    tenant: str | None = None
    """The tenant whose runs alone are found; None: everybody's."""
    server_away: str = ""
    """Reason the cluster does not answer; it is then unknown which runs are still active."""
    ui_url: str | None = None
    _client: ResearchClient | None = None
    _address: str = ""

    async def connect(self, *, start: bool = True) -> ResearchClient:
        """Connect to the cluster, or to the dev server, starting it if needed. Raises `ServerError`."""
        connection = await open_connection(self.settings, runtime=temporal_runtime(), start=start)
        self.ui_url = connection.ui_url
        self._address = connection.address
        self._client = ResearchClient(connection.client, stored_result=self._closed_result)
        return self._client

    async def recover(self) -> None:
        """Restart the dev server. Raises `CommandError` if its port was taken, and `ServerError`."""
        await asyncio.sleep(0.5)
        server = await ensure_server(self.settings.home)
        if server.address != self._address:
            raise CommandError("the server moved to another port: see `research list`, then `research resume ID`")

    async def client_if_running(self) -> ResearchClient | None:
        """Connect if a server is running; return None without one, or if a cluster does not answer."""
        if self._client is not None or self.server_away:
            return self._client
        if not self.settings.uses_cluster and describe_server(self.settings.home) is None:
            return None
        try:
            return await self.connect(start=False)
        except ServerError as error:
            self.server_away = str(error)
            print_hint(f"{error}; what is stored is still there: an open run appears as of its last checkpoint")
            return None

    async def client_of_runs(self) -> ResearchClient | None:
        """Connect to the server of the runs, starting the dev server if needed; None if there never was one."""
        if self.settings.uses_cluster or ServerFiles(self.settings.home).database.exists():
            return await self.connect()
        return None

    async def running_client(self) -> ResearchClient:
        """Connect to the running server. Raises `CommandError` without one."""
        client = await self.client_if_running()
        if client is None:
            raise CommandError(self.server_away or NO_SERVER, ExitCode.FAILED)
        return client

    async def handle_if_running(self, research_id: str) -> ResearchHandle | None:
        """Return the handle of a run; None if no server is running."""
        client = await self.client_if_running()
        return None if client is None else client.handle(research_id)

    async def sessions(self) -> list[StoredSession]:
        """List the stored runs of the tenant, newest first."""
        stored = await self.stores.sessions.list()
        return [session for session in stored if self.tenant in (None, session.tenant)]

    async def server_runs(self, at_least: int = PAGE_RUNS) -> ServerRuns:
        """List the server's newest open and newest closed runs of the tenant, so many of each; none without a server.

        With a tenant all runs are read, as far as `MAX_LISTED_RUNS`.
        """
        client = await self.client_if_running()
        if client is None:
            return ServerRuns()
        if self.tenant is None:
            return await list_runs(client, at_least)
        listed = await list_runs(client, MAX_LISTED_RUNS)
        own = [run for run in listed.runs if run.tenant == self.tenant]
        return replace(listed, runs=own, total=len(own))

    async def open_among(self, ids: Sequence[str]) -> set[str]:
        """Return which of these runs are open on the server; none without a server."""
        client = await self.client_if_running()
        found: set[str] = set()
        if client is None:
            return found
        for start in range(0, len(ids), CHECKED_AT_ONCE):
            named = ", ".join(f'"{research_id}"' for research_id in ids[start : start + CHECKED_AT_ONCE])
            found |= {
                run.id async for run in client.temporal.list_workflows(f"{OPEN_RUNS} AND WorkflowId IN ({named})")
            }
        return found

    async def queue_places(self) -> dict[str, QueueTurn] | None:
        """Read the places of all queued runs at once; None if this machine does not see the workers' queue."""
        from providers.shared.run_queue import read_places  # noqa: PLC0415  only `list` needs it
        from workers.shared_state import open_shared_state, queue_limits  # noqa: PLC0415

        try:
            async with open_shared_state(self.settings) as shared:
                return await read_places(shared.store, queue_limits(self.settings))
        except ProviderError:
            return None

    def web_address(self, research_id: str) -> str | None:
        """Return the address of a run in the web UI of the dev server."""
        return self.ui_url and f"{self.ui_url}/namespaces/default/workflows/{url_quote(research_id, safe='')}"

    async def find(self, run_id: str) -> "RunInfo":
        """Load the run that a person names. Raises `CommandError`."""
        started = {session.research_id: session.saved_at for session in await self.sessions()}
        if run_id not in started:
            # A part of an id may be that of any run; the newest run is on the first page.
            listed = await self.server_runs(PAGE_RUNS if run_id == LAST else MAX_LISTED_RUNS)
            started |= {run.research_id: run.started_at for run in listed.runs}
        ids = sorted(started, key=lambda research_id: started[research_id], reverse=True)
        return await self.load_run(resolve_id(run_id, ids))

    async def load_run(self, research_id: str) -> "RunInfo":
        """Load a run by its full id from the session store and, if a server is running, from the server."""
        text = await self.stores.sessions.load(research_id)
        state = None
        if text is not None:
            state = ResearchState.model_validate_json(text)
        client = await self.client_if_running()
        with suppress(RunUnknown, RunForeign):
            if client is not None:
                handle = client.handle(research_id)
                return RunInfo(research_id, state, handle, await handle.is_running())
        return RunInfo(research_id, state)

    async def report_documents(self, result: ResearchResult) -> dict[str, bytes]:
        """Load `md`, `html` and `json`; only `md` if this machine lacks the files; empty without a report.

        Raises `ContentMissing`.
        """
        files = {} if result.files is None else result.files.by_form()
        try:
            return {form: await self.stores.content.get(reference) for form, reference in files.items()}
        except ContentMissing:
            if not result.report:
                raise
            print_hint("the stored report is not on this machine: using the Markdown of the result")
            return {"md": result.report.encode()}

    async def full_state(self, run: "RunInfo") -> ResearchState:
        """Load the newest state with all details. Raises `CommandError`, `ClientError`."""
        if run.open is None:
            state = run.stored_state()
        else:
            state = await run.open.session()
        return await self.stores.notebooks.complete_state(state)

    async def _closed_result(self, research_id: str) -> ResearchResult | None:
        """Load the result of a closed run; without one, a failure as of its last checkpoint."""
        state = (await self.load_run(research_id)).state
        if state is None:
            return None
        return result_of(research_id, state) or checkpoint_result(research_id, state, Outcome.FAILED)


@dataclass(frozen=True)
class RunInfo:
    """A run in the session store and on the server; a new run has only its id."""

    research_id: str
    state: ResearchState | None = None
    """Its newest checkpoint."""
    handle: ResearchHandle | None = None
    """None if no server has the run."""
    running: bool = False
    """True while the run is open on the server."""

    @property
    def open(self) -> ResearchHandle | None:
        """Its handle while the run is open on the server."""
        return self.handle if self.running else None

    @property
    def resolved(self) -> ResolvedResearch | None:
        """Its stored resolution, or None."""
        if self.state is None:
            return None
        return self.state.work.resolved

    def stored_state(self) -> ResearchState:
        """Return its newest checkpoint. Raises `CommandError` without one."""
        if self.state is None:
            remedy = " yet: try again in a moment" if self.running else ": start a new run"
            raise CommandError(f"nothing is stored of the run {self.research_id}{remedy}")
        return self.state

    def stored_resolution(self) -> ResolvedResearch:
        """Return its stored resolution. Raises `CommandError` without one."""
        if (resolved := self.stored_state().work.resolved) is None:
            raise CommandError(f"the run {self.research_id} never began: start a new run")
        return resolved

    async def question(self) -> str | None:
        """Return its question, stored or from the server."""
        if self.resolved is not None:
            return self.resolved.query
        if self.handle is None:
            return None
        return await self.handle.question()

    async def result(self) -> ResearchResult | None:
        """Return its result, stored or (for a run that never began) from the server; None until it ends."""
        if self.state is not None:
            return result_of(self.research_id, self.state)
        if self.handle is None or self.running:
            return None
        return await self.handle.result()


@asynccontextmanager
async def open_context(flags: Flags) -> AsyncIterator[CommandContext]:
    """Open the context of one command. Raises `SettingsError`."""
    async with open_context_with(load_settings(flags)) as context:
        yield context


@asynccontextmanager
async def open_context_with(settings: Settings) -> AsyncIterator[CommandContext]:
    """Open the context of one command with these settings."""
    # Warnings go to standard error; structlog prints to standard output by default, which is for the result.
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    async with AsyncExitStack() as stack:
        try:
            yield CommandContext(settings, Stores(settings, stack), settings.tenant)
        finally:
            detach_server(settings.home)


def result_of(research_id: str, state: ResearchState) -> ResearchResult | None:
    """Return the stored result, or one without a report for a run that ended without one; None if it is open."""
    if state.work.result is not None:
        return state.work.result
    if state.work.status not in OUTCOMES:
        return None
    return checkpoint_result(research_id, state, OUTCOMES[state.work.status])


def new_id() -> str:
    """Make an id for today: `r-YYYYMMDD-xxxx`, one of 31⁴ a day."""
    suffix = "".join(secrets.choice(ID_ALPHABET) for _ in range(4))
    return f"r-{datetime.now().astimezone():%Y%m%d}-{suffix}"


def resolve_id(run_id: str, ids: Sequence[str]) -> str:
    """Return the id given in full, as `last`, or by a unique beginning or end. Raises `CommandError`.

    `ids` lists ids, newest first.
    """
    if run_id == LAST:
        if not ids:
            raise CommandError('there is no run yet: start one with `research run "…"`')
        return ids[0]
    if run_id in ids:
        return run_id
    matches = [name for name in ids if run_id and (name.startswith(run_id) or name.endswith(run_id))]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise CommandError(f"there is no run {quote(run_id)}: see `research list`")
    raise CommandError(f"{quote(run_id)} fits several runs: {', '.join(matches[:5])}, …; give more of the id")


async def list_runs(
    client: ResearchClient, limit: int = MAX_LISTED_RUNS, queries: Sequence[str] = (OPEN_RUNS, CLOSED_RUNS)
) -> ServerRuns:
    """List a server's newest open runs and its newest closed ones, so many of each."""
    newest: dict[str, ServerRun] = {}
    total = 0
    is_complete = True
    for query in queries:  # open ones first, so that a run that ends between the two is in one of them
        found = await _read_list(client, query, limit)
        for run in found:
            if SAFE_ID.fullmatch(run.research_id):  # any program may start workflows there, with any id
                newest[run.research_id] = max(run, newest.get(run.research_id, run), key=lambda each: each.started_at)
        total += len(found)
        if len(found) == limit:
            is_complete = False
            total += (await client.temporal.count_workflows(query)).count - limit
    runs = sorted(newest.values(), key=lambda run: run.started_at, reverse=True)
    return ServerRuns(runs, len(runs) if is_complete else total, is_complete)


async def _read_list(client: ResearchClient, query: str, limit: int) -> list[ServerRun]:
    """Read the runs of a query, newest first."""
    found = []
    page = min(limit, PAGE_OF_SERVER)
    try:
        async for run in client.temporal.list_workflows(query, limit=limit, page_size=page):
            question = await run.memo_value(names.QUESTION_MEMO, "")
            status = run.status.name.lower() if run.status else ""
            # Any program may have written the memo.
            shown = ""
            if isinstance(question, str):
                shown = shorten(question, names.MEMO_CHARACTERS)
            tenant = await run.memo_value(names.TENANT_MEMO, ServerRun.tenant)
            found.append(ServerRun(run.id, status, run.start_time.isoformat(), shown, str(tenant)))
    except ValueError:
        print_hint("the server's list of runs is incomplete: this client cannot read a paused run")
    return found
