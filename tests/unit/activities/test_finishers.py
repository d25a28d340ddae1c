"""Drafts of planner, refiner and supervisor as outputs."""

from typing import Any

import pytest

from activities.roles.finishers import Draft, finish_plan, finish_refinement, finish_reflection
from contracts import roles
from contracts.evidence import Gap
from contracts.outcome import CallAccount
from contracts.vocabulary import Action, Phase, Severity
from providers.errors import InvalidOutput
from tests.unit.activities.scripted import common, plan_input

ACCOUNT = CallAccount(model="m", warnings=["from the engine"])


def planned(drafts: list[dict[str, Any]], **changes: Any) -> roles.PlanOutput:
    """What becomes of a planner's draft."""
    draft = roles.PlanDraft.model_validate({"research_brief": " A  brief. ", "sub_queries": drafts})
    return finish_plan(Draft(plan_input(**changes), draft, {}, ACCOUNT))


def test_a_plan_has_no_empty_or_repeated_sub_query() -> None:
    """Sub-queries that differ in case, blanks or punctuation are one; brief and account are kept (S0-043)."""
    plan = planned([{"query": "What is vacuum?"}, {"query": "  "}, {"query": "what  is VACUUM"}, {"query": "?!"}])
    assert [query.query for query in plan.sub_queries] == ["What is vacuum?"]
    assert plan.research_brief == "A brief."
    assert plan.account.model == "m"
    assert plan.account.warnings == [
        "from the engine", "a sub-query without words was dropped", "a repeated sub-query was dropped"
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "kept"), [(0, 1), (-3, 1), (1, 1), (10, 10), (99, 10)])
def test_priorities_are_between_one_and_ten(given: int, kept: int) -> None:
    """1 is the most important, and no priority is out of scale (S0-044, S0-176)."""
    assert planned([{"query": "what is vacuum", "priority": given}]).sub_queries[0].priority == kept


def test_a_plan_that_is_too_long_keeps_what_matters_most() -> None:
    """Never more than the limit; the least important go, the order stays (S0-042)."""
    drafts = [{"query": f"question {number}", "priority": priority} for number, priority in enumerate([3, 1, 2, 1])]
    plan = planned(drafts, max_sub_queries=3)
    assert [query.query for query in plan.sub_queries] == ["question 1", "question 2", "question 3"]
    assert "1 sub-queries beyond the limit of 3 were dropped" in plan.account.warnings


def test_a_plan_without_sub_queries_is_no_plan() -> None:
    """An empty plan is an unusable answer, so that it is repaired or replaced, and never an empty list."""
    with pytest.raises(InvalidOutput):
        planned([{"query": " "}])


def test_texts_are_cut_and_encodable() -> None:
    """A lone surrogate from a model's JSON and a text of a million characters cannot break what follows."""
    query = planned([{"query": "vacuum \ud800 " + "x" * 1_000_000, "facet": "f" * 500}]).sub_queries[0]
    assert len(query.query) <= 500
    assert len(query.facet) <= 60
    assert query.query.encode()


def refined(analysis: list[dict[str, Any]], **changes: Any) -> roles.RefineOutput:
    """What becomes of a refiner's draft on two gaps."""
    fields = {"gap_analysis": analysis, "iteration_recommendation": {"should_iterate": True}, **changes}
    request = roles.RefineInput(
        **common(),
        gaps=[Gap(id="gap-a", description="a"), Gap(id="gap-b", description="b")],
        remaining_iterations=1,
        asked=["What is vacuum?"],
    )
    return finish_refinement(Draft(request, roles.RefineDraft.model_validate(fields), {}, ACCOUNT))


def test_unknown_gaps_are_ignored_and_recorded() -> None:
    """An assessment of a gap that does not exist changes nothing, nor does a second one of the same gap (S0-175)."""
    output = refined(
        [{"gap_id": "gap-x"}, {"gap_id": " gap-a "}, {"gap_id": "gap-a", "severity": "minor"}],
        iteration_recommendation={"should_iterate": True, "priority_gaps": ["gap-x", "gap-b", "gap-b"]},
    )
    assert [item.gap_id for item in output.gap_analysis] == ["gap-a"]
    assert output.iteration_recommendation.priority_gaps == ["gap-b"]
    assert len(output.account.warnings) == 4


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("Critical", Severity.CRITICAL),
        (" minor ", Severity.MINOR),
        ("huge", Severity.MODERATE),
        ("", Severity.MODERATE),
    ],
)
def test_severities_are_ours(word: str, severity: Severity) -> None:
    """An unknown severity is moderate (S0-075)."""
    assert refined([{"gap_id": "gap-a", "severity": word}]).gap_analysis[0].severity is severity


def test_follow_ups_repeat_nothing() -> None:
    """A follow-up asked before, for this gap, another one or in the plan, is dropped; three a gap remain."""
    first = [{"query": "what is  vacuum"}, {"query": ""}, *({"query": f"follow {number}"} for number in range(5))]
    output = refined(
        [
            {"gap_id": "gap-a", "follow_up_queries": first},
            {"gap_id": "gap-b", "follow_up_queries": [{"query": "FOLLOW 1?"}, {"query": "follow 4"}]},
        ]
    )
    assert [[item.query for item in gap.follow_up_queries] for gap in output.gap_analysis] == [
        ["follow 0", "follow 1", "follow 2"],
        ["follow 4"],
    ]


def test_improvements_are_kept_once() -> None:
    """Improvements of the report go on, without blanks and repetitions (S0-077)."""
    assert refined([], report_improvements=["say more", " ", "say  more"]).report_improvements == ["say more"]


def reflected(**changes: Any) -> roles.ReflectOutput:
    """What becomes of a supervisor's draft."""
    request = roles.ReflectInput(**common(), phase=Phase.ANALYSIS, prompt="?", gate_valid=True, gate_score=8)
    draft = roles.ReflectionDraft.model_validate({"action": "proceed", **changes})
    return finish_reflection(Draft(request, draft, {}, ACCOUNT))


@pytest.mark.parametrize(
    ("word", "action"),
    [("RETRY", Action.RETRY), ("iterate", Action.ITERATE), (" complete ", Action.COMPLETE), ("stop", Action.PROCEED)],
)
def test_actions_are_ours(word: str, action: Action) -> None:
    """An unknown action is proceed, with a warning (S0-034)."""
    output = reflected(action=word)
    assert output.action is action
    assert ("an unknown action was taken for proceed" in output.account.warnings) == (word == "stop")


@pytest.mark.parametrize(("given", "kept"), [(0, 1), (-5, 1), (7.5, 7.5), (11, 10), (1e300, 10)])
def test_scores_are_between_one_and_ten(given: float, kept: float) -> None:
    """A score out of scale is moved to its end (S0-034)."""
    assert reflected(quality_assessment={"score": given}).score == kept


def test_guidance_fits_what_carries_it() -> None:
    """Guidance is at most 2,000 characters, the length that the run's own guidance may have."""
    assert len(reflected(guidance="word " * 1_000).guidance) <= 2_000
