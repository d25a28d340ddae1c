"""The background investigator: two or three searches that show what there is, before anything is planned."""

from activities.roles.prompt_blocks import PromptRendering, corpus_block
from activities.roles.reflective.blocks import earlier_turns
from contracts.reflective_roles import InvestigateInput


def prompt_values(request: InvestigateInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    return {
        "most": str(request.most_queries),
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
    }
