"""`doctor`: what is configured, reachable, missing or stuck; each line with its remedy."""

import asyncio
import os
import platform
import pwd
import shutil
import tempfile
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from temporalio.client import RPCError, WorkflowExecutionStatus

from client.cli import doctor_outside, output
from client.cli.context import CommandContext, open_desk
from client.cli.corpora import registered_folders
from client.cli.doctor_checks import Check, Grade
from client.cli.exit_codes import ExitCode
from client.handle import ResearchClient
from contracts.names import DEEP_RESEARCH, POOLS, WORKFLOWS_QUEUE
from providers.errors import ProviderError
from providers.storage.sessions import SAFE_ID
from workers.dev_server.files import ServerError
from workers.private_files import repair_home

LOW_SPACE_BYTES = 1_000_000_000
NO_SPACE_BYTES = 50_000_000
STUCK_ATTEMPTS = 3
LOOKED_AT = 50
DISTRIBUTION = "durable-research"
OPEN_RUNS = f'WorkflowType="{DEEP_RESEARCH}" AND ExecutionStatus="Running"'


async def doctor(*, as_json: bool) -> int:
    """Look at everything; exit code 1 if anything fails."""
    checks: list[Check] = []
    async with open_desk() as context:
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
    async for check in doctor_outside.models(context.settings):
        yield check
    async for check in _corpora(context):
        yield check
    yield await doctor_outside.web_search(context.settings)
    yield await doctor_outside.shared_state(context.settings)
    try:
        client = await context.client_if_running()
    except ServerError as error:
        yield Check("engine", Grade.FAIL, str(error), "check TEMPORAL_ADDRESS and the network")
        return
    if client is None:
        yield Check("engine", Grade.OK, "not running; `research run` and `research serve` start it")
        return
    where = context.ui_url or "a cluster"
    yield Check("engine", Grade.OK, f"running ({where})")
    try:
        yield await _pollers(client)
        yield await _stuck(client)
    except RPCError as error:
        yield Check("engine", Grade.FAIL, f"does not answer: {error.status.name.lower()}", "see its log")


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
        reason = (error.strerror or type(error).__name__).lower()
        return Check("home", Grade.FAIL, f"{home} cannot be written: {reason}", "set RESEARCH_HOME to another folder")
    found = f"{home}, {free / 1e9:.1f} GB free"
    if free < NO_SPACE_BYTES:
        return Check("home", Grade.FAIL, found, "make room, or set RESEARCH_HOME to another disk")
    return Check("home", Grade.WARN if free < LOW_SPACE_BYTES else Grade.OK, found)


def _privacy(home: Path, user: int) -> Check | None:
    """Close an old home to other users of the machine; null if there is no home."""
    try:
        done = repair_home(home, user)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        return Check("privacy", Grade.WARN, f"{home} cannot be looked through: {reason}", f"ls -la {home}")
    if done.owner != user:
        found = f"{home} belongs to {_name_of_user(done.owner)}; its rights were left as they are"
        return Check("privacy", Grade.WARN, found, "set RESEARCH_HOME to a folder of your own")
    told = [f"{done.closed:,} of its files and folders were open to other users: closed"] if done.closed else []
    if done.foreign:
        told.append(f"{done.foreign:,} belong to somebody else and were left as they are")
    if done.shared:
        told.append(f"{home} also holds other things, so the folder itself was left as it is")
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
        yield Check("corpus", grade, f"{name}: {snapshot.files} documents{skipped} in {folder}", remedy)


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
    """Runs whose workflow task failed several times in a row: a worker of another version, or a defect."""
    stuck, running = [], 0
    async for run in client.temporal.list_workflows(OPEN_RUNS, limit=LOOKED_AT):
        if run.status is not WorkflowExecutionStatus.RUNNING or not SAFE_ID.fullmatch(run.id):
            continue
        running += 1
        description = await client.temporal.get_workflow_handle(run.id).describe()
        task = description.raw_description.pending_workflow_task
        if task.attempt >= STUCK_ATTEMPTS:
            stuck.append(f"{run.id} ({task.attempt} attempts)")
    if stuck:
        remedy = "start workers of the version that began the run, or: research cancel ID, then research resume ID"
        return Check("runs", Grade.FAIL, f"workflow task keeps failing: {', '.join(stuck)}", remedy)
    return Check("runs", Grade.OK, f"{running} running, none stuck")
