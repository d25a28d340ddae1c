"""How a run ends: outcome, completeness and the words for them, from the state alone."""

from contracts.identity import normalized_text
from contracts.names import CORPUS_SCHEME
from contracts.plan import SubQuery
from contracts.state import ResearchState
from contracts.vocabulary import (
    NATURAL_STOPS,
    STOP_REASON_TEXTS,
    Completeness,
    GapStatus,
    Outcome,
    StopReason,
    SubQueryStatus,
)
from workflows.rules.duplicates import same_titles

MOST_TWINS = 3
LIMITS = (
    StopReason.BUDGET_TIME,
    StopReason.BUDGET_TOKENS,
    StopReason.BUDGET_CALLS,
    StopReason.BUDGET_COST,
    StopReason.PROVIDER_OUTAGE,
)


def outcome_of(question: str, state: ResearchState, reason: StopReason) -> Outcome:
    """The outcome of a run that wrote what it could. Quality gates do not decide it; what is missing does."""
    searched = [query for query in state.plan.sub_queries if query.status is SubQueryStatus.COMPLETED]
    if not state.findings:
        if reason is StopReason.BUDGET_TIME:
            return Outcome.TIMED_OUT
        if not searched or state.failed_branches or reason in LIMITS:
            return Outcome.FAILED
        return Outcome.PARTIAL if reason is StopReason.USER_STOPPED else Outcome.EMPTY
    if state.draft is None:
        return Outcome.FAILED
    cut_short = reason in LIMITS or reason is StopReason.USER_STOPPED
    incomplete = cut_short or state.failed_branches or unanswered(question, state) or not state.draft.evidence_ids
    incomplete = incomplete or state.draft.answers_question is False
    return Outcome.PARTIAL if incomplete else Outcome.COMPLETED


def stop_reason_of(state: ResearchState, reason: StopReason) -> StopReason:
    """A run without findings stops for want of evidence unless something else stopped it."""
    if not state.findings and reason in NATURAL_STOPS:
        return StopReason.PROVIDER_OUTAGE if state.failed_branches else StopReason.NO_EVIDENCE
    return reason


def unanswered(question: str, state: ResearchState) -> list[str]:
    """Texts of sub-queries that are neither answered by a finding nor stated as a gap.

    Where a sub-query is the person's question itself, a stated gap is no answer to it: findings on its aspects alone
    make no completed run. A finding of a later search that was to close that gap is one.
    """
    closing = {query.gap_id for query in state.plan.sub_queries if query.finding_count}
    return [
        query.text
        for query in state.plan.sub_queries
        if not query.finding_count
        and not (gaps := _gaps_of(query, state)) & closing
        and not (gaps and normalized_text(query.text) != normalized_text(question))
    ]


def _gaps_of(query: SubQuery, state: ResearchState) -> set[str]:
    """Ids of the gaps that say what of a sub-query is not answered."""
    opened = {gap.id for gap in state.gaps if gap.id == query.gap_id or gap.origin == f"sub_query:{query.id}"}
    return opened.union(query.stated_gaps)


def completeness_of(state: ResearchState, outcome: Outcome) -> Completeness:
    """How much of the question is covered, whatever the outcome is called."""
    if not state.findings:
        return Completeness.EMPTY
    return Completeness.FULL if outcome is Outcome.COMPLETED else Completeness.PARTIAL


def limitations_of(question: str, state: ResearchState, reason: StopReason) -> list[str]:
    """What a reader must know: why it was cut short, what is not answered, which gaps stay."""
    lines = list(state.limitations)
    if reason in LIMITS or reason is StopReason.USER_STOPPED:
        why = STOP_REASON_TEXTS[reason]
        report = "; the report was written from what was there" if state.draft else ""
        lines.append(f"{why[0].upper()}{why[1:]}{report}.")
    if state.draft is not None and state.draft.unanswered:
        lines.append(f"The question is not answered: {state.draft.unanswered}.")
    lines += [f"Not answered: {text}" for text in unanswered(question, state)]
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
