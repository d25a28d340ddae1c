"""The intake: hands a clear question over by calling its one tool; what it says instead are questions to the person."""

from activities.roles.prompt_blocks import PromptRendering
from activities.roles.prompt_rendering import clarifier_values
from contracts.orchestrator_roles import IntakeInput
from contracts.roles import ClarifyInput


def prompt_values(request: IntakeInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common: as for any clarifier."""
    told = ClarifyInput(context=request.context, rounds=request.rounds, required=request.required)
    return clarifier_values(told, rendering)
