"""The researcher of a step: what to search for next, or that the step is done."""

from activities.roles.finishers import Draft
from activities.roles.prompt_blocks import PromptRendering, list_items
from activities.roles.reflective.blocks import distinct_queries
from activities.roles.untrusted import data, guard_line
from contracts.reflective_roles import QueriesOutput, ResearchStepInput, ResearchTurnDraft


def prompt_values(request: ResearchStepInput, _: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    step = [guard_line(request.step_title, 300), guard_line(request.description, 600)]
    return {
        "step": data("step", [line for line in dict.fromkeys(step) if line]),
        "turn": str(request.turn),
        "observations": list_items("What this step has found so far:", "observations", request.observations),
        "titles": list_items("Pages that it has read:", "read", request.titles),
        "asked": list_items("Queries asked so far:", "asked", request.asked),
        "most": str(request.most_queries),
    }


def finish(work: Draft[ResearchStepInput, ResearchTurnDraft]) -> QueriesOutput:
    """Queries that were not asked before; the first turn of a step has at least its own title."""
    request = work.request
    queries = distinct_queries(work.draft.queries, request.asked, request.most_queries)
    if len(work.draft.queries) > len(queries):
        work.warnings.append("queries that were repeated or beyond the limit were dropped")
    if not queries and request.turn == 1:
        queries = distinct_queries([request.description, request.step_title], [], 1)
    return QueriesOutput(queries=queries, account=work.account_with_warnings())
