"""`delete`: remove runs from everywhere they left something."""

import asyncio
from datetime import timedelta

from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode
from client.cli.research_ids import resolve
from client.cli.stores import record_deleted_histories
from client.client_errors import RunForeign, RunUnknown
from client.handle import ResearchClient
from contracts.texts import plural
from providers.errors import SharedStateUnavailable
from providers.storage.left_behind import LEFT_BEHIND, read_noted_documents
from providers.storage.stored_records import has_sole_sessions
from workers.dev_server import ServerFiles
from workers.retention import Removed, Retention


async def delete(given: str, *, yes: bool) -> int:
    """Remove session, journal rows, documents that no other run uses, and the server's history.

    The journal goes first: while it cannot be removed, everything stays.
    """
    async with open_context() as context:
        client = await _server(context)
        noted = await asyncio.to_thread(read_noted_documents, context.stores.records(LEFT_BEHIND))
        research_id = resolve(given, [*await context.known_ids(), *noted])
        await _refuse_running(client, research_id)
        if not _agreed(f"remove the run {research_id} for good?", yes=yes):
            return ExitCode.COMPLETED
        await _refuse_running(client, research_id)  # it may have been resumed before the answer came
        removed = await _remove(context, client, [research_id])
    output.say(f"{research_id} removed: session, {_parts(removed)}")
    return ExitCode.COMPLETED


async def delete_older_than(days: float, *, yes: bool) -> int:
    """The same for all runs that were saved last so many days ago and are not going on."""
    async with open_context() as context:
        client = await _server(context)
        old = await _retention(context, client).older_than(timedelta(days=days))
        question = f"remove {plural(len(old), 'run')} older than {_span(days)} for good?"
        if old and not _agreed(question, yes=yes):
            return ExitCode.COMPLETED
        removed = await _remove(context, client, old, sweeping=True)
    if old:
        output.say(f"{plural(removed.runs, 'run')} removed: {_parts(removed)}")
    else:
        unused = plural(removed.documents, "document")
        output.say(f"no run is older than {_span(days)}; {unused} removed that no run uses")
    return ExitCode.COMPLETED


def _span(days: float) -> str:
    return "1 day" if days == 1 else f"{days:g} days"


def _agreed(question: str, *, yes: bool) -> bool:
    agreed = yes or output.confirm(question, "add --yes to delete without being asked")
    if not agreed:
        output.tell("nothing was removed")
    return agreed


def _parts(removed: Removed) -> str:
    counted = (
        (removed.documents, "document"),
        (removed.answers, "journalled call"),
        (len(removed.histories), "history"),
    )
    return ", ".join(plural(count, noun) for count, noun in counted)


def _retention(context: CommandContext, client: ResearchClient | None) -> Retention:
    stores, sole = context.stores, has_sole_sessions(context.settings.content_url)
    temporal = None if client is None else client.temporal
    notes = stores.records(LEFT_BEHIND)
    return Retention(stores.sessions, stores.content, notes, stores.calls, temporal, sole=sole)


async def _remove(
    context: CommandContext, client: ResearchClient | None, research_ids: list[str], *, sweeping: bool = False
) -> Removed:
    retention = _retention(context, client)
    try:
        removed = await (retention.sweep(research_ids) if sweeping else retention.remove(research_ids))
    except SharedStateUnavailable as error:
        message = (
            f"{error}; runs that were not removed are kept: delete it again once `research doctor` reports Redis as ok"
        )
        raise CommandError(message, ExitCode.FAILED) from None
    record_deleted_histories(context.settings.home, removed.histories)
    if removed.kept:
        output.tell(f"{removed.kept}; the next `research delete` removes them then")
    return removed


async def _server(context: CommandContext) -> ResearchClient | None:
    """The server, the embedded one started if need be; None where there never was one.

    While it is down, histories cannot be removed and it is unknown which runs will go on with what they have read.
    """
    if context.settings.uses_cluster or ServerFiles(context.settings.home).database.exists():
        return await context.ensured_client()
    return None


async def _refuse_running(client: ResearchClient | None, research_id: str) -> None:
    try:
        going_on = client is not None and await client.handle(research_id).is_running()
    except (RunUnknown, RunForeign):
        going_on = False
    except ValueError:  # paused: a status that the client's library does not know
        going_on = True
    if going_on:
        raise CommandError(f"the run {research_id} is going on: cancel it with `research cancel {research_id}`")
