"""The orchestrator: sends agents, looks at what they found, and says when to write. It searches and reads nothing."""

from activities.roles.prompt_blocks import PromptRendering, brief_block, list_items
from contracts.orchestrator_roles import OrchestrateInput

THINKING = (
    "- `think_tool`: after agents have reported, think before you send the next ones: what is known, what is thin, "
    "what contradicts itself, what comes next. It stands alone in its turn.\n"
)


def prompt_values(request: OrchestrateInput, _: PromptRendering) -> dict[str, str]:
    """What its opening is filled with, besides what all have in common."""
    steps = [f"{number}. {step}" for number, step in enumerate(request.steps, start=1)]
    return {
        "approach": brief_block(request.approach),
        "steps": list_items("The plan:", "plan", steps),
        "at_once": str(request.at_once),
        "cycles": str(request.cycles),
        "thinking": "" if request.reasons else THINKING,
    }
