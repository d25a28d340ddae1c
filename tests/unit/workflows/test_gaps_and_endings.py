"""The life of gaps, and how runs end."""

from typing import Any

import pytest

from contracts import failures
from contracts.roles import GapAssessment, ProposedGap
from contracts.vocabulary import (
    Completeness,
    EngineKind,
    GapStatus,
    NodeStatus,
    Outcome,
    Severity,
    SourceStatus,
    StopReason,
)
from tests.fakes import states
from workflows.rules import gaps
from workflows.rules.endings import (
    advice_of,
    completeness_of,
    find_unanswered,
    limitations_of,
    outcome_of,
    stop_reason_of,
)


def test_a_gap_is_not_opened_twice() -> None:
    """The same description, but for case and space, is the same gap."""
    made = states.state(gaps=[states.gap("What about locks")])
    drafts = [
        ProposedGap(description="what  about LOCKS?"),
        ProposedGap(description="And memory"),
        ProposedGap(description=" "),
    ]
    assert [gap.description for gap in gaps.open_gaps(made, drafts, "analysis")] == ["And memory"]


def test_a_follow_up_closes_its_gap_with_findings_or_without() -> None:
    """Findings address it; one attempt without any makes it unaddressable, so it is not tried for ever (C0-25)."""
    hole, other = states.gap("locks"), states.gap("waits")
    addressed, untouched = gaps.after_follow_up([hole, other], hole.id, ["f-1"])
    assert (addressed.status, addressed.resolved_by) == (GapStatus.ADDRESSED, ["f-1"])
    assert untouched == other
    assert gaps.after_follow_up([hole], hole.id, [])[0].status is GapStatus.UNADDRESSABLE


def test_the_refiner_sets_severity_and_addressability() -> None:
    """Unknown ids change nothing (S0-075, S0-175)."""
    hole = states.gap("locks")
    items = [
        GapAssessment(gap_id=hole.id, severity=Severity.CRITICAL, addressable=False),
        GapAssessment(gap_id="gap-unknown", severity=Severity.MINOR, addressable=True),
    ]
    result = gaps.apply_assessments([hole], items)
    assert [(gap.severity, gap.status) for gap in result] == [(Severity.CRITICAL, GapStatus.UNADDRESSABLE)]


def test_what_a_person_asked_for_is_looked_for_once() -> None:
    """A refiner cannot wave it away; one attempt without evidence ends it (C0-25)."""
    wish = states.gap("and the locks?", origin="steer")
    kept = gaps.apply_assessments([wish], [GapAssessment(gap_id=wish.id, severity=Severity.MINOR, addressable=False)])
    assert kept == [wish]
    tried = gaps.after_follow_up(kept, wish.id, [])
    assert tried[0].status is GapStatus.UNADDRESSABLE


QUESTION = "What limits the speed?"


def answered_state(**changes: object):
    query = states.sub_query("a question of the plan", finding_count=1)
    base = {
        "resolved": states.resolved(engine=EngineKind.MODEL),
        "plan": states.plan(query),
        "findings": [states.finding("an answer", sub_query_id=query.id)],
        "draft": states.draft(),
    }
    return states.state(**(base | changes))


@pytest.mark.parametrize(
    ("lost", "reason", "outcome"),
    [
        (2, "TimeoutError", Outcome.PARTIAL),
        (1, "TimeoutError", Outcome.COMPLETED),
        (2, failures.STORAGE_FULL, Outcome.PARTIAL),
        (5, "http_status", Outcome.COMPLETED),
    ],
)
def test_a_lost_fifth_of_the_sources_makes_it_partial(lost: int, reason: str, outcome: Outcome) -> None:
    """What nobody read by a fault of ours is missing, and is told; pages that cannot be read are everyday life."""
    failed = {"status": SourceStatus.FAILED, "status_reason": reason}
    registry = [states.source(f"https://e.org/{n}", **(failed if n < lost else {})) for n in range(10)]
    made = answered_state(sources=states.sources(*registry))
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is outcome
    told = [line for line in limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS) if "sources were not read" in line]
    assert [line.startswith(f"{lost} of 10 ") for line in told] == [True] * (outcome is Outcome.PARTIAL)
    assert any("no room was left to keep them" in line for line in told) is (reason == failures.STORAGE_FULL)


def test_an_unanswered_sub_query_makes_it_partial_unless_its_gap_is_stated() -> None:
    """Every sub-query is answered or its gap stated (C0-24)."""
    silent = states.sub_query("a question without an answer")
    made = answered_state()
    made.plan = states.plan(*made.plan.nodes, silent)
    assert find_unanswered(QUESTION, made) == [silent.text]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    made.gaps = [states.gap("nothing on it", origin=f"sub_query:{silent.id}")]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    made.gaps = [states.gap("nothing on it", origin="sub_query:another")]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    shared = silent.model_copy(update={"stated_gaps": [made.gaps[0].id]})
    made.plan = states.plan(*made.plan.nodes[:-1], shared)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED


def test_findings_on_aspects_alone_do_not_answer_the_question() -> None:
    """The sub-query that is the question itself needs a finding, of its own or of a search that closes its gap."""
    asked = states.sub_query(f" {QUESTION.lower()}")
    gap = states.gap("the best passage holds little of the question", origin=f"sub_query:{asked.id}")
    made = answered_state(gaps=[gap])
    aspect = made.plan.sub_queries[0]
    made.plan = states.plan(asked, aspect)
    assert find_unanswered(QUESTION, made) == [asked.text]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    assert f"Not answered: {asked.text}" in limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)
    later = states.sub_query("another search for it", origin=f"gap:{gap.id}", finding_count=1)
    made.plan = states.plan(asked, aspect, later)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED


FAULTS = [
    {"draft": states.draft(50)},
    {"draft": states.draft(has_headings=False)},
    {"draft": states.draft(unresolved_markers=["ev-unknown"])},
    {"draft": states.draft(evidence_ids=[])},
    {"failed_branches": ["planner: InvalidModelOutput"]},
    {"fallbacks": {"analyzer": 1}},
]
CUT_SHORT = [StopReason.BUDGET_TIME, StopReason.BUDGET_CALLS, StopReason.BUDGET_COST, StopReason.USER_STOPPED]


@pytest.mark.parametrize(
    ("changes", "reason", "outcome"),
    [
        ({}, StopReason.NO_OPEN_GAPS, Outcome.COMPLETED),
        *((fault, StopReason.NO_OPEN_GAPS, Outcome.PARTIAL) for fault in FAULTS),
        *(({}, reason, Outcome.PARTIAL) for reason in CUT_SHORT),
        ({"findings": []}, StopReason.NO_EVIDENCE, Outcome.EMPTY),
        ({"findings": []}, StopReason.BUDGET_TIME, Outcome.TIMED_OUT),
    ],
)
def test_the_outcome_follows_from_what_is_missing(
    changes: dict[str, Any], reason: StopReason, outcome: Outcome
) -> None:
    """Faulty reports, failed work, fallbacks, limits and stops decide it; quality gates do not. A run without any text has
    failed (S0-032, C0-24, X-4).
    """
    made = answered_state(**changes)
    assert outcome_of(QUESTION, made, reason) is outcome
    lines = limitations_of(QUESTION, made, reason)
    assert any("from what was there" in line for line in lines) is (reason in CUT_SHORT)
    assert any(line.startswith("The report did not pass its check: ") for line in lines) is ("draft" in changes)
    # A faulty report leaves no part of the plan without an answer.
    whole = Completeness.PARTIAL if reason in CUT_SHORT or made.failed_branches else Completeness.FULL
    assert completeness_of(QUESTION, made, reason) is (whole if made.findings else Completeness.EMPTY)
    if made.findings:
        made.draft = None
        assert outcome_of(QUESTION, made, reason) is Outcome.FAILED


def test_an_outage_is_not_an_empty_answer() -> None:
    """If no search succeeded, or nobody read what they found, nobody can say that nothing answers: failed (C0-13)."""
    searched = answered_state(findings=[])
    assert stop_reason_of(searched, StopReason.NO_OPEN_GAPS) is StopReason.NO_EVIDENCE
    failed = states.sub_query("a question", status=NodeStatus.FAILED)
    lost = states.source("https://e.org/1", status=SourceStatus.FAILED, status_reason="TimeoutError")
    for made in (
        answered_state(findings=[], plan=states.plan(failed), failed_branches=["search"]),
        states.state(plan=states.plan(states.sub_query("a question")), sources=states.sources(lost)),
    ):
        reason = stop_reason_of(made, StopReason.NO_OPEN_GAPS)
        assert (reason, outcome_of(QUESTION, made, reason)) == (StopReason.PROVIDER_OUTAGE, Outcome.FAILED)


def test_passages_are_completed_whatever_is_not_answered() -> None:
    """Without a model nobody judges answers: one passage completes a run, and nothing else than work that failed."""
    silent = states.sub_query("a question without an answer")
    made = answered_state(resolved=states.resolved(engine=EngineKind.EXTRACTIVE))
    made.plan = states.plan(*made.plan.nodes, silent)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    assert not limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)


@pytest.mark.parametrize(
    ("changes", "outcome", "reason", "advice"),
    [
        ({}, Outcome.COMPLETED, StopReason.NO_OPEN_GAPS, ""),
        ({"findings": []}, Outcome.EMPTY, StopReason.NO_EVIDENCE, "ask in other words"),
        ({}, Outcome.PARTIAL, StopReason.NO_ACTIONABLE_GAPS, "ask in other words"),
        ({}, Outcome.PARTIAL, StopReason.MAX_ITERATIONS, "limits.max_iterations=N"),
        ({}, Outcome.PARTIAL, StopReason.BUDGET_CALLS, "limits.max_model_calls=N"),
        ({}, Outcome.PARTIAL, StopReason.BUDGET_TIME, ""),
        ({"failed_branches": ["search for “x”"]}, Outcome.PARTIAL, StopReason.NO_ACTIONABLE_GAPS, ""),
        ({"hasty_analyses": ["sq-1"]}, Outcome.PARTIAL, StopReason.MAX_ITERATIONS, ""),
        ({"draft": states.draft(50)}, Outcome.PARTIAL, StopReason.NO_OPEN_GAPS, ""),
    ],
)
def test_resuming_is_advised_where_it_would_do_something(
    changes: dict[str, Any], outcome: Outcome, reason: StopReason, advice: str
) -> None:
    """Elsewhere the run names what helps instead."""
    found = advice_of(answered_state(**changes), outcome, reason)
    assert advice in found
    assert bool(found) is bool(advice)
