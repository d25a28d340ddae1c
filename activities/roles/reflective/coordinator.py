"""The coordinator: how much ceremony a question gets, and how deep it is looked into."""

from typing import Final

from activities.roles.finishers import Draft
from activities.roles.lenient_values import find_member, line_of
from activities.roles.prompt_blocks import PromptRendering
from activities.roles.reflective.blocks import earlier_turns
from contracts.reflective_roles import (
    ClassificationDraft,
    ClassificationOutput,
    ClassifyInput,
    Complexity,
    FollowUpType,
    Route,
)
from contracts.request import Depth

MOST_QUESTIONS: Final = 3
REASON_CHARACTERS: Final = 400
QUESTION_CHARACTERS: Final = 300
DIRECT_ROUTE: Final = (
    "- `direct`: no research is needed at all: a greeting, arithmetic, a rewording, what was answered before."
)


def prompt_values(request: ClassifyInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    direct = (
        "- `direct`: no research is needed at all: a greeting, arithmetic, a rewording, what was answered before.\n"
    )
    return {"context": earlier_turns(request.context, rendering.share), "direct": direct if request.may_answer else ""}


def finish(work: Draft[ClassifyInput, ClassificationDraft]) -> ClassificationOutput:
    """The classification in known words; what cannot be read is as careful as possible: moderate, and researched."""
    given = work.draft
    complexity, route = find_member(Complexity, given.complexity), find_member(Route, given.route)
    if complexity is None:
        work.warnings.append("an unknown complexity was taken for moderate")
    if route is None or (route is Route.DIRECT and not work.request.may_answer):
        work.warnings.append("a route that cannot be taken was taken for deep")
        route = Route.DEEP
    depth = find_member(Depth, given.recommended_depth)
    questions = [line_of(text, QUESTION_CHARACTERS) for text in given.clarifying_questions[:MOST_QUESTIONS]]
    return ClassificationOutput(
        complexity=complexity or Complexity.MODERATE,
        follow_up_type=find_member(FollowUpType, given.follow_up_type) or FollowUpType.NEW_TOPIC,
        route=route,
        recommended_depth=(depth or Depth.AUTO).value,
        is_ambiguous=given.is_ambiguous,
        clarifying_questions=[text for text in questions if text],
        reasoning=line_of(given.reasoning, REASON_CHARACTERS),
        account=work.account_with_warnings(),
    )
