"""`ExtractiveEngine`: every role of the product as pure functions, off the event loop and where they can be killed."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from contracts.base import Contract
from contracts.checking_roles import ReviewInput
from contracts.orchestrator_roles import OutlineInput
from contracts.reflective_roles import (
    ClassifyInput,
    InvestigateInput,
    PlanStepsInput,
    ReflectOnStepInput,
    ResearchStepInput,
    RespondInput,
)
from contracts.roles import (
    AnalyzeInput,
    ClarifyInput,
    RefineInput,
    ReflectInput,
    RoleInput,
    WriteInput,
)
from contracts.roles import PlanInput as PlannerInput
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive.brief_writer import write
from providers.extractive.clarifier import clarify
from providers.extractive.orchestrator_turns import outline
from providers.extractive.passage_analyzer import analyze
from providers.extractive.planner import plan
from providers.extractive.reflection import refine, reflect
from providers.extractive.reflective_steps import classify, look_around, plan_steps, reflect_on_step, search_for_step
from providers.extractive.review import review
from providers.extractive.scripted_turns import TAKE_TURN, take_turn
from providers.interfaces import EngineAnswer, EngineTask, IsolatedCalls

ANALYSIS_SECONDS: Final = 40.0
"""Limit of one role: two attempts and what comes before and after fit into the time of their activity."""
MAKE_DRAFT: Final = f"{__name__}:make_draft"

WITHOUT_DOCUMENTS: Final[Mapping[type[RoleInput], Callable[[Any], Contract]]] = {
    ClarifyInput: clarify,
    PlannerInput: plan,
    ReflectInput: reflect,
    ClassifyInput: classify,
    InvestigateInput: look_around,
    PlanStepsInput: plan_steps,
    ResearchStepInput: search_for_step,
    ReflectOnStepInput: reflect_on_step,
    OutlineInput: outline,
}
WITH_DOCUMENTS: Final[Mapping[type[RoleInput], Callable[[Any, Mapping[str, str]], Contract]]] = {
    RefineInput: refine,
    AnalyzeInput: analyze,
    WriteInput: write,
    RespondInput: write,
    ReviewInput: review,
}
"""What each role does, by its input; the second kind works on stored texts, by their hashes."""


class ExtractiveEngine:
    """Does every role without a language model: same input, same bytes. Costs nothing, makes no request."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    def __init__(self, isolated: IsolatedCalls | None = None) -> None:
        """Without children that can be killed it works in threads: for texts of one's own."""
        self._isolated = isolated

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `InvalidCall` for a role that this engine does not know, `InputUnprocessable`."""
        given, module = task.input, task.role.module
        if task.role.tools:
            return await self._turn(task)
        if module is None and type(given) not in {*WITHOUT_DOCUMENTS, *WITH_DOCUMENTS}:
            raise InvalidCall(f"the extractive engine does not know the role {task.role.name}")
        if self._isolated is None:
            packed = await asyncio.to_thread(make_draft, given, task.documents, module)
        else:
            packed = await self._isolated.call(MAKE_DRAFT, given, task.documents, module, seconds=ANALYSIS_SECONDS)
        return EngineAnswer(content=task.role.answer.model_validate_json(packed), engine=self.kind)

    async def _turn(self, task: EngineTask) -> EngineAnswer:
        role = task.role
        if self._isolated is None:
            packed = await asyncio.to_thread(take_turn, role.name, role.module, task.input, task.documents)
        else:
            packed = await self._isolated.call(TAKE_TURN, role.name, role.module, task.input, task.documents)
        return EngineAnswer(content=role.answer.model_validate_json(packed), engine=self.kind)

    async def close(self) -> None:
        """Nothing is held: the children belong to whoever made them."""


def make_draft(given: RoleInput, documents: Mapping[str, str], module: str | None) -> str:
    """The draft of any role as JSON; a role from outside the product has its own function in its module."""
    draft = getattr(import_module(module), "draft", None) if module is not None else None
    made: Contract = _draft(given, documents) if draft is None else draft(given, documents)
    return made.model_dump_json()


def _draft(given: RoleInput, documents: Mapping[str, str]) -> Contract:
    for kind in type(given).__mro__:
        if kind in WITHOUT_DOCUMENTS:
            return WITHOUT_DOCUMENTS[kind](given)
        if kind in WITH_DOCUMENTS:
            return WITH_DOCUMENTS[kind](given, documents)
    raise InvalidCall("the extractive engine does not know this role")
