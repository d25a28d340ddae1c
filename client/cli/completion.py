"""Completion of command lines by bash, zsh and fish: ids of runs, corpora, strategies, settings and their values.

A shell waits for it at every press of a key, so it imports no command, connects to nothing and starts nothing: commands
are described by a table that is generated from them, runs are the stored ones of this machine's home.
"""

import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer.main

from workers.settings.places import find_places

TABLE: Final = Path(__file__).with_name("completions.json")
MAX_RUNS: Final = 40
"""The newest ones, offered with their questions."""
MAX_SCANNED: Final = 5_000
HEAD_BYTES: Final = 16_384
HELP_CHARACTERS: Final = 60
UNSAFE_HELP: Final = re.compile(r"[^\w .,?!-]+")
"""Removed from questions: zsh evaluates what a completion prints, and anybody may have asked them."""
SAFE_VALUE: Final = re.compile(r"[\w.:/@=+-]+")
STRATEGIES: Final = "durable_research.strategies"
"""Entry points of installed strategies; as `contracts.strategies` has it, which a test compares."""

Offer = str | tuple[str, str]
"""A word, or a word with its explanation."""
Source = Callable[[str], Iterator[Offer]]
"""Yields the words for what a person has typed so far."""


@cache
def read_table() -> Mapping[str, Any]:
    """Read the commands and the settings of a request."""
    table: Mapping[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def completing_command(name: str) -> Any:
    """Return a command, or a group of commands, that has the parameters of the real one and does nothing."""
    app = typer.Typer(add_completion=False)
    _add(app, name, read_table()["commands"][name])
    app.command("another")(lambda: None)  # a program of one command would have no names
    return typer.main.get_group(app).commands[name]


def _add(app: typer.Typer, name: str, described: Mapping[str, Any]) -> None:
    if "commands" in described:
        group = typer.Typer(add_completion=False, help=described["help"])
        for inner, command in described["commands"].items():
            _add(group, inner, command)
        app.add_typer(group, name=name)
        return

    def nothing(**_: Any) -> None:
        """Do nothing."""

    parameters = [_parameter(each) for each in described["parameters"]]
    nothing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app.command(name, help=described["help"])(nothing)


def _parameter(described: Mapping[str, Any]) -> inspect.Parameter:
    source = _source(described)
    options = described.get("options", ())
    kind: Any = list[str] | None if described.get("multiple") else str | None
    if described.get("flag"):
        kind = bool
    if options:
        made: Any = typer.Option(*options, help=described.get("help"), autocompletion=source)
    else:
        made = typer.Argument(help=described.get("help"), autocompletion=source)
    default = False if kind is bool else None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(described["name"], keyword, default=default, annotation=Annotated[kind, made])


def _source(described: Mapping[str, Any]) -> Callable[[str], list[Offer]] | None:
    """Return the completion of a parameter; None for one that the shell completes as a file."""
    source = SOURCES.get(described.get("kind", ""))
    if values := described.get("values"):
        source = partial(_values, values)
    if source is None:
        return None

    def complete(incomplete: str) -> list[Offer]:
        return list(source(incomplete))

    return complete


def complete_after_equals(app: Callable[[], object]) -> None:
    """Complete a word that bash has split at `=`: print only what follows the sign, which is what bash replaces."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            app()
    finally:
        sys.stdout.write("".join(f"{line.rpartition('=')[2]}\n" for line in printed.getvalue().splitlines()))


# --- what is offered --------------------------------------------------------------------------------------------------


def _values(values: Iterable[str], incomplete: str) -> Iterator[Offer]:
    yield from (value for value in values if value.startswith(incomplete) and SAFE_VALUE.fullmatch(value))


def _runs(incomplete: str) -> Iterator[Offer]:
    """Yield the newest stored runs with their questions, by the beginning of their ids."""
    places = find_places()
    if "last".startswith(incomplete):
        yield "last", "the newest run"
    if not places.stores_runs:
        return
    folder = places.home / "sessions"
    for research_id in _newest(folder, incomplete):
        head = _head(folder / f"{research_id}.json")
        if places.tenant and head.get("tenant") != places.tenant:
            continue
        question = " ".join(UNSAFE_HELP.sub(" ", str(head.get("query", ""))).split())[:HELP_CHARACTERS]
        yield (research_id, question) if question else research_id


def _newest(folder: Path, incomplete: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            files = [(entry.name.removesuffix(".json"), entry) for entry in entries if entry.name.endswith(".json")]
        wanted = [pair for pair in files[:MAX_SCANNED] if pair[0].startswith(incomplete)]
        wanted.sort(key=lambda pair: pair[1].stat().st_mtime_ns, reverse=True)
    except OSError:
        return []
    return [name for name, _ in wanted[:MAX_RUNS] if SAFE_VALUE.fullmatch(name)]


def _head(path: Path) -> Mapping[str, Any]:
    """Return the first line of a stored run; nothing of one that cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.read(HEAD_BYTES).partition(b"\n")[0]
        head = json.loads(first.rstrip().removesuffix(b",") + b"}")["head"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return head if isinstance(head, dict) else {}


def _corpora(incomplete: str) -> Iterator[Offer]:
    """Yield the names of corpora, and folders for what looks like one."""
    yield from _values(find_places().corpora, incomplete)
    parent, _, beginning = incomplete.rpartition("/")
    folder = Path(f"{parent}/" if "/" in incomplete else ".").expanduser()
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_dir() and each.name.startswith(beginning))
    except OSError:
        return
    shown = [name for name in names if beginning.startswith(".") or not name.startswith(".")]
    prefix = ""
    if "/" in incomplete:
        prefix = f"{parent}/"
    elif incomplete in ("", "."):
        prefix = "./"
    yield from (f"{prefix}{name}" for name in shown if SAFE_VALUE.fullmatch(name))


def _strategies(incomplete: str) -> Iterator[Offer]:
    from importlib.metadata import entry_points  # noqa: PLC0415  asked for here alone

    installed = [entry.name for entry in entry_points(group=STRATEGIES)]
    yield from _values(dict.fromkeys([*read_table()["settings"]["strategy"], *installed]), incomplete)


def _models(incomplete: str) -> Iterator[Offer]:
    yield from _values(find_places().models, incomplete)


def _providers(incomplete: str) -> Iterator[Offer]:
    servers = [f"mcp.{name}" for name in find_places().servers]
    yield from _values([*read_table()["settings"]["search.providers"], *servers], incomplete)


def _settings(incomplete: str) -> Iterator[Offer]:
    """Yield names of settings with `=`, and the values of one that is named."""
    settings: Mapping[str, list[str]] = read_table()["settings"]
    name, equals, beginning = incomplete.partition("=")
    if not equals:
        matching = [each for each in settings if each.startswith(name)]
        if len(matching) != 1 or not settings[matching[0]]:
            yield from (f"{each}=" for each in matching)
            return
        name = matching[0]
    sources: dict[str, Source] = {"strategy": _strategies, "search.providers": _providers, "corpus": _corpora}
    found = sources.get(name, partial(_values, settings.get(name, [])))
    yield from (f"{name}={value}" for value in found(beginning) if isinstance(value, str))


SOURCES: Final[Mapping[str, Source]] = {
    "run": _runs,
    "corpus": _corpora,
    "corpus name": lambda incomplete: _values(find_places().corpora, incomplete),
    "strategy": _strategies,
    "model": _models,
    "provider": _providers,
    "setting": _settings,
}
