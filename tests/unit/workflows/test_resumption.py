"""Where a stored session goes on: S0's resume matrix."""

import pytest

from contracts.outcome import Ending, Pause
from contracts.state import ResearchState
from contracts.vocabulary import (
    Action,
    Completeness,
    GapStatus,
    NodeStatus,
    Outcome,
    Phase,
    RunStatus,
    StopReason,
)
from tests.fakes import states
from workflows.run.checkpoints import resume_state
from workflows.strategies.supervisor.decisions import SupervisorPosition, reposition

ENDING = Ending(
    outcome=Outcome.CANCELLED,
    stop_reason=StopReason.USER_CANCELLED,
    completeness=Completeness.EMPTY,
    ended_at="2026-11-21T12:00:00.000+00:00",
)


def go_on(state: ResearchState) -> ResearchState:
    stored = ResearchState.model_validate_json(state.model_dump_json())
    return resume_state(stored, stored.resolved, "2026-11-22T00:00:00+00:00", reposition)


def at(phase: Phase, **changes: object) -> ResearchState:
    made = states.state(**changes)
    SupervisorPosition.of(made).next_phase = phase
    made.status = RunStatus.CANCELLED
    made.phase = phase
    made.ending = ENDING
    return made


def test_without_a_plan_planning_starts_again() -> None:
    """Only the question is kept (S0-132)."""
    assert SupervisorPosition.of(go_on(at(Phase.PLANNING))).next_phase == Phase.PLANNING


def test_gathering_runs_the_remaining_queries_only() -> None:
    """Sub-queries and sources are kept; what was completed is not pending (S0-133)."""
    done = states.sub_query("done question")
    waiting = states.sub_query("waiting question", status=NodeStatus.EXECUTING)
    made = go_on(
        at(Phase.GATHERING, plan=states.plan(done, waiting), sources=states.sources(states.source("corpus:m/a")))
    )
    assert SupervisorPosition.of(made).next_phase == Phase.GATHERING
    assert [query.text for query in made.pending_sub_queries()] == ["waiting question"]
    assert made.sources


def test_analysis_goes_on_with_what_was_not_analyzed() -> None:
    """Sources and findings are kept (S0-134)."""
    done = states.sub_query("done question")
    made = at(Phase.ANALYSIS, plan=states.plan(done), findings=[states.finding("kept")])
    assert SupervisorPosition.of(go_on(made)).next_phase == Phase.ANALYSIS
    assert go_on(made).findings


def test_synthesis_is_done_again() -> None:
    """Findings are kept, the report is written again (S0-135)."""
    made = at(Phase.SYNTHESIS, plan=states.plan(states.sub_query("done question")), findings=[states.finding("kept")])
    assert SupervisorPosition.of(go_on(made)).next_phase == Phase.SYNTHESIS


def test_refinement_is_evaluated_again() -> None:
    """Report and gaps are kept (S0-136)."""
    made = at(
        Phase.REFINEMENT,
        plan=states.plan(states.sub_query("done question")),
        draft=states.draft(),
        gaps=[states.gap("open")],
    )
    again = go_on(made)
    assert SupervisorPosition.of(again).next_phase == Phase.REFINEMENT
    assert again.draft is not None


def test_marks_of_the_earlier_end_are_taken_off() -> None:
    """How it ended, notes and the result go (S0-129)."""
    made = at(
        Phase.ANALYSIS, plan=states.plan(states.sub_query("done question")), degraded=["x"], failed_branches=["y"]
    )
    again = go_on(made)
    assert again.ending is None
    assert (again.degraded, again.failed_branches, again.result) == ([], [], None)
    assert again.status is RunStatus.RUNNING


def test_failed_searches_are_tried_again() -> None:
    """A sub-query that failed is pending in the resumed run (C0-14)."""
    failed = states.sub_query("failed question", status=NodeStatus.FAILED, error="outage")
    again = go_on(at(Phase.SYNTHESIS, plan=states.plan(failed)))
    assert SupervisorPosition.of(again).next_phase == Phase.GATHERING
    assert again.pending_sub_queries()[0].error is None


def test_what_was_analyzed_in_haste_is_analyzed_properly() -> None:
    """A run that was stopped analyzed without its model: the resumed run does it again."""
    query = states.sub_query("done question")
    made = at(Phase.ANALYSIS, plan=states.plan(query), analyzed_sub_queries=[query.id])
    made.hasty_analyses = [query.id]
    again = go_on(made)
    assert again.analyzed_sub_queries == []
    assert SupervisorPosition.of(again).next_phase == Phase.ANALYSIS


@pytest.mark.parametrize(("iterations", "phase_after"), [(3, Action.COMPLETE), (5, Action.ITERATE)])
def test_a_finished_run_is_decided_again_under_new_limits(iterations: int, phase_after: Action) -> None:
    """More iterations allowed: it iterates; the same limits: the report is written again, nothing else."""
    made = at(
        Phase.SYNTHESIS,
        plan=states.plan(states.sub_query("done question")),
        gaps=[states.gap("open"), states.gap("closed", status=GapStatus.ADDRESSED)],
        iteration=3,
        draft=states.draft(),
    )
    made.pause = Pause(phase=Phase.SYNTHESIS, action=Action.COMPLETE)
    limits = made.resolved.limits.model_copy(update={"max_iterations": iterations})
    again = resume_state(made, made.resolved.model_copy(update={"limits": limits}), "now", reposition)
    assert (again.pause.action if again.pause else Action.COMPLETE) is phase_after


def test_usage_goes_on_counting() -> None:
    """Active seconds of the earlier run are kept."""
    made = at(Phase.ANALYSIS, plan=states.plan(states.sub_query("done question")))
    made.usage = made.usage.model_copy(update={"active_seconds": 42.0, "model_calls": 7})
    again = go_on(made)
    assert again.active_seconds_before == 42.0
    assert again.usage.model_calls == 7
