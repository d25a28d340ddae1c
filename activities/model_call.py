"""The activities that do roles: one function for all, and one registered activity per role."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from temporalio import activity

from activities.analysing import finish_analysis
from activities.attempts import attempted
from activities.canary import check_answer
from activities.documents import load_documents
from activities.failures import MODELS, RECORDS, translated
from activities.finishing import Draft
from activities.journal import CallJournal
from activities.planning import finish_plan
from activities.prompt_blocks import DEFAULT_CONTENT_CHARACTERS
from activities.prompting import RenderedPrompt, render_role, request_as_shown
from activities.refining import finish_refinement
from activities.reflecting import finish_reflection
from activities.synthesising import finish_report
from activities.untrusted import unsigned
from contracts import roles
from contracts.roles import ROLES, RoleInput, RoleOutput, RoleSpec
from contracts.usage import CallAccount
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable, NotConfigured
from providers.interfaces import ContentStore, Engine, EngineAnswer, EngineTask, ShortPrompt

FINISHERS: Final[dict[str, Callable[[Draft[Any, Any]], RoleOutput]]] = {
    roles.PLANNER.name: finish_plan,
    roles.ANALYZER.name: finish_analysis,
    roles.REFINER.name: finish_refinement,
    roles.SUPERVISOR.name: finish_reflection,
}
"""What makes an engine's draft fit for the workflow; the synthesizer's also stores the text."""


class RoleActivities:
    """Made with the engines of this worker, the content store and the journal of paid calls."""

    def __init__(
        self,
        engines: Mapping[EngineKind, Engine],
        content: ContentStore,
        journal: CallJournal,
        *,
        content_characters: int = DEFAULT_CONTENT_CHARACTERS,
    ) -> None:
        self._engines = engines
        self._content = content
        self._journal = journal
        self._content_characters = content_characters

    def register(self) -> list[Callable[..., Any]]:
        """One activity per role, under the role's own name and with its exact types."""
        return [self._activity(role) for role in ROLES]

    async def run(self, role: RoleSpec[Any, Any], request: RoleInput) -> RoleOutput:
        """Load, render, ask, finish. Must run inside an activity; raises `ApplicationError`."""
        async with attempted(MODELS):
            return await self._done(role, request)

    async def _done(self, role: RoleSpec[Any, Any], request: RoleInput) -> RoleOutput:
        with translated(RECORDS):
            documents = await load_documents(request, self._content)
        excerpts: dict[str, str] = {}
        rendered = self._rendered(role, request, documents, 1.0, excerpts)

        def shortened(share: float) -> ShortPrompt:
            short = self._rendered(role, request, documents, share, excerpts)
            return ShortPrompt(short.prompt, short.common_length, short.left_out)

        task = EngineTask(
            role,
            request,
            documents,
            rendered.system,
            rendered.prompt,
            rendered.version,
            rendered.common_length,
            shortened,
        )
        answer = await self._answered(task)
        shown = request_as_shown(request, documents, self._content_characters, answer.share)
        account = CallAccount(
            engine=answer.engine,
            model=answer.model,
            prompt_version=rendered.version,
            usage=answer.usage,
            warnings=answer.warnings,
        )
        try:
            check_answer(request, answer.draft)
            # A program quotes what is stored; a model copies from lines that begin with a sign.
            draft = unsigned(answer.draft) if request.engine is EngineKind.MODEL else answer.draft
            return await self._finished(role, Draft(shown, draft, documents, account))
        except AnswerUnusable as error:
            error.usage, error.model = answer.usage, answer.model
            raise

    def _rendered(
        self,
        role: RoleSpec[Any, Any],
        request: RoleInput,
        documents: Mapping[str, str],
        share: float,
        excerpts: dict[str, str],
    ) -> RenderedPrompt:
        """Only a model reads a prompt: a report must not name the version of one that nobody used."""
        if request.engine is EngineKind.EXTRACTIVE:
            return RenderedPrompt(system="", prompt="", version="")
        return render_role(role, request, documents, self._content_characters, share, excerpts)

    async def _answered(self, task: EngineTask) -> EngineAnswer:
        engine = self._engines.get(task.input.engine)
        if engine is None:
            raise NotConfigured(f"this worker has no {task.input.engine.value} engine: see `research doctor`")
        if not engine.paid:
            return await engine.answer(task)
        return await self._journal.answer(engine, task)

    async def _finished(self, role: RoleSpec[Any, Any], work: Draft[Any, Any]) -> RoleOutput:
        if role.name == roles.SYNTHESIZER.name:
            return await finish_report(work, self._content)
        return FINISHERS[role.name](work)

    def _activity(self, role: RoleSpec[Any, Any]) -> Callable[..., Any]:
        async def do_role(request: Any) -> Any:
            return await self.run(role, request)

        # Temporal decodes arguments by these annotations.
        do_role.__annotations__ = {"request": role.input, "return": role.output}
        do_role.__name__ = do_role.__qualname__ = role.activity
        registered: Callable[[Any], Awaitable[Any]] = activity.defn(name=role.activity)(do_role)
        return registered
