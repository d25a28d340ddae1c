"""Questions and approvals: nothing leaves before, waiting costs no time, and every way to answer, in every strategy."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.plan import WaitKind
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.every_strategy.joined import NAMES, Trial, begin_again, begun
from workflows.run import inbox
from workflows.run.inbox import Reply

HOUR = 3_600.0
APPROVE = {"gates": {"approve": "plan"}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_nothing_leaves_before_the_approval_and_waiting_costs_no_time(tmp_path: Path, name: str) -> None:
    """No search and no read before; an hour of waiting, in this process or another, leaves the deadline as far away
    and costs the run nothing (C2-7, X-1).
    """
    async with begun(tmp_path, name, **APPROVE) as trial:
        waiting = await trial.asked()
        left = trial.run.clock.remaining_seconds()
        await trial.host.advance(HOUR)
        assert (trial.state.work.status, trial.left) == (RunStatus.AWAITING_APPROVAL, 0)
        assert trial.run.clock.remaining_seconds() == left
        assert trial.run.clock.elapsed_seconds() == 0
        state, planned = ResearchState.unpack(trial.state.pack()), len(trial.host.calls)
        assert planned
        # What has no permission is refused where it would leave; a strategy does not even try.
        assert not {"search", "read_source"} & {activity for activity, _ in trial.host.calls}
        await trial.cancel()
        await asyncio.wait([trial.task])
        other = Trial(trial.world, name, state)
        other.host.clock = trial.host.clock
        other.start()
        assert await other.asked() == waiting
        await other.host.advance(HOUR)
        assert (other.left, other.host.by_unit) == (0, {})
        await other.answer(Reply(approved=waiting.plan_version))
        assert other.run.clock.remaining_seconds() == pytest.approx(left)
        await other.task
        other.assert_completed()
        assert other.state.people.approved_version == waiting.plan_version
        assert other.state.accounts.usage.active_seconds == 0
        assert other.left > 0
        assert other.state.evidence.citations


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_guidance_gives_another_version_and_only_the_newest_can_be_approved(tmp_path: Path, name: str) -> None:
    """The planner works again by the person's words; what was approved before that counts for nothing."""
    async with begun(tmp_path, name, **APPROVE) as trial:
        first = await trial.asked()
        await trial.answer(Reply(guidance="look at autovacuum settings of the engine"))
        second = await trial.asked(first.plan_version + 1)
        with pytest.raises(inbox.Unacceptable, match="version: 1 is older than the plan that there is"):
            inbox.read_approval(trial.state, [], first.plan_version)
        assert trial.left == 0
        await trial.answer(inbox.read_approval(trial.state, [], second.plan_version))
        await trial.task
        trial.assert_completed()
    assert trial.state.people.guidance[0].text == "look at autovacuum settings of the engine"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_an_edited_plan_is_what_is_searched(tmp_path: Path, name: str) -> None:
    """What a person writes takes the planner's place, below the node that the planner's stood under."""
    async with begun(tmp_path, name, **APPROVE) as trial:
        await trial.asked()
        edit = {"sub_queries": ["What does a vacuum freeze?"], "brief": "freezing alone"}
        await trial.answer(inbox.read_revision(trial.state, [], edit))
        assert (await trial.asked(2)).plan_version == trial.state.work.plan.version == 2
        await trial.answer(inbox.read_approval(trial.state, [], 2))
        await trial.task
        assert trial.world.corpus.searches
        assert all("freeze" in text for text in trial.world.corpus.searches)
    assert trial.state.work.plan.brief == "freezing alone"
    (leaf,) = [node for node in trial.state.work.plan.sub_queries if node.origin == "plan"]
    assert trial.state.evidence.findings
    if leaf.parent:
        assert leaf.parent in {node.id for node in trial.state.work.plan.nodes if not node.needs_search}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_answers_reach_the_planner(tmp_path: Path, name: str) -> None:
    """Nothing is planned or searched before the question is answered; the answer is guidance for what comes."""
    async with begun(tmp_path, name, gates={"clarify": "required", "approve": "none"}) as trial:
        waiting = await trial.asked()
        assert (waiting.kind, trial.left, trial.state.work.plan.nodes) == (WaitKind.CLARIFICATION, 0, [])
        with pytest.raises(inbox.Unacceptable, match="2 were given to 1 question"):
            inbox.read_answers(trial.state, [], ["a", "b"])
        await trial.answer(inbox.read_answers(trial.state, [], ["the freezing of old rows"]))
        await trial.task
        trial.assert_completed()
        assert any("freez" in text for text in trial.world.corpus.searches)
    assert trial.state.people.guidance[0].text.startswith("the freezing of old rows")


ENDS = {
    "rejected": (Outcome.REFUSED, StopReason.APPROVAL_REJECTED),
    "stopped": (Outcome.FAILED, StopReason.USER_STOPPED),
    "expired": (Outcome.TIMED_OUT, StopReason.APPROVAL_EXPIRED),
    "cancelled": (None, None),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_run_that_may_not_begin_keeps_its_plan_and_is_asked_again(tmp_path: Path, name: str, how: str) -> None:
    """However a wait ends without a yes: nothing was searched or written, and a resumed run shows the same plan."""
    async with begun(tmp_path, name, **APPROVE, limits={"max_wait_seconds": HOUR}) as trial:
        plan = (await trial.asked()).plan_version
        if how == "rejected":
            await trial.answer(Reply(rejected="too wide"))
        elif how == "stopped":
            await trial.stop()
        elif how == "cancelled":
            await trial.cancel()
        else:
            await trial.host.until_asleep(trial.host.clock + timedelta(seconds=HOUR))
            await trial.host.advance(0.75 * HOUR)
            assert not trial.task.done()
            await trial.host.advance(0.25 * HOUR)
        await asyncio.wait([trial.task], timeout=60)
        outcome, reason = ENDS[how]
        result = trial.state.work.result
        assert (result.outcome if result else None, result.stop_reason if result else None) == (outcome, reason)
        assert result is None or (result.resumable and "r-unit" in f"{result.limitations[0]} {result.advice}")
        assert (trial.state.evidence.draft, trial.left) == (None, 0)
        again = await begin_again(trial, **APPROVE)
        again.start()
        assert (await again.asked()).plan_version == plan
        await again.answer(Reply(approved=plan))
        await again.task
        again.assert_completed()
