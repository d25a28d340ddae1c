"""Position, gates and decisions of the strategy `supervisor`. Pure."""

from typing import ClassVar

from contracts.evidence import Finding, Gap, supported_confidence, voice_of
from contracts.outcome import GateIssue, GateResult, Pause
from contracts.roles import SupervisorAnswer
from contracts.state import Position, ResearchState
from contracts.texts import plural
from contracts.vocabulary import (
    TOP_CONFIDENCE,
    Action,
    AgentRole,
    Confidence,
    EngineKind,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Phase,
    Severity,
    SourceStatus,
    StopReason,
)
from workflows.rules.endings import report_issues
from workflows.rules.sub_queries import unread_hits

MIN_QUERY_CHARACTERS = 10
MIN_SOURCES = 3
MIN_COMPLETION = 0.5
"""Share of the sub-queries."""
MIN_FINDINGS = 2
MIN_COVERAGE = 0.3
"""Share of the analyzed sources that findings cite."""

SEVERITY_ORDER = {Severity.MINOR: 0, Severity.MODERATE: 1, Severity.CRITICAL: 2}
FOLLOWING = {
    Phase.PLANNING: Phase.GATHERING,
    Phase.GATHERING: Phase.ANALYSIS,
    Phase.ANALYSIS: Phase.SYNTHESIS,
}
"""The transitions without a choice."""


def evaluate(phase: Phase, state: ResearchState) -> GateResult:
    """Return the gate of a phase. Pure: the same state gives the same result."""
    check = {
        Phase.PLANNING: _check_plan,
        Phase.GATHERING: _check_sources,
        Phase.ANALYSIS: _check_findings,
        Phase.SYNTHESIS: _check_report,
        Phase.REFINEMENT: _check_gaps,
    }[phase]
    issues, score, metrics = check(state)
    return GateResult(
        phase=phase,
        valid=not issues or phase is Phase.REFINEMENT,
        issues=issues,
        quality_score=min(10.0, score),
        metrics=metrics,
        policy=state.resolution.gates.policy,
    )


Check = tuple[list[GateIssue], float, dict[str, bool | int | float]]
"""Issues, score and figures of a phase; the decision log records the figures."""


def _issues(*checks: tuple[bool, str, str]) -> list[GateIssue]:
    """Return the issues that apply, each given as condition, code and message."""
    return [GateIssue(code=code, message=message) for applies, code, message in checks if applies]


def _check_plan(state: ResearchState) -> Check:
    """Demand enough distinct sub-queries and a brief; a run that is limited to one sub-query needs one."""
    queries = [query for query in state.plan.sub_queries if query.origin == "plan"]
    limit, has_brief, count = state.resolution.limits.max_sub_queries, bool(state.plan.brief.strip()), len(queries)
    least = min(2, limit)
    issues = _issues(
        (count < least, "too_few_sub_queries", f"{count} sub-queries, where at least {least} are wanted"),
        (count > limit, "too_many_sub_queries", f"{count} sub-queries, at most {limit}"),
        (not has_brief, "no_brief", "the research brief is missing"),
        *(
            (len(query.text) < MIN_QUERY_CHARACTERS, "short_sub_query", f"sub-query too short: {query.text[:20]}")
            for query in queries
        ),
    )
    return issues, 2.5 * count, {"sub_query_count": count, "has_research_brief": has_brief}


def _check_sources(state: ResearchState) -> Check:
    """Demand enough sources, a good one among them, and half of the sub-queries completed."""
    count, queries, good = len(state.readable_sources()), state.plan.sub_queries, state.high_quality_sources()
    completed = sum(query.status is NodeStatus.COMPLETED for query in queries)
    issues = _issues(
        (count < MIN_SOURCES, "too_few_sources", f"{plural(count, 'source')}, where at least {MIN_SOURCES} are wanted"),
        (count > 0 and not good, "no_high_quality_source", "no source is of high quality"),
        (
            completed < MIN_COMPLETION * len(queries),
            "too_few_completed",
            f"{completed} of {len(queries)} sub-queries completed, where at least half are wanted",
        ),
    )
    return issues, 1.5 * count, {"source_count": count, "completed": completed}


def _check_findings(state: ResearchState) -> Check:
    """Demand enough findings, a well-supported one, and enough of the sources used."""
    high, count = sum(finding.confidence in TOP_CONFIDENCE for finding in state.findings), len(state.findings)
    analyzed = {source.id for source in state.readable_sources() if source.analyzed}
    cited = {source_id for finding in state.findings for source_id in finding.source_ids} & analyzed
    coverage = len(cited) / max(1, len(analyzed))
    # Another analysis cannot raise the confidence of a finding above what its sources support.
    may_be_high = any(_may_be_of_high_confidence(state, finding) for finding in state.findings)
    issues = _issues(
        (
            count < MIN_FINDINGS,
            "too_few_findings",
            f"{plural(count, 'finding')}, where at least {MIN_FINDINGS} are wanted",
        ),
        (not high and may_be_high, "no_high_confidence", "no finding is of high confidence"),
        (
            coverage < MIN_COVERAGE,
            "low_coverage",
            f"findings rest on {coverage:.0%} of the sources, where at least {MIN_COVERAGE:.0%} is wanted",
        ),
    )
    metrics = {
        "finding_count": count,
        "high_confidence_count": high,
        "coverage": round(coverage, 3),
        "not_analyzed": len(state.readable_sources()) - len(analyzed),
    }
    return issues, 2.0 * count + high, metrics


def _may_be_of_high_confidence(state: ResearchState, finding: Finding) -> bool:
    """Return true if the sources of a finding are independent and good enough for a high confidence."""
    sources = [state.sources[name] for name in finding.source_ids if name in state.sources]
    voices = ((voice_of(source.url, source.publisher), source.quality) for source in sources)
    return supported_confidence(voices) is Confidence.HIGH


def _check_report(state: ResearchState) -> Check:
    """Demand a report with headings, long enough, whose markers all resolve."""
    length = state.draft.characters if state.draft else 0
    return report_issues(state), length / 500, {"has_report": length > 0, "report_length": length}


def _check_gaps(state: ResearchState) -> Check:
    """Note open gaps with no iteration left; always valid."""
    count, is_last = len(state.unaddressed_gaps()), state.iteration >= state.resolution.limits.max_iterations
    message = f"open after the last iteration: {plural(count, 'gap')}"
    issues = _issues((count > 0 and is_last, "open_gaps", message))
    return issues, 10.0 - min(10.0, 2.0 * count), {"unaddressed_gaps": count}


def reflection_prompt(phase: Phase, state: ResearchState) -> str:
    """Return the figures of a phase, then the questions about it for the reflecting model."""
    gaps, sources = state.unaddressed_gaps(), state.readable_sources()
    publishers = {source.publisher or source.provider for source in sources}
    addressed = sum(gap.status is GapStatus.ADDRESSED for gap in state.gaps)
    return {
        Phase.PLANNING: (
            f"The plan is made: {len(state.plan.sub_queries)} sub-queries; research brief: "
            f"{'yes' if state.plan.brief.strip() else 'no'}. "
            "Do the sub-queries cover the whole question, and what aspect is missing?"
        ),
        Phase.GATHERING: (
            f"Searching is done: {plural(len(sources), 'source')} read, "
            f"{len(state.high_quality_sources())} of high quality, from {plural(len(publishers), 'publisher')}. "
            "Are they diverse enough, and how is their quality spread?"
        ),
        Phase.ANALYSIS: (
            f"The sources are analyzed: {plural(len(state.findings), 'finding')}, {plural(len(gaps), 'gap')}. "
            "Is each finding well supported, and is any gap critical?"
        ),
        Phase.SYNTHESIS: (
            f"The report is written: {state.draft.characters if state.draft else 0} characters, "
            f"iteration {state.iteration} of {state.resolution.limits.max_iterations}. "
            "Is it good enough, or does it need another round?"
        ),
        Phase.REFINEMENT: (
            f"The gaps are reviewed: {addressed} of {len(state.gaps)} addressed. Go on iterating, or finish?"
        ),
    }[phase]


class SupervisorPosition(Position):
    """The phase that comes next, and which phases were retried."""

    NAME: ClassVar[str] = "supervisor"

    next_phase: Phase = Phase.PLANNING
    retried: list[str] = []
    """`<phase>/<iteration>` of each phase that had its one retry."""
    recommended: bool | None = None
    """The refiner's recommendation to iterate; None before a refinement."""


# --- after a phase -------------------------------------------------------------------------------------------------
def decide(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None, *, can_change: bool) -> Pause:
    """Decide what happens after a phase.

    A reflection may tighten; it may loosen the iteration decision alone. `can_change` is false where doing the phase
    again would have the same input.
    """
    is_retried, is_strict = was_retried(state, gate.phase, state.iteration), gate.policy is GatePolicy.STRICT
    rationale = reflection.rationale if reflection else "the gate is satisfied"
    reasons = "; ".join(issue.message for issue in gate.issues) or rationale
    wants_retry = reflection is not None and reflection.action is Action.RETRY
    retry_is_due = wants_retry or (is_strict and bool(curable_issues(state, gate)))
    action = Action.PROCEED
    if retry_is_due and gate.phase != Phase.REFINEMENT and not is_retried and can_change:
        action, rationale = Action.RETRY, reasons
    elif gate.phase == Phase.SYNTHESIS:
        action, rationale = _after_synthesis(state, gate, reflection)
    elif gate.phase == Phase.REFINEMENT:
        action, rationale = _after_refinement(state)
    elif retry_is_due or not gate.valid:
        obstacle = "nothing_to_change" if is_strict else "the gate is advisory"
        rationale = f"{'the one retry is used' if is_retried else obstacle}: {reasons}"
    return Pause(phase=gate.phase, action=action, rationale=rationale[:500], score=gate.quality_score)


def curable_issues(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Return the issues that doing the phase again might cure: a retry and a note are about these.

    Of ordinary sites none is of high quality, whichever are read; without such a source no finding is of high
    confidence; a folder whose every hit has been read has no more; and rules find in the same pages the same findings.
    """
    hopeless = set()
    if state.engine_by_role.get(AgentRole.ANALYZER) == EngineKind.EXTRACTIVE and state.findings:
        hopeless |= {"too_few_findings", "low_coverage", "no_high_confidence"}
    if state.resolution.web:
        hopeless.add("no_high_quality_source")
    elif all(source.status is SourceStatus.FULL for source in state.sources.values()) and not unread_hits(state):
        hopeless.add("too_few_sources")
    if not state.high_quality_sources():
        hopeless.add("no_high_confidence")
    return [issue for issue in gate.issues if issue.code not in hopeless]


def was_retried(state: ResearchState, phase: str, iteration: int) -> bool:
    """Return true if a phase had its one retry in this iteration."""
    return f"{phase}/{iteration}" in SupervisorPosition.read(state).retried


def _after_synthesis(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None) -> tuple[Action, str]:
    if not should_iterate(state):
        return Action.COMPLETE, "no gap is left that another iteration could close"
    gaps = actionable_gaps(state)
    if reflection is not None and reflection.action is Action.COMPLETE and gate.valid:
        return Action.COMPLETE, f"the supervisor completes with open gaps: {', '.join(gap.id for gap in gaps)}"
    return Action.ITERATE, f"gaps that matter: {len(gaps)}; an iteration is left"


def _after_refinement(state: ResearchState) -> tuple[Action, str]:
    follow_ups = [query for query in state.pending_sub_queries() if query.gap_id]
    if SupervisorPosition.read(state).recommended is False:
        return Action.COMPLETE, "more searching would not help"
    if not follow_ups or not should_iterate(state):
        return Action.COMPLETE, "the refinement found nothing new to search for"
    return Action.ITERATE, plural(len(follow_ups), "follow-up query")


# --- to the next phase ---------------------------------------------------------------------------------------------
def apply_pause(state: ResearchState) -> StopReason | None:
    """Move the position by the last pause, by the transition table of the design; the reason where the run is over."""
    position, pause = SupervisorPosition.of(state), state.pause
    if pause is not None and pause.action is Action.RETRY:
        position.next_phase = Phase(pause.phase)
    if pause is None or pause.phase != position.next_phase or pause.action is Action.RETRY:
        return None
    if position.next_phase in FOLLOWING:
        position.next_phase = FOLLOWING[position.next_phase]
    elif pause.action is not Action.ITERATE:
        return stop_reason_after_synthesis(state)
    elif position.next_phase == Phase.SYNTHESIS:
        position.next_phase = Phase.REFINEMENT
    else:
        state.start_new_iteration()
        state.candidates = []
        position.next_phase = Phase.GATHERING
    return None


def should_iterate(state: ResearchState) -> bool:
    """Return true if gaps remain that matter and an iteration is left."""
    return bool(actionable_gaps(state)) and state.iteration < state.resolution.limits.max_iterations


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Return the open gaps that matter enough to search again; unaddressable ones are no longer open."""
    floor = SEVERITY_ORDER[state.resolution.limits.severity_floor]
    return [gap for gap in state.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= floor]


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Return the reason for which a run completes after a synthesis."""
    if not state.has_unresolved_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    if state.iteration >= state.resolution.limits.max_iterations:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT


# --- a resumed run -------------------------------------------------------------------------------------------------
def reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    """Move the position of a stored state to its first unfinished phase.

    A finished run is decided again under the new limits. One that was interrupted after its last phase continues to
    its end.
    """
    position, pause = SupervisorPosition.of(state), state.pause
    before = position.next_phase
    if not state.plan.nodes:
        position.next_phase, state.pause = Phase.PLANNING, None
    elif state.pending_sub_queries() and before != Phase.PLANNING:
        position.next_phase, state.pause = Phase.GATHERING, None
    elif redo_analysis:
        position.next_phase, state.pause = Phase.ANALYSIS, None
    elif pause is not None and pause.phase == before and pause.action is Action.COMPLETE:
        if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
            state.pause = pause.model_copy(update={"action": Action.ITERATE})
        elif state.ending is not None:
            position.next_phase, state.pause = Phase.SYNTHESIS, None
    if position.next_phase != before or redo_analysis:
        state.open_pause = None
