"""Write `client/cli/completions.json` from the commands, so that a shell completes them without importing them.

usage: python docs/generate_completions.py      (a test compares the file with what this script would write)
"""  # noqa: INP001 - a folder of pages is no package

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

import typer.main

from client.cli.app import app
from client.cli.completion import TABLE
from contracts.names import POOLS
from contracts.request import Approve, Clarify, Depth, ResearchRequest
from contracts.strategies import BUILT_IN as STRATEGIES
from providers.search.declarations import BUILT_IN

VALUES: dict[str, list[str]] = {
    "--depth": [each.value for each in Depth],
    "--engine": ["auto", "model", "extractive"],
    "--clarify": [each.value for each in Clarify],
    "--approve": [each.value for each in Approve],
    "--pool": list(POOLS),
    "--every": ["1d", "12h", "30m", "off"],
}
KINDS = {
    "--strategy": "strategy",
    "PATH=VALUE": "setting",
    "--model": "model",
    "--provider": "provider",
    "DIR|NAME": "corpus",
    "ID": "run",
    "ID|FILE": "run",
}
"""By option or metavar: what is completed by looking around at the time."""


def parameter(command: str, given: Any) -> dict[str, Any]:
    """One option or argument, as the shell needs to know it."""
    options = [name for name in given.opts if name.startswith("-")]
    kind = KINDS.get(given.opts[0]) or KINDS.get(given.metavar or "")
    if command.startswith("corpus ") and given.metavar == "NAME" and not options:
        kind = "corpus name"
    annotation = given.type_descriptor.annotation if hasattr(given, "type_descriptor") else None
    values = VALUES.get(given.opts[0]) or [value for value in get_args(annotation) if isinstance(value, str)]
    facts = {
        "options": options,
        "name": given.name,
        "flag": bool(getattr(given, "is_flag", False)),
        "multiple": bool(getattr(given, "multiple", False)),
        "help": given.help or "",
        "kind": kind,
        "values": values,
    }
    return {name: value for name, value in facts.items() if value}


def described(name: str, command: Any) -> dict[str, Any]:
    """A command with its parameters, or a group with its commands."""
    loaded = command.load() if hasattr(command, "load") else command
    if hasattr(loaded, "commands"):
        inner = {each: described(f"{name} {each}", one) for each, one in loaded.commands.items()}
        return {"help": command.help or "", "commands": inner}
    shown = [each for each in loaded.params if not getattr(each, "hidden", False) and each.name != "help"]
    return {"help": (command.help or "").partition("\n")[0], "parameters": [parameter(name, each) for each in shown]}


def settings() -> dict[str, list[str]]:
    """The fields of the request that `--set` takes, with the values of those that have few."""
    spec = spec_from_file_location("generate_configuration", Path(__file__).with_name("generate_configuration.py"))
    assert spec is not None
    assert spec.loader is not None
    pages = module_from_spec(spec)
    spec.loader.exec_module(pages)
    schema = ResearchRequest.model_json_schema()
    found = {}
    for path, values, _ in pages.fields(schema, schema["$defs"]):
        named = values.removeprefix("list of: ").split(", ")
        is_listed = all(value.replace("_", "").isalpha() and value.islower() for value in named) and len(named) > 1
        found[path] = named if is_listed else []
    found["strategy"] = [strategy.name for strategy in STRATEGIES if not strategy.scoped]
    found["search.providers"] = [provider.name for provider in BUILT_IN]
    return found


def table() -> str:
    """The whole file."""
    root = typer.main.get_command(app)
    commands = {name: described(name, command) for name, command in root.commands.items()}  # type: ignore[attr-defined]
    return json.dumps({"commands": commands, "settings": settings()}, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the file."""
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
