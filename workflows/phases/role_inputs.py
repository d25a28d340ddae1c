"""What each role is shown of the state: projections, so that nobody gets the whole of it."""

from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, MOST_SOURCES
from contracts.evidence import Source
from contracts.outcome import GateIssue
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput, RefineInput, SourceExtract, WriteInput
from contracts.state import ResearchState
from contracts.vocabulary import TOP_CONFIDENCE, NodeKind, Quality
from workflows.run.research_run import ResearchRun


def extract_of(source: Source, *, to_search: bool = True) -> SourceExtract:
    """A source for a role: reference to its text and, for one that searches it, where to look first."""
    return SourceExtract(
        id=source.id,
        url=source.url,
        title=source.title,
        publisher=source.publisher,
        snippet=source.snippet if to_search else "",
        quality=source.quality,
        text=source.text,
        sections=source.sections if to_search else [],
        entry=source.entry,
        hit_entries=source.hit_entries if to_search else [],
        changed=source.found_quality is not None,
    )


def sources_of(run: ResearchRun, query: PlanNode) -> list[Source]:
    """Readable sources that a sub-query found, in its order of merit, at most twenty."""
    found = [source for source in run.state.readable_sources() if query.id in source.sub_query_ids]
    return sorted(found, key=lambda source: (source.sub_query_ids.index(query.id) > 0, source.rank, source.id))[
        :MOST_SOURCES
    ]


def analyze_input(run: ResearchRun, query: PlanNode, issues: list[GateIssue]) -> AnalyzeInput:
    """Hand-off to the analyzer."""
    state = run.state
    return AnalyzeInput(
        brief=state.plan.brief,
        sub_query=PlanNode(
            id=query.id,
            text=query.text,
            origin=query.origin,
            facet=query.facet,
            expected_contribution=query.expected_contribution,
            priority=query.priority,
        ),
        sources=[extract_of(source) for source in sources_of(run, query)],
        source_count=len(state.readable_sources()),
        high_quality_sources=len(state.high_quality_sources()),
        max_findings=FINDINGS_PER_SUB_QUERY,
        documents_searched=state.documents_searched,
        term_documents=state.term_documents,
        issues=issues,
    )


def write_input(run: ResearchRun, issues: list[GateIssue], cut_short: str | None = None) -> WriteInput:
    """Hand-off to the synthesizer."""
    state = run.state
    cited = {source_id for finding in state.findings for source_id in finding.source_ids}
    return WriteInput(
        brief=_brief(state),
        sub_queries=[PlanNode(id=query.id, text=query.text, facet=query.facet) for query in state.plan.sub_queries],
        findings=state.findings,
        # A writer needs the places of passages, not their hashes: the audit has those from the session.
        evidence=[item.model_copy(update={"quote_hash": ""}) for item in state.evidence.values()],
        sources=[extract_of(source, to_search=False) for source in state.readable_sources() if source.id in cited],
        gaps=[gap.model_copy(update={"suggested_queries": [], "origin": "analysis"}) for gap in state.gaps],
        source_count=len(state.readable_sources()),
        high_quality_sources=sum(source.quality is Quality.HIGH for source in state.readable_sources()),
        improvements=state.report_improvements,
        target_words=run.resolved.target_words,
        corpus=run.resolved.corpus,
        documents_searched=state.documents_searched,
        term_documents=state.term_documents,
        spellings=state.spellings,
        cut_short=cut_short,
        issues=issues,
    )


def _brief(state: ResearchState) -> str:
    """What the report is to follow: where agents worked on tasks, the plan that these came from, too."""
    tasks = {node.parent for node in state.plan.nodes if node.kind is NodeKind.TASK}
    steps = [node.text for node in state.plan.nodes if node.kind is NodeKind.STEP] if tasks else []
    told = [f"{number}. {text}" for number, text in enumerate(steps, start=1)]
    return "\n".join([state.plan.brief, *told]).strip() if told else state.plan.brief


def refine_input(run: ResearchRun) -> RefineInput:
    """Hand-off to the refiner: gaps as objects with ids."""
    state = run.state
    return RefineInput(
        gaps=state.unaddressed_gaps(),
        remaining_iterations=run.resolved.limits.max_iterations - state.iteration,
        draft=state.draft.document if state.draft else None,
        source_count=len(state.readable_sources()),
        finding_count=len(state.findings),
        high_confidence_count=sum(finding.confidence in TOP_CONFIDENCE for finding in state.findings),
        asked=[query.text for query in state.plan.sub_queries],
        term_documents=state.term_documents,
    )
