"""Options that several commands have, and the frame of every command: coroutine in, exit code out."""

import functools
import inspect
import textwrap
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from client.cli.errors import run_guarded
from workers.process_exit import run_to_end


def _require_name(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise typer.BadParameter("it is empty: name a model, or leave the option out")
    return value


RunId = Annotated[
    str, typer.Argument(metavar="ID", help="the run: its id, a unique beginning or the end of it, or `last`")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="a research.toml to read over your own")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="one JSON document on standard output, progress on standard error")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, only the result")]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="the model for every role", callback=_require_name)
]
ModelUrl = Annotated[
    str | None, typer.Option("--model-url", metavar="URL", help="an endpoint that speaks the Messages API")
]
Question = Annotated[str | None, typer.Argument(metavar="QUESTION", help="what you want to know")]
Strategy = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="supervisor, reflective, orchestrator; later living, recursive"),
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="NAME", help="auto, deep; reflective: quick (15 s), direct (no research)"),
]
Depth = Annotated[str | None, typer.Option("--depth", metavar="NAME", help="auto, light, medium or extended")]
Engine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="auto, model or extractive; auto is a model if one is configured"),
]
Corpus = Annotated[
    str | None, typer.Option("--corpus", metavar="DIR|NAME", help="a folder of documents, or a configured corpus")
]
Web = Annotated[bool, typer.Option("--web", help="search the web besides the corpus")]
Exclude = Annotated[
    list[str], typer.Option("--exclude", metavar="WORDS|HOST", help="leave this out of the research; repeatable")
]
RequestFile = Annotated[
    Path | None,
    typer.Option("--request", metavar="FILE|-", help="a request as JSON, - for standard input; options win over it"),
]
Assignments = Annotated[
    list[str],
    typer.Option("--set", metavar="PATH=VALUE", help="one value of the request, like limits.max_iterations=2"),
]
ChosenId = Annotated[str | None, typer.Option("--id", metavar="ID", help="an id of your choice for the run")]
ReportFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="where the report goes [reports/DATE-SLUG]")
]
Clarify = Annotated[
    str | None,
    typer.Option("--clarify", metavar="NAME", help="off, auto or required: whether you are asked what you mean"),
]
Approve = Annotated[
    str | None,
    typer.Option("--approve", metavar="NAME", help="none, plan or phrase: whether the plan waits for you"),
]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="without a terminal, leave a run that waits for an answer (exit code 9)")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="start nothing: print the effective request, where text would go, and the estimate"),
]


class Commands(typer.Typer):
    """The commands of one file: coroutines that give an exit code, and whose docstrings are their help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(rich_markup_mode=None, **options)

    def command(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a coroutine function as a command."""

        def register(work: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., Coroutine[Any, Any, int]]:
            @functools.wraps(work)
            def call(**given: Any) -> None:
                raise typer.Exit(run_guarded(lambda: run_to_end(work(**given))))

            super(Commands, self).command(*arguments, help=help_of(work), **options)(call)
            return work

        return register


def help_of(work: Callable[..., Any]) -> str:
    """Give the docstring of a command; a paragraph that begins with `research` has examples, which are not wrapped."""
    paragraphs = (inspect.getdoc(work) or "").split("\n\n")
    return "\n\n".join(
        f"\b\n{textwrap.indent(each, '  ')}" if each.startswith("research ") else each for each in paragraphs
    )
