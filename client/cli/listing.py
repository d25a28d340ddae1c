"""`list`: the newest run of each id, of the session store and of the server, with why a run was refused."""

import asyncio
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from rich.text import Text

from client.cli import output
from client.cli.command_context import (
    INTERRUPTED,
    RUNNING,
    STATUS_OF_SERVER,
    UNKNOWN,
    CommandContext,
    ServerRun,
    open_context,
)
from client.cli.command_errors import CommandError, ExitCode, quote
from client.client_errors import ClientError
from client.handle import ResearchHandle
from client.run_results import reasons_of
from client.view.rendering import local_time, printable
from contracts.vocabulary import AWAITING, Outcome, RunStatus

AT_ONCE: Final = 16
QUEUED: Final = RunStatus.QUEUED.value
SPAN: Final = re.compile(r"(\d{1,4})([hdw])")
UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
WAITING: Final = tuple(status.value for status in AWAITING)
STATUSES: Final = (RUNNING, QUEUED, *WAITING, INTERRUPTED, UNKNOWN, *(outcome.value for outcome in Outcome))


WAYS: Final = {
    RunStatus.AWAITING_CLARIFICATION.value: "research answer {id}",
    RunStatus.AWAITING_APPROVAL.value: "research approve {id}",
}
"""What answers a run that waits for a person."""


@dataclass(frozen=True)
class RunRow:
    """One run as `list` shows it."""

    research_id: str
    status: str
    when: str
    """When it was started last, as ISO 8601 with offset; when it was saved where the server knows it no more."""
    query: str
    reason: str = ""
    """Of a run without a session: why it ended without a report, or its place while it waits for its turn."""

    def line(self, width: int) -> Text:
        """One line for a person."""
        line = Text(f"{self.research_id:<{width}}  {self.status:<12} {local_time(self.when)}  ")
        if way := WAYS.get(self.status):
            line.append(f"{way.format(id=self.research_id)}  ", "yellow")
        if self.reason:
            line.append(f"{printable(self.reason)}  ", "yellow")
        return line.append(printable(self.query))


@dataclass(frozen=True)
class RunFilter:
    """Which runs are listed; what is not given holds for all."""

    text: str = ""
    statuses: tuple[str, ...] = ()
    since: datetime | None = None

    def takes(self, row: RunRow) -> bool:
        """Whether a run is one of them."""
        return (
            self.text.casefold() in row.query.casefold()
            and (not self.statuses or row.status in self.statuses)
            and (self.since is None or datetime.fromisoformat(row.when) >= self.since)
        )


async def list_runs(text: str, outcomes: list[str], since: str | None, *, limit: int, as_json: bool) -> int:
    """Newest run per id, of the session store and of the server."""
    wanted = RunFilter(text, parse_statuses(outcomes), None if since is None else parse_since(since))
    async with open_context(reads_only=True) as context:
        rows = await _rows(context)
    shown = [row for row in rows if wanted.takes(row)][:limit]
    if as_json:
        output.document([asdict(row) for row in shown])
    elif not shown:
        output.tell('no runs yet: research run "…" --corpus ./folder' if not rows else "no run is like this")
    else:
        width = max(len(row.research_id) for row in shown)
        for row in shown:
            output.say_cut(row.line(width))
    return ExitCode.COMPLETED


def parse_statuses(given: list[str]) -> tuple[str, ...]:
    """`partial,refused` and repetitions of the option as statuses. Raises `CommandError`."""
    names = tuple(name.strip().replace("-", "_") for text in given for name in text.split(",") if name.strip())
    unknown = next((name for name in names if name not in STATUSES), None)
    if unknown is not None:
        raise CommandError(f"--outcome knows no {quote(unknown)}: it takes {', '.join(STATUSES)}")
    return names


def parse_since(given: str) -> datetime:
    """`2026-11-20`, `2026-11-20T14:00` (time of this machine), or `12h`, `3d`, `2w` ago. Raises `CommandError`."""
    span = SPAN.fullmatch(given.strip())
    if span is not None:
        return datetime.now(tz=UTC) - int(span[1]) * UNITS[span[2]]
    try:
        return datetime.fromisoformat(given.strip()).astimezone()
    except (ValueError, OverflowError):
        raise CommandError("--since takes a date such as 2026-11-20, or 12h, 3d or 2w for that long ago") from None


async def _rows(context: CommandContext) -> list[RunRow]:
    on_server = {run.research_id: run for run in await context.server_runs()}
    rows = {}
    for session in await context.stores.sessions.list():
        run = on_server.pop(session.research_id, None)
        status = session.status
        if not session.closed:
            lost = UNKNOWN if context.server_away else INTERRUPTED
            going_on = session.status if session.status in WAITING else RUNNING
            status = going_on if run is not None and run.status == RUNNING else lost
        when = run.started_at if run is not None else session.saved_at
        rows[session.research_id] = RunRow(session.research_id, status, when, session.query)
    at_once = asyncio.Semaphore(AT_ONCE)
    others = await asyncio.gather(*(_unstored(context, run, at_once) for run in on_server.values()))
    return sorted([*rows.values(), *others], key=lambda row: datetime.fromisoformat(row.when), reverse=True)


async def _unstored(context: CommandContext, run: ServerRun, at_once: asyncio.Semaphore) -> RunRow:
    """A run that only the server knows: it has just begun, or it never did."""
    client = await context.client_if_running()
    status, reason, question = STATUS_OF_SERVER.get(run.status), "", ""
    async with at_once:
        try:
            if client is not None:
                handle = client.handle(run.research_id)
                question = await handle.question() or ""
                if run.status != RUNNING:
                    result = await handle.result()
                    shown = result.outcome.value
                    return RunRow(run.research_id, shown, run.started_at, question, "; ".join(reasons_of(result)))
                place = await _place(handle)
                if place:
                    return RunRow(run.research_id, QUEUED, run.started_at, question, place)
        except ClientError as error:  # one run that cannot be read hides no other
            reason = str(error)
    return RunRow(run.research_id, status.value if status else run.status, run.started_at, question, reason)


async def _place(handle: ResearchHandle) -> str:
    """The place of a run that waits for its turn; empty for one that goes on, or that nobody can be asked about."""
    try:
        status = await handle.status()
    except ClientError:
        return ""
    return "" if status.queue_place is None else f"place {status.queue_place} of {status.queue_length}"
