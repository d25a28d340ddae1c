"""The life of a gap: opened by analysis, a silent sub-query or a person; closed by later evidence."""

from collections.abc import Iterable, Sequence

from contracts.addresses import gap_id
from contracts.evidence import ASKED_BY_PERSON, Finding, Gap
from contracts.plan import PlanNode
from contracts.roles import GapAssessment, ProposedGap
from contracts.state import ResearchState
from contracts.vocabulary import GapKind, GapStatus, NodeStatus, Severity

MAX_GAPS = 30
STEER = ASKED_BY_PERSON


def open_gaps(state: ResearchState, drafts: Iterable[ProposedGap], origin: str) -> list[Gap]:
    """Gaps that are new to the run, in order; one that repeats a known gap is not opened twice."""
    known = {gap.id for gap in state.gaps}
    fresh: list[Gap] = []
    for draft in drafts:
        identity = gap_id(draft.description)
        if not draft.description.strip() or identity in known or len(known) >= MAX_GAPS:
            continue
        known.add(identity)
        kind = GapKind(draft.kind) if draft.kind in set(GapKind) else GapKind.MISSING
        fresh.append(
            Gap(
                id=identity,
                description=draft.description[:400],
                kind=kind,
                severity=Severity.MODERATE if draft.priority <= 2 else Severity.MINOR,
                priority=max(1, draft.priority),
                suggested_queries=[query[:300] for query in draft.suggested_queries[:3]],
                origin=origin,
                iteration=state.iteration,
            )
        )
    return fresh


def withdrawn(gaps: Iterable[Gap], queries: Sequence[PlanNode], iteration: int) -> list[Gap]:
    """Gaps before sub-queries are analyzed again: what they had opened is superseded, what they had closed is open."""
    open_gaps, closed = {f"sub_query:{query.id}" for query in queries}, {query.gap_id for query in queries}
    result = []
    for gap in gaps:
        status = gap.status
        if gap.origin in open_gaps and gap.iteration == iteration and status is GapStatus.OPEN:
            status = GapStatus.SUPERSEDED
        elif gap.id in closed:
            status = GapStatus.OPEN
        result.append(gap.model_copy(update={"status": status}))
    return result


def reopen_stated(gaps: Iterable[Gap], drafts: Iterable[ProposedGap]) -> list[Gap]:
    """Gaps with those open again that were taken back and are stated anew."""
    stated = {gap_id(draft.description) for draft in drafts}
    return [
        gap.model_copy(update={"status": GapStatus.OPEN})
        if gap.id in stated and gap.status is GapStatus.SUPERSEDED
        else gap
        for gap in gaps
    ]


def silent_gap(query: PlanNode) -> ProposedGap:
    """The gap that an unanswered sub-query leaves: its question is stated, never passed over."""
    if query.status is NodeStatus.FAILED:
        return ProposedGap(
            description=f"The search for “{query.text[:250]}” failed, so it is not answered.", priority=1
        )
    if query.status is NodeStatus.SKIPPED:
        description = f"“{query.text[:250]}” was not looked into to its end ({query.status_reason})."
        return ProposedGap(description=description, priority=1)
    return ProposedGap(description=f"Nothing in the sources answers “{query.text[:250]}”.", priority=2)


def after_analysis(gaps: list[Gap], queries: Iterable[PlanNode], findings: Iterable[Finding]) -> list[Gap]:
    """Close the gaps whose follow-up brought findings; one attempt without any makes a gap unaddressable."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.sub_query_id:
            found.setdefault(finding.sub_query_id, []).append(finding.id)
    answers: dict[str, list[str]] = {}
    for query in queries:
        if query.gap_id:
            answers.setdefault(query.gap_id, []).extend(found.get(query.id, []))
    return [_close(gap, answers[gap.id]) if gap.id in answers else gap for gap in gaps]


def asked_for(gaps: Iterable[Gap]) -> bool:
    """Whether something that a person asked for is still open."""
    return any(gap.origin == STEER and gap.status is GapStatus.OPEN for gap in gaps)


def apply_assessments(gaps: list[Gap], assessments: Iterable[GapAssessment]) -> list[Gap]:
    """Apply what the refiner says of each gap; unknown ids were ignored before."""
    by_id = {assessment.gap_id: assessment for assessment in assessments}
    return [_apply_assessment(gap, by_id[gap.id]) if gap.id in by_id else gap for gap in gaps]


def _apply_assessment(gap: Gap, assessment: GapAssessment) -> Gap:
    if gap.origin == STEER:
        return gap  # what a person asked for is looked for once, whatever a refiner thinks of it
    status = gap.status
    if status is GapStatus.OPEN and not assessment.addressable:
        status = GapStatus.UNADDRESSABLE
    return gap.model_copy(update={"severity": assessment.severity, "status": status})


def _close(gap: Gap, finding_ids: list[str]) -> Gap:
    if gap.status is not GapStatus.OPEN:
        return gap
    status = GapStatus.ADDRESSED if finding_ids else GapStatus.UNADDRESSABLE
    return gap.model_copy(update={"status": status, "resolved_by": finding_ids})
