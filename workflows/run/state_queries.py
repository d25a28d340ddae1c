"""Queries that a run and an agent answer alike, from their state; they work on closed ones, too."""

from typing import Any

from temporalio import workflow

from contracts import names
from contracts.evidence import Source
from contracts.outcome import EventPage
from contracts.plan import PlanAnswer
from contracts.state import ResearchState
from workflows.run.event_ring import page_after


class StateQueries:
    """The part of a workflow that answers what its state tells."""

    def _shown_state(self) -> ResearchState:
        """The state to answer from."""
        raise NotImplementedError

    @workflow.query(name=names.PLAN)
    def plan(self) -> PlanAnswer:
        """Brief, nodes, and those of them that are sub-queries."""
        state = self._shown_state()
        plan = state.plan
        return PlanAnswer(
            version=plan.version,
            approved_version=state.approved_version,
            waiting=state.waiting,
            brief=plan.brief,
            nodes=plan.nodes,
            sub_queries=plan.parts,
        )

    @workflow.query(name=names.DECISIONS)
    def decisions(self) -> list[dict[str, Any]]:
        """The decision log."""
        return [decision.model_dump() for decision in self._shown_state().decisions]

    @workflow.query(name=names.SOURCES)
    def sources(self) -> list[Source]:
        """Every source, read or skipped."""
        return list(self._shown_state().sources.values())

    @workflow.query(name=names.SESSION)
    def session(self) -> dict[str, Any]:
        """The whole state, also of a closed run."""
        return self._shown_state().model_dump(mode="json")

    @workflow.query(name=names.EVENTS)
    def events(self, after: int = 0) -> EventPage:
        """Progress after a sequence number."""
        return page_after(self._shown_state(), after)
