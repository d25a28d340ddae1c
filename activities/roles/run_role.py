"""The activities that do roles: one function for all, and one registered activity per role.

A call loads the texts that its input refers to, renders the prompt, gets the answer of an engine (through the journal,
if it is paid), grounds the answer in stored text, and stores long results by reference.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import MODELS, attempt
from activities.journal import CallJournal
from activities.reporting.drafts import store_draft
from activities.roles.analyzer import ground_analysis, ground_extraction
from activities.roles.archiving import archive_content
from activities.roles.claim_checking import ground_corrections, ground_verdicts
from activities.roles.grounding import RoleWork, load_documents
from activities.roles.prompt_rendering import prompt_of, render_role, shown_sources, with_canary
from activities.roles.reporter import ground_update
from activities.roles.synthesizer import ground_report
from activities.roles.turn_taking import ground_turn, turn_task
from activities.roles.untrusted import label_all, remove_signs_of
from contracts import checking_roles, failures, recursive_roles, report_updates, roles, summaries
from contracts.canary import STEERED, contains_canary
from contracts.checking import AnswersEntry, ProposalsEntry
from contracts.checking_roles import CheckerResult, CorrectorResult
from contracts.lenient import UnfitAnswer
from contracts.notebooks import AnalysisEntry, without_details
from contracts.outcome import CallAccount
from contracts.recursive_roles import SelfCheckAnswer, SelfCheckInput, TreeAnswer, TreeInput
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
from contracts.tokens import ContentEntry
from contracts.tool_turns import TRANSCRIPT_TYPE, ToolTurnInput, TurnResult, check_tools
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable, InvalidOutput, NotConfigured, SummariesNeeded
from providers.interfaces import ContentArchive, ContentStore, Engine, EngineAnswer, EngineTask, RenderedPrompt
from providers.storage.stored_notebooks import Notebooks

FEWEST_CHARACTERS: Final = 300
"""Of each source that an analysis considers, in a window that has no room for more."""


@dataclass(frozen=True, eq=False)
class RoleActivities:
    """The activities of all roles over the engines and stores of this worker."""

    engines: Mapping[EngineKind, Engine]
    content: ContentStore
    journal: CallJournal
    notebooks: Notebooks
    archive: ContentArchive | None = None

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
            request = await self.notebooks.complete_input(request, role)
            documents = await load_documents(request, self.content)
            for entry in await self.notebooks.read_all(request.summaries or [], summaries.SummaryEntry):
                documents[entry.key] = entry.summary
            # In threads, because a long page takes a while: other calls and their heartbeats go on.
            task = await asyncio.to_thread(task_of, role, request, documents)
            try:
                answer = await self._answer(task)
            except SummariesNeeded as needed:
                raise await self._ordered(needed) from None
            try:
                result, texts = await asyncio.to_thread(ground_answer, task, answer)
            except AnswerUnusable as error:
                error.usage, error.model = answer.usage, answer.model
                raise
            return await self._stored(task.input, await self._with_content(task, answer, result), texts)

    async def _with_content(self, task: EngineTask, answer: EngineAnswer, result: RoleAnswer) -> RoleAnswer:
        """The result, whose account has what the model was shown of the content."""
        fidelity = answer.fidelity
        if fidelity is not None and answer.items:
            items = ContentEntry(operation=task.input.operation, role=task.role.name, items=list(answer.items))
            fidelity = fidelity.model_copy(update={"entry": await self.notebooks.write(items)})
            fidelity = await archive_content(self.archive, self.content, task, answer, fidelity)
        return result.model_copy(update={"account": result.account.model_copy(update={"content": fidelity})})

    async def _ordered(self, needed: SummariesNeeded) -> ApplicationError:
        """The end of a call that is to be made again with summaries; it refers to the texts, which are stored."""
        orders = [
            summaries.SummaryOrder(text=await self.content.put_text(text), level=level).model_dump(mode="json")
            for text, level in needed.texts
        ]
        kind, category = failures.SUMMARIES_NEEDED, ApplicationErrorCategory.BENIGN
        return ApplicationError(str(needed), {"orders": orders}, type=kind, non_retryable=True, category=category)

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
        if isinstance(result, summaries.SummarizerResult) and isinstance(request, summaries.SummarizeInput):
            summary = summaries.SummaryEntry(
                key=summaries.summary_key(request.text.hash, request.level), summary=texts[0]
            )
            return result.model_copy(update={"entry": await self.notebooks.write(summary)})
        if isinstance(result, CheckerResult):
            entry = await self.notebooks.write(AnswersEntry(answers=result.answers))
            return result.model_copy(update={"entry": entry, "answers": []})
        if isinstance(result, CorrectorResult):
            entry = await self.notebooks.write(ProposalsEntry(proposals=result.proposals))
            return result.model_copy(update={"entry": entry, "proposals": []})
        return result

    async def _stored_analysis(self, request: AnalyzeInput, result: AnalyzerResult) -> AnalyzerResult:
        """The result with the places of findings and evidence; their details are in the notebook."""
        cited = {source_id for finding in result.findings for source_id in finding.source_ids}
        sources = [
            source.model_copy(update={"snippet": "", "sections": [], "links": [], "entry": None, "hit_entries": []})
            for source in request.sources
            if source.id in cited
        ]
        entry = AnalysisEntry(findings=result.findings, evidence=result.evidence, sources=sources)
        return without_details(result, request).model_copy(update={"entry": await self.notebooks.write(entry)})


# --- from input to task, from answer to result -----------------------------------------------------------------------
def task_of(role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]) -> EngineTask:
    """The task for an engine. Only a model reads a prompt: without one, no version of it is accounted for."""
    if isinstance(request, ToolTurnInput):
        task = turn_task(role, request, documents)
    elif request.engine is not EngineKind.MODEL:
        return EngineTask(role, request, documents, "", RenderedPrompt(""), "")
    else:
        file = prompt_of(role)
        task = EngineTask(
            role,
            request,
            documents,
            system=with_canary(file.system, request.canary),
            whole=render_role(role, request, documents),
            prompt_version=file.version,
            render=lambda levels: render_role(role, request, documents, levels),
            narrower=_narrower(role, request, documents),
        )
    return task if request.engine is EngineKind.MODEL else replace(task, prompt_version="")


def _narrower(
    role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]
) -> Callable[[], EngineTask] | None:
    """The task with half as much of each source but the protected ones; None where no analysis is worth it."""
    if not isinstance(request, AnalyzeInput) or not request.tokens.token_management_enabled:
        return None
    fewer = max(FEWEST_CHARACTERS, request.source_characters // 2)
    if fewer >= request.source_characters:
        return None
    protected = request.protected_characters or request.source_characters
    less = request.model_copy(update={"source_characters": fewer, "protected_characters": protected})
    return lambda: task_of(role, less, documents)


def ground_answer(task: EngineTask, answer: EngineAnswer) -> tuple[RoleAnswer, list[str]]:
    """The role's result with its account, and the texts to store with it. Raises `InvalidOutput`."""
    role, request, given = task.role, task.input, answer.content
    if not role.tools:  # a turn is checked block by block
        if contains_canary(given.model_dump_json(), request.canary):
            raise InvalidOutput(STEERED)
        # A program quotes stored text; a model copies from lines that begin with a sign.
        if answer.engine is EngineKind.MODEL:
            given = type(given).model_validate(remove_signs_of(given.model_dump()))
            if isinstance(request, AnalyzeInput):  # sources that had no room in the prompt were not read
                request = request.model_copy(update={"sources": shown_sources(request, answer.levels)})
    work = RoleWork[Any, Any](role, request, given, task.documents, answer.engine)
    try:
        result = _grounder(role)(work)
    except UnfitAnswer as error:
        raise InvalidOutput(str(error)) from None
    account = CallAccount(
        engine=answer.engine,
        model=answer.model,
        prompt_version=task.prompt_version,
        usage=answer.usage,
        warnings=list(dict.fromkeys([*answer.warnings, *work.warnings])),
    )
    return result.model_copy(update={"account": account}), work.texts


def _grounder(role: RoleSpec[Any, Any]) -> Callable[[RoleWork[Any, Any]], RoleAnswer]:
    """Grounding of a role's answers; a role from outside the product may have `ground` in its module."""
    if role.tools:
        return ground_turn
    if issubclass(role.result, SynthesizerResult):
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
    names = label_all((gap.id for gap in work.request.gaps), work.request)
    judged = [
        one.model_copy(update={"gap_id": names.get(one.gap_id.strip(), one.gap_id)}) for one in work.answer.gap_analysis
    ]
    advice = work.answer.iteration_recommendation
    gaps = [names.get(name.strip(), name) for name in advice.priority_gaps]
    advice = advice.model_copy(update={"priority_gaps": gaps})
    named = work.answer.model_copy(update={"gap_analysis": judged, "iteration_recommendation": advice})
    return named.fitted(work.request, work.warnings)


def _ground_tree(work: RoleWork[TreeInput, TreeAnswer]) -> TreeAnswer:
    """Replace the labels of sources, by which a model knows them, and check the tree."""
    names = label_all((source.id for source in work.request.vetted), work.request)

    def named(part: Any) -> Any:
        if isinstance(part, list):
            return [named(each) for each in part]
        if not isinstance(part, dict):
            return part
        source = {"source": names.get(part["source"].strip(), part["source"])} if "source" in part else {}
        return {name: named(value) for name, value in part.items()} | source

    tree = TreeAnswer.model_validate(named(work.answer.whole()))
    return tree.fitted(work.request, work.warnings)


def _ground_self_check(work: RoleWork[SelfCheckInput, SelfCheckAnswer]) -> SelfCheckAnswer:
    """Replace the labels of gaps, by which a model knows them, and fit the check."""
    names = label_all((gap.id for gap in work.request.gaps), work.request)
    judged = [one.model_copy(update={"gap_id": names.get(one.gap_id.strip(), one.gap_id)}) for one in work.answer.gaps]
    return work.answer.model_copy(update={"gaps": judged}).fitted(work.request, work.warnings)


def _ground_summary(work: RoleWork[summaries.SummarizeInput, summaries.SummarizerAnswer]) -> summaries.SummarizerResult:
    """Put a summary, which the engine has checked, into `work.texts`."""
    work.texts.append(work.answer.summary.strip())
    return summaries.SummarizerResult()


GROUNDERS: Final[Mapping[str, Callable[[RoleWork[Any, Any]], RoleAnswer]]] = {
    roles.ANALYZER.name: ground_analysis,
    roles.REFINER.name: _ground_refinement,
    checking_roles.CHECKER.name: ground_verdicts,
    checking_roles.CORRECTOR.name: ground_corrections,
    summaries.SUMMARIZER.name: _ground_summary,
    report_updates.REPORTER.name: ground_update,
    recursive_roles.TREE_PLANNER.name: _ground_tree,
    recursive_roles.EXTRACTOR.name: ground_extraction,
    recursive_roles.EXECUTOR.name: _ground_self_check,
}
