"""Going on from a stored session: what is kept, what is done again (S0-131 to S0-136, C0-14). Pure."""

from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import Action, Phase, RunStatus, SubQueryStatus
from workflows.strategies.supervisor.iteration import should_iterate

ABORT_MARKS = ("cancelled", "timeout", "partial", "abort_phase", "abort_iteration", "ending", "hasty_analyses")


def resumed(state: ResearchState, resolved: ResolvedResearch, started_at: str) -> ResearchState:
    """The state to go on with: completed work is kept, marks of the earlier end are taken off.

    Usage goes on counting; the deadline is fresh. What was analyzed in haste at an earlier end is analyzed properly.
    """
    hasty = set(state.metadata.get("hasty_analyses", []))
    state.active_seconds_before = state.usage.active_seconds
    state.resolved = resolved
    state.status = RunStatus.RUNNING
    state.started_at = state.started_at or started_at
    state.analyzed_sub_queries = [query for query in state.analyzed_sub_queries if query not in hasty]
    state.metadata = {key: value for key, value in state.metadata.items() if key not in ABORT_MARKS}
    state.degraded, state.failed_branches, state.limitations, state.last_failure = [], [], [], ""
    state.result = None
    state.fallbacks, state.lost_providers = {}, {}
    state.plan = state.plan.model_copy(
        update={
            "sub_queries": [
                query.model_copy(update={"status": SubQueryStatus.PENDING, "error": None})
                if query.status is SubQueryStatus.FAILED
                else query
                for query in state.plan.sub_queries
            ]
        }
    )
    position = state.strategy.next_phase
    _reposition(state, redo_analysis=bool(hasty))
    if state.strategy.next_phase is not position or hasty:
        state.unit_done = None
    return state


def _reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    """Where to go on. An unfinished phase is done again; a finished run is decided again under the new limits."""
    position, verdict = state.strategy, state.verdict
    if not state.plan.sub_queries:
        position.next_phase, state.verdict = Phase.PLANNING, None
    elif state.pending_sub_queries() and position.next_phase is not Phase.PLANNING:
        position.next_phase, state.verdict = Phase.GATHERING, None
    elif redo_analysis:
        position.next_phase, state.verdict = Phase.ANALYSIS, None
    elif verdict is not None and verdict.phase is position.next_phase and verdict.action is Action.COMPLETE:
        if should_iterate(state) and verdict.phase is Phase.SYNTHESIS:
            state.verdict = verdict.model_copy(update={"action": Action.ITERATE})
        else:
            position.next_phase, state.verdict = Phase.SYNTHESIS, None
