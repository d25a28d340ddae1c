"""Plans that fix the headings of the report: they wait by preset, are answered and edited, and change by a yes alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.outlines import MOST_HEADINGS
from contracts.plan import WaitKind
from contracts.state import ResearchState
from contracts.vocabulary import RunStatus
from tests.every_strategy.joined import Trial, begin_again, begun
from tests.fakes import tool_work
from tests.toy.outlining import ANOTHER_OUTLINE, outlining_declared
from workflows.run import inbox
from workflows.status import details_markdown, plan_of, status_of


@asynccontextmanager
async def planned(folder: Path, engine: str = "model", name: str = "living", **fields: Any) -> AsyncIterator[Trial]:
    """A run that has begun, of a strategy whose preset is an approval."""
    with outlining_declared():
        async with begun(folder, name, engine, **({"gates": {}} | fields)) as trial:
            yield trial


@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_a_plan_costs_no_search_and_waits_without_being_told_to(tmp_path: Path, engine: str) -> None:
    """A model may be asked for the plan; nothing is searched or read before a person says yes; the same run goes on then
    (S2-001, S2-002, S2-015, S2-016, X-1, X-25).
    """
    async with planned(tmp_path, engine) as trial:
        waiting = await trial.asked()
        assert (waiting.kind, waiting.plan_version) == (WaitKind.APPROVAL, 1)
        assert bool(trial.api.calls) is (engine == "model")
        assert not {"search", "read_source", "check_providers"} & {activity for activity, _ in trial.host.calls}
        assert (trial.left, trial.state.status) == (0, RunStatus.AWAITING_APPROVAL)
        outline = trial.state.plan.outline
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        await trial.task
        trial.assert_completed()
        assert trial.left > 0
        assert "Nobody approved the plan" not in await trial.report()
        assert (await trial.document())["plan"]["outline"] == outline


async def test_a_request_may_do_without_the_approval_and_the_report_says_so(tmp_path: Path) -> None:
    """An explicit `none` wins over the preset, also after a new history (X-1)."""
    async with planned(tmp_path, gates={"approve": "none"}) as trial:
        await trial.task
        trial.assert_completed()
        assert trial.state.approved_version is None
        assert "Nobody approved the plan: the request did without" in await trial.report()


async def test_a_plan_shows_everything_that_is_approved(tmp_path: Path) -> None:
    """Queries, headings, questions, assumptions and constraints: in the query, the status, the details, and in the
    stored session (S2-010, S2-047, S2-048).
    """
    constraints = {"audience": "engineers", "region": "Europe", "timeframe": "2020..2024"}
    async with planned(tmp_path, query="How?", constraints=constraints) as trial:
        waiting = await trial.asked()
        known, now = plan_of(trial.state), trial.host.now().timestamp()
        assert known.outline == ["How it works", "Which settings it has", "Where it fails"]
        assert known.questions == waiting.questions == ["Which part of “How?” do you mean?"]
        assert known.assumptions == ["The current version is meant."]
        assert known.constraints.model_dump(exclude_none=True) == constraints
        aspects = ("how it works", "which settings it has", "where it fails")
        assert [node.text for node in known.sub_queries] == [f"How: {aspect}" for aspect in aspects]
        status = status_of(trial.state, now)
        shown = (status.outline, status.questions, status.assumptions)
        assert shown == (known.outline, known.questions, known.assumptions)
        details = details_markdown(trial.state, now)
        for text in (*known.outline, "Which part of “How?” do you mean?", "The current version is meant."):
            assert text in details
        (prompt,) = [one.prompt for one in trial.api.requests if one.role == "decomposer"]
        assert all(value in prompt for value in constraints.values())
        await trial.run.checkpoints.settle()
        stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
        assert plan_of(stored).model_copy(update={"waiting": known.waiting}) == known


async def test_an_outline_of_a_model_that_cannot_be_used_is_cut_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred headings with markup: cut, which is told to whoever watches (S2-010)."""
    plan = tool_work.decomposition
    many = ["## **Costs**", *(f"Part {number}" for number in range(100))]
    monkeypatch.setattr(tool_work, "decomposition", lambda prompt: plan(prompt) | {"outline": many})
    async with planned(tmp_path) as trial:
        await trial.asked()
        assert (trial.state.plan.outline[0], len(trial.state.plan.outline)) == ("Costs", MOST_HEADINGS)
        log = "\n".join(event.text for event in trial.state.events)
        assert "headings were shortened" in log
        assert "headings beyond the limit of 20" in log


async def test_questions_of_a_plan_are_answered_any_number_of_times(tmp_path: Path) -> None:
    """Each answer and each edit is a version of its own; what was seen before cannot be approved or answered any more
    (S2-018, C2-8).
    """
    async with planned(tmp_path, query="How?") as trial:
        await trial.asked()
        with pytest.raises(inbox.Unacceptable, match="answers: none was given; approve the plan to go on without any"):
            inbox.read_answers(trial.state, [], [""])
        await trial.answer(inbox.read_answers(trial.state, [], ["the freezing of rows"], 1))
        second = await trial.asked(2)
        assert second.questions == []  # it was answered
        with pytest.raises(inbox.Unacceptable, match="the run waits for the approval of plan version 2"):
            inbox.read_answers(trial.state, [], ["again"])
        edit = {"questions": ["Which release?"], "assumptions": [], "outline": ["Freezing", "Costs"]}
        await trial.answer(inbox.read_revision(trial.state, [], edit, 2))
        third = await trial.asked(3)
        assert (third.questions, trial.state.plan.outline) == (["Which release?"], ["Freezing", "Costs"])
        assert trial.state.plan.assumptions == []
        assert len(trial.state.plan.nodes) == 3  # not named, so unchanged
        with pytest.raises(inbox.Unacceptable, match="version: the plan is version 3 by now"):
            inbox.read_answers(trial.state, [], ["the newest"], 2)
        await trial.answer(inbox.read_answers(trial.state, [], ["the newest"], 3))
        await trial.asked(4)
        prompts = [one.prompt for one in trial.api.requests if one.role == "decomposer"]
        assert "the freezing of rows" in prompts[1]
        assert "the newest" in prompts[-1]
        asked = [one.questions for one in trial.state.clarification.rounds]
        assert asked == [["Which part of “How?” do you mean?"], ["Which release?"]]
        assert "Freezing" in prompts[-1]  # the outline that is replaced
        with pytest.raises(inbox.Unacceptable, match="version: 3 is older than the plan that there is"):
            inbox.read_approval(trial.state, [], 3)
        assert trial.left == 0
        await trial.answer(inbox.read_approval(trial.state, [], 4))
        await trial.task
        trial.assert_completed()


async def test_headings_change_by_a_version_with_its_own_yes_alone(tmp_path: Path) -> None:
    """After the approval a person cannot edit them, and what a strategy would change waits like the first plan, also in
    another process (C2-9).
    """
    async with planned(tmp_path, name="outlining", metadata={"another_outline": True}) as trial:
        await trial.asked()
        approved = trial.state.plan.outline
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        waiting = await trial.asked(2)
        assert waiting.kind is WaitKind.APPROVAL
        assert trial.state.plan.outline == ANOTHER_OUTLINE != approved
        assert not trial.run.is_permitted
        left = trial.left
        await trial.cancel()
        await asyncio.wait([trial.task])
        again = await begin_again(trial, gates={}, metadata={"another_outline": True})
        again.start()
        assert (await again.asked(2)).plan_version == 2
        assert again.left == left
        await again.answer(inbox.read_approval(again.state, [], 2))
        await again.task
        again.assert_completed()
        with pytest.raises(inbox.Unacceptable, match="plan: version 2 is approved already"):
            inbox.read_revision(again.state, [], {"outline": ["Other"]})
