"""What is done for a role with texts from outside: plain functions that run in a child process."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

from activities.reporting.report_sections import section_texts
from activities.roles.analyzer import finish_analysis
from activities.roles.checker import finish_check
from activities.roles.corrector import finish_correction
from activities.roles.finishers import Draft, finish_clarification, finish_plan, finish_refinement, finish_reflection
from activities.roles.prompt_rendering import render_role, request_as_shown
from activities.roles.reviewer import finish_review
from activities.roles.synthesizer import finish_report
from activities.roles.turn_taking import finish_turn
from activities.roles.untrusted import remove_signs
from contracts import checking_roles, roles
from contracts.base import Contract
from contracts.canary import STEERED, contains_canary
from contracts.outcome import CallAccount
from contracts.roles import RoleInput, RoleOutput, RoleSpec
from contracts.tool_turns import ToolTurnInput, TurnDraft
from contracts.vocabulary import EngineKind
from providers.errors import InvalidOutput

FINISHERS: Final[dict[str, Callable[[Draft[Any, Any]], RoleOutput]]] = {
    roles.CLARIFIER.name: finish_clarification,
    roles.PLANNER.name: finish_plan,
    roles.ANALYZER.name: finish_analysis,
    roles.REFINER.name: finish_refinement,
    roles.SUPERVISOR.name: finish_reflection,
    checking_roles.CHECKER.name: finish_check,
    checking_roles.CORRECTOR.name: finish_correction,
    checking_roles.REVIEWER.name: finish_review,
}
"""What makes an engine's draft fit for the workflow, by role; who writes the report has `finish_report`."""
Finisher = Callable[[Draft[Any, Any]], tuple[RoleOutput, str | None]]

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
    draft: Contract,
    documents: Mapping[str, str],
    account: CallAccount,
    content_characters: int,
    share: float,
) -> Finished:
    """What the workflow gets of an engine's draft. Raises `InvalidOutput`."""
    if isinstance(request, ToolTurnInput) and isinstance(draft, TurnDraft):
        return finish_turn(role, request, draft, documents, account)
    if contains_canary(draft.model_dump_json(), request.canary):
        raise InvalidOutput(STEERED)
    if request.engine is EngineKind.MODEL:
        # A program quotes what is stored; a model copies from lines that begin with a sign.
        draft = remove_signs(draft)
    shown = request_as_shown(request, documents, content_characters, share)
    output, text = _finisher(role)(Draft(shown, draft, documents, account))
    return output.model_dump_json(), None if text is None else section_texts(text)


def _finisher(role: RoleSpec[Any, Any]) -> Finisher:
    """What makes a draft of this role fit for the workflow."""
    if role.writes_report:
        return finish_report
    if role.module is None:
        finish = FINISHERS[role.name]
    else:
        finish = getattr(import_module(role.module), "finish", partial(_as_output, role))
    return lambda work: (finish(work), None)


def _as_output(role: RoleSpec[Any, Any], work: Draft[Any, Any]) -> RoleOutput:
    """The output with the draft's own fields."""
    output: RoleOutput = role.output.model_validate(work.draft.model_dump() | {"account": work.account_with_warnings()})
    return output
