"""The background investigator: two or three searches that show what there is, before anything is planned."""

from activities.roles.finishers import Draft
from activities.roles.prompt_blocks import PromptRendering, corpus_block
from activities.roles.reflective.blocks import distinct_queries, earlier_turns
from contracts.reflective_roles import InvestigateInput, QueriesDraft, QueriesOutput


def prompt_values(request: InvestigateInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    return {
        "most": str(request.most_queries),
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
    }


def finish(work: Draft[InvestigateInput, QueriesDraft]) -> QueriesOutput:
    """Distinct queries, at least the question itself."""
    most = work.request.most_queries
    queries = distinct_queries(work.draft.queries, [], most) or [work.request.query[:400]]
    return QueriesOutput(queries=queries, account=work.account_with_warnings())
