"""`ExtractiveEngine`: its roles as pure functions, off the event loop and where they can be killed."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from contracts.base import Contract
from contracts.roles import AnalyzeInput, RefineInput, ReflectInput, ReviewInput, RoleInput, WriteInput
from contracts.roles import PlanInput as PlannerInput
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive.brief_writer import write
from providers.extractive.passage_analyzer import analyze
from providers.extractive.planner import plan
from providers.extractive.reflection import refine, reflect
from providers.extractive.review import review
from providers.interfaces import EngineAnswer, EngineTask, IsolatedCalls

ANALYSIS_SECONDS: Final = 40.0
"""Limit of one role: two attempts and what comes before and after fit into the time of their activity."""
MAKE_DRAFT: Final = f"{__name__}:make_draft"

ExtractiveInput = PlannerInput | ReflectInput | RefineInput | AnalyzeInput | WriteInput | ReviewInput


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
        if module is None and not isinstance(given, ExtractiveInput):
            raise InvalidCall(f"the extractive engine does not know the role {task.role.name}")
        if self._isolated is None:
            packed = await asyncio.to_thread(make_draft, given, task.documents, module)
        else:
            packed = await self._isolated.call(MAKE_DRAFT, given, task.documents, module, seconds=ANALYSIS_SECONDS)
        return EngineAnswer(draft=task.role.draft.model_validate_json(packed), engine=self.kind)

    async def close(self) -> None:
        """Nothing is held: the children belong to whoever made them."""


def make_draft(given: RoleInput, documents: Mapping[str, str], module: str | None) -> str:
    """The draft of any role as JSON; a role from outside the product has its own function in its module."""
    draft = getattr(import_module(module), "draft", None) if module is not None else None
    made: Contract = _draft(given, documents) if draft is None else draft(given, documents)
    return made.model_dump_json()


def _draft(given: RoleInput, documents: Mapping[str, str]) -> Contract:
    if isinstance(given, PlannerInput):
        return plan(given)
    if isinstance(given, ReflectInput):
        return reflect(given)
    if isinstance(given, RefineInput):
        return refine(given, documents)
    if isinstance(given, AnalyzeInput):
        return analyze(given, documents)
    if isinstance(given, WriteInput):
        return write(given, documents)
    if isinstance(given, ReviewInput):
        return review(given, documents)
    raise InvalidCall("the extractive engine does not know this role")
