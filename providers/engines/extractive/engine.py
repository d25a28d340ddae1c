"""`ExtractiveEngine`: the five roles as pure functions, the heavy ones off the event loop."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from contracts.base import Contract
from contracts.roles import AnalysisDraft, AnalyzeInput, RefineInput, ReflectInput, ReportTextDraft, WriteInput
from contracts.roles import PlanInput as PlannerInput
from contracts.vocabulary import EngineKind
from providers.engines.extractive.analysis import analyze
from providers.engines.extractive.planning import plan
from providers.engines.extractive.refinement import refine
from providers.engines.extractive.reflection import reflect
from providers.engines.extractive.writing import write
from providers.errors import InvalidCall
from providers.interfaces import EngineAnswer, EngineTask

_HEAVY = {"analyzer": "analyze_json", "synthesizer": "write_json"}


class Pool(Protocol):
    """Processes that run a named function."""

    async def call(self, function: str, *arguments: Any) -> Any:
        """Run `module:function` with picklable arguments and give back its picklable result."""
        ...


class ExtractiveEngine:
    """Does every role without a language model: same input, same bytes. Costs nothing, calls nobody."""

    kind = EngineKind.EXTRACTIVE
    paid = False

    def __init__(self, pool: Pool | None = None) -> None:
        self._pool = pool

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `InvalidCall` for a role that this engine does not know."""
        draft = await self._draft(task)
        return EngineAnswer(draft=draft, engine=self.kind)

    async def close(self) -> None:
        """Nothing is held: the pool belongs to whoever made it."""

    async def _draft(self, task: EngineTask) -> Contract:
        given = task.input
        if isinstance(given, PlannerInput):
            return plan(given)
        if isinstance(given, ReflectInput):
            return reflect(given)
        if isinstance(given, RefineInput):
            return refine(given, task.documents)
        if isinstance(given, AnalyzeInput | WriteInput):
            return await self._off_loop(task.role.name, given, task.documents)
        raise InvalidCall(f"the extractive engine does not know the role {task.role.name}")

    async def _off_loop(
        self, role: str, given: AnalyzeInput | WriteInput, documents: Mapping[str, str]
    ) -> AnalysisDraft | ReportTextDraft:
        wanted = {source.text.hash for source in given.sources if source.text is not None}
        texts = {key: text for key, text in documents.items() if key in wanted}
        packed = given.model_dump_json()
        if self._pool is not None:
            answer = await self._pool.call(f"{__name__}:{_HEAVY[role]}", packed, texts)
        else:
            function = analyze_json if isinstance(given, AnalyzeInput) else write_json
            answer = await asyncio.to_thread(function, packed, texts)
        if isinstance(given, AnalyzeInput):
            return AnalysisDraft.model_validate_json(answer)
        return ReportTextDraft.model_validate_json(answer)


def analyze_json(packed: str, documents: Mapping[str, str]) -> str:
    """`analyze` over JSON, so that it can run in another process."""
    return analyze(AnalyzeInput.model_validate_json(packed), documents).model_dump_json()


def write_json(packed: str, documents: Mapping[str, str]) -> str:
    """`write` over JSON, so that it can run in another process."""
    return write(WriteInput.model_validate_json(packed), documents).model_dump_json()
