"""The strategy `reflective` where something is lacking: answers, searches, limits, context; and where people speak."""

import re
from pathlib import Path
from typing import Any

import pytest

from contracts.reflective_roles import StepKind
from contracts.request import Turn
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Outcome, StopReason
from tests.every_strategy.joined import resume, trial_of
from tests.fakes import reflective_work
from tests.fakes.model_request import ModelRequest
from tests.fakes.world import World
from tests.unit.workflows.test_reflective_strategy import reflections
from tests.unit.workflows.test_supervisor_strategy import report_of
from workflows.run.inbox import Reply
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.plan import ReflectivePosition

WISH = "What is the default of freeze_max_age?"


async def asked_of(folder: Path, **fields: Any) -> tuple[ResearchState, list[ModelRequest], World]:
    """A run with a model: its state, and what the endpoint was asked."""
    async with trial_of(folder, "reflective", "model", **fields) as trial:
        await trial.conduct()
    return trial.state, trial.api.requests, trial.world


async def test_the_planner_hears_the_coordinators_brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier turns add to the question is not lost: the coordinator says it in its own words (S1-008)."""
    classify = reflective_work.classification
    brief = {"brief": "The engine is the one of the manual."}
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: classify(prompt) | brief)
    _, requests, _ = await asked_of(tmp_path, context=[Turn(question="Which?", answer="X")])
    assert brief["brief"] in next(request.prompt for request in requests if request.role == "step_planner")


async def test_an_answer_that_nobody_gives_is_no_answer(tmp_path: Path) -> None:
    """A responder whose answers cannot be used leaves a failed run, not an empty one that is called completed."""
    state, _, _ = await asked_of(tmp_path, by_role={"responder": "empty"}, mode="direct")
    assert (state.result.outcome, state.citations) == (Outcome.FAILED, [])


async def test_an_unusable_answer_is_named_in_plain_words(tmp_path: Path) -> None:
    """The report and those who watch read what happened, and no name of a class."""
    state, _, world = await asked_of(tmp_path, by_role={"analyzer": "empty"})
    without = "analyzer: done without the model, whose answers could not be used"
    assert (without in state.failed_branches, without in state.degraded) == (True, True)
    assert (await report_of(world, state)).count(without) == 1
    told = [*state.failed_branches, *state.degraded, *state.limitations, *(event.text for event in state.events)]
    assert not [text for text in told if re.search(r"\b[A-Z][a-z]+[A-Z][a-z]+\b", text)]


async def test_enough_context_is_believed_only_with_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first plan without steps is refused, whatever it claims; a later one ends the research (S1-019, C1-4)."""
    reflections(monkeypatch, "adjust")
    plans: list[str] = []
    sensible = reflective_work.steps

    def steps(prompt: str) -> dict[str, Any]:
        plans.append(prompt)
        # The first answer is of no use, its repair is; the next plan has found enough.
        return sensible(prompt) if len(plans) == 2 else {"has_enough_context": True, "thought": "enough", "steps": []}

    monkeypatch.setattr(reflective_work, "steps", steps)
    state, _, _ = await asked_of(tmp_path)
    assert len(plans) == 3
    assert "steps: at least one step" in plans[1]
    assert [step.status for step in state.plan.steps] == [
        NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.SKIPPED,
    ]  # fmt: skip
    assert [decision.rationale for decision in state.decisions if decision.action == "enough_context"] == ["enough"]
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.result.stop_reason in (StopReason.NO_OPEN_GAPS, StopReason.COVERAGE_SUFFICIENT)


async def test_a_step_without_a_search_searches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its type is called, it is an analysis of what was read (S1-033)."""
    sensible = reflective_work.steps

    def steps(prompt: str) -> dict[str, Any]:
        made = sensible(prompt)
        made["steps"][1]["needs_search"] = False
        return made

    monkeypatch.setattr(reflective_work, "steps", steps)
    state, _, world = await asked_of(tmp_path)
    research, thought, _ = state.plan.steps
    assert [step.facet == StepKind.ANALYSIS for step in (research, thought)] == [False, True]
    assert thought.expected_contribution not in world.corpus.searches
    assert thought.status is NodeStatus.COMPLETED


async def test_a_first_plan_without_a_search_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that only think have nothing to think about: the planner hears it, and plans again (S1-018, S1-033)."""
    sensible, plans = reflective_work.steps, list[str]()

    def steps(prompt: str) -> dict[str, Any]:
        plans.append(prompt)
        made = sensible(prompt)
        for step in made["steps"] if len(plans) == 1 else []:
            step["step_type"] = "analysis"
        return made

    monkeypatch.setattr(reflective_work, "steps", steps)
    state, _, world = await asked_of(tmp_path)
    assert len(plans) == 2
    assert "at least one step must search" in plans[1]
    assert world.corpus.searches
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


@pytest.mark.parametrize("clarify", ["auto", "off"])
async def test_the_coordinators_own_questions_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clarify: str
) -> None:
    """Where the request allows it they are waited for, and an answered question is not taken as it stands (S1-012)."""
    classify = reflective_work.classification
    unclear = {"is_ambiguous": True, "clarifying_questions": ["Which engine?"]}
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: classify(prompt) | unclear)
    async with trial_of(tmp_path, "reflective", "model", gates={"clarify": clarify}) as trial:
        trial.start()
        if clarify == "auto":
            assert (await trial.asked()).questions == ["Which engine?"]
            await trial.answer(Reply(answers=["the one of the manual"]))
        await trial.task
    assert any("leaves open" in line for line in trial.state.limitations) is (clarify == "off")
    assert trial.api.counts()["clarifier"] == 0
    assert any("the one of the manual" in one.text for one in trial.state.guidance) is (clarify == "auto")


async def test_a_step_goes_through_its_states_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending, then executing, then completed; or skipped without having begun (S1-059)."""
    reflections(monkeypatch, "continue", "complete")
    seen: dict[str, list[str]] = {}
    note = ResearchRun.note

    def remember(self: ResearchRun, kind: str, text: str, /, **data: Any) -> None:
        for step in self.state.plan.steps:
            states = seen.setdefault(step.id, [])
            states += [] if states[-1:] == [step.status.value] else [step.status.value]
        note(self, kind, text, **data)

    monkeypatch.setattr(ResearchRun, "note", remember)
    state, _, _ = await asked_of(tmp_path, depth="medium", limits={"min_steps": 2})
    done = ["pending", "executing", "completed"]
    assert list(seen.values()) == [done, done, ["pending", "skipped"]]
    assert [made.step for made in ReflectivePosition.of(state).reflections] == [
        step.text for step in state.plan.steps[:2]
    ]
    assert {event.data["phase"] for event in state.events if event.type == "phase.started"} >= {"step-1", "step-2"}
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


async def test_no_reflection_leaves_out_what_a_person_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMPLETE skips what was planned; the wish is carried out, and then the report is written."""
    reflections(monkeypatch, "complete")
    async with trial_of(tmp_path, "reflective", "model") as trial:
        for _ in range(3):
            await trial.driver.step()
        for words in (WISH, "What does a base backup copy?"):
            await trial.steer(words)
        await trial.conduct()
    state = trial.state
    assert [(step.text == WISH, step.status) for step in state.plan.steps] == [
        (True, NodeStatus.COMPLETED), (False, NodeStatus.COMPLETED), (False, NodeStatus.SKIPPED),
    ]  # fmt: skip


async def test_what_is_left_open_is_said_after_resuming_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How an ambiguous question was taken stands in the report of every run of the session (C1-9)."""
    classify = reflective_work.classification
    unclear = {"is_ambiguous": True, "clarifying_questions": ["Which engine?"]}
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: classify(prompt) | unclear)
    async with trial_of(tmp_path, "reflective", "model") as trial:
        for _ in range(4):
            await trial.driver.step()
        await trial.stop()
        await trial.conduct()
        later = await resume(trial)
        for one in (trial, later):
            assert "leaves open: Which engine?" in await one.report()
