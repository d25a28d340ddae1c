"""`--config FILE`: one option that every command has, and the settings as a command reads them."""

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
