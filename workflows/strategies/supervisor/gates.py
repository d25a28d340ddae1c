"""Gates: the check of each phase against the thresholds of the supervisor's design, and the question about it.

They decide about a retry. Of the outcome only the check of the report is a part.
"""

from typing import Any

from contracts.evidence import Finding, supported_confidence, voice_of
from contracts.outcome import GateIssue, GateResult
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import (
    TOP_CONFIDENCE,
    Confidence,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Phase,
    Quality,
)
from workflows.rules.endings import report_issues

MIN_QUERY_CHARACTERS = 10
MIN_SOURCES = 3
MIN_COMPLETION = 0.5
"""Share of the sub-queries."""
MIN_FINDINGS = 2
MIN_COVERAGE = 0.3
"""Share of the analyzed sources that findings cite."""


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
