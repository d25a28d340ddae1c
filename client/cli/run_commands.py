"""`run`, `start`, `resume`, `watch`: begin a run, follow it."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import AsJson, Quiet, RunId, RunOptions, finish

Question = Annotated[str | None, typer.Argument(metavar="QUESTION", help="what you want to know")]
StrategyName = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="supervisor, reflective, living, orchestrator or recursive"),
]
DepthName = Annotated[str | None, typer.Option("--depth", metavar="NAME", help="auto, light, medium or extended")]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="auto, model or extractive; auto is a model if one is configured"),
]
ModelName = Annotated[str | None, typer.Option("--model", metavar="NAME", help="the model for every role")]
ModelUrl = Annotated[
    str | None, typer.Option("--model-url", metavar="URL", help="an endpoint that speaks the Messages API")
]
Corpus = Annotated[
    str | None, typer.Option("--corpus", metavar="DIR|NAME", help="a folder of documents, or a configured corpus")
]
Web = Annotated[bool, typer.Option("--web", help="search the web besides the corpus")]
RequestFile = Annotated[
    Path | None, typer.Option("--request", metavar="FILE.json", help="a request as JSON; options win over it")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="one value of the request, like limits.max_iterations=2"),
]
NewId = Annotated[str | None, typer.Option("--id", metavar="ID", help="an id of your choice for the run")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="where the report goes [reports/DATE-SLUG]")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="start nothing: the effective request, where text would go, what it may cost and the cap"
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run", help=RUN_HELP)(run)
    app.command("start", help=START_HELP)(start)
    app.command("watch", help=WATCH_HELP)(watch)
    app.command("resume", help=RESUME_HELP)(resume)


RUN_HELP = """Start a run, show it live, write the report.

Starts what is missing: the embedded engine, the index of the folder, the workers. Press Ctrl-C once to cancel
(the state is kept), twice to leave at once. Against a cluster Ctrl-C only detaches.

\b
  research run "How does vacuum work?" --corpus ./manual
  research run "Compare A and B" --corpus ./papers --depth extended --out ./result
  research run "…" --corpus ./manual --set limits.max_iterations=2 --set limits.deadline_seconds=120
  research run --request request.json --json > result.json

\b
With --id: a running one is joined, an unfinished one goes on, of a finished one the stored report is printed;
another question under the same id is refused.
"""


def run(
    question: Question = None,
    *,
    strategy: StrategyName = None,
    depth: DepthName = None,
    engine: EngineName = None,
    model: ModelName = None,
    model_url: ModelUrl = None,
    corpus: Corpus = None,
    web: Web = False,
    request: RequestFile = None,
    assignments: Set = None,
    research_id: NewId = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    dry_run: DryRun = False,
) -> None:
    """Start a run and stay with it."""
    from client.cli.run import run as work

    options = RunOptions(
        question, strategy, depth, engine, model, model_url, corpus, web, request, assignments or [], research_id,
        out, as_json, quiet, dry_run,
    )  # fmt: skip
    finish(work(options))


START_HELP = """Start a run and return its id at once; needs a running engine with workers (`research serve`).

\b
  research start "How does vacuum work?" --corpus manual
  research watch last

\b
With --id: a running one is joined, an unfinished one goes on, one that is completed is refused.
"""


def start(
    question: Question = None,
    *,
    strategy: StrategyName = None,
    depth: DepthName = None,
    engine: EngineName = None,
    model: ModelName = None,
    corpus: Corpus = None,
    web: Web = False,
    request: RequestFile = None,
    assignments: Set = None,
    research_id: NewId = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Start a run and leave it."""
    from client.cli.run import start as work

    options = RunOptions(
        question, strategy, depth, engine, model, None, corpus, web, request, assignments or [], research_id,
        None, as_json, quiet=False, dry_run=dry_run,
    )  # fmt: skip
    finish(work(options))


WATCH_HELP = """Show a run live. Ctrl-C only detaches; the exit code is that of the run.

\b
  research watch last
  research watch 7k3f --then "notify-send done"
"""


def watch(
    research_id: RunId = "last",
    then: Annotated[str | None, typer.Option("--then", metavar="CMD", help="a command to run afterwards")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Follow a run that was started elsewhere."""
    from client.cli.watch import watch as work

    finish(work(research_id, then=then, as_json=as_json, quiet=quiet))


RESUME_HELP = """Go on with a run that was cancelled, failed, timed out or is partial; what was found is kept.

\b
  research resume last
  research resume 7k3f --set limits.max_iterations=5 --set limits.deadline_seconds=1800
  research resume last --now             write the report from what is there
"""


def resume(
    research_id: RunId = "last",
    *,
    now: Annotated[bool, typer.Option("--now", help="search no further: write the report from what is there")] = False,
    assignments: Set = None,
    model: ModelName = None,
    model_url: ModelUrl = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Start again from the stored session."""
    from client.cli.run import resume as work

    options = RunOptions(
        model=model, model_url=model_url, assignments=assignments or [], research_id=research_id, out=out,
        as_json=as_json, quiet=quiet,
    )  # fmt: skip
    finish(work(options, report_now=now))
