"""`run`, `start`, `resume`: the main job from the question to the files of the report."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from client.cli import output
from client.cli.asking_here import LeftWaiting, asker
from client.cli.command_context import CommandContext, last_outcome, open_context
from client.cli.command_errors import CommandError, ExitCode, exit_code, reason_of
from client.cli.corpus import registered_folders
from client.cli.folders import ensure_folder
from client.cli.options import RunOptions
from client.cli.preflight import announce, dry_run, model_flags, prepare, update_index
from client.cli.replies_of_person import tell_waiting
from client.cli.report_files import default_folder, remember_folder, write_all
from client.cli.request_options import AskedRun, ask, build_request, merge, parse_assignments
from client.cli.research_ids import choose_id, short
from client.cli.watch import first_interrupt, sink_for, stay_with
from client.client_errors import ClientError, NoWorker, RunUnknown, WorkerStuck
from client.handle import ResearchClient, ResearchHandle, Reuse, shown_question
from client.run_results import refusal_of, shortcomings_of
from client.view.rendering import Frame, render_ending
from contracts import names
from contracts.addresses import normalized_text
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import Outcome
from workers.dev_server import ServerFiles, ServerMovedError
from workers.private_files import files_of_person, umask_of_person
from workers.settings.loading import Flags

HINT = 'Ctrl-C cancels, the state is kept · report now: research stop {id} · research steer {id} "…"'
HINT_CLUSTER = 'Ctrl-C leaves the run going · report now: research stop {id} · research steer {id} "…"'
JOINED: Final = "joined"
BEGINNING_LOOKS: Final = 20
"""How often `start` looks what the workers made of a request."""
BEGINNING_PAUSE_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Beginning:
    """A handle on what goes on."""

    handle: ResearchHandle
    how: str
    """`started`, `joined` or `resumed`."""


@dataclass(frozen=True)
class RunStanding:
    """What is known of a run before a command works for it."""

    state: ResearchState | None
    """Its newest checkpoint."""
    going_on: bool
    """Whether the server has it open."""
    question: str | None
    """As the record or else the server keeps it."""

    @property
    def resolved(self) -> ResolvedResearch | None:
        """What the run was given, as far as it is stored."""
        return None if self.state is None else self.state.resolved


async def run(options: RunOptions) -> int:
    """Start or join a run, show it, write its report."""
    async with open_context(Flags(model=options.model, model_url=options.model_url)) as context:
        asked = await _ask(context, options)
        if options.dry_run:
            return await dry_run(context, asked, options)
        research_id = choose_id(options.research_id)
        work = Work(context, asked, research_id, options)
        done = await find_finished(context, asked.request, research_id)
        if done is not None:
            return await work.print_stored(done)
        if options.research_id is None:
            await announce(context, asked.request, options)
        else:
            known = await look_up(context, research_id)
            check_question(asked.request.query, known.question, research_id)
            await announce(context, asked.request, options, known.resolved, going_on=known.going_on)
        return await work.do()


async def ask_again(given: str, options: RunOptions) -> int:
    """Start a run that follows another one: its evidence is offered first; the same corpus, unless another is named."""
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(given)
        state = await context.stored_state(research_id)
    if state is None or state.resolved is None:
        raise CommandError(f"nothing is stored of the run {research_id} that could be followed: see `research list`")
    before = state.resolved
    corpus = options.corpus or (before.corpus.name if before.corpus is not None else None)
    follows = [*options.assignments, f"follow_up_of={research_id}"]
    return await run(replace(options, corpus=corpus, web=options.web or before.web, assignments=follows))


async def start(options: RunOptions) -> int:
    """Start a run on a running server and print its id."""
    async with open_context(Flags(model=options.model, model_url=options.model_url)) as context:
        asked = await _ask(context, options)
        if options.dry_run:
            return await dry_run(context, asked, options)
        research_id = choose_id(options.research_id)
        if await find_finished(context, asked.request, research_id) is not None:
            raise CommandError(f"the run {research_id} is completed: read it with `research report {research_id}`")
        client = await context.running_client()
        if options.out is not None:
            with files_of_person():
                ensure_folder(options.out, "choose another --out")
        known = await look_up(context, research_id)
        check_question(asked.request.query, known.question, research_id)
        told = await announce(context, asked.request, options, known.resolved, going_on=known.going_on)
        await update_index(context, asked, options)
        beginning = await begin(context, client, asked.request, research_id)
        if options.out is not None:
            remember_folder(context.settings.home, research_id, options.out)
        if options.as_json:
            output.document({"research_id": research_id, "how": beginning.how})
        else:
            output.say(research_id)
        if not options.as_json and not options.quiet:
            kept = "" if options.out is None else f", which writes the report to {options.out}"
            output.tell(f"{beginning.how} · research watch {research_id}{kept}")
        if await client.polled_by(names.WORKFLOWS_QUEUE):
            await _tell_difference(beginning.handle, told)
        else:
            output.tell("no worker is running, so the run waits: start one with `research serve`")
        return ExitCode.COMPLETED


async def _tell_difference(handle: ResearchHandle, told: ResolvedResearch | None) -> None:
    """The workers decide where text goes: say so at once if that is not where this command said."""
    if told is None:
        return
    for _ in range(BEGINNING_LOOKS):
        try:
            status = await handle.status()
        except ClientError:
            return
        if status.engine:
            if status.egress != told.egress:
                output.tell(f"the workers were started with another configuration than this command: {status.egress}")
            return
        await asyncio.sleep(BEGINNING_PAUSE_SECONDS)


async def resume(given: str, options: RunOptions, *, report_now: bool) -> int:
    """Go on with a stored run, possibly with new limits."""
    async with open_context(Flags(model=options.model, model_url=options.model_url)) as context:
        research_id = await _known_id(context, given)
        known = await look_up(context, research_id)
        resolved = known.resolved
        if not known.going_on:
            refused = await context.closed_result(research_id) if known.state is None else None
            if refused is not None and refused.outcome is Outcome.REFUSED:
                raise CommandError(refusal_of(refused), exit_code(refused.outcome, refused.stop_reason))
            if known.state is None or resolved is None:
                raise CommandError(
                    f"nothing is stored of the run {research_id}, so it cannot be resumed: start a new run"
                )
            outcome = last_outcome(known.state)
            if known.state.result is not None and not can_be_resumed(known.state.result):
                raise CommandError(f"the run {research_id} is {outcome.value}: see `research report {research_id}`")
        again = {"query": known.question} if resolved is None else request_again(resolved, options.model)
        request = build_request(merge(again, parse_assignments(options.assignments)))
        if resolved is not None:
            await announce(context, request, options, resolved, going_on=known.going_on)
        return await Work(context, AskedRun(request), research_id, options, report_now=report_now).do()


async def _known_id(context: CommandContext, given: str) -> str:
    """The run that is meant. Where the record knows none, a stopped server is asked, too: its database outlives it."""
    try:
        return await context.resolve(given)
    except CommandError:
        if context.settings.uses_cluster or not ServerFiles(context.settings.home).database.exists():
            raise
    await context.ensured_client()
    return await context.resolve(given)


async def _ask(context: CommandContext, options: RunOptions) -> AskedRun:
    """The request; the question of a known run when only its id is given."""
    if options.question is None and options.request_file is None and options.research_id is not None:
        state = await context.stored_state(options.research_id)
        if state is not None and state.resolved is not None:
            corpus = state.resolved.corpus.name if state.resolved.corpus is not None else None
            options = replace(options, question=state.resolved.query, corpus=options.corpus or corpus)
    return ask(options, context.settings, await registered_folders(context))


@dataclass(frozen=True)
class Work:
    """What a command does for one run, from its beginning to the files of its report."""

    context: CommandContext
    asked: AskedRun
    research_id: str
    options: RunOptions
    report_now: bool = False

    @property
    def resuming(self) -> str:
        """The command that goes on with the run, whole: a model that was named by hand must be named again."""
        return f"research resume {self.research_id}{model_flags(self.options)}"

    async def do(self) -> int:
        """Begin the run, show it until it is over or left, write its report."""
        client = await prepare(self.context, self.asked, self.options)
        while True:
            try:
                result = await self._stay(client)
            except LeftWaiting as left:
                tell_waiting(left.waiting, self.research_id)
                output.tell(f"afterwards: {self.resuming}")
                return ExitCode.WAITING
            except ServerMovedError:
                output.tell("the server moved to another port: continuing there")
                client = await self.context.ensured_client()
                continue
            return self._leave() if result is None else await self._deliver(result)

    async def print_stored(self, result: ResearchResult) -> int:
        """The stored report of a run that is complete: nothing is started for it."""
        documents = await self.context.report_documents(result)
        if "md" in documents and not self.options.as_json and not self.options.quiet:
            output.raw(documents["md"] + b"\n")
        return await self._deliver(result)

    async def _stay(self, client: ResearchClient) -> ResearchResult | None:
        """Work for a run and show it until it is over; None if it was left."""
        from client.cli.local_workers import workers_here  # noqa: PLC0415  loaded while the server comes up

        context, options, research_id = self.context, self.options, self.research_id
        async with workers_here(context, client), first_interrupt() as interrupt:
            # From here on Ctrl-C means this run, also in the moment in which it is just being started.
            beginning = await begin(context, client, self.asked.request, research_id)
            if not options.quiet:
                output.tell(f"{research_id} {beginning.how}")
            if beginning.how == JOINED and options.assignments:
                output.tell("--set is ignored when joining a run: it goes on with the limits it was started with")
            if self.report_now:
                await beginning.handle.stop_and_report()
            cluster = context.settings.uses_cluster
            hint = (HINT_CLUSTER if cluster else HINT).format(id=short(research_id))
            frame = Frame(research_id, self.asked.request.query, context.web_address(research_id), hint=hint)
            sink = sink_for(frame, quiet=options.quiet, as_json=options.as_json)
            recover = None if cluster else context.recover
            ask = asker(beginning.handle, quiet=options.quiet or options.as_json, leave=options.no_wait)
            return await stay_with(beginning.handle, sink, interrupt, recover=recover, detach=cluster, ask=ask)

    def _leave(self) -> int:
        if self.context.settings.uses_cluster:
            output.tell(
                f"detached; the run goes on: research watch {self.research_id} · research cancel {self.research_id}"
            )
            return ExitCode.COMPLETED
        output.tell(
            f"the run did not close in time; its state is kept: {self.resuming} "
            f"· report from what is there: {self.resuming} --now"
        )
        return ExitCode.CANCELLED

    async def _deliver(self, result: ResearchResult) -> int:
        """Write the files, say where they are and what can be done next."""
        documents = await self.context.report_documents(result)
        folder = self.options.out or default_folder(
            self.asked.request.query, self.research_id, datetime.now().astimezone(), Path()
        )
        try:
            paths = write_all(folder, documents, umask=umask_of_person()) if documents else {}
        except OSError as error:
            again = f"research report {self.research_id} --out FILE"
            raise CommandError(
                f"{folder} cannot be written: {reason_of(error)}; the report is kept: {again}", ExitCode.FAILED
            ) from None
        if self.options.as_json:
            shown = {form: str(path) for form, path in paths.items()}
            output.document(result.model_dump(mode="json") | {"paths": shown})
        elif self.options.quiet:
            for path in paths.values():
                output.say(str(path))
        else:
            stored = await self.context.stored_state(self.research_id)
            self._tell(result, paths, can_go_on=stored is not None and can_be_resumed(result))
        return exit_code(result.outcome, result.stop_reason)

    def _tell(self, result: ResearchResult, paths: dict[str, Path], *, can_go_on: bool) -> None:
        """How the run ended and what can be done next."""
        output.say(render_ending(result))
        for line in shortcomings_of(result):
            output.say(Text(f"  {line}", style="yellow"))
        shown = paths.get("html") or next(iter(paths.values()), None)
        if shown is not None:
            others = ", ".join(form for form in paths if paths[form] != shown)
            output.say(f"  {shown}" + (f"   ({others} beside it)" if others else ""))
            output.say(f"  next: research open {self.research_id} · research audit {self.research_id}")
        if can_go_on:
            now = "" if paths else f" · report from what is there: {self.resuming} --now"
            output.say(f"  go on: {self.resuming}{now}")


def can_be_resumed(result: ResearchResult) -> bool:
    """Whether a run that ended so goes on when it is resumed."""
    return result.resumable or result.outcome not in (Outcome.COMPLETED, Outcome.REFUSED)


async def look_up(context: CommandContext, research_id: str) -> RunStanding:
    """Look the run up in the record and, if a server runs, there."""
    state = await context.stored_state(research_id)
    client = await context.client_if_running()
    handle = None if client is None else client.handle(research_id)
    going_on = handle is not None and await _is_running(handle)
    if state is not None and state.resolved is not None:
        return RunStanding(state, going_on, state.resolved.query)
    return RunStanding(state, going_on, await handle.question() if handle is not None and going_on else None)


async def find_finished(context: CommandContext, request: ResearchRequest, research_id: str) -> ResearchResult | None:
    """The stored result if the run of this id is complete. Raises `CommandError` for another question or tenant."""
    state = await context.stored_state(research_id)
    if state is None or state.resolved is None or state.result is None:
        return None
    check_tenant(request.tenant, state.resolved.tenant, research_id)
    check_question(request.query, state.resolved.query, research_id)
    return state.result if state.result.outcome is Outcome.COMPLETED else None


async def begin(
    context: CommandContext, client: ResearchClient, request: ResearchRequest, research_id: str
) -> Beginning:
    """Start, join or resume the run of this id.

    Raises `CommandError` when the id belongs to another question or another tenant.
    """
    handle = client.handle(research_id)
    state = await context.stored_state(research_id)
    if await _is_running(handle):
        check_tenant(request.tenant, await handle.tenant(), research_id)
        check_question(request.query, await _running_question(handle, state), research_id)
        return Beginning(handle, JOINED)
    if state is None or state.resolved is None:
        return Beginning(await client.start(request, research_id, reuse=Reuse.AFTER_ANY), "started")
    check_tenant(request.tenant, state.resolved.tenant, research_id)
    check_question(request.query, state.resolved.query, research_id)
    resumed = await client.resume(request, research_id, after=last_outcome(state))
    return Beginning(resumed, "resumed")


def request_again(resolved: ResolvedResearch, model: str | None = None) -> dict[str, Any]:
    """What a resumed run is asked: the same question, and another model if one is named; it keeps everything else."""
    kept = ("query", "strategy", "tenant", "priority")
    again: dict[str, Any] = {name: getattr(resolved, name) for name in kept}
    if model is not None and set(resolved.models.values()) != {model}:
        again |= {"models": dict.fromkeys(("simple", "analytical", "complex"), model)}
    return again


async def _is_running(handle: ResearchHandle) -> bool:
    try:
        return await handle.is_running()
    except RunUnknown:
        return False


async def _running_question(handle: ResearchHandle, state: ResearchState | None) -> str | None:
    """The question of a running run; None where it cannot be read."""
    if state is not None and state.resolved is not None:
        return state.resolved.query
    try:
        return await handle.question() or (await handle.status()).query
    except (NoWorker, WorkerStuck):
        return None


def check_tenant(asking: str, known: str | None, research_id: str) -> None:
    """Raise `CommandError` where an id is known to be another tenant's."""
    if known is not None and known != asking:
        raise CommandError(
            f"the id {research_id} cannot be used with this tenant: leave tenant out, or --id for a new run",
            ExitCode.USAGE,
        )


def check_question(asked: str, known: str | None, research_id: str) -> None:
    """Raise `CommandError` where an id is known for another question."""
    if known is None:
        return
    if normalized_text(asked) != normalized_text(known) and shown_question(asked) != known:
        raise CommandError(
            f"the id {research_id} belongs to another question; leave --id out for a new run", ExitCode.USAGE
        )
