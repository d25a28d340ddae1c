"""`refresh` and `diff`: read the sources of a finished run again, and compare reports claim by claim."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from client.cli import options as option
from client.cli.context import CommandContext, RunInfo
from client.cli.corpus import read_start
from client.cli.errors import CommandError, ExitCode
from client.cli.options import AsJson, Commands, RunOptions
from client.cli.output import print_hint, print_json, print_result
from client.cli.preflight import preflight
from client.cli.request import RequestedRun, build_request, merge, parse_assignments
from client.cli.run import NOT_OF_RESUME, RunCommand, request_again
from client.view.words import change_lines, printable
from contracts.names import WORKFLOWS_QUEUE
from contracts.report import JSON_FILE, LARGEST_REPORT, compare_documents
from contracts.report_changes import ReportChanges
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.strategies import declaration
from providers.errors import InputUnprocessable
from providers.isolation.pool import SubprocessPool

INTERVAL: Final = re.compile(r"(\d{1,4})([mhd])")
UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SHORTEST: Final = timedelta(minutes=10)
LONGEST: Final = timedelta(days=366)
NEVER: Final = "off"
COMPARE: Final = f"{compare_documents.__module__}:{compare_documents.__name__}"
COMPARE_SECONDS: Final = 60.0
MEMORY_BYTES: Final = 1_000_000_000
"""Of the process that compares reports, which anybody may have written."""

commands = Commands()


# --- refresh -------------------------------------------------------------------------------------------------------


@commands.command("refresh", without=NOT_OF_RESUME)
async def refresh(
    context: CommandContext,
    options: RunOptions,
    given: option.RunId = "last",
    *,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="1d|12h|30m|off", help="have the server refresh it so often, or end that"),
    ] = None,
) -> int:
    """Read every source of a finished run of the strategy living again, and update its report where a text differs.

    The run goes on under its own id. Of a source whose text is the same nothing is analyzed, and nothing is paid.
    report.json names in `changes` what is new, gone, worded anew or judged otherwise, and sources that changed or are
    gone.

    research refresh last
    research refresh 7k3f --every 1d       from now on once a day, by the running server and its workers
    research refresh 7k3f --every off
    """
    interval = None if every is None else read_interval(every)
    known = await context.find(given)
    if every is not None and interval is None:
        return await _unschedule(context, known)
    resolved = require_refreshable(known, scheduled=interval is not None)
    again = request_again(resolved, options) | {"refresh": True, "continue_from": known.research_id}
    wanted = RequestedRun(build_request(merge(again, parse_assignments(options.assignments))))
    if interval is not None:
        return await _schedule(context, known, wanted.request, interval, as_json=options.as_json)
    others = await preflight(context, wanted, options, known)
    return await RunCommand(context, wanted, known.research_id, options, others=others).execute()


def read_interval(text: str) -> timedelta | None:
    """Read a time between two refreshes; None for `off`. Raises `CommandError`."""
    if text == NEVER:
        return None
    found = INTERVAL.fullmatch(text)
    interval = int(found[1]) * UNITS[found[2]] if found else timedelta()
    if not SHORTEST <= interval <= LONGEST:
        raise CommandError("--every takes a time from 10m to 366d, as 30m, 12h or 1d, or off")
    return interval


def require_refreshable(run: RunInfo, *, scheduled: bool) -> ResolvedResearch:
    """Return the resolution of a run that can be refreshed: now, or `scheduled` from time to time.

    Raises `CommandError` for any other run.
    """
    if run.running and not scheduled:
        raise CommandError(f"the run {run.research_id} is going on: see `research watch {run.research_id}`")
    if run.resolved is None or run.state is None:
        raise CommandError(f"nothing is stored of the run {run.research_id} that could be refreshed: start a new run")
    if not declaration(run.resolved.strategy).live_report:
        raise CommandError(
            f"the report of {run.research_id} does not change by updates: only runs of the strategy living can be "
            "refreshed; ask again instead"
        )
    goes_on = run.state.refresh is not None and run.state.ending is None
    if not run.running and not goes_on and (run.state.result is None or run.state.result.files is None):
        raise CommandError(f"the run {run.research_id} has no finished report yet: `research resume {run.research_id}`")
    return run.resolved


async def _schedule(
    context: CommandContext, run: RunInfo, request: ResearchRequest, interval: timedelta, *, as_json: bool
) -> int:
    """Have the server refresh a run from now on. Raises `CommandError`, `ClientError`."""
    client = await context.running_client()
    await client.schedule_refresh(request, run.research_id, interval)
    if as_json:
        print_json({"research_id": run.research_id, "every_seconds": round(interval.total_seconds())})
        return ExitCode.COMPLETED
    print_result(f"{run.research_id} is refreshed every {round(interval.total_seconds() / 60)} minutes")
    print_hint(f"end that: research refresh {run.research_id} --every off")
    if not await client.polled_by(WORKFLOWS_QUEUE):
        print_hint("no worker is running, so no refresh is made: start one with `research serve`")
    return ExitCode.COMPLETED


async def _unschedule(context: CommandContext, run: RunInfo) -> int:
    """Have the server refresh a run no more. Raises `CommandError`, `ClientError`."""
    client = await context.running_client()
    if not await client.unschedule_refresh(run.research_id):
        raise CommandError(f"the server does not refresh {run.research_id} by itself: there is nothing to end")
    print_result(f"{run.research_id} is refreshed by hand alone")
    return ExitCode.COMPLETED


# --- diff ----------------------------------------------------------------------------------------------------------


@commands.command("diff")
async def diff(
    context: CommandContext,
    earlier: Annotated[str, typer.Argument(metavar="ID|FILE", help="the earlier report: a run, or a report.json")],
    later: Annotated[str, typer.Argument(metavar="ID|FILE", help="the later report")],
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two reports claim by claim, without a server: what is new, gone, worded anew or judged otherwise.

    Sources whose text changed or that the later report does not have are named with the passages that were cited.

    research diff reports/2026-11-01-heat-pumps/report.json last
    research diff old/report.json new/report.json --json
    """
    async with SubprocessPool(1, cpu_seconds=COMPARE_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        documents = [await _load(context, target) for target in (earlier, later)]
        try:
            found = await pool.call(COMPARE, *documents)
        except InputUnprocessable as error:
            raise CommandError(f"these reports cannot be compared: {error}") from None
    if not isinstance(found, ReportChanges):
        target = (earlier, later)[found]
        raise CommandError(f"{target} is not a report.json: name one that `research run` has written")
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for line in change_lines(found):
        print_result(printable(line))


async def _load(context: CommandContext, target: str) -> bytes:
    """Load the `report.json` of a run, a folder or a file. Raises `CommandError`."""
    if "/" in target or target.endswith(".json"):
        return _read_file(Path(target))
    run = await context.find(target)
    result = await run.result()
    documents = {} if result is None else await context.report_documents(result)
    if "json" not in documents:
        raise CommandError(f"{run.research_id} has no finished report: see `research status {run.research_id}`")
    return documents["json"]


def _read_file(path: Path) -> bytes:
    """Read a `report.json`, or that of a folder. Raises `CommandError`."""
    data = read_start(path / JSON_FILE if path.is_dir() else path, LARGEST_REPORT + 1, "the report")
    if len(data) > LARGEST_REPORT:
        raise CommandError(f"{path} is larger than {LARGEST_REPORT:,} bytes: name a report of `research run`")
    return data
