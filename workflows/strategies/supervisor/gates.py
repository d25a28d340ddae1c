"""The gates of the `supervisor` strategy: what each phase must bring, as pure functions of the state."""

from typing import Final

from contracts.evidence import Finding, source_voice, supported_confidence
from contracts.outcome import GateIssue, GateResult
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, NodeStatus, Phase
from workflows.rules.endings import report_issues
from workflows.rules.sub_queries import unread_hits

MIN_QUERY_CHARACTERS = 10
MIN_SOURCES = 3  # read by a gathering
MIN_COMPLETION = 0.5
"""Required share of completed sub-queries."""
MIN_FINDINGS = 2  # of an analysis
MIN_COVERAGE = 0.3
"""Required share of analyzed sources cited by findings."""
ANALYSES_FAILED: Final = "analyses_failed"
"""Code of the issue that calls of the analyzer failed."""
GATE_SENTENCES: Final[dict[str, str]] = {
    Phase.PLANNING: "degraded_gate_planning",
    Phase.GATHERING: "degraded_gate_gathering",
    Phase.ANALYSIS: "degraded_gate_analysis",
    Phase.SYNTHESIS: "degraded_gate_synthesis",
}
"""Sentence of a note on a gate that is not satisfied, by phase; that of refinement always is."""
GATE_NEEDS: Final = {
    Phase.PLANNING: "a brief, and sub-queries that are neither too few nor too short",
    Phase.GATHERING: f"{MIN_SOURCES} pages read{{good}}, and half of the sub-queries searched",
    Phase.ANALYSIS: f"{MIN_FINDINGS} findings{{high}}, on {MIN_COVERAGE:.0%} of the pages read",
    Phase.SYNTHESIS: "a report with headings, in which every citation names a passage",
    Phase.REFINEMENT: "nothing",
}
"""What the gates require. Their scores count pages, findings and characters, which no model is to strive for."""
GOOD_SOURCE: Final = ", one of them of high quality"
SURE_FINDING: Final = ", one of them of high confidence"
Check = tuple[list[GateIssue], float, dict[str, bool | int | float]]
"""Issues, score and metrics of a phase; the decision log records the metrics."""


def evaluate(phase: Phase, state: ResearchState) -> GateResult:
    """Return the gate result of a phase, a pure function of the state."""
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


def _issues(*checks: tuple[bool, str, str]) -> list[GateIssue]:
    """Return the issues whose condition holds; each is given as condition, code and message."""
    return [GateIssue(code=code, message=message) for applies, code, message in checks if applies]


def _check_plan(state: ResearchState) -> Check:
    """Require enough sub-queries of sufficient length and a brief; a run limited to one sub-query needs one.

    The question itself may be a sub-query at any length.
    """
    queries = [query for query in state.work.plan.sub_queries if query.origin == "plan"]
    limit = state.resolution.limits.max_sub_queries
    has_brief = bool(state.work.plan.brief.strip())
    count = len(queries)
    texts = (query.text for query in queries if query.text != " ".join(state.resolution.query.split()))
    minimum = min(2, limit)
    short = [text for text in texts if len(text) < MIN_QUERY_CHARACTERS]
    issues = _issues(
        (count < minimum, "too_few_sub_queries", Message("gate_few_queries", count=count, least=minimum)),
        (count > limit, "too_many_sub_queries", Message("gate_many_queries", count=count, most=limit)),
        (not has_brief, "no_brief", Message("gate_no_brief")),
        *((True, "short_sub_query", Message("gate_short_query", text=text[:20])) for text in short),
    )
    return issues, 2.5 * count, {"sub_query_count": count, "has_research_brief": has_brief}


def _check_sources(state: ResearchState) -> Check:
    """Require enough sources, one of them of high quality, and half of the sub-queries completed."""
    count = len(state.evidence.readable_sources())
    queries = state.work.plan.sub_queries
    good = state.evidence.high_quality_sources()
    completed = sum(query.status is NodeStatus.COMPLETED for query in queries)
    few = Message("half_completed", count=completed, all=len(queries))
    issues = _issues(
        (count < MIN_SOURCES, "too_few_sources", Message("few_sources", count=count, least=MIN_SOURCES)),
        (count > 0 and not good, "no_high_quality_source", Message("no_high_source")),
        (completed < MIN_COMPLETION * len(queries), "too_few_completed", few),
    )
    return issues, 1.5 * count, {"source_count": count, "completed": completed}


def _check_findings(state: ResearchState) -> Check:
    """Require enough findings, a well-supported one, and enough of the sources cited."""
    high = sum(finding.confidence in TOP_CONFIDENCE for finding in state.evidence.findings)
    count = len(state.evidence.findings)
    analyzed = {source.id for source in state.evidence.readable_sources() if source.analyzed}
    cited = {source_id for finding in state.evidence.findings for source_id in finding.source_ids} & analyzed
    coverage = len(cited) / max(1, len(analyzed))
    # Another analysis cannot raise a finding's confidence above what its sources support.
    may_be_high = any(_may_be_of_high_confidence(state, finding) for finding in state.evidence.findings)
    failed = [query for query in state.work.plan.sub_queries if query.id in state.work.hasty_analyses]
    low = Message("low_coverage", share=f"{coverage:.0%}", least=f"{MIN_COVERAGE:.0%}")
    issues = _issues(
        (bool(failed), ANALYSES_FAILED, Message("gate_analyses_failed", count=len(failed))),
        (count < MIN_FINDINGS, "too_few_findings", Message("few_findings", count=count, least=MIN_FINDINGS)),
        (not high and may_be_high, "no_high_confidence", Message("no_high_finding")),
        (coverage < MIN_COVERAGE, "low_coverage", low),
    )
    metrics = {
        "finding_count": count,
        "high_confidence_count": high,
        "coverage": round(coverage, 3),
        "not_analyzed": len(state.evidence.readable_sources()) - len(analyzed),
    }
    return issues, 2.0 * count + high, metrics


def _may_be_of_high_confidence(state: ResearchState, finding: Finding) -> bool:
    """Return true if a finding's sources are independent and good enough for high confidence."""
    sources = [state.evidence.sources[name] for name in finding.source_ids if name in state.evidence.sources]
    voices = ((source_voice(source.url, source.publisher), source.quality) for source in sources)
    return supported_confidence(voices) is Confidence.HIGH


def _check_report(state: ResearchState) -> Check:
    """Require a long enough report with headings whose markers all resolve."""
    length = state.evidence.draft.characters if state.evidence.draft else 0
    return report_issues(state), length / 500, {"has_report": length > 0, "report_length": length}


def _check_gaps(state: ResearchState) -> Check:
    """Note open gaps if no iteration is left; the gate is always valid."""
    count = len(state.evidence.unaddressed_gaps())
    is_last = state.work.iteration >= state.resolution.limits.max_iterations
    message = Message("gate_open_gaps", gaps=counted("gap", count))
    issues = _issues((count > 0 and is_last, "open_gaps", message))
    return issues, 10.0 - min(10.0, 2.0 * count), {"unaddressed_gaps": count}


def curable_issues(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Return the issues that a retry might resolve; only these cause retries and notes.

    Ordinary sites are never of high quality; a folder with all hits read has no more sources; and pages that were read
    have no more in them because somebody counts: that nothing was found is an answer, and a reader who is asked for
    more findings invents some.
    """
    hopeless = {"too_few_findings", "low_coverage", "no_high_confidence"}
    if state.resolution.web:
        hopeless.add("no_high_quality_source")
    elif len(state.evidence.readable_sources()) == len(state.evidence.fetched_sources()) and not unread_hits(state):
        hopeless.add("too_few_sources")
    return [issue for issue in gate.issues if issue.code not in hopeless]


# --- for a reflecting model ------------------------------------------------------------------------------------------
def gate_needs(phase: Phase, state: ResearchState) -> str:
    """Return the requirements of a gate in words; with one collection, no source or finding is of high quality."""
    if state.resolution.one_collection:
        return GATE_NEEDS[phase].format(good="", high="")
    return GATE_NEEDS[phase].format(good=GOOD_SOURCE, high=SURE_FINDING)


def shown_metrics(state: ResearchState, gate: GateResult) -> dict[str, bool | int | float]:
    """Return the figures of a gate that say something to a model: not how many pages were left, or are cited.

    With one collection, no finding has a high confidence.
    """
    left_out = {"coverage", "not_analyzed"}
    if state.resolution.one_collection:
        left_out.add("high_confidence_count")
    return {name: value for name, value in gate.metrics.items() if name not in left_out}
