"""Keeping the canary: made once for a run, told to every role, looked for in answers."""

import secrets
from collections.abc import Iterator
from typing import Any, Final

from activities.roles.prompt_files import load_prompt
from contracts.base import Contract
from contracts.canary import STEERED, repeats
from contracts.roles import RoleInput
from providers.errors import InvalidOutput

CANARY_BYTES: Final = 12
PROMPT: Final = "canary"
"""The file of the sentences that tell a model of it."""


def new_canary() -> str:
    """A mark that cannot be guessed: 24 hexadecimal digits."""
    return secrets.token_hex(CANARY_BYTES)


def with_canary(system: str, canary: str) -> str:
    """The system part of a prompt with the mark at its end; as it was for a run that has none."""
    return f"{system}\n\n{load_prompt(PROMPT).system.format(canary=canary)}" if canary else system


def check_answer(request: RoleInput, draft: Contract) -> None:
    """Refuse a draft that holds the canary, in one field or over several. Raises `InvalidOutput`."""
    if request.canary and repeats("".join(texts_of(draft.model_dump())), request.canary):
        raise InvalidOutput(STEERED)


def texts_of(value: Any) -> Iterator[str]:
    """Every text within plain JSON, in its order, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
