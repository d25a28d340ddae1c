"""`delete`: remove runs with everything that was stored for them."""

from datetime import timedelta
from typing import Annotated

import typer

from client.cli.context import CommandContext
from client.cli.errors import CommandError
from client.cli.options import Commands
from client.cli.output import confirm, print_hint, print_progress, print_result
from contracts.texts import plural
from providers.storage.stored_records import has_sole_sessions
from workers.retention import Retention

commands = Commands()


@commands.command("delete")
async def delete(
    context: CommandContext,
    given: Annotated[
        str | None, typer.Argument(metavar="ID", help="the run: its id, a unique beginning or the end of it, or `last`")
    ] = None,
    *,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="all runs last saved so long ago")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Remove a run: session, journal of calls, history, and stored documents that no other run uses.

    Reports that were written to a folder stay. Documents that an open run may use stay until a later `--older-than`.

    research delete 7k3f
    research delete --older-than 30
    """
    if (given is None) == (older_than is None):
        raise CommandError("name one run, or --older-than DAYS")
    # Without it histories cannot be removed, and it is unknown which runs will continue with the documents.
    client = await context.client_of_runs()
    stores, sole = context.stores, has_sole_sessions(context.settings.content_url)
    temporal = None if client is None else client.temporal
    calls = await stores.calls()
    retention = Retention(stores.sessions, stores.content, calls, temporal, stores.archive, sole=sole)
    if given is not None:
        run = await context.find(given)
        if run.running:
            problem = f"the run {run.research_id} is not over"
            raise CommandError(f"{problem}: cancel it with `research cancel {run.research_id}`")
        runs, described = [run.research_id], f"the run {run.research_id}"
    else:
        runs = await retention.older_than(timedelta(days=older_than or 0.0))
        described = f"{plural(len(runs), 'run')} older than {older_than:g} days"
    if runs and not yes and not confirm(f"remove {described} for good?", "add --yes to delete without a question"):
        print_progress("nothing was removed")
        return
    removed = await (retention.sweep(runs) if given is None else retention.remove(runs))
    if removed.remaining:
        print_hint(f"{removed.remaining}; `research delete --older-than DAYS` removes them later")
    counted = plural(removed.documents, "document"), plural(removed.answers, "journalled call")
    print_result(f"removed {described}: {', '.join(counted)}, {plural(removed.histories, 'history')}")
