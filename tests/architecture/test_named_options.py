"""Messages and pages name commands and options that exist: a remedy that does not work is worse than none."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from client.cli.app import app
from tests.architecture.repository import PACKAGES, ROOT, python_files, tracked_files

CALL = re.compile(r"(?<![\w./-])research ([a-z]+)([^`\n;→·()]*)")
QUOTED = re.compile(r"`research ([a-z]+)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
OF_OTHERS = {"--from", "--headless", "--ui-disable-news-fetch", "--retention-days", "--wait-seconds"}
"""Options of the Temporal server, of kubectl and of `python -m workers.setup`."""


def options_of(command: Any) -> set[str]:
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union({"--help"}, *(options_of(below) for below in getattr(command, "commands", {}).values()))


ROOT_COMMAND: Any = typer.main.get_command(app)
COMMANDS: dict[str, set[str]] = {name: options_of(command.load()) for name, command in ROOT_COMMAND.commands.items()}
KNOWN = options_of(ROOT_COMMAND).union(OF_OTHERS, *COMMANDS.values())


def texts_of_code() -> Iterator[tuple[str, str]]:
    """Every text of the product's code, docstrings too, with its place."""
    for path in python_files(*PACKAGES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def texts_of_pages() -> Iterator[tuple[str, str]]:
    """The user's pages; decisions and the changelog name commands of earlier versions."""
    for path in tracked_files():
        if path.suffix == ".md" and path.parent in (ROOT, ROOT / "docs") and path.name != "CHANGELOG.md":
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def wrong_calls(text: str) -> list[str]:
    """Commands that are none, and options that their command does not take."""
    wrong = [f"research {name}" for name in QUOTED.findall(text) if name not in COMMANDS]
    for name, rest in CALL.findall(text):
        wrong += [f"research {name} {each}" for each in OPTION.findall(rest) if each not in COMMANDS.get(name, KNOWN)]
    return wrong


def test_every_option_that_a_message_names_exists() -> None:
    """Of whichever command."""
    assert not {
        place: option for place, text in texts_of_code() for option in OPTION.findall(text) if option not in KNOWN
    }


def test_every_call_that_is_advised_is_one() -> None:
    """The command exists, and takes the options that stand behind it, in the code and on the pages."""
    assert not {place: wrong for place, text in (*texts_of_code(), *texts_of_pages()) if (wrong := wrong_calls(text))}


def test_every_command_is_documented() -> None:
    """A command that no page names cannot be found by a reader."""
    named = {name for _, text in texts_of_pages() for name, _ in CALL.findall(text)}
    assert COMMANDS.keys() <= named
