"""`ExtractiveEngine`: every role without a language model, as pure functions in a child process that can be killed."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from contracts.base import Contract
from contracts.checking_roles import ReviewInput
from contracts.orchestrator_roles import AGENT, INTAKE, ORCHESTRATOR, OutlineInput
from contracts.reflective_roles import (
    ClassifyInput,
    InvestigateInput,
    PlanStepsInput,
    ReflectOnStepInput,
    ResearchStepInput,
)
from contracts.roles import (
    AnalyzeInput,
    ClarifyInput,
    PlanInput,
    RefineInput,
    ReflectInput,
    RoleInput,
    WriteInput,
)
from contracts.tool_turns import ToolTurnInput, Transcript
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive import brief, roles
from providers.interfaces import EngineAnswer, EngineTask, IsolatedCalls

ROLE_SECONDS: Final = 40.0
"""Limit of one role: two attempts and what comes before and after fit into the time of their activity."""
MAKE_DRAFT: Final = f"{__name__}:make_draft"

WORK: Final[Mapping[type[RoleInput], Callable[[Any], Contract]]] = {
    ClarifyInput: roles.clarify,
    PlanInput: roles.plan,
    ReflectInput: roles.reflect,
    RefineInput: roles.refine,
    ClassifyInput: roles.classify,
    InvestigateInput: roles.investigate,
    PlanStepsInput: roles.plan_steps,
    ResearchStepInput: roles.search_for_step,
    ReflectOnStepInput: roles.reflect_on_step,
    OutlineInput: roles.outline,
}
WORK_ON_TEXTS: Final[Mapping[type[RoleInput], Callable[[Any, Mapping[str, str]], Contract]]] = {
    AnalyzeInput: brief.analyze,
    WriteInput: brief.write,
    ReviewInput: roles.review,
}
"""What does each role, by its input; these work on stored texts, by their hashes."""
SCRIPTS: Final[Mapping[str, Callable[[Any, Transcript], Contract]]] = {
    INTAKE.name: roles.take_in,
    ORCHESTRATOR.name: roles.orchestrate,
    AGENT.name: roles.work,
}
"""What takes the turns of a role with tools, by the name of the role."""


class ExtractiveEngine:
    """Does every role without a language model: same input, same bytes. Costs nothing, makes no request."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    def __init__(self, isolated: IsolatedCalls) -> None:
        """Work in the children of `isolated`, which belong to whoever made them."""
        self._isolated = isolated

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `InvalidCall` for a role that this engine does not know, `InputUnprocessable`."""
        role = task.role
        packed = await self._isolated.call(
            MAKE_DRAFT, role.name, role.module, task.input, task.documents, seconds=ROLE_SECONDS
        )
        return EngineAnswer(draft=role.draft.model_validate_json(packed), engine=self.kind)

    async def close(self) -> None:
        """Do nothing: the children belong to others."""


def make_draft(role: str, module: str | None, given: RoleInput, documents: Mapping[str, str]) -> str:
    """Return the draft of a role as JSON; a role from outside the product brings `draft` in its module."""
    own = getattr(import_module(module), "draft", None) if module is not None else None
    return _draft(role, own, given, documents).model_dump_json()


def _draft(
    role: str, own: Callable[[Any, Any], Contract] | None, given: RoleInput, documents: Mapping[str, str]
) -> Contract:
    if isinstance(given, ToolTurnInput):
        script = SCRIPTS.get(role) or own
        if script is not None:
            past = given.transcript
            return script(
                given, Transcript.model_validate_json(documents[past.hash]) if past else Transcript(opening="")
            )
    elif own is not None:
        return own(given, documents)
    for kind in type(given).__mro__:
        if kind in WORK:
            return WORK[kind](given)
        if kind in WORK_ON_TEXTS:
            return WORK_ON_TEXTS[kind](given, documents)
    raise InvalidCall(f"the extractive engine does not know the role {role}")
