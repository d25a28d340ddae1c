"""The activities that do roles: one function for all, and one registered activity per role."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.attempts import MOST_LOSSES, count_attempts, lost_workers
from activities.failure_translation import MODELS, RECORDS, translate_errors
from activities.journal import CallJournal
from activities.reporting.revising import store_draft
from activities.roles.prompt_rendering import RenderedPrompt, render_role
from activities.roles.referenced_documents import load_documents
from activities.roles.role_work import FINISHED, FIRST_PROMPT
from activities.roles.turn_taking import FIRST_MESSAGES, shorten_answers
from contracts import failures
from contracts.base import Terse
from contracts.checking import AnswersEntry, ProposalsEntry
from contracts.checking_roles import CheckerResult, CorrectorResult
from contracts.expected_calls import CONTENT_CHARACTERS
from contracts.notebooks import AnalysisEntry, labels_of
from contracts.outcome import CallAccount
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SynthesizerResult,
)
from contracts.strategies import declared_roles
from contracts.tool_turns import TRANSCRIPT_TYPE, ToolTurnInput, TurnResult, check_tools
from contracts.tools import AnswerEntry, ToolAnswer
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable, InputUnprocessable, NotConfigured, WorkerLost
from providers.interfaces import (
    ContentStore,
    Engine,
    EngineAnswer,
    EngineTask,
    IsolatedCalls,
    Notebooks,
    ShortPrompt,
)

O = TypeVar("O", bound=RoleAnswer)

JUST_NOW: Final = timedelta(seconds=0.5)
"""A workflow that has asked for a call no longer ago than this was not cancelled."""
IsCancelled = Callable[[str], Awaitable[bool]]
"""Whether a run was asked to stop without a report; false where that cannot be told."""


class RoleActivities:
    """Made with the engines of this worker, the content store, the journal of paid calls, and killable processes."""

    def __init__(
        self,
        engines: Mapping[EngineKind, Engine],
        content: ContentStore,
        journal: CallJournal,
        isolated: IsolatedCalls,
        *,
        content_characters: int = CONTENT_CHARACTERS,
        notebooks: Notebooks | None = None,
        is_cancelled: IsCancelled | None = None,
    ) -> None:
        """Without `notebooks` inputs hold everything themselves, and so do outputs.

        `is_cancelled` is asked before a call that is paid for and was not asked for just now.
        """
        self._is_cancelled = is_cancelled
        self._engines = engines
        self._content = content
        self._journal = journal
        self._isolated = isolated
        self._content_characters = content_characters
        self._notebooks = notebooks

    def register(self) -> list[Callable[..., Any]]:
        """One activity per role, under the role's own name and with its exact types.

        Raises ValueError for a role with tools that might see the text of a page.
        """
        for role in declared_roles():
            check_tools(role)
        return [self._activity(role) for role in declared_roles()]

    async def run(self, role: RoleSpec[Any, Any], request: RoleInput) -> RoleAnswer:
        """Load, render, ask, finish. Must run inside an activity; raises `ApplicationError`."""
        # Who was lost may have stored a paid answer: one attempt more looks for it, and makes none.
        async with count_attempts(MODELS, most_losses=MOST_LOSSES + (request.engine is EngineKind.MODEL)) as past:
            lost = past.losses >= MOST_LOSSES
            return await self._done(role, request, lost_workers(past.losses) if lost else None)

    async def _done(self, role: RoleSpec[Any, Any], request: RoleInput, instead: WorkerLost | None) -> RoleAnswer:
        with translate_errors(RECORDS):
            if self._notebooks is not None:
                request = await self._notebooks.complete_input(request, role)
            if isinstance(request, ToolTurnInput):
                request = await self._with_answers(request)
            documents = await load_documents(request, self._content)
        task = await self._task(role, request, documents)
        answer = await self._ask_engine(task, instead)
        account = CallAccount(
            engine=answer.engine,
            model=answer.model,
            prompt_version=task.prompt_version,
            usage=answer.usage,
            warnings=answer.warnings,
        )
        try:
            return await self._finish(role, task, answer, account)
        except AnswerUnusable as error:
            error.usage, error.model = answer.usage, answer.model
            raise
        except InputUnprocessable as error:
            error.usage = answer.usage
            raise

    async def _task(self, role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]) -> EngineTask:
        if role.tools:
            return await self._turn(role, request, documents)
        rendered, excerpts = await self._render(role, request, documents)

        def shorten(share: float) -> ShortPrompt:
            # Of what a child has shown to be harmless, and at most as long.
            short = render_role(role, request, documents, self._content_characters, share, excerpts)
            return ShortPrompt(short.prompt, short.common_length, short.left_out)

        return EngineTask(
            role,
            request,
            documents,
            rendered.system,
            rendered.prompt,
            rendered.version,
            rendered.common_length,
            shorten,
        )

    async def _turn(self, role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]) -> EngineTask:
        system, opening, version, messages = await self._isolated.call(FIRST_MESSAGES, role, request, documents)
        return EngineTask(
            role,
            request,
            documents,
            system,
            opening,
            version if request.engine is EngineKind.MODEL else "",
            shortened=partial(shorten_answers, opening, messages),
            messages=messages,
        )

    async def _with_answers(self, request: ToolTurnInput) -> ToolTurnInput:
        """With the texts of those answers that are stored."""
        if self._notebooks is None:
            return request
        answers = [await self._with_text(self._notebooks, answer) for answer in request.answers]
        return request.model_copy(update={"answers": answers})

    async def _with_text(self, notebooks: Notebooks, answer: ToolAnswer) -> ToolAnswer:
        if not answer.entry:
            return answer
        stored = await notebooks.read(answer.entry, AnswerEntry)
        return answer.model_copy(update={"text": stored.answer, "entry": "", "size": 0})

    async def _render(
        self, role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str]
    ) -> tuple[RenderedPrompt, dict[str, str]]:
        """The prompt, and its excerpts. Only a model reads it: a report must not name the version of one unused."""
        if request.engine is EngineKind.EXTRACTIVE:
            return RenderedPrompt(system="", prompt="", version=""), {}
        *fields, excerpts = await self._isolated.call(FIRST_PROMPT, role, request, documents, self._content_characters)
        return RenderedPrompt(*fields), excerpts

    async def _ask_engine(self, task: EngineTask, instead: WorkerLost | None) -> EngineAnswer:
        engine = self._engines.get(task.input.engine)
        if engine is None:
            raise NotConfigured(f"this worker has no {task.input.engine.value} engine: see `research doctor`")
        if engine.paid:
            if self._is_cancelled is not None and _is_old_news() and await self._is_cancelled(task.input.research_id):
                # A cancellation waits for the workflow's worker, and that one may have died since it asked.
                raise ApplicationError(
                    "the run was cancelled",
                    type=failures.RUN_CANCELLED,
                    non_retryable=True,
                    category=ApplicationErrorCategory.BENIGN,
                )
            return await self._journal.answer(engine, task, instead=instead)
        if instead is not None:
            raise instead
        return await engine.answer(task)

    async def _finish(
        self, role: RoleSpec[Any, Any], task: EngineTask, answer: EngineAnswer, account: CallAccount
    ) -> RoleAnswer:
        packed, parts = await self._isolated.call(
            FINISHED,
            role,
            task.input,
            answer.draft,
            task.documents,
            account,
            self._content_characters,
            answer.share,
        )
        output: RoleAnswer = role.result.model_validate_json(packed)
        if isinstance(output, TurnResult):
            with translate_errors(RECORDS):
                await self._content.put_text(parts[0], TRANSCRIPT_TYPE)
        if isinstance(output, SynthesizerResult):
            output = output.model_copy(update={"draft": await store_draft(self._content, output.draft, parts)})
        if isinstance(output, AnalyzerResult) and isinstance(task.input, AnalyzeInput) and output.findings:
            output = await self._note_analysis(task.input, output)
        if isinstance(output, CheckerResult):
            output = await self._by_reference(output, AnswersEntry(answers=output.answers), "answers")
        if isinstance(output, CorrectorResult):
            output = await self._by_reference(output, ProposalsEntry(proposals=output.proposals), "proposals")
        return output

    async def _by_reference(self, output: O, entry: Terse, field: str) -> O:
        """The output with a stored entry in the place of one of its lists."""
        if self._notebooks is None:
            return output
        with translate_errors(RECORDS):
            return output.model_copy(update={"entry": await self._notebooks.write(entry), field: []})

    async def _note_analysis(self, request: AnalyzeInput, output: AnalyzerResult) -> AnalyzerResult:
        """The output with labels of findings and evidence; they themselves are in the notebook."""
        if self._notebooks is None:
            return output
        cited = {source_id for finding in output.findings for source_id in finding.source_ids}
        sources = [
            source.model_copy(update={"snippet": "", "sections": [], "entry": None, "hit_entries": []})
            for source in request.sources
            if source.id in cited
        ]
        with translate_errors(RECORDS):
            found = AnalysisEntry(findings=output.findings, evidence=output.evidence, sources=sources)
            entry = await self._notebooks.write(found)
        return labels_of(output, request).model_copy(update={"entry": entry})

    def _activity(self, role: RoleSpec[Any, Any]) -> Callable[..., Any]:
        async def do_role(request: Any) -> Any:
            return await self.run(role, request)

        # Temporal decodes arguments by these annotations.
        do_role.__annotations__ = {"request": role.input, "return": role.result}
        do_role.__name__ = do_role.__qualname__ = role.activity
        registered: Callable[[Any], Awaitable[Any]] = activity.defn(name=role.activity)(do_role)
        return registered


def _is_old_news() -> bool:
    """Whether the workflow may have been cancelled since it asked for this call: both times are the server's."""
    info = activity.info()
    return info.attempt > 1 or info.started_time - info.current_attempt_scheduled_time > JUST_NOW
