"""`doctor`: report settings, services, workers and stuck runs, each with its remedy; try one read or search."""

import asyncio
import json
import platform
import secrets
import shlex
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from pydantic import TypeAdapter
from temporalio.api.workflowservice.v1 import ListWorkersRequest
from temporalio.client import RPCError, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ActivityError
from temporalio.service import RPCStatusCode
from typer import Option

from activities.notifying import notice_body
from client.cli.app import installed_version
from client.cli.context import CommandContext
from client.cli.options import AsJson, Commands, Corpus
from client.cli.output import CommandError, ExitCode, ensure_folder, print_hint, print_json, print_result
from client.cli.preflight import RUN_MARK
from client.cli.trials import Check, print_check, try_reads, try_search
from client.handle import ResearchClient
from client.view.words import printable
from contracts.defects import OWN_PACKAGES, Defect
from contracts.messages import refresh_schedule
from contracts.names import (
    DEEP_RESEARCH,
    MODULE_PREFIX,
    POOLS,
    RESEARCH_AGENT,
    RESEARCH_NOTICE,
    SERVER_PREFIX,
    WORKFLOWS_QUEUE,
)
from contracts.notices import NoticeKind, NoticeRequest
from contracts.packages import PackageFault, packages_by_module
from contracts.state import ResearchState
from contracts.strategies import declaration, packages_of_strategies
from contracts.texts import plural
from contracts.vocabulary import RunStatus, Tier
from providers.errors import (
    ContentCorrupt,
    KeyMissing,
    NewerSchema,
    NotConfigured,
    ProviderError,
    Retryable,
    SharedStateUnavailable,
)
from providers.models.chat import ChatApi
from providers.models.endpoints import DEFAULT_ENDPOINT, split_name
from providers.models.servers import ModelServer
from providers.search.availability import ending, malformed, probe, probe_address
from providers.search.declarations import packages_of_providers, search_declaration
from providers.search.web_api import web_client
from providers.service_calls import is_confidential
from providers.shared.day_budget import read_day
from providers.shared.run_queue import read_places
from workers.composition import open_search_providers, open_servers, open_webhook
from workers.package_roles import check_prompts, check_roles
from workers.resolution_inputs import search_choices
from workers.settings.loading import TRACING_HEADER, Settings
from workers.settings.models import host_of
from workers.settings.sections import FirecrawlSettings
from workers.shared_state import open_shared_state, queue_limits
from workers.telemetry import WORKER_HEARTBEAT
from workers.temporal import data_converter
from workers.tracing import probe_collector
from workers.versions import VersionsUnavailableError, list_versions, unserved_runs
from workflows.strategies import load_declared

LOW_SPACE_BYTES: Final = 1_000_000_000
STUCK_ATTEMPTS: Final = 3
ANSWER_TIMEOUT: Final = timedelta(seconds=5)
SILENT_HEARTBEATS: Final = 3
"""A process that misses so many heartbeats is not counted."""
MAX_OPEN_RUNS: Final = 50
OPEN_RUNS: Final = f'WorkflowType IN ("{DEEP_RESEARCH}", "{RESEARCH_AGENT}") AND ExecutionStatus="Running"'
PROBE: Final = f"{MODULE_PREFIX}providers.isolation.confinement:probe"
REFUSED: Final = TypeAdapter(dict[str, bool])
SHOWN_DEFECTS: Final = 3  # runs whose unforeseen errors are shown
SHOWN_RUNS: Final = 5  # interrupted runs that are named
MAX_SCHEDULES: Final = 200  # of refreshes, whose last runs are looked at
commands = Commands()


@commands.command("doctor")
async def doctor(
    context: CommandContext,
    *,
    read: Annotated[list[str] | None, Option(metavar="FILE|URL", help="read this as a worker does; repeatable")] = None,
    search: Annotated[str | None, Option(metavar="QUERY", help="search for this as a worker does")] = None,
    corpus: Corpus = None,
    provider: Annotated[str | None, Option(metavar="NAME", help="with --search: the provider of the web")] = None,
    notify: Annotated[bool, Option("--notify", help="send a test notice to the address of [notify]")] = False,
    as_json: AsJson = False,
) -> int:
    """Report each setting, service and worker, with the remedy for a problem. Exit code 0 or 1.

    With --read, --search or --notify it tries one part of a worker and shows the result.

    research doctor --read manual/vacuum.html --read https://example.org/ --json      one JSON object a line
    research doctor --search "transaction id wraparound" --corpus manual
    research doctor --search "transaction id wraparound" --provider wikipedia
    research doctor --search "transaction id wraparound"                    each provider that is set up, once
    research doctor --notify
    """
    if notify:
        return await _try_notice(context.settings)
    if search is not None:
        return await try_search(context, search, corpus, provider, as_json=as_json)
    if read:
        return await try_reads(context, read, as_json=as_json)
    checks: list[Check] = []
    async for check in _checks(context):
        checks.append(check)
        if not as_json:
            print_check(check)
    if as_json:
        print_json([asdict(check) for check in checks])
    if any(check.grade == "fail" for check in checks):
        return ExitCode.INTERNAL
    return ExitCode.COMPLETED


async def _checks(context: CommandContext) -> AsyncIterator[Check]:
    settings = context.settings
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Check("program", "ok", f"{installed_version()} on {system}")
    yield await asyncio.to_thread(_check_folder, "home", settings.home, "RESEARCH_HOME")
    if settings.tokens.content_archive_enabled and (folder := context.stores.archive.folder) is not None:
        yield await asyncio.to_thread(_check_folder, "archive", folder, "tokens.research_archive_dir")
    notices = settings.notices()
    yield Check("settings", "warn" if notices else "ok", f"digest {settings.digest()}", "; ".join(notices))
    for check in await _check_models(settings):
        yield check
    faulty = await _faulty_packages(settings)
    if (packages := _check_packages(faulty)) is not None:
        yield packages
    yield await _check_web_search(settings, faulty)
    if settings.web.firecrawl is not None:
        yield await _check_firecrawl(settings, settings.web.firecrawl)
    for check in await _check_servers(context):
        yield check
    if settings.notify.url is not None:
        yield _check_notify_settings(settings)
    if settings.tracing.endpoint is not None:
        yield await _check_tracing(settings, settings.tracing.endpoint)
    yield await _check_shared_state(settings)
    yield await _check_encryption(settings)
    yield await _check_readers(context)
    yield await _check_defects(context)
    client = await context.client_if_running()
    if client is None:
        away = context.server_away
        remedy = "check TEMPORAL_ADDRESS and the network"
        stopped = Check("server", "ok", "not running; `research run` and `research serve` start it")
        yield Check("server", "fail", away, remedy) if away else stopped
        if not away:
            yield await _check_interrupted(context)
        return
    for check in await _checks_of_server(context, client):
        yield check


async def _checks_of_server(context: CommandContext, client: ResearchClient) -> list[Check]:
    """Check what the server knows: notices, workers, versions, runs and schedules."""
    try:
        undelivered = await _check_notices(client)
        unserved = await _check_versions(client)
        workers = await _check_workers(client)
        processes = await _check_processes(client)
        runs = await _check_runs(client)
        refreshes = await _check_refreshes(client)
    except RPCError as error:
        return [Check("server", "fail", f"does not answer: {error.status.name.lower()}", "see its log")]
    server = Check("server", "ok", f"running ({context.ui_url or 'without a web UI'})")
    found = [undelivered, server, workers, processes, *unserved, runs, refreshes]
    return [check for check in found if check is not None]


def _check_folder(name: str, folder: Path, setting: str) -> Check:
    """Check that one of our folders is writable and has room."""
    try:
        ensure_folder(folder, f"set {setting} to another folder")
    except CommandError as error:
        return Check(name, "fail", *str(error).rsplit("; ", 1))
    if mode := stat.S_IMODE(folder.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        others = "every user of this machine" if mode & stat.S_IWOTH else "its group"
        found = f"{folder} has mode {stat.S_IMODE(folder.stat().st_mode):04o}: {others} can change what is in it"
        return Check(name, "fail" if mode & stat.S_IWOTH else "warn", found, f"chmod 700 {shlex.quote(str(folder))}")
    free = shutil.disk_usage(folder).free
    remedy = f"make room, or set {setting} to another disk" if free < LOW_SPACE_BYTES else ""
    return Check(name, "warn" if remedy else "ok", f"{folder}, {free / 1e9:.1f} GB free", remedy)


async def _check_models(settings: Settings) -> list[Check]:
    """Check that each model endpoint has a key and answers."""
    if not settings.model_configured:
        return [Check("model", "ok", "none: reports are passages, word for word", settings.model_reason)]
    names = sorted({name for tier in Tier for name in settings.models.names_for(tier)})
    checks = []
    usable = settings.models.usable_endpoints(settings.model_keys())
    for endpoint in settings.models.used_endpoints():
        if endpoint not in usable:
            checks.append(Check("model", "warn", f"{endpoint}: no key", f"set {settings.key_variable(endpoint)}"))
            continue
        models = [
            model for at, model in (split_name(name, settings.models.endpoints) for name in names) if at == endpoint
        ]
        address = settings.models.base_url_of(endpoint)
        problem = await probe_address(address)
        server = settings.model_server(endpoint)
        facts = [problem or "reachable"]
        if server is not None and not problem:
            facts += await _facts_of_server(server, models)
        summary = f"{', '.join(models)} at {host_of(address)} ({'; '.join(facts)})"
        if endpoint == DEFAULT_ENDPOINT:
            setting = settings.address_variable
        else:
            setting = f"models.endpoints.{endpoint}"
        remedy = f"check {setting} and the network; without a model: research run --engine extractive"
        checks.append(Check("model", "fail", summary, remedy) if problem else Check("model", "ok", summary))
    return checks


async def _facts_of_server(server: ModelServer, models: Sequence[str]) -> list[str]:
    """Return which protocol a server speaks, and the windows of its models."""
    protocols = await server.protocols()
    names = {ChatApi.MESSAGES: "Messages API", ChatApi.CHAT: "chat completions"}
    facts = [" and ".join(names[protocol] for protocol in protocols) or "speaks no known protocol"]
    windows = {model: await server.window(model) for model in models}
    return facts + [window.describe(model) for model, window in windows.items() if window is not None]


async def _faulty_packages(settings: Settings) -> dict[str, str]:
    """Load each strategy of a package, and make its search providers; return what is wrong with it, by its name."""
    faulty = {}
    for name in packages_of_strategies():
        try:
            load_declared(declaration(name))
            check_roles(name)
            check_prompts(name)
        except PackageFault as error:
            faulty[f"strategy {name}"] = str(error)
    values = settings.search_values()
    async with web_client("doctor") as client:
        for name in packages_of_providers():
            provider = search_declaration(name)
            try:
                if provider.problem(values) is None:
                    provider.open(client, values)
                else:  # it is not set up, so that it cannot be made
                    provider.load()
            except NotConfigured as error:
                faulty[name] = str(error)
    return faulty


def _check_packages(faulty: Mapping[str, str]) -> Check | None:
    """Report the packages that declare strategies and search providers; None without any."""
    packages = sorted({*packages_of_strategies().values(), *packages_of_providers().values()})
    if not packages:
        return None
    if faulty:
        remedy = "mend or remove the package; workers or runs that need it fail until then"
        return Check("packages", "fail", printable("; ".join(faulty.values())), remedy)
    return Check("packages", "ok", printable(", ".join(package.removeprefix("the package ") for package in packages)))


async def _check_web_search(settings: Settings, faulty: Collection[str]) -> Check:
    """Check which search services are set up and reachable; those of `faulty` packages are not opened."""
    choices = search_choices(settings, settings.search.providers)
    named = [choice.name for choice in choices if choice.available and not choice.name.startswith(SERVER_PREFIX)]
    usable = [name for name in named if name not in faulty]
    async with open_search_providers(settings, usable) as providers:
        problems = dict(zip(usable, await asyncio.gather(*(probe(providers[name]) for name in usable)), strict=True))
    summary = ", ".join(f"{name} ({problem})" if problem else name for name, problem in problems.items())
    ends = [line for name in usable if (line := ending(name))]
    missing = "; ".join([*ends, *(f"{choice.name}: {choice.reason}" for choice in choices if not choice.available)])
    has_problem = not usable or any(problems.values()) or bool(ends) or bool(malformed(settings.search_values()))
    return Check("web search", "warn" if has_problem else "ok", summary or "none", missing)


async def _check_firecrawl(settings: Settings, firecrawl: FirecrawlSettings) -> Check:
    """Check that the service that opens pages in a browser has a key and can be reached, without a call."""
    problem = await probe_address(firecrawl.url)
    found = f"Firecrawl at {host_of(firecrawl.url)}, at most {firecrawl.pages_per_day:,} pages a day"
    if problem:
        return Check("browser", "warn", f"{found} ({problem})", "check web.firecrawl.url and the network")
    if settings.firecrawl_key is None:
        return Check("browser", "ok", f"{found}; no key is set", "set FIRECRAWL_API_KEY, unless the server is your own")
    return Check("browser", "ok", found)


async def _check_tracing(settings: Settings, endpoint: str) -> Check:
    """Check that the collector takes spans; runs do not need it."""
    problem = await probe_collector(settings)
    if problem:
        remedy = f"check tracing.endpoint, {TRACING_HEADER} and the network; runs go on without traces"
        return Check("tracing", "warn", f"to {host_of(endpoint)}: {problem}", remedy)
    clear = "" if is_confidential(endpoint) else "; not encrypted: it gets ids, models and hosts of runs, no texts"
    return Check("tracing", "ok", f"the collector at {host_of(endpoint)} answers{clear}")


async def _check_servers(context: CommandContext) -> list[Check]:
    """Connect to each server of documents once, without a query; say its tools, the mapping, and what is missing."""
    settings = context.settings
    checks = []
    async with open_servers(settings, await context.stores.children(), context.stores.content) as servers:
        for definition in settings.document_servers():
            server = servers.get(definition.name)
            try:
                tools = await server.tools() if server is not None else {}
                problem = definition.problem()
            except ProviderError as error:
                tools = {}
                problem = str(error).removeprefix(f"{definition.name}: ")
            found = f"tools: {', '.join(map(printable, tools)) or 'none'}; {definition.mapping(tools)}"
            missing = definition.missing_in(tools)
            if problem is not None:
                checks.append(Check(definition.name, "warn", problem, f"see [search.{definition.name}]"))
            elif missing:
                checks.append(Check(definition.name, "warn", found, missing))
            else:
                query = f'research doctor --search "words" --provider {definition.name}'
                checks.append(Check(definition.name, "ok", f"{found}; try {query}"))
    return checks


async def _check_shared_state(settings: Settings) -> Check:
    """Check that the store of paid calls, caches and limits accepts writes, and that what all runs need can be read."""
    kind = "Redis" if settings.redis_url is not None else "one SQLite file of this machine"
    try:
        async with open_shared_state(settings) as shared:
            try:
                await shared.store.swap(f"doctor/{secrets.token_hex(8)}", None, b"", 5.0)
                await read_places(shared.store, queue_limits(settings))
                await read_day(shared.store)
            except SharedStateUnavailable as error:
                waiting = plural(shared.spool.waiting(), "paid answer")
                found = f"{error.problem}; calls wait, with {waiting} of this machine to be stored"
                return Check("shared", "fail", found, error.remedy)
    except ProviderError as error:
        if settings.redis_url is not None:
            remedy = "check REDIS_URL"
        else:
            remedy = "check the folder of RESEARCH_HOME and its disk"
        return Check("shared", "fail", f"{kind}: {error}", remedy)
    return Check("shared", "ok", kind)


async def _check_encryption(settings: Settings) -> Check:
    """Encrypt a payload and read it back; say with which key, and which others are read."""
    keyring = settings.keyring
    others = ", ".join(key_id for key_id in keyring.ids if key_id != keyring.current)
    also = f"; also read: {others}" if others else ""
    if not keyring.current:
        return Check("encryption", "ok", f"off: texts of runs are stored as they are{also}")
    probe = secrets.token_hex(8)
    converter = data_converter(settings)
    payloads = await converter.encode([probe])
    readable = probe.encode() in payloads[0].SerializeToString()
    if readable or await converter.decode(payloads) != [probe]:
        return Check("encryption", "fail", "a payload is not read back as it was", "report it with the versions above")
    plain = "plain texts are refused" if keyring.required else "texts of before are read"
    return Check("encryption", "ok", f"AES-256-GCM with the key {keyring.current}{also}; {plain}")


async def _check_readers(context: CommandContext) -> Check:
    """Try what a document that has taken over its reader would try, and report what this machine does not refuse."""
    pool = await context.stores.children()
    try:
        with (
            tempfile.NamedTemporaryFile(dir=context.settings.home) as secret,
            socket.create_server(("127.0.0.1", 0)) as server,
        ):
            refused = await pool.call(PROBE, [secret.name], server.getsockname()[1], returns=REFUSED)
    except OSError as error:
        return Check("readers", "fail", str(error.strerror or error), "see its reason, and try again")
    except ProviderError as error:
        return Check("readers", "fail", f"no reader can be started: {error}", "see its reason, and try again")
    allowed = ", ".join(name for name, is_refused in refused.items() if not is_refused)
    if not allowed:
        return Check("readers", "ok", f"confined; refused: {', '.join(refused)}")
    remedy = "run on Linux 5.13 or newer with Landlock and seccomp, or in a container of its own: see SECURITY.md"
    return Check("readers", "warn", f"a document that takes over its reader can reach: {allowed}", remedy)


async def _check_defects(context: CommandContext) -> Check:
    """List the unforeseen errors of the newest runs that had any, with all their frames."""
    sessions = context.stores.sessions
    failed = [session for session in await sessions.list() if session.defects][:SHOWN_DEFECTS]
    lines: list[str] = []
    authors: set[str] = set()
    for session in failed:
        with suppress(ContentCorrupt, NewerSchema, KeyMissing):  # listed as unreadable by `research list`
            state = ResearchState.model_validate_json(await sessions.load(session.research_id) or "{}")
            for defect in state.work.defects:
                author = _author_of(defect)
                authors.add(author)
                lines += [f"{session.research_id}: {printable(defect.text)}{f' of {author}' if author else ''}"]
                lines += [f"    {printable(frame)}" for frame in defect.frames]
    if not lines:
        return Check("defects", "ok", "no stored run had an internal error")
    receivers = ["report those of the product" if len(authors) > 1 else "report them"] if "" in authors else []
    receivers += [f"report them to the authors of {printable(author)}" for author in sorted(authors - {""})]
    remedy = (
        f"{', '.join(receivers)} with these lines, which hold no text of a page; research resume ID continues a run"
    )
    return Check("defects", "warn", "\n".join(lines), remedy)


def _author_of(defect: Defect) -> str:
    """Return the package of others whose code failed, by the innermost frame that is its or ours; empty for ours."""
    packages = packages_by_module()
    for frame in reversed(defect.frames):
        parts = frame.partition(":")[0].removesuffix(".py").split("/")
        if parts[0] in OWN_PACKAGES:
            return ""
        for module in parts:
            if module in packages:
                return packages[module]
    return ""


async def _check_interrupted(context: CommandContext) -> Check:
    """List the runs that wait for their server: with none running, every unfinished one."""
    waiting = [session.research_id for session in await context.stores.sessions.list() if not session.closed]
    if not waiting:
        return Check("runs", "ok", "none is unfinished")
    more = f" and {len(waiting) - SHOWN_RUNS} more" if len(waiting) > SHOWN_RUNS else ""
    found = f"{', '.join(waiting[:SHOWN_RUNS])}{more}"
    return Check(
        "runs", "warn", f"interrupted: {printable(found)}", "research resume ID continues one; research list shows all"
    )


async def _check_workers(client: ResearchClient) -> Check:
    workers = {
        pool: await client.polled_by(queue, activities=queue != WORKFLOWS_QUEUE) for pool, queue in POOLS.items()
    }
    missing = ",".join(pool for pool, found in workers.items() if not found)
    remedy = ""
    if missing:
        remedy = f"research serve (this machine), or research worker --pool {missing} (a cluster)"
    marks = {identity.rpartition("/")[2].removesuffix(RUN_MARK) for found in workers.values() for identity in found}
    if len(marks) > 1 and not missing:
        remedy = "workers have different settings or keys, and a run may use any of them: configure them alike"
    found = ", ".join(f"{pool} {len(found)}" for pool, found in workers.items())
    return Check("workers", "warn" if remedy else "ok", found, remedy)


@dataclass
class PlaceCount:
    """Places of a pool's workers for work at once."""

    used: int = 0
    free: int = 0

    @property
    def total(self) -> int:
        """All places."""
        return self.used + self.free


async def _check_processes(client: ResearchClient) -> Check | None:
    """Report hosts, processes and places in use of the workers; None if the server does not list workers."""
    places: dict[str, PlaceCount] = {}
    processes: dict[str, set[str]] = {}
    request = ListWorkersRequest(namespace=client.temporal.namespace, page_size=1_000)
    try:
        listed = await client.temporal.workflow_service.list_workers(request, timeout=ANSWER_TIMEOUT)
    except RPCError as error:
        if error.status in {RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED}:
            return None
        raise
    pools = {queue: pool for pool, queue in POOLS.items()}
    for info in listed.workers_info:
        worker = info.worker_heartbeat
        pool = pools.get(worker.task_queue)
        if pool is None or worker.elapsed_since_last_heartbeat.ToTimedelta() > SILENT_HEARTBEATS * WORKER_HEARTBEAT:
            continue
        processes.setdefault(worker.host_info.host_name, set()).add(worker.host_info.process_id)
        slots = worker.activity_task_slots_info
        if pool == "workflows":
            slots = worker.workflow_task_slots_info
        count = places.setdefault(pool, PlaceCount())
        count.used += slots.current_used_slots
        count.free += slots.current_available_slots
    if not places:
        return None
    hosts = ", ".join(f"{len(ids)} on {printable(host)}" for host, ids in sorted(processes.items()))
    # Workflow tasks have places by demand, which the server counts as none.
    counted = [(pool, places[pool]) for pool in POOLS if pool in places and places[pool].total]
    used = ", ".join(f"{pool} {count.used} of {count.total}" for pool, count in counted)
    return Check("processes", "ok", f"{hosts}; places in use: {used}")


async def _check_runs(client: ResearchClient) -> Check:
    """Find runs and agents whose workflow task keeps failing: another worker version, or a defect."""
    stuck = []
    async for run in client.temporal.list_workflows(OPEN_RUNS, limit=MAX_OPEN_RUNS):
        description = await client.temporal.get_workflow_handle(run.id).describe()
        attempts = description.raw_description.pending_workflow_task.attempt
        if attempts >= STUCK_ATTEMPTS:
            stuck.append(f"{run.id} ({attempts} attempts)")
    if not stuck:
        return Check("runs", "ok", "none is stuck")
    remedy = (
        "start workers of the version that began the run; or go on from its last checkpoint, which pays nothing again: "
        "research resume ID --version new; if the workers' log names a missing encryption key, give it back to them"
    )
    return Check("runs", "fail", f"workflow task fails again and again: {printable(', '.join(stuck))}", remedy)


async def _check_refreshes(client: ResearchClient) -> Check | None:
    """Find schedules of refreshes whose last one failed or was refused, which nobody watches; None without any."""
    lines = []
    count = 0
    async for schedule in await client.temporal.list_schedules():
        research_id = schedule.id.removesuffix(refresh_schedule(""))
        if research_id == schedule.id or count == MAX_SCHEDULES:
            continue
        count += 1
        run = client.temporal.get_workflow_handle(research_id)
        try:
            if (await run.describe()).status is WorkflowExecutionStatus.FAILED:
                await run.result()
        except WorkflowFailureError as error:
            lines.append(f"the last refresh of {research_id}: {getattr(error.cause, 'message', None) or error.cause}")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # its history has been removed since
                raise
    if lines:
        remedy = "correct what is named, and research refresh ID; research refresh ID --every off ends a schedule"
        return Check("refreshes", "warn", printable("\n".join(lines[:SHOWN_RUNS])), remedy)
    return Check("refreshes", "ok", plural(count, "schedule")) if count else None


async def _check_versions(client: ResearchClient) -> list[Check]:
    """Find open runs that no worker can serve: those of versions of the workflow code without pollers.

    Such runs have no failing task, so nothing else shows them.
    """
    try:
        known = await list_versions(client.temporal)
        unserved = await unserved_runs(client.temporal, known, SHOWN_RUNS)
    except VersionsUnavailableError as error:
        return [Check("versions", "ok", str(error))]
    checks = []
    current = next((version for version in known if version.status == "current"), None)
    if current is not None and not current.workers:
        found = f"no worker polls as {current.build_id}, which gets new runs"
        remedy = "start workers of it; or, once others run, research workers promote VERSION"
        checks.append(Check("versions", "warn", found, remedy))
    for version in known:
        if version.build_id in unserved:
            ids = ", ".join(unserved[version.build_id])
            more = "" if version.open_runs <= SHOWN_RUNS else f" and {version.open_runs - SHOWN_RUNS} more"
            remedy = (
                "start the image of that version again; or go on from the last checkpoint, under the same id and "
                "without paying again: research resume ID --version new"
            )
            found = f"no worker serves version {version.build_id}: {printable(ids)}{more}"
            checks.append(Check("versions", "fail", found, remedy))
    if known and not checks:
        lines = [f"{version.build_id} {version.status}, {plural(version.open_runs, 'open run')}" for version in known]
        checks.append(Check("versions", "ok", "; ".join(lines)))
    return checks


# --- notices --------------------------------------------------------------------------------------------------------


def _check_notify_settings(settings: Settings) -> Check:
    """Report where notices go, with what they have, and if they are signed."""
    included = " and ".join(("id, state and commands", *settings.notify.include))
    host = host_of(settings.notify.url or "")
    if settings.notify_key is None:
        remedy = "set RESEARCH_NOTIFY_KEY, so that the receiver can tell them from forged ones"
        return Check("notices", "warn", f"to {host}, with {included}; not signed", remedy)
    return Check("notices", "ok", f"to {host}, with {included}; signed; try research doctor --notify")


async def _check_notices(client: ResearchClient) -> Check | None:
    """Report notices that were refused or given up since yesterday, and those that wait; None without any."""
    since = (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds")
    failed = f'WorkflowType="{RESEARCH_NOTICE}" AND ExecutionStatus="Failed" AND CloseTime > "{since}"'
    waiting = f'WorkflowType="{RESEARCH_NOTICE}" AND ExecutionStatus="Running"'
    undelivered = [run.id async for run in client.temporal.list_workflows(failed, limit=SHOWN_RUNS)]
    delayed = [run.id async for run in client.temporal.list_workflows(waiting, limit=SHOWN_RUNS)]
    lines = []
    for notice in undelivered:
        try:
            await client.temporal.get_workflow_handle(notice).result()
        except WorkflowFailureError as error:
            cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
            lines.append(f"not delivered of {notice.partition('/')[0]}: {getattr(cause, 'message', None) or cause}")
    lines += [f"waits for its receiver: that of {notice.partition('/')[0]}" for notice in delayed]
    if not lines:
        return None
    remedy = "research doctor --notify sends one now; what was refused is not sent again"
    return Check("notices", "warn", printable("; ".join(lines)), remedy)


async def _try_notice(settings: Settings) -> int:
    """Send a test notice once, and print what came back. Raises `CommandError` without an address."""
    if settings.notify.url is None:
        raise CommandError('no address is named: set RESEARCH_NOTIFY_URL, or url = "…" in [notify] of research.toml')
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    request = NoticeRequest(
        research_id="doctor",
        kind=NoticeKind.TEST,
        status=RunStatus.CREATED,
        occurred_at=now,
        commands=["research list"],
    )
    began = time.monotonic()
    async with open_webhook(settings) as webhook:
        assert webhook is not None
        try:
            status = await webhook.send(request.notice_id, json.dumps(notice_body(request)).encode())
        except ProviderError as error:
            print_result(f"not delivered to {host_of(settings.notify.url)}: {error}")
            print_hint(
                f"{'it would be tried again' if isinstance(error, Retryable) else 'it would not be tried again'}"
            )
            return ExitCode.FAILED
    signed = "signed" if settings.notify_key is not None else "not signed"
    taken = f"{host_of(settings.notify.url)} answered {status} in {time.monotonic() - began:.1f} s"
    print_result(f"delivered: {taken}; {signed}, id {request.notice_id}")
    return ExitCode.COMPLETED
