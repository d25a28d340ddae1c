"""Position, gates and decisions of the strategy `supervisor`. Pure."""

from typing import Any, ClassVar

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
    Quality,
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
        Phase.PLANNING: check_plan,
        Phase.GATHERING: check_sources,
        Phase.ANALYSIS: check_findings,
        Phase.SYNTHESIS: check_report,
        Phase.REFINEMENT: check_gaps,
    }[phase]
    return check(state)


def check_plan(state: ResearchState) -> GateResult:
    """Demand enough distinct sub-queries and a brief; a run that is limited to one sub-query needs one."""
    queries = [query for query in state.plan.sub_queries if query.origin == "plan"]
    limit = state.resolved.limits.max_sub_queries if state.resolved else 5
    least, has_brief = min(2, limit), bool(state.plan.brief.strip())
    issues = []
    if len(queries) < least:
        issues.append(GateIssue(code="too_few_sub_queries", message=f"{len(queries)} sub-queries, at least {least}"))
    if len(queries) > limit:
        issues.append(GateIssue(code="too_many_sub_queries", message=f"{len(queries)} sub-queries, at most {limit}"))
    if not has_brief:
        issues.append(GateIssue(code="no_brief", message="the research brief is missing"))
    issues += [
        GateIssue(code="short_sub_query", message=f"sub-query too short: {query.text[:20]}")
        for query in queries
        if len(query.text) < MIN_QUERY_CHARACTERS
    ]
    metrics = {"sub_query_count": float(len(queries)), "has_research_brief": float(has_brief)}
    return _result(Phase.PLANNING, state, issues, 2.5 * len(queries), metrics)


def check_sources(state: ResearchState) -> GateResult:
    """Demand enough sources, a good one among them, and half of the sub-queries completed."""
    sources, queries = state.readable_sources(), state.plan.sub_queries
    completed = sum(query.status is NodeStatus.COMPLETED for query in queries)
    issues = []
    if len(sources) < MIN_SOURCES:
        message = f"{plural(len(sources), 'source')}, at least {MIN_SOURCES}"
        issues.append(GateIssue(code="too_few_sources", message=message))
    if sources and not any(source.quality is Quality.HIGH for source in sources):
        issues.append(GateIssue(code="no_high_quality_source", message="no source is of high quality"))
    if queries and completed / len(queries) < MIN_COMPLETION:
        message = f"{completed} of {len(queries)} sub-queries completed, at least half"
        issues.append(GateIssue(code="too_few_completed", message=message))
    metrics = {"source_count": float(len(sources)), "completed": float(completed)}
    return _result(Phase.GATHERING, state, issues, 1.5 * len(sources), metrics)


def check_findings(state: ResearchState) -> GateResult:
    """Demand enough findings, a well-supported one, and enough of the sources used."""
    high = sum(finding.confidence in TOP_CONFIDENCE for finding in state.findings)
    analyzed = {source.id for source in state.readable_sources() if source.analyzed}
    cited = {source_id for finding in state.findings for source_id in finding.source_ids} & analyzed
    coverage = len(cited) / max(1, len(analyzed))
    issues = []
    if len(state.findings) < MIN_FINDINGS:
        message = f"{plural(len(state.findings), 'finding')}, at least {MIN_FINDINGS}"
        issues.append(GateIssue(code="too_few_findings", message=message))
    # Another analysis cannot raise the confidence of a finding above what its sources support.
    if state.findings and not high and any(_may_be_of_high_confidence(state, finding) for finding in state.findings):
        issues.append(GateIssue(code="no_high_confidence", message="no finding is of high confidence"))
    if coverage < MIN_COVERAGE:
        message = f"findings rest on {coverage:.0%} of the sources, at least {MIN_COVERAGE:.0%}"
        issues.append(GateIssue(code="low_coverage", message=message))
    metrics = {
        "finding_count": float(len(state.findings)),
        "high_confidence_count": float(high),
        "coverage": round(coverage, 3),
        "not_analyzed": float(len(state.readable_sources()) - len(analyzed)),
    }
    return _result(Phase.ANALYSIS, state, issues, 2.0 * len(state.findings) + high, metrics)


def _may_be_of_high_confidence(state: ResearchState, finding: Finding) -> bool:
    """Return true if the sources of a finding are independent and good enough for a high confidence."""
    sources = [state.sources[name] for name in finding.source_ids if name in state.sources]
    voices = ((voice_of(source.url, source.publisher), source.quality) for source in sources)
    return supported_confidence(voices) is Confidence.HIGH


def check_report(state: ResearchState) -> GateResult:
    """Demand a report with headings, long enough, whose markers all resolve."""
    length = float(state.draft.characters if state.draft else 0)
    metrics = {"has_report": float(length > 0), "report_length": length}
    return _result(Phase.SYNTHESIS, state, report_issues(state), length / 500, metrics)


def check_gaps(state: ResearchState) -> GateResult:
    """Note open gaps with no iteration left; always valid."""
    open_gaps = len(state.unaddressed_gaps())
    last = state.resolved.limits.max_iterations if state.resolved else 1
    issues = []
    if open_gaps and state.iteration >= last:
        issues.append(GateIssue(code="open_gaps", message=f"open after the last iteration: {plural(open_gaps, 'gap')}"))
    metrics = {"unaddressed_gaps": float(open_gaps)}
    result = _result(Phase.REFINEMENT, state, issues, 10.0 - min(10.0, 2.0 * open_gaps), metrics)
    return result.model_copy(update={"valid": True})


def _result(
    phase: Phase, state: ResearchState, issues: list[GateIssue], score: float, metrics: dict[str, float]
) -> GateResult:
    return GateResult(
        phase=phase,
        valid=not issues,
        issues=issues,
        quality_score=min(10.0, score),
        metrics=metrics,
        policy=state.resolved.gates.policy if state.resolved else GatePolicy.STRICT,
    )


def phase_outputs(phase: Phase, state: ResearchState) -> dict[str, Any]:
    """Return the figures that the decision log records of a phase."""
    gaps = len(state.unaddressed_gaps())
    high = sum(finding.confidence in TOP_CONFIDENCE for finding in state.findings)
    outputs: dict[Phase, dict[str, Any]] = {
        Phase.PLANNING: {
            "sub_query_count": len(state.plan.sub_queries),
            "has_research_brief": bool(state.plan.brief.strip()),
        },
        Phase.GATHERING: {"source_count": len(state.readable_sources())},
        Phase.ANALYSIS: {"finding_count": len(state.findings), "high_confidence_count": high},
        Phase.SYNTHESIS: {
            "has_report": state.draft is not None,
            "report_length": state.draft.characters if state.draft else 0,
        },
        Phase.REFINEMENT: {"unaddressed_gaps": gaps},
    }
    return outputs[phase]


def reflection_prompt(phase: Phase, state: ResearchState) -> str:
    """Return the figures of a phase, then the questions that the reflecting model is asked about it."""
    gaps, sources = state.unaddressed_gaps(), state.readable_sources()
    if phase is Phase.PLANNING:
        brief = "yes" if state.plan.brief.strip() else "no"
        return (
            f"The plan is made: {len(state.plan.sub_queries)} sub-queries; research brief: {brief}. "
            "Do the sub-queries cover the whole question, and what aspect is missing?"
        )
    if phase is Phase.GATHERING:
        publishers = {source.publisher or source.provider for source in sources}
        return (
            f"Searching is done: {plural(len(sources), 'source')} read, "
            f"{len(state.high_quality_sources())} of high quality, "
            f"from {plural(len(publishers), 'publisher')}. Are they diverse enough, and how is their quality spread?"
        )
    if phase is Phase.ANALYSIS:
        return (
            f"The sources are analyzed: {plural(len(state.findings), 'finding')}, {plural(len(gaps), 'gap')}. "
            "Is each finding well supported, and is any gap critical?"
        )
    if phase is Phase.SYNTHESIS:
        length = state.draft.characters if state.draft else 0
        last = state.resolved.limits.max_iterations if state.resolved else 1
        return (
            f"The report is written: {length} characters, iteration {state.iteration} of {last}. "
            "Is it good enough, or does it need another round?"
        )
    addressed = sum(gap.status is GapStatus.ADDRESSED for gap in state.gaps)
    return f"The gaps are reviewed: {addressed} of {len(state.gaps)} addressed. Go on iterating, or finish?"


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
    is_retried = was_retried(state, gate.phase, state.iteration)
    has_remedy = bool(curable_issues(state, gate)) and gate.policy is GatePolicy.STRICT
    retry_is_due = has_remedy or (reflection is not None and reflection.action is Action.RETRY)
    if retry_is_due and gate.phase != Phase.REFINEMENT and not is_retried and can_change:
        return _pause(gate, Action.RETRY, _reasons(gate, reflection))
    if gate.phase == Phase.SYNTHESIS:
        return _after_synthesis(state, gate, reflection)
    if gate.phase == Phase.REFINEMENT:
        return _after_refinement(state, gate)
    if retry_is_due or not gate.valid:
        return _pause(gate, Action.PROCEED, f"{_why_no_retry(gate, is_retried)}: {_reasons(gate, reflection)}")
    return _pause(gate, Action.PROCEED, reflection.rationale if reflection else "the gate is satisfied")


def curable_issues(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Return the issues that doing the phase again might cure: a retry and a note are about these.

    Of ordinary sites none is of high quality, whichever are read; without such a source no finding is of high
    confidence; a folder whose every hit has been read has no more; and rules find in the same pages the same findings.
    """
    hopeless = set()
    if state.engine_by_role.get(AgentRole.ANALYZER) == EngineKind.EXTRACTIVE and state.findings:
        hopeless |= {"too_few_findings", "low_coverage", "no_high_confidence"}
    if state.resolved is not None and state.resolved.web:
        hopeless.add("no_high_quality_source")
    elif all(source.status is SourceStatus.FULL for source in state.sources.values()) and not unread_hits(state):
        hopeless.add("too_few_sources")
    if not state.high_quality_sources():
        hopeless.add("no_high_confidence")
    return [issue for issue in gate.issues if issue.code not in hopeless]


def was_retried(state: ResearchState, phase: str, iteration: int) -> bool:
    """Return true if a phase had its one retry in this iteration."""
    return f"{phase}/{iteration}" in SupervisorPosition.read(state).retried


def _after_synthesis(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None) -> Pause:
    if not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "no gap is left that another iteration could close")
    if reflection is not None and reflection.action is Action.COMPLETE and gate.valid:
        still_open = ", ".join(gap.id for gap in actionable_gaps(state))
        return _pause(gate, Action.COMPLETE, f"the supervisor completes with open gaps: {still_open}")
    return _pause(gate, Action.ITERATE, f"gaps that matter: {len(actionable_gaps(state))}; an iteration is left")


def _after_refinement(state: ResearchState, gate: GateResult) -> Pause:
    follow_ups = [query for query in state.pending_sub_queries() if query.gap_id]
    if SupervisorPosition.read(state).recommended is False:
        return _pause(gate, Action.COMPLETE, "more searching would not help")
    if not follow_ups or not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "the refinement found nothing new to search for")
    return _pause(gate, Action.ITERATE, plural(len(follow_ups), "follow-up query"))


def _why_no_retry(gate: GateResult, is_retried: bool) -> str:
    if is_retried:
        return "the one retry is used"
    return "nothing_to_change" if gate.policy is GatePolicy.STRICT else "the gate is advisory"


def _reasons(gate: GateResult, reflection: SupervisorAnswer | None) -> str:
    reasons = [issue.message for issue in gate.issues]
    if not reasons and reflection is not None:
        reasons = [reflection.rationale]
    return "; ".join(reasons)


def _pause(gate: GateResult, action: Action, rationale: str) -> Pause:
    return Pause(phase=gate.phase, action=action, rationale=rationale[:500], score=gate.quality_score)


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
    last = state.resolved.limits.max_iterations if state.resolved else 1
    return bool(actionable_gaps(state)) and state.iteration < last


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Return the open gaps that matter enough to search again; unaddressable ones are no longer open."""
    floor = state.resolved.limits.severity_floor if state.resolved else Severity.MODERATE
    return [gap for gap in state.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= SEVERITY_ORDER[floor]]


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Return the reason for which a run completes after a synthesis."""
    if not state.has_unresolved_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    last = state.resolved.limits.max_iterations if state.resolved else 1
    if state.iteration >= last:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT


# --- a resumed run -------------------------------------------------------------------------------------------------
def reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    """Move the position of a stored state to its first unfinished phase.

    A finished run is decided again under the new limits. One that was interrupted after its last phase continues to
    its end.
    """
    before = SupervisorPosition.read(state).next_phase
    _reposition(state, redo_analysis=redo_analysis)
    if SupervisorPosition.read(state).next_phase != before or redo_analysis:
        state.open_pause = None


def _reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    position, pause = SupervisorPosition.of(state), state.pause
    if not state.plan.nodes:
        position.next_phase, state.pause = Phase.PLANNING, None
    elif state.pending_sub_queries() and position.next_phase != Phase.PLANNING:
        position.next_phase, state.pause = Phase.GATHERING, None
    elif redo_analysis:
        position.next_phase, state.pause = Phase.ANALYSIS, None
    elif pause is not None and pause.phase == position.next_phase and pause.action is Action.COMPLETE:
        if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
            state.pause = pause.model_copy(update={"action": Action.ITERATE})
        elif state.ending is not None:
            position.next_phase, state.pause = Phase.SYNTHESIS, None
