"""`trust`: what a file would set is shown before it is trusted."""

import json
from pathlib import Path
from typing import Any

from client.cli import output
from client.cli.command_errors import CommandError, ExitCode, quote
from client.view.rendering import printable
from workers.settings.configuration_files import FILE_NAME, TrustedFiles, parse_file, read_file, refused_keys
from workers.settings.loading import user_config_folder, without_user


async def trust(file: Path, *, yes: bool, forget: bool) -> int:
    """Remember a file, named by its whole path, as it is now, or forget it. Raises `CommandError`, `SettingsError`."""
    if file.name != FILE_NAME:
        raise CommandError(f"only {FILE_NAME} is read from a folder: use --config for {quote(str(file))}")
    trusted = TrustedFiles(user_config_folder())
    if forget:
        was = trusted.forget(file)
        output.say(f"{_show(file)} is {'no longer' if was else 'not'} trusted")
        return ExitCode.COMPLETED
    data = read_file(file)
    if data is None:
        raise CommandError(f"there is no file {quote(str(file))}")
    granted = refused_keys(parse_file(file, data))
    if not granted:
        output.say(f"{_show(file)} sets only keys that need no trust")
        return ExitCode.COMPLETED
    output.say(f"{_show(file)} would set:")
    for path, value in granted:
        output.say(f"  {printable('.'.join(path))} = {_as_text(value)}")
    if not yes and not output.confirm("trust it?", "read what it would set, and add --yes"):
        raise CommandError("the file stays untrusted")
    trusted.record(file, data)
    output.say("trusted in its present form; trust it again after a change")
    return ExitCode.COMPLETED


def _show(file: Path) -> str:
    return printable(str(file))


def _as_text(value: Any) -> str:
    """As JSON on one line; of addresses without a user's name and password."""
    return printable(json.dumps(_without_users(value), ensure_ascii=False, default=str))


def _without_users(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_users(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_users(inner) for inner in value]
    return without_user(value) if isinstance(value, str) and "://" in value else value
