"""Lifecycle of gaps: opened by an analysis, an unanswered sub-query or a person; closed by later evidence. Pure."""

from collections.abc import Iterable, Sequence

from contracts.addresses import gap_id
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.plan import PlanNode
from contracts.roles import GapAssessment, ProposedGap
from contracts.state import ResearchState
from contracts.strategies import MAX_GAPS, declaration
from contracts.vocabulary import GapKind, GapStatus, NodeStatus, Severity


# --- opening -------------------------------------------------------------------------------------------------------
def open_gaps(state: ResearchState, drafts: Iterable[ProposedGap], origin: str) -> list[Gap]:
    """Return the gaps that are new to the run, in order, up to the strategy's total limit."""
    known = {gap.id for gap in state.gaps}
    limit = declaration(state.resolved.strategy).most_gaps if state.resolved else MAX_GAPS
    fresh: list[Gap] = []
    for draft in drafts:
        identity = gap_id(draft.description)
        if not draft.description.strip() or identity in known or len(known) >= limit:
            continue
        known.add(identity)
        fresh.append(
            Gap(
                id=identity,
                description=draft.description[:400],
                kind=GapKind(draft.kind) if draft.kind in set(GapKind) else GapKind.MISSING,
                severity=Severity.MODERATE if draft.priority <= 2 else Severity.MINOR,
                priority=max(1, draft.priority),
                suggested_queries=[query[:300] for query in draft.suggested_queries[:3]],
                origin=origin,
                iteration=state.iteration,
            )
        )
    return fresh


def silent_gap(query: PlanNode) -> ProposedGap:
    """Return the gap for a sub-query without findings: the question, and why it is open."""
    text, priority = query.text[:250], 1
    if query.status is NodeStatus.FAILED:
        description = f"The search for “{text}” failed, so it is not answered."
    elif query.status is NodeStatus.SKIPPED:
        description = f"“{text}” was not looked into to its end ({query.status_reason})."
    else:
        description, priority = f"Nothing in the sources answers “{text}”.", 2
    return ProposedGap(description=description, priority=priority)


# --- before and after an analysis ----------------------------------------------------------------------------------
def withdraw_gaps(gaps: Iterable[Gap], queries: Sequence[PlanNode], iteration: int) -> list[Gap]:
    """Return the gaps before a repeated analysis: those it opened become superseded, those it closed open again."""
    origins, closed = {f"sub_query:{query.id}" for query in queries}, {query.gap_id for query in queries}
    result = []
    for gap in gaps:
        status = gap.status
        if gap.origin in origins and gap.iteration == iteration and status is GapStatus.OPEN:
            status = GapStatus.SUPERSEDED
        elif gap.id in closed:
            status = GapStatus.OPEN
        result.append(gap.model_copy(update={"status": status}))
    return result


def reopen_stated(gaps: Iterable[Gap], drafts: Iterable[ProposedGap]) -> list[Gap]:
    """Return the gaps, reopening superseded ones that are stated again."""
    stated = {gap_id(draft.description) for draft in drafts}
    return [
        gap.model_copy(update={"status": GapStatus.OPEN})
        if gap.id in stated and gap.status is GapStatus.SUPERSEDED
        else gap
        for gap in gaps
    ]


def close_after_follow_up(gaps: Iterable[Gap], gap: str | None, finding_ids: list[str]) -> list[Gap]:
    """Close a gap with the findings of its follow-up; without any, it becomes unaddressable."""
    update = {"status": GapStatus.ADDRESSED if finding_ids else GapStatus.UNADDRESSABLE, "resolved_by": finding_ids}
    return [one.model_copy(update=update) if one.id == gap and one.status is GapStatus.OPEN else one for one in gaps]


# --- assessments of a refiner --------------------------------------------------------------------------------------
def apply_assessments(gaps: list[Gap], assessments: Iterable[GapAssessment]) -> list[Gap]:
    """Apply the refiner's assessments by gap id, except to requests of people, which are always searched."""
    result = {gap.id: gap for gap in gaps}
    for assessment in assessments:
        gap = result.get(assessment.gap_id)
        if gap is not None and gap.origin != ASKED_BY_PERSON:
            is_hopeless = gap.status is GapStatus.OPEN and not assessment.addressable
            status = GapStatus.UNADDRESSABLE if is_hopeless else gap.status
            result[gap.id] = gap.model_copy(update={"severity": assessment.severity, "status": status})
    return list(result.values())
