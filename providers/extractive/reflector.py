"""The supervisor without a model: the gate's own figures, put into a reflection."""

from contracts.roles import QualityAssessmentDraft, ReflectInput, ReflectionDraft
from contracts.vocabulary import Action, Phase


def reflect(task: ReflectInput) -> ReflectionDraft:
    """Say what the gate's result means for the next step; it never loosens a gate."""
    action = _action(task)
    figures = ", ".join(f"{name} {value:g}" for name, value in sorted(task.metrics.items()))
    return ReflectionDraft(
        action=action.value,
        rationale=f"The gate after {task.phase} is {'satisfied' if task.gate_valid else 'not satisfied'}"
        f" ({task.gate_score:g} of 10{'; ' + figures if figures else ''}).",
        quality_assessment=QualityAssessmentDraft(
            score=min(10.0, max(1.0, task.gate_score)),
            strengths=["gate satisfied"] if task.gate_valid else [],
            weaknesses=[issue.message for issue in task.issues],
        ),
        guidance="" if task.gate_valid else "; ".join(issue.message for issue in task.issues)[:1_000],
    )


def _action(task: ReflectInput) -> Action:
    if not task.gate_valid:
        return Action.RETRY
    if task.phase == Phase.SYNTHESIS:
        return Action.ITERATE if task.open_gaps and task.iteration < task.max_iterations else Action.COMPLETE
    return Action.PROCEED
