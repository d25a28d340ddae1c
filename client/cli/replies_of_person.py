"""`plan`, `answer`, `approve`, `reject`: what a person says to a run that waits, from any terminal."""

import asyncio
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.text import Text

from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode, reason_of
from client.cli.plan_text import as_text, read_plan
from client.client_errors import ClientError
from client.handle import ResearchHandle
from client.view.rendering import local_time, printable
from contracts.plan import PlanAnswer, Waiting, WaitKind
from workers.settings.loading import editor_command

STANDARD_INPUT: Final = Path("-")
LARGEST_PLAN: Final = 200_000


async def plan(given: str, *, edit: bool, set_file: Path | None, as_json: bool) -> int:
    """Show the plan; put an edited one in its place."""
    if edit and set_file is not None:
        raise CommandError("--edit and --set exclude each other")
    async with open_context(reads_only=not edit and set_file is None) as context:
        research_id = await context.resolve(given)
        known = await _plan(context, research_id)
        if not edit and set_file is None:
            if as_json:
                output.document(known.model_dump(mode="json"))
            else:
                show_plan(known, research_id)
            return ExitCode.COMPLETED
        require_wait(known, research_id)
        handle = (await context.running_client()).handle(research_id)
        text = await edit_text(as_text(known, research_id)) if edit else _read(set_file)
        if edit and text == as_text(known, research_id):
            output.say("nothing was changed")
            return ExitCode.COMPLETED
        output.say(await handle.revise_plan(read_plan(text), known.version))
        if known.waiting is not None:
            output.tell(known.waiting.model_copy(update={"plan_version": known.version + 1}).ways(research_id)[0])
    return ExitCode.COMPLETED


def require_wait(known: PlanAnswer, research_id: str) -> None:
    """Raise `CommandError` for a plan that nobody may edit, before a person takes the trouble."""
    if known.waiting is None or known.waiting.kind is not WaitKind.APPROVAL:
        approved = f"version {known.approved_version} is approved" if known.approved_version else "no approval is open"
        raise CommandError(f"the plan of {research_id} cannot be edited: {approved}; see `research status`")


async def answer(given: str, answers: list[str], *, skip: bool) -> int:
    """Answer the open questions, in their order; ask for the answers where there is a terminal."""
    async with open_context() as context:
        handle = await _handle(context, given)
        waiting = await _waited_for(handle, WaitKind.CLARIFICATION)
        if skip and answers:
            raise CommandError("--skip goes on without answers: leave them out, or leave --skip out")
        if not skip and not answers:
            for place, question in enumerate(waiting.questions, start=1):
                output.tell(f"{place}. {question}")
                answers.append(output.ask("   answer", f'research answer {handle.research_id} "…"'))
        output.say(await handle.answer(answers, waiting.round))
    return ExitCode.COMPLETED


async def approve(given: str, version: int | None, phrase: str | None) -> int:
    """Approve the newest plan: by its version, or after it was shown and agreed with in this terminal."""
    async with open_context() as context:
        handle = await _handle(context, given)
        if version is None:
            waiting = await _waited_for(handle, WaitKind.APPROVAL)
            command = waiting.ways(handle.research_id)[0]
            show_plan(await handle.plan(), handle.research_id)
            if not output.confirm("Begin with this plan?", f"name the version that you have seen: {command}"):
                output.say(f"not approved; the run waits on: {command}")
                return ExitCode.COMPLETED
            version = waiting.plan_version
            if phrase is None and waiting.phrase is not None:
                phrase = output.ask(f"   type “{waiting.phrase}”", command)
        output.say(await handle.approve_plan(version, phrase))
        output.tell(f"research watch {handle.research_id}")
    return ExitCode.COMPLETED


async def reject(given: str, reason: str) -> int:
    """End the run without any work."""
    async with open_context() as context:
        handle = await _handle(context, given)
        output.say(await handle.reject_plan(reason))
        output.tell(f"the plan is kept: research resume {handle.research_id} asks for it again")
    return ExitCode.COMPLETED


def show_plan(known: PlanAnswer, research_id: str) -> None:
    """The plan for a person, with what is to be done about it."""
    if not known.version:
        output.say(f"there is no plan yet: research watch {research_id}")
        return
    approved = f", approved as version {known.approved_version}" if known.approved_version else ""
    output.say(Text(f"plan version {known.version}{approved}", style="bold"))
    if known.brief:
        output.say(printable(known.brief))
    for place, query in enumerate(known.sub_queries, start=1):
        output.say(f"  {place}. {printable(query.text)}")
    if known.waiting is not None and known.waiting.kind is WaitKind.APPROVAL:
        tell_waiting(known.waiting, research_id)


def tell_waiting(waiting: Waiting, research_id: str) -> None:
    """What is waited for, until when, and the commands that answer."""
    output.tell(
        f"waiting for {waiting.describe()}, until {local_time(waiting.expires_at)}; the run's clock stands still"
    )
    for place, question in enumerate(waiting.questions, start=1):
        output.tell(f"  {place}. {printable(question)}")
    for way in waiting.ways(research_id):
        output.tell(f"  {way}")


async def edit_text(text: str) -> str:
    """The text as a person leaves it in the editor of `VISUAL` or `EDITOR`. Raises `CommandError`."""
    editor = editor_command()
    if editor is None:
        raise CommandError("there is no terminal for an editor: use --set FILE, or set EDITOR")
    with tempfile.TemporaryDirectory(prefix="research-plan-") as folder:
        path = Path(folder) / "plan.md"
        path.write_text(text, encoding="utf-8")
        try:
            command = [*shlex.split(editor), str(path)]
            ended = await asyncio.to_thread(subprocess.run, command, check=False)
        except (OSError, ValueError) as error:
            why = reason_of(error) if isinstance(error, OSError) else str(error)
            raise CommandError(f"the editor {editor} cannot be started: {why}; set EDITOR, or use --set FILE") from None
        if ended.returncode:
            raise CommandError(f"the editor {editor} ended with {ended.returncode}: the plan stays as it was")
        return _read(path)


def _read(path: Path | None) -> str:
    if path is None or path == STANDARD_INPUT:
        return sys.stdin.read(LARGEST_PLAN)
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LARGEST_PLAN)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} cannot be read: not UTF-8 text") from None


async def _plan(context: CommandContext, research_id: str) -> PlanAnswer:
    """The plan of the run if it goes on, else as it was stored."""
    client = await context.client_if_running()
    if client is not None and await context.is_running(research_id):
        try:
            return await client.handle(research_id).plan()
        except ClientError as error:
            output.tell(f"{error}\nthis is the plan as of the last checkpoint")
    state = await context.stored_state(research_id)
    if state is None:
        raise CommandError(f"nothing is stored of the run {research_id} yet: see `research watch {research_id}`")
    made = state.plan
    return PlanAnswer(
        version=made.version,
        approved_version=state.approved_version,
        waiting=None if state.result else state.waiting,
        brief=made.brief,
        nodes=made.nodes,
        sub_queries=made.parts,
    )


async def _waited_for(handle: ResearchHandle, kind: WaitKind) -> Waiting:
    """What the run asks now. Raises `CommandError` where it asks nothing of the kind."""
    if not await handle.is_running():
        raise CommandError(f"the run {handle.research_id} has ended: it waits for nothing any more")
    status = await handle.status()
    if status.waiting is None or status.waiting.kind is not kind:
        asked = f"it waits for {status.waiting.describe()}" if status.waiting else f"it is {status.status.value}"
        raise CommandError(f"the run {handle.research_id} does not wait for this: {asked.replace('_', ' ')}")
    return status.waiting


async def _handle(context: CommandContext, given: str) -> ResearchHandle:
    research_id = await context.resolve(given)
    return (await context.running_client()).handle(research_id)
