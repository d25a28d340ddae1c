"""The reflector: after each step, whether to go on, to adjust the plan, or to write."""

from typing import Final

from activities.roles.finishers import Draft
from activities.roles.lenient_values import find_member, line_of
from activities.roles.prompt_blocks import PromptRendering, list_items
from activities.roles.reflective.blocks import steps_block
from contracts.reflective_roles import (
    ReflectionDecision,
    ReflectOnStepInput,
    StepReflectionDraft,
    StepReflectionOutput,
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


def finish(work: Draft[ReflectOnStepInput, StepReflectionDraft]) -> StepReflectionOutput:
    """The decision in known words; one that cannot be read is taken for `continue`, which loses nothing."""
    decision = find_member(ReflectionDecision, work.draft.decision)
    if decision is None:
        work.warnings.append("an unknown decision was taken for continue")
    changes = [line_of(text, REASON_CHARACTERS) for text in (work.draft.suggested_changes or [])[:MOST_CHANGES]]
    return StepReflectionOutput(
        decision=decision or ReflectionDecision.CONTINUE,
        reasoning=line_of(work.draft.reasoning, REASON_CHARACTERS),
        suggested_changes=[text for text in changes if text],
        account=work.account_with_warnings(),
    )
