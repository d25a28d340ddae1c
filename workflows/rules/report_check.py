"""What is wrong with a report by fixed rules, for the gate after it is written and for the outcome: pure."""

from typing import Final

from contracts.outcome import GateIssue
from contracts.state import ResearchState

MIN_REPORT_CHARACTERS: Final = 100


def report_issues(state: ResearchState) -> list[GateIssue]:
    """Why the draft in the state is no good report; empty for one with headings, long enough, whose markers resolve."""
    draft = state.draft
    if draft is None or draft.characters == 0:
        return [GateIssue(code="no_report", message="there is no report")]
    issues = []
    if draft.characters < MIN_REPORT_CHARACTERS:
        message = f"the report has {draft.characters} characters, at least {MIN_REPORT_CHARACTERS}"
        issues.append(GateIssue(code="short_report", message=message))
    if not draft.has_headings:
        issues.append(GateIssue(code="no_sections", message="the report has no section headings"))
    if draft.unresolved_markers:
        message = f"{len(draft.unresolved_markers)} citations named nothing known and were removed"
        issues.append(GateIssue(code="unresolved_citations", message=message))
    if state.findings and not draft.evidence_ids:
        issues.append(GateIssue(code="no_citations", message="the report cites nothing although there are findings"))
    return issues
