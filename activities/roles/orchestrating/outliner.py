"""The outliner: a short plan of what is to be found out; who finds it out, and how, others decide."""

from typing import Final

from activities.roles.prompt_blocks import PromptRendering, corpus_block, list_items
from activities.roles.reflective.blocks import earlier_turns
from activities.roles.untrusted import guard
from contracts.orchestrator_roles import OutlineInput

STEP_CHARACTERS: Final = 400
FACET_CHARACTERS: Final = 60
APPROACH_CHARACTERS: Final = 800


def prompt_values(request: OutlineInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    told = guard(request.system_prompt or "").strip()
    return {
        "most": str(request.most),
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
        "previous": list_items("Steps of the plan that is to be replaced:", "previous", request.previous),
        "system_prompt": f"<additional_context>\n{told}\n</additional_context>" if told else "",
    }
