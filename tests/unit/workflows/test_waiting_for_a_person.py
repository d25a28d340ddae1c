"""Waiting for a person: nothing leaves before the approval, no time is used, and every way to answer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reading import ReadingActivities
from activities.searching import SearchingActivities
from contracts import failures, strategies
from contracts.messages import CheckProvidersRequest, ReadRequest, SearchRequest
from contracts.plan import APPROVAL_PHRASE, Plan, PlanNode, Waiting, WaitKind
from contracts.request import Approve, Gates
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, StopReason
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.states import resolved as resolved_request
from tests.fakes.world import World, model_world
from tests.toy.roles import TOY
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run import inbox
from workflows.run.inbox import Inbox, Reply
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of

HOUR = 3_600.0


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    strategies.declare(TOY)
    yield
    del strategies.declared_strategies._declared[TOY.name]


class Conducted:
    """A run that goes on in the background, and the person who is asked."""

    def __init__(self, world: World, state: ResearchState, strategy: str) -> None:
        self.world, self.state = world, state
        self.host = world.host()
        self.inbox = Inbox()
        self.run = ResearchRun(state, self.inbox, self.host)
        self.task = asyncio.ensure_future(Driver(self.run, strategy_of(strategy)).conduct())

    async def asked(self) -> Waiting:
        """What the person is asked."""
        for _ in range(3_000):
            if self.state.waiting is not None or self.task.done():
                break
            await asyncio.sleep(0.01)
        assert self.state.waiting is not None, self.state.events[-3:]
        return self.state.waiting

    async def answered(self, said: Reply) -> None:
        """Say something, and see that it is taken."""
        self.inbox.replies.append(said)
        while self.inbox.replies:
            await asyncio.sleep(0.01)

    def left(self) -> int:
        """How many calls have left so far."""
        return len(self.world.corpus.searches) + len(self.world.corpus.reads)


@asynccontextmanager
async def conducted(folder: Path, strategy: str = "supervisor", **fields: Any) -> AsyncIterator[Conducted]:
    world = World(folder)
    made = Conducted(world, await begin(world, strategy=strategy, **fields), strategy)
    yield made
    made.task.cancel()
    await asyncio.wait([made.task])
    await world.close()


def waits(approve: Approve = Approve.PLAN, version: int = 2) -> ResearchState:
    resolved = resolved_request().model_copy(update={"gates": Gates(approve=approve)})
    nodes = [PlanNode(id=f"sq-{number}", text=f"What about part {number}?") for number in range(2)]
    waiting = Waiting(
        kind=WaitKind.APPROVAL, plan_version=version, phrase=APPROVAL_PHRASE if approve is Approve.PHRASE else None
    )
    return ResearchState(resolved=resolved, plan=Plan(version=version, nodes=nodes), waiting=waiting)


@pytest.mark.parametrize(
    ("version", "phrase", "problem"),
    [
        ("2", None, "version: expected a whole number; the newest plan is version 2"),
        (True, None, "version: expected a whole number"),
        (1, None, "version: 1 is older than the plan that there is; look at version 2"),
        (3, None, "version: 3 does not exist"),
        (2, None, f"phrase: this run wants exactly these words: {APPROVAL_PHRASE}"),
        (2, "not Authorized to execute yet", "phrase: "),
        (2, b"Authorized to execute", "phrase: "),
    ],
)
def test_a_wrong_approval_is_told_so(version: object, phrase: object, problem: str) -> None:
    """The field, what is wrong with it, and what would be accepted."""
    with pytest.raises(inbox.Unacceptable) as refused:
        inbox.read_approval(waits(Approve.PHRASE), [], version, phrase)
    assert str(refused.value).startswith(problem)


def test_the_phrase_counts_whatever_its_letters_and_the_marks_around_it() -> None:
    """What a person types is compared as a person would."""
    assert inbox.read_approval(waits(Approve.PHRASE), [], 2, " “authorized to  execute”. ") == Reply(approved=2)


@pytest.mark.parametrize(
    ("revision", "problem"),
    [
        ({}, "revision: expected either guidance, or brief"),
        ({"guidance": "x", "brief": "y"}, "revision: expected either guidance, or brief"),
        ({"sub_queries": []}, "revision.sub_queries: "),
        ({"sub_queries": [{"text": "x"}]}, "revision.sub_queries.0.query: required"),
        ({"sub_queries": [7]}, "revision.sub_queries.0: "),
        ({"sub_queries": ["?"]}, "revision.sub_queries.0.query: there are no words in it"),
        ({"sub_queries": ["Why?", "why"]}, "revision.sub_queries.1.query: it repeats an earlier one"),
        ({"sub_queries": [f"What about {number}?" for number in range(9)]}, "revision.sub_queries: 9 were given"),
        ({"plan": "x"}, "revision: expected either"),
        ({"brief": "x", "plan": "x"}, "revision.plan: unknown key"),
        ("   ", "revision.guidance: the text is empty"),
        (None, "revision: expected either"),
        (b"\x00", "revision: expected either"),
    ],
)
def test_a_wrong_revision_is_told_so(revision: object, problem: str) -> None:
    """A line for each problem, with the path of the field; nothing that was sent is repeated."""
    with pytest.raises(inbox.Unacceptable) as refused:
        inbox.read_revision(waits(), [], revision)
    assert str(refused.value).startswith(problem), str(refused.value)


def test_who_is_not_waited_for_is_told_so() -> None:
    """After the approval, before any wait, while another thing is asked, and while a message is being taken up."""
    state = waits()
    with pytest.raises(inbox.Unacceptable, match="the run waits for the approval of plan version 2"):
        inbox.read_answers(state, [], ["x"])
    with pytest.raises(inbox.Unacceptable, match="an earlier message is being taken up"):
        inbox.read_approval(state, [Reply(approved=2)], 2)
    edit = inbox.read_revision(state, [], {"brief": "x"})
    assert inbox.read_approval(state, [edit], 3) == Reply(approved=3)
    assert inbox.read_revision(state, [edit], {"brief": "y"}, 3).plan == edit.plan.model_copy(  # type: ignore[union-attr]
        update={"version": 4, "brief": "y"}
    )
    with pytest.raises(inbox.Unacceptable, match="version: the plan is version 2 by now"):
        inbox.read_revision(state, [], {"brief": "x"}, 1)
    with pytest.raises(inbox.Unacceptable, match="the run is getting ready: send this again in a moment"):
        inbox.read_approval(ResearchState(), [], 2)
    state.waiting, state.approved_version = None, 2
    with pytest.raises(inbox.Unacceptable, match="version 2 is approved already"):
        inbox.read_approval(state, [], 2)
    with pytest.raises(inbox.Unacceptable, match="the run asks nothing now, it is created"):
        inbox.read_answers(state, [], ["x"])


async def test_activities_refuse_what_has_no_permission() -> None:
    """Search, reading and a look at providers: refused before anything is asked, and not tried again (X-2)."""

    async def asked(*_: object) -> Any:
        raise AssertionError("somebody was asked")

    searching = SearchingActivities({}, asked, None)  # type: ignore[arg-type]
    reading = ReadingActivities(None, None, asked, None)  # type: ignore[arg-type]
    search = SearchRequest(research_id="r", operation="o", provider="p", text="x")
    read = ReadRequest(source_id="s", url="https://a.test/")
    check = CheckProvidersRequest(research_id="r", providers=["p"])
    for work, argument in (
        (searching.search, search), (reading.read_source, read), (searching.check_providers, check),
    ):  # fmt: skip
        with pytest.raises(ApplicationError) as refused:
            await ActivityEnvironment().run(work, argument)  # type: ignore[arg-type]
        assert (refused.value.type, refused.value.non_retryable) == (failures.NOT_PERMITTED, True)


async def test_the_clock_stops_nests_and_takes_new_limits_once() -> None:
    """One owner of time: a part never outlives its parent, an alarm is set again, limits are fixed once."""
    state = ResearchState(resolved=resolved_request())
    host = InProcessHost({})
    inbox = Inbox()
    state.clock_started_at = host.now().timestamp()
    limits = state.resolved.limits  # type: ignore[union-attr]
    state.deadline_at = state.clock_started_at + limits.deadline_seconds
    run = ResearchRun(state, inbox, host)
    run.clock.set_alarm()
    work = limits.deadline_seconds - limits.reserve_seconds
    assert run.clock.remaining_work_seconds() == work
    with run.clock.stopped():
        await host.advance(10 * work)
        assert run.clock.remaining_work_seconds() == work
    longer = limits.model_copy(update={"deadline_seconds": limits.deadline_seconds + 100})
    state.resolved = run.resolved.model_copy(update={"choices": {"extended": longer}})
    run.choose_limits("extended")
    run.choose_limits("extended")
    assert run.clock.remaining_work_seconds() == work + 100
    await host.advance(0)  # the alarm sleeps
    await host.advance(work)
    assert inbox.interruption is None
    await host.advance(100)
    assert inbox.interruption is StopReason.BUDGET_TIME
    run.clock.cancel_alarm()


async def test_a_model_asks_once_and_plans_by_the_answer(tmp_path: Path) -> None:
    """The clarifier's question reaches the person, the answer the planner's prompt, and the next round finds all clear."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, gates={"clarify": "required", "think": "rules"})
        made = Conducted(world, state, "supervisor")
        waiting = await made.asked()
        assert waiting.questions[0].startswith("Which part of")
        assert api.counts()["planner"] == 0
        await made.answered(Reply(answers=["the zebra setting"]))
        assert await made.task is Outcome.COMPLETED, state.failed_branches
        await world.close()
    assert api.counts()["clarifier"] == 2
    planned = next(request for request in api.requests if request.role == "planner")
    assert "the zebra setting" in planned.prompt
    assert state.usage_by_role["clarifier"].model_calls == 2
