"""Options that commands share, and the edge where a command becomes an exit code."""

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from client.cli import output

if TYPE_CHECKING:
    from workers.settings.loading import Flags, Settings
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from client.cli.errors import guarded

NAMED: Final[ContextVar[Path | None]] = ContextVar("config", default=None)
"""The file that the command line names, for as long as the command runs."""

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="a research.toml of which every key counts, in place of the working directory's",
        show_default=False,
    ),
]


class CommandLine(typer.Typer):
    """Commands with `--config`."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        """As Typer's own."""
        register = super().command(*arguments, **options)
        return lambda function: register(with_config(function))


def with_config(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option more, which those that it calls find in `NAMED`."""

    @functools.wraps(command)
    def called(*arguments: Any, config: Path | None = None, **options: Any) -> None:
        before = NAMED.set(config)
        try:
            command(*arguments, **options)
        finally:
            NAMED.reset(before)

    signature = inspect.signature(command)
    option = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ConfigFile)
    called.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    called.__annotations__ = {**command.__annotations__, "config": ConfigFile}
    return called


def command_settings(flags: "Flags | None" = None) -> "Settings":
    """The settings of a command; says what of the working directory's file was not used. Raises `SettingsError`."""
    from workers.settings.loading import Flags, load_settings  # noqa: PLC0415  `--help` needs none of it

    settings = load_settings(replace(flags or Flags(), config=NAMED.get()))
    if settings.left_out:
        output.tell(settings.left_out)
    return settings


RunId = Annotated[str, typer.Argument(metavar="ID", help="the run: its id, a unique part of it, or `last`")]
AsJson = Annotated[
    bool, typer.Option("--json", help="one JSON document on standard output, progress on standard error")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, only the result")]


def finish(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work and end the process with its code."""
    from workers.process_exit import run_to_end  # noqa: PLC0415  `--help` needs none of it

    raise typer.Exit(guarded(lambda: run_to_end(work), _home))


def _home() -> Path:
    from workers.settings.loading import Flags, SettingsError, load_settings  # noqa: PLC0415  only after a crash

    try:
        return load_settings(Flags(config=NAMED.get())).home
    except SettingsError:
        return Path(tempfile.gettempdir())


@dataclass(frozen=True)
class RunOptions:
    """The options as given; null means: not given."""

    question: str | None = None
    strategy: str | None = None
    depth: str | None = None
    engine: str | None = None
    model: str | None = None
    model_url: str | None = None
    corpus: str | None = None
    web: bool = False
    request_file: Path | None = None
    assignments: list[str] = field(default_factory=list)
    research_id: str | None = None
    out: Path | None = None
    as_json: bool = False
    quiet: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class SearchCommandOptions:
    """The options as given; null means: not given."""

    provider: str = "corpus"
    corpus: str | None = None
    limit: int = 10
    source_type: str | None = None
    domains: Sequence[str] = ()
    not_domains: Sequence[str] = ()
    language: str | None = None
    first: str | None = None
    last: str | None = None

    @property
    def narrow_the_web(self) -> bool:
        """Whether anything is given that only the web's providers know."""
        given = (self.source_type, self.domains, self.not_domains, self.language, self.first, self.last)
        return any(given)
