"""Options shared by several commands, and the wrapper of every command: coroutine in, exit code out."""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, BadParameter, Exit, Option, Typer

from client.cli.context import open_context
from client.cli.output import run_guarded
from workers.own_process import run_to_end
from workers.settings.loading import Flags

CommandFunction = Callable[..., Coroutine[Any, Any, int | None]]


ALLOWED_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(value: str | None) -> str | None:
    """Check and return a name that a person chose. Raises `BadParameter`."""
    if value is not None and not ALLOWED_ID.fullmatch(value):
        raise BadParameter("up to 64 letters, digits, dots, underscores and hyphens are allowed")
    return value


def check_id(value: str | None) -> str | None:
    """Check and return an id that a person chose for a run. Raises `BadParameter`."""
    if value == "last":
        raise BadParameter("`last` means the newest run: choose another id")
    return check_name(value)


def _require_name(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise BadParameter("it is empty: name a model, or leave the option out")
    return value


RunId = Annotated[str, Argument(metavar="ID", help="id of the run, a unique beginning or end of it, or `last`")]
ConfigFile = Annotated[Path | None, Option("--config", metavar="FILE", help="a research.toml that overrides your own")]
AsJson = Annotated[bool, Option("--json", help="one JSON document on standard output, progress on standard error")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="no progress, only the result")]
ModelName = Annotated[str | None, Option(metavar="NAME", help="the model for every role", callback=_require_name)]
ModelUrl = Annotated[str | None, Option(metavar="URL", help="an endpoint of the Messages API or chat completions")]
Corpus = Annotated[str | None, Option(metavar="DIR|NAME", help="a folder of documents, or a configured corpus")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `run`, `ask`, `start`, `resume` and `refresh`; None means not given."""

    question: Annotated[str | None, Argument(metavar="QUESTION|-", help="your question; - for standard input")] = None
    corpus: Corpus = None
    web: Annotated[bool, Option("--web", help="search the web besides the corpus")] = False
    exclude: Annotated[list[str] | None, Option(metavar="WORDS|HOST", help="exclude this; repeatable")] = None
    protect: Annotated[list[str] | None, Option(metavar="ADDRESS", help="always read this source; repeatable")] = None
    strategy: Annotated[str | None, Option(help="supervisor, reflective, orchestrator, living, recursive")] = None
    depth: Annotated[str | None, Option(help="auto, light, medium or extended")] = None
    engine: Annotated[str | None, Option(help="auto, model or extractive")] = None
    model: ModelName = None
    model_url: ModelUrl = None
    request_file: Annotated[Path | None, Option("--request", metavar="FILE|-", help="JSON; options override it")] = None
    assignments: Annotated[list[str] | None, Option("--set", metavar="PATH=VALUE", help="any request field")] = None
    research_id: Annotated[str | None, Option("--id", help="id of the run", callback=check_id)] = None
    out: Annotated[Path | None, Option(metavar="DIR", help="folder of the report [reports/DATE-SLUG]")] = None
    clarify: Annotated[str | None, Option(help="ask what the question means: off, auto, required")] = None
    approve: Annotated[str | None, Option(help="wait for approval of the plan: none, plan, phrase")] = None
    dry_run: Annotated[bool, Option("--dry-run", help="print request, egress and estimate; start nothing")] = False
    as_json: AsJson = False
    quiet: Quiet = False
    config: ConfigFile = None
    again: Annotated[bool, Option("--again", hidden=True)] = False
    """True for a command that took the place of one whose worker ended."""

    def flags(self) -> Flags:
        """Return the options that change settings."""
        return Flags(model=self.model, model_url=self.model_url, config=self.config)

    def values(self) -> dict[str, Any]:
        """Return the options that are part of the request."""
        gates = {name: value for name, value in (("clarify", self.clarify), ("approve", self.approve)) if value}
        fields = {
            "query": self.question,
            "corpus": self.corpus,
            "strategy": self.strategy,
            "depth": self.depth,
            "engine": self.engine,
            "web": self.web or None,
            "exclude": self.exclude or None,
            "protected_sources": self.protect or None,
            "gates": gates or None,
            "models": None if self.model is None else dict.fromkeys(("simple", "analytical", "complex"), self.model),
        }
        return {name: value for name, value in fields.items() if value is not None}


class Commands(Typer):
    """The commands of one file: coroutines that may return an exit code, with their docstrings as help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(rich_markup_mode=None, **options)

    def command(self, name: str, *, without: Collection[str] = ()) -> Callable[[Any], Any]:  # type: ignore[override]
        """Register a coroutine function as a command.

        A parameter `context` receives a context opened with the settings of `--config`. The fields of a parameter
        `options`, a dataclass, become options of the command line, except those in `without`.
        """

        def register(function: CommandFunction) -> CommandFunction:
            parameters = dict(inspect.signature(function).parameters)
            options = parameters.pop("options", None)
            context = parameters.pop("context", None)
            shared = {}
            if options is not None:
                shared = dict(inspect.signature(options.annotation).parameters)
            shared = {field: parameter for field, parameter in shared.items() if field not in without}
            if context is not None and options is None:
                keyword = inspect.Parameter.KEYWORD_ONLY
                parameters["config"] = inspect.Parameter("config", keyword, default=None, annotation=ConfigFile)

            @functools.wraps(function)
            def call(**kwargs: Any) -> None:
                if options is not None:
                    kwargs["options"] = options.annotation(**{field: kwargs.pop(field) for field in shared})
                if context is None:
                    execute = function
                else:
                    execute = functools.partial(_in_context, function)
                raise Exit(run_guarded(lambda: run_to_end(execute(**kwargs))))

            call.__signature__ = inspect.Signature([*parameters.values(), *shared.values()])  # type: ignore[attr-defined]
            super(Commands, self).command(name, help=help_of(function))(call)
            return function

        return register


async def _in_context(function: CommandFunction, *, config: Path | None = None, **kwargs: Any) -> int | None:
    """Run a command in the context of its options."""
    async with open_context(kwargs["options"].flags() if "options" in kwargs else Flags(config=config)) as context:
        return await function(context, **kwargs)


def help_of(function: Callable[..., Any]) -> str:
    """Return the docstring of a command; paragraphs that start with `research` are examples and not wrapped."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(
        f"\b\n{textwrap.indent(text, '  ')}" if text.startswith("research ") else text for text in paragraphs
    )
