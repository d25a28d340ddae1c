"""Roles with tools without a model: a script for each, a pure function of what it is told and was answered so far."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from contracts.orchestrator_roles import AGENT, INTAKE, ORCHESTRATOR
from contracts.roles import RoleInput
from contracts.tool_turns import ToolTurnInput, Transcript, TurnAnswer
from providers.errors import InvalidCall
from providers.extractive.orchestrator_turns import orchestrate, take_in, work

TAKE_TURN: Final = f"{__name__}:take_turn"
Script = Callable[[Any, Transcript], TurnAnswer]
"""From the turn's input and the transcript so far to what is called; answers to the last calls are in the input."""

SCRIPTS: Final[Mapping[str, Script]] = {INTAKE.name: take_in, ORCHESTRATOR.name: orchestrate, AGENT.name: work}
"""By the name of the role."""


def script_of(role: str, module: str | None) -> Script | None:
    """The script of a role: its own here, else `draft` of its module; None where it has none."""
    own = SCRIPTS.get(role)
    return own or (getattr(import_module(module), "draft", None) if module is not None else None)


def take_turn(role: str, module: str | None, request: RoleInput, documents: Mapping[str, str]) -> str:
    """The turn of a role as JSON. Raises `InvalidCall` for a role without a script."""
    script = script_of(role, module)
    if script is None or not isinstance(request, ToolTurnInput):
        raise InvalidCall(f"the role {role} cannot be done without a model")
    so_far = request.transcript
    transcript = Transcript.model_validate_json(documents[so_far.hash]) if so_far else Transcript(opening="")
    return script(request, transcript).model_dump_json()
