"""How much there is of everything. Pure."""

from contracts.outcome import Counts
from contracts.state import ResearchState


def counts_of(state: ResearchState) -> Counts:
    """How much there is of everything right now."""
    cited = {citation.source_id for citation in state.citations}
    return Counts(
        iterations=state.iteration,
        sub_queries=len(state.plan.sub_queries),
        sources=len(state.readable_sources()),
        sources_cited=len(cited),
        duplicates=state.duplicates,
        findings=len(state.findings),
        evidence=len(state.evidence),
        passages_cited=len(set(state.draft.evidence_ids)) if state.draft else 0,
        gaps_open=len(state.unaddressed_gaps()),
        gaps=len(state.gaps),
        documents_searched=state.documents_searched,
    )
