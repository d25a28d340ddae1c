"""The activities that do roles: one function for all, and one registered activity per role.

A call loads the texts that its input refers to, renders the prompt, gets the answer of an engine (through the journal,
if it is paid), grounds the answer in stored text, and stores long results by reference.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

from temporalio import activity

from activities.failures import MODELS, attempt
from activities.journal import CallJournal
from activities.reporting.drafts import store_draft
from activities.roles.analyzer import ground_analysis
from activities.roles.claim_checking import ground_corrections, ground_verdicts
from activities.roles.grounding import RoleWork, load_documents
from activities.roles.prompt_rendering import RenderedPrompt, render_role, shown_sources
from activities.roles.synthesizer import ground_report
from activities.roles.turn_taking import ground_turn, turn_task
from activities.roles.untrusted import label_all, label_key, remove_signs_of
from contracts import checking_roles, roles
from contracts.base import CompactModel
from contracts.canary import STEERED, contains_canary
from contracts.checking import AnswersEntry, ProposalsEntry
from contracts.checking_roles import CheckerResult, CorrectorResult
from contracts.lenient import UnfitAnswer
from contracts.notebooks import AnalysisEntry, labels_of
from contracts.outcome import CallAccount
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    RefineInput,
    RefinerAnswer,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SynthesizerResult,
)
from contracts.strategies import declared_roles
from contracts.tool_turns import TRANSCRIPT_TYPE, ToolTurnInput, TurnResult, check_tools
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable, InputUnprocessable, InvalidOutput, NotConfigured
from providers.interfaces import ContentStore, Engine, EngineAnswer, EngineTask, Notebooks, ShortPrompt

O = TypeVar("O", bound=RoleAnswer)


@dataclass(frozen=True, eq=False)
class RoleActivities:
    """The activities of all roles over the engines and stores of this worker."""

    engines: Mapping[EngineKind, Engine]
    content: ContentStore
    journal: CallJournal
    notebooks: Notebooks

    def register(self) -> list[Callable[..., Any]]:
        """Define one activity per role, under the role's own name and with its exact types.

        Raises ValueError for a role with tools that might see the text of a page.
        """
        for role in declared_roles():
            check_tools(role)
        return [self._activity(role) for role in declared_roles()]

    def _activity(self, role: RoleSpec[Any, Any]) -> Callable[..., Any]:
        async def do_role(request: Any) -> Any:
            return await self.run(role, request)

        # Temporal decodes arguments by these annotations.
        do_role.__annotations__ = {"request": role.input, "return": role.result}
        do_role.__name__ = do_role.__qualname__ = role.activity
        registered: Callable[[Any], Awaitable[Any]] = activity.defn(name=role.activity)(do_role)
        return registered

    async def run(self, role: RoleSpec[Any, Any], request: RoleInput) -> RoleAnswer:
        """Do one call of a role. Must run inside an activity; raises `ApplicationError`."""
        async with attempt(MODELS):
            request = await self._complete(role, request)
            documents = await load_documents(request, self.content)
            # In threads, because a long page takes a while: other calls and their heartbeats go on.
            task = await asyncio.to_thread(task_of, role, request, documents)
            answer = await self._answer(task)
            try:
                result, texts = await asyncio.to_thread(ground_answer, task, answer)
            except (AnswerUnusable, InputUnprocessable) as error:
                error.usage = answer.usage
                if isinstance(error, AnswerUnusable):
                    error.model = answer.model
                raise
            return await self._stored(task.input, result, texts)

    async def _complete(self, role: RoleSpec[Any, Any], request: RoleInput) -> RoleInput:
        """The input with the entries that it refers to."""
        return await self.notebooks.complete_input(request, role)

    async def _answer(self, task: EngineTask) -> EngineAnswer:
        engine = self.engines.get(task.input.engine)
        if engine is None:
            raise NotConfigured(f"this worker has no {task.input.engine.value} engine: see `research doctor`")
        return await (self.journal.answer(engine, task) if engine.paid else engine.answer(task))

    async def _stored(self, request: RoleInput, result: RoleAnswer, texts: list[str]) -> RoleAnswer:
        """Store texts and long lists of a result; the history gets references."""
        if isinstance(result, TurnResult):
            await self.content.put_text(texts[0], TRANSCRIPT_TYPE)
        if isinstance(result, SynthesizerResult):
            return result.model_copy(update={"draft": await store_draft(self.content, result.draft, texts[0])})
        if isinstance(result, AnalyzerResult) and isinstance(request, AnalyzeInput) and result.findings:
            return await self._stored_analysis(request, result)
        if isinstance(result, CheckerResult):
            return await self._by_reference(result, AnswersEntry(answers=result.answers), "answers")
        if isinstance(result, CorrectorResult):
            return await self._by_reference(result, ProposalsEntry(proposals=result.proposals), "proposals")
        return result

    async def _by_reference(self, result: O, entry: CompactModel, field: str) -> O:
        return result.model_copy(update={"entry": await self.notebooks.write(entry), field: []})

    async def _stored_analysis(self, request: AnalyzeInput, result: AnalyzerResult) -> AnalyzerResult:
        """The result with labels of findings and evidence; they themselves are in the notebook."""
        cited = {source_id for finding in result.findings for source_id in finding.source_ids}
        sources = [
            source.model_copy(update={"snippet": "", "sections": [], "entry": None, "hit_entries": []})
            for source in request.sources
            if source.id in cited
        ]
        entry = AnalysisEntry(findings=result.findings, evidence=result.evidence, sources=sources)
        return labels_of(result, request).model_copy(update={"entry": await self.notebooks.write(entry)})


# --- from input to task, from answer to result -----------------------------------------------------------------------
def task_of(role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]) -> EngineTask:
    """The task for an engine. Only a model reads a prompt: without one, no version of it is accounted for."""
    by_model = request.engine is EngineKind.MODEL
    if isinstance(request, ToolTurnInput):
        task = turn_task(role, request, documents)
        return task if by_model else EngineTask(**{**vars(task), "prompt_version": ""})
    if not by_model:
        return EngineTask(role, request, documents, "", "", "")
    excerpts: dict[str, str] = {}

    def render(share: float) -> RenderedPrompt:
        return render_role(role, request, documents, share, excerpts)

    def shortened(share: float) -> ShortPrompt:
        short = render(share)
        return ShortPrompt(short.prompt, short.common_length, short.left_out)

    whole = render(1.0)
    return EngineTask(
        role, request, documents, whole.system, whole.prompt, whole.version, whole.common_length, shortened
    )


def ground_answer(task: EngineTask, answer: EngineAnswer) -> tuple[RoleAnswer, list[str]]:
    """The role's result with its account, and the texts to store with it. Raises `InvalidOutput`."""
    role, request, given = task.role, task.input, answer.content
    if not role.tools:  # a turn is checked block by block
        if contains_canary(given.model_dump_json(), request.canary):
            raise InvalidOutput(STEERED)
        # A program quotes stored text; a model copies from lines that begin with a sign.
        if answer.engine is EngineKind.MODEL:
            given = type(given).model_validate(remove_signs_of(given.model_dump()))
    account = CallAccount(
        engine=answer.engine,
        model=answer.model,
        prompt_version=task.prompt_version,
        usage=answer.usage,
        warnings=answer.warnings,
    )
    work = RoleWork[Any, Any](role, _as_shown(request, answer.share), given, task.documents, account)
    try:
        result = _grounder(role)(work)
    except UnfitAnswer as error:
        raise InvalidOutput(str(error)) from None
    return result.model_copy(update={"account": work.account_with_warnings()}), work.texts


def _as_shown(request: RoleInput, share: float) -> RoleInput:
    """The request without the sources that had no room in its prompt: this call did not read them."""
    if share >= 1 or not isinstance(request, AnalyzeInput):
        return request
    return request.model_copy(update={"sources": shown_sources(request, share)})


def _grounder(role: RoleSpec[Any, Any]) -> Callable[[RoleWork[Any, Any]], RoleAnswer]:
    """Grounding of a role's answers; a role from outside the product may have `ground` in its module."""
    if role.tools:
        return ground_turn
    if role.writes_report:
        return ground_report
    if role.module is not None:
        return getattr(import_module(role.module), "ground", _fit)
    return GROUNDERS.get(role.name, _fit)


def _fit(work: RoleWork[Any, Any]) -> RoleAnswer:
    """Fit an answer without references to stored text."""
    fitted: RoleAnswer = work.answer.fitted(work.request, work.warnings)
    return fitted


def _ground_refinement(work: RoleWork[RefineInput, RefinerAnswer]) -> RefinerAnswer:
    """Replace the labels of gaps, by which a model knows them, and fit the refinement."""
    names = label_all((gap.id for gap in work.request.gaps), label_key(work.request))

    def identity(name: str) -> str:
        return names.get(name.strip(), name.strip())

    judged = [one.model_copy(update={"gap_id": identity(one.gap_id)}) for one in work.answer.gap_analysis]
    advice = work.answer.iteration_recommendation
    advice = advice.model_copy(update={"priority_gaps": [identity(name) for name in advice.priority_gaps]})
    named = work.answer.model_copy(update={"gap_analysis": judged, "iteration_recommendation": advice})
    return named.fitted(work.request, work.warnings)


GROUNDERS: Final[Mapping[str, Callable[[RoleWork[Any, Any]], RoleAnswer]]] = {
    roles.ANALYZER.name: ground_analysis,
    roles.REFINER.name: _ground_refinement,
    checking_roles.CHECKER.name: ground_verdicts,
    checking_roles.CORRECTOR.name: ground_corrections,
}
