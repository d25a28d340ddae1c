"""Checkpoints of a run: each sends the changes since the last one, and at most one is in flight."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.agents import AgentRecord
from contracts.evidence import Candidate
from contracts.messages import SaveRequest, StateChange
from contracts.names import RECORDS_QUEUE
from contracts.notebooks import strip_entry_texts
from contracts.outcome import Usage
from contracts.resolved import ResolvedResearch
from contracts.roles import ANALYZER
from contracts.sentences import Message
from contracts.state import PACKED_EVENTS, Refresh, ResearchState
from contracts.state_changes import change_between, json_digest, pack_json
from contracts.strategies import CLOSING_ROLES, writers
from contracts.vocabulary import AWAITING, NATURAL_STOPS, AgentStatus, NodeKind, NodeStatus, RunStatus
from workflows.rules.endings import may_be_read_later
from workflows.run.calls import CallOptions, call_options, is_cancelled
from workflows.run.context import RunContext

T = TypeVar("T")

UNSAVED: Final = Message("degraded_unsaved")
SAVE_INTERVAL_SECONDS: Final = 10.0
"""Shortest time between two background checkpoints: paid answers are in the journal anyway, and a checkpoint takes as
much CPU time as reading two pages."""


class _Snapshot:
    """A state as JSON, with its digest."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = strip_entry_texts(state)
        self.digest = json_digest(self.state)


class Checkpoints:
    """Saves the session of a run, and tracks the content of the session store."""

    def __init__(self, run: RunContext, stored: dict[str, Any] | None = None) -> None:
        """`stored` is the state snapshot that the session store already has."""
        self._run = run
        self._stored = None if stored is None else _Snapshot(stored)
        self._saving: tuple[_Snapshot, _Snapshot] | None = None
        """What the store had before the save in flight, and what that writes; None if none is, or it writes all."""
        self._task: asyncio.Task[None] | None = None
        self._is_due = False
        self._asked_at = run.host.now()

    def save_in_background(self, *, at_once: bool = True) -> None:
        """Schedule a save of the latest state, `at_once` or if the last one was `SAVE_INTERVAL_SECONDS` ago.

        If a save is in flight, the next one follows it with the latest state at that time.
        """
        now = self._run.host.now()
        is_spared = not at_once and (now - self._asked_at).total_seconds() < SAVE_INTERVAL_SECONDS
        if is_spared or self._run.state.scope:
            return  # an agent's state is saved with its run
        self._is_due = True
        self._asked_at = now
        if self._task is None or self._task.done():
            self._note_failure()
            self._task = asyncio.ensure_future(self._save_until_newest())

    async def settle(self) -> None:
        """Wait for the save in flight and the one queued behind it; a failure is recorded, not raised."""
        if self._task is not None:
            await self._run.host.settle([self._task])
        self._note_failure()

    def abandon(self) -> None:
        """Cancel the save in flight; the content of the store is unknown afterwards."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._stored = None

    async def save(self, *, closed: bool = False, events: int = 0, options: CallOptions | None = None) -> None:
        """Save the latest state, with the latest `events` events, or all of a `closed` run. Raises `ActivityError`."""
        resolved = self._run.resolved
        state = self._run.state
        # A later checkpoint can make up for this one, but not for the last one.
        patience = None
        if not closed:
            patience = self._run.clock.remaining_work_seconds()
        call = options or call_options(RECORDS_QUEUE, self._run.operation("save"), "save the session", patience)
        snapshot = _Snapshot(state.snapshot(PACKED_EVENTS if closed else events))

        async def send(change: StateChange) -> None:
            owner = {"research_id": resolved.research_id, "tenant": resolved.tenant}
            request = SaveRequest(change=change, closed=closed, yields_turn=state.people.waiting is not None, **owner)
            await self._run.host.execute(activities.SAVE_SESSION, request, call)

        stored = self._stored
        self._stored = None  # unknown until the save has ended
        self._saving = None if stored is None else (stored, snapshot)
        try:
            await self._send(send, snapshot, stored)
        except ActivityError as error:
            if not is_cancelled(error):
                self._stored = stored
            raise
        finally:
            self._saving = None
        self._stored = snapshot

    async def with_newest_state(self, send: Callable[[StateChange], Awaitable[T]]) -> T:
        """Call an activity that works on the latest state, saved or not, also beside a save. Raises `ActivityError`."""
        snapshot = _Snapshot(self._run.state.snapshot())
        if self._saving is None:
            return await self._send(send, snapshot, self._stored)
        stored, newer = self._saving
        return await self._send(send, snapshot, newer, _change(stored, newer))

    async def _send(
        self,
        send: Callable[[StateChange], Awaitable[T]],
        snapshot: _Snapshot,
        stored: _Snapshot | None,
        in_flight: StateChange | None = None,
    ) -> T:
        """Send the change from what is stored, or will be once `in_flight` is; else the whole state."""
        if stored is not None:
            try:
                return await send(_change(stored, snapshot).with_fields(in_flight=in_flight))
            except ActivityError as error:
                if not isinstance(error.cause, ApplicationError) or error.cause.type != failures.SESSION_CHANGED:
                    raise
        return await send(_change(None, snapshot))

    async def _save_until_newest(self) -> None:
        while self._is_due:
            self._is_due = False
            await self.save()

    def _note_failure(self) -> None:
        task = self._task
        if task is None or not task.done():
            return
        self._task = None
        if not task.cancelled() and isinstance(task.exception(), ActivityError):
            self._run.degrade(UNSAVED)

    async def save_with_events(self) -> bool:
        """Save the latest state before a continue-as-new; return true if it is saved."""
        await self.settle()
        try:
            await self.save(events=PACKED_EVENTS)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._run.degrade(UNSAVED)
            return False
        return True


def _change(stored: _Snapshot | None, snapshot: _Snapshot) -> StateChange:
    return StateChange(
        base=stored.digest if stored else "",
        digest=snapshot.digest,
        packed=pack_json(change_between(stored.state if stored else {}, snapshot.state)),
    )


def resume_state(
    state: ResearchState, resolved: ResolvedResearch, started_at: str, reposition: Callable[..., None]
) -> ResearchState:
    """Return the state to resume from: completed work is retained, traces of the earlier end are removed.

    Usage keeps counting; the deadline starts over. Except in a refresh, unanswered work is repeated: searches, pages,
    tasks, and analyses that failed or ran without the model. `reposition` is `Strategy.resume`.
    """
    hasty = set[str]()
    unread = set[str]()
    failed = set[str]()
    if state.work.refresh is None:
        hasty = set(state.work.hasty_analyses)
        unread = _requeue_lost_pages(state)
        failed = {node.id for node in state.work.plan.nodes if node.status is NodeStatus.FAILED}
    redone = hasty | unread | failed
    # Degradations noted by a killed run still apply.
    interrupted = state.work.status in (RunStatus.RUNNING, *AWAITING) and state.work.ending is None
    # Gaps inferred from failed work no longer apply.
    origins = {f"sub_query:{name}" for name in redone}
    state.evidence.gaps = [gap for gap in state.evidence.gaps if gap.origin not in origins]
    state.work.analyzed_sub_queries = [query for query in state.work.analyzed_sub_queries if query not in redone]
    state.clock.active_seconds_before = state.accounts.usage.active_seconds
    state.work.resolved = resolved
    state.work.status = RunStatus.RUNNING
    state.clock.started_at = state.clock.started_at or started_at
    if not interrupted:
        state.work.degraded = []
        _ask_roles_again(state)
    if failed or not interrupted:
        state.work.failed_branches = []
    _remove_traces(state)
    state.work.agents = [_resumed_agent(record, unread) for record in state.work.agents]
    ended = (NodeStatus.FAILED, NodeStatus.SKIPPED)
    if state.work.refresh is None:
        state.work.plan = state.work.plan.with_nodes(
            *(node.reopened() for node in state.work.plan.nodes if node.status in ended or node.id in unread)
        )
    # The strategy repositions by the earlier ending, so the ending is removed only afterwards.
    reposition(state, redo_analysis=bool(hasty))
    state.work.ending = None
    return state


def _ask_roles_again(state: ResearchState) -> None:
    """Forget that roles which are called again did without the model; what other roles did so stays."""
    accounts = state.accounts
    asked_again = {ANALYZER.name, *writers(), *(role.name for role in CLOSING_ROLES)}
    accounts.fallbacks = {role: count for role, count in accounts.fallbacks.items() if role not in asked_again}
    accounts.rule_answers = {role: count for role, count in accounts.rule_answers.items() if role not in asked_again}


def _remove_traces(state: ResearchState) -> None:
    """Remove the traces of the earlier end, but for the ending itself; a person gets the full time to answer again."""
    state.people.waiting = None
    state.clock.clock_stopped_at = 0.0
    state.clock.limits_fixed = False
    state.work.limitations = []
    state.work.last_failure = ""
    state.work.result = None
    state.work.hasty_analyses = []
    state.work.lost_providers = {}
    state.work.defects = []


def begin_refresh(state: ResearchState, *, requested: bool) -> None:
    """Prepare a finished run to read its sources again if `requested`; usage then covers only the refresh.

    An interrupted refresh is continued.
    """
    unfinished: Refresh | None = None
    if state.work.ending is not None:
        unfinished = state.work.refresh if state.work.ending.stop_reason not in NATURAL_STOPS else None
        state.work.refresh = None
    if not requested or state.work.refresh is not None or state.work.result is None or state.work.result.files is None:
        return
    cited = set(state.evidence.draft_citations)
    unwritten = [finding.id for finding in state.evidence.findings if not cited.intersection(finding.evidence_ids)]
    state.work.refresh = Refresh(
        before=state.work.result.files.json_document,
        draft=state.evidence.draft.document.hash if state.evidence.draft else "",
        due=[source.id for source in state.evidence.readable_sources()],
        # Findings that an unfinished refresh had no time to write are still due.
        unwritten=[name for name in unwritten if unfinished is None or name in unfinished.unwritten],
    )
    state.accounts.usage = Usage()
    state.accounts.usage_by_role = {}
    state.accounts.usage_by_phase = {}
    state.accounts.paid_failures = []


def _resumed_agent(record: AgentRecord, unread: set[str]) -> AgentRecord:
    """Return an agent's record for a resumed run; an agent that failed or lost pages is marked as unfinished."""
    if record.status is AgentStatus.FAILED:
        return record.with_fields(status=AgentStatus.CUT_OFF)
    if record.result is not None and record.task.id in unread:
        problem = record.result.problem or "pages that it found gave no answer"
        return record.with_fields(result=record.result.with_fields(problem=problem))
    return record


def _requeue_lost_pages(state: ResearchState) -> set[str]:
    """Turn pages that gave no answer back into hits, and return the sub-queries and tasks that found them.

    A page found by an agent remains a source until an agent reads it.
    """
    pending = {candidate.sub_query_id for candidate in state.evidence.candidates}
    finders = set[str]()
    for source in list(state.evidence.sources.values()):
        if not may_be_read_later(source):
            continue
        found_by = [query for query in state.work.plan.sub_queries if query.id in source.sub_query_ids]
        finders |= {query.id for query in found_by}
        if any(query.kind is NodeKind.QUERY for query in found_by):
            del state.evidence.sources[source.id]
        state.evidence.candidates += [
            Candidate(sub_query_id=query.id, hit=source.as_hit())
            for query in found_by
            if query.kind is NodeKind.QUERY and query.id not in pending
        ]
    state.evidence.aliases = {
        url: name for url, name in state.evidence.aliases.items() if name in state.evidence.sources
    }
    return finders
