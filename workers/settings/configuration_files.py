"""The files of the configuration: which are read, and which keys the one of the working directory may set.

A folder that the user cloned or unpacked may contain a `research.toml` of a stranger. Of such a file only harmless keys
count: see `HARMLESS`. Every key counts in a file that the user named, trusts, or keeps in the configuration folder.
"""

import hashlib
import json
import os
import shlex
import stat
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from contracts.texts import expectation
from workers.settings.sections import FileSettings

FILE_NAME: Final = "research.toml"
TRUSTED_NAME: Final = "trusted.json"
"""In the user's configuration folder: path → digest of the files that the user trusts."""
LARGEST_BYTES: Final = 1_000_000

HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "search": frozenset({"providers", "policy", "source_types", "max_results_per_query"}),
    "strategy": frozenset(
        {
            "max_iterations",
            "max_sub_queries",
            "max_sources",
            "max_new_sources",
            "max_sources_per_query",
            "max_parallel",
            "max_parallel_reads",
            "max_wait_seconds",
            "min_steps",
            "max_steps",
            "max_searches_per_step",
            "max_reads_per_step",
            "agent_seconds",
            "agent_wait_seconds",
            "deadline_seconds",
            "reserve_seconds",
            "severity_floor",
        }
    ),
}
"""Section → the keys that count in an untrusted file; for `strategy`, in the table of each depth.

Such a file may change how much the providers that the user has set up are asked, and in which order. It may not name a
host, folder, model or account, nor change a limit on money or on the load of a service. Other keys are ignored.
"""


class SettingsError(Exception):
    """The configuration is invalid; one line per problem, each with its place."""


@dataclass(frozen=True)
class FileValues:
    """The values of all files together."""

    values: dict[str, Any]
    left_out: str | None = None
    """Which keys of the working directory's file were not used, and how to use them."""


def values_of_files(user_folder: Path, working_directory: Path, named: Path | None) -> FileValues:
    """The user's own file under the one that was named, or under the one of the working directory.

    Raises `SettingsError`.
    """
    own = user_folder / FILE_NAME
    below = _values(own) or {}
    if named is not None:
        above = _values(named.absolute())
        if above is None:
            raise SettingsError(f"{printable_path(named)}: there is no such file")
        return FileValues(merge_values(below, above))
    here = working_directory / FILE_NAME
    data = read_file(here)
    if data is None or _place(here) == _place(own):
        return FileValues(below)
    above = parse_file(here, data)
    if TrustedFiles(user_folder).trusts(here, data):
        return FileValues(merge_values(below, above))
    used, unused = split_harmless(above)
    return FileValues(merge_values(below, used), _tell_left_out(here, unused) if unused else None)


def split_harmless(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split a file into its harmless values and the names of the other keys."""
    used: dict[str, Any] = {}
    for path, value in _keys(values):
        if is_harmless(path):
            used = merge_values(used, nest(path, value))
    return used, [".".join(path) for path, _ in refused_keys(values)]


def refused_keys(values: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """The keys that count only in a trusted file, each with its path and value."""
    return [(path, value) for path, value in _keys(values) if not is_harmless(path)]


def is_harmless(path: tuple[str, ...]) -> bool:
    """Whether a key counts in an untrusted file."""
    return len(path) > 1 and path[-1] in HARMLESS.get(path[0], ())


def read_file(path: Path) -> bytes | None:
    """Read a regular file; None if there is none. Raises `SettingsError`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SettingsError(f"{printable_path(path)}: is not a regular file")
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{printable_path(path)}: cannot be read: {type(error).__name__}") from None
    if len(data) > LARGEST_BYTES:
        raise SettingsError(f"{printable_path(path)}: is larger than {LARGEST_BYTES:,} bytes")
    return data


def parse_file(path: Path, data: bytes) -> dict[str, Any]:
    """Parse and check one file, so that a message can name it; relative folders are relative to it.

    Raises `SettingsError` with one line per problem.
    """
    try:
        checked = FileSettings.model_validate(tomllib.loads(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{printable_path(path)}: cannot be read: {type(error).__name__}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{printable_path(path)}: {printable(str(error))}") from None
    except ValidationError as error:
        raise SettingsError("\n".join(f"{printable_path(path)}: {line_of(item)}" for item in details(error))) from None
    values = checked.model_dump(exclude_unset=True)
    if checked.home is not None:
        values["home"] = path.parent / checked.home.expanduser()
    for name, corpus in checked.corpus.items():
        values["corpus"][name]["path"] = path.parent / corpus.path.expanduser()
    return values


class TrustedFiles:
    """The files of working directories that the user trusts, each with its digest: a changed file is not trusted."""

    def __init__(self, user_folder: Path) -> None:
        self._path = user_folder / TRUSTED_NAME

    def trusts(self, path: Path, data: bytes) -> bool:
        """Whether the user trusts these bytes at this path. Raises `SettingsError`."""
        return self._read_known().get(_place(path)) == _digest(data)

    def record(self, path: Path, data: bytes) -> None:
        """Trust these bytes at this path from now on. Raises `SettingsError`."""
        self._write({**self._read_known(), _place(path): _digest(data)})

    def forget(self, path: Path) -> bool:
        """Trust a path no longer; whether it was trusted. Raises `SettingsError`."""
        known = self._read_known()
        was = known.pop(_place(path), None) is not None
        self._write(known)
        return was

    def _read_known(self) -> dict[str, str]:
        data = read_file(self._path)
        try:
            known = {} if data is None else json.loads(data)
        except (ValueError, RecursionError):
            known = None
        if not isinstance(known, dict):
            raise SettingsError(f"{printable_path(self._path)}: is damaged: remove it and trust your files again")
        return {str(path): str(digest) for path, digest in known.items()}

    def _write(self, known: Mapping[str, str]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(dir=self._path.parent, prefix=f".{TRUSTED_NAME}-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=2, sort_keys=True)
            Path(aside).replace(self._path)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise SettingsError(f"{printable_path(self._path)}: cannot be written: {reason}") from None


def merge_values(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Merge two levels of settings key by key; the upper one goes first."""
    both = {
        key: merge_values(lower[key], upper[key])
        for key in lower.keys() & upper.keys()
        if isinstance(lower[key], dict) and isinstance(upper[key], dict)
    }
    return lower | upper | both


def nest(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A value in the tables of its path."""
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def details(error: ValidationError) -> list[Any]:
    """The validation problems, without the values."""
    return error.errors(include_input=False, include_url=False)


def line_of(item: Mapping[str, Any]) -> str:
    """`path: message`, without the value."""
    where = ".".join(str(part) for part in item["loc"] if part != "[key]")
    return printable(f"{where}: {message_of(item)}" if where else message_of(item))


def message_of(item: Mapping[str, Any]) -> str:
    """The problem with a value."""
    if item["type"] == "extra_forbidden":
        return "unknown key"
    return expectation(item) or str(item["msg"]).removeprefix("Value error, ")


def printable(text: str) -> str:
    """Replace control characters: a stranger may have chosen the names in a file."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def printable_path(path: Path) -> str:
    """A path as a message names it."""
    return printable(str(path))


def _values(path: Path) -> dict[str, Any] | None:
    data = read_file(path)
    return None if data is None else parse_file(path, data)


def _tell_left_out(path: Path, unused: list[str]) -> str:
    place = shlex.quote(printable_path(path))
    return (
        f"{printable_path(path)} is in the working directory and not trusted, so these keys were not used: "
        f"{printable(', '.join(unused))}; to use them once: --config {place}; until it changes: research trust {place}"
    )


def _keys(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key with its path, as deep as messages name it; presets are two tables deeper."""
    for section, inner in values.items():
        if not isinstance(inner, dict):
            yield (section,), inner
        elif section == "strategy":
            for strategy, depths in inner.items():
                for depth, limits in depths.items():
                    yield from (((section, strategy, depth, name), value) for name, value in limits.items())
        else:
            yield from (((section, name), value) for name, value in inner.items())


def _place(path: Path) -> str:
    """The file's name in its real folder, without following a link of that name."""
    return str(path.parent.resolve() / path.name)


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
