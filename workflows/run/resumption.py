"""Going on from a stored session: what is kept, what is done again. Pure."""

from typing import Protocol

from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import AWAITING, AgentStatus, NodeStatus, RunStatus


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
    # A run that was killed goes on as if nothing had been: what it has noted still holds.
    interrupted = state.status in (RunStatus.RUNNING, *AWAITING) and state.ending is None
    repeated = any(query.status is NodeStatus.FAILED for query in state.plan.sub_queries)
    state.active_seconds_before = state.usage.active_seconds
    state.resolved = resolved
    state.status = RunStatus.RUNNING
    state.started_at = state.started_at or started_at
    state.analyzed_sub_queries = [query for query in state.analyzed_sub_queries if query not in hasty]
    state.hasty_analyses = []
    state.degraded = state.degraded if interrupted else []
    state.failed_branches = state.failed_branches if interrupted and not repeated else []
    # Who was waited for is asked again, and given as much time as at first.
    state.waiting, state.clock_stopped_at, state.limits_fixed = None, 0.0, False
    state.limitations, state.last_failure = [], ""
    state.result = None
    state.fallbacks, state.lost_providers = {}, {}
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
