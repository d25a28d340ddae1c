"""Print results on standard output and everything else on standard error, neither of which can drive a terminal."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from client.cli.errors import CommandError
from client.view.words import pasteable
from contracts.texts import visible, visible_json


class SafeConsole(Console):
    """A console that prints control characters of texts as visible signs."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Give the pieces to be written."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(visible(piece.text), piece.style)


def error_console() -> Console:
    """Make a console on standard error."""
    return SafeConsole(stderr=True, highlight=False, soft_wrap=False)


def print_result(line: str | Text = "", *, cut: bool = False) -> None:
    """Print a line of the result, on a terminal `cut` at its width if wanted; else the terminal wraps it."""
    text = line if isinstance(line, Text) else Text(line)
    console = SafeConsole(highlight=False)
    if cut and console.is_terminal:
        console.print(text, no_wrap=True, overflow="ellipsis")
    else:
        console.print(text, soft_wrap=True)


def print_progress(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(visible(line) + "\n")
    sys.stderr.flush()


def print_hint(line: str) -> None:
    """Print a line on standard error whose commands can be pasted."""
    print_progress(pasteable(line))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one JSON document; without `indent`, on one line."""
    sys.stdout.write(visible_json(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")
    sys.stdout.flush()


def print_bytes(data: bytes) -> None:
    """Print bytes unchanged for a file or another program, and as safe text on a terminal."""
    if sys.stdout.isatty():
        data = visible(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def confirm(question: str, instead: str) -> bool:
    """Ask yes or no. Raises `CommandError` with what to do `instead` where there is no terminal."""
    if not sys.stdin.isatty():
        raise CommandError(f"there is no terminal to ask at: {instead}")
    return typer.confirm(question, err=True)
