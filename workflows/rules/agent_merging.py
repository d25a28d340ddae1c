"""What agents bring back, put into the state of their run: in the order of their tasks, the first of an id wins. Pure."""

from collections.abc import Iterable

from contracts.agents import AgentReport, Harvest, TaskResult, pack_contract
from contracts.outcome import Counts
from contracts.state import ResearchState
from contracts.vocabulary import StopReason

MOST_NOTES = 10
"""Of what failed in one agent: a run keeps the first of them."""


def harvest_of(state: ResearchState, result: TaskResult) -> Harvest:
    """What an agent of this run had brought back, as it is in the state now."""
    wanted, used = set(result.finding_ids), set(result.source_ids)
    findings = [finding for finding in state.findings if finding.id in wanted]
    passages = {key for finding in findings for key in finding.evidence_ids} | set(result.report.cited)
    return Harvest(
        sources=[source for source in state.sources.values() if source.id in used],
        aliases={url: name for url, name in state.aliases.items() if name in used},
        findings=findings,
        evidence=[item for item in state.evidence.values() if item.id in passages],
        gaps=[gap for gap in state.gaps if gap.id in set(result.gap_ids)],
    )


def task_result(
    state: ResearchState, counts: Counts, reason: StopReason, report: AgentReport, problem: str = ""
) -> TaskResult:
    """What an agent brings back: everything that its own state holds."""
    resolved = state.resolved
    harvest = Harvest(
        nodes=state.plan.nodes,
        sources=list(state.sources.values()),
        aliases=state.aliases,
        findings=state.findings,
        evidence=list(state.evidence.values()),
        gaps=state.gaps,
        queries=state.query_ledger,
        notebook=state.notebook,
        analyzed=state.analyzed_sub_queries,
        duplicates=state.duplicates,
        documents_searched=state.documents_searched,
        term_documents=state.term_documents,
        lost_providers=state.lost_providers,
    )
    return TaskResult(
        agent_id=state.scope,
        task=resolved.query if resolved else "",
        stop_reason=reason,
        problem=problem,
        report=report,
        finding_ids=[finding.id for finding in state.findings],
        source_ids=[source.id for source in state.readable_sources()],
        gap_ids=[gap.id for gap in state.unaddressed_gaps()],
        counts=counts,
        usage=state.usage.model_copy(update={"active_seconds": 0.0}),
        usage_by_role=state.usage_by_role,
        engine_by_role=state.engine_by_role,
        models_used=state.models_used,
        prompt_versions=state.prompt_versions,
        degraded=state.degraded,
        failed_branches=state.failed_branches,
        packed=pack_contract(harvest),
    )


def merge_agent(state: ResearchState, result: TaskResult) -> list[str]:
    """Take over what an agent brought back; ids of passages that were dropped because another one has their id."""
    found, task = result.harvest(), result.agent_id
    _merge_nodes(state, found, task)
    _merge_sources(state, found)
    clashing = {
        item.id
        for item in found.evidence
        if (known := state.evidence.get(item.id))
        and (known.source_id, known.start, known.end) != (item.source_id, item.start, item.end)
    }
    state.evidence = {item.id: item for item in found.evidence if item.id not in clashing} | state.evidence
    known = {finding.id for finding in state.findings}
    state.findings = state.findings + [
        finding.model_copy(update={"iteration": state.iteration})
        for finding in found.findings
        if finding.id not in known and clashing.isdisjoint(finding.evidence_ids)
    ]
    gaps = {gap.id for gap in state.gaps}
    state.gaps = [*state.gaps, *(gap for gap in found.gaps if gap.id not in gaps)]
    state.query_ledger = [*state.query_ledger, *found.queries]
    state.analyzed_sub_queries = _union(state.analyzed_sub_queries, found.analyzed)
    for entry in found.notebook:
        state.note_entry(entry)
    state.duplicates += found.duplicates
    state.documents_searched = (
        state.documents_searched if found.documents_searched is None else found.documents_searched
    )
    state.term_documents = {**found.term_documents, **state.term_documents}
    state.lost_providers = {**found.lost_providers, **state.lost_providers}
    state.engine_by_role = {**state.engine_by_role, **result.engine_by_role}
    state.prompt_versions = {**state.prompt_versions, **result.prompt_versions}
    state.models_used = _union(state.models_used, result.models_used)
    state.degraded = _union(state.degraded, (f"{task}: {note}"[:300] for note in result.degraded[:MOST_NOTES]))
    failed = (f"{task}: {note}"[:300] for note in result.failed_branches[:MOST_NOTES])
    state.failed_branches = _union(state.failed_branches, failed)
    return sorted(clashing)


def _merge_nodes(state: ResearchState, found: Harvest, task: str) -> None:
    """What the agent searched for stands below its task, where the plan has that."""
    known = {node.id: node for node in state.plan.nodes}
    root = known.get(task)
    fresh = [
        node.model_copy(
            update={
                "parent": node.parent or (root.id if root else None),
                "depth": node.depth + (root.depth + 1 if root else 0),
                "iteration": state.iteration,
            }
        )
        for node in found.nodes
        if node.id not in known
    ]
    state.plan = state.plan.with_nodes(*fresh)


def _merge_sources(state: ResearchState, found: Harvest) -> None:
    sources = dict(state.sources)
    for source in found.sources:
        known = sources.get(source.id)
        if known is None or (known.text is None and source.text is not None):
            sources[source.id] = source.model_copy(update={"iteration": state.iteration})
        else:
            update = {
                "sub_query_ids": _union(known.sub_query_ids, source.sub_query_ids),
                "hit_entries": _union(known.hit_entries, source.hit_entries),
                "analyzed": known.analyzed or source.analyzed,
            }
            sources[source.id] = known.model_copy(update=update)
    state.sources = sources
    state.aliases = {**found.aliases, **state.aliases}


def _union(first: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*first, *other]))
