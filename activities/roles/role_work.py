"""What is done for a role with texts from outside: plain functions that run in a child process."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from activities.reporting.report_sections import section_texts
from activities.roles.analyzer import finish_analysis
from activities.roles.checker import finish_check
from activities.roles.corrector import finish_correction
from activities.roles.finishers import RoleWork, fit_answer, fit_refinement
from activities.roles.prompt_rendering import render_role, request_as_shown
from activities.roles.synthesizer import finish_report
from activities.roles.turn_taking import finish_turn
from activities.roles.untrusted import remove_signs
from contracts import checking_roles, roles
from contracts.canary import STEERED, contains_canary
from contracts.lenient import UnfitAnswer
from contracts.outcome import CallAccount
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.tool_turns import ToolTurnInput, TurnAnswer
from contracts.vocabulary import EngineKind
from providers.errors import InvalidOutput

GROUNDERS: Final[dict[str, Callable[[RoleWork[Any, Any]], RoleAnswer]]] = {
    roles.ANALYZER.name: finish_analysis,
    roles.REFINER.name: fit_refinement,
    checking_roles.CHECKER.name: finish_check,
    checking_roles.CORRECTOR.name: finish_correction,
}
"""Roles whose answers name passages, gaps or claims; `finish_report` grounds a report, `fit_answer` all others."""

FIRST_PROMPT: Final = f"{__name__}:first_prompt"
FINISHED: Final = f"{__name__}:finish"

FirstPrompt = tuple[str, str, str, int, list[str], dict[str, str]]
"""The fields of `RenderedPrompt`, and what is shown of each source at most."""
Finished = tuple[str, list[str] | None]
"""The role's output as JSON, and what is to be stored beside it: the parts of a report's text, or a transcript."""


def first_prompt(
    role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str], content_characters: int
) -> FirstPrompt:
    """The prompt with all of its content. Whoever shortens it sees nothing of the documents but these excerpts."""
    excerpts: dict[str, str] = {}
    prompt = render_role(role, request, documents, content_characters, 1.0, excerpts)
    return prompt.system, prompt.prompt, prompt.version, prompt.common_length, prompt.left_out, excerpts


def finish(
    role: RoleSpec[Any, Any],
    request: RoleInput,
    draft: Any,
    documents: Mapping[str, str],
    account: CallAccount,
    content_characters: int,
    share: float,
) -> Finished:
    """What the workflow gets of an engine's draft. Raises `InvalidOutput`."""
    if isinstance(request, ToolTurnInput) and isinstance(draft, TurnAnswer):
        return finish_turn(role, request, draft, documents, account)
    if contains_canary(draft.model_dump_json(), request.canary):
        raise InvalidOutput(STEERED)
    if request.engine is EngineKind.MODEL:
        # A program quotes what is stored; a model copies from lines that begin with a sign.
        draft = remove_signs(draft)
    shown = request_as_shown(request, documents, content_characters, share)
    work: RoleWork[Any, Any] = RoleWork(shown, draft, documents, account)
    try:
        result, text = finish_report(work) if role.writes_report else (_grounder(role)(work), None)
    except UnfitAnswer as error:
        raise InvalidOutput(str(error)) from None
    return result.model_dump_json(), None if text is None else section_texts(text)


def _grounder(role: RoleSpec[Any, Any]) -> Callable[[RoleWork[Any, Any]], RoleAnswer]:
    """What grounds the answers of a role; one from outside the product may have `ground` in its module."""
    if role.name in GROUNDERS or role.module is None:
        return GROUNDERS.get(role.name, fit_answer)
    return getattr(import_module(role.module), "ground", fit_answer)
