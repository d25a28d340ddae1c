"""Checkpoints of a run: each sends what has changed since the one before, and one at most is under way."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures
from contracts.messages import SaveRequest, StateChange
from contracts.notebooks import without_entry_texts
from contracts.resolved import ResolvedResearch
from contracts.state import PACKED_EVENTS, ResearchState
from contracts.state_changes import change_between, digest_of, pack_json
from contracts.vocabulary import AWAITING, AgentStatus, NodeStatus, RunStatus
from workflows.run.calls import CallOptions, is_cancelled, record_options
from workflows.run.context import RunContext

T = TypeVar("T")

UNSAVED: Final = "a checkpoint could not be saved"


@dataclass(frozen=True)
class _Snapshot:
    """A state as JSON, with its digest."""

    state: dict[str, Any]
    digest: str

    @classmethod
    def of(cls, state: dict[str, Any]) -> "_Snapshot":
        compact = without_entry_texts(state)
        return cls(compact, digest_of(compact))


class Checkpoints:
    """Saves the session of a run; knows what the session store holds."""

    def __init__(self, run: RunContext, stored: dict[str, Any] | None = None) -> None:
        """`stored` is the snapshot of the state that the session store has already."""
        self._run = run
        self._stored = None if stored is None else _Snapshot.of(stored)
        self._task: asyncio.Task[None] | None = None
        self._is_due = False

    def save_in_background(self) -> None:
        """Have the newest state saved; while a save is under way, the one after it takes the newest state then."""
        if self._run.state.scope:
            return  # what an agent has is its run's to save
        self._is_due = True
        if self._task is None or self._task.done():
            self._take_note_of_failure()
            self._task = asyncio.ensure_future(self._save_until_newest())

    async def settle(self) -> None:
        """Wait for the save under way, and for the one that waits for it. A failure is recorded, not raised."""
        if self._task is not None:
            await self._run.host.settle([self._task])
        self._take_note_of_failure()

    def abandon(self) -> None:
        """Cancel what is under way; what the store holds then is unknown."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._stored = None

    async def save(self, *, closed: bool = False, events: int = 0, options: CallOptions | None = None) -> None:
        """Save the newest state, with so many of the newest events. Raises `ActivityError`."""
        resolved = self._run.resolved
        # A later checkpoint makes up for this one; the last one is waited for.
        patience = None if closed else self._run.clock.remaining_work_seconds()
        how = options or record_options(self._run.operation("save"), "save the session", patience)
        snapshot = _Snapshot.of(self._run.state.snapshot(events))

        async def send(change: StateChange) -> None:
            request = SaveRequest(
                research_id=resolved.research_id,
                tenant=resolved.tenant,
                change=change,
                closed=closed,
                yields_turn=self._run.state.waiting is not None,
            )
            await self._run.host.execute(activities.SAVE_SESSION, request, how)

        stored, self._stored = self._stored, None  # until it is known what became of it
        try:
            await self._send(send, snapshot, stored)
        except ActivityError as error:
            if not is_cancelled(error):
                self._stored = stored
            raise
        self._stored = snapshot

    async def with_newest_state(self, send: Callable[[StateChange], Awaitable[T]]) -> T:
        """Call an activity that works on the newest state, whether that is saved or not. Raises `ActivityError`."""
        return await self._send(send, _Snapshot.of(self._run.state.snapshot()), self._stored)

    async def _send(
        self, send: Callable[[StateChange], Awaitable[T]], snapshot: _Snapshot, stored: _Snapshot | None
    ) -> T:
        if stored is not None:
            try:
                return await send(_change(stored, snapshot))
            except ActivityError as error:
                if not isinstance(error.cause, ApplicationError) or error.cause.type != failures.SESSION_CHANGED:
                    raise
        return await send(_change(None, snapshot))

    async def _save_until_newest(self) -> None:
        while self._is_due:
            self._is_due = False
            await self.save()

    def _take_note_of_failure(self) -> None:
        task = self._task
        if task is None or not task.done():
            return
        self._task = None
        if not task.cancelled() and isinstance(task.exception(), ActivityError):
            self._run.degrade(UNSAVED)

    async def save_with_events(self) -> bool:
        """Have the newest state saved before the history starts anew; whether it is."""
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


class Reposition(Protocol):
    """`Strategy.resume`."""

    def __call__(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move the position of the state to what is to be done again."""
        ...


def resume_state(
    state: ResearchState, resolved: ResolvedResearch, started_at: str, reposition: Reposition
) -> ResearchState:
    """The state to go on with: completed work is kept, marks of the earlier end are taken off.

    Usage goes on counting; the deadline is fresh. What was analyzed in haste at an earlier end is analyzed properly.
    """
    hasty = set(state.hasty_analyses)
    # What was concluded from a search that failed does not hold once the search is made again.
    failed = {node.id for node in state.plan.nodes if node.status is NodeStatus.FAILED}
    state.gaps = [gap for gap in state.gaps if gap.origin.removeprefix("sub_query:") not in failed]
    # A run that was killed goes on as if nothing had been: what it has noted still holds.
    interrupted = state.status in (RunStatus.RUNNING, *AWAITING) and state.ending is None
    state.active_seconds_before = state.usage.active_seconds
    state.resolved = resolved
    state.status = RunStatus.RUNNING
    state.started_at = state.started_at or started_at
    state.analyzed_sub_queries = [query for query in state.analyzed_sub_queries if query not in hasty | failed]
    state.degraded = state.degraded if interrupted else []
    state.failed_branches = state.failed_branches if interrupted and not failed else []
    # Who was waited for is asked again, and given as much time as at first.
    state.waiting, state.clock_stopped_at, state.limits_fixed = None, 0.0, False
    state.limitations, state.last_failure, state.result = [], "", None
    state.hasty_analyses, state.fallbacks, state.lost_providers = [], {}, {}
    # A task that failed is given again where the strategy still wants it.
    state.agents = [
        record.model_copy(update={"status": AgentStatus.CUT_OFF}) if record.status is AgentStatus.FAILED else record
        for record in state.agents
    ]
    again = {"status": NodeStatus.PENDING, "error": None, "status_reason": ""}
    undone = (NodeStatus.FAILED, NodeStatus.SKIPPED)
    state.plan = state.plan.with_nodes(
        *(node.model_copy(update=again) for node in state.plan.nodes if node.status in undone)
    )
    # Whether the run was concluded before decides what is left to do.
    reposition(state, redo_analysis=bool(hasty))
    state.ending = None
    return state
