"""Outcomes that are true: what was read is used, and what was not done is named."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts.messages import ReadRequest
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Outcome, StopReason
from tests.fakes import states
from tests.fakes.world import World
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin, report_of
from workflows.driver import Driver
from workflows.rules.endings import limitations_of, outcome_of
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


async def stopped_while_reading(world: World, state: ResearchState, reason: StopReason, *, readable: int) -> Outcome:
    """Conduct a run that is ended in its first gathering, when so many pages were read and the others hang."""
    host, inbox, given, done = world.host(), Inbox(), 0, 0
    read = host.implementations["read_source"]

    async def read_some(request: ReadRequest) -> Any:
        nonlocal given, done
        given += 1
        if given > readable:
            await host.wait_until(lambda: done == readable)
            inbox.interrupt(reason)
            await asyncio.Event().wait()
        record = await read(request)
        done += 1
        return record

    host.implementations["read_source"] = read_some
    async with asyncio.timeout(60):
        return await Driver(ResearchRun(state, inbox, host), SupervisorStrategy()).conduct()


@pytest.mark.parametrize("reason", [StopReason.USER_STOPPED, StopReason.BUDGET_TIME])
async def test_what_was_read_before_the_end_is_reported(tmp_path: Path, reason: StopReason) -> None:
    """A stop or the deadline in the first gathering: the report quotes what was read, and says what is missing."""
    world = World(tmp_path)
    state = await begin(world)
    outcome = await stopped_while_reading(world, state, reason, readable=2)
    assert (outcome, state.result.stop_reason) == (Outcome.PARTIAL, reason)
    assert state.findings
    assert state.citations
    assert {query.status for query in state.plan.sub_queries} == {NodeStatus.SKIPPED}
    assert all(query.status_reason for query in state.plan.sub_queries)
    assert "do not answer" not in await report_of(world, state)
    again = resume_state(ResearchState.unpack(state.pack()), state.resolved, "later", SupervisorStrategy().resume)
    assert {query.status for query in again.plan.sub_queries} == {NodeStatus.PENDING}
    again.deadline_at += 1e6
    outcome = await Driver(ResearchRun(again, Inbox(), world.host()), SupervisorStrategy()).conduct()
    assert outcome is Outcome.COMPLETED, (again.failed_branches, again.limitations)


@pytest.mark.parametrize(
    "fault",
    [{"characters": 50}, {"has_headings": False}, {"unresolved_markers": ["ev-unknown"]}, {"evidence_ids": []}],
    ids=["short", "no headings", "removed citation", "no citation"],
)
def test_a_report_that_fails_its_check_is_not_completed(fault: dict[str, Any]) -> None:
    """However often it was written: the run is partial, and the limitations say why (C0-24)."""
    query = states.sub_query("a question of the plan", finding_count=1)
    made = states.state(plan=states.plan(query), findings=[states.finding("an answer")], draft=states.draft())
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    made.draft = states.draft(**fault)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    lines = limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)
    assert any(line.startswith("The report did not pass its check: ") for line in lines)
