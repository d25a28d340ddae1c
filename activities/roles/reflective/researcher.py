"""The researcher of a step: what to search for next, or that the step is done."""

from activities.roles.prompt_blocks import PromptRendering, list_items
from activities.roles.untrusted import data, guard_line
from contracts.reflective_roles import ResearchStepInput


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
