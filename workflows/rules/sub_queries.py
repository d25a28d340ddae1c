"""From what planner and refiner propose to sub-queries with ids."""

from collections.abc import Iterable, Sequence
from typing import Final

from contracts.addresses import sub_query_id
from contracts.evidence import Candidate
from contracts.plan import PlanNode
from contracts.resolved import EffectiveLimits
from contracts.roles import GapAssessment, SubQuery
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus, NodeStatus
from workflows.rules.duplicates import Identities
from workflows.rules.query_matching import asked_before, drop_repeated

ENOUGH: Final = "what was found answers the question, as was judged after an earlier step"
"""Why a step is skipped that nothing is lost by: the one reason to skip that leaves no question open."""


def plan_sub_queries(drafts: Sequence[SubQuery], iteration: int, limit: int) -> list[PlanNode]:
    """At most `limit` distinct sub-queries, most important first, in the planner's order otherwise."""
    ordered = sorted(drafts, key=lambda draft: draft.priority)
    queries: dict[str, PlanNode] = {}
    for draft in ordered:
        text = draft.query.strip()[:500]
        identity = sub_query_id(text)
        if drop_repeated([text], [query.text for query in queries.values()]):
            queries[identity] = PlanNode(
                id=identity,
                text=text,
                rationale=draft.rationale[:300],
                priority=max(1, draft.priority),
                facet=draft.facet[:60],
                iteration=iteration,
            )
    return list(queries.values())[:limit]


def follow_ups(
    state: ResearchState, assessments: Iterable[GapAssessment], priority_gaps: Sequence[str], limit: int
) -> list[PlanNode]:
    """New sub-queries for open gaps, at most `limit`; a question that was asked before is not asked again."""
    # One whose search failed was not answered: it may be asked again.
    asked = [query.text for query in state.plan.sub_queries if query.status is not NodeStatus.FAILED]
    nodes = {node.id: node for node in state.plan.nodes}
    open_gaps = {gap.id: gap for gap in state.gaps if gap.status is GapStatus.OPEN}
    by_gap = {item.gap_id: item for item in assessments}
    order = sorted(open_gaps.values(), key=lambda gap: (gap.id not in priority_gaps, gap.priority))
    fresh: list[PlanNode] = []
    for gap in order:
        item = by_gap.get(gap.id)
        drafts = [(draft.query, draft.expected_contribution) for draft in item.follow_up_queries] if item else []
        # A refiner that names no query leaves the gap's own suggestions.
        drafts = drafts or [(text, "") for text in gap.suggested_queries]
        for text, expected in drafts[:2]:
            if len(fresh) >= limit or asked_before(state.query_ledger, text) or not drop_repeated([text], asked):
                continue
            asked.append(text)
            parent = nodes.get(gap.origin.removeprefix("sub_query:"))
            fresh.append(
                PlanNode(
                    id=sub_query_id(text),
                    parent=parent.id if parent else None,
                    depth=parent.depth + 1 if parent else 0,
                    text=text.strip()[:500],
                    rationale=gap.description[:300],
                    priority=gap.priority,
                    origin=f"gap:{gap.id}",
                    expected_contribution=expected[:300],
                    iteration=state.iteration + 1,
                )
            )
    return fresh


def follow(state: ResearchState, fresh: Sequence[PlanNode]) -> None:
    """Add sub-queries to the plan; one that had failed before takes its old place and is analyzed anew."""
    state.plan = state.plan.with_nodes(*fresh)
    again = {query.id for query in fresh}
    state.analyzed_sub_queries = [query for query in state.analyzed_sub_queries if query not in again]


def skip_unfinished(state: ResearchState, why: str) -> None:
    """What is not done when a run ends is skipped, with the reason; a resumed run does it."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    update = {"status": NodeStatus.SKIPPED, "status_reason": why}
    state.plan = state.plan.with_nodes(
        *(node.model_copy(update=update) for node in state.plan.nodes if node.status in unfinished)
    )


def queries_to_analyze(state: ResearchState) -> list[PlanNode]:
    """Sub-queries that were searched and not analyzed yet; of one that was skipped meanwhile, what was read counts."""
    done = set(state.analyzed_sub_queries)
    ended = {NodeStatus.COMPLETED, NodeStatus.FAILED}
    read = {query_id for source in state.readable_sources() for query_id in source.sub_query_ids}
    return [
        query
        for query in state.plan.sub_queries
        if query.id not in done and (query.status in ended or (query.status is NodeStatus.SKIPPED and query.id in read))
    ]


def room_of(query: PlanNode, limits: EffectiveLimits) -> int:
    """How many more sources a sub-query may have; those that a gathering before has read count."""
    return max(0, limits.max_sources_per_query - query.new_source_count)


def sources_left(state: ResearchState, limits: EffectiveLimits) -> int:
    """How many more sources may be read in this iteration; what others had read before costs an agent nothing."""
    taken = {page.id for page in state.ledger.pages}
    readable = [source for source in state.readable_sources() if source.id not in taken]
    new = sum(source.iteration == state.iteration for source in readable)
    return max(0, min(limits.max_new_sources - new, limits.max_sources - len(readable)))


def unread_candidates(state: ResearchState, limits: EffectiveLimits) -> list[Candidate]:
    """Hits that were found and not read, and may be: what a repeated gathering has to read."""
    if not sources_left(state, limits):
        return []
    room = {query.id: room_of(query, limits) for query in state.plan.sub_queries}
    return [candidate for candidate in unread_hits(state) if room.get(candidate.sub_query_id)]


def unread_hits(state: ResearchState) -> list[Candidate]:
    """Hits that were found and not read, whether or not a limit allows it."""
    known = Identities(state.sources, state.aliases)
    return [candidate for candidate in state.candidates if known.identity_of(candidate.hit) not in state.sources]
