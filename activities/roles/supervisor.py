"""The supervisor's draft as a decision."""

from typing import Final

from activities.roles.finisher import Draft
from activities.roles.lenient_values import bounded, clamped, encodable, named, one_line
from contracts.roles import ReflectInput, ReflectionDraft, ReflectOutput
from contracts.vocabulary import Action

NOTE_CHARACTERS: Final = 1_000
GUIDANCE_CHARACTERS: Final = 2_000
MOST_NOTES: Final = 10


def finish_reflection(work: Draft[ReflectInput, ReflectionDraft]) -> ReflectOutput:
    """What the workflow gets: an action of ours, a score from 1 to 10."""
    draft, assessment = work.draft, work.draft.quality_assessment
    action = named(Action, draft.action)
    if action is None:
        work.warnings.append("an unknown action was taken for proceed")
    score = clamped(assessment.score, 1, 10)
    if score != assessment.score:
        work.warnings.append(f"a score was moved to {score:g}")
    return ReflectOutput(
        action=action or Action.PROCEED,
        rationale=_note(draft.rationale),
        score=score,
        strengths=_notes(assessment.strengths),
        weaknesses=_notes(assessment.weaknesses),
        guidance=bounded(encodable(draft.guidance).strip(), GUIDANCE_CHARACTERS),
        account=work.accounted(),
    )


def _note(text: str) -> str:
    return bounded(one_line(encodable(text)), NOTE_CHARACTERS)


def _notes(texts: list[str]) -> list[str]:
    return [note for text in texts[:MOST_NOTES] if (note := _note(text))]
