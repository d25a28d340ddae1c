"""What a shell completes from the configuration: read without checks and heavy imports, in a few milliseconds.

Commands themselves use `loading`, which checks everything and has the same order of precedence.
"""

import os
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

APPLICATION: Final = "durable-research"
FILE_NAME: Final = "research.toml"
VARIABLES_FILE: Final = "research.env"
"""Variables beside the user's file, above all keys: `NAME=value`, one a line. The environment goes before them."""
CONFIG_VARIABLE: Final = "RESEARCH_CONFIG"
"""Names a file like `--config`, which takes precedence."""
COMPLETION_VARIABLE: Final = "_RESEARCH_COMPLETE"
MODEL_VARIABLES: Final = (
    "RESEARCH_MODEL",
    "RESEARCH_MODEL_SIMPLE",
    "RESEARCH_MODEL_ANALYTICAL",
    "RESEARCH_MODEL_COMPLEX",
)
TIERS: Final = ("default", "simple", "analytical", "complex")
JOINED: Final = "="
"""Splits words in bash: `--set verify=full` reaches a completion as three words after the option."""


@dataclass(frozen=True)
class Places:
    """What the configuration names, as far as it can be read."""

    home: Path
    stores_runs: bool
    """True if the sessions of runs are files of the home."""
    corpora: list[str]
    models: list[str]
    servers: list[str]
    """Servers of documents."""
    tenant: str = ""
    """The tenant whose runs alone are found; empty: everybody's."""


def find_places() -> Places:
    """Read the configuration of the user and that of `RESEARCH_CONFIG`; what cannot be read counts as absent."""
    import platformdirs  # noqa: PLC0415  not needed for the words of commands

    folder = platformdirs.user_config_path(APPLICATION)
    environment = read_variables(folder / VARIABLES_FILE) | dict(os.environ)  # noqa: TID251  nothing heavy is imported
    files = [folder / FILE_NAME]
    if named := environment.get(CONFIG_VARIABLE, "").strip():
        files.append(Path(named).expanduser())
    home: Any = platformdirs.user_data_path(APPLICATION)
    content = environment.get("RESEARCH_CONTENT_URL", "")
    tenant = environment.get("RESEARCH_TENANT", "").strip()
    corpora: dict[str, None] = {}
    models = dict.fromkeys(filter(None, (environment.get(name, "").strip() for name in MODEL_VARIABLES)))
    servers: dict[str, None] = {}
    for file in files:
        values = _read(file)
        if isinstance(named_home := values.get("home"), str):
            home = file.parent / Path(named_home).expanduser()
        content = content or str(values.get("content_url") or "")
        tenant = tenant or str(values.get("tenant") or "")
        corpora |= dict.fromkeys(_table(values, "corpus"))
        servers |= dict.fromkeys(_table(values, "search", "mcp"))
        for tier in TIERS:
            names = _table(values, "models").get(tier) or []
            models |= dict.fromkeys([names] if isinstance(names, str) else names)
        models |= dict.fromkeys(_table(values, "models", "prices"))
    home = Path(environment.get("RESEARCH_HOME", "").strip() or home).expanduser()
    with suppress(OSError):
        corpora |= dict.fromkeys(sorted(file.stem for file in (home / "corpora" / "registered").glob("*.json")))
    is_local = "://" not in content or content.startswith("file:")
    return Places(home, is_local, list(corpora), [str(name) for name in models], list(servers), tenant)


def read_variables(path: Path) -> dict[str, str]:
    """Read a file of variables; lines that are none, and a file that cannot be read, count as absent."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [line.strip().partition("=") for line in lines if not line.lstrip().startswith("#")]
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}


def join_split_words() -> bool:
    """Join the words that bash has split at `=` before the completion reads them; return true if the last one was.

    Bash then replaces only what follows the sign.
    """
    if os.environ.get(COMPLETION_VARIABLE) != "complete_bash":  # noqa: TID251  the protocol of completion
        return False
    words = os.environ.get("COMP_WORDS", "").split("\n")  # noqa: TID251
    try:
        position = int(os.environ.get("COMP_CWORD", ""))  # noqa: TID251
    except ValueError:
        return False
    joined: list[str] = []
    is_split = False
    for number, word in enumerate(words[: position + 1]):
        if number and (word == JOINED or words[number - 1] == JOINED) and not joined[-1].startswith("--"):
            joined[-1] += word
            is_split = number == position
        else:
            joined.append(word)
            is_split = False
    os.environ["COMP_WORDS"] = "\n".join(joined)  # noqa: TID251
    os.environ["COMP_CWORD"] = str(len(joined) - 1)  # noqa: TID251
    return is_split


def is_completing() -> bool:
    """Return true if this process completes a command line of a shell."""
    return COMPLETION_VARIABLE in os.environ  # noqa: TID251  before anything heavy is imported


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return {}


def _table(values: dict[str, Any], *names: str) -> dict[str, Any]:
    table: Any = values
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}
