"""The planner's draft as a plan: no empty or repeated sub-query, never too many."""

from typing import Final

from activities.roles.finisher import Draft
from activities.roles.lenient_values import bounded, clamped, encodable, one_line
from contracts.identity import normalized_text
from contracts.roles import PlanDraft, PlanInput, PlanOutput, SubQueryDraft
from providers.errors import InvalidOutput

LOWEST_PRIORITY: Final = 10
QUERY_CHARACTERS: Final = 500
NOTE_CHARACTERS: Final = 600
FACET_CHARACTERS: Final = 60
BRIEF_CHARACTERS: Final = 2_000


def finish_plan(work: Draft[PlanInput, PlanDraft]) -> PlanOutput:
    """The plan that the workflow gets. Raises `InvalidOutput` if no sub-query is left."""
    kept = _first_by_priority(_distinct(work), work)
    if not kept:
        raise InvalidOutput("sub_queries: at least one sub-query with words is needed")
    return PlanOutput(
        research_brief=bounded(one_line(encodable(work.draft.research_brief)), BRIEF_CHARACTERS),
        sub_queries=kept,
        account=work.accounted(),
    )


def _distinct(work: Draft[PlanInput, PlanDraft]) -> list[SubQueryDraft]:
    distinct: dict[str, SubQueryDraft] = {}
    for draft in work.draft.sub_queries:
        cleaned = _cleaned(draft, work)
        key = normalized_text(cleaned.query)
        if not key:
            work.warnings.append("a sub-query without words was dropped")
        elif key in distinct:
            work.warnings.append("a repeated sub-query was dropped")
        else:
            distinct[key] = cleaned
    return list(distinct.values())


def _cleaned(draft: SubQueryDraft, work: Draft[PlanInput, PlanDraft]) -> SubQueryDraft:
    priority = int(clamped(draft.priority, 1, LOWEST_PRIORITY))
    if priority != draft.priority:
        work.warnings.append(f"a priority was moved to {priority}")
    return SubQueryDraft(
        query=bounded(one_line(encodable(draft.query)), QUERY_CHARACTERS),
        rationale=bounded(one_line(encodable(draft.rationale)), NOTE_CHARACTERS),
        priority=priority,
        facet=bounded(one_line(encodable(draft.facet)), FACET_CHARACTERS),
    )


def _first_by_priority(drafts: list[SubQueryDraft], work: Draft[PlanInput, PlanDraft]) -> list[SubQueryDraft]:
    """The most important ones, in the planner's order."""
    most = work.request.max_sub_queries
    if len(drafts) <= most:
        return drafts
    work.warnings.append(f"{len(drafts) - most} sub-queries beyond the limit of {most} were dropped")
    chosen = sorted(range(len(drafts)), key=lambda place: (drafts[place].priority, place))[:most]
    return [drafts[place] for place in sorted(chosen)]
