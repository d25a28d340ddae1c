"""`ExtractiveEngine`: every role without a language model, as pure functions off the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from contracts import living_roles as living
from contracts import orchestrator_roles as orchestrator
from contracts import recursive_roles as recursive
from contracts import reflective_roles as reflective
from contracts.checking_roles import ReviewInput
from contracts.report_updates import UpdateInput
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
    reflective.ClassifyInput: roles.classify,
    reflective.InvestigateInput: roles.investigate,
    reflective.PlanStepsInput: roles.plan_steps,
    reflective.ResearchStepInput: roles.search_for_step,
    reflective.ReflectOnStepInput: roles.reflect_on_step,
    orchestrator.OutlineInput: roles.outline,
    living.DecomposeInput: roles.decompose,
    recursive.ScopeInput: roles.judge_scope,
    recursive.LibrarianInput: roles.propose_searches,
    recursive.TreeInput: roles.plan_tree,
}
"""Functions of the roles by their input."""
WORK_ON_TEXTS: Final[Mapping[type[RoleInput], Work]] = {
    AnalyzeInput: brief.analyze,
    recursive.ExtractInput: brief.extract,
    WriteInput: brief.write,
    ReviewInput: roles.review,
    UpdateInput: brief.quote_notes,
    orchestrator.IntakeInput: roles.take_in,
    orchestrator.OrchestrateInput: roles.orchestrate,
    orchestrator.WorkInput: roles.work,
    living.LivingInput: roles.take_living_turn,
}
"""Those that work on stored texts by their hashes, or on the transcript of the turns so far."""


class ExtractiveEngine:
    """Does every role without a language model: same input, same bytes. Free of cost and requests."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `InvalidCall` for a role that this engine does not know."""
        work = work_of(type(task.input), task.role.module)
        if work is None:
            raise InvalidCall(f"the role {task.role.name} cannot be done without a model")
        answer = await asyncio.to_thread(_do, work, task.input, task.documents)
        return EngineAnswer(content=answer, engine=self.kind)

    async def close(self) -> None:
        """No effect: the engine has no connections."""


def work_of(kind: type[RoleInput], module: str | None) -> Work | None:
    """Return the function of a role: `draft` of its own module, else that of its input; None where it has none."""
    own: Work | None = getattr(import_module(module), "draft", None) if module is not None else None
    for base in kind.__mro__:
        if alone := WORK.get(base):
            return own or (lambda given, _: alone(given))
        own = own or WORK_ON_TEXTS.get(base)
    return own


def _do(work: Work, given: RoleInput, documents: Mapping[str, str]) -> RoleAnswer:
    if not isinstance(given, ToolTurnInput):
        return work(given, documents)
    past = given.transcript
    return work(given, Transcript.model_validate_json(documents[past.hash]) if past else Transcript(opening=""))
