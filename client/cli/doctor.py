"""`doctor`: what is configured, reachable, missing or stuck; each line with its remedy."""

import asyncio
import os
import platform
import pwd
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from temporalio.client import RPCError, WorkflowExecutionStatus

from activities.strategy_needs import unmet_need
from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import ExitCode, reason_of
from client.cli.corpus import registered_folders
from client.handle import ResearchClient
from contracts.names import DEEP_RESEARCH, POOLS, RESEARCH_AGENT, WORKFLOWS_QUEUE
from contracts.resolved import ProviderChoice
from contracts.strategies import list_selectable
from contracts.texts import plural
from contracts.vocabulary import EngineKind, Tier
from providers.errors import NotConfigured, ProviderError, SharedStateUnavailable
from providers.models.endpoints import DEFAULT_ENDPOINT, split_name
from providers.search.availability import probe, probe_address
from providers.shared.circuit_breaker import CircuitBreaker, CircuitState
from providers.storage.sessions import SAFE_ID
from workers.dev_server import ServerError
from workers.private_files import repair_home
from workers.resolution_inputs import configuration_of, search_choices
from workers.search_pool import CIRCUIT_OPEN, service_of
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of, key_variable
from workers.shared_state import open_shared_state as shared_state_of

LOW_SPACE_BYTES = 1_000_000_000
NO_SPACE_BYTES = 50_000_000
STUCK_ATTEMPTS = 3
LOOKED_AT = 50
DISTRIBUTION = "durable-research"
OPEN_RUNS = f'WorkflowType IN ("{DEEP_RESEARCH}", "{RESEARCH_AGENT}") AND ExecutionStatus="Running"'
SHARED_KEY = "doctor"
SHARED_SECONDS = 5.0
KEEPS_ALL = "noeviction"
REDIS_TROUBLES = {
    "full": (
        "Redis is full and takes no changes",
        "research delete runs that are no longer needed, or raise maxmemory",
    ),
    "read_only": ("Redis is a replica and takes no changes", "let REDIS_URL name the primary server"),
    "too_few_replicas": (
        "Redis takes no changes: too few replicas are connected",
        "bring its replicas back, or lower min-replicas-to-write",
    ),
    "no_disk": ("Redis takes no changes: it cannot write its file", "make room on the server's disk; see its log"),
    "forbidden": (
        "Redis forbids its user what workers need",
        "allow the user of REDIS_URL: ~research:* +eval +get +set +del +time +scan +unlink",
    ),
    "password": ("Redis refuses the user or the password", "check user and password in REDIS_URL"),
}
"""By the kind of the error: what was found, and what to do."""


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, what to do."""

    name: str
    grade: Grade
    found: str
    remedy: str = ""


async def doctor(*, as_json: bool) -> int:
    """Look at everything; exit code 1 if anything fails."""
    checks: list[Check] = []
    async with open_context() as context:
        async for check in _checks(context):
            checks.append(check)
            if not as_json:
                output.say(_line(check))
    if as_json:
        output.document([{**check.__dict__, "grade": check.grade.value} for check in checks])
    return ExitCode.INTERNAL if any(check.grade is Grade.FAIL for check in checks) else ExitCode.COMPLETED


def _line(check: Check) -> str:
    remedy = f"\n{'':<18}→ {check.remedy}" if check.remedy else ""
    return f"{check.grade.value:<5}{check.name:<12} {check.found}{remedy}"


async def _checks(context: CommandContext) -> AsyncIterator[Check]:
    yield _program()
    yield await asyncio.to_thread(_home, context.settings.home)
    privacy = await asyncio.to_thread(_privacy, context.settings.home, os.geteuid())
    if privacy is not None:
        yield privacy
    yield _configuration(context)
    async for check in models(context.settings):
        yield check
    async for check in _corpora(context):
        yield check
    yield await web_search(context.settings)
    yield await shared_state(context.settings)
    try:
        client = await context.client_if_running()
    except ServerError as error:
        yield Check("server", Grade.FAIL, str(error), "check TEMPORAL_ADDRESS and the network")
        return
    if client is None:
        yield Check("server", Grade.OK, "not running; `research run` and `research serve` start it")
        return
    where = context.ui_url or "a cluster"
    yield Check("server", Grade.OK, f"running ({where})")
    try:
        yield await _pollers(client)
        yield await _stuck(client)
    except RPCError as error:
        yield Check("server", Grade.FAIL, f"does not answer: {error.status.name.lower()}", "see its log")


def _program() -> Check:
    try:
        product = version(DISTRIBUTION)
    except PackageNotFoundError:
        product = "not installed"
    found = f"{product} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Check("program", Grade.OK, found)


def _home(home: Path) -> Check:
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"x")
        free = shutil.disk_usage(home).free
    except OSError as error:
        return Check(
            "home", Grade.FAIL, f"{home} cannot be written: {reason_of(error)}", "set RESEARCH_HOME to another folder"
        )
    found = f"{home}, {free / 1e9:.1f} GB free"
    if free < NO_SPACE_BYTES:
        return Check("home", Grade.FAIL, found, "make room, or set RESEARCH_HOME to another disk")
    return Check("home", Grade.WARN if free < LOW_SPACE_BYTES else Grade.OK, found)


def _privacy(home: Path, user: int) -> Check | None:
    """Close an old home to other users of the machine; None if there is no home."""
    try:
        done = repair_home(home, user)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Check("privacy", Grade.WARN, f"{home} cannot be looked through: {reason_of(error)}", f"ls -la {home}")
    if done.owner != user:
        found = f"{home} belongs to {_name_of_user(done.owner)}; its permissions were left unchanged"
        return Check("privacy", Grade.WARN, found, "set RESEARCH_HOME to a folder of your own")
    told = [f"{done.closed:,} of its files and folders were open to other users: closed"] if done.closed else []
    if done.foreign:
        told.append(f"{done.foreign:,} belong to another user and were left unchanged")
    if done.shared:
        told.append(f"{home} also holds other things, so the folder itself was left unchanged")
    remedy = f"give {home} to one owner, or set RESEARCH_HOME to a folder of its own" if done.foreign else ""
    return Check("privacy", Grade.WARN if done.foreign else Grade.OK, "; ".join(told) or "for its owner alone", remedy)


def _name_of_user(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _configuration(context: CommandContext) -> Check:
    notices = context.settings.notices()
    grade = Grade.WARN if notices else Grade.OK
    return Check("settings", grade, f"digest {context.settings.digest()}", "; ".join(notices))


async def _corpora(context: CommandContext) -> AsyncIterator[Check]:
    folders = await registered_folders(context)
    if not folders:
        yield Check("corpora", Grade.OK, "none yet", 'research run "…" --corpus ./folder')
    for name, folder in folders.items():
        if not folder.is_dir():
            forget = (
                "take it out of research.toml" if name in context.settings.corpus else f"research corpus remove {name}"
            )
            remedy = f"bring the folder back, or: {forget}"
            yield Check("corpus", Grade.FAIL, f"{name}: {folder} is gone", remedy)
            continue
        if not os.access(folder, os.R_OK | os.X_OK):
            yield Check("corpus", Grade.FAIL, f"{name}: {folder} cannot be read", "check its permissions")
            continue
        try:
            snapshot = await (await context.stores.corpora()).describe(name)
        except ProviderError as error:
            yield Check("corpus", Grade.WARN, f"{name}: {error}", f"research corpus add {folder} --name {name}")
            continue
        if not snapshot.indexed_at:
            yield Check("corpus", Grade.OK, f"{name}: {folder}, not indexed yet; a run or `research serve` does it")
            continue
        skipped = f", {snapshot.skipped} skipped" if snapshot.skipped else ""
        grade = Grade.OK if snapshot.files else Grade.WARN
        remedy = f"research corpus status {name}" if snapshot.skipped or not snapshot.files else ""
        yield Check("corpus", grade, f"{name}: {plural(snapshot.files, 'document')}{skipped} in {folder}", remedy)


async def _pollers(client: ResearchClient) -> Check:
    counts = {
        pool: len(await client.polled_by(queue, activities=queue != WORKFLOWS_QUEUE)) for pool, queue in POOLS.items()
    }
    found = ", ".join(f"{pool} {count}" for pool, count in counts.items())
    missing = [pool for pool, count in counts.items() if not count]
    if not missing:
        return Check("workers", Grade.OK, found)
    if len(missing) == len(counts):
        return Check(
            "workers", Grade.WARN, "none are polling", "research serve (this machine), research worker (cluster)"
        )
    return Check("workers", Grade.FAIL, found, f"research worker --pool {','.join(missing)}")


async def _stuck(client: ResearchClient) -> Check:
    """Runs and agents whose workflow task failed several times in a row: a worker of another version, or a defect."""
    stuck, running = [], 0
    async for run in client.temporal.list_workflows(OPEN_RUNS, limit=LOOKED_AT):
        # Only the id of an agent has a part behind that of its run.
        name = run.id if run.workflow_type == DEEP_RESEARCH else run.id.partition("/")[0]
        if run.status is not WorkflowExecutionStatus.RUNNING or not SAFE_ID.fullmatch(name):
            continue
        running += run.workflow_type == DEEP_RESEARCH
        description = await client.temporal.get_workflow_handle(run.id).describe()
        task = description.raw_description.pending_workflow_task
        if task.attempt >= STUCK_ATTEMPTS:
            stuck.append(f"{run.id} ({task.attempt} attempts)")
    if stuck:
        remedy = (
            "start workers of the version that began the run; or end it and go on from its last checkpoint: "
            "research cancel ID --force, then research resume ID"
        )
        return Check("runs", Grade.FAIL, f"workflow task keeps failing: {', '.join(stuck)}", remedy)
    return Check("runs", Grade.OK, f"{running} running, none stuck")


async def models(settings: Settings) -> AsyncIterator[Check]:
    """Each endpoint that a configured model is at: whether it answers, and whether workers leave it alone for now."""
    if not settings.model_configured:
        yield Check("model", Grade.OK, "none: reports are extractive evidence briefs", settings.model_reason)
        return
    usable = settings.models.usable_endpoints(settings.model_keys())
    names = sorted({name for tier in Tier for name in settings.models.names_for(tier)})
    async with shared_state_of(_with_usable_redis(settings)) as shared:
        circuits = CircuitBreaker(shared.store)
        for endpoint in usable:
            there = [
                model for name in names for at, model in [split_name(name, settings.models.endpoints)] if at == endpoint
            ]
            address = settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}"
            found = f"{', '.join(there)} at {host_of(address)}"
            why = await probe_address(address)
            if why is not None:
                setting = "ANTHROPIC_BASE_URL" if endpoint == DEFAULT_ENDPOINT else f"models.endpoints.{endpoint}"
                remedy = f"check {setting} and the network; meanwhile: research run --engine extractive"
                yield Check("model", Grade.WARN if len(usable) > 1 else Grade.FAIL, f"{found}: {why}", remedy)
            elif await circuits.state(f"model/{endpoint}") is not CircuitState.CLOSED:
                remedy = "calls go to the next model until then; see the endpoint's own status"
                yield Check("model", Grade.WARN, f"{found}: failed again and again, left alone for a while", remedy)
            else:
                yield Check("model", Grade.OK, f"{found} (reachable)")
    for endpoint in settings.models.used_endpoints():
        if endpoint not in usable:
            yield Check("model", Grade.WARN, f"{endpoint}: no key", f"set {key_variable(endpoint)}")
    yield tool_calls(settings)


def tool_calls(settings: Settings) -> Check:
    """Which strategies call tools, and whether the configured models take them, as far as is known without a call."""
    configuration = configuration_of(settings)
    asked = {tier.value: settings.models.names_for(tier) for tier in Tier}
    calling = [strategy for strategy in list_selectable() if strategy.needs.tools]
    lacking = [
        lack
        for strategy in calling
        if (lack := unmet_need(strategy, EngineKind.MODEL, asked, configuration, web=True)) is not None
    ]
    if lacking:
        known = "where it does take them: models.endpoints.NAME.tools"
        return Check("tools", Grade.WARN, "; ".join(lacking), known)
    names = ", ".join(strategy.name for strategy in calling)
    return Check("tools", Grade.OK, f"can be called, as far as is known, so {names} can work with these models")


async def web_search(settings: Settings) -> Check:
    """Which services of the web a run can ask, whether they answer or are paused, and what unavailable ones lack."""
    choices = search_choices(settings)
    usable = [choice for choice in choices if choice.available]
    missing = [f"{choice.name}: {choice.reason}" for choice in choices if not choice.available]
    left_alone = dict.fromkeys(await _left_alone(settings, usable), CIRCUIT_OPEN)
    troubles = left_alone | {name: why async for name, why in _unreachable(settings, usable)}
    found = ", ".join(
        f"{choice.name} ({troubles[choice.name]})" if choice.name in troubles else choice.name for choice in usable
    )
    silent = len(troubles) == len(usable)
    remedy = "; ".join(missing)
    if usable and silent:
        remedy = "without the web: research run … --corpus ./folder" + (f"; {remedy}" if remedy else "")
    return Check(
        "web search",
        Grade.WARN if troubles or not usable or settings.web_search.broken() else Grade.OK,
        found or "none",
        remedy,
    )


async def shared_state(settings: Settings) -> Check:
    """Where paid calls, caches and limits are kept, and whether it takes changes."""
    if settings.redis_url is None:
        return Check("shared", Grade.OK, "one SQLite file of this machine; for workers on several set REDIS_URL")
    from providers.shared.stores.redis_store import RedisSharedStore  # noqa: PLC0415  only with Redis

    try:
        store = RedisSharedStore(settings.redis_url.get_secret_value())
    except NotConfigured as error:
        return Check("shared", Grade.FAIL, "Redis", str(error))
    policy = None
    try:
        # A full server, and a replica, can be read. What is written here goes by itself.
        await store.swap(f"{SHARED_KEY}/{secrets.token_hex(8)}", None, b"", SHARED_SECONDS)
        await store.get(SHARED_KEY)
        policy = await store.eviction_policy()
    except SharedStateUnavailable as error:
        found, remedy = REDIS_TROUBLES.get(error.kind, (str(error), "check REDIS_URL and the server"))
        return Check("shared", Grade.FAIL, found, f"{remedy}; until then each host works with its local store")
    finally:
        await store.close()
    if policy not in {None, KEEPS_ALL}:
        remedy = f"paid answers could be lost: set maxmemory-policy to {KEEPS_ALL}"
        return Check("shared", Grade.WARN, f"Redis (evicts keys when it is full: {policy})", remedy)
    return Check("shared", Grade.OK, "Redis (takes changes)")


def _with_usable_redis(settings: Settings) -> Settings:
    """The settings without an address of Redis that is none: that has a line of its own and hides no other state."""
    from providers.shared.stores.redis_store import RedisSharedStore  # noqa: PLC0415  only with Redis

    try:
        if settings.redis_url is not None:
            RedisSharedStore(settings.redis_url.get_secret_value())
    except NotConfigured:
        return settings.model_copy(update={"redis_url": None})
    return settings


async def _left_alone(settings: Settings, usable: list[ProviderChoice]) -> list[str]:
    try:
        async with shared_state_of(_with_usable_redis(settings)) as shared:
            circuits = CircuitBreaker(shared.store)
            states = {choice.name: await circuits.state(service_of(choice.name)) for choice in usable}
    except ProviderError:  # where that is kept has a line of its own
        return []
    return [name for name, state in states.items() if state is not CircuitState.CLOSED]


async def _unreachable(settings: Settings, usable: list[ProviderChoice]) -> AsyncIterator[tuple[str, str]]:
    names = [choice.name for choice in usable]
    model = search_model(settings)
    async with open_search_providers(settings.web_search, names, contact=settings.web.contact, model=model) as opened:
        reasons = await asyncio.gather(*(probe(opened[name]) for name in names))
    for name, why in zip(names, reasons, strict=True):
        if why is not None:
            yield name, why
