"""The other roles without a model: each bounded, the same for the same input, and none a judge."""

import dataclasses
from typing import Any

import pytest

from contracts.evidence import Gap
from contracts.living_roles import DecomposeInput
from contracts.orchestrator_roles import IntakeInput
from contracts.outcome import GateIssue, Guidance
from contracts.plan import QuestionRound
from contracts.roles import PLANNER, ClarifyInput, PlanInput, RoleInput
from contracts.supervisor_roles import RefineInput, ReflectInput
from contracts.tool_turns import Transcript
from contracts.vocabulary import Action, EngineKind
from providers.errors import InvalidCall
from providers.extractive import roles
from providers.extractive.engine import ExtractiveEngine
from providers.interfaces import EngineTask, RenderedPrompt

QUESTION = "How does a vacuum prevent wraparound?"
NOTHING_DONE = Transcript(opening="")


@pytest.mark.parametrize("most", [1, 4])
def test_a_plan_is_the_question_and_its_words_in_other_forms(most: int) -> None:
    """Never more sub-queries than allowed, priorities from 1, the words of the question in each; what a person asks for
    comes as it is, right after the question (S0-042 to S0-044, S0-047, S0-081).
    """
    made = roles.plan(PlanInput(query=QUESTION, max_sub_queries=most))
    assert made.sub_queries[0].query == QUESTION
    assert [each.priority for each in made.sub_queries] == list(range(1, most + 1))
    assert all("vacuum prevent wraparound" in each.query for each in made.sub_queries[1:])
    assert len({each.query for each in made.sub_queries}) == most
    assert roles.plan(PlanInput(query="WAL", max_sub_queries=3)).sub_queries[0].query == "WAL"
    guidance = [Guidance(origin="person", text="look at base backups"), Guidance(origin="rules", text="more sources")]
    guided = [each.query for each in roles.plan(PlanInput(query=QUESTION, guidance=guidance)).sub_queries]
    assert guided[:2] == [QUESTION, "look at base backups"]
    assert not any("more sources" in query for query in guided)
    chinese = roles.plan(PlanInput(query="水闸几点关闭？", language="zh", max_sub_queries=most))
    assert [each.query for each in chinese.sub_queries] == ["水闸几点关闭？"]  # forms are words of known languages


def test_a_decomposed_question_has_a_heading_for_each_query() -> None:
    """The question and its words in other forms under plain headings, what a person wants under its own words; a
    question is asked only without a subject (S2-024).
    """
    guidance = [Guidance(origin="person", text="look at base backups")]
    made = roles.decompose(DecomposeInput(query=QUESTION, most_queries=3, guidance=guidance))
    assert made.expanded_queries[:2] == [QUESTION, "look at base backups"]
    assert made.outline == ["Overview", "look at base backups", "Settings and limits"]
    assert made.clarifying_questions == []
    assert len(roles.decompose(DecomposeInput(query="How does it work?")).clarifying_questions) == 1
    german = roles.decompose(DecomposeInput(query="Wie verhindert VACUUM einen Überlauf?", language="de"))
    assert german.outline == [
        "Überblick",
        "Einstellungen und Grenzen",
        "Gründe und Wirkungen",
        "Schritte und Beispiele",
    ]


@pytest.mark.parametrize(
    ("changes", "questions"),
    [
        ({"query": QUESTION}, 0),
        ({"query": "How does it work?"}, 1),
        ({"query": QUESTION, "required": True}, 1),
        ({"query": "How?", "required": True, "rounds": [QuestionRound(questions=["Which?"], answers=["This."])]}, 0),
    ],
)
def test_a_person_is_asked_only_without_a_subject_or_on_demand(changes: dict[str, Any], questions: int) -> None:
    """Once asked, the run goes by the answers."""
    assert len(roles.clarify(ClarifyInput(**changes)).questions) == questions
    said = roles.take_in(IntakeInput(**changes), NOTHING_DONE)
    assert [block["name"] for block in said.content] == ["ask_person" if questions else "generate_plan"]


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({"gate_valid": False}, Action.RETRY),
        ({"phase": "gathering"}, Action.PROCEED),
        ({"phase": "synthesis"}, Action.COMPLETE),
        ({"phase": "synthesis", "gaps": [Gap(id="gap-1", description="g")], "max_iterations": 2}, Action.ITERATE),
    ],
)
def test_a_reflection_does_what_the_gate_says(changes: dict[str, Any], action: Action) -> None:
    """It has an action, a reason and a score (S0-034)."""
    given = {"phase": "analysis", "prompt": "", "gate_valid": True, "gate_score": 7.0} | changes
    made = roles.reflect(ReflectInput(issues=[GateIssue(code="few", message="too few")], **given))
    assert (made.action, made.quality_assessment.score) == (action, 7.0)
    assert made.rationale


def test_only_a_search_that_was_not_tried_makes_another_iteration() -> None:
    """A gap whose searches were made cannot be closed, and the budget of iterations counts (S0-075, S0-078)."""
    gaps = [
        Gap(id="gap-1", description="a", suggested_queries=["what freezing costs"], origin="sub_query:x"),
        Gap(id="gap-2", description="b", suggested_queries=["vacuum settings"], origin="sub_query:x"),
    ]
    task = RefineInput(query=QUESTION, gaps=gaps, remaining_iterations=1, asked=["Vacuum settings"])
    made = roles.refine(task)
    assert [each.addressable for each in made.gap_analysis] == [True, False]
    assert made.iteration_recommendation.should_iterate
    assert made.iteration_recommendation.priority_gaps == ["gap-1"]
    assert not roles.refine(task.model_copy(update={"remaining_iterations": 0})).iteration_recommendation.should_iterate


async def test_a_role_without_a_rule_is_refused() -> None:
    """The engine answers by the input of a role; what it does not know is an error, never an empty answer."""
    task = EngineTask(PLANNER, PlanInput(query=QUESTION), {}, system="", whole=RenderedPrompt(""), prompt_version="")
    answer = await ExtractiveEngine().answer(task)
    assert (type(answer.content), answer.engine) == (PLANNER.answer, EngineKind.EXTRACTIVE)
    with pytest.raises(InvalidCall):
        await ExtractiveEngine().answer(dataclasses.replace(task, input=RoleInput(query=QUESTION)))
