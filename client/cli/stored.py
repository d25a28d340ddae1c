"""`delete` and `archive`: remove runs; inspect content that models were not shown, or only in part."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from client.cli.context import CommandContext
from client.cli.options import AsJson, Commands
from client.cli.output import CommandError, ExitCode, print_hint, print_json, print_progress, print_result, quote
from client.cli.reports import write_for_person
from client.view.words import local_time, printable
from contracts.texts import plural
from contracts.tokens import ArchiveRecord
from providers.errors import ContentMissing
from providers.storage.stored_records import has_sole_sessions
from workers.retention import Retention
from workers.shared_state import open_shared_state

archive = Commands(
    no_args_is_help=True,
    help="Content that models were not shown, or only in part: `tokens.content_archive_enabled` records it.",
)
commands = Commands()
commands.add_typer(archive, name="archive")
Hash = Annotated[str, Argument(metavar="HASH", help="the hash of the text, or a unique beginning of it")]


@commands.command("delete")
async def delete(
    context: CommandContext,
    run_id: Annotated[
        str | None, Argument(metavar="ID", help="id of the run, a unique beginning or end of it, or `last`")
    ] = None,
    *,
    older_than: Annotated[float | None, Option(metavar="DAYS", min=0, help="all runs last saved longer ago")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Remove a run: session, journal of calls, history, and stored documents that no other run uses.

    Reports that were written to a folder stay. Documents that an open run may use stay until a later `--older-than`.

    research delete 7k3f
    research delete --older-than 30
    """
    if (run_id is None) == (older_than is None):
        raise CommandError("name one run, or --older-than DAYS")
    async with _open_retention(context) as retention:
        if run_id is not None:
            run = await context.find(run_id)
            if run.running:
                remedy = f"cancel it with `research cancel {run.research_id}`"
                raise CommandError(f"the run {run.research_id} is not over: {remedy}")
            runs = [run.research_id]
            description = f"the run {run.research_id}"
        else:
            runs = await retention.older_than(timedelta(days=older_than or 0.0))
            own = {session.research_id for session in await context.sessions()}
            runs = [research_id for research_id in runs if research_id in own]
            description = f"{plural(len(runs), 'run')} older than {older_than:g} days"
        if runs and not yes:
            if not sys.stdin.isatty():
                raise CommandError("there is no terminal to ask at: add --yes to delete without a question")
            if not typer.confirm(f"remove {description} for good?", err=True):
                print_progress("nothing was removed")
                return
        if run_id is None:
            removed = await retention.sweep(runs)
        else:
            removed = await retention.remove(runs)
    if removed.remaining:
        print_hint(f"{removed.remaining}; `research delete --older-than DAYS` removes them later")
    counted = plural(removed.documents, "document"), plural(removed.answers, "journalled call")
    print_result(f"removed {description}: {', '.join(counted)}, {plural(removed.histories, 'history')}")


@asynccontextmanager
async def _open_retention(context: CommandContext) -> AsyncIterator[Retention]:
    """Open what removes runs; without a server it removes no history, and no document that an open run may use."""
    client = await context.client_of_runs()
    stores = context.stores
    temporal = None if client is None else client.temporal
    sole = has_sole_sessions(context.settings.content_url)
    async with open_shared_state(context.settings) as shared:
        yield Retention(stores.sessions, stores.content, shared.calls, temporal, stores.archive, sole=sole)


# --- the archive ---------------------------------------------------------------------------------------------------


@archive.command("list")
async def list_archive(context: CommandContext, *, as_json: AsJson = False) -> None:
    """List the archived texts, the newest first: hash, time, item, reason, tokens, title.

    What has expired is removed first, whether or not a worker is running.
    """
    await _expire(context)
    entries = (await context.stores.archive.read()).values()
    records = sorted(filter(None, entries), key=lambda record: record.archived_at, reverse=True)
    if as_json:
        print_json([record.model_dump(mode="json") for record in records])
    else:
        for record in records:
            item = f"{record.item_type:<9} {record.archive_reason:<24} {record.original_tokens:>6} tokens"
            title = printable(record.metadata.get("title") or record.item_id)
            print_result(f"{record.content_hash[7:19]}  {local_time(str(record.archived_at))}  {item}  {title}")
    if not entries and not as_json:
        print_hint("nothing is archived: `tokens.content_archive_enabled` of research.toml switches the archive on")
    if len(records) < len(entries):
        print_hint(f"{plural(len(entries) - len(records), 'record')} cannot be read: `research archive verify`")


@archive.command("show")
async def show(context: CommandContext, text_hash: Hash) -> None:
    """Print the record of a text as JSON: its item, the reason and its expiry."""
    print_json((await _find(context, text_hash)).model_dump(mode="json"))


@archive.command("restore")
async def restore(
    context: CommandContext,
    text_hash: Hash,
    *,
    out: Annotated[Path, Option(metavar="FILE", help="write the text there")],
) -> None:
    """Write an archived text to a file, after its hash was verified."""
    record = await _find(context, text_hash)
    if problem := await _problem(context, record):
        raise CommandError(f"{record.content_hash}: {problem}", ExitCode.FAILED)
    write_for_person(out, await context.stores.content.get(record.content))


@archive.command("verify")
async def verify(context: CommandContext) -> int:
    """Read every record and its text again, and compare them with their hashes. Exit code 1 on any difference."""
    await _expire(context)
    damaged = 0
    archive = context.stores.archive
    records = await context.stores.archive.read()
    own = {digest: record for digest, record in records.items() if record is None or archive.is_own(record)}
    for digest, record in own.items():
        if problem := await _problem(context, record):
            damaged += 1
            print_result(f"{digest}: {problem}")
    others = f", {len(records) - len(own)} of other homes" if len(own) < len(records) else ""
    print_progress(f"{plural(len(own), 'record')}, {damaged} damaged{others}")
    if damaged:
        return ExitCode.INTERNAL
    return ExitCode.COMPLETED


async def _expire(context: CommandContext) -> None:
    """Remove what has expired, and say so: the sweep of a worker may be hours away."""
    async with _open_retention(context) as retention:
        expired, remaining = await retention.expire_archive()
    if expired:
        print_hint(f"{plural(expired, 'record')} expired and {'was' if expired == 1 else 'were'} removed")
    if remaining:
        print_hint(f"expired records are still listed: {remaining}")


async def _find(context: CommandContext, text_hash: str) -> ArchiveRecord:
    """Return the record of a hash or of its unique beginning. Raises `CommandError`."""
    await _expire(context)
    records = await context.stores.archive.read()
    beginning = text_hash.strip().lower().removeprefix("sha256:")
    matches = [digest for digest in records if beginning and digest[7:].startswith(beginning)]
    if len(matches) != 1:
        if matches:
            problem = "fits several records: give more of it"
        else:
            problem = "is not archived: see `research archive list`"
        raise CommandError(f"{quote(text_hash)} {problem}")
    if (record := records[matches[0]]) is None:
        raise CommandError(f"{matches[0]}: {await _problem(context, None)}", ExitCode.FAILED)
    return record


async def _problem(context: CommandContext, record: ArchiveRecord | None) -> str:
    """Return the problem of a record or its text, with the remedy; empty if there is none."""
    if record is None:
        return "the record is damaged: take its file from a backup, or remove it"
    try:
        await context.stores.content.get(record.content)
    except ContentMissing as error:
        is_own = context.stores.archive.is_own(record)
        if not is_own:
            return "it is of another home: restore it there"
        return f"{error}: take it from a backup"
    return ""
