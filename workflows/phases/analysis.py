"""Analysis: one call per sub-query, all at once, merged in plan order."""

import asyncio

from temporalio.exceptions import ActivityError

from contracts.addresses import gap_id
from contracts.evidence import Evidence, Finding
from contracts.notebooks import with_what_follows
from contracts.outcome import GateIssue
from contracts.plan import OTHER_FORM, PlanNode
from contracts.roles import ANALYZER, AnalyzerResult
from contracts.state import ResearchState
from contracts.texts import plural, shorten
from contracts.vocabulary import AgentRole, EngineKind, GapStatus, Phase
from workflows.phases.role_inputs import analyze_input, sources_of
from workflows.rules import gaps
from workflows.rules.source_quality import update_quality
from workflows.rules.sub_queries import queries_to_analyze
from workflows.run.call_errors import reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun


async def analyze(run: ResearchRun, *, again: bool = False, engine: EngineKind | None = None) -> None:
    """Analyze what was gathered and not analyzed yet, so many sub-queries at a time as `max_parallel` allows.

    `again` repeats the iteration's sub-queries with the pause's issues; what they give replaces what they gave.
    What was finished is merged whatever happens. Raises `Interrupted` or `asyncio.CancelledError` after the merge.
    """
    state = run.state
    repeated = [query for query in state.plan.sub_queries if query.iteration == state.iteration]
    queries = repeated if again else queries_to_analyze(state)
    issues = run.issues(Phase.ANALYSIS)
    turns = asyncio.Semaphore(run.resolved.limits.max_parallel)
    work = {
        query.id: asyncio.ensure_future(_analyze_one(run, query, issues, engine, turns))
        for query in queries
        if sources_of(run, query)
    }
    interruption: Interrupted | asyncio.CancelledError | None = None
    try:
        await run.host.settle(list(work.values()))
    except asyncio.CancelledError as cancelled:
        await run.abandon(list(work.values()))
        interruption = cancelled
    answered = [
        query for query in queries if (task := work.get(query.id)) and not task.cancelled() and task.exception() is None
    ]
    before = {gap.id: gap.status for gap in state.gaps}
    withdraw(state, answered)
    for query in queries:
        task = work.get(query.id)
        if task is None:
            merge(run, query, None)
        elif not task.cancelled() and isinstance(task.exception(), Interrupted):
            interruption = interruption or task.exception()  # type: ignore[assignment]
        elif not task.cancelled():
            merge(run, query, _output_of(run, query, task))
    for gap in state.gaps:
        if gap.status is GapStatus.SUPERSEDED and before.get(gap.id, gap.status) is not gap.status:
            outputs = {"status": gap.status.value}
            run.decide(AgentRole.ANALYZER, "gap_superseded", gap.description, {"gap_id": gap.id}, outputs)
    if interruption is not None:
        raise interruption


async def analyze_hastily(run: ResearchRun) -> None:
    """Analyze without a model what was read and not analyzed, because the run ends: a resumed run does it again."""
    state = run.state
    waiting = [query.id for query in queries_to_analyze(state)]
    if not waiting:
        return
    try:
        await analyze(run, engine=EngineKind.EXTRACTIVE)
    except Interrupted:
        run.degrade("not everything that was read could be analyzed in time")
    state.hasty_analyses = waiting


def _output_of(run: ResearchRun, query: PlanNode, task: "asyncio.Task[AnalyzerResult]") -> AnalyzerResult | None:
    """The output of one analysis; one that failed for good costs its own branch, not the run."""
    error = task.exception()
    if isinstance(error, ActivityError):
        run.branch_failed(f"analysis of “{shorten(query.text, 150)}”: {reason_of(error)}")
        return None
    return task.result()


async def _analyze_one(
    run: ResearchRun, query: PlanNode, issues: list[GateIssue], engine: EngineKind | None, turns: asyncio.Semaphore
) -> AnalyzerResult:
    async with turns:
        return await run.ask(ANALYZER, f"analyze/{query.id}", analyze_input(run, query, issues), engine)


def withdraw(state: ResearchState, queries: list[PlanNode]) -> None:
    """Take back what earlier analyses of these sub-queries gave, but for passages that others or the draft rest on."""
    names = {query.id for query in queries}
    gone = [finding for finding in state.findings if finding.sub_query_id in names]
    state.findings = [finding for finding in state.findings if finding.sub_query_id not in names]
    kept = {item for finding in state.findings for item in finding.evidence_ids}
    kept.update(state.draft.evidence_ids if state.draft else [])
    unused = {item for finding in gone for item in finding.evidence_ids} - kept
    state.evidence = {name: item for name, item in state.evidence.items() if name not in unused}
    state.gaps = gaps.withdrawn(state.gaps, queries, state.iteration)


def merge(run: ResearchRun, query: PlanNode, output: AnalyzerResult | None) -> None:
    """Take over one analysis: evidence, findings, quality, gaps. Ids of unknown things were dropped before."""
    state = run.state
    if output is not None:
        output = with_what_follows(output, [source.id for source in sources_of(run, query)])
    doubtful = clashing(state, output.evidence) if output else set()
    findings = [one for one in output.findings if doubtful.isdisjoint(one.evidence_ids)] if output else []
    fresh: list[Finding] = []
    if output:
        state.note_entry(output.entry)
        state.evidence.update({item.id: item for item in output.evidence if item.id not in doubtful})
        known = {finding.id for finding in state.findings}
        fresh = [
            finding.model_copy(update={"iteration": state.iteration, "sub_query_id": query.id})
            for finding in findings
            if finding.id not in known
        ]
        state.findings += fresh
        _assess_sources(run, output)
        if fresh:
            run.note(
                "finding.added",
                f"{plural(len(fresh), 'finding')}: {query.text}",
                count=len(fresh),
                sub_query_id=query.id,
                statement=fresh[0].statement[:200],
            )
        if doubtful:
            run.note(
                "status",
                f"{plural(len(doubtful), 'passage')} dropped: another passage has the same id",
                level="warning",
            )
        if output.dropped_quotes:
            run.note("status", f"{output.dropped_quotes} quotes stood in no source and were dropped", level="warning")
    if query.id not in state.analyzed_sub_queries:
        state.analyzed_sub_queries.append(query.id)
    counted = query.model_copy(update={"finding_count": len(findings) if output else query.finding_count})
    stated = _merge_gaps(run, counted, fresh, output)
    merged = counted.model_copy(update={"stated_gaps": stated})
    state.plan = state.plan.with_nodes(merged)


def clashing(state: ResearchState, fresh: list[Evidence]) -> set[str]:
    """Ids under which another passage is known already: an id must never hide what stands behind it."""
    return {
        item.id
        for item in fresh
        if (known := state.evidence.get(item.id))
        and (known.source_id, known.start, known.end) != (item.source_id, item.start, item.end)
    }


def _assess_sources(run: ResearchRun, output: AnalyzerResult) -> None:
    state = run.state
    for source_id in output.analyzed_source_ids or ():
        if source_id in state.sources:
            state.sources[source_id] = state.sources[source_id].model_copy(update={"analyzed": True})
    for update in output.quality_updates:
        source = state.sources.get(update.source_id)
        if source is not None:
            state.sources[source.id] = update_quality(source, update)


def _merge_gaps(run: ResearchRun, query: PlanNode, fresh: list[Finding], output: AnalyzerResult | None) -> list[str]:
    """Open and close gaps; the ids of those that state what this sub-query lacks, whoever opened them."""
    state = run.state
    drafts = output.gaps if output else []
    if not query.finding_count and not drafts and not query.gap_id and query.facet != OTHER_FORM:
        drafts = [gaps.silent_gap(query)]
    state.gaps = gaps.reopen_stated(state.gaps, drafts)
    before = {gap.id: gap.status for gap in state.gaps}
    if query.gap_id:
        state.gaps = gaps.after_analysis(state.gaps, [query], fresh)
    # A follow-up that found nothing does not open the same hole under another name.
    opened = gaps.open_gaps(state, drafts, f"sub_query:{query.id}") if fresh or not query.gap_id else []
    state.gaps = [*state.gaps, *opened]
    for gap in opened:
        run.note("gap.opened", f"gap: {gap.description}", gap_id=gap.id)
    for gap in state.gaps:
        if gap.id in before and before[gap.id] is not gap.status:
            resolved_by = {"resolved_by": gap.resolved_by} if gap.resolved_by else {}
            outputs = {"status": gap.status.value, **resolved_by}
            run.decide(AgentRole.ANALYZER, f"gap_{gap.status.value}", gap.description, {"gap_id": gap.id}, outputs)
            kind = "gap.closed" if gap.status is GapStatus.ADDRESSED else "status"
            run.note(kind, f"gap {gap.status.value}: {gap.description}", gap_id=gap.id)
    known = {gap.id for gap in state.gaps}
    return [identity for identity in map(gap_id, (draft.description for draft in drafts)) if identity in known]
