"""The step planner: new steps only; those that are done stay as they are, whoever plans."""

from typing import Final

from activities.roles.finishers import Draft
from activities.roles.lenient_values import find_member, line_of
from activities.roles.prompt_blocks import PromptRendering, corpus_block, list_items
from activities.roles.reflective.blocks import hits_block, steps_block
from contracts.addresses import normalized_text
from contracts.reflective_roles import PlanStepsInput, StepDraft, StepKind, StepsDraft, StepsOutput
from providers.errors import InvalidOutput

TITLE_CHARACTERS: Final = 200
DESCRIPTION_CHARACTERS: Final = 500
THOUGHT_CHARACTERS: Final = 2_000


def prompt_values(request: PlanStepsInput, rendering: PromptRendering) -> dict[str, str]:
    """What its prompt is filled with, besides what all have in common."""
    briefed = [request.brief] if request.brief else []
    return {
        "wanted": f"{request.fewest} to {request.most}" if request.fewest < request.most else str(request.most),
        "corpus": corpus_block(request.corpus),
        "brief": list_items("What earlier turns and instructions add to the question:", "brief", briefed),
        "background": hits_block(request.hits, rendering.share),
        "steps": steps_block(request.steps, rendering.share),
        "feedback": list_items(
            "Why the plan is changed, and what is suggested:",
            "feedback",
            [text for text in (request.feedback, *request.suggested_changes) if text],
        ),
    }


def finish(work: Draft[PlanStepsInput, StepsDraft]) -> StepsOutput:
    """Distinct new steps, at most as many as asked for. Raises `InvalidOutput` if the first plan has none.

    There is never enough context for a first plan without steps: nothing has been read yet.
    """
    request, given = work.request, work.draft
    known = {normalized_text(step.title) for step in request.steps}
    steps: list[StepDraft] = []
    for step in given.steps:
        title = line_of(step.title or step.description, TITLE_CHARACTERS)
        if not normalized_text(title) or normalized_text(title) in known:
            work.warnings.append("a step that is empty or done already was dropped")
            continue
        known.add(normalized_text(title))
        # What needs no search thinks about what was found, whatever it is called.
        kind = find_member(StepKind, step.step_type) if step.needs_search else StepKind.ANALYSIS
        kind = kind or StepKind.RESEARCH
        steps.append(
            StepDraft(
                title=title,
                description=line_of(step.description, DESCRIPTION_CHARACTERS) or title,
                step_type=kind.value,
                needs_search=kind is StepKind.RESEARCH,
            )
        )
    if len(steps) > request.most:
        work.warnings.append(f"{len(steps) - request.most} steps beyond the limit of {request.most} were dropped")
    if not steps and not request.steps:
        raise InvalidOutput("steps: at least one step with a title is needed")
    return StepsOutput(
        title=line_of(given.title, TITLE_CHARACTERS),
        thought=line_of(given.thought, THOUGHT_CHARACTERS),
        has_enough_context=given.has_enough_context,
        steps=steps[: request.most],
        account=work.account_with_warnings(),
    )
