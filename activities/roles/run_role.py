"""The activities of roles: one function for all, registered as one activity per role.

A call loads the texts that its input refers to, renders the prompt, gets an engine's answer (through the journal if it
is paid), grounds the answer in stored text, and stores long results by reference.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import MODELS, AttemptHistory, attempt, waiting_for_service
from activities.journal import CallJournal
from activities.roles.grounding import RoleWork, load_documents
from activities.roles.prompt_files import prompt_of, system_of, with_canary
from activities.roles.prompt_rendering import render_role
from activities.roles.role_handlers import ResultToStore, handler_of
from activities.roles.turn_taking import render_turn
from activities.roles.untrusted import label_all, remove_signs_of
from contracts import failures, summaries
from contracts.canary import STEERED, contains_canary
from contracts.evidence import Finding, Gap
from contracts.lenient import UnfitAnswer
from contracts.outcome import CallAccount
from contracts.recursive_roles import VettedSource
from contracts.report_updates import ReporterResult
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SourceExtract,
    SynthesizerResult,
)
from contracts.sentences import Message
from contracts.strategies import declared_roles
from contracts.tokens import RATIOS, ArchiveRecord, CallFidelity, ContentEntry, ItemFidelity, Level
from contracts.tool_turns import ToolTurnInput, check_tools
from contracts.vocabulary import EngineKind
from providers.errors import (
    AnswerUnusable,
    InvalidOutput,
    NotConfigured,
    ProviderError,
    ReservationTooSmall,
    SummariesNeeded,
)
from providers.interfaces import ContentArchive, ContentStore, Engine, EngineAnswer, EngineTask, RenderedPrompt
from providers.storage.stored_notebooks import Notebooks
from providers.tokens.showing import SourceChoice

ARCHIVE_SECONDS: Final = 30.0  # longest time that a model call waits for the archive

log = structlog.get_logger()


@dataclass(frozen=True, eq=False)
class RoleActivities:
    """The activities of all roles over the engines and stores of this worker."""

    engines: Mapping[EngineKind, Engine]
    content: ContentStore
    journal: CallJournal
    notebooks: Notebooks
    archive: ContentArchive | None = None

    def register(self) -> list[Callable[..., Any]]:
        """Define one activity per role, under the role's activity name and with its exact types.

        Raises ValueError for a role with tools that could see the text of a page.
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
        """Make one role call. Must run inside an activity; raises `ApplicationError`."""
        async with attempt(MODELS) as history:
            request = await self.notebooks.complete_input(request, role)
            documents = await load_documents(request, self.content)
            for entry in await self.notebooks.read_all(request.summaries or [], summaries.SummaryEntry):
                documents[entry.key] = entry.summary
            # In a thread, because a long page takes a while and must not delay other calls' heartbeats.
            task = await asyncio.to_thread(task_of, role, request, documents)
            try:
                answer = await self._answer(task, history)
            except SummariesNeeded as needed:
                raise await self._order_summaries(needed) from None
            except ReservationTooSmall as refused:
                raise _order_reservation(refused) from None
            try:
                result, texts = await asyncio.to_thread(ground_answer, task, answer)
            except AnswerUnusable as error:
                error.usage = answer.usage
                error.model = answer.model
                raise
            result = await self._with_content(task, answer, result)
            made = ResultToStore(task.input, result, texts, self.content, self.notebooks)
            return await handler_of(role).store(made)

    async def _with_content(self, task: EngineTask, answer: EngineAnswer, result: RoleAnswer) -> RoleAnswer:
        """Add the fidelity of the shown content to the account of a result, and archive hidden content."""
        fidelity = answer.fidelity
        if fidelity is not None and answer.items:
            entry = ContentEntry(
                operation=task.input.operation,
                role=task.role.name,
                available=fidelity.available,
                used=fidelity.used,
                items=list(answer.items),
            )
            fidelity = fidelity.with_fields(entry=await self.notebooks.write(entry))
            fidelity = await self._archive(task, answer, fidelity)
        return result.with_fields(account=result.account.with_fields(content=fidelity))

    async def _archive(self, task: EngineTask, answer: EngineAnswer, fidelity: CallFidelity) -> CallFidelity:
        """Archive the items shown below the level `compressed`; return the fidelity with what the archive has."""
        hidden = [item for item in answer.items if RATIOS[item.current_level] < RATIOS[Level.COMPRESSED]]
        if self.archive is None or not hidden or not task.input.tokens.content_archive_enabled:
            return fidelity
        try:
            async with asyncio.timeout(ARCHIVE_SECONDS):
                records = [await self._record(task, item) for item in hidden]
                await self.archive.put(records)
        except (ProviderError, TimeoutError) as error:
            log.warning("archive.not_written", error=type(error).__name__)
            reason = str(error) or "the folder of tokens.research_archive_dir does not answer"
            return fidelity.with_fields(archive_problem=Message("content_not_archived", reason=reason))
        return fidelity.with_fields(archived=list(dict.fromkeys(record.content_hash for record in records)))

    async def _record(self, task: EngineTask, item: ItemFidelity) -> ArchiveRecord:
        """Make the record of an item from the stored text of its source, else from its part of the full prompt."""
        request = task.input
        level = item.current_level
        now = datetime.now(UTC).replace(microsecond=0)
        sources = request.sources if isinstance(request, AnalyzeInput) else []
        source = next((candidate for candidate in sources if candidate.id == item.id), None)
        text = source.text if source else None
        if text is None:
            part = next(part for part in task.whole.items if part.id == item.id)
            text = await self.content.put_text(part.render(Level.FULL))
        return ArchiveRecord(
            content_hash=text.hash,
            content=text,
            item_id=item.id,
            item_type=item.kind,
            archived_at=now,
            archive_reason="dropped" if level is Level.DROPPED else f"compressed to {level.value}",
            original_tokens=item.original_tokens,
            metadata={"url": source.url, "title": source.title} if source else {},
            runs={request.research_id: now + timedelta(hours=request.tokens.content_archive_ttl_hours)},
        )

    async def _order_summaries(self, needed: SummariesNeeded) -> ApplicationError:
        """Store the texts to summarize, and return the failure that requests a repeated call with summaries."""
        orders = [
            summaries.SummaryOrder(text=await self.content.put_text(text), level=level).model_dump(
                mode="json", exclude_defaults=True
            )
            for text, level in needed.texts
        ]
        kind = failures.SUMMARIES_NEEDED
        category = ApplicationErrorCategory.BENIGN
        return ApplicationError(str(needed), {"orders": orders}, type=kind, non_retryable=True, category=category)

    async def _answer(self, task: EngineTask, history: AttemptHistory) -> EngineAnswer:
        engine = self.engines.get(task.input.engine)
        if engine is None:
            raise NotConfigured(f"this worker has no {task.input.engine.value} engine: see `research doctor`")
        if not engine.paid:
            return await engine.answer(task)
        with waiting_for_service(history):
            return await self.journal.answer(engine, task)


def _order_reservation(refused: ReservationTooSmall) -> ApplicationError:
    """Return the failure that requests a repeated call with a larger reservation; nothing was paid."""
    kind = failures.RESERVATION_TOO_SMALL
    category = ApplicationErrorCategory.BENIGN
    details = {"input_tokens": refused.needed}
    return ApplicationError(str(refused), details, type=kind, non_retryable=True, category=category)


# --- from input to task, from answer to result -----------------------------------------------------------------------
def task_of(
    role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str], sources: SourceChoice | None = None
) -> EngineTask:
    """Make the task for an engine. Only a model gets a prompt: for other engines, prompt and version are empty.

    `sources` are those of an analysis, as ranked for a task with more tokens; None: they are ranked.
    """
    if request.engine is not EngineKind.MODEL:
        return EngineTask(role, request, documents, "", RenderedPrompt(""), "")
    file = prompt_of(role)
    # A prompt that does not fit is rendered again, and its answer grounded: the sources are ranked once for all that.
    choose = narrower = None
    if isinstance(request, AnalyzeInput):
        sources = sources or SourceChoice(request, documents)
        choose = partial(sources.shown, request.shown_tokens)
        if request.tokens.token_management_enabled:
            narrower = partial(_with_tokens, role, request, documents, sources)
    render: Callable[[Mapping[str, Level]], RenderedPrompt]
    render = partial(render_role, role, request, documents, choose=choose, texts={})
    if isinstance(request, ToolTurnInput):
        whole, render = render_turn(role, request, documents)
    else:
        whole = render({})
    return EngineTask(
        role,
        request,
        documents,
        system=with_canary(system_of(role, request), request.canary),
        whole=whole,
        prompt_version=file.version,
        render=render,
        narrower=narrower,
        choose=choose,
    )


def _with_tokens(
    role: RoleSpec[Any, Any], request: AnalyzeInput, documents: Mapping[str, str], sources: SourceChoice, tokens: int
) -> EngineTask:
    """Return the task of an analysis that shows at most so many tokens of its sources' texts."""
    return task_of(role, request.with_fields(shown_tokens=tokens), documents, sources)


def ground_answer(task: EngineTask, answer: EngineAnswer) -> tuple[RoleAnswer, list[str]]:
    """Return the role's result with its account, and the texts to store with it. Raises `InvalidOutput`."""
    levels = answer.levels
    hidden = _hidden_ids(task, answer)
    if answer.shown_tokens is not None and task.narrower is not None:
        task = task.narrower(answer.shown_tokens)
        levels = {}  # this task shows whole what the levels of the other one tell of
    role = task.role
    request = task.input
    content = answer.content
    if not role.tools:  # turns are checked block by block
        if contains_canary(content.model_dump_json(), request.canary):
            raise InvalidOutput(STEERED)
        # Only a model copies from prompt lines, which begin with a sign; the extractive engine quotes stored text.
        if answer.engine is EngineKind.MODEL:
            # Writers cite by names of the prompt; their texts are cleaned when they are grounded.
            ids = _ids_by_label(request)
            writes = issubclass(role.result, SynthesizerResult | ReporterResult)
            given = content.model_dump(exclude_unset=True)  # what a model left out stays recognisable
            content = type(content).model_validate(remove_signs_of(given, ids, names=not writes))
    work = RoleWork[Any, Any](
        role,
        request,
        content,
        task.documents,
        answer.engine,
        hidden=hidden,
        levels=levels,
        narrowed=bool(answer.levels),
        choose=task.choose,
    )
    try:
        result = handler_of(role).ground(work)
    except UnfitAnswer as error:
        raise InvalidOutput(str(error)) from None
    account = CallAccount(
        engine=answer.engine,
        model=answer.model,
        prompt_version=task.prompt_version,
        usage=answer.usage,
        estimated_input_tokens=answer.estimate,
        warnings=list(dict.fromkeys([*answer.warnings, *work.warnings])),
    )
    if isinstance(request, AnalyzeInput) and isinstance(result, AnalyzerResult) and answer.levels:
        result = result.with_fields(narrowed=True)
    return result.with_fields(account=account), work.texts


def _hidden_ids(task: EngineTask, answer: EngineAnswer) -> frozenset[str]:
    """Return the ids of an analysis's sources of which the model saw nothing; the extractive engine reads all."""
    if not isinstance(task.input, AnalyzeInput) or answer.engine is not EngineKind.MODEL or not task.whole.items:
        return frozenset()
    shown = {item.id for item in task.whole.items if answer.levels.get(item.id) is not Level.DROPPED}
    return frozenset(source.id for source in task.input.sources if source.id not in shown)


def _ids_by_label(request: RoleInput) -> dict[str, str]:
    """Return the ids of an input's gaps, sources, findings and passages by their labels in a prompt."""
    lists = (getattr(request, name, ()) for name in ("gaps", "sources", "vetted", "findings"))
    parts = [part for items in lists if isinstance(items, list) for part in items]
    labelled = (Gap, SourceExtract, VettedSource, Finding)
    ids = [part.id for part in parts if isinstance(part, labelled)]
    return label_all([*ids, *getattr(request, "passage_ids", ())], request)
