"""How a run ends: outcome, completeness and the words for them, from the state alone."""

from collections.abc import Mapping
from typing import Final

from contracts import failures
from contracts.addresses import normalized_text
from contracts.names import CORPUS_SCHEME
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vocabulary import (
    NATURAL_STOPS,
    STOP_REASON_TEXTS,
    Completeness,
    EngineKind,
    GapStatus,
    NodeStatus,
    Outcome,
    StopReason,
)
from workflows.rules.duplicates import same_titles
from workflows.rules.report_check import report_issues
from workflows.rules.sub_queries import ENOUGH

MOST_TWINS = 3
LOST: Final[Mapping[str, str]] = {
    "TimeoutError": "no worker read them in time",
    failures.STORAGE_FULL: "no room was left to keep them",
    failures.STORE_UNAVAILABLE: "the store of documents did not answer",
    failures.WORKER_STOPPED: "the workers that read them were stopped",
    failures.WORKER_LOST: "the workers that read them were lost",
}
"""Reasons of a failed read that say nothing about its source: the fault is ours, and another run could read it."""
WITHOUT_RESEARCH: Final = "Nothing was searched or read for this answer, so nothing in it is cited or checked."
MUCH_LOST = 0.2
"""From this share of the sources on, a run lacks too much to be called completed."""
LIMITS = (
    StopReason.BUDGET_TIME,
    StopReason.BUDGET_TOKENS,
    StopReason.BUDGET_CALLS,
    StopReason.BUDGET_COST,
    StopReason.PROVIDER_OUTAGE,
)


def outcome_of(question: str, state: ResearchState, reason: StopReason) -> Outcome:
    """The outcome of a run that wrote what it could.

    Gates do not decide it, what is missing does; but for the report itself, which must pass its check.
    """
    if is_direct(state):
        return Outcome.COMPLETED
    searched = any(node.status is NodeStatus.COMPLETED for node in state.plan.sub_queries) or state.readable_sources()
    if not state.findings:
        if reason is StopReason.BUDGET_TIME:
            return Outcome.TIMED_OUT
        if not searched or state.failed_branches or reason in LIMITS or lost_sources(state):
            # What was read is worth a report, which names what was missing.
            return Outcome.PARTIAL if state.readable_sources() else Outcome.FAILED
        return Outcome.PARTIAL if reason is StopReason.USER_STOPPED else Outcome.EMPTY
    if state.draft is None:
        return Outcome.FAILED
    cut_short = reason in LIMITS or reason is StopReason.USER_STOPPED
    lacking = state.failed_branches or find_unanswered(question, state) or lost_sources(state)
    incomplete = cut_short or lacking or fallen_back(state) or report_issues(state)
    return Outcome.PARTIAL if incomplete else Outcome.COMPLETED


def fallen_back(state: ResearchState) -> list[str]:
    """Return the roles of a run with a model that were done without it, because its answers could not be used."""
    by_model = state.resolution.engine is EngineKind.MODEL
    return [role.name for role in declared_roles() if by_model and role.has_fallback and role.name in state.fallbacks]


def is_direct(state: ResearchState) -> bool:
    """Whether the question was answered without research."""
    return state.draft is not None and state.draft.direct


def stop_reason_of(state: ResearchState, reason: StopReason) -> StopReason:
    """A run without findings stops for want of evidence unless something else stopped it."""
    if not state.findings and not is_direct(state) and reason in NATURAL_STOPS:
        outage = state.failed_branches or lost_sources(state)
        return StopReason.PROVIDER_OUTAGE if outage else StopReason.NO_EVIDENCE
    return reason


def lost_sources(state: ResearchState) -> str:
    """How many sources were lost by a fault of ours, and why, if they are many; else nothing."""
    lost = [source for source in state.sources.values() if source.status_reason in LOST]
    if not lost or len(lost) < MUCH_LOST * len(state.sources):
        return ""
    reasons = dict.fromkeys(LOST[source.status_reason] for source in lost if source.status_reason)
    return f"{len(lost)} of {len(state.sources)} sources were not read: {'; '.join(reasons)}."


def find_unanswered(question: str, state: ResearchState) -> list[str]:
    """Texts of the plan's nodes that are neither answered nor stated as a gap; none where nobody judges answers."""
    if state.resolution.engine is EngineKind.EXTRACTIVE:
        return []
    closing = {node.gap_id for node in state.plan.nodes if node.gap_id and node.finding_count}
    return [node.text for node in state.plan.nodes if not _is_settled(node, question, state, closing)]


def _is_settled(node: PlanNode, question: str, state: ResearchState, closing: set[str]) -> bool:
    """Whether a node is answered, or its gap stated; one that was skipped is answered by its findings alone.

    Where a sub-query is the person's question itself, a stated gap is no answer to it: findings on its aspects alone
    make no completed run. A finding of a later search that was to close that gap is one. A node without a search of its
    own is answered when its work is done and everything below it is settled.
    """
    if node.finding_count:
        return True
    if node.status is NodeStatus.SKIPPED:
        return node.status_reason == ENOUGH
    gaps = _gaps_of(node, state)
    if gaps & closing:
        return True
    if node.needs_search:
        return bool(gaps) and normalized_text(node.text) != normalized_text(question)
    below = state.plan.children(node)
    done = node.status is NodeStatus.COMPLETED and all(_is_settled(child, question, state, closing) for child in below)
    return done or bool(gaps)


def _gaps_of(node: PlanNode, state: ResearchState) -> set[str]:
    """Ids of the gaps that say what of a node is not answered."""
    origin = f"sub_query:{node.id}"
    return {gap.id for gap in state.gaps if gap.id == node.gap_id or gap.origin == origin}.union(node.stated_gaps)


def completeness_of(state: ResearchState, outcome: Outcome) -> Completeness:
    """How much of the question is covered, whatever the outcome is called."""
    if not state.findings and not is_direct(state):
        return Completeness.EMPTY
    return Completeness.FULL if outcome is Outcome.COMPLETED else Completeness.PARTIAL


def limitations_of(question: str, state: ResearchState, reason: StopReason) -> list[str]:
    """What a reader must know: why it was cut short, what is not answered, which gaps stay."""
    lines = list(state.limitations)
    if is_direct(state):
        lines.append(WITHOUT_RESEARCH)
    if reason in LIMITS or reason is StopReason.USER_STOPPED:
        why = STOP_REASON_TEXTS[reason]
        report = "; the report was written from what was there" if state.draft else ""
        lines.append(f"{why[0].upper()}{why[1:]}{report}.")
    lines += [lost] if (lost := lost_sources(state)) else []
    if state.findings and state.draft:
        lines += [f"The report did not pass its check: {issue.message}." for issue in report_issues(state)]
    lines += [f"Not answered: {text}" for text in find_unanswered(question, state)]
    open_states = (GapStatus.OPEN, GapStatus.UNADDRESSABLE)
    lines += [gap.description for gap in state.gaps if gap.status in open_states]
    lines += _possible_twins(state)
    return list(dict.fromkeys(lines))


def _possible_twins(state: ResearchState) -> list[str]:
    """Pages of one title are kept apart, and a reader is told that they may be one work (ID rules of the domain)."""
    pages = [source for source in state.readable_sources() if not source.url.startswith(CORPUS_SCHEME)]
    groups = same_titles(pages)[:MOST_TWINS]
    return [
        f"{len(group)} sources bear the title “{state.sources[group[0]].title[:100]}”: they may be one work."
        for group in groups
    ]
