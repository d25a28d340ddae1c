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
from contracts.supervisor_roles import RefineInput, ReflectInput
from contracts.thread_roles import RecallInput
from contracts.tool_turns import ToolTurnInput, Transcript
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive import brief, roles
from providers.interfaces import EngineAnswer, EngineTask

RoleFunction = Callable[[Any, Any], inputs.RoleAnswer]


def _without_documents(function: Callable[[Any], inputs.RoleAnswer]) -> RoleFunction:
    return lambda task, _: function(task)


ROLE_FUNCTIONS: Final[Mapping[type[inputs.RoleInput], RoleFunction]] = {
    inputs.ClarifyInput: _without_documents(roles.clarify),
    inputs.PlanInput: _without_documents(roles.plan),
    ReflectInput: _without_documents(roles.reflect),
    RefineInput: _without_documents(roles.refine),
    RecallInput: brief.recall,
    reflective.ClassifyInput: _without_documents(roles.classify),
    reflective.InvestigateInput: _without_documents(roles.investigate),
    reflective.PlanStepsInput: _without_documents(roles.plan_steps),
    reflective.ResearchStepInput: _without_documents(roles.search_for_step),
    reflective.ReflectOnStepInput: _without_documents(roles.reflect_on_step),
    orchestrator.OutlineInput: _without_documents(roles.outline),
    living.DecomposeInput: _without_documents(roles.decompose),
    recursive.ScopeInput: _without_documents(roles.judge_scope),
    recursive.LibrarianInput: _without_documents(roles.propose_searches),
    recursive.TreeInput: _without_documents(roles.plan_tree),
    recursive.SelfCheckInput: _without_documents(roles.check_node),
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
        function = function_of(type(task.input), task.role.module)
        if function is None:
            raise InvalidCall(f"the role {task.role.name} cannot be done without a model")
        answer = await asyncio.to_thread(_do, function, task.input, task.documents)
        return EngineAnswer(content=answer, engine=self.kind)

    async def close(self) -> None:
        """Do nothing: the engine has no connections."""


def function_of(kind: type[inputs.RoleInput], module: str | None) -> RoleFunction | None:
    """Return the function of a role: `draft` of its own module, else the one for its input; None if it has none."""
    own: RoleFunction | None = None
    if module is not None:
        own = getattr(import_module(module), "draft", None)
    return own or next((ROLE_FUNCTIONS[base] for base in kind.__mro__ if base in ROLE_FUNCTIONS), None)


def _do(function: RoleFunction, task: inputs.RoleInput, documents: Mapping[str, str]) -> inputs.RoleAnswer:
    if not isinstance(task, ToolTurnInput):
        return function(task, documents)
    past = task.transcript
    return function(task, Transcript.model_validate_json(documents[past.hash]) if past else Transcript(opening=""))
