"""An agent: searches, has pages read, and reports. It sees titles and notes, never a page; and nothing but its task."""

from activities.roles.prompt_blocks import PromptRendering
from contracts.orchestrator_roles import WorkInput

THINKING = "- `think_tool`: think about what is missing. It stands alone in its turn.\n"


def prompt_values(request: WorkInput, _: PromptRendering) -> dict[str, str]:
    """What its opening is filled with, besides what all have in common."""
    return {
        "searches": str(request.searches_left),
        "pages": str(request.pages_left),
        "thinking": "" if request.reasons else THINKING,
    }
