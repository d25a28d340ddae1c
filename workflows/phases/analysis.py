"""Analysis: one call per sub-query, in parallel, merged in plan order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.addresses import gap_id
from contracts.evidence import CHOSEN_BY_OPERATOR, Finding, Source
from contracts.notebooks import add_derived_fields
from contracts.plan import OTHER_FORM, PlanNode
from contracts.roles import ANALYZER, AnalyzerResult, QualityUpdate
from contracts.state import ResearchState
from contracts.texts import plural, shorten
from contracts.vocabulary import AgentRole, EngineKind, GapStatus, Phase, Quality
from workflows.phases.role_inputs import analyze_input, sources_to_analyze
from workflows.rules import gaps
from workflows.rules.sub_queries import queries_to_analyze, queries_to_repeat
from workflows.run.calls import explain
from workflows.run.host import abandon
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

QUALITY_STEPS: Final = (Quality.LOW, Quality.MEDIUM, Quality.HIGH)


async def analyze(run: ResearchRun, *, again: bool = False, engine: EngineKind | None = None) -> None:
    """Analyze the sub-queries gathered but not analyzed yet, at most `max_parallel` at a time.

    `again` repeats those of this iteration that failed or found nothing, with the issues of the pause; new results
    replace the old ones. Finished analyses are always merged; `Interrupted` or `asyncio.CancelledError` is raised
    after the merge.
    """
    state = run.state
    queries = queries_to_repeat(state) if again else queries_to_analyze(state)
    issues, turns = run.issues(Phase.ANALYSIS), asyncio.Semaphore(run.resolved.limits.max_parallel)

    async def analyze_one(query: PlanNode) -> AnalyzerResult:
        async with turns:
            return await run.ask(ANALYZER, f"analyze/{query.id}", analyze_input(run, query, issues), engine)

    calls = {query.id: asyncio.ensure_future(analyze_one(query)) for query in queries if sources_to_analyze(run, query)}
    interruption: BaseException | None = None
    try:
        await run.host.settle(list(calls.values()))
    except asyncio.CancelledError as cancelled:
        await abandon(run.host, list(calls.values()))
        interruption = cancelled
    finished = {name: call for name, call in calls.items() if not call.cancelled()}
    with _record_gap_changes(run):
        withdraw(state, [query for query in queries if query.id in finished and not finished[query.id].exception()])
    redo = [name for name in state.hasty_analyses if name not in finished]
    for query in queries:
        call = finished.get(query.id)
        error = call.exception() if call else None
        if isinstance(error, Interrupted):
            interruption = interruption or error
        elif isinstance(error, ActivityError):
            # A failed analysis fails only its branch, not the run.
            run.branch_failed(f"analysis of “{shorten(query.text, 150)}”: {explain(error)}")
            merge(run, query, None)
            redo.append(query.id)
        elif call is None:
            if query.id not in calls:
                merge(run, query, None)
        else:
            output = call.result()
            merge(run, query, output)
            if output.account.engine is not run.resolved.engine:
                redo.append(query.id)
    state.hasty_analyses = redo
    if interruption is not None:
        raise interruption


async def analyze_without_model(run: ResearchRun) -> bool:
    """Analyze the rest without a model as the run ends; return true if any was left. A resumed run repeats it."""
    state = run.state
    waiting = [query.id for query in queries_to_analyze(state)]
    if not waiting:
        return False
    try:
        await analyze(run, engine=EngineKind.EXTRACTIVE)
    except Interrupted:
        run.degrade("not everything that was read could be analyzed in time")
    state.hasty_analyses = list(dict.fromkeys([*state.hasty_analyses, *waiting]))
    return True


# --- earlier results -----------------------------------------------------------------------------------------------
@contextmanager
def _record_gap_changes(run: ResearchRun) -> Iterator[None]:
    """Record the gaps whose status changes during the block."""
    statuses = {gap.id: gap.status for gap in run.state.gaps}
    yield
    for gap in run.state.gaps:
        if statuses.get(gap.id, gap.status) is not gap.status:
            outputs = {"status": gap.status.value} | ({"resolved_by": gap.resolved_by} if gap.resolved_by else {})
            run.decide(AgentRole.ANALYZER, f"gap_{gap.status.value}", gap.description, {"gap_id": gap.id}, outputs)
            kind = "gap.closed" if gap.status is GapStatus.ADDRESSED else "status"
            run.note(kind, f"gap {gap.status.value}: {gap.description}", gap_id=gap.id)


def withdraw(state: ResearchState, queries: list[PlanNode]) -> None:
    """Remove the results of earlier analyses of these sub-queries, except passages still cited elsewhere."""
    names = {query.id for query in queries}
    removed = [finding for finding in state.findings if finding.sub_query_id in names]
    state.findings = [finding for finding in state.findings if finding.sub_query_id not in names]
    cited = {item for finding in state.findings for item in finding.evidence_ids}
    cited.update(state.draft.evidence_ids if state.draft else [])
    unused = {item for finding in removed for item in finding.evidence_ids} - cited
    state.evidence = {name: item for name, item in state.evidence.items() if name not in unused}
    state.gaps = gaps.withdraw_gaps(state.gaps, queries, state.iteration, [finding.id for finding in removed])


# --- new results ---------------------------------------------------------------------------------------------------
def merge(run: ResearchRun, query: PlanNode, output: AnalyzerResult | None, *, in_parts: bool = False) -> None:
    """Merge one analysis: evidence, findings, quality, gaps; `output` is None for a sub-query without one.

    `in_parts` means that other pages of the sub-query are analyzed in other calls.
    """
    state, query = run.state, run.state.plan.newest(query)
    finding_count, fresh = query.finding_count, list[Finding]()
    if output is not None:
        output = add_derived_fields(output, [source.id for source in sources_to_analyze(run, query)])
        finding_count = len(output.findings) + (query.finding_count if in_parts else 0)
        known = {finding.id for finding in state.findings}
        of_query: dict[str, Any] = {"iteration": state.iteration, "sub_query_id": query.id}
        of_query |= {"by_rules": True} if output.account.engine is not run.resolved.engine else {}
        fresh = [finding.model_copy(update=of_query) for finding in output.findings if finding.id not in known]
        state.findings += fresh
        state.note_entry(output.entry)
        state.evidence.update({item.id: item for item in output.evidence})
        if fresh:
            text, data = f"{plural(len(fresh), 'finding')}: {query.text}", {"statement": fresh[0].statement[:200]}
            run.note("finding.added", text, count=len(fresh), sub_query_id=query.id, **data)
        if output.dropped_quotes:
            dropped = plural(output.dropped_quotes, "quote")
            run.note("status", f"{dropped} left out: in no source word for word", level="info")
        for source_id in output.analyzed_source_ids or ():
            if source_id in state.sources:
                state.sources[source_id] = state.sources[source_id].model_copy(update={"analyzed": True})
        for update in output.quality_updates:
            if (source := state.sources.get(update.source_id)) is not None:
                state.sources[source.id] = update_quality(source, update)
    if query.id not in state.analyzed_sub_queries:
        state.analyzed_sub_queries.append(query.id)
    query = query.model_copy(update={"finding_count": finding_count})
    stated = _merge_gaps(run, query, fresh, output, in_parts=in_parts)
    stated = list(dict.fromkeys([*query.stated_gaps, *stated])) if in_parts else stated
    state.plan = state.plan.with_nodes(query.model_copy(update={"stated_gaps": stated}))


def update_quality(source: Source, update: QualityUpdate, by: str = ANALYZER.name) -> Source:
    """Return the source with the quality assigned by a role, at most one step from the rules' label.

    The operator's labels are fixed, and the opinion `unknown` has no effect. Repeated analyses do not accumulate steps.
    A source without a label by rules starts at `medium`.
    """
    if update.quality not in QUALITY_STEPS or source.quality_reason.startswith(CHOSEN_BY_OPERATOR):
        return source
    by_rules = source.found_quality or source.quality
    base = by_rules if by_rules in QUALITY_STEPS else Quality.MEDIUM
    index, opinion = QUALITY_STEPS.index(base), QUALITY_STEPS.index(update.quality)
    highest = QUALITY_STEPS.index(source.best_quality)
    quality = QUALITY_STEPS[max(index - 1, min(index + 1, opinion, highest))]
    reason = f"{by}: {quality.value} (was {by_rules.value})" if quality is not by_rules else ""
    known = source.found_quality if quality is source.quality else by_rules
    return source.model_copy(update={"quality": quality, "quality_reason": reason, "found_quality": known})


def _merge_gaps(
    run: ResearchRun, query: PlanNode, fresh: list[Finding], output: AnalyzerResult | None, *, in_parts: bool
) -> list[str]:
    """Open and close gaps; return the ids of all gaps that this sub-query states, of any origin."""
    state = run.state
    drafts = output.gaps if output else []
    if not (query.finding_count or drafts or query.gap_id or in_parts or query.facet == OTHER_FORM):
        drafts = [gaps.silent_gap(query)]
    state.gaps = gaps.reopen_stated(state.gaps, drafts)
    with _record_gap_changes(run):
        state.gaps = gaps.settle_gaps(state, output.settled_gaps if output else [])
        if query.gap_id and not query.finding_count and not in_parts:
            state.gaps = gaps.give_up_gap(state.gaps, query.gap_id)
        # A follow-up without findings must not reopen its gap in other words; a leaf reports gaps stated by its source.
        may_open = fresh or not query.gap_id or query.source_id is not None
        opened = gaps.open_gaps(state, drafts, f"sub_query:{query.id}") if may_open else []
        state.gaps = gaps.with_gaps(state, opened)
        for gap in opened:
            run.note("gap.opened", f"gap: {gap.description}", gap_id=gap.id)
    known = {gap.id for gap in state.gaps}
    return [identity for identity in map(gap_id, (draft.description for draft in drafts)) if identity in known]
