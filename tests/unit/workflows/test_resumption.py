"""The position at which a stored session of the strategy `supervisor` continues."""

import pytest

from contracts.outcome import Ending, Pause
from contracts.state import ResearchState
from contracts.vocabulary import Action, Completeness, NodeStatus, Outcome, Phase, RunStatus, StopReason
from tests.fakes import states
from workflows.run.checkpoints import resume_state
from workflows.strategies.supervisor.supervisor_strategy import SupervisorPosition, SupervisorStrategy

ENDING = Ending(
    outcome=Outcome.CANCELLED,
    stop_reason=StopReason.USER_CANCELLED,
    completeness=Completeness.EMPTY,
    ended_at="2026-11-21T12:00:00.000+00:00",
)
DONE = states.sub_query("done question")
EXECUTING = states.sub_query("waiting question", status=NodeStatus.EXECUTING)
FAILED = states.sub_query("failed question", status=NodeStatus.FAILED, error="outage")


def stopped_at(phase: Phase, **changes: object) -> ResearchState:
    made = states.state(status=RunStatus.CANCELLED, phase=phase, ending=ENDING, **changes)
    SupervisorPosition.of(made).next_phase = phase
    return ResearchState.model_validate_json(made.model_dump_json())


@pytest.mark.parametrize(
    ("stopped", "phase", "pending"),
    [
        (stopped_at(Phase.PLANNING), Phase.PLANNING, []),
        (stopped_at(Phase.GATHERING, plan=states.plan(DONE, EXECUTING)), Phase.GATHERING, [EXECUTING.text]),
        (stopped_at(Phase.ANALYSIS, plan=states.plan(DONE)), Phase.ANALYSIS, []),
        (stopped_at(Phase.SYNTHESIS, plan=states.plan(DONE)), Phase.SYNTHESIS, []),
        (stopped_at(Phase.REFINEMENT, plan=states.plan(DONE), draft=states.draft()), Phase.REFINEMENT, []),
        (stopped_at(Phase.SYNTHESIS, plan=states.plan(FAILED)), Phase.GATHERING, [FAILED.text]),
        (stopped_at(Phase.SYNTHESIS, plan=states.plan(DONE), hasty_analyses=[DONE.id]), Phase.ANALYSIS, []),
    ],
)
def test_a_resumed_run_repeats_only_unfinished_work(stopped: ResearchState, phase: Phase, pending: list[str]) -> None:
    """Failed searches too, and nothing that was completed; marks of the earlier end are gone.

    Usage continues (S0-129, S0-132 to S0-136, C0-14).
    """
    stopped.degraded, stopped.failed_branches = ["x"], ["y"]
    stopped.findings, stopped.sources = [states.finding("x")], states.sources(states.source("corpus:m/a"))
    stopped.usage = stopped.usage.model_copy(update={"active_seconds": 42.0})
    again = resume_state(stopped, stopped.resolved, "2026-11-22T00:00:00+00:00", SupervisorStrategy().resume)
    assert SupervisorPosition.of(again).next_phase == phase
    assert [query.text for query in again.pending_sub_queries()] == pending
    assert not any(query.error for query in again.pending_sub_queries())
    assert (again.degraded, again.failed_branches, again.result, again.ending) == ([], [], None, None)
    assert (again.status, again.active_seconds_before) == (RunStatus.RUNNING, 42.0)
    assert (len(again.findings), len(again.sources)) == (1, 1)


@pytest.mark.parametrize(("iterations", "action"), [(3, Action.COMPLETE), (5, Action.ITERATE)])
def test_a_finished_run_is_decided_again_under_new_limits(iterations: int, action: Action) -> None:
    """More iterations allowed: it iterates; the same limits: the report is written again, nothing else."""
    made = stopped_at(
        Phase.SYNTHESIS, plan=states.plan(DONE), gaps=[states.gap("open")], iteration=3, draft=states.draft()
    )
    made.pause = Pause(phase=Phase.SYNTHESIS, action=Action.COMPLETE)
    limits = made.resolved.limits.model_copy(update={"max_iterations": iterations})
    again = resume_state(made, made.resolved.model_copy(update={"limits": limits}), "now", SupervisorStrategy().resume)
    assert (again.pause.action if again.pause else Action.COMPLETE) is action
