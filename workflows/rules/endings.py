"""The ending of a run: outcome, completeness, limitations and report check, from the state alone. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from contracts import failures
from contracts.addresses import normalized_text
from contracts.evidence import Source
from contracts.outcome import GateIssue, ResearchResult
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.request import Mode
from contracts.sentences import Message, why_stopped
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vocabulary import (
    LIMITS,
    NATURAL_STOPS,
    Completeness,
    EngineKind,
    GapStatus,
    NodeStatus,
    Outcome,
    SourceStatus,
    StopReason,
)
from workflows.rules.sub_queries import ENOUGH

MIN_REPORT_CHARACTERS: Final = 100
SYSTEM_FAULTS: Final[Mapping[str, str]] = {
    "TimeoutError": Message("lost_time"),
    failures.STORAGE_FULL: Message("lost_room"),
    failures.STORE_UNAVAILABLE: Message("lost_store"),
    failures.PROCESS_STALLED: Message("lost_processor"),
    failures.WORKER_STOPPED: Message("lost_stopped"),
    failures.WORKER_LOST: Message("lost_workers"),
}
"""Reasons for failed reads that are not the source's fault, so a later run may read it."""
MIN_LOST_SHARE: Final = 0.2
"""Share of lost sources from which a run no longer counts as completed."""
RESUME_REMEDY: Final = "and `research resume {id}` asks again"
WITHOUT_WORK: Final = {
    StopReason.CLARIFICATION_EXPIRED: (Outcome.TIMED_OUT, f"nobody answered in time, {RESUME_REMEDY}"),
    StopReason.APPROVAL_EXPIRED: (Outcome.TIMED_OUT, f"nobody approved the plan in time: it is kept, {RESUME_REMEDY}"),
    StopReason.APPROVAL_REJECTED: (Outcome.REFUSED, "the plan was rejected; it is kept"),
    StopReason.INFEASIBLE: (Outcome.REFUSED, "the question is too wide, so nothing was searched"),
    StopReason.USER_STOPPED: (Outcome.FAILED, f"stopped before any work: what was planned is kept, {RESUME_REMEDY}"),
}
"""Stop reason before any research → outcome, and the limitation to state."""
ADVICE: Final = {
    StopReason.APPROVAL_REJECTED: "ask in other words, or change the plan: `research resume {id}` shows it again, then "
    "`research plan {id} --edit`",
    StopReason.INFEASIBLE: "ask for less, or raise a limit: `research resume {id} --set limits.NAME=N`; with "
    "`gates.approve: phrase` you are asked, and may overrule an opinion",
}
LIMIT_NAMES: Final = {
    StopReason.BUDGET_TOKENS: "max_tokens",
    StopReason.BUDGET_CALLS: "max_model_calls",
    StopReason.BUDGET_COST: "max_cost_usd",
    StopReason.BUDGET_REST: "max_cost_usd",
    StopReason.MAX_ITERATIONS: "max_iterations",
}
"""Limits that a resumed run would hit again at once, because earlier usage still counts."""
REACHED: Final = 0.85
"""Least share of a limit of costs that a run has spent when it says that the limit was reached."""


def outcome_of(question: str, state: ResearchState, reason: StopReason) -> Outcome:
    """Return the outcome of a run from its missing parts and its report's check; gates do not affect it."""
    if is_direct(state):
        return Outcome.COMPLETED
    if not state.evidence.findings:
        return _outcome_without_findings(state, reason)
    if state.evidence.draft is None:
        return Outcome.FAILED
    incomplete = _is_missing(question, state, reason) or has_fallen_back(state) or report_issues(state)
    if incomplete:
        return Outcome.PARTIAL
    return Outcome.COMPLETED


def _is_missing(question: str, state: ResearchState, reason: StopReason) -> bool:
    """Return true if part of the work is not done or part of the question is unanswered."""
    cut_short = reason in LIMITS or reason is StopReason.USER_STOPPED
    return cut_short or bool(state.work.failed_branches or find_unanswered(question, state) or lost_sources(state))


def _outcome_without_findings(state: ResearchState, reason: StopReason) -> Outcome:
    if reason is StopReason.BUDGET_TIME:
        # A quick run takes seconds, and must answer even if only to report that nothing was found in time.
        quick = state.resolution.mode is Mode.QUICK and state.evidence.draft is not None
        if quick:
            return Outcome.PARTIAL
        return Outcome.TIMED_OUT
    # A completed agent without a search does not show that nothing can be found.
    searches = [query for query in state.searches() if query.origin != "background"]
    searched = any(query.status is NodeStatus.COMPLETED for query in searches) or state.evidence.readable_sources()
    cut_short = reason in LIMITS or reason is StopReason.USER_STOPPED
    if searched and not (cut_short or state.work.failed_branches or lost_sources(state)):
        return Outcome.EMPTY
    # Readable sources justify a report that names the missing parts.
    if state.evidence.readable_sources():
        return Outcome.PARTIAL
    return Outcome.FAILED


def result_of(
    state: ResearchState, outcome: Outcome, reason: StopReason, ended_at: str, **fields: Any
) -> ResearchResult:
    """Return the result of a run: its figures and notes, and the given `fields`."""
    fields = {"resumable": outcome is not Outcome.COMPLETED} | fields
    return ResearchResult(
        research_id=state.resolution.research_id,
        outcome=outcome,
        stop_reason=reason,
        counts=state.counts(),
        usage=state.accounts.usage,
        degraded=state.work.degraded,
        failed_branches=state.work.failed_branches,
        started_at=state.clock.started_at,
        ended_at=ended_at,
        metadata=state.resolution.metadata,
        **fields,
    )


def advice_of(state: ResearchState, outcome: Outcome, reason: StopReason) -> str:
    """Return a remedy if resuming the run unchanged would achieve nothing; empty if it would, or nothing is missing."""
    if outcome not in (Outcome.PARTIAL, Outcome.EMPTY):
        return ""
    ended_by = LIMIT_NAMES.get(reason)
    raise_limit = f"raise the limit: `research resume {state.resolution.research_id} --set limits.{ended_by}=N`"
    if ended_by and reason is not StopReason.MAX_ITERATIONS:
        return raise_limit
    ended = (NodeStatus.SKIPPED, NodeStatus.FAILED)
    undone = any(node.status in ended and node.status_reason != ENOUGH for node in state.work.plan.nodes)
    rewritten = state.evidence.findings and report_issues(state)
    lost = undone or state.work.failed_branches or state.work.hasty_analyses or lost_sources(state)
    if lost or rewritten or reason not in (*NATURAL_STOPS, StopReason.NO_EVIDENCE):
        return ""
    rephrase = "ask in other words, or add sources with `--corpus` or `--web`; resuming the run would find the same"
    return raise_limit if ended_by else rephrase


def result_without_work(state: ResearchState, reason: StopReason, ended_at: str) -> ResearchResult | None:
    """Return the result of a run that ends before any research; None if there is something to report."""
    infeasible = reason is StopReason.INFEASIBLE
    if (state.people.waiting is None and not infeasible) or state.evidence.sources or reason not in WITHOUT_WORK:
        return None
    outcome, remedy = WITHOUT_WORK[reason]
    name = state.resolution.research_id
    limitations = [remedy.format(id=name)]
    if infeasible:
        limitations += [objection.line() for objection in state.work.plan.open_objections]
    advice = ADVICE.get(reason, "").format(id=name)
    return result_of(state, outcome, reason, ended_at, limitations=limitations, advice=advice)


def stop_reason_of(state: ResearchState, reason: StopReason) -> StopReason:
    """Return the stop reason; a natural end without findings becomes `no_evidence` or `provider_outage`.

    A limit of costs counts as reached once `REACHED` of it is spent; before, what is left is too little.
    """
    limit = state.resolution.limits.max_cost_usd
    if reason is StopReason.BUDGET_COST and limit and state.accounts.usage.known_cost_usd < REACHED * limit:
        return StopReason.BUDGET_REST
    if not state.evidence.findings and not is_direct(state) and reason in NATURAL_STOPS:
        outage = state.work.failed_branches or lost_sources(state)
        if outage:
            return StopReason.PROVIDER_OUTAGE
        return StopReason.NO_EVIDENCE
    return reason


def completeness_of(question: str, state: ResearchState, reason: StopReason) -> Completeness:
    """Return how much of the question is covered, independent of the report's quality."""
    if not state.evidence.findings and not is_direct(state):
        return Completeness.EMPTY
    missing = not is_direct(state) and _is_missing(question, state, reason)
    if missing:
        return Completeness.PARTIAL
    return Completeness.FULL


def is_direct(state: ResearchState) -> bool:
    """Return true if the question was answered without research."""
    return state.evidence.draft is not None and state.evidence.draft.direct


def has_fallen_back(state: ResearchState) -> bool:
    """Return true if roles of a run with a model fell back to working without it."""
    by_model = state.resolution.engine is EngineKind.MODEL
    return by_model and any(role.has_fallback and role.name in state.accounts.fallbacks for role in declared_roles())


def may_be_read_later(source: Source) -> bool:
    """Return true if reading a source failed for a transient reason."""
    return source.status is SourceStatus.FAILED and source.status_reason in failures.TRANSIENT | SYSTEM_FAULTS.keys()


def lost_sources(state: ResearchState) -> str:
    """Describe the sources lost to faults of this system, if they are many; else empty."""
    tried = state.evidence.fetched_sources()
    lost = [source for source in tried.values() if source.status_reason in SYSTEM_FAULTS]
    if not lost or len(lost) < MIN_LOST_SHARE * len(tried):
        return ""
    reasons = dict.fromkeys(SYSTEM_FAULTS[source.status_reason] for source in lost)
    return Message("sources_lost", count=len(lost), all=len(tried), why=list(reasons))


# --- limitations ---------------------------------------------------------------------------------------------------
def limitations_of(question: str, state: ResearchState, reason: StopReason) -> list[str]:
    """Return the limitations for readers: early end, failed work, lost sources, unanswered parts, open gaps.

    Whatever makes an outcome partial has a line.
    """
    lines = list(state.work.limitations)
    if is_direct(state):
        lines.append(Message("without_research"))
    if reason in LIMITS or reason is StopReason.USER_STOPPED:
        why = why_stopped(reason)
        lines.append(
            Message("written_from_there", why=why) if state.evidence.draft else Message("ended_early", why=why)
        )
    lines += state.work.failed_branches
    if has_fallen_back(state):
        messages = (note for note in state.work.degraded if isinstance(note, Message))
        notes = [note for note in messages if note.values.get("role") in state.accounts.fallbacks]
        lines += notes or [Message("done_without_model")]
    lines.append(lost_sources(state))
    if state.work.refresh is not None and state.work.refresh.lost:
        titles = "; ".join(
            state.evidence.sources[name].title
            for name in sorted(state.work.refresh.lost)
            if name in state.evidence.sources
        )
        lines.append(Message("sources_gone", titles=titles[:600]))
    if state.work.refresh is not None and state.work.refresh.due:
        lines.append(Message("refresh_unfinished", count=len(state.work.refresh.due)))
    if state.evidence.findings and state.evidence.draft:
        lines += [Message("check_failed", what=issue.message) for issue in report_issues(state)]
    empty = []
    if state.evidence.draft:
        empty = [name for name, count in state.evidence.draft.words_by_section.items() if not count]
    if empty:
        lines.append(Message("empty_sections", text=empty))
    lines += [Message("not_answered", text=text) for text in find_unanswered(question, state)]
    open_states = (GapStatus.OPEN, GapStatus.UNADDRESSABLE)
    lines += [gap.description for gap in state.evidence.gaps if gap.status in open_states]
    return list(filter(None, dict.fromkeys(lines)))


def find_unanswered(question: str, state: ResearchState) -> list[str]:
    """Return the texts of plan nodes without an answer or stated gap; empty for a run without a model."""
    if state.resolution.engine is EngineKind.EXTRACTIVE:
        return []
    closing = {node.gap_id for node in state.work.plan.nodes if node.gap_id and node.finding_count}
    planned = (node for node in state.work.plan.nodes if node.origin != CHOSEN_BY_AGENT)
    return [node.text for node in planned if not _is_settled(node, question, state, closing)]


def _is_settled(node: PlanNode, question: str, state: ResearchState, closing: set[str]) -> bool:
    """Return true if a node is answered or its gap stated.

    A stated gap does not settle a sub-query that is the run's question itself, but a finding of a later search for that
    gap does (`closing`: ids of these gaps). A node without a search is settled if its work and all children are.
    """
    if node.finding_count:
        return True
    if node.status is NodeStatus.SKIPPED:
        return node.status_reason == ENOUGH
    origin = f"sub_query:{node.id}"
    gaps = {gap.id for gap in state.evidence.gaps if gap.id == node.gap_id or gap.origin == origin}.union(
        node.stated_gaps
    )
    if gaps & closing:
        return True
    if node.needs_search:
        return bool(gaps) and normalized_text(node.text) != normalized_text(question)
    parts = state.work.plan.children(node)
    done = node.status is NodeStatus.COMPLETED and all(_is_settled(child, question, state, closing) for child in parts)
    return done or bool(gaps)


# --- the report ----------------------------------------------------------------------------------------------------
def report_issues(state: ResearchState) -> list[GateIssue]:
    """Return the issues of the draft: too short, no headings, unresolved markers, or no citations."""
    draft = state.evidence.draft
    if draft is None or draft.characters == 0:
        return [GateIssue(code="no_report", message=Message("no_report"))]
    short = Message("short_report", count=draft.characters, least=MIN_REPORT_CHARACTERS)
    unresolved = Message("unresolved_citations", count=len(draft.unresolved_markers))
    uncited = state.evidence.findings and not draft.evidence_ids
    checks = (
        ("short_report", short, draft.characters < MIN_REPORT_CHARACTERS),
        ("no_sections", Message("no_sections"), not draft.has_headings),
        ("unresolved_citations", unresolved, draft.unresolved_markers),
        ("no_citations", Message("no_citations"), uncited),
    )
    return [GateIssue(code=code, message=message) for code, message, fails in checks if fails]
