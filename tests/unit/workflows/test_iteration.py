"""When to go round again, and when to stop."""

import pytest

from contracts.evidence import Candidate, SearchHit
from contracts.outcome import GateIssue, GateResult
from contracts.roles import SupervisorAnswer
from contracts.vocabulary import Action, GapStatus, GatePolicy, Phase, Quality, Severity, SourceStatus, StopReason
from tests.fakes import states
from workflows.strategies.supervisor.decisions import (
    SupervisorPosition,
    curable_issues,
    decide,
    should_iterate,
    stop_reason_after_synthesis,
)


def gate(phase: Phase, *, valid: bool = True, policy: GatePolicy = GatePolicy.STRICT) -> GateResult:
    issues = [] if valid else [GateIssue(code="x", message="something is missing")]
    return GateResult(phase=phase, valid=valid, issues=issues, quality_score=5, policy=policy)


def test_iterates_only_with_open_gaps_and_iterations_left() -> None:
    """Both conditions must hold (S0-017, S0-018, S0-025, S0-029, S0-030)."""
    assert should_iterate(states.state(iteration=2, gaps=[states.gap("open")]))
    assert not should_iterate(states.state(iteration=3, gaps=[states.gap("open")]))
    assert not should_iterate(states.state(iteration=1, gaps=[]))
    assert not should_iterate(states.state(iteration=1, gaps=[states.gap("closed", status=GapStatus.ADDRESSED)]))


def test_minor_and_unaddressable_gaps_are_not_worth_an_iteration() -> None:
    """Only open gaps at or above the severity floor count (C0-5)."""
    assert not should_iterate(states.state(gaps=[states.gap("minor", severity=Severity.MINOR)]))
    assert not should_iterate(states.state(gaps=[states.gap("no way", status=GapStatus.UNADDRESSABLE)]))
    assert should_iterate(states.state(gaps=[states.gap("critical", severity=Severity.CRITICAL)]))


def test_has_unresolved_gaps_agrees_with_the_iteration_rule() -> None:
    """The unresolved-gap test and the iteration rule see the same gaps (S0-173)."""
    made = states.state(gaps=[states.gap("open")])
    assert made.has_unresolved_gaps()
    assert should_iterate(made)


@pytest.mark.parametrize("phase", [Phase.PLANNING, Phase.GATHERING, Phase.ANALYSIS])
def test_a_satisfied_gate_proceeds(phase: Phase) -> None:
    """Planning, gathering and analysis go on (S0-013, S0-014, S0-015)."""
    assert decide(states.state(), gate(phase), None, can_change=True).action is Action.PROCEED


def test_a_strict_gate_causes_one_retry_and_no_more() -> None:
    """The second time the run proceeds, noted (C0-2)."""
    made = states.state()
    failed = gate(Phase.ANALYSIS, valid=False)
    assert decide(made, failed, None, can_change=True).action is Action.RETRY
    SupervisorPosition.of(made).retried.append("analysis/1")
    assert decide(made, failed, None, can_change=True).action is Action.PROCEED


def test_an_advisory_gate_only_records() -> None:
    """Advisory gates never repeat a phase (C0-2)."""
    failed = gate(Phase.ANALYSIS, valid=False, policy=GatePolicy.ADVISORY)
    assert decide(states.state(), failed, None, can_change=True).action is Action.PROCEED


def test_a_retry_that_would_change_nothing_is_skipped() -> None:
    """The reason says so (C0-27)."""
    verdict = decide(states.state(), gate(Phase.GATHERING, valid=False), None, can_change=False)
    assert verdict.action is Action.PROCEED
    assert verdict.rationale.startswith("nothing_to_change")


def test_a_reflection_may_tighten() -> None:
    """A model may ask for a retry although the gate passed (C0-22)."""
    wish = SupervisorAnswer(action=Action.RETRY, rationale="too thin")
    assert decide(states.state(), gate(Phase.ANALYSIS), wish, can_change=True).action is Action.RETRY


def test_a_reflection_may_not_loosen_a_gate() -> None:
    """`complete` and `proceed` do not help a failed strict gate (C0-22, C0-27)."""
    for action in (Action.PROCEED, Action.COMPLETE):
        wish = SupervisorAnswer(action=action)
        assert decide(states.state(), gate(Phase.ANALYSIS, valid=False), wish, can_change=True).action is Action.RETRY


def test_the_supervisor_may_decline_to_iterate_with_a_good_report() -> None:
    """`complete` is honoured at the iteration decision alone, and only with the report gate passed (S0-028, C0-27)."""
    made = states.state(gaps=[states.gap("open")])
    wish = SupervisorAnswer(action=Action.COMPLETE)
    assert decide(made, gate(Phase.SYNTHESIS), wish, can_change=True).action is Action.COMPLETE
    assert decide(made, gate(Phase.SYNTHESIS, valid=False), wish, can_change=False).action is Action.ITERATE


def test_iterate_needs_something_to_search_for() -> None:
    """A model that wants another round without any gap gets none (C0-22)."""
    wish = SupervisorAnswer(action=Action.ITERATE)
    assert decide(states.state(), gate(Phase.SYNTHESIS), wish, can_change=True).action is Action.COMPLETE


def test_refinement_completes_when_it_found_nothing_to_search_for() -> None:
    """No new sub-query: the run completes (C0-1, C0-4)."""
    made = states.state(gaps=[states.gap("open")], plan=states.plan(states.sub_query("done question")))
    assert decide(made, gate(Phase.REFINEMENT), None, can_change=False).action is Action.COMPLETE


def test_refinement_iterates_with_a_new_follow_up() -> None:
    """A pending follow-up query leads back to gathering (S0-019, C0-1)."""
    from contracts.vocabulary import NodeStatus

    hole = states.gap("open")
    follow_up = states.sub_query("what about it", origin=f"gap:{hole.id}", status=NodeStatus.PENDING)
    made = states.state(gaps=[hole], plan=states.plan(follow_up))
    assert decide(made, gate(Phase.REFINEMENT), None, can_change=False).action is Action.ITERATE
    SupervisorPosition.of(made).recommended = False
    assert decide(made, gate(Phase.REFINEMENT), None, can_change=False).action is Action.COMPLETE


def test_every_completion_has_its_reason() -> None:
    """The stop reason follows from gaps and iterations (X-3)."""
    assert stop_reason_after_synthesis(states.state()) is StopReason.NO_OPEN_GAPS
    minor = states.state(gaps=[states.gap("small", severity=Severity.MINOR)])
    assert stop_reason_after_synthesis(minor) is StopReason.NO_ACTIONABLE_GAPS
    last = states.state(iteration=3, gaps=[states.gap("open")])
    assert stop_reason_after_synthesis(last) is StopReason.MAX_ITERATIONS
    declined = states.state(iteration=1, gaps=[states.gap("open")])
    assert stop_reason_after_synthesis(declined) is StopReason.COVERAGE_SUFFICIENT


def test_iterations_count_up_by_one() -> None:
    """They start at 1 and keep sources, findings and gaps (S0-023, S0-026)."""
    made = states.state(sources=states.sources(states.source("corpus:m/a")), findings=[states.finding("kept")])
    before = made.iteration
    made.start_new_iteration()
    assert (before, made.iteration) == (1, 2)
    assert made.sources
    assert made.findings


def failed_for(phase: Phase, *codes: str) -> GateResult:
    issues = [GateIssue(code=code, message=code) for code in codes]
    return GateResult(phase=phase, valid=False, issues=issues, quality_score=5)


def test_ordinary_sites_cause_no_second_gathering_and_no_second_analysis() -> None:
    """None of them can be of high quality, whichever are read; where one is, an analysis may well say more (C0-2)."""
    page = states.source("https://blog.example/a", quality=Quality.MEDIUM)
    web = states.state(resolved=states.resolved(web=True), sources=states.sources(page))
    assert decide(web, failed_for(Phase.GATHERING, "no_high_quality_source"), None, can_change=True).action is (
        Action.PROCEED
    )
    weak = failed_for(Phase.ANALYSIS, "no_high_confidence")
    assert decide(web, weak, None, can_change=True).action is Action.PROCEED
    web.sources = states.sources(page, states.source("https://standards.example/b"))
    assert decide(web, weak, None, can_change=True).action is Action.RETRY
    few = failed_for(Phase.GATHERING, "no_high_quality_source", "too_few_sources")
    assert decide(web, few, None, can_change=True).action is Action.RETRY


def test_a_folder_that_holds_no_more_is_no_fault() -> None:
    """One source that answers is enough where nothing else was found; an unreadable one is worth a note."""
    only = states.source("corpus:m/only")
    folder = states.state(sources=states.sources(only), candidates=[Candidate(sub_query_id="sq-1", hit=hit(only.url))])
    few = failed_for(Phase.GATHERING, "too_few_sources")
    assert curable_issues(folder, few) == []
    folder.candidates.append(Candidate(sub_query_id="sq-1", hit=hit("corpus:m/unread")))
    assert curable_issues(folder, few) == few.issues
    folder.candidates.pop()
    broken = states.source("corpus:m/broken", status=SourceStatus.FAILED)
    folder.sources = states.sources(only, broken)
    assert curable_issues(folder, few) == few.issues


def test_rules_find_the_same_again() -> None:
    """Without a model an analysis that found something is not done again for want of more, and no note is made."""
    few = failed_for(Phase.ANALYSIS, "too_few_findings", "low_coverage")
    found = states.state(findings=[states.finding("Water boils.")], engine_by_role={"analyzer": "extractive"})
    assert curable_issues(found, few) == []
    found.engine_by_role["analyzer"] = "model"
    assert curable_issues(found, few) == few.issues
    assert curable_issues(states.state(engine_by_role={"analyzer": "extractive"}), few) == few.issues


def test_a_gate_that_cannot_be_mended_is_not_called_satisfied() -> None:
    """The decision says what the gate said, and why nothing is done about it."""
    weak = failed_for(Phase.ANALYSIS, "no_high_confidence")
    pause = decide(states.state(), weak, None, can_change=True)
    assert (pause.action, pause.rationale) == (Action.PROCEED, "nothing_to_change: no_high_confidence")


def hit(url: str) -> SearchHit:
    return states.hit(url, 1)
