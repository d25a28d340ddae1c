"""Answers of roles: read leniently, and fitted to their requests."""

from typing import Any

import pytest

from contracts import orchestrator_roles, reflective_roles, roles
from contracts.addresses import digest
from contracts.checking_roles import CheckerAnswer, CorrectorAnswer, ReviewerAnswer, ReviewInput
from contracts.evidence import DocumentRef, Gap
from contracts.lenient import UnfitAnswer
from contracts.plan import QuestionRound
from contracts.request import Mode
from contracts.roles import RoleAnswer, RoleInput
from contracts.strategies import declared_roles
from contracts.vocabulary import Action, Confidence, Phase, Severity

REFLECT = roles.ReflectInput(phase=Phase.PLANNING, prompt="?", gate_valid=True, gate_score=9)
COMPARE, RESEARCH = {"title": "Compare", "step_type": "analysis"}, {"title": "Research"}
GAPS = [Gap(id="gap-1", description="a"), Gap(id="gap-2", description="b")]


def fitted(kind: type[RoleAnswer], request: RoleInput, **fields: Any) -> tuple[Any, list[str]]:
    """The answer as the workflow gets it, and the notes on what was changed."""
    notes: list[str] = []
    answer = kind.model_validate(fields).fitted(request, notes)
    assert type(answer).model_validate_json(answer.model_dump_json()) == answer
    return answer, notes


def test_a_plan_has_distinct_sub_queries_and_the_most_important_ones() -> None:
    """Repeated and empty ones go, beyond the limit the least important; the order stays (S0-042, S0-043, S0-044)."""
    given = [("What is vacuum?", 3), ("  ", 1), ("what  is VACUUM", 1), ("cost", -3), ("Freeze", 99), ("locks", 2)]
    plan, notes = fitted(
        roles.PlannerAnswer,
        roles.PlanInput(max_sub_queries=3),
        research_brief=" A  brief. ",
        sub_queries=[{"query": query, "priority": priority, "facet": "f" * 500} for query, priority in given],
    )
    assert [(one.query, one.priority) for one in plan.sub_queries] == [
        ("What is vacuum?", 3),
        ("cost", 1),
        ("locks", 2),
    ]
    assert plan.research_brief == "A brief."
    assert len(plan.sub_queries[0].facet) == 60
    assert notes == [
        "sub-queries that were empty or repeated were dropped",
        "sub-queries beyond the limit of 3 were dropped: 1",
    ]


@pytest.mark.parametrize(
    ("kind", "request_", "fields"),
    [
        (roles.PlannerAnswer, roles.PlanInput(), {"sub_queries": [{"query": " "}]}),
        (roles.ClarifierAnswer, roles.ClarifyInput(required=True), {"clear": True}),
        (orchestrator_roles.OutlinerAnswer, orchestrator_roles.OutlineInput(), {"steps": []}),
        (reflective_roles.StepPlannerAnswer, reflective_roles.PlanStepsInput(), {"has_enough_context": True}),
        (reflective_roles.StepPlannerAnswer, reflective_roles.PlanStepsInput(most=1), {"steps": [COMPARE, RESEARCH]}),
    ],
)
def test_an_answer_with_nothing_left_is_unfit(
    kind: type[RoleAnswer], request_: RoleInput, fields: dict[str, Any]
) -> None:
    """An empty plan is repaired or replaced, and never an empty list; the message is fit for the repair."""
    with pytest.raises(UnfitAnswer, match=r"^\w+: .*at least one"):
        fitted(kind, request_, **fields)


def test_a_person_is_asked_new_questions_only() -> None:
    """At most three, none that was asked before; none where the question is clear."""
    before = roles.ClarifyInput(rounds=[QuestionRound(questions=["Which version?"])])
    questions = ["which version", "A?", "B?", "C?", "D?"]
    answer, notes = fitted(roles.ClarifierAnswer, before, clear=False, questions=questions)
    assert (answer.questions, len(notes)) == (["A?", "B?", "C?"], 1)
    assert fitted(roles.ClarifierAnswer, before, clear=True, questions=questions)[0].questions == []


def test_a_refinement_has_known_gaps_and_new_queries() -> None:
    """Assessments of unknown gaps go, and follow-ups that anybody asked before, in another gap too (S0-071)."""
    request = roles.RefineInput(gaps=GAPS, remaining_iterations=1, asked=["What is vacuum?"])
    follow_ups = [{"query": text} for text in ("what is vacuum", "", "new", "other", "third", "fourth")]
    answer, notes = fitted(
        roles.RefinerAnswer,
        request,
        gap_analysis=[
            {"gap_id": "gap-1", "severity": "SPLENDID", "follow_up_queries": follow_ups},
            {"gap_id": "gap-1"},
            {"gap_id": "gap-9"},
            {"gap_id": "gap-2", "severity": "Critical", "follow_up_queries": follow_ups},
        ],
        iteration_recommendation={"should_iterate": True, "priority_gaps": ["gap-2", "gap-9", "gap-2"]},
        report_improvements=["a", " ", "a"],
    )
    assert [(one.gap_id, one.severity) for one in answer.gap_analysis] == [
        ("gap-1", Severity.MODERATE),
        ("gap-2", Severity.CRITICAL),
    ]
    queries = [[follow_up.query for follow_up in one.follow_up_queries] for one in answer.gap_analysis]
    assert queries == [["new", "other", "third"], ["fourth"]]
    assert answer.iteration_recommendation.priority_gaps == ["gap-2"]
    assert answer.report_improvements == ["a"]
    assert len(notes) == 1


def test_words_and_numbers_out_of_the_vocabulary_are_read_with_care() -> None:
    """An unknown word becomes the careful one, a number out of its range the nearest (S0-034, S0-176)."""
    answer, _ = fitted(roles.SupervisorAnswer, REFLECT, action="splendid", quality_assessment={"score": 70})
    assert (answer.action, answer.quality_assessment.score) == (Action.PROCEED, 10)
    assert fitted(roles.SupervisorAnswer, REFLECT, action=" Retry ")[0].action is Action.RETRY
    found = roles.ProposedFinding.model_validate({"content": "x", "confidence": "sure", "category": None})
    assert found.confidence is Confidence.LOW
    draft = ReviewInput(draft=DocumentRef(hash=digest("")))
    review, _ = fitted(ReviewerAnswer, draft, coverage=-3, notes=[" ", *"abcdefg"])
    assert (review.scores.coverage, review.notes) == (0, list("abcde"))


def test_a_direct_answer_needs_leave() -> None:
    """A question that may not be answered directly is researched, and so is one whose route nobody can read."""
    closed = reflective_roles.ClassifyInput(may_answer=False)
    for route, may_answer in (("direct", closed), ("scenic", reflective_roles.ClassifyInput())):
        answer, _ = fitted(reflective_roles.CoordinatorAnswer, may_answer, route=route)
        assert answer.route is Mode.DEEP
    reflected, _ = fitted(reflective_roles.ReflectorAnswer, closed, decision="?", suggested_changes=None)
    assert reflected.decision == "continue"


def test_one_unreadable_item_does_not_make_the_others_worthless() -> None:
    """Verdicts and corrections are read item by item."""
    given = [7, {"claim": "c-1", "verdict": True}, {"claim": "c-2", "verdict": "supported"}]
    verdicts = CheckerAnswer.model_validate({"verdicts": given}).verdicts
    assert [(one.claim, one.verdict) for one in verdicts] == [("c-1", ""), ("c-2", "supported")]
    given = [{"action": "REMOVE", "passages": ["p", 7]}, None]
    proposals = CorrectorAnswer.model_validate({"proposals": given}).proposals
    assert [(one.action, one.passages) for one in proposals] == [("remove", ["p"])]


@pytest.mark.parametrize("role", declared_roles(), ids=lambda role: role.name)
def test_the_schema_has_no_account(role: Any) -> None:
    """A model is never asked for its own cost, and what it writes about it counts for nothing."""
    schema = role.answer.model_json_schema()
    assert "account" not in schema["properties"]
    assert "CallAccount" not in schema.get("$defs", {})
