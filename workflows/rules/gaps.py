"""Lifecycle of gaps: opened by an analysis, an unanswered sub-query or a person; closed as a model judges. Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from contracts.addresses import gap_id
from contracts.evidence import ASKED_BY_PERSON, Gap, Source
from contracts.gaps import MAX_GAP_SECTIONS, SettledGap
from contracts.plan import PlanNode
from contracts.roles import ProposedGap
from contracts.sentences import Message, Text
from contracts.state import ResearchState
from contracts.strategies import MAX_GAPS, declaration
from contracts.supervisor_roles import GapAssessment, OwnGap
from contracts.texts import shorten
from contracts.vocabulary import AgentRole, GapKind, GapStatus, NodeStatus, Severity

SEVERITY_ORDER: Final = {Severity.MINOR: 0, Severity.MODERATE: 1, Severity.CRITICAL: 2}
VISIBLE: Final = (GapStatus.OPEN, GapStatus.UNADDRESSABLE)
"""Statuses of the gaps that a report names."""


# --- opening -------------------------------------------------------------------------------------------------------
def open_gaps(state: ResearchState, drafts: Iterable[ProposedGap], origin: str) -> list[Gap]:
    """Return the gaps that are new to the run, in order; `with_gaps` adds them."""
    known = {gap.id for gap in state.evidence.gaps}
    fresh: list[Gap] = []
    for draft in drafts:
        identity = gap_id(draft.description)
        if not draft.description.strip() or identity in known:
            continue
        known.add(identity)
        fresh.append(
            Gap(
                id=identity,
                description=shorten(draft.description, 400),
                kind=GapKind(draft.kind) if draft.kind in set(GapKind) else GapKind.MISSING,
                severity=Severity.MODERATE if draft.priority <= 2 else Severity.MINOR,
                priority=max(1, draft.priority),
                suggested_queries=[shorten(query, 300) for query in draft.suggested_queries[:3]],
                origin=origin,
                unread=draft.unread,
                iteration=state.work.iteration,
            )
        )
    return fresh


def with_gaps(state: ResearchState, fresh: Sequence[Gap]) -> list[Gap]:
    """Return the gaps of a run with new ones, up to the strategy's limit.

    Settled gaps give way first, then the least severe and oldest ones; requests of people do not.
    """
    if state.work.resolved:
        limit = declaration(state.work.resolved.strategy).most_gaps
    else:
        limit = MAX_GAPS
    gaps = [*state.evidence.gaps, *fresh]
    order = sorted(range(len(gaps)), key=lambda index: (_importance(gaps[index]), index), reverse=True)
    return [gaps[index] for index in sorted(order[:limit])]


def _importance(gap: Gap) -> tuple[bool, bool, int]:
    return gap.origin == ASKED_BY_PERSON, gap.status in VISIBLE, SEVERITY_ORDER[gap.severity]


class StatedGap(ProposedGap):
    """A gap that the product states itself."""

    description: Text


def silent_gap(query: PlanNode) -> StatedGap:
    """Return the gap for a sub-query without findings: the question, and why it is open."""
    text = shorten(query.text, 250)
    if query.status is NodeStatus.FAILED:
        return StatedGap(description=Message("gap_failed", query=text))
    if query.status is NodeStatus.SKIPPED:
        return StatedGap(description=Message("gap_skipped", query=text, why=query.status_reason))
    return StatedGap(description=Message("gap_silent", query=text), priority=2)


def asked_again(state: ResearchState, name: str | None) -> str | None:
    """Return the id of the sub-query that a gap only states as not answered; None for any other gap."""
    gap = next((one for one in state.evidence.gaps if one.id == name), None)
    origin = gap.origin.removeprefix("sub_query:") if gap else ""
    query = next((one for one in state.work.plan.nodes if one.id == origin), None)
    if query is None or gap_id(silent_gap(query).description) != name:
        return None
    return query.id


def fruitless_gaps(state: ResearchState, texts: Sequence[str], origin: str) -> list[Gap]:
    """Return gaps for what pages that were read for it say nothing on, by the word of their reader.

    A report names them, and nothing looks for them any more.
    """
    drafts = [ProposedGap(description=text, kind=GapKind.LIMITATION.value) for text in texts]
    return [gap.with_fields(status=GapStatus.UNADDRESSABLE) for gap in open_gaps(state, drafts, origin)]


def is_fruitless(state: ResearchState, name: str, pages: Sequence[Source]) -> bool:
    """Return true for a gap that only calls a sub-query unanswered, on which each page, read whole, says nothing."""
    asked = asked_again(state, name)
    return asked is not None and bool(pages) and all(asked in page.nothing_on for page in pages)


# --- before and after an analysis ----------------------------------------------------------------------------------
def withdraw_gaps(
    gaps: Iterable[Gap], queries: Sequence[PlanNode], iteration: int, removed: Collection[str] = ()
) -> list[Gap]:
    """Return the gaps before a repeated analysis: those it opened become superseded, those it closed open again.

    `removed` are the ids of the findings that the repeated analysis replaces.
    """
    origins = {f"sub_query:{query.id}" for query in queries}
    closed = {query.gap_id for query in queries}
    result = []
    for gap in gaps:
        status = gap.status
        if gap.origin in origins and gap.iteration == iteration and status is GapStatus.OPEN:
            status = GapStatus.SUPERSEDED
        elif gap.id in closed or not set(gap.resolved_by).isdisjoint(removed):
            status = GapStatus.OPEN
        result.append(gap.with_fields(status=status))
    return result


def reopen_stated(gaps: Iterable[Gap], drafts: Iterable[ProposedGap]) -> list[Gap]:
    """Return the gaps, reopening superseded ones that are stated again."""
    stated = {gap_id(draft.description) for draft in drafts}
    return _with_status(gaps, stated, GapStatus.SUPERSEDED, GapStatus.OPEN)


def with_unread(gaps: Iterable[Gap], drafts: Iterable[ProposedGap]) -> list[Gap]:
    """Return the gaps, open ones with the sections in which a reader who states them again expects the answer."""
    expected = {gap_id(draft.description): draft.unread for draft in drafts if draft.unread}
    result = []
    for gap in gaps:
        places = expected.get(gap.id, [])
        if gap.status is GapStatus.OPEN and places:
            by_start = {(one.source_id, one.start): one for one in (*gap.unread, *places)}
            result.append(gap.with_fields(unread=list(by_start.values())[:MAX_GAP_SECTIONS]))
        else:
            result.append(gap)
    return result


def give_up_gap(gaps: Iterable[Gap], gap_id: str | None) -> list[Gap]:
    """Return the gaps with an open one unaddressable, because its follow-up found nothing at all."""
    return _with_status(gaps, {gap_id}, GapStatus.OPEN, GapStatus.UNADDRESSABLE)


def _with_status(gaps: Iterable[Gap], ids: Collection[str | None], before: GapStatus, after: GapStatus) -> list[Gap]:
    """Return the gaps, with another status for those of these ids that have the earlier one."""
    changed = []
    for gap in gaps:
        if gap.id in ids and gap.status is before:
            changed.append(gap.with_fields(status=after))
        else:
            changed.append(gap)
    return changed


def settle_gaps(state: ResearchState, settled: Iterable[SettledGap]) -> list[Gap]:
    """Return the gaps of a run, with those closed that a model calls answered or repeated.

    Only known findings and gaps count. A request of a person is closed by findings alone, once it was searched for.
    """
    result = {gap.id: gap for gap in state.evidence.gaps}
    finding_ids = {finding.id for finding in state.evidence.findings}
    searched = {node.gap_id for node in state.work.plan.nodes if node.gap_id and node.status is not NodeStatus.PENDING}
    for item in settled:
        gap = result.get(item.gap_id)
        if gap is None or gap.status is not GapStatus.OPEN:
            continue
        is_request = gap.origin == ASKED_BY_PERSON
        answered_by = [name for name in item.answered_by if name in finding_ids]
        if answered_by and (not is_request or gap.id in searched):
            result[gap.id] = gap.closed_by(answered_by)
        elif item.duplicate_of in result and item.duplicate_of != gap.id and not is_request:
            result[gap.id] = gap.with_fields(status=GapStatus.SUPERSEDED)
    return list(result.values())


# --- assessments of a refiner --------------------------------------------------------------------------------------
def own_gaps(state: ResearchState, stated: Sequence[OwnGap]) -> tuple[list[Gap], list[GapAssessment]]:
    """Return the gaps that a refiner states itself, and their assessments with their queries.

    One that says the same as a gap of the run, in any status, is none.
    """
    fresh: list[Gap] = []
    assessments = []
    for own in stated:
        opened = open_gaps(state, [ProposedGap(description=own.description)], AgentRole.REFINER.value)
        new = [gap for gap in opened if gap.id not in {one.id for one in fresh}]
        fresh += new
        assessed = {"severity": own.severity, "follow_up_queries": own.follow_up_queries}
        assessments += [GapAssessment(gap_id=gap.id, **assessed) for gap in new]
    return fresh, assessments


def apply_assessments(state: ResearchState, assessments: Sequence[GapAssessment]) -> list[Gap]:
    """Apply the refiner's assessments by gap id; requests of people are always searched, however they are judged."""
    result = {gap.id: gap for gap in settle_gaps(state, assessments)}
    for assessment in assessments:
        gap = result.get(assessment.gap_id)
        if gap is not None and gap.origin != ASKED_BY_PERSON:
            is_readable = assessment.addressable or bool(assessment.read_further)
            is_hopeless = gap.status is GapStatus.OPEN and not is_readable
            status = GapStatus.UNADDRESSABLE if is_hopeless else gap.status
            result[gap.id] = gap.with_fields(severity=assessment.severity, status=status)
    return list(result.values())
