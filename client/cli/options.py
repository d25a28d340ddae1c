"""Arguments and options that commands share, and the edge where a command becomes an exit code."""

import functools
import inspect
import tempfile
import textwrap
from collections.abc import Callable, Collection, Coroutine
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, get_type_hints

import typer

from client.cli.command_errors import run_guarded

if TYPE_CHECKING:
    from workers.settings.loading import Flags, Settings

NAMED: Final[ContextVar[Path | None]] = ContextVar("config", default=None)
"""The file that the command line names, for as long as the command runs."""
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="a research.toml to read over your own",
        show_default=False,
    ),
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="the run: its id, a unique part of it, or `last`")]
AsJson = Annotated[
    bool, typer.Option("--json", help="one JSON document on standard output, progress on standard error")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, only the result")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What `run`, `start` and `resume` are asked for, each as far as it takes it; None means: not given."""

    question: Annotated[str | None, typer.Argument(metavar="QUESTION", help="what you want to know")] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", metavar="NAME", help="supervisor, reflective, orchestrator; later living, recursive"
        ),
    ] = None
    mode: Annotated[
        str | None,
        typer.Option("--mode", metavar="NAME", help="auto, deep; reflective: quick (15 s), direct (no research)"),
    ] = None
    depth: Annotated[str | None, typer.Option("--depth", metavar="NAME", help="auto, light, medium or extended")] = None
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="auto, model or extractive; auto is a model if one is configured"
        ),
    ] = None
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="the model for every role")] = None
    model_url: Annotated[
        str | None, typer.Option("--model-url", metavar="URL", help="an endpoint that speaks the Messages API")
    ] = None
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", metavar="DIR|NAME", help="a folder of documents, or a configured corpus"),
    ] = None
    corpus_name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="what the folder of --corpus is called [its own name]")
    ] = None
    web: Annotated[bool, typer.Option("--web", help="search the web besides the corpus")] = False
    exclude: Annotated[
        list[str],
        typer.Option("--exclude", metavar="TEXT", help="words, a name or a domain to leave out; repeatable"),
    ] = field(default_factory=list)
    request_file: Annotated[
        Path | None,
        typer.Option(
            "--request", metavar="FILE|-", help="a request as JSON, - for standard input; options win over it"
        ),
    ] = None
    assignments: Annotated[
        list[str],
        typer.Option("--set", metavar="PATH=VALUE", help="one value of the request, like limits.max_iterations=2"),
    ] = field(default_factory=list)
    research_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="an id of your choice for the run")] = (
        None
    )
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="where the report goes [reports/DATE-SLUG]")
    ] = None
    as_json: AsJson = False
    quiet: Quiet = False
    clarify: Annotated[
        str | None,
        typer.Option("--clarify", metavar="NAME", help="off, auto or required: whether you are asked what you mean"),
    ] = None
    approve: Annotated[
        str | None,
        typer.Option("--approve", metavar="NAME", help="none, plan or phrase: whether the plan waits for you"),
    ] = None
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="without a terminal, leave a run that waits for an answer (exit code 9)"),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="start nothing: the effective request, where text would go, what it may cost and the cap",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class SearchCommandOptions:
    """What `search` is asked for; None means: not given."""

    query: Annotated[str, typer.Argument(metavar="QUERY", help="words to look for")]
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="the provider to ask")] = "corpus"
    corpus: Annotated[str | None, typer.Option("--corpus", metavar="DIR|NAME", help="where")] = None
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="at most so many hits")] = 10
    source_type: Annotated[
        str | None, typer.Option("--type", metavar="web|academic|news", help="what sort of source; else web")
    ] = None
    domains: Annotated[list[str], typer.Option("--domain", metavar="HOST", help="only there and below; repeatable")] = (
        field(default_factory=list)
    )
    not_domains: Annotated[
        list[str], typer.Option("--not-domain", metavar="HOST", help="neither there nor below; repeatable")
    ] = field(default_factory=list)
    language: Annotated[str | None, typer.Option("--language", metavar="CODE", help="such as en, de")] = None
    first: Annotated[str | None, typer.Option("--from", metavar="DATE", help="published then or later")] = None
    last: Annotated[str | None, typer.Option("--to", metavar="DATE", help="published then or earlier")] = None
    as_json: AsJson = False

    @property
    def narrow_the_web(self) -> bool:
        """Whether anything is given that only the web's providers know."""
        given = (self.source_type, self.domains, self.not_domains, self.language, self.first, self.last)
        return any(given)


class CommandLine(typer.Typer):
    """Commands that all have `--config`, and whose docstring is their help with examples as they are written."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        """As Typer's own."""

        def register(function: Callable[..., None]) -> Callable[..., None]:
            told = help_of(function)
            # The whole first sentence, which a list of commands would cut.
            first = " ".join(told.split("\n\n")[0].split())
            decorate = super(CommandLine, self).command(*arguments, help=told, short_help=first, **options)
            decorate(_with_config(function))
            return function

        return register


def help_of(command: Callable[..., None]) -> str:
    """The docstring of a command; a paragraph that begins with `research` holds examples, which must not be wrapped."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    examples = {each for each in paragraphs if each.startswith("research ")}
    return "\n\n".join(f"\b\n{textwrap.indent(each, '  ')}" if each in examples else each for each in paragraphs)


def takes(kind: type[Any], without: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as its options; it gets them as one value, its first argument."""
    hints = get_type_hints(kind, include_extras=True)
    taken = [each for each in fields(kind) if each.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            command(kind(**{each.name: given.pop(each.name) for each in taken}), **given)

        own = list(inspect.signature(command).parameters.values())[1:]
        return _with_parameters(
            call, [*own, *(_parameter(each.name, hints[each.name], _default(each)) for each in taken)]
        )

    return decorate


def _default(option: Any) -> Any:
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _with_parameters(command: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """What Typer reads a command's options from."""
    ordered = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in ordered}
    return command


def _with_config(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option more, which those that it calls find in `NAMED`."""

    @functools.wraps(command)
    def call(*, config: Path | None = None, **options: Any) -> None:
        before = NAMED.set(config)
        try:
            command(**options)
        finally:
            NAMED.reset(before)

    own = inspect.signature(command).parameters.values()
    return _with_parameters(call, [*own, _parameter("config", ConfigFile, None)])


def command_settings(flags: "Flags | None" = None) -> "Settings":
    """The settings of a command. Raises `SettingsError`."""
    from workers.settings.loading import Flags, load_settings  # noqa: PLC0415  `--help` needs none of it

    return load_settings(replace(flags or Flags(), config=NAMED.get()))


def finish(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work and end the process with its code."""
    from workers.process_exit import run_to_end  # noqa: PLC0415  `--help` needs none of it

    raise typer.Exit(run_guarded(lambda: run_to_end(work), _home))


def _home() -> Path:
    from workers.settings.loading import Flags, SettingsError, load_settings  # noqa: PLC0415  only after a crash

    try:
        return load_settings(Flags(config=NAMED.get())).home
    except SettingsError:
        return Path(tempfile.gettempdir())
