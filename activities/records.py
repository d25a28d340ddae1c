"""Record keeping: prepare a run, save its session, serve stored documents."""

import asyncio
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.ceilings import cap_cost, no_money_left
from activities.failures import RECORDS, attempt
from activities.preparation import (
    NO_PROOF,
    ResearchConfiguration,
    RunRefused,
    described_strategy,
    resolve,
    resolve_again,
    settings_schema,
    with_estimate,
)
from activities.searching import sources_to_offer
from contracts import activities, failures, messages, presets
from contracts.agents import PrepareAgentRequest
from contracts.canary import without_canary
from contracts.evidence import DocumentRef, SearchHit, source_document
from contracts.names import CORPUS_SCHEME
from contracts.notebooks import HitsEntry, strip_entry_texts
from contracts.outcome import INLINE_REPORT_CHARACTERS
from contracts.parse_request import error_lines
from contracts.request import SUMMARY_CHARACTERS, FollowUp, ResearchRequest, Turn
from contracts.resolved import MAX_CLOSEST_TITLES, MAX_SHOWN_TITLES, MAX_TURNS, CorpusSnapshot, ResolvedResearch
from contracts.state import ResearchState, WorkState
from contracts.state_changes import apply_change, json_digest, unpack_json
from contracts.strategies import declaration, list_selectable
from contracts.tenants import DEFAULT_TENANT
from contracts.texts import shorten
from contracts.vocabulary import EngineKind, Outcome, RunStatus, StopReason
from providers.errors import ContentCorrupt, ContentMissing, CorpusUnknown, ProviderError, Unavailable
from providers.interfaces import ContentStore, Corpora, SessionStore
from providers.shared.day_budget import DayBudget
from providers.shared.run_queue import QueueFull, RunQueue
from providers.storage.stored_notebooks import Notebooks

CANARY_BYTES: Final = 12  # 96 bits cannot be guessed
MAX_THREAD: Final = 50
"""Runs of a thread whose evidence is offered, the latest ones."""
TURN_CHARACTERS: Final = 2_000
"""Of what a planner is shown of an answer further up in the thread."""


@dataclass(frozen=True, eq=False)
class RecordsActivities:
    """Activities that prepare runs, save their sessions and read stored documents."""

    configuration: ResearchConfiguration
    corpora: Corpora
    content: ContentStore
    sessions: SessionStore
    notebooks: Notebooks
    queue: RunQueue
    budget: DayBudget | None = None
    waits_for_models: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first run that has a model: while it waits for answers, the process may load what comes later."""

    @activity.defn(name=activities.PREPARE_RESEARCH.name)
    async def prepare_research(self, request: messages.PrepareRequest) -> messages.Prepared:
        """Resolve the request, load or store the session, and take the run's turn if the queue has room."""
        async with attempt(RECORDS, handles_text=False):
            parsed = self._of_tenant(request, _parse(request.request_json))
            if parsed.continue_from:
                work = self._resume(request, parsed)
            else:
                work = self._start(request.research_id, parsed)
            prepared = await work
            if request.continued or prepared.stored_result is not None:
                return prepared
            # If the run is refused after this, the queue frees its place.
            turn = await self._enter_queue(request.research_id, prepared.resolved.tenant, parsed.priority)
            if not turn.place and not parsed.continue_from:
                # Saved now, so that a run terminated early can be resumed with the answers it paid for.
                state = ResearchState(work=WorkState(status=RunStatus.RUNNING))
                state.take_resolution(prepared.resolved, prepared.resolved_entry)
                await self.sessions.save(request.research_id, json.dumps(state.snapshot()), closed=False)
            if prepared.resolved.engine is EngineKind.MODEL:
                self.waits_for_models.set()
            return prepared.with_fields(has_turn=not turn.place, turn=turn if turn.place else None)

    async def _enter_queue(self, research_id: str, tenant: str, priority: int) -> messages.QueueTurn:
        """Return the turn or the place of a run that has not begun. Raises `RunRefused` if too many wait."""
        try:
            return await self.queue.take(research_id, tenant, priority, has_begun=False)
        except QueueFull as full:
            if self.budget is not None:
                with suppress(ProviderError):  # the next run that lacks money finds it by itself
                    await self.budget.release(research_id)
            raise RunRefused(str(full)) from None

    @activity.defn(name=activities.PREVIEW_RESEARCH.name)
    async def preview_research(self, request: messages.PrepareRequest) -> ResolvedResearch:
        """Resolve the request as `prepare_research` would, without storing it or reading the files of its corpus."""
        async with attempt(RECORDS, handles_text=False):
            parsed = self._of_tenant(request, _parse(request.request_json))
            if parsed.continue_from:
                state, stored = await self._load_run(request.research_id, parsed)
                resolved = resolve_again(stored, parsed, self.configuration).with_fields(canary="")
                return await self._with_money(resolved, spent_before(parsed, state), is_trial=True)
            corpus = None
            if parsed.corpus:
                corpus = CorpusSnapshot(name=parsed.corpus, files=1)
                with suppress(CorpusUnknown):
                    indexed = await self.corpora.describe(parsed.corpus)
                    corpus = indexed if indexed.indexed_at and indexed.files else corpus
            resolved = resolve(request.research_id, parsed, self.configuration, corpus, search_attributes=False)
            return await self._with_money(resolved, 0.0, is_trial=True)

    @activity.defn(name=activities.DESCRIBE_RESEARCH.name)
    async def describe_research(self, request: messages.MetadataRequest) -> messages.ResearchMetadata:
        """Return the settings schema of a strategy for the tenant that is proven, and the place of stored sessions."""
        if request.strategy:
            strategy = declaration(request.strategy)
        else:
            strategy = described_strategy()
        info = activity.info()
        ids = [info.workflow_id] if info.workflow_id else []
        rules = self.configuration.tenants
        tenant = rules.tenant_of(DEFAULT_TENANT, request.tenant_proof, ids, info.namespace) or DEFAULT_TENANT
        return messages.ResearchMetadata(
            research_collection=self.configuration.collection,
            research_settings_schema=settings_schema(strategy, self.configuration, tenant),
        )

    @activity.defn(name=activities.TAKE_TURN.name)
    async def take_turn(self, request: messages.TurnRequest) -> messages.QueueTurn:
        """Return the run's place in the queue, 0 if it may start; else a signal tells it when it may."""
        async with attempt(RECORDS, handles_text=False):
            return await self.queue.take(request.research_id, request.tenant, request.priority)

    @activity.defn(name=activities.PREPARE_AGENT.name)
    async def prepare_agent(self, request: PrepareAgentRequest) -> str:
        """Store an agent's resolution, and return the entry that its calls refer to."""
        async with attempt(RECORDS, handles_text=False):
            return await self.notebooks.write(request.resolved)

    @activity.defn(name=activities.SAVE_SESSION.name)
    async def save_session(self, request: messages.SaveRequest) -> None:
        """Write a checkpoint as readable JSON: the stored state with the change applied."""
        async with attempt(RECORDS, handles_text=False):
            state = await changed_state(self.sessions, self.notebooks, request.research_id, request.change)
            text = json.dumps(await self._with_report(state), ensure_ascii=False)
            await self.sessions.save(request.research_id, text, closed=request.closed)
        if request.closed or request.yields_turn:
            with suppress(ProviderError):  # the queue finds the ended run by itself
                await self.queue.release(request.research_id)
        if request.closed and self.budget is not None:
            with suppress(ProviderError):  # the next run that lacks money finds it by itself
                await self.budget.release(request.research_id)

    @activity.defn(name=activities.READ_DOCUMENT.name)
    async def read_document(self, request: messages.DocumentPieceRequest) -> messages.DocumentPiece:
        """Return a slice of a report, a session, a draft or the text of a source."""
        async with attempt(RECORDS, handles_text=False):
            tenant = self._proven_tenant(request.tenant, request.tenant_proof, [request.research_id])
            text = await self._document(request.with_fields(tenant=tenant))
        start = request.offset
        end = request.offset + min(request.limit, 1_000_000)
        return messages.DocumentPiece(
            text=text[start:end], next_offset=end if end < len(text) else None, size=len(text)
        )

    def _of_tenant(self, request: messages.PrepareRequest, parsed: ResearchRequest) -> ResearchRequest:
        """Return a request with its tenant. Raises `RunRefused` if the operator wants a proof and there is none."""
        if request.continued:  # by then it is that of its session
            return parsed
        ids = [name for name in (request.research_id, request.started_by) if name]
        tenant = self._proven_tenant(parsed.tenant, request.tenant_proof, ids)
        return parsed if tenant == parsed.tenant else parsed.with_fields(tenant=tenant)

    def _proven_tenant(self, named: str, proof: str, ids: list[str]) -> str:
        """Return the tenant of a client that names one. Raises `RunRefused` for one without a proof, if so set."""
        tenant = self.configuration.tenants.tenant_of(named, proof, ids, activity.info().namespace)
        if tenant is None:
            raise RunRefused(NO_PROOF)
        return tenant

    async def _start(self, research_id: str, parsed: ResearchRequest) -> messages.Prepared:
        corpus = await self._corpus(parsed.corpus)
        attributes = await self._has_search_attributes()
        resolved = resolve(research_id, parsed, self.configuration, corpus, search_attributes=attributes)
        followed = None
        if parsed.follow_up_of:
            followed = await self._follow_up(resolved, parsed.follow_up_of)
        corpus = await self._with_closest_titles(resolved)
        resolved = resolved.with_fields(follow_up=followed, canary=await self._canary(resolved), corpus=corpus)
        resolved = await self._with_money(resolved, 0.0)
        return messages.Prepared(resolved=resolved, resolved_entry=await self.notebooks.write(resolved))

    async def _load_run(self, research_id: str, parsed: ResearchRequest) -> tuple[ResearchState, ResolvedResearch]:
        """Load the state and the resolution that a request continues. Raises `RunRefused`."""
        session = parsed.continue_from or ""
        if session != research_id:
            raise RunRefused(f"continue_from: a run goes on under its own id: start it as {session}")
        state = await self._load_state(session)
        if state is None or (state.work.resolved is not None and state.work.resolved.tenant != parsed.tenant):
            raise RunRefused(f"there is no session {session} to go on from: see `research list`")
        if state.work.resolved is None:
            raise RunRefused(f"session {session} was never started: ask again")
        return state, state.work.resolved

    async def _resume(self, request: messages.PrepareRequest, parsed: ResearchRequest) -> messages.Prepared:
        state, stored = await self._load_run(request.research_id, parsed)
        if request.continued:
            return messages.Prepared(
                resolved=stored, packed_state=state.pack(), resolved_entry=state.work.resolved_entry
            )
        if parsed.refresh:
            await self._require_refreshable(state, stored)
        corpus = stored.corpus if parsed.refresh else None
        newest = None
        if corpus:
            newest = await self._corpus(corpus.name, refresh=True)
        resolved = resolve_again(stored, parsed, self.configuration, newest)
        if newest is not None:
            resolved = resolved.with_fields(corpus=await self._with_closest_titles(resolved))
        finished = (
            not parsed.refresh and state.work.result is not None and state.work.result.outcome is Outcome.COMPLETED
        )
        if not finished:
            resolved = await self._with_money(resolved, spent_before(parsed, state))
        return messages.Prepared(
            resolved=resolved,
            packed_state=None if finished else state.pack(),
            stored_result=state.work.result if finished else None,
            resolved_entry=await self.notebooks.write(resolved),
        )

    async def _with_money(
        self, resolved: ResolvedResearch, spent: float, *, is_trial: bool = False
    ) -> ResolvedResearch:
        """Reserve what a run may still cost (`with_money`), where the money of a day is limited."""
        if self.budget is None:
            return resolved
        return await with_money(resolved, spent, self.budget, self.configuration, is_trial=is_trial)

    async def _require_refreshable(self, state: ResearchState, resolved: ResolvedResearch) -> None:
        """Raise `RunRefused` unless the strategy updates its reports and the run has one to compare with."""
        if not declaration(resolved.strategy).live_report:
            names = [strategy.name for strategy in list_selectable() if strategy.live_report]
            raise RunRefused(
                f"refresh: a report of the strategy {resolved.strategy} cannot be refreshed, only those of "
                f"{' and '.join(names)} can: start a new run instead"
            )
        if state.work.refresh is not None and state.work.ending is None:
            return  # resumes the interrupted refresh
        if state.work.result is None or state.work.result.files is None or state.evidence.draft is None:
            raise RunRefused(f"refresh: the run has no finished report: `research resume {resolved.research_id}`")
        try:
            await self.content.get_text(state.work.result.files.json_document)
        except ContentMissing:
            raise RunRefused(
                "refresh: the stored report is gone, so nothing can be compared with it: start a new run"
            ) from None

    async def _follow_up(self, resolved: ResolvedResearch, followed: str) -> FollowUp:
        """Return the earlier run with the sources of its thread. Raises `RunRefused` if there is no such run."""
        thread = await self._load_thread(resolved.tenant, followed)
        if not thread:
            raise RunRefused(f"follow_up_of: there is no stored run {followed}: see `research list`")
        states = [await self.notebooks.complete_state(state) for state in thread.values()]
        latest, *above = states
        hits = await self._without_removed(sources_to_offer(states, resolved))
        return FollowUp(
            research_id=followed,
            query=latest.resolution.query,
            summary=summary_of(latest),
            thread=list(thread)[:0:-1],
            turns=[turn_of(state) for state in above[: MAX_TURNS - 1]][::-1],
            answered=sum(bool(state.evidence.findings) for state in states),
            entry=await self.notebooks.write(HitsEntry(hits=hits)) if hits else "",
            sources=len(hits),
        )

    async def _load_thread(self, tenant: str, followed: str) -> dict[str, ResearchState]:
        """Return the stored runs of a thread by id, from the one that is followed to the first one.

        Empty without a stored run of that id. Deleted runs, those of others and damaged ones above it are passed over.
        """
        thread: dict[str, ResearchState] = {}
        due = [followed]
        for research_id in due:
            try:
                state = await self._load_state(research_id)
            except (ContentCorrupt, ValidationError):
                if research_id == followed:
                    raise
                state = None
            if state is None or state.work.resolved is None or state.work.resolved.tenant != tenant:
                if research_id == followed:
                    return {}
                continue
            thread[research_id] = state
            if (earlier := state.work.resolved.follow_up) is not None and len(due) < MAX_THREAD:
                # A run that follows another names all above it, so that one deleted in between ends no thread.
                above = [earlier.research_id, *reversed(earlier.thread)]
                due += [name for name in above if name not in due][: MAX_THREAD - len(due)]
        return thread

    async def _without_removed(self, hits: list[SearchHit]) -> list[SearchHit]:
        """Return the sources without documents that their corpus no longer has."""
        kept = [hit for hit in hits if not hit.url.startswith(CORPUS_SCHEME) or await self.corpora.has(hit.url)]
        return [hit.with_fields(rank=rank) for rank, hit in enumerate(kept, start=1)]

    async def _canary(self, resolved: ResolvedResearch) -> str:
        """Return the canary of an earlier start of this run, so that its paid answers still match, or a new one.

        Raises `RunRefused` for an id of another tenant, whose session would be overwritten.
        """
        try:
            state = await self._load_state(resolved.research_id)
        except (ContentCorrupt, ValidationError):
            state = None  # no reason to block a new run, which may pay for some answers again under a new canary
        previous = state.work.resolved if state else None
        if previous is not None and previous.tenant != resolved.tenant:
            raise RunRefused(f"the id {resolved.research_id} cannot be used: choose another one")
        return (previous.canary if previous else "") or secrets.token_hex(CANARY_BYTES)

    async def _has_search_attributes(self) -> bool:
        check = self.configuration.search_attributes
        try:
            return check is not None and await check()
        except RPCError as error:
            raise Unavailable(f"the server does not list its search attributes ({error.status.name.lower()})") from None

    async def _load_state(self, research_id: str) -> ResearchState | None:
        stored = await self.sessions.load(research_id)
        if stored is None:
            return None
        return ResearchState.model_validate_json(stored)

    async def _with_report(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state with the report inline in its result, as readers of a session expect."""
        result = state.get("result")
        if not result or result.get("report") or not result.get("report_ref"):
            return state
        text = await self.content.get_text(DocumentRef.model_validate(result["report_ref"]))
        return state | {"result": result | {"report": text[:INLINE_REPORT_CHARACTERS]}}

    async def _corpus(self, name: str | None, *, refresh: bool = False) -> CorpusSnapshot | None:
        if name is None:
            return None
        try:
            snapshot = await self.corpora.describe(name)
            # A declared corpus is indexed by the first run that names it.
            if snapshot.indexed_at and not refresh:
                return snapshot
            return await self.corpora.refresh(name)
        except CorpusUnknown as error:
            raise RunRefused(f"corpus: {error}; add it with `research corpus add`") from None

    async def _with_closest_titles(self, resolved: ResolvedResearch) -> CorpusSnapshot | None:
        """Return the corpus of a run with the titles that fit its question best, for models that choose searches."""
        corpus = resolved.corpus
        if corpus is None or resolved.engine is not EngineKind.MODEL:
            return corpus
        closest = await self.corpora.closest_titles(corpus.name, resolved.query, MAX_CLOSEST_TITLES)
        named = {line.rpartition(" [")[0] for line in closest}
        others = [title for title in corpus.overview.titles if title not in named]
        room = max(1, MAX_SHOWN_TITLES - len(closest))
        every = max(1, -(-len(others) // room))  # those that are left still stand for all documents
        overview = corpus.overview.with_fields(closest=closest, titles=others[::every])
        return corpus.with_fields(overview=overview)

    async def _document(self, request: messages.DocumentPieceRequest) -> str:
        state = await self._load_state(request.research_id)
        if state is None or (state.work.resolved is not None and state.work.resolved.tenant != request.tenant):
            # One message for both cases: a tenant must not learn about another's sessions.
            raise ContentMissing("there is no such session")
        if request.name == "session.json":
            complete = await self.notebooks.complete_state(state)
            sources = {
                key: source_document(source, complete.evidence.findings)
                for key, source in complete.evidence.sources.items()
            }
            artifacts = [file for source in sources.values() for file in source["artifacts"]]
            session = complete.model_dump(mode="json") | {"sources": sources, "artifacts": artifacts}
            return json.dumps(without_canary(session), ensure_ascii=False)
        documents = {key: source.text for key, source in state.evidence.sources.items()}
        documents |= {revision: DocumentRef(hash=revision) for revision in state.evidence.revisions}
        if state.evidence.draft:
            documents |= dict.fromkeys(("draft.md", state.evidence.draft.document.hash), state.evidence.draft.document)
        if state.work.result and (files := state.work.result.files):
            documents |= {"report.md": files.markdown, "report.html": files.html, "report.json": files.json_document}
        document = documents.get(request.name)
        if document is None:
            raise ContentMissing("the run has no such document")
        return await self.content.get_text(document)


async def with_money(
    resolved: ResolvedResearch,
    spent: float,
    budget: DayBudget,
    configuration: ResearchConfiguration,
    *,
    is_trial: bool = False,
) -> ResolvedResearch:
    """Reserve what a run may still cost, less the `spent` US dollars; return it with what it got.

    A preview (`is_trial`) reserves nothing. Raises `RunRefused` if the day's money does not suffice, and the errors
    of the store.
    """
    cap = presets.highest_limits([resolved.limits, *resolved.choices.values()]).max_cost_usd
    usd = None if cap is None else max(0.0, cap - spent)
    if resolved.estimate is None:
        usd = 0.0  # it makes no paid call
    cuts = configuration.ceilings.beyond == "cut"
    granted, lacking = await budget.reserve(resolved.research_id, resolved.tenant, usd, cuts=cuts, is_trial=is_trial)
    if lacking is None:
        return resolved
    if granted is None:
        raise RunRefused(no_money_left(lacking, usd), StopReason.BUDGET_COST)
    return with_estimate(cap_cost(resolved, granted + spent), configuration)


async def changed_state(
    sessions: SessionStore, notebooks: Notebooks, research_id: str, change: messages.StateChange
) -> dict[str, Any]:
    """Apply a change to the stored state of a run. Idempotent.

    Raises `ApplicationError` of type `SessionChanged` if the stored state is not the one that the change is based on,
    and the errors of the store.
    """
    message = "the stored session is not the one that was changed: it is written again as a whole"
    other_session = ApplicationError(message, type=failures.SESSION_CHANGED, non_retryable=True)
    before: dict[str, Any] = {}
    if change.base:
        try:
            # A run that keeps to the version of its code changes what that version has written.
            stored = json.loads(await sessions.load(research_id, as_written=True) or "{}")
        except ContentCorrupt:
            raise other_session from None
        result = stored.get("result")
        if result and result.get("report_ref"):  # the workflow's state lacks the text of the report
            stored["result"] = {name: value for name, value in result.items() if name != "report"}
        before = strip_entry_texts(stored)
        known = json_digest(before)
        if known == change.digest:
            return await notebooks.with_entry_texts(before)
        if change.in_flight is not None and known == change.in_flight.base:
            before = _applied(before, change.in_flight, other_session)
            known = change.in_flight.digest
        if known != change.base:
            raise other_session
    return await notebooks.with_entry_texts(_applied(before, change, other_session))


def _applied(before: dict[str, Any], change: messages.StateChange, unlike: ApplicationError) -> dict[str, Any]:
    """Return the state after a change. Raises `unlike` if it is not the announced one."""
    after: dict[str, Any] = apply_change(before, unpack_json(change.packed))
    if json_digest(after) != change.digest:
        raise unlike
    return after


def spent_before(parsed: ResearchRequest, state: ResearchState) -> float:
    """Return the US dollars of a resumed run that count against its cost limit; a refresh begins at zero."""
    is_renewed = parsed.refresh and (state.work.refresh is None or state.work.ending is not None)
    return 0.0 if is_renewed else state.accounts.usage.known_cost_usd


def summary_of(state: ResearchState) -> str:
    """Return the summary of a run's report; without a report, the brief of its plan."""
    return (state.work.result.summary if state.work.result else state.work.plan.brief)[:SUMMARY_CHARACTERS]


def turn_of(state: ResearchState) -> Turn:
    """Return a question of a thread with the summary of its answer and its first statements, for a planner."""
    found = "; ".join(finding.statement for finding in state.evidence.findings)
    answer = " ".join(filter(None, [summary_of(state), found and f"Found: {found}"]))
    return Turn(question=state.resolution.query, answer=shorten(answer, TURN_CHARACTERS))


def _parse(request_json: str) -> ResearchRequest:
    """Parse a request that its workflow has validated. Raises `RunRefused` for any other: no attempt can use it."""
    try:
        return ResearchRequest.model_validate_json(request_json)
    except ValidationError as error:
        raise RunRefused("\n".join(error_lines(error))) from None
