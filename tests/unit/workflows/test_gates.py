"""Gates: S0's thresholds, to the digit."""

import pytest

from contracts.outcome import GateResult
from contracts.vocabulary import Confidence, NodeStatus, Phase, Quality
from tests.fakes import states
from workflows.strategies.supervisor.decisions import evaluate


def codes(result: GateResult) -> set[str]:
    return {issue.code for issue in result.issues}


def test_a_plan_needs_two_sub_queries() -> None:
    """One sub-query is an issue, two are none (S0-103)."""
    one = states.state(plan=states.plan(states.sub_query("a question that is long enough")))
    two = states.state(plan=states.plan(states.sub_query("first long question"), states.sub_query("second long one")))
    assert "too_few_sub_queries" in codes(evaluate(Phase.PLANNING, one))
    assert evaluate(Phase.PLANNING, two).valid


def test_a_plan_of_one_passes_when_only_one_is_allowed() -> None:
    """The lower limit is min(2, max_sub_queries) (C0-3)."""
    limits = states.resolved().limits.model_copy(update={"max_sub_queries": 1})
    one = states.state(
        resolved=states.resolved(limits=limits), plan=states.plan(states.sub_query("a question that is long enough"))
    )
    assert evaluate(Phase.PLANNING, one).valid


def test_a_plan_has_an_upper_limit() -> None:
    """More sub-queries than allowed are an issue (S0-104)."""
    queries = [states.sub_query(f"question number {number} of the plan") for number in range(6)]
    assert codes(evaluate(Phase.PLANNING, states.state(plan=states.plan(*queries)))) == {"too_many_sub_queries"}


def test_a_plan_needs_a_brief() -> None:
    """A missing or blank brief is an issue (S0-105)."""
    queries = [states.sub_query("first long question"), states.sub_query("second long one")]
    assert "no_brief" in codes(evaluate(Phase.PLANNING, states.state(plan=states.plan(*queries, brief="  "))))


def test_short_sub_queries_are_named_by_their_first_twenty_characters() -> None:
    """Nine characters are too few, ten pass; the message shows the start (S0-106, C0-17)."""
    queries = [states.sub_query("123456789"), states.sub_query("1234567890")]
    result = evaluate(Phase.PLANNING, states.state(plan=states.plan(*queries)))
    assert [issue.message for issue in result.issues if issue.code == "short_sub_query"] == [
        "sub-query too short: 123456789"
    ]


@pytest.mark.parametrize(("count", "score"), [(0, 0.0), (3, 7.5), (4, 10.0), (5, 10.0)])
def test_the_plan_score(count: int, score: float) -> None:
    """The score is 2.5 for each sub-query, at most 10 (S0-107)."""
    queries = [states.sub_query(f"question number {number} of the plan") for number in range(count)]
    assert evaluate(Phase.PLANNING, states.state(plan=states.plan(*queries))).quality_score == score


def test_three_sources_are_enough() -> None:
    """Two sources are an issue, three none; the score is 1.5 each (S0-108, S0-111)."""
    query = states.plan(states.sub_query("a long enough question"))
    two = states.state(plan=query, sources=states.sources(states.source("corpus:m/a"), states.source("corpus:m/b")))
    three = states.state(plan=query, sources=states.sources(*(states.source(f"corpus:m/{name}") for name in "abc")))
    assert codes(evaluate(Phase.GATHERING, two)) == {"too_few_sources"}
    assert evaluate(Phase.GATHERING, three).valid
    assert evaluate(Phase.GATHERING, three).quality_score == 4.5


def test_a_high_quality_source_is_wanted_only_where_there_are_sources() -> None:
    """No source at all does not also complain of quality (S0-109)."""
    low = [states.source(f"corpus:m/{name}", quality=Quality.LOW) for name in "abc"]
    assert "no_high_quality_source" in codes(evaluate(Phase.GATHERING, states.state(sources=states.sources(*low))))
    assert "no_high_quality_source" not in codes(evaluate(Phase.GATHERING, states.state()))


def test_exactly_half_of_the_sub_queries_is_enough() -> None:
    """Completed ones alone count; half passes, less does not (S0-110, S0-174, C0-17)."""
    done, failed = states.sub_query("done question"), states.sub_query("failed question", status=NodeStatus.FAILED)
    other = states.sub_query("another failed question", status=NodeStatus.FAILED)
    assert "too_few_completed" not in codes(evaluate(Phase.GATHERING, states.state(plan=states.plan(done, failed))))
    assert "too_few_completed" in codes(evaluate(Phase.GATHERING, states.state(plan=states.plan(done, failed, other))))


def test_findings_need_number_confidence_and_coverage() -> None:
    """Two findings, one of high confidence, three tenths of the sources (S0-112, S0-113, S0-114, S0-115)."""
    made = [states.source(f"corpus:{'mn'[number % 2]}/{number}") for number in range(10)]
    used = [item.id for item in made[:3]]
    good = states.state(
        sources=states.sources(*made),
        findings=[states.finding("first", source_ids=used), states.finding("second", source_ids=[])],
    )
    result = evaluate(Phase.ANALYSIS, good)
    assert result.valid
    assert result.quality_score == 6.0
    poor = states.state(
        sources=states.sources(*made), findings=[states.finding("x", source_ids=used[:2], confidence=Confidence.LOW)]
    )
    assert codes(evaluate(Phase.ANALYSIS, poor)) == {"too_few_findings", "no_high_confidence", "low_coverage"}
    messages = [issue.message for issue in evaluate(Phase.ANALYSIS, poor).issues]
    assert "findings rest on 20% of the sources, at least 30%" in messages


def test_sources_that_were_not_analyzed_do_not_lower_coverage() -> None:
    """They are left out of the denominator and counted apart (C0-23)."""
    seen = states.source("corpus:m/seen")
    unseen = [states.source(f"corpus:m/{number}", analyzed=False) for number in range(9)]
    made = states.state(
        sources=states.sources(seen, *unseen),
        findings=[states.finding("one", source_ids=[seen.id]), states.finding("two")],
    )
    result = evaluate(Phase.ANALYSIS, made)
    assert result.metrics["coverage"] == 1.0
    assert result.metrics["not_analyzed"] == 9


@pytest.mark.parametrize(("characters", "valid"), [(99, False), (100, True)])
def test_a_report_of_exactly_a_hundred_characters_passes(characters: int, valid: bool) -> None:
    """The limit itself is enough (S0-117, C0-17)."""
    assert evaluate(Phase.SYNTHESIS, states.state(draft=states.draft(characters))).valid is valid


def test_a_missing_report_scores_nothing() -> None:
    """No report: one issue, score 0, nothing else is checked (S0-116)."""
    result = evaluate(Phase.SYNTHESIS, states.state())
    assert (codes(result), result.quality_score) == ({"no_report"}, 0.0)


def test_a_report_needs_sections_and_known_citations() -> None:
    """Headings must occur, removed markers are an issue, the score is a point per 500 characters (S0-118, S0-119)."""
    assert codes(evaluate(Phase.SYNTHESIS, states.state(draft=states.draft(10)))) == {"short_report"}
    bad = states.draft(1_500, has_headings=False, unresolved_markers=["ev-nothing"])
    result = evaluate(Phase.SYNTHESIS, states.state(draft=bad))
    assert codes(result) == {"no_sections", "unresolved_citations"}
    assert result.quality_score == 3.0


def test_refinement_is_always_valid() -> None:
    """Open gaps after the last iteration are noted and lower the score by two each (S0-120, S0-121, S0-122)."""
    made = states.state(iteration=3, gaps=[states.gap("one"), states.gap("two")])
    result = evaluate(Phase.REFINEMENT, made)
    assert result.valid
    assert codes(result) == {"open_gaps"}
    assert result.quality_score == 6.0
    assert codes(evaluate(Phase.REFINEMENT, states.state(iteration=2, gaps=[states.gap("one")]))) == set()


def test_one_collection_is_not_asked_for_high_confidence() -> None:
    """Pages of one collection are one voice: no finding of theirs can be of high confidence."""
    made = [states.source(f"corpus:m/{number}") for number in range(3)]
    found = states.state(
        sources=states.sources(*made),
        findings=[states.finding("x", source_ids=[item.id for item in made], confidence=Confidence.MEDIUM)],
    )
    assert "no_high_confidence" not in codes(evaluate(Phase.ANALYSIS, found))
