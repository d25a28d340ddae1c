"""A cancellation that arrives when the report has just been written."""

import asyncio

import pytest

from contracts import activities
from contracts.messages import SaveRequest
from contracts.state import ResearchState
from contracts.vocabulary import GatePolicy, Outcome, RunStatus, ThinkMode
from tests.fakes import states
from tests.fakes.random_world import RandomWorld
from tests.unit.workflows.test_invariants import beginning
from workflows.driver import Driver
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.decisions import reposition
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


async def test_what_is_stored_is_cancelled_and_can_go_on() -> None:
    """The session says what the engine says: cancelled, without a result; `resume` completes it (S0-123, C0-20)."""
    world = RandomWorld(7, trouble=0.0)
    host = world.host()
    save_session = host.implementations[activities.SAVE_SESSION.name]
    saved: list[SaveRequest] = []
    closing = asyncio.Event()

    async def save(request: SaveRequest) -> object:
        saved.append(request)
        if world.session.state(request.change).result is not None:
            closing.set()
            await asyncio.Event().wait()
        return await save_session(request)

    host.implementations[activities.SAVE_SESSION.name] = save
    run = ResearchRun(beginning(ThinkMode.OFF, GatePolicy.ADVISORY, 1), Inbox(), host)
    working = asyncio.create_task(Driver(run, SupervisorStrategy()).conduct())
    async with asyncio.timeout(30):
        await closing.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
    assert saved[-1] is world.session.saves[-1]
    stored = ResearchState.model_validate(world.session.stored)
    assert stored.status is RunStatus.CANCELLED
    assert stored.result is None
    again = ResearchRun(
        resume_state(stored, states.resolved(limits=run.resolved.limits), "later", reposition), Inbox(), world.host()
    )
    again.state.deadline_at = 1_795_262_400.0 + 1e9
    assert await Driver(again, SupervisorStrategy()).conduct() in (Outcome.COMPLETED, Outcome.PARTIAL)
    assert again.state.result is not None
