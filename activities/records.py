"""Book-keeping: prepare a run, save its session, serve stored documents."""

import json
import secrets
from contextlib import suppress
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from activities.assessment.source_assessment import best_quality
from activities.configuration import ResearchConfiguration
from activities.earlier_run import sources_to_offer
from activities.failures import RECORDS, attempt
from activities.preparation import RunRefused, resolve, resolve_again
from contracts import failures
from contracts.agents import PrepareAgentRequest, PreparedAgent
from contracts.evidence import DocumentRef
from contracts.messages import (
    DocumentPiece,
    DocumentPieceRequest,
    Prepared,
    PrepareRequest,
    SaveRequest,
    SessionRef,
    StateChange,
)
from contracts.notebooks import AnalysisEntry, HitsEntry, without_entry_texts
from contracts.outcome import INLINE_REPORT_CHARACTERS
from contracts.request import SUMMARY_CHARACTERS, FollowUp, ResearchRequest
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.roles import SourceExtract
from contracts.state import SCHEMA_VERSION, ResearchState
from contracts.state_changes import apply_change, digest_of, unpack_json
from contracts.vocabulary import Outcome, StopReason
from providers.errors import ContentCorrupt, ContentMissing, CorpusUnknown, ProviderError, Unavailable
from providers.interfaces import ContentStore, Corpora, Notebooks, RunQueue, SessionStore

CANARY_BYTES: Final = 12
"""96 bits: nobody can guess it."""
EXTRACTED: Final = {"id", "url", "title", "publisher", "quality", "text"}
"""What a writer is told of a source."""
NO_SESSION: Final = "there is no such session"


class RecordsActivities:
    """Made with the configuration, the corpora, the content store, the session store and the queue of runs."""

    def __init__(
        self,
        configuration: ResearchConfiguration,
        corpora: Corpora,
        content: ContentStore,
        sessions: SessionStore,
        notebooks: Notebooks,
        queue: RunQueue,
    ) -> None:
        self._queue = queue
        self._configuration = configuration
        self._corpora = corpora
        self._content = content
        self._sessions = sessions
        self._notebooks = notebooks

    @activity.defn(name="prepare_research")
    async def prepare_research(self, request: PrepareRequest) -> Prepared:
        """Resolve the request; load the session to go on from; take the run's turn if there is room for it."""
        asked = ResearchRequest.model_validate_json(request.request_json)
        async with attempt(RECORDS):
            try:
                if asked.continue_from:
                    return await self._with_turn(request, await self._go_on(request, asked, asked.continue_from))
                return await self._with_turn(request, await self._start(request, asked))
            except RunRefused as refusal:
                detail = {"stop_reason": refusal.reason.value}
                raise ApplicationError(
                    str(refusal),
                    detail,
                    type=failures.REFUSED,
                    non_retryable=True,
                    category=ApplicationErrorCategory.BENIGN,  # a request that cannot be met is no fault of a worker
                ) from None

    @activity.defn(name="prepare_agent")
    async def prepare_agent(self, request: PrepareAgentRequest) -> PreparedAgent:
        """Keep what an agent was given: its calls refer to it."""
        async with attempt(RECORDS):
            return PreparedAgent(resolved_entry=await self._notebooks.write(request.resolved))

    @activity.defn(name="save_session")
    async def save_session(self, request: SaveRequest) -> SessionRef:
        """Write a checkpoint as readable JSON: the stored state with what has changed since."""
        async with attempt(RECORDS):
            state = await changed_state(self._sessions, self._notebooks, request.research_id, request.change)
            text = json.dumps(await self._with_report(state), ensure_ascii=False)
            await self._sessions.save(request.research_id, text, closed=request.closed)
        if request.closed or request.yields_turn:
            with suppress(ProviderError):  # a place that is not given back is found to be lost
                await self._queue.leave(request.research_id)
        return SessionRef(research_id=request.research_id)

    @activity.defn(name="read_document")
    async def read_document(self, request: DocumentPieceRequest) -> DocumentPiece:
        """A piece of a report, a session or the text of a source."""
        async with attempt(RECORDS):
            text = await self._document(request)
        start, end = request.offset, request.offset + min(request.limit, 1_000_000)
        return DocumentPiece(text=text[start:end], next_offset=end if end < len(text) else None, size=len(text))

    async def _start(self, request: PrepareRequest, asked: ResearchRequest) -> Prepared:
        resolved = resolve(
            request.research_id,
            asked,
            self._configuration,
            await self._corpus(asked.corpus),
            search_attributes=await self._has_search_attributes(),
        )
        resolved = await self._add_canary(await self._add_follow_up(resolved, asked.follow_up_of))
        return Prepared(resolved=resolved, resolved_entry=await self._notebooks.write(resolved))

    async def _with_turn(self, request: PrepareRequest, prepared: Prepared) -> Prepared:
        """Take the run's turn where there is room. The queue frees the place of one that is refused afterwards."""
        if request.continued or prepared.stored_result is not None:
            return prepared
        turn = await self._queue.take(request.research_id, prepared.resolved.tenant)
        return prepared.model_copy(update={"has_turn": not turn.place})

    async def _add_follow_up(self, resolved: ResolvedResearch, followed: str | None) -> ResolvedResearch:
        """With the sources of the run that this one follows. Raises `RunRefused` where there is no such run."""
        if followed is None:
            return resolved
        stored = await self._sessions.load(followed)
        state = ResearchState.model_validate_json(stored or "{}")
        if state.resolved is None or state.resolved.tenant != resolved.tenant:
            message = f"follow_up_of: there is no stored run {followed}: see `research list`"
            raise RunRefused(StopReason.INVALID_INPUT, message)
        if state.schema_version == SCHEMA_VERSION:
            state = await self._notebooks.complete_state(state)
        hits = sources_to_offer(state, resolved)
        told = FollowUp(
            research_id=followed,
            query=state.resolved.query if state.resolved else "",
            summary=(state.result.summary if state.result else state.plan.brief)[:SUMMARY_CHARACTERS],
            entry=await self._notebooks.write(HitsEntry(hits=hits)) if hits else "",
            sources=len(hits),
        )
        return resolved.model_copy(update={"follow_up": told})

    async def _has_search_attributes(self) -> bool:
        check = self._configuration.search_attributes
        try:
            return check is not None and await check()
        except RPCError as error:
            raise Unavailable(f"the server does not tell its search attributes ({error.status.name.lower()})") from None

    async def _add_canary(self, resolved: ResolvedResearch) -> ResolvedResearch:
        """With a canary; that of an earlier start of this run is kept, so that its paid answers are found again.

        Raises `RunRefused` where the id is another tenant's: its session would be overwritten.
        """
        try:
            stored = await self._sessions.load(resolved.research_id)
        except ContentCorrupt:
            stored = None  # a damaged session stops no new run: with another mark some answers may be paid again
        before = resolution_of(stored)
        if before is not None and before.tenant != resolved.tenant:
            message = f"the id {resolved.research_id} cannot be used: choose another one"
            raise RunRefused(StopReason.INVALID_INPUT, message)
        known = before.canary if before is not None else ""
        return resolved.model_copy(update={"canary": known or secrets.token_hex(CANARY_BYTES)})

    async def _go_on(self, request: PrepareRequest, asked: ResearchRequest, session: str) -> Prepared:
        if session != request.research_id:
            message = f"continue_from: a run goes on under its own id: start it as {session}"
            raise RunRefused(StopReason.INVALID_INPUT, message)
        stored = await self._sessions.load(session)
        state = ResearchState.model_validate_json(stored or "{}")
        if stored is None or (state.resolved is not None and state.resolved.tenant != asked.tenant):
            message = f"there is no session {session} to go on from: see `research list`"
            raise RunRefused(StopReason.INVALID_INPUT, message)
        if state.resolved is None:
            raise RunRefused(StopReason.INVALID_INPUT, f"session {session} was never started: ask again")
        before = state.resolved
        if state.schema_version != SCHEMA_VERSION:
            state = await self._with_notebook(state)
        if request.continued:
            return Prepared(resolved=state.resolved, packed_state=state.pack(), resolved_entry=state.resolved_entry)
        resolved = resolve_again(before, asked, self._configuration)
        if not resolved.canary:
            resolved = resolved.model_copy(update={"canary": secrets.token_hex(CANARY_BYTES)})
        finished = state.result is not None and state.result.outcome is Outcome.COMPLETED
        return Prepared(
            resolved=resolved,
            packed_state=None if finished else state.pack(),
            stored_result=state.result if finished else None,
            resolved_entry=await self._notebooks.write(resolved),
        )

    async def _with_notebook(self, state: ResearchState) -> ResearchState:
        """A state of version 1, which holds everything itself, as one with a notebook."""
        sources = {
            source.id: source.model_copy(
                update={
                    "found_quality": source.assessment.label if source.assessment else None,
                    "best_quality": best_quality(source.assessment),
                }
            )
            for source in state.sources.values()
        }
        cited = {source_id for finding in state.findings for source_id in finding.source_ids}
        extracts = [
            SourceExtract.model_validate(source.model_dump(include=EXTRACTED))
            for source in sources.values()
            if source.id in cited
        ]
        analyses = AnalysisEntry(findings=state.findings, evidence=list(state.evidence.values()), sources=extracts)
        entry = await self._notebooks.write(analyses)
        evidence = {key: item.model_copy(update={"entry": entry}) for key, item in state.evidence.items()}
        findings = [finding.model_copy(update={"entry": entry}) for finding in state.findings]
        update = {"sources": sources, "evidence": evidence, "findings": findings, "schema_version": SCHEMA_VERSION}
        changed = state.model_copy(update=update)
        changed.note_entry(entry)
        return changed

    async def _with_report(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state whose result has its report inline, as readers of a session expect it."""
        result = state.get("result")
        if not result or result.get("report") or not result.get("report_ref"):
            return state
        text = await self._content.get_text(DocumentRef.model_validate(result["report_ref"]))
        return state | {"result": result | {"report": text[:INLINE_REPORT_CHARACTERS]}}

    async def _corpus(self, name: str | None) -> CorpusSnapshot | None:
        if name is None:
            return None
        try:
            snapshot = await self._corpora.describe(name)
            # A corpus that was declared and never indexed is indexed by the first run that names it.
            return snapshot if snapshot.indexed_at else await self._corpora.refresh(name)
        except CorpusUnknown as error:
            message = f"corpus: {error}; add it with `research corpus add`"
            raise RunRefused(StopReason.INVALID_INPUT, message) from None

    async def _document(self, request: DocumentPieceRequest) -> str:
        stored = await self._sessions.load(request.research_id)
        if stored is None:
            raise ContentMissing(NO_SESSION)
        state = ResearchState.model_validate_json(stored)
        if state.resolved is not None and state.resolved.tenant != request.tenant:
            raise ContentMissing(NO_SESSION)  # in the same words: whether there is one is not told to another tenant
        if request.name == "session.json":
            return (await self._notebooks.complete_state(state)).model_dump_json()
        return await self._content.get_text(_reference(state, request.name))


async def changed_state(
    sessions: SessionStore, notebooks: Notebooks, research_id: str, change: StateChange
) -> dict[str, Any]:
    """The stored state of a run with a change of it.

    A change that was made already is not made again. Raises `ApplicationError` of the type `SessionChanged` where the
    stored state is another one, and what the store raises.
    """
    before: dict[str, Any] = {}
    if change.base:
        try:
            before = without_entry_texts(without_report(json.loads(await sessions.load(research_id) or "{}")))
        except ContentCorrupt:
            raise _another_session() from None
        known = digest_of(before)
        if known == change.digest:
            return await notebooks.with_entry_texts(before)
        if known != change.base:
            raise _another_session()
    after: dict[str, Any] = apply_change(before, unpack_json(change.packed))
    if digest_of(after) != change.digest:
        raise _another_session()
    return await notebooks.with_entry_texts(after)


def without_report(state: dict[str, Any]) -> dict[str, Any]:
    """A stored state as the workflow compares it: the report's text lies in a document of its own."""
    result = state.get("result")
    if not result or not result.get("report_ref"):
        return state
    return state | {"result": {name: value for name, value in result.items() if name != "report"}}


def _another_session() -> ApplicationError:
    message = "the stored session is not the one that was changed: it is written anew as a whole"
    return ApplicationError(message, type=failures.SESSION_CHANGED, non_retryable=True)


def resolution_of(stored: str | None) -> ResolvedResearch | None:
    """What a stored session was given; None if there is none that can be read."""
    try:
        return ResearchState.model_validate_json(stored or "{}").resolved
    except ValueError:
        return None


def _reference(state: ResearchState, name: str) -> DocumentRef:
    """Where a document of a run lies. Raises `ContentMissing`."""
    if state.result and state.result.files:
        files = state.result.files
        named = {"report.md": files.markdown, "report.html": files.html, "report.json": files.json_document}
        if name in named:
            return named[name]
    source = state.sources.get(name)
    if source is None or source.text is None:
        raise ContentMissing("the run has no such document")
    return source.text
