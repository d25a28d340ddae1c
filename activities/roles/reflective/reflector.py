"""The reflector: after each step, whether to go on, to adjust the plan, or to write."""

from typing import Final

from activities.roles.prompt_blocks import PromptRendering, list_items
from activities.roles.reflective.blocks import steps_block
from contracts.reflective_roles import (
    ReflectOnStepInput,
)

MOST_CHANGES: Final = 5
REASON_CHARACTERS: Final = 600
SHOWN_TITLES: Final = 20


def prompt_values(request: ReflectOnStepInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    return {
        "steps": steps_block(request.steps, rendering.share),
        "pending": list_items("Steps that are planned and not done:", "pending", request.pending),
        "titles": list_items("Sources so far:", "read", request.source_titles[:SHOWN_TITLES]),
        "gaps": list_items("Open gaps:", "gaps", request.open_gaps),
        "completed": str(request.completed),
        "fewest": str(request.fewest_steps),
        "adjusting": "" if request.may_adjust else "The plan cannot be adjusted any more: decide between the others.\n",
    }
