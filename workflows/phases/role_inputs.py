"""Requests to roles: projections of the state, so that no role gets all of it."""

from collections.abc import Collection, Sequence
from typing import Final

from contracts.answer_sizes import findings_of_text
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, MAX_SOURCES
from contracts.evidence import Finding, Gap, Source
from contracts.outcome import GateIssue
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput, SourceExtract, WriteInput
from contracts.state import ResearchState
from contracts.strategies import declaration
from contracts.vocabulary import GapStatus, NodeStatus
from workflows.rules.duplicates import protected_ids
from workflows.rules.gaps import SEVERITY_ORDER, is_fruitless
from workflows.run.research_run import ResearchRun

MAX_GAPS_TO_ANSWER: Final = 15
"""Open gaps listed for one analysis."""


def to_extract(source: Source, *, to_search: bool = True, again: bool = False) -> SourceExtract:
    """Return a source for a role: a reference to its text and, for a role that searches it, the matching parts."""
    return SourceExtract(
        id=source.id,
        url=source.url,
        title=source.title,
        publisher=source.publisher,
        quality=source.quality,
        text=source.text,
        entry=source.entry,
        abstract_only=source.abstract_only,
        hit_entries=source.hit_entries if to_search else [],
        changed=source.found_quality is not None,
        again=again,
    )


def sources_to_analyze(run: ResearchRun, query: PlanNode) -> list[Source]:
    """Return the sources to analyze for a sub-query: those it owns first, best ranks first (see `limit_sources`)."""
    sources = [source for source in run.state.evidence.readable_sources() if query.id in source.sub_query_ids]
    sources.sort(key=lambda source: (source.sub_query_ids.index(query.id) > 0, source.rank, source.id))
    return limit_sources(run.state, sources)


MAX_PAGES_NAMED: Final = 40
"""Titles of pages that a reader is told of, the latest ones: of one iteration's pages each."""


MAX_NOTES_SHOWN: Final = 30
"""Notes of earlier readings that another reading of the same pages is shown, the newest."""


def limit_sources(state: ResearchState, sources: list[Source]) -> list[Source]:
    """Return the sources of one analysis: all protected ones, then others up to `MAX_SOURCES` in total."""
    protected = set(protected_ids(state).values())
    limit = max(MAX_SOURCES, sum(source.id in protected for source in sources))
    return sorted(sources, key=lambda source: source.id not in protected)[:limit]


def reading_input(
    run: ResearchRun,
    queries: Sequence[PlanNode],
    sources: Sequence[Source],
    issues: list[GateIssue],
    known: Collection[str] = (),
) -> AnalyzeInput:
    """Return the analyzer's request for some sources and all sub-queries that they may answer.

    `known` are the ids of those that an analysis for other sub-queries has read; what was found there is listed.
    """
    state = run.state
    asked_ids = {query.id for query in queries}
    found = [finding for finding in state.evidence.findings if finding.sub_query_id not in asked_ids]
    asked = [
        PlanNode(
            id=query.id,
            text=query.text,
            origin=query.origin,
            facet=query.facet,
            expected_contribution=query.expected_contribution,
            priority=query.priority,
        )
        for query in queries
    ]
    return AnalyzeInput(
        brief=state.work.plan.brief,
        sub_query=asked[0],
        sub_queries=asked if len(asked) > 1 else [],
        sources=[to_extract(source, again=source.id in known) for source in sources],
        gaps=gaps_to_answer(state.evidence.gaps, [query.gap_id for query in queries]),
        source_count=len(state.evidence.readable_sources()),
        high_quality_sources=len(state.evidence.high_quality_sources()),
        pages_read=[source.title or source.url for source in state.evidence.readable_sources()][-MAX_PAGES_NAMED:],
        max_findings=FINDINGS_PER_SUB_QUERY,
        found=notes_on(found, known),
        documents_searched=state.evidence.documents_searched,
        term_documents=state.evidence.term_documents,
        issues=issues,
    )


def notes_on(findings: Sequence[Finding], source_ids: Collection[str]) -> list[str]:
    """Return what a model found in these sources, the newest statements, so that another reading adds to them."""
    notes = [
        finding.statement
        for finding in findings
        if not finding.by_rules and not set(source_ids).isdisjoint(finding.source_ids)
    ]
    return notes[-MAX_NOTES_SHOWN:]


def gaps_to_answer(gaps: Sequence[Gap], first: Collection[str | None] = ()) -> list[Gap]:
    """Return the open gaps that an analysis may answer: those it was made for first, then the most severe, latest ones.

    Only what a reader needs is included.
    """
    still_open = [gap for gap in gaps if gap.status is GapStatus.OPEN]
    order = sorted(
        range(len(still_open)),
        key=lambda index: (still_open[index].id in first, SEVERITY_ORDER[still_open[index].severity], index),
        reverse=True,
    )
    chosen = [still_open[index] for index in sorted(order[:MAX_GAPS_TO_ANSWER])]
    return [Gap(id=gap.id, description=gap.description, suggested_queries=gap.suggested_queries) for gap in chosen]


MAX_ITEMS: Final = 12
CHARACTERS_PER_ITEM: Final = 150
"""Of a list whose items are a finding each, such as restrictions with their reasons."""


def findings_of_page(source: Source) -> int:
    """Return the most findings that a model may make of one page that it reads for one purpose: more of a long one.

    A short page may be a list of which each item is one.
    """
    size = source.text.size if source.text else 0
    items = min(MAX_ITEMS, size // CHARACTERS_PER_ITEM)
    return max(FINDINGS_PER_SUB_QUERY, items, findings_of_text(size))


def findings_to_report(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that may enter a report: none of rules in a model's place, unless there are no others.

    Rules pick passages that match words, mostly after a limit was reached; a model's report would lend them its weight.
    """
    return [finding for finding in findings if not finding.by_rules] or list(findings)


def _gap_to_write(state: ResearchState, gap: Gap) -> Gap:
    """Return a gap as a writer needs it; one on which all pages read are silent is marked as looked for."""
    shown = gap.with_fields(suggested_queries=[], origin="analysis")
    pages = [source for source in state.evidence.readable_sources() if source.analyzed]
    if gap.status is GapStatus.OPEN and is_fruitless(state, gap.id, pages):
        return shown.with_fields(status=GapStatus.UNADDRESSABLE)
    return shown


def write_input(run: ResearchRun, issues: list[GateIssue], cut_short: str | None = None) -> WriteInput:
    """Return the request to the synthesizer; `cut_short` is the stop reason of a run that ends early."""
    state = run.state
    findings = findings_to_report(state.evidence.findings)
    shown = {key for finding in findings for key in finding.evidence_ids}
    left_out = {key for finding in state.evidence.findings for key in finding.evidence_ids} - shown
    cited = {source_id for finding in findings for source_id in finding.source_ids}
    # A writer is given the steps that were worked on, as the parts of the answer.
    steps = [step for step in state.work.plan.steps if step.status is not NodeStatus.SKIPPED]
    brief = [state.work.plan.brief, *(f"{number}. {step.text}" for number, step in enumerate(steps, start=1))]
    return WriteInput(
        caller=declaration(run.resolved.strategy).caller,
        brief="\n".join(brief).strip(),
        sub_queries=[
            PlanNode(id=query.id, text=query.text, facet=query.facet, iteration=query.iteration)
            for query in state.work.plan.sub_queries
        ],
        findings=findings,
        # A writer needs the offsets of passages, not their hashes.
        evidence=[
            item.with_fields(quote_hash="") for key, item in state.evidence.passages.items() if key not in left_out
        ],
        sources=[
            to_extract(source, to_search=False) for source in state.evidence.readable_sources() if source.id in cited
        ],
        gaps=[_gap_to_write(state, gap) for gap in state.evidence.gaps],
        source_count=len(state.evidence.readable_sources()),
        high_quality_sources=len(state.evidence.high_quality_sources()),
        improvements=state.evidence.report_improvements,
        target_words=run.resolved.output.target_words,
        documents_searched=state.evidence.documents_searched,
        term_documents=state.evidence.term_documents,
        spellings=state.evidence.spellings,
        cut_short=cut_short,
        issues=issues,
    )
