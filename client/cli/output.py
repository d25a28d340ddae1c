"""What the command says: results on standard output, everything else on standard error.

Everything goes through here, and here alone what comes from outside is kept from driving a terminal.
"""

import json
import sys
from collections.abc import Iterable
from itertools import accumulate
from textwrap import TextWrapper
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from client.cli.command_errors import CommandError
from client.view.one_line import cut_at_word
from contracts.texts import visible, visible_json


class SafeConsole(Console):
    """A console whose texts cannot drive the terminal: only its own control codes do."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces to be written."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(visible(piece.text), piece.style)


def terminal() -> Console:
    """The console of standard error; colours and width as the terminal and NO_COLOR want them."""
    return SafeConsole(stderr=True, highlight=False, soft_wrap=False)


def say(line: str | Text = "") -> None:
    """One line of the result, for a person."""
    text = line if isinstance(line, Text) else Text(line)
    console = SafeConsole(highlight=False)
    if console.is_terminal:
        _print_wrapped(console, text)
    else:
        console.print(text, soft_wrap=True)


def say_cut(line: Text) -> None:
    """One line, cut at a word within the width of a terminal; whole in a pipe or a file."""
    console = SafeConsole(highlight=False, soft_wrap=True)
    if console.is_terminal:
        line = cut_at_word(line, console.width)
    console.print(line)


def tell(line: str) -> None:
    """One line beside the result."""
    if sys.stderr.isatty():
        _print_wrapped(terminal(), Text(line))
        return
    sys.stderr.write(visible(line) + "\n")
    sys.stderr.flush()


def _print_wrapped(console: Console, text: Text) -> None:
    """Break lines between words, as a terminal would not; a path or an address that has no room stays whole.

    The terminal breaks such a one by itself, and copies it in one piece.
    """
    for line in text.split("\n", allow_blank=True):
        words = line.plain.lstrip(" ")
        indent = len(line.plain) - len(words)
        breaks = TextWrapper(
            max(1, console.width - indent),
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=False,
            expand_tabs=False,
        )
        ends = list(accumulate(map(len, breaks.wrap(words))))
        for part in line[indent:].divide(ends[:-1]):
            part.rstrip()
            console.print(Text(" " * indent).append(part), soft_wrap=True)


def document(value: Any) -> None:
    """The one JSON document of `--json`."""
    sys.stdout.write(visible_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")
    sys.stdout.flush()


def json_line(value: Any) -> None:
    """One JSON object as one line."""
    sys.stdout.write(visible_json(json.dumps(value, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def raw(data: bytes) -> None:
    """Bytes as they are, for a file or another program; a terminal gets the text that they are."""
    if sys.stdout.isatty():
        data = visible(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def ask(question: str, elsewhere: str) -> str:
    """A line that a person types. Raises `CommandError` with what to do `elsewhere` where there is no terminal."""
    if not sys.stdin.isatty():
        raise CommandError(f"there is no terminal to ask at: {elsewhere}")
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()


def confirm(question: str, elsewhere: str) -> bool:
    """Ask a person on standard error. Raises `CommandError` with what to do `elsewhere` where there is no terminal."""
    if not sys.stdin.isatty():
        raise CommandError(f"there is no terminal to ask at: {elsewhere}")
    return typer.confirm(question, err=True)
