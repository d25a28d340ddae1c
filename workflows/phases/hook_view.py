"""What a hook is shown of a run: small, whatever the size of the run. Pure."""

from typing import Any, Final

from contracts.evidence import Finding, Gap, Source
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus
from workflows.phases.counts import counts_of

MOST_SUB_QUERIES: Final = 20
MOST_SOURCES: Final = 20
MOST_FINDINGS: Final = 20
MOST_GAPS: Final = 10
MOST_GATES: Final = 5
MOST_DECISIONS: Final = 10
RESOLVED: Final = {"research_id", "tenant", "language", "strategy", "depth", "engine", "models", "limits", "gates"}
LONGEST: Final = 200
"""Characters of a text."""


def hook_view(state: ResearchState) -> dict[str, Any]:
    """The state as a hook sees it: the newest of everything, in short, and how much there is in all."""
    resolved = state.resolved
    gaps = sorted(state.gaps, key=lambda gap: gap.status is not GapStatus.OPEN)[:MOST_GAPS]
    return {
        "resolved": {
            **resolved.model_dump(mode="json", include=RESOLVED),
            "query": _short(resolved.query, 10 * LONGEST),
        }
        if resolved
        else None,
        "status": state.status.value,
        "phase": state.phase,
        "iteration": state.iteration,
        "plan": {
            "brief": _short(state.plan.brief, 5 * LONGEST),
            "sub_queries": [_sub_query(query) for query in state.plan.sub_queries[-MOST_SUB_QUERIES:]],
        },
        "sources": {source.id: _source(source) for source in list(state.sources.values())[-MOST_SOURCES:]},
        "findings": [_finding(finding) for finding in state.findings[-MOST_FINDINGS:]],
        "gaps": [_gap(gap) for gap in gaps],
        "gates": [
            {
                "phase": gate.phase,
                "valid": gate.valid,
                "quality_score": gate.quality_score,
                "issues": [_short(issue.message) for issue in gate.issues],
                "metrics": gate.metrics,
            }
            for gate in state.gates[-MOST_GATES:]
        ],
        "decisions": [
            {
                "agent": decision.agent,
                "action": decision.action,
                "phase": decision.phase,
                "iteration": decision.iteration,
                "rationale": _short(decision.rationale),
            }
            for decision in state.decisions[-MOST_DECISIONS:]
        ],
        "guidance": [{"origin": item.origin, "text": _short(item.text)} for item in state.guidance],
        "usage": state.usage.model_dump(mode="json"),
        "counts": counts_of(state).model_dump(mode="json"),
    }


def _sub_query(query: PlanNode) -> dict[str, Any]:
    return {
        "id": query.id,
        "text": _short(query.text),
        "origin": query.origin,
        "iteration": query.iteration,
        "status": query.status.value,
        "result_count": query.result_count,
        "new_source_count": query.new_source_count,
        "finding_count": query.finding_count,
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "url": _short(source.url),
        "title": _short(source.title),
        "status": source.status.value,
        "status_reason": _short(source.status_reason),
        "quality": source.quality.value,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "statement": _short(finding.statement),
        "confidence": finding.confidence.value,
        "source_ids": finding.source_ids[:3],
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "id": gap.id,
        "description": _short(gap.description),
        "status": gap.status.value,
        "severity": gap.severity.value,
    }


def _short(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
