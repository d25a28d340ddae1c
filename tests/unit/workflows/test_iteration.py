"""Decisions of the strategy `supervisor`: retry, iterate, complete."""

import pytest

from contracts.evidence import Candidate
from contracts.outcome import GateIssue, GateResult
from contracts.plan import PlanNode
from contracts.roles import SupervisorAnswer
from contracts.state import ResearchState
from contracts.vocabulary import (
    Action,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Phase,
    Quality,
    Severity,
    SourceStatus,
    StopReason,
)
from tests.fakes import states
from workflows.strategies.supervisor.supervisor_strategy import (
    SupervisorPosition,
    curable_issues,
    decide,
    should_iterate,
    stop_reason_after_synthesis,
)

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
    assert made.has_unresolved_gaps() or not iterates


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


PAGE = states.source("https://blog.example/a", quality=Quality.MEDIUM)
ONLY = states.source("corpus:m/only")
WEB = states.resolved(web=True)
FOUND = [Candidate(sub_query_id="sq-1", hit=states.hit(ONLY.url, 1))]
UNREAD = Candidate(sub_query_id="sq-1", hit=states.hit("corpus:m/unread", 1))
BY_RULES = {"engine_by_role": {"analyzer": "extractive"}}
BROKEN = states.source("corpus:m/broken", status=SourceStatus.FAILED)


@pytest.mark.parametrize(
    ("made", "issue", "curable"),
    [
        (states.state(resolved=WEB, sources=states.sources(PAGE)), "no_high_quality_source", False),
        (states.state(resolved=WEB, sources=states.sources(PAGE)), "too_few_sources", True),
        (states.state(sources=states.sources(PAGE)), "no_high_confidence", False),
        (states.state(sources=states.sources(PAGE, ONLY)), "no_high_confidence", True),
        (states.state(sources=states.sources(ONLY), candidates=FOUND), "too_few_sources", False),
        (states.state(sources=states.sources(ONLY), candidates=[*FOUND, UNREAD]), "too_few_sources", True),
        (states.state(sources=states.sources(ONLY, BROKEN)), "too_few_sources", True),
        (states.state(findings=[states.finding("Water boils.")], **BY_RULES), "too_few_findings", False),
        (states.state(**BY_RULES), "too_few_findings", True),
    ],
)
def test_a_retry_needs_an_issue_that_it_might_cure(made: ResearchState, issue: str, curable: bool) -> None:
    """Ordinary sites, an exhausted folder and rules bring the same again (C0-2)."""
    assert bool(curable_issues(made, gate(Phase.ANALYSIS, issue))) is curable
