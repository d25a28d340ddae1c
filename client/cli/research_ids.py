"""Research ids: `r-YYYYMMDD-xxxx`, new ones and those that a person abbreviates."""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from client.cli.command_errors import CommandError, quote

ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without characters that look alike."""
MADE: Final = re.compile(r"r-\d{8}-[a-z0-9]{4}")
LAST: Final = "last"
SHOWN: Final = 5
ALLOWED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_id(today: datetime) -> str:
    """A new id of this day; 31⁴ per day."""
    return f"r-{today:%Y%m%d}-" + "".join(secrets.choice(ALPHABET) for _ in range(4))


def short(research_id: str) -> str:
    """The end of a made id, which is enough to name a run; a chosen id as it is."""
    return research_id.rpartition("-")[2] if MADE.fullmatch(research_id) else research_id


def choose_id(given: str | None) -> str:
    """The id that a person chose, else a new one. Raises `CommandError` for one that cannot be used."""
    if given is None:
        return new_id(datetime.now().astimezone())
    if given == LAST or not ALLOWED.fullmatch(given):
        raise CommandError("--id takes up to 64 letters, digits, dots, underscores and hyphens, and not `last`")
    return given


def resolve(given: str, known: Sequence[str]) -> str:
    """The one known id that is meant: itself, `last`, or a unique prefix (the part behind the date counts too).

    `known` is newest first. Raises `CommandError`.
    """
    if given == LAST:
        if not known:
            raise CommandError('there is no run yet: start one with `research run "…"`')
        return known[0]
    if given in known:
        return given
    matches = [name for name in known if name.startswith(given)] or [
        name for name in known if name.rpartition("-")[2].startswith(given)
    ]
    distinct = list(dict.fromkeys(matches))
    if len(distinct) == 1:
        return distinct[0]
    if not distinct:
        raise CommandError(f"no run {quote(given)}: `research list` shows the known ones")
    more = "" if len(distinct) <= SHOWN else f" and {len(distinct) - SHOWN} more"
    raise CommandError(f"{quote(given)} fits several runs: {', '.join(distinct[:SHOWN])}{more}; give more of the id")
