"""The coordinator: how much ceremony a question gets, and how deep it is looked into."""

from typing import Final

from activities.roles.prompt_blocks import PromptRendering
from activities.roles.reflective.blocks import earlier_turns
from activities.roles.untrusted import guard
from contracts.reflective_roles import (
    ClassifyInput,
)

MOST_QUESTIONS: Final = 3
REASON_CHARACTERS: Final = 400
QUESTION_CHARACTERS: Final = 300
BRIEF_CHARACTERS: Final = 600


def prompt_values(request: ClassifyInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    direct = (
        "- `direct`: no research is needed at all: a greeting, arithmetic, a rewording, what was answered before.\n"
    )
    told = guard(request.system_prompt or "").strip()
    return {
        "context": earlier_turns(request.context, rendering.share),
        "direct": direct if request.may_answer else "",
        "system_prompt": f"<additional_context>\n{told}\n</additional_context>" if told else "",
    }
