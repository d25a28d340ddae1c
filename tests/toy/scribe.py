"""What the scribe does where its activity runs: without a model the product's own brief is written."""

from activities.roles.prompt_blocks import PromptRendering, findings_block
from contracts.roles import WriteInput


def prompt_values(request: WriteInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    return {"findings": findings_block(request, rendering)}
