"""Checkpoints after every unit, as changes of what is stored, and where a stored run continues."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import activities, failures
from contracts.messages import SaveRequest, StateChange
from contracts.outcome import Ending, Pause
from contracts.state import ResearchState, Unit
from contracts.vocabulary import Action, Completeness, NodeStatus, Outcome, Phase, RunStatus, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from tests.fakes.random_world import KeptSession
from tests.fakes.world import World, begin
from workflows.driver import Driver
from workflows.run.checkpoints import SAVE_INTERVAL_SECONDS, UNSAVED, resume_state
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.decisions import SupervisorPosition
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

SAVE = activities.SAVE_SESSION.name


class SavedBefore(SupervisorStrategy):
    """Begins a unit when the one before is saved; each takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        await run.checkpoints.settle()
        assert isinstance(run.host, InProcessHost)
        await run.host.advance(self.seconds)
        return await super().advance(run)


@pytest.mark.parametrize(("seconds", "saved"), [(SAVE_INTERVAL_SECONDS, 1.0), (SAVE_INTERVAL_SECONDS / 2, 0.5)])
async def test_what_is_new_is_sent_now_and_then(tmp_path: Path, seconds: float, saved: float) -> None:
    """There is a save when the run begins, one after each unit of some length or several short ones, and one at its
    end; none sends the whole state again.
    """
    world = World(tmp_path)
    run = ResearchRun(await begin(world), Inbox(), world.host())
    assert isinstance(run.host, InProcessHost)
    save, sent = run.host.implementations[SAVE], list[SaveRequest]()

    async def counted(request: SaveRequest) -> None:
        sent.append(request)
        await save(request)

    run.host.implementations[SAVE] = counted
    await Driver(run, SavedBefore(seconds)).conduct()
    units = sum(event.type == "phase.started" for event in run.state.people.events)
    assert units == 4
    units = int(units * saved)
    assert [bool(request.change.base) for request in sent] == [False] + [True] * (units + 1)
    assert max(len(request.change.packed) for request in sent) < 0.7 * len(run.state.pack())
    assert [request.closed for request in sent] == [False] * (units + 1) + [True]


def run_over(save: Any) -> ResearchRun:
    return ResearchRun(states.state(), Inbox(), InProcessHost({SAVE: save}))


async def test_a_session_that_another_process_wrote_is_written_again() -> None:
    """A change of a state that is not stored any more is never applied: the whole state is sent."""
    session = KeptSession()
    run = run_over(session.save_session)
    await run.checkpoints.save()
    session.stored = {"schema_version": 2, "iteration": 7}
    run.state.work.iteration = 3
    await run.checkpoints.save()
    assert session.stored["iteration"] == 3
    assert session.stored["resolved"]["research_id"] == "r-test"
    run.state.work.iteration = 4
    await run.checkpoints.save()
    assert [bool(request.change.base) for request in session.saves] == [False, False, True]


async def test_a_save_that_fails_is_reported_and_the_next_one_is_complete() -> None:
    """A checkpoint that is lost ends no run, and what it would have held comes with the next."""
    session, broken = KeptSession(), True

    async def save(request: SaveRequest) -> None:
        if broken:
            raise ApplicationError("no", type=failures.STORE_UNAVAILABLE, non_retryable=True)
        return await session.save_session(request)

    run = run_over(save)
    run.checkpoints.save_in_background()
    await run.checkpoints.settle()
    assert run.state.work.degraded == [UNSAVED]
    broken = False
    await run.checkpoints.save()
    assert session.stored["degraded"] == [UNSAVED.data()]


async def test_a_call_beside_a_save_is_sent_what_changed() -> None:
    """What the save in flight writes comes along, so the newest state follows from the store before and after it."""
    session = KeptSession()
    may_save = asyncio.Event()

    async def save(request: SaveRequest) -> None:
        await may_save.wait()
        await session.save_session(request)

    async def newest(change: StateChange) -> StateChange:
        return change

    run = run_over(save)
    run.state.work.iteration = 2
    may_save.set()
    await run.checkpoints.save()
    may_save.clear()
    run.state.work.iteration = 3
    run.checkpoints.save_in_background()
    await asyncio.sleep(0)
    run.state.work.iteration = 4
    change = await run.checkpoints.with_newest_state(newest)
    assert change.base
    assert len(change.packed) < 0.2 * len(run.state.pack())
    assert (session.stored["iteration"], session.changed(change)["iteration"]) == (2, 4)
    may_save.set()
    await run.checkpoints.settle()
    assert (session.stored["iteration"], session.changed(change)["iteration"]) == (3, 4)
    again = await run.checkpoints.with_newest_state(newest)
    assert again.in_flight is None


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
    stopped.work.degraded, stopped.work.failed_branches = ["x"], ["y"]
    stopped.evidence.findings, stopped.evidence.sources = (
        [states.finding("x")],
        states.sources(states.source("corpus:m/a")),
    )
    stopped.accounts.usage = stopped.accounts.usage.model_copy(update={"active_seconds": 42.0})
    again = resume_state(stopped, stopped.work.resolved, "2026-11-22T00:00:00+00:00", SupervisorStrategy().resume)
    assert SupervisorPosition.of(again).next_phase == phase
    assert [query.text for query in again.work.pending_sub_queries()] == pending
    assert not any(query.error for query in again.work.pending_sub_queries())
    assert (again.work.degraded, again.work.failed_branches, again.work.result, again.work.ending) == (
        [],
        [],
        None,
        None,
    )
    assert (again.work.status, again.clock.active_seconds_before) == (RunStatus.RUNNING, 42.0)
    assert (len(again.evidence.findings), len(again.evidence.sources)) == (1, 1)


def test_a_resumed_run_asks_a_model_again_for_what_is_written_again() -> None:
    """Roles that work again count no earlier failures; what the others did without the model stays on record. A run that
    was interrupted keeps all of them.
    """
    counts = {"planner": 2, "analyzer": 2, "synthesizer": 1, "checker": 1}
    stopped = stopped_at(Phase.SYNTHESIS, fallbacks=dict(counts), rule_answers=dict(counts))
    again = resume_state(stopped, stopped.work.resolved, "now", SupervisorStrategy().resume)
    assert (again.accounts.fallbacks, again.accounts.rule_answers) == ({"planner": 2}, {"planner": 2})
    killed = stopped_at(Phase.SYNTHESIS, fallbacks=dict(counts), rule_answers=dict(counts))
    killed.work.status, killed.work.ending = RunStatus.RUNNING, None
    kept = resume_state(killed, killed.work.resolved, "now", SupervisorStrategy().resume)
    assert (kept.accounts.fallbacks, kept.accounts.rule_answers) == (counts, counts)


@pytest.mark.parametrize(("iterations", "action"), [(3, Action.COMPLETE), (5, Action.ITERATE)])
def test_a_finished_run_is_decided_again_under_new_limits(iterations: int, action: Action) -> None:
    """More iterations allowed: it iterates; the same limits: the report is written again, nothing else."""
    made = stopped_at(
        Phase.SYNTHESIS, plan=states.plan(DONE), gaps=[states.gap("open")], iteration=3, draft=states.draft()
    )
    made.work.pause = Pause(phase=Phase.SYNTHESIS, action=Action.COMPLETE)
    limits = made.work.resolved.limits.model_copy(update={"max_iterations": iterations})
    again = resume_state(
        made, made.work.resolved.model_copy(update={"limits": limits}), "now", SupervisorStrategy().resume
    )
    assert (again.work.pause.action if again.work.pause else Action.COMPLETE) is action
