"""`ExtractiveEngine`: every role without a language model, as pure functions off the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from contracts import living_roles as living
from contracts import orchestrator_roles as orchestrator
from contracts import recursive_roles as recursive
from contracts import reflective_roles as reflective
from contracts import roles as inputs
from contracts.checking_roles import ReviewInput
from contracts.report_updates import UpdateInput
from contracts.tool_turns import ToolTurnInput, Transcript
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive import brief, roles
from providers.interfaces import EngineAnswer, EngineTask

Work = Callable[[Any, Any], inputs.RoleAnswer]


def _alone(work: Callable[[Any], inputs.RoleAnswer]) -> Work:
    return lambda given, _: work(given)


WORK: Final[Mapping[type[inputs.RoleInput], Work]] = {
    inputs.ClarifyInput: _alone(roles.clarify),
    inputs.PlanInput: _alone(roles.plan),
    inputs.ReflectInput: _alone(roles.reflect),
    inputs.RefineInput: _alone(roles.refine),
    reflective.ClassifyInput: _alone(roles.classify),
    reflective.InvestigateInput: _alone(roles.investigate),
    reflective.PlanStepsInput: _alone(roles.plan_steps),
    reflective.ResearchStepInput: _alone(roles.search_for_step),
    reflective.ReflectOnStepInput: _alone(roles.reflect_on_step),
    orchestrator.OutlineInput: _alone(roles.outline),
    living.DecomposeInput: _alone(roles.decompose),
    recursive.ScopeInput: _alone(roles.judge_scope),
    recursive.LibrarianInput: _alone(roles.propose_searches),
    recursive.TreeInput: _alone(roles.plan_tree),
    recursive.SelfCheckInput: _alone(roles.check_node),
    recursive.ExtractInput: brief.extract,
    inputs.AnalyzeInput: brief.analyze,
    inputs.WriteInput: brief.write,
    ReviewInput: roles.review,
    UpdateInput: brief.quote_notes,
    orchestrator.IntakeInput: roles.take_in,
    orchestrator.OrchestrateInput: roles.orchestrate,
    orchestrator.WorkInput: roles.work,
    living.LivingInput: roles.take_living_turn,
}
"""Functions of the roles by input type; some take stored texts by hash, or the transcript so far."""


class ExtractiveEngine:
    """Performs every role without a language model: same input, same bytes; no cost, no requests."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Perform a role. Raises `InvalidCall` for a role that this engine does not support."""
        work = work_of(type(task.input), task.role.module)
        if work is None:
            raise InvalidCall(f"the role {task.role.name} cannot be done without a model")
        answer = await asyncio.to_thread(_do, work, task.input, task.documents)
        return EngineAnswer(content=answer, engine=self.kind)

    async def close(self) -> None:
        """Do nothing: the engine has no connections."""


def work_of(kind: type[inputs.RoleInput], module: str | None) -> Work | None:
    """Return the function of a role: `draft` of its own module, else the one for its input; None if it has none."""
    own: Work | None = getattr(import_module(module), "draft", None) if module is not None else None
    return own or next((WORK[base] for base in kind.__mro__ if base in WORK), None)


def _do(work: Work, given: inputs.RoleInput, documents: Mapping[str, str]) -> inputs.RoleAnswer:
    if not isinstance(given, ToolTurnInput):
        return work(given, documents)
    past = given.transcript
    return work(given, Transcript.model_validate_json(documents[past.hash]) if past else Transcript(opening=""))
