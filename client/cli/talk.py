"""Talk to a run: `plan`, `approve`, `reject`, `answer`, `steer`, `stop`, `cancel`, and the questions of `run`."""

import asyncio
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from rich.text import Text
from typer import Argument, Option

from client.cli.context import CommandContext
from client.cli.options import Commands, RunId
from client.cli.output import CommandError, ExitCode, print_hint, print_progress, print_result, read_start
from client.client_errors import MessageRefused
from client.handle import CLOSING_SECONDS, ResearchHandle
from client.view.console import Ask
from client.view.words import local_time, printable
from contracts.plan import CHOSEN_BY_AGENT, PlanAnswer, PlanNode, Waiting, WaitKind
from contracts.vocabulary import NodeKind
from workers.settings.loading import editor_command
from workflows.status import MARKS, build_plan

MAX_PLAN_BYTES: Final = 200_000
PLAN_HEAD: Final = """\
# The plan of {id}, version {version}. Lines that begin with # are ignored.
# The text before the first "-" is the brief; each line that begins with "-" is a sub-query or a step, in their order.
# If it has an outline: its lines are the headings of the report. Correct assumptions here; answer questions with
# `research answer`.
# Save and close to send it; change nothing to leave the plan unchanged.
"""
LABELS: Final = ("outline", "questions", "assumptions")
"""Parts of a plan that are labelled in its text."""

commands = Commands()


async def running_handle(context: CommandContext, run_id: str) -> ResearchHandle:
    """Return the handle of a run in progress, starting the dev server again if it is down. Raises `CommandError`."""
    run = await context.find(run_id)
    name = run.research_id
    if run.open is None and await run.result() is not None:
        raise CommandError(f"the run {name} has already finished: see `research status {name}`")
    if run.open is None and not context.server_away and await context.client_of_runs() is not None:
        run = await context.load_run(name)  # a server that restarts has the run, and only it knows whether it goes on
    if run.open is not None:
        return run.open
    if context.server_away:
        raise CommandError(f"{context.server_away}: send it again when the server answers", ExitCode.FAILED)
    raise CommandError(f"the run {name} is interrupted: `research resume {name}` continues it", ExitCode.FAILED)


@commands.command("plan")
async def plan(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    edit: Annotated[bool, Option("--edit", help="open it in $EDITOR and send what you save")] = False,
    set_file: Annotated[
        Path | None, Option("--set", metavar="FILE|-", help="replace it by this text, in the form that --edit shows")
    ] = None,
) -> None:
    """Print the plan of a run; replace it by an edited one while it waits for approval, or has headings and is at work.

    research plan 7k3f --edit
    research plan 7k3f --set plan.md
    """
    if edit and set_file is not None:
        raise CommandError("--edit and --set exclude each other: use one of them")
    if not edit and set_file is None:
        run = await context.find(run_id)
        plan = build_plan(run.stored_state()) if run.open is None else await run.open.plan()
        print_plan(plan, run.research_id)
        return
    handle = await running_handle(context, run_id)
    current = await handle.plan()
    current_text = plan_as_text(current, handle.research_id)
    if edit:
        text = await edit_text(current_text)
    else:
        text = _read_text(set_file)
    if text == current_text:
        print_result("the plan is unchanged")
    else:
        print_result(await handle.revise_plan(parse_plan(text), current.version))
        print_hint(f"research plan {handle.research_id}")


@commands.command("approve")
async def approve(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    version: Annotated[int | None, Option(metavar="N", min=1, help="the version that you have seen [newest]")] = None,
    phrase: Annotated[str | None, Option(metavar="TEXT", help="the phrase, if the run requires one")] = None,
    overrule: Annotated[bool, Option("--overrule", help="approve queries that the manager calls too wide")] = False,
) -> None:
    """Approve the plan of a run, and start its searches.

    research approve 7k3f --version 2
    """
    handle = await running_handle(context, run_id)
    newest = version or (await handle.plan()).version
    print_result(await handle.approve_plan(newest, phrase, overrule=overrule))
    print_hint(f"research watch {handle.research_id}")


@commands.command("reject")
async def reject(context: CommandContext, run_id: RunId = "last") -> None:
    """Reject the plan of a run: it ends without any work; `research resume` presents the plan again.

    A new version of an approved plan is dropped, and the run continues with the approved one.
    """
    handle = await running_handle(context, run_id)
    is_first = (await handle.plan()).approved_version is None
    print_result(await handle.reject_plan())
    change = f"to change the plan: research resume {handle.research_id}"
    print_hint(change if is_first else f"research watch {handle.research_id}")


@commands.command("answer")
async def answer(
    context: CommandContext,
    run_id: RunId,
    answers: Annotated[list[str], Argument(metavar="ANSWER", help='one for each question, in order; "" skips one')],
) -> None:
    """Answer the open questions of a run or of its plan; `research status` lists them.

    Answers to the questions of a plan make the planner write another version.

    research answer 7k3f "the programming language" "since 2020"
    """
    print_result(await (await running_handle(context, run_id)).answer(answers))


@commands.command("steer")
async def steer(
    context: CommandContext,
    run_id: RunId,
    text: Annotated[str, Argument(metavar="TEXT", help="what the run should do")],
) -> None:
    """Guide a run that is going on, and print its reaction; while its plan waits, the planner makes another version.

    research steer last "Look at the settings of version 16, not of version 9"
    """
    if not text.strip():
        raise CommandError(f'the text is empty: research steer {run_id} "Look at …"')
    print_result(await (await running_handle(context, run_id)).steer(text) or "noted for the next phase")


@commands.command("stop")
async def stop(context: CommandContext, run_id: RunId = "last") -> None:
    """Write the report of a run now, from the findings so far."""
    handle = await running_handle(context, run_id)
    print_result(await handle.stop_and_report() or "the report is being written from the findings so far")
    print_hint(f"research watch {handle.research_id}")


@commands.command("cancel")
async def cancel(context: CommandContext, run_id: RunId = "last") -> None:
    """Stop a run without a report; its state is saved and `research resume` continues it.

    A run that does not react within 15 seconds, because no worker is there, is ended as of its last checkpoint.
    """
    await context.client_of_runs()
    run = await context.find(run_id)
    research_id = run.research_id
    handle = run.open
    if handle is None:
        print_result(f"{research_id} has already finished")
        return
    await handle.cancel()
    print_progress(f"{research_id} is being cancelled")
    try:
        await asyncio.wait_for(handle.result(), CLOSING_SECONDS)
        print_result(f"{research_id} is cancelled, its state is saved")
    except TimeoutError:
        await handle.terminate()
        print_result(f"{research_id} did not react and was terminated: work after its last checkpoint is lost")
    if (await context.load_run(research_id)).resolved is not None:
        print_hint(f"continue it later: research resume {research_id}")


# --- plans ---------------------------------------------------------------------------------------------------------


def print_plan(plan: PlanAnswer, research_id: str) -> None:
    """Print a plan, and the commands that answer an open approval."""
    if not plan.version:
        print_hint(f"there is no plan yet: research watch {research_id}")
        return
    approved = f", approved as version {plan.approved_version}" if plan.approved_version else ""
    print_result(Text(f"# plan version {plan.version}{approved}", style="bold"))
    for line in plan_lines(plan, tree_lines(plan.nodes) or _described_lines(plan.sub_queries)):
        print_result(line)
    for objection in plan.objections:
        if objection.overruled:
            state = " (overruled)"
        elif objection.followed:
            state = " (its split was taken)"
        else:
            state = ""
        print_result(f"# too wide{state}: {printable(objection.line())}")
    named = plan.constraints.model_dump(exclude_none=True)
    if plan.outline and named:
        print_result("# constraints: " + "; ".join(f"{name}: {printable(value)}" for name, value in named.items()))
    if plan.waiting is not None and plan.waiting.kind is WaitKind.APPROVAL:
        if plan.estimate:
            print_result(f"# {printable(plan.estimate)}")
        print_waiting(plan.waiting, research_id)


def plan_lines(plan: PlanAnswer, queries: Sequence[str] = ()) -> list[str]:
    """Return the brief of a plan, a line per sub-query (or these `queries`), then its other parts under labels."""
    lines = [printable(plan.brief)] if plan.brief else []
    own = [query for query in plan.sub_queries if query.origin != CHOSEN_BY_AGENT]
    lines += queries or [f"- {printable(query.text)}" for query in own]
    for part in LABELS:
        if texts := getattr(plan, part):
            lines += [f"{part}:", *(f"- {printable(text)}" for text in texts)]
    return lines


def _described_lines(queries: Sequence[PlanNode]) -> list[str]:
    lines = []
    for query in queries:
        if query.origin == CHOSEN_BY_AGENT or query.kind is NodeKind.TASK:
            continue
        lines.append(f"- {printable(query.text)}")
        if query.expected_contribution not in ("", query.text):
            lines.append(f"#   {printable(query.expected_contribution)}")
    return lines


def tree_lines(nodes: Sequence[PlanNode]) -> list[str]:
    """Return a line per node of a plan whose leaves have sources, indented by level; empty for any other plan."""
    if not any(node.source_id for node in nodes):
        return []
    ids = {node.id for node in nodes}

    def lines_below(parent: str | None, level: int) -> Iterator[str]:
        for node in nodes:
            is_child = node.parent == parent if parent else node.parent not in ids
            if is_child and node.origin != CHOSEN_BY_AGENT:
                detail = printable(node.rationale or node.source_id or "")
                task = ""
                if node.source_id:
                    task = f"{node.task_type.replace('_', ' ').lower()} (“{detail}”): "
                reason = ""
                if node.status_reason:
                    reason = f" ({printable(node.status_reason)})"
                yield f"{'  ' * level}{MARKS[node.status]} {task}{printable(node.text)}{reason}"
                yield from lines_below(node.id, level + 1)

    return list(lines_below(None, 1))


def print_waiting(waiting: Waiting, research_id: str) -> None:
    """Print a run's open question, its deadline, and the commands that answer it."""
    until = local_time(waiting.expires_at)
    print_progress(f"waiting for {waiting.describe()}, until {until}; the run's clock is stopped")
    for number, question in enumerate(waiting.questions, start=1):
        print_progress(f"  {number}. {printable(question)}")
    for command in waiting.ways(research_id):
        print_hint(f"  {command}")


def plan_as_text(plan: PlanAnswer, research_id: str) -> str:
    """Return a plan as text for an editor."""
    return "\n".join([PLAN_HEAD.format(id=research_id, version=plan.version), *plan_lines(plan), ""])


def parse_plan(text: str) -> dict[str, Any]:
    """Return the revision made in an edited text; parts without their label stay unchanged. Raises `CommandError`."""
    part = "sub_queries"
    brief = []
    parts = dict[str, list[str]](sub_queries=[])
    for line in map(str.strip, text.splitlines()):
        item = line.lstrip("-").strip()
        if line.startswith("-") and item:
            parts[part].append(item)
        elif line.endswith(":") and line[:-1].casefold() in LABELS:
            part = line[:-1].casefold()
            parts.setdefault(part, [])
        elif item and not line.startswith("#") and part == "sub_queries":
            brief.append(line)
        elif item and not line.startswith("#"):
            raise CommandError(f'under {part}: each line begins with "- "; the brief is at the beginning')
    if not parts["sub_queries"]:
        raise CommandError('the plan has no sub-query: write each on a line of its own, with "- " in front')
    if brief:
        return {**parts, "brief": " ".join(brief)}
    return dict(parts)


async def edit_text(text: str) -> str:
    """Return the text as saved in the editor of `VISUAL` or `EDITOR`. Raises `CommandError`."""
    editor = editor_command()
    if editor is None:
        raise CommandError("there is no terminal for an editor: use --set FILE, or set EDITOR")
    with tempfile.TemporaryDirectory(prefix="research-plan-") as folder:
        path = Path(folder) / "plan.md"
        path.write_text(text, encoding="utf-8")
        try:
            await asyncio.to_thread(subprocess.run, [*shlex.split(editor), str(path)], check=True)
        except (OSError, ValueError, subprocess.CalledProcessError):
            problem = f"the editor {editor} failed, and the plan was not changed"
            raise CommandError(f"{problem}: set EDITOR, or use --set FILE") from None
        return _read_text(path)


def _read_text(path: Path | None) -> str:
    if path is None or path == Path("-"):
        return sys.stdin.buffer.read(MAX_PLAN_BYTES).decode("utf-8", "replace")
    return read_start(path, MAX_PLAN_BYTES, "the plan").decode("utf-8", "replace")


# --- questions of `run` at this terminal ---------------------------------------------------------------------------


def asker(handle: ResearchHandle, *, quiet: bool) -> Ask:
    """Return a function that asks at this terminal, or one that prints the commands that answer."""

    async def print_commands(waiting: Waiting) -> None:
        if quiet:  # otherwise the event lines include them
            print_waiting(waiting, handle.research_id)

    if sys.stdin.isatty() and sys.stderr.isatty():
        return partial(ask_here, handle)
    return print_commands


async def ask_here(handle: ResearchHandle, waiting: Waiting) -> None:
    """Ask at this terminal until the run accepts an answer; the end of input sends none."""
    ask = _ask_questions if waiting.kind is WaitKind.CLARIFICATION else _ask_approval
    refused = True
    while refused:
        try:
            reply = await ask(handle, waiting)
            refused = False
        except (MessageRefused, CommandError) as error:
            print_progress(str(error))
    if reply:
        print_progress(reply)
    else:
        print_waiting(waiting, handle.research_id)


async def _ask_questions(handle: ResearchHandle, waiting: Waiting) -> str:
    print_progress("Before anything is searched (an empty line skips a question):")
    answers = []
    for number, question in enumerate(waiting.questions, start=1):
        print_progress(f"{number}. {question}")
        line = await read_line("   > ")
        if line is None:
            return ""
        answers.append(line)
    return await handle.answer(answers, waiting.round or waiting.plan_version)


async def _ask_approval(handle: ResearchHandle, waiting: Waiting) -> str:
    plan = await handle.plan()
    print_plan(plan.with_fields(waiting=None), handle.research_id)
    choices = " · a: answer its questions" if plan.questions else ""
    if plan.objections:
        choices += " · o: begin although a query is called too wide"
    print_progress(
        f"Begin with this plan? y: yes · e: edit it{choices} · n: reject it · or write what should be different"
    )
    line = await read_line("   > ")
    if waiting.is_phrase(line):
        return await handle.approve_plan(plan.version, line)
    match line and line.casefold():
        case None:
            return ""
        case "y" | "yes":
            return await handle.approve_plan(plan.version, await _read_phrase(waiting))
        case "o" | "overrule" if plan.objections:
            return await handle.approve_plan(plan.version, await _read_phrase(waiting), overrule=True)
        case "n" | "no":
            return await handle.reject_plan()
        case "a" | "answer" if plan.questions:
            current = waiting.with_fields(questions=plan.questions, plan_version=plan.version)
            return await _ask_questions(handle, current)
        case "e" | "edit":
            edited = await edit_text(plan_as_text(plan, handle.research_id))
            return await handle.revise_plan(parse_plan(edited), plan.version)
        case "":
            raise CommandError("type y, e or n, or what should be different")
    return await handle.revise_plan({"guidance": line}, plan.version)


async def _read_phrase(waiting: Waiting) -> str | None:
    """Read the approval phrase, if the run requires one."""
    if waiting.phrase is None:
        return None
    return await read_line(f"   type “{waiting.phrase}” > ")


async def read_line(prompt: str) -> str | None:
    """Read a stripped line from standard input; None at its end. Cancellable, unlike reading in a thread."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    return line.strip() if line else None
