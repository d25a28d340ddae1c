"""What the command says: results on standard output, everything else on standard error."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.text import Text


def terminal() -> Console:
    """The console of standard error; colours and width as the terminal and NO_COLOR want them."""
    return Console(stderr=True, highlight=False, soft_wrap=False)


def say(line: str | Text = "") -> None:
    """One line of the result, for a person."""
    text = line if isinstance(line, Text) else Text(line)
    Console(highlight=False, soft_wrap=True).print(text)


def say_cut(line: Text) -> None:
    """One line, cut at the width of a terminal; whole in a pipe or a file."""
    console = Console(highlight=False, soft_wrap=True)
    if console.is_terminal:
        line.truncate(console.width, overflow="ellipsis")
    console.print(line)


def tell(line: str) -> None:
    """One line beside the result."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def document(value: Any) -> None:
    """The one JSON document of `--json`."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()


def json_line(value: Any) -> None:
    """One JSON object as one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def raw(data: bytes) -> None:
    """Bytes as they are."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
