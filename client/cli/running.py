"""`run`, `start`, `resume`: the main job from the question to the files of the report."""

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from client.cli import output
from client.cli.asking import Asked, ask
from client.cli.beginning import (
    JOINED,
    Beginning,
    RunStanding,
    begin,
    check_question,
    finished,
    request_again,
    standing,
)
from client.cli.context import CommandContext, open_desk
from client.cli.corpora import registered_folders
from client.cli.exit_codes import ExitCode, exit_code
from client.cli.failures import CommandError
from client.cli.interrupts import first_interrupt
from client.cli.preparing import announce, dry_run, index_of, ready
from client.cli.reaching import model_flags
from client.cli.report_files import default_folder, write_all
from client.cli.reports import report_documents
from client.cli.requests import build_request, merged, settings_of
from client.cli.research_ids import checked, new_id, short
from client.cli.run_options import RunOptions
from client.cli.stored import last_outcome
from client.cli.watching import sink_for, stay_with
from client.handle import ResearchClient
from client.view.rendering import Frame, ending
from contracts import names
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.vocabulary import Outcome
from workers.dev_server.files import ServerFiles, ServerMovedError
from workers.private_files import umask_of_person
from workers.settings.loading import Flags

HINT = 'Ctrl-C cancels, the state is kept · report now: research stop {id} · research steer {id} "…"'
HINT_CLUSTER = 'Ctrl-C leaves the run going · report now: research stop {id} · research steer {id} "…"'


async def run(options: RunOptions) -> int:
    """Start or join a run, show it, write its report."""
    async with open_desk(Flags(model=options.model, model_url=options.model_url)) as context:
        asked = await _asked(context, options)
        if options.dry_run:
            return await dry_run(context, asked, options)
        research_id = _id_for(options)
        done = await finished(context, asked.request, research_id)
        if done is not None:
            return await _print_stored(context, done, asked.request.query, options)
        if options.research_id is None:
            await announce(context, asked.request, options)
        else:
            known = await standing(context, research_id)
            check_question(asked.request.query, known.question, research_id)
            await announce(context, asked.request, options, known.resolved, going_on=known.going_on)
        return await _begin_and_stay(context, asked, research_id, options)


async def start(options: RunOptions) -> int:
    """Start a run on a running engine and print its id."""
    async with open_desk(Flags(model=options.model)) as context:
        asked = await _asked(context, options)
        if options.dry_run:
            return await dry_run(context, asked, options)
        research_id = _id_for(options)
        if await finished(context, asked.request, research_id) is not None:
            raise CommandError(f"the run {research_id} is completed: research report {research_id}")
        client = await context.running_client()
        await index_of(context, asked, options)
        beginning = await begin(context, client, asked.request, research_id)
        if options.as_json:
            output.document({"research_id": research_id, "how": beginning.how})
        else:
            output.say(research_id)
            output.tell(f"{beginning.how} · research watch {research_id}")
        if not await client.polled_by(names.WORKFLOWS_QUEUE):
            output.tell("no worker is there, and the run waits for one: start it with `research serve`")
        return ExitCode.COMPLETED


async def resume(options: RunOptions, *, report_now: bool = False) -> int:
    """Go on with a stored run, possibly with new limits."""
    async with open_desk(Flags(model=options.model, model_url=options.model_url)) as context:
        research_id = await _known_id(context, "last" if options.research_id is None else options.research_id)
        known = await standing(context, research_id)
        if not known.going_on:
            _check_resumable(known, research_id)
        resolved = known.resolved
        again = {"query": known.question} if resolved is None else _asked_again(resolved)
        request = build_request(merged(again, settings_of(options.assignments)))
        if resolved is not None:
            await announce(context, request, options, resolved, going_on=known.going_on)
        return await _begin_and_stay(context, Asked(request), research_id, options, report_now=report_now)


def _check_resumable(known: RunStanding, research_id: str) -> None:
    """A run that does not go on by itself needs a session that is not complete. Raises `CommandError`."""
    if known.state is None or known.resolved is None:
        raise CommandError(f"nothing is stored of the run {research_id}: it cannot go on, start it anew")
    outcome = last_outcome(known.state)
    if known.state.result is not None and not _resumable(outcome):
        raise CommandError(f"the run {research_id} is {outcome.value}: research report {research_id}")


def _asked_again(resolved: ResolvedResearch) -> dict[str, Any]:
    return request_again(resolved).model_dump(mode="json", exclude_unset=True)


async def _known_id(context: CommandContext, given: str) -> str:
    """The run that is meant. Where the record knows none, a stopped engine is asked, too: its database outlives it."""
    try:
        return await context.resolve(given)
    except CommandError:
        if context.settings.uses_cluster or not ServerFiles(context.settings.home).database.exists():
            raise
    await context.ensured_client()
    return await context.resolve(given)


async def _begin_and_stay(
    context: CommandContext, asked: Asked, research_id: str, options: RunOptions, *, report_now: bool = False
) -> int:
    client = await ready(context, asked, options)
    while True:
        try:
            result = await _work_and_stay(context, client, asked, research_id, options, report_now=report_now)
        except ServerMovedError:
            output.tell("the engine came back at another port: going on there")
            client = await context.ensured_client()
            continue
        if result is None:
            return _left(context, research_id, options)
        return await _deliver(context, result, asked.request.query, options)


async def _work_and_stay(
    context: CommandContext,
    client: ResearchClient,
    asked: Asked,
    research_id: str,
    options: RunOptions,
    *,
    report_now: bool,
) -> ResearchResult | None:
    """Work for a run and show it until it is over; null if it was left."""
    from client.cli.local_workers import workers_here  # noqa: PLC0415  loaded while the engine comes up

    async with workers_here(context, client, _resuming(research_id, options)), first_interrupt() as interrupt:
        # From here on Ctrl-C means this run, also in the moment in which it is just being started.
        beginning = await begin(context, client, asked.request, research_id)
        if not options.quiet:
            output.tell(f"{research_id} {beginning.how}")
        if beginning.how == JOINED and options.assignments:
            output.tell("the run goes on as it was begun: what --set says is not taken over")
        if report_now:
            await beginning.handle.stop_and_report()
        return await _stay(context, beginning, asked.request, options, interrupt)


async def _stay(
    context: CommandContext,
    beginning: Beginning,
    request: ResearchRequest,
    options: RunOptions,
    interrupt: asyncio.Event,
) -> ResearchResult | None:
    cluster = context.settings.uses_cluster
    research_id = beginning.handle.research_id
    frame = Frame(
        research_id,
        request.query,
        context.web_address(research_id),
        hint=(HINT_CLUSTER if cluster else HINT).format(id=short(research_id)),
    )
    sink = sink_for(frame, quiet=options.quiet, as_json=options.as_json)
    recover = None if cluster else context.recover
    return await stay_with(beginning.handle, sink, interrupt, recover=recover, detach=cluster)


async def _print_stored(context: CommandContext, result: ResearchResult, question: str, options: RunOptions) -> int:
    """The stored report of a run that is complete: nothing is started for it."""
    documents = await report_documents(context, result)
    if "md" in documents and not options.as_json and not options.quiet:
        output.raw(documents["md"] + b"\n")
    return await _deliver(context, result, question, options)


async def _deliver(context: CommandContext, result: ResearchResult, question: str, options: RunOptions) -> int:
    """Write the files, say where they are and what can be done next."""
    documents = await report_documents(context, result)
    folder = options.out or default_folder(question, result.research_id, _now(), Path())
    try:
        paths = write_all(folder, documents, umask=umask_of_person()) if documents else {}
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        again = f"research report {result.research_id} --out FILE"
        raise CommandError(
            f"{folder} cannot be written: {reason}; the report is kept: {again}", ExitCode.FAILED
        ) from None
    if options.as_json:
        output.document(result.model_dump(mode="json") | {"paths": {form: str(path) for form, path in paths.items()}})
    elif options.quiet:
        for path in paths.values():
            output.say(str(path))
    else:
        stored = await context.stored_state(result.research_id)
        can_go_on = stored is not None and _resumable(result.outcome)
        _tell(result, paths, _resuming(result.research_id, options) if can_go_on else None)
    return exit_code(result.outcome, result.stop_reason)


def _tell(result: ResearchResult, paths: dict[str, Path], resuming: str | None) -> None:
    """How the run ended and what can be done next; `resuming` is the command that goes on with it, if it can."""
    output.say(ending(result))
    for told in [*result.failed_branches, *result.degraded, *(result.limitations if not paths else [])]:
        for line in told.splitlines():
            output.say(Text(f"  {line}", style="yellow"))
    shown = paths.get("html") or next(iter(paths.values()), None)
    if shown is not None:
        others = ", ".join(form for form in paths if paths[form] != shown)
        output.say(f"  {shown}" + (f"   ({others} beside it)" if others else ""))
        output.say(f"  next: research open {result.research_id} · research audit {result.research_id}")
    if resuming is not None:
        output.say(f"  go on: {resuming}" + (f" · report from what is there: {resuming} --now" if not paths else ""))


def _resuming(research_id: str, options: RunOptions) -> str:
    """The whole command: a model that was named by hand must be named again."""
    return f"research resume {research_id}{model_flags(options)}"


def _left(context: CommandContext, research_id: str, options: RunOptions) -> int:
    if context.settings.uses_cluster:
        output.tell(f"detached; the run goes on: research watch {research_id} · research cancel {research_id}")
        return ExitCode.COMPLETED
    resuming = _resuming(research_id, options)
    output.tell(
        f"the run did not close in time; its state is kept: {resuming} · report from what is there: {resuming} --now"
    )
    return ExitCode.CANCELLED


async def _asked(context: CommandContext, options: RunOptions) -> Asked:
    """The request; the question of a known run when only its id is given."""
    if options.question is None and options.request_file is None and options.research_id is not None:
        state = await context.stored_state(options.research_id)
        if state is not None and state.resolved is not None:
            options = replace(options, question=state.resolved.query)
            if options.corpus is None and state.resolved.corpus is not None:
                options = replace(options, corpus=state.resolved.corpus.name)
    return ask(options, context.settings, await registered_folders(context))


def _id_for(options: RunOptions) -> str:
    return new_id(_now()) if options.research_id is None else checked(options.research_id)


def _resumable(outcome: Outcome) -> bool:
    return outcome not in (Outcome.COMPLETED, Outcome.REFUSED)


def _now() -> datetime:
    return datetime.now().astimezone()
