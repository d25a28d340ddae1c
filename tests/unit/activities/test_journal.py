"""A journal whose store fails: a paid answer is worth more than its record."""

import asyncio
from typing import Any

import pytest

from activities.journal import CallJournal
from contracts import roles
from providers.errors import Unavailable
from providers.interfaces import EngineTask
from providers.shared.paid_calls import CallLease
from tests.unit.activities.scripted import MemoryCalls, ScriptedEngine, plan_input

PLAN = roles.PlannerAnswer(sub_queries=[roles.SubQuery(query="what is vacuum")])
TASK = EngineTask(roles.PLANNER, plan_input(), {}, "system", "prompt", "planner@1")


class FailingCalls(MemoryCalls):
    """A store that some operations do not reach."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self._failing = failing

    def _reach(self, operation: str) -> None:
        if operation in self._failing:
            self.log.append(f"{operation} failed")
            raise Unavailable("away")

    async def renew(self, lease: CallLease, lease_seconds: float) -> None:
        self._reach("renew")
        await super().renew(lease, lease_seconds)

    async def finish(self, lease: CallLease, answer: str) -> None:
        self._reach("finish")
        await super().finish(lease, answer)

    async def release(self, lease: CallLease) -> None:
        self._reach("release")
        await super().release(lease)


async def test_an_answer_that_cannot_be_stored_is_returned() -> None:
    """With a warning about what a lost attempt would cost."""
    answer = await CallJournal(FailingCalls("finish")).answer(ScriptedEngine(PLAN), TASK)
    assert answer.content == PLAN
    assert answer.warnings == ["the answer could not be stored: a lost attempt would pay for it again"]


async def test_a_lease_that_cannot_be_released_hides_no_failure() -> None:
    """The error is that of the call itself."""
    calls = FailingCalls("release")
    with pytest.raises(Unavailable, match="the endpoint"):
        await CallJournal(calls).answer(ScriptedEngine(Unavailable("the endpoint is away")), TASK)
    assert calls.log == ["begin", "release failed"]


async def test_a_lease_that_cannot_be_renewed_ends_no_call() -> None:
    """Giving the call up would lose its answer for certain."""
    calls = FailingCalls("renew")

    async def slow() -> Any:
        while calls.log.count("renew failed") < 2:
            await asyncio.sleep(0.001)
        return PLAN

    journal = CallJournal(calls, renew_seconds=0.001)
    answer = await journal.answer(ScriptedEngine(lambda _: slow()), TASK)
    assert (answer.content, answer.warnings) == (PLAN, [])
