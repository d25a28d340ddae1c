"""The outliner: a short plan of what is to be found out; who finds it out, and how, others decide."""

from typing import Final

from activities.roles.finishers import Draft
from activities.roles.lenient_values import line_of
from activities.roles.prompt_blocks import PromptRendering, corpus_block, list_items
from activities.roles.reflective.blocks import earlier_turns
from activities.roles.untrusted import guard
from contracts.addresses import normalized_text
from contracts.orchestrator_roles import OutlineDraft, OutlinedStep, OutlineInput, OutlineOutput
from providers.errors import InvalidOutput

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


def finish(work: Draft[OutlineInput, OutlineDraft]) -> OutlineOutput:
    """Distinct steps, at most as many as asked for. Raises `InvalidOutput` if there is none."""
    known: set[str] = set()
    steps: list[OutlinedStep] = []
    for given in work.draft.steps:
        text = line_of(given.step, STEP_CHARACTERS)
        key = normalized_text(text)
        if key and key not in known:
            known.add(key)
            steps.append(OutlinedStep(step=text, facet=line_of(given.facet, FACET_CHARACTERS)))
    if not steps:
        raise InvalidOutput("steps: at least one step is needed")
    if len(steps) > work.request.most:
        work.warnings.append(
            f"{len(steps) - work.request.most} steps beyond the limit of {work.request.most} were dropped"
        )
    return OutlineOutput(
        approach=line_of(work.draft.approach, APPROACH_CHARACTERS),
        steps=steps[: work.request.most],
        account=work.account_with_warnings(),
    )
