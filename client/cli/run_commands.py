"""Commands that start runs and talk to them: names, options and help."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import AsJson, CommandLine, Quiet, RunId, RunOptions, finish, takes

runs = CommandLine()


NOT_OF_RESUME = (
    "question", "strategy", "mode", "depth", "engine", "corpus", "corpus_name", "web", "request_file", "research_id",
    "clarify", "approve", "dry_run",
)  # fmt: skip


@runs.command("run")
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Start a run, show it live, write the report.

    Starts what is missing: the dev server, the index of the folder, the workers. Press Ctrl-C once to cancel
    (the state is kept), twice to leave at once. Against a cluster Ctrl-C only detaches.

    research run "How does vacuum work?" --corpus ./manual
    research run "Compare A and B" --corpus ./papers --depth extended --out ./result
    research run "…" --corpus ./manual --set limits.max_iterations=2 --set limits.deadline_seconds=120
    research run --request request.json --json > result.json
    research run --request - < request.json
    research run "…" --corpus ./manual/v16 --name manual-16

    With --id: a running one is joined, an unfinished one goes on, of a finished one the stored report is printed;
    another question under the same id is refused.
    """
    from client.cli.run import run as work

    finish(work(options))


@runs.command("ask")
@takes(RunOptions, without=("research_id", "request_file", "dry_run"))
def ask(
    options: RunOptions,
    given: Annotated[str, typer.Argument(metavar="ID", help="the run that the question follows, or `last`")],
) -> None:
    """Ask a follow-up question: a new run that is offered the evidence of an earlier one first.

    research ask last "And what does it cost?"
    research ask 7k3f "How is it in version 16?" --depth light
    """
    from client.cli.run import ask_again as work

    finish(work(given, options))


@runs.command("start")
@takes(RunOptions)
def start(options: RunOptions) -> None:
    """Start a run and return its id at once; needs a running server with workers (`research serve`).

    research start "How does vacuum work?" --corpus manual
    research start "How does vacuum work?" --corpus manual --out ./result --quiet
    research watch last

    Name the model as the workers were started with it. `research watch` writes the report into the folder of --out.
    With --id: a running one is joined, an unfinished one goes on, one that is completed is refused.
    """
    from client.cli.run import start as work

    finish(work(options))


@runs.command("watch")
def watch(
    research_id: RunId = "last",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="write the report there once it is over")
    ] = None,
    then: Annotated[str | None, typer.Option("--then", metavar="CMD", help="a command to run afterwards")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show a run live. Ctrl-C only detaches; the exit code is that of the run.

    research watch last
    research watch 7k3f --then "notify-send done"
    """
    from client.cli.watch import watch as work

    finish(work(research_id, then=then, out=out, as_json=as_json, quiet=quiet))


@runs.command("resume")
@takes(RunOptions, without=NOT_OF_RESUME)
def resume(
    options: RunOptions,
    given: RunId = "last",
    now: Annotated[bool, typer.Option("--now", help="search no further: write the report from what is there")] = False,
) -> None:
    """Go on with a run that was cancelled, failed, timed out or is partial; what was found is kept.

    research resume last
    research resume 7k3f --set limits.max_iterations=5 --set limits.deadline_seconds=1800
    research resume last --now             write the report from what is there
    """
    from client.cli.run import resume as work

    finish(work(given, options, report_now=now))


@runs.command("steer")
def steer(
    research_id: RunId, text: Annotated[str, typer.Argument(metavar="TEXT", help="what the run should do")]
) -> None:
    """Tell a running run what to look at or to leave out; the answer says what is done.

    research steer last "Leave version 9 out, look at the settings of version 16"
    research steer last "only from example.org"
    """
    from client.cli.sent_messages import steer as work

    finish(work(research_id, text))


@runs.command("plan")
def plan(
    research_id: RunId = "last",
    *,
    edit: Annotated[bool, typer.Option("--edit", help="open it in $EDITOR, and send what you save")] = False,
    set_file: Annotated[
        Path | None, typer.Option("--set", metavar="FILE|-", help="put this plan in its place: text, or JSON")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the plan of a run; while it waits for approval, put an edited one in its place.

    research plan last
    research plan 7k3f --edit
    research plan 7k3f --set plan.json     {"brief": "…", "sub_queries": ["…", "…"]}
    """
    from client.cli.replies_of_person import plan as work

    finish(work(research_id, edit=edit, set_file=set_file, as_json=as_json))


@runs.command("answer")
def answer(
    research_id: RunId = "last",
    answers: Annotated[
        list[str] | None, typer.Argument(metavar="ANSWER", help="one for each question, in their order")
    ] = None,
    *,
    skip: Annotated[bool, typer.Option("--skip", help="go on without an answer")] = False,
) -> None:
    """Answer what a run asks about its question; asks you in a terminal.

    research answer last
    research answer 7k3f "the programming language" "since 2020"
    """
    from client.cli.replies_of_person import answer as work

    finish(work(research_id, list(answers or []), skip=skip))


@runs.command("approve")
def approve(
    research_id: RunId = "last",
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="of the plan that you have seen; else it is shown")
    ] = None,
    phrase: Annotated[
        str | None, typer.Option("--phrase", metavar="TEXT", help="what the run wants you to repeat, if it does")
    ] = None,
) -> None:
    """Approve the plan of a run, so that its searches begin.

    research approve last
    research approve 7k3f --version 2
    """
    from client.cli.replies_of_person import approve as work

    finish(work(research_id, version, phrase))


@runs.command("reject")
def reject(
    research_id: RunId = "last",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="kept with the run")] = "",
) -> None:
    """Reject the plan of a run: it ends without any work, and `research resume` asks again.

    research reject 7k3f --reason "too wide"
    """
    from client.cli.replies_of_person import reject as work

    finish(work(research_id, reason))


@runs.command("stop")
def stop(research_id: RunId = "last") -> None:
    """Ask a run to write its report now, from what it has."""
    from client.cli.sent_messages import stop as work

    finish(work(research_id))


@runs.command("cancel")
def cancel(
    research_id: RunId = "last",
    *,
    force: Annotated[
        bool, typer.Option("--force", help="end a run that reacts to nothing; what it did since its checkpoint is lost")
    ] = False,
) -> None:
    """Stop a run without a report; its state is kept and `research resume` goes on.

    research cancel last
    research cancel 7k3f --force           ended by the server, for a run whose workers cannot go on with it
    """
    from client.cli.sent_messages import cancel as work

    finish(work(research_id, force=force))


@runs.command("delete")
def delete(
    research_id: RunId = "",
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="all runs saved last so long ago")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Remove a run: session, journal of calls, history, and stored documents that no other run uses.

    Reports that were written to a folder stay, and documents that a run going on may use: the next delete removes them.

    research delete --older-than 30
    """
    from client.cli.delete import delete as work
    from client.cli.delete import delete_older_than

    if bool(research_id) == (older_than is not None):
        raise typer.BadParameter("name one run, or say --older-than DAYS")
    finish(work(research_id, yes=yes) if older_than is None else delete_older_than(older_than, yes=yes))
