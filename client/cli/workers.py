"""`workers versions|promote|ramp|drain`: versions of the workflow code in a cluster, for upgrades with open runs."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Final

from temporalio.client import Client
from temporalio.service import RPCError
from typer import Argument, Option

from client.cli.context import CommandContext
from client.cli.options import AsJson, Commands
from client.cli.output import CommandError, ExitCode, print_hint, print_json, print_progress, print_result, quote
from client.view.words import pasteable
from contracts.texts import plural
from workers.versions import Version, ask_to_move, list_versions, own_build_id, set_current, set_ramp

LOOK_SECONDS: Final = 2.0
ASK_SECONDS: Final = 30.0
"""Time after which runs are asked again to move: a run is asked in vain while it cannot save its state."""

workers = Commands(
    no_args_is_help=True,
    help="Versions of the workflow code in a cluster. Each run keeps to the version that began it: an upgrade starts "
    "workers of the new version beside the old ones, promotes it, and stops the old ones once they are drained.",
)
commands = Commands()
commands.add_typer(workers, name="workers")
BuildId = Annotated[str | None, Argument(metavar="VERSION", help="as `research workers versions` lists it")]


@workers.command("versions")
async def versions(context: CommandContext, *, as_json: AsJson = False) -> None:
    """List the versions that have workers or open runs, and the one that gets new runs.

    research workers versions
    research workers versions --json
    """
    async with _cluster(context) as client:
        known = await list_versions(client)
        if as_json:
            print_json({"own": own_build_id(), "versions": [asdict(version) for version in known]})
            return
        for version in known:
            print_result(pasteable(_line(version)))
        if not known:
            print_hint("there is no version yet: workers of a cluster make theirs current when they start")
        for version in known:
            if version.open_runs and not version.workers:
                print_hint(
                    f"no worker serves {version.build_id}: start its image again, or "
                    "research resume ID --version new for each of its runs (see research doctor)"
                )


@workers.command("promote")
async def promote(context: CommandContext, build_id: BuildId = None, *, as_json: AsJson = False) -> None:
    """Give new runs to a version, by default that of this program, and ask runs that wait for a person to move there.

    Runs of other versions finish there. Promote the old version again to roll back.

    research workers promote
    research workers promote 0.1.0-3f9a21c0b7d4
    """
    async with _cluster(context) as client:
        chosen = await _served(client, build_id or own_build_id())
        await set_current(client, chosen)
        others = [version for version in await list_versions(client) if version.build_id != chosen]
        asked = await ask_to_move(client, [version.build_id for version in others])
        if as_json:
            print_json({"current": chosen, "asked_to_move": asked})
            return
        print_result(f"{chosen} is current: new runs go there")
        if asked:
            print_hint(f"{plural(asked, 'open run')} of other versions may move at their next pause")
            print_hint("before you stop the old workers: research workers drain")


@workers.command("ramp")
async def ramp(
    context: CommandContext,
    build_id: BuildId,
    percent: Annotated[float, Argument(min=0, max=100, metavar="PERCENT", help="share of new runs; 0 ends the ramp")],
    *,
    as_json: AsJson = False,
) -> None:
    """Give a share of new runs to a version, to try it before it is promoted.

    research workers ramp 0.1.0-3f9a21c0b7d4 10
    research workers ramp 0.1.0-3f9a21c0b7d4 0
    """
    async with _cluster(context) as client:
        chosen = await _served(client, str(build_id)) if percent else str(build_id)
        await set_ramp(client, chosen, percent)
    if as_json:
        print_json({"ramping": chosen if percent else None, "percent": percent})
    elif percent:
        print_result(f"{chosen} gets {percent:g} % of new runs")
        print_hint(f"research workers promote {chosen}      or end it: research workers ramp {chosen} 0")
    else:
        print_result("the current version gets all new runs")


@workers.command("drain")
async def drain(
    context: CommandContext,
    build_id: BuildId = None,
    *,
    wait: Annotated[float, Option(metavar="MINUTES", min=0, help="wait this long for the last run to end")] = 0.0,
    as_json: AsJson = False,
) -> int:
    """Ask the open runs of old versions to move to the current one at their next pause; by default of all old versions.

    Exit code 0 once no open run needs those versions, so that their workers can be stopped; else 3.

    research workers drain
    research workers drain 0.1.0-3f9a21c0b7d4 --wait 60 && kubectl delete deployment workflows-old
    """
    end = time.monotonic() + wait * 60
    asked_at = -ASK_SECONDS
    async with _cluster(context) as client:
        while True:
            known = await list_versions(client)
            if any(version.build_id == build_id and version.status in ("current", "ramping") for version in known):
                raise CommandError(f"new runs go to {build_id}: promote another version first")
            old = [version for version in known if version.status not in ("current", "ramping")]
            if build_id is not None:
                old = [version for version in old if version.build_id == build_id]
            left = sum(version.open_runs for version in old)
            if left and time.monotonic() - asked_at >= ASK_SECONDS:
                asked_at = time.monotonic()
                await ask_to_move(client, [version.build_id for version in old])
                if not as_json:
                    print_progress(f"{plural(left, 'open run')} of old versions")
            if not left or time.monotonic() >= end:
                break
            await asyncio.sleep(LOOK_SECONDS)
    if as_json:
        print_json({"open_runs": left, "versions": [asdict(version) for version in old]})
    elif not left:
        print_result("no open run needs an old version: its workers can be stopped")
    else:
        for version in old:
            print_result(pasteable(_line(version)))
        print_hint("they finish on their version, or move at their next pause: research workers drain --wait 60")
    return ExitCode.PARTIAL if left else ExitCode.COMPLETED


@asynccontextmanager
async def _cluster(context: CommandContext) -> AsyncIterator[Client]:
    """Connect, and turn a refusal of the server into a message."""
    client = await context.running_client()
    try:
        yield client.temporal
    except RPCError as error:
        raise CommandError(f"the server refused: {error.message}", ExitCode.FAILED) from None


async def _served(client: Client, build_id: str) -> str:
    """Return a version that has workers. Raises `CommandError` for another one."""
    known = {version.build_id: version for version in await list_versions(client)}
    if build_id not in known:
        remedy = "no version has any: start its workers first"
        if known:
            remedy = f"there are: {', '.join(known)}"
        raise CommandError(f"there is no version {quote(build_id)} with workers or open runs; {remedy}")
    if not known[build_id].workers:
        raise CommandError(f"no worker polls as {build_id}: start workers of it first, else new runs would wait")
    return build_id


def _line(version: Version) -> str:
    status = f"{version.status} {version.ramp_percent:g} %" if version.status == "ramping" else version.status
    counts = f"{plural(version.workers, 'worker'):<12} {plural(version.open_runs, 'open run')}"
    return f"{version.build_id:<28} {status:<14} {counts}"
