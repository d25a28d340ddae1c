"""Options that several commands have, and the frame of every command: coroutine in, exit code out."""

import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Coroutine
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from client.cli.context import open_context
from client.cli.errors import run_guarded
from workers.own_process import run_to_end
from workers.settings.loading import Flags

KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
Work = Callable[..., Coroutine[Any, Any, int | None]]


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
Corpus = Annotated[
    str | None, typer.Option("--corpus", metavar="DIR|NAME", help="a folder of documents, or a configured corpus")
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `run`, `ask`, `start` and `resume`; None means not given."""

    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION|-", help="what you want to know; - for standard input")
    ] = None
    corpus: Corpus = None
    web: Annotated[bool, typer.Option("--web", help="search the web besides the corpus")] = False
    exclude: Annotated[
        list[str], typer.Option("--exclude", metavar="WORDS|HOST", help="leave this out of the research; repeatable")
    ] = field(default_factory=list)
    protect: Annotated[
        list[str], typer.Option("--protect", metavar="ADDRESS", help="read this first, never drop it; repeatable")
    ] = field(default_factory=list)
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="supervisor, reflective, orchestrator, living, recursive")
    ] = None
    depth: Annotated[str | None, typer.Option("--depth", help="auto, light, medium or extended")] = None
    engine: Annotated[str | None, typer.Option("--engine", help="auto, model or extractive")] = None
    model: ModelName = None
    model_url: ModelUrl = None
    request_file: Annotated[
        Path | None, typer.Option("--request", metavar="FILE|-", help="a request as JSON; options win over it")
    ] = None
    assignments: Annotated[
        list[str], typer.Option("--set", metavar="PATH=VALUE", help="a value, like limits.max_iterations=2")
    ] = field(default_factory=list)
    research_id: Annotated[str | None, typer.Option("--id", help="an id of your choice for the run")] = None
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="where the report goes [reports/DATE-SLUG]")
    ] = None
    clarify: Annotated[str | None, typer.Option("--clarify", help="questions to you: off, auto, required")] = None
    approve: Annotated[str | None, typer.Option("--approve", help="the plan waits for: none, plan, phrase")] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="start nothing: print request, egress, estimate")] = False
    as_json: AsJson = False
    quiet: Quiet = False
    config: ConfigFile = None

    def flags(self) -> Flags:
        """Give the options that change settings."""
        return Flags(model=self.model, model_url=self.model_url, config=self.config)

    def values(self) -> dict[str, Any]:
        """Give the options that are part of the request."""
        gates = {name: value for name, value in (("clarify", self.clarify), ("approve", self.approve)) if value}
        given = {
            "query": self.question,
            "strategy": self.strategy,
            "depth": self.depth,
            "engine": self.engine,
            "web": self.web or None,
            "exclude": self.exclude or None,
            "protected_sources": self.protect or None,
            "gates": gates or None,
            "models": None if self.model is None else dict.fromkeys(("simple", "analytical", "complex"), self.model),
        }
        return {name: value for name, value in given.items() if value is not None}


class Commands(typer.Typer):
    """The commands of one file: coroutines that may give an exit code, and whose docstrings are their help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(rich_markup_mode=None, **options)

    def command(self, name: str, *, without: Collection[str] = ()) -> Callable[[Any], Any]:  # type: ignore[override]
        """Register a coroutine function as a command.

        A parameter `context` is opened for it with the settings of `--config`. The fields of a parameter `options`, a
        dataclass, become options of the command line, except those that it is `without`.
        """

        def register(work: Work) -> Work:
            parameters = {each.name: each for each in inspect.signature(work).parameters.values()}
            options, context = parameters.pop("options", None), parameters.pop("context", None)
            shared = {} if options is None else _parameters_of(options.annotation, without)
            if context is not None and options is None:
                parameters["config"] = inspect.Parameter("config", KEYWORD, default=None, annotation=ConfigFile)

            @functools.wraps(work)
            def call(**given: Any) -> None:
                if options is not None:
                    given["options"] = options.annotation(**{name: given.pop(name) for name in shared})
                run = work if context is None else functools.partial(_in_context, work)
                raise typer.Exit(run_guarded(lambda: run_to_end(run(**given))))

            call.__signature__ = inspect.Signature([*parameters.values(), *shared.values()])  # type: ignore[attr-defined]
            super(Commands, self).command(name, help=help_of(work))(call)
            return work

        return register


async def _in_context(work: Work, *, config: Path | None = None, **given: Any) -> int | None:
    """Run a command in the context of its options."""
    async with open_context(given["options"].flags() if "options" in given else Flags(config=config)) as context:
        return await work(context, **given)


def _parameters_of(options: Any, without: Collection[str]) -> dict[str, inspect.Parameter]:
    """Give the fields of the options as parameters of a function."""
    return {
        each.name: inspect.Parameter(
            each.name,
            KEYWORD,
            default=each.default if each.default_factory is MISSING else each.default_factory(),
            annotation=each.type,
        )
        for each in fields(options)
        if each.name not in without
    }


def help_of(work: Callable[..., Any]) -> str:
    """Give the docstring of a command; a paragraph that starts with `research` has examples, which are not wrapped."""
    paragraphs = (inspect.getdoc(work) or "").split("\n\n")
    return "\n\n".join(
        f"\b\n{textwrap.indent(each, '  ')}" if each.startswith("research ") else each for each in paragraphs
    )
