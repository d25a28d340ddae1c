"""A journal whose store fails: a paid answer is worth more than its record."""

import asyncio
from typing import Any

import pytest

from activities.journal import CallJournal
from contracts import roles
from providers.errors import AnswerCut, Unavailable
from providers.interfaces import CallLease, EngineTask
from providers.models import answers
from tests.unit.activities.scripted import MemoryCalls, ScriptedEngine, plan_input

PLANNER: roles.RoleSpec[Any, Any] = roles.PLANNER
PLAN = roles.PlannerAnswer(
    research_brief="A brief.",
    sub_queries=[roles.SubQuery(query="what is vacuum"), roles.SubQuery(query="what is wraparound")],
)


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


def task() -> EngineTask:
    return EngineTask(PLANNER, plan_input(research_id="r-1", operation="plan/1"), {}, "system", "prompt", "planner@1")


async def test_an_answer_that_cannot_be_stored_is_handed_on() -> None:
    """With a word of what a lost attempt would cost."""
    answer = await CallJournal(FailingCalls("finish"), answers).answer(ScriptedEngine(PLAN), task())
    assert answer.content == PLAN
    assert answer.warnings == ["the answer could not be stored: a lost attempt would pay for it again"]


@pytest.mark.parametrize("failing", [(), ("release",)])
async def test_a_call_that_failed_gives_its_lease_back(failing: tuple[str, ...]) -> None:
    """So that the next attempt may make it; where that fails, the error is the call's own."""
    calls = FailingCalls(*failing)
    with pytest.raises(Unavailable, match="the endpoint"):
        await CallJournal(calls, answers).answer(ScriptedEngine(Unavailable("the endpoint is away")), task())
    assert calls.log == ["begin", "release failed" if failing else "release"]
    assert bool(calls.leased) is bool(failing)


async def test_an_answer_of_no_use_is_kept_and_raised() -> None:
    """It was paid, too."""
    calls = FailingCalls()
    for _ in range(2):
        with pytest.raises(AnswerCut):
            await CallJournal(calls, answers).answer(ScriptedEngine(AnswerCut("cut")), task())
    assert calls.log == ["begin", "finish"]


async def test_a_lease_that_cannot_be_renewed_ends_no_call() -> None:
    """Giving the call up would lose its answer for certain."""
    calls = FailingCalls("renew")

    async def slow() -> Any:
        while calls.log.count("renew failed") < 2:
            await asyncio.sleep(0.001)
        return PLAN

    journal = CallJournal(calls, answers, renew_seconds=0.001)
    answer = await journal.answer(ScriptedEngine(lambda _: slow()), task())
    assert (answer.content, answer.warnings) == (PLAN, [])


async def test_a_cancelled_attempt_writes_its_answer_to_the_end() -> None:
    """What was paid is in the journal before the cancellation goes on."""
    calls, writing = MemoryCalls(), asyncio.Event()
    finish = calls.finish

    async def slow(lease: CallLease, answer: str) -> None:
        writing.set()
        await asyncio.sleep(0.01)
        await finish(lease, answer)

    calls.finish = slow  # type: ignore[method-assign]
    attempt = asyncio.ensure_future(CallJournal(calls, answers).answer(ScriptedEngine(PLAN), task()))
    await writing.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert len(calls.answers) == 1
