"""A session store of one run for worlds without activities: it applies changes as `save_session` does."""

from typing import Any

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.messages import SaveRequest, SessionRef, StateChange
from contracts.notebooks import without_told
from contracts.state import ResearchState
from contracts.state_changes import apply_change, change_between, digest_of, pack_json, unpack_json


def whole_change(state: ResearchState) -> StateChange:
    """The whole state as a change of nothing."""
    snapshot = without_told(state.snapshot())
    return StateChange(digest=digest_of(snapshot), packed=pack_json(change_between({}, snapshot)))


class KeptSession:
    """What was saved last; the entries of a notebook are unknown here."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}
        self.saves: list[SaveRequest] = []

    def changed(self, change: StateChange) -> dict[str, Any]:
        """The stored state with a change. Raises as `activities.records.changed_state`."""
        if change.base and change.base != digest_of(self.stored):
            raise ApplicationError("another session", type=failures.SESSION_CHANGED, non_retryable=True)
        after: dict[str, Any] = apply_change(self.stored if change.base else {}, unpack_json(change.packed))
        assert digest_of(after) == change.digest
        return after

    def state(self, change: StateChange) -> ResearchState:
        """The same as a state."""
        return ResearchState.model_validate(self.changed(change))

    async def save_session(self, request: SaveRequest) -> SessionRef:
        """Keep it."""
        self.stored = self.changed(request.change)
        self.saves.append(request)
        return SessionRef(research_id=request.research_id)
