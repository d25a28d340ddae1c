"""What agents bring back, put into the state of their run: in task order, and the first of an id wins. Pure."""

from collections.abc import Iterable, Sequence

from contracts.addresses import gap_id
from contracts.agents import AgentFindings, AgentReport, AgentTask, TaskResult, pack_contract
from contracts.evidence import Gap
from contracts.outcome import Counts
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus, NodeStatus, SourceStatus, StopReason
from workflows.rules.gaps import open_gaps, reopen_stated, silent_gap
from workflows.rules.sub_queries import queries_to_analyze

MOST_NOTES = 10
"""Of what failed in one agent: a run keeps the first of them."""


def findings_of_agent(state: ResearchState, result: TaskResult) -> AgentFindings:
    """What an agent of this run had brought back, as it is in the state now."""
    wanted, used = set(result.finding_ids), set(result.source_ids)
    findings = [finding for finding in state.findings if finding.id in wanted]
    passages = {key for finding in findings for key in finding.evidence_ids} | set(result.report.cited)
    return AgentFindings(
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
    harvest = AgentFindings(
        sources=list(state.sources.values()),
        aliases=state.aliases,
        findings=state.findings,
        evidence=list(state.evidence.values()),
        gaps=state.gaps,
        queries=state.query_ledger,
        notebook=state.notebook,
        unanalyzed=bool(queries_to_analyze(state)),
        duplicates=state.duplicates,
        documents_searched=state.documents_searched,
        term_documents=state.term_documents,
        spellings=state.spellings,
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


def merge_agent(state: ResearchState, task: AgentTask, result: TaskResult) -> list[str]:
    """Take over what an agent brought back; ids of passages that were dropped because another one has their id.

    Everything that it found belongs to the node of its task; what it searched for stands in the list of queries.
    """
    found, node = result.findings(), task.plan_node
    clashing = {
        item.id
        for item in found.evidence
        if (known := state.evidence.get(item.id))
        and (known.source_id, known.start, known.end) != (item.source_id, item.start, item.end)
    }
    state.evidence = {item.id: item for item in found.evidence if item.id not in clashing} | state.evidence
    findings = {finding.id for finding in state.findings}
    mine = {"sub_query_id": node, "iteration": state.iteration}
    state.findings = state.findings + [
        finding.model_copy(update=mine)
        for finding in found.findings
        if finding.id not in findings and clashing.isdisjoint(finding.evidence_ids)
    ]
    if not result.is_stub:
        state.gaps = _merge_gaps(state, found, node)
    new = _merge_sources(state, found, node)
    _merge_node(state, task, result, found, new)
    of_agent = {"sub_query_id": node, "iteration": state.iteration}
    state.query_ledger = [*state.query_ledger, *(record.model_copy(update=of_agent) for record in found.queries)]
    for entry in found.notebook:
        state.note_entry(entry)
    state.duplicates += found.duplicates
    if found.documents_searched is not None:
        state.documents_searched = found.documents_searched
    state.term_documents = {**found.term_documents, **state.term_documents}
    state.spellings = {**found.spellings, **state.spellings}
    state.lost_providers = {**found.lost_providers, **state.lost_providers}
    state.engine_by_role = {**state.engine_by_role, **result.engine_by_role}
    state.prompt_versions = {**state.prompt_versions, **result.prompt_versions}
    state.models_used = _union(state.models_used, result.models_used)
    state.degraded = _union(state.degraded, _told(task, result.degraded))
    state.failed_branches = _union(state.failed_branches, _told(task, result.failed_branches))
    return sorted(clashing)


def _merge_gaps(state: ResearchState, found: AgentFindings, node: str) -> list[Gap]:
    """The gaps of the run with those of the agent: a task that was given again takes back what it had left open."""
    origin, stated = f"sub_query:{node}", {gap.id for gap in found.gaps}
    of_node = {"origin": origin, "iteration": state.iteration}
    gaps = {gap.id: gap for gap in state.gaps}
    for gap in state.gaps:
        if gap.origin == origin and gap.status is GapStatus.OPEN and gap.id not in stated:
            gaps[gap.id] = gap.model_copy(update={"status": GapStatus.SUPERSEDED})
    for gap in found.gaps:
        known = gaps.get(gap.id)
        if known is None or (known.origin == origin and known.status is GapStatus.SUPERSEDED):
            gaps[gap.id] = gap.model_copy(update=of_node)
    return list(gaps.values())


def _merge_node(state: ResearchState, task: AgentTask, result: TaskResult, found: AgentFindings, new: int) -> None:
    """The node of the task, with what became of it; what was read and not analyzed is analyzed when the run ends."""
    node = next((node for node in state.plan.nodes if node.id == task.plan_node), None)
    if node is None:
        return
    stated = [*node.stated_gaps] if result.is_stub else [*result.gap_ids]
    if not result.finding_ids and not stated and not result.is_stub:
        # Who was cut short says nothing about what is to be found.
        cut_short = {"status": NodeStatus.SKIPPED, "status_reason": result.problem} if result.problem else {}
        silent = silent_gap(node.model_copy(update=cut_short))
        state.gaps = reopen_stated(state.gaps, [silent])
        state.gaps = [*state.gaps, *open_gaps(state, [silent], f"sub_query:{node.id}")]
        stated = [gap_id(silent.description)]
    update = {
        "status": NodeStatus.FAILED if result.is_stub else NodeStatus.COMPLETED,
        "error": result.problem if result.is_stub else None,
        "finding_count": len(_union(_findings_of(state, node), result.finding_ids)),
        "result_count": node.result_count + sum(record.found for record in found.queries),
        "new_source_count": node.new_source_count + new,
        "duplicate_count": node.duplicate_count + found.duplicates,
        "stated_gaps": stated,
    }
    state.plan = state.plan.with_nodes(node.model_copy(update=update))
    if not found.unanalyzed:
        state.analyzed_sub_queries = _union(state.analyzed_sub_queries, [node.id])


def _findings_of(state: ResearchState, node: PlanNode) -> list[str]:
    return [finding.id for finding in state.findings if finding.sub_query_id == node.id]


def _merge_sources(state: ResearchState, found: AgentFindings, node: str) -> int:
    """Sources with the node among those that found them; how many the run could not read before."""
    sources, new = dict(state.sources), 0
    for source in found.sources:
        known, readable = sources.get(source.id), source.status is SourceStatus.FULL
        if known is None or (readable and known.status is not SourceStatus.FULL):
            owners = [*(known.sub_query_ids if known else []), node]
            update: dict[str, object] = {"iteration": state.iteration, "sub_query_ids": _union(owners, [])}
            sources[source.id] = source.model_copy(update=update)
            new += readable
        else:
            update = {
                "sub_query_ids": _union(known.sub_query_ids, [node]),
                "hit_entries": _union(known.hit_entries, source.hit_entries),
                "analyzed": known.analyzed or source.analyzed,
            }
            sources[source.id] = known.model_copy(update=update)
    state.sources = sources
    state.aliases = {**found.aliases, **state.aliases}
    return new


def _told(task: AgentTask, notes: Sequence[str]) -> list[str]:
    return [f"{task.id}: {note}"[:300] for note in notes[:MOST_NOTES]]


def _union(first: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*first, *other]))
