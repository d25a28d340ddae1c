"""Gates of the strategy `supervisor`: the thresholds of its design, to the digit."""

from typing import Any

import pytest

from contracts.state import ResearchState
from contracts.vocabulary import Confidence, NodeStatus, Phase, Quality
from tests.fakes import states
from workflows.strategies.supervisor.supervisor_strategy import evaluate


def planned(*texts: str, brief: str = "We look.", most: int = 5) -> ResearchState:
    limits = states.resolved().limits.model_copy(update={"max_sub_queries": most})
    queries = [states.sub_query(text) for text in texts]
    return states.state(resolved=states.resolved(limits=limits), plan=states.plan(*queries, brief=brief))


def read(count: int, quality: Quality = Quality.HIGH, *, failed: int = 0, done: int = 1) -> ResearchState:
    queries = [states.sub_query(f"completed question {number}") for number in range(done)]
    queries += [states.sub_query(f"failed question {number}", status=NodeStatus.FAILED) for number in range(failed)]
    found = [states.source(f"corpus:m/{number}", quality=quality) for number in range(count)]
    return states.state(plan=states.plan(*queries), sources=states.sources(*found))


def analyzed(cited: int, *findings: Confidence, unseen: int = 0) -> ResearchState:
    """Ten sources of two collections; the first finding cites `cited` of them."""
    made = [states.source(f"corpus:{'mn'[number % 2]}/{number}", analyzed=number >= unseen) for number in range(10)]
    used = [item.id for item in made[unseen : unseen + cited]]
    return states.state(
        sources=states.sources(*made),
        findings=[
            states.finding(f"finding {place}", source_ids=[] if place else used, confidence=confidence)
            for place, confidence in enumerate(findings)
        ],
    )


LONG = [f"question number {number} of the plan" for number in range(6)]
PLANS = [
    (planned(LONG[0]), {"too_few_sub_queries"}, 2.5),
    (planned(LONG[0], most=1), set(), 2.5),
    (planned(*LONG[:4]), set(), 10.0),
    (planned(*LONG), {"too_many_sub_queries"}, 10.0),
    (planned(*LONG[:3], brief="  "), {"no_brief"}, 7.5),
    (planned("123456789", "1234567890"), {"short_sub_query"}, 5.0),
    (planned(brief=""), {"too_few_sub_queries", "no_brief"}, 0.0),
]
SOURCES = [
    (read(2), {"too_few_sources"}, 3.0),
    (read(3), set(), 4.5),
    (read(0), {"too_few_sources"}, 0.0),
    (read(3, Quality.LOW), {"no_high_quality_source"}, 4.5),
    (read(3, failed=1), set(), 4.5),
    (read(3, failed=2), {"too_few_completed"}, 4.5),
]
FINDINGS = [
    (analyzed(3, Confidence.HIGH, Confidence.HIGH), set(), 6.0),
    (analyzed(2, Confidence.LOW), {"too_few_findings", "no_high_confidence", "low_coverage"}, 2.0),
    (analyzed(1, Confidence.HIGH, Confidence.HIGH, unseen=9), set(), 6.0),
    (analyzed(1, Confidence.LOW, Confidence.LOW, unseen=9), set(), 4.0),
]
REPORTS = [
    (states.state(), {"no_report"}, 0.0),
    (states.state(draft=states.draft(99)), {"short_report"}, 0.198),
    (states.state(draft=states.draft(100)), set(), 0.2),
    (
        states.state(draft=states.draft(1_500, has_headings=False, unresolved_markers=["ev-nothing"])),
        {"no_sections", "unresolved_citations"},
        3.0,
    ),
]
GAPS = [
    (states.state(iteration=3, gaps=[states.gap("one"), states.gap("two")]), {"open_gaps"}, 6.0),
    (states.state(iteration=2, gaps=[states.gap("one")]), set(), 8.0),
]


def check(phase: Phase, state: ResearchState, issues: set[str], score: float) -> Any:
    result = evaluate(phase, state)
    assert {issue.code for issue in result.issues} == issues
    assert result.quality_score == pytest.approx(score)
    assert result.valid is (not issues or phase is Phase.REFINEMENT)
    return result


@pytest.mark.parametrize(("state", "issues", "score"), PLANS)
def test_gate_of_the_plan(state: ResearchState, issues: set[str], score: float) -> None:
    """Two to the limit of sub-queries of ten characters, and a brief (S0-103 to S0-107, C0-3, C0-17)."""
    result = check(Phase.PLANNING, state, issues, score)
    if "short_sub_query" in issues:
        assert [issue.message for issue in result.issues] == ["sub-query too short: 123456789"]


@pytest.mark.parametrize(("state", "issues", "score"), SOURCES)
def test_gate_of_the_sources(state: ResearchState, issues: set[str], score: float) -> None:
    """Three sources, a good one, and half of the searches completed (S0-108 to S0-111, S0-174, C0-17)."""
    check(Phase.GATHERING, state, issues, score)


@pytest.mark.parametrize(("state", "issues", "score"), FINDINGS)
def test_gate_of_the_findings(state: ResearchState, issues: set[str], score: float) -> None:
    """Two findings, one of high confidence, three tenths of the analyzed sources (S0-112 to S0-115, C0-23)."""
    # Findings of one source cannot be of high confidence, so the gate does not demand it.
    check(Phase.ANALYSIS, state, issues, score)


@pytest.mark.parametrize(("state", "issues", "score"), REPORTS)
def test_gate_of_the_report(state: ResearchState, issues: set[str], score: float) -> None:
    """A hundred characters, headings, citations that resolve (S0-116 to S0-119, C0-17)."""
    check(Phase.SYNTHESIS, state, issues, score)


@pytest.mark.parametrize(("state", "issues", "score"), GAPS)
def test_gate_of_the_refinement(state: ResearchState, issues: set[str], score: float) -> None:
    """Always valid; open gaps after the last iteration are noted (S0-120, S0-121, S0-122)."""
    check(Phase.REFINEMENT, state, issues, score)
