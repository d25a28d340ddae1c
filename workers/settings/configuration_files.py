"""The files of the configuration: the user's own, and one that the user names.

A `research.toml` of the working directory is not read: a folder that was cloned or unpacked may contain a stranger's.
"""

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from contracts.texts import expectation
from workers.settings.sections import FileSettings

FILE_NAME: Final = "research.toml"
LARGEST_BYTES: Final = 1_000_000


class SettingsError(Exception):
    """The configuration is invalid; one line per problem, each with its place."""


def values_of_files(user_folder: Path, named: Path | None) -> dict[str, Any]:
    """Merge the user's own file under the one that is named. Raises `SettingsError`."""
    below = _values(user_folder / FILE_NAME) or {}
    if named is None:
        return below
    above = _values(named.absolute())
    if above is None:
        raise SettingsError(f"{printable_path(named)}: there is no such file")
    return merge_values(below, above)


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
