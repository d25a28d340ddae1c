"""The step planner: new steps only; those that are done stay as they are, whoever plans."""

from typing import Final

from activities.roles.prompt_blocks import PromptRendering, corpus_block, list_items
from activities.roles.reflective.blocks import hits_block, steps_block
from contracts.reflective_roles import PlanStepsInput

TITLE_CHARACTERS: Final = 200
DESCRIPTION_CHARACTERS: Final = 500
THOUGHT_CHARACTERS: Final = 2_000


def prompt_values(request: PlanStepsInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    briefed = [request.brief] if request.brief else []
    return {
        "wanted": f"{request.fewest} to {request.most}" if request.fewest < request.most else str(request.most),
        "corpus": corpus_block(request.corpus),
        "brief": list_items("What earlier turns and instructions add to the question:", "brief", briefed),
        "background": hits_block(request.hits, rendering.share),
        "steps": steps_block(request.steps, rendering.share),
        "feedback": list_items(
            "Why the plan is changed, and what is suggested:",
            "feedback",
            [text for text in (request.feedback, *request.suggested_changes) if text],
        ),
    }
