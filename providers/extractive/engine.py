"""`ExtractiveEngine`: every role without a language model, as pure functions off the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

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
    RoleAnswer,
    RoleInput,
    WriteInput,
)
from contracts.tool_turns import ToolTurnInput, Transcript
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive import brief, roles
from providers.interfaces import EngineAnswer, EngineTask

Work = Callable[[Any, Any], RoleAnswer]
WORK: Final[Mapping[type[RoleInput], Callable[[Any], RoleAnswer]]] = {
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
WORK_ON_TEXTS: Final[Mapping[type[RoleInput], Work]] = {
    AnalyzeInput: brief.analyze,
    WriteInput: brief.write,
    ReviewInput: roles.review,
}
"""Functions of the roles by their input; these work on stored texts, by their hashes."""
SCRIPTS: Final[Mapping[str, Work]] = {
    INTAKE.name: roles.take_in,
    ORCHESTRATOR.name: roles.orchestrate,
    AGENT.name: roles.work,
}
"""Functions that take the turns of a role with tools, by the name of the role."""


class ExtractiveEngine:
    """Does every role without a language model: same input, same bytes. Costs nothing, makes no request."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `InvalidCall` for a role that this engine does not know."""
        role = task.role
        answer = await asyncio.to_thread(_answer, role.name, role.module, task.input, task.documents)
        return EngineAnswer(content=answer, engine=self.kind)

    async def close(self) -> None:
        """Do nothing: the engine has nothing open."""


def script_of(role: str, module: str | None) -> Work | None:
    """Return the script of a role with tools: its own, else `draft` of its module; None where it has none."""
    own: Work | None = getattr(import_module(module), "draft", None) if module is not None else None
    return SCRIPTS.get(role) or own


def _answer(role: str, module: str | None, given: RoleInput, documents: Mapping[str, str]) -> RoleAnswer:
    if isinstance(given, ToolTurnInput):
        script = script_of(role, module)
        if script is None:
            raise InvalidCall(f"the role {role} cannot be done without a model")
        past = given.transcript
        transcript = Transcript.model_validate_json(documents[past.hash]) if past else Transcript(opening="")
        return script(given, transcript)
    own: Work | None = getattr(import_module(module), "draft", None) if module is not None else None
    if own is not None:
        return own(given, documents)
    for kind in type(given).__mro__:
        if kind in WORK:
            return WORK[kind](given)
        if kind in WORK_ON_TEXTS:
            return WORK_ON_TEXTS[kind](given, documents)
    raise InvalidCall(f"the extractive engine does not know the role {role}")
