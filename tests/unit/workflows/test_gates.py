"""Gates of the strategy `supervisor`, to the digit, and what is decided after them: retry, iterate, complete."""

import pytest

from contracts.outcome import GateIssue, GateResult
from contracts.plan import PlanNode
from contracts.roles import SupervisorAnswer
from contracts.state import ResearchState
from contracts.vocabulary import (
    Action,
    Confidence,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Phase,
    Quality,
    Severity,
    StopReason,
)
from tests.fakes import states
from workflows.strategies.supervisor.supervisor_strategy import (
    SupervisorPosition,
    decide,
    evaluate,
    should_iterate,
    stop_reason_after_synthesis,
)


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


@pytest.mark.parametrize(
    ("phase", "state", "issues", "score"),
    [
        (phase, *case)
        for phase, cases in zip(Phase, (PLANS, SOURCES, FINDINGS, REPORTS, GAPS), strict=True)
        for case in cases
    ],
)
def test_the_gate_of_each_phase(phase: Phase, state: ResearchState, issues: set[str], score: float) -> None:
    """The plan has two to the limit of sub-queries of ten characters, and a brief; three sources, a good one, and half
    of the searches are completed; two findings, one of high confidence, cite three tenths of the analyzed sources; the
    report has a hundred characters, headings, and citations that resolve; the refinement is valid in any case
    (S0-103 to S0-122, S0-174, C0-3, C0-17, C0-23).
    """
    # Findings of one source cannot be of high confidence, so the gate does not demand it.
    result = evaluate(phase, state)
    assert {issue.code for issue in result.issues} == issues
    assert result.quality_score == pytest.approx(score)
    assert result.valid is (not issues or phase is Phase.REFINEMENT)
    if "short_sub_query" in issues:
        assert [issue.message for issue in result.issues] == ["sub-query too short: 123456789"]


OPEN = states.gap("open")


def gate(phase: Phase, *codes: str, policy: GatePolicy = GatePolicy.STRICT) -> GateResult:
    issues = [GateIssue(code=code, message=code) for code in codes]
    return GateResult(phase=phase, valid=not issues, issues=issues, quality_score=5, policy=policy)


@pytest.mark.parametrize(
    ("changes", "iterates", "reason"),
    [
        ({"gaps": [OPEN], "iteration": 2}, True, StopReason.COVERAGE_SUFFICIENT),
        ({"gaps": [OPEN], "iteration": 3}, False, StopReason.MAX_ITERATIONS),
        ({}, False, StopReason.NO_OPEN_GAPS),
        ({"gaps": [states.gap("closed", status=GapStatus.ADDRESSED)]}, False, StopReason.NO_OPEN_GAPS),
        ({"gaps": [states.gap("minor", severity=Severity.MINOR)]}, False, StopReason.NO_ACTIONABLE_GAPS),
        ({"gaps": [states.gap("hopeless", status=GapStatus.UNADDRESSABLE)]}, False, StopReason.NO_OPEN_GAPS),
    ],
)
def test_another_iteration_needs_a_gap_that_matters(changes: dict, iterates: bool, reason: StopReason) -> None:
    """Gaps that matter and an iteration left are needed (S0-017, S0-018, S0-025, S0-029, S0-030, S0-173, C0-5, X-3)."""
    made = states.state(**changes)
    assert should_iterate(made) is iterates
    assert stop_reason_after_synthesis(made) is reason
    assert made.unaddressed_gaps() or not iterates


@pytest.mark.parametrize(
    ("phase", "issues", "reflection", "can_change", "action"),
    [
        (Phase.PLANNING, (), None, True, Action.PROCEED),
        (Phase.GATHERING, (), None, True, Action.PROCEED),
        (Phase.ANALYSIS, (), None, True, Action.PROCEED),
        (Phase.ANALYSIS, ("x",), None, True, Action.RETRY),
        (Phase.GATHERING, ("x",), None, False, Action.PROCEED),
        (Phase.ANALYSIS, (), Action.RETRY, True, Action.RETRY),
        (Phase.ANALYSIS, ("x",), Action.PROCEED, True, Action.RETRY),
        (Phase.ANALYSIS, ("x",), Action.COMPLETE, True, Action.RETRY),
        (Phase.SYNTHESIS, (), Action.ITERATE, True, Action.COMPLETE),
    ],
)
def test_a_reflection_may_only_tighten(
    phase: Phase, issues: tuple[str, ...], reflection: Action | None, can_change: bool, action: Action
) -> None:
    """Satisfied gates proceed, strict ones demand a retry where it can help (S0-013 to S0-015, C0-22, C0-27)."""
    answer = SupervisorAnswer(action=reflection) if reflection else None
    pause = decide(states.state(), gate(phase, *issues), answer, can_change=can_change)
    assert pause.action is action
    assert can_change or pause.rationale.startswith("nothing_to_change")


def test_a_gate_causes_one_retry() -> None:
    """The second time the run proceeds; an advisory gate causes none (C0-2)."""
    made = states.state()
    SupervisorPosition.of(made).retried.append("analysis/1")
    assert decide(made, gate(Phase.ANALYSIS, "x"), None, can_change=True).action is Action.PROCEED
    advisory = gate(Phase.ANALYSIS, "x", policy=GatePolicy.ADVISORY)
    assert decide(states.state(), advisory, None, can_change=True).action is Action.PROCEED


def test_the_supervisor_may_decline_to_iterate_with_a_good_report() -> None:
    """`complete` is honoured at the iteration decision alone, and only with the report gate passed (S0-028, C0-27)."""
    made, wish = states.state(gaps=[OPEN]), SupervisorAnswer(action=Action.COMPLETE)
    assert decide(made, gate(Phase.SYNTHESIS), wish, can_change=True).action is Action.COMPLETE
    assert decide(made, gate(Phase.SYNTHESIS, "x"), wish, can_change=False).action is Action.ITERATE


def test_refinement_iterates_only_with_a_new_follow_up() -> None:
    """A pending follow-up leads back to gathering, unless the refiner advises against it (S0-019, C0-1, C0-4)."""
    follow_up = states.sub_query("what about it", origin=f"gap:{OPEN.id}", status=NodeStatus.PENDING)

    def after(*nodes: PlanNode, recommended: bool | None = None) -> Action:
        made = states.state(gaps=[OPEN], plan=states.plan(*nodes))
        SupervisorPosition.of(made).recommended = recommended
        return decide(made, gate(Phase.REFINEMENT), None, can_change=False).action

    assert after(states.sub_query("done question")) is Action.COMPLETE
    assert after(follow_up) is Action.ITERATE
    assert after(follow_up, recommended=False) is Action.COMPLETE
