"""The responder: an answer without research, which cites nothing and says so."""

from activities.roles.prompt_blocks import PromptRendering
from activities.roles.reflective.blocks import earlier_turns
from contracts.reflective_roles import RespondInput


def prompt_values(request: RespondInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    return {"context": earlier_turns(request.context, rendering.share)}
