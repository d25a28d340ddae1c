"""What happens after a step: the reflection, held to what the limits allow. Pure."""

from contracts.reflective_roles import ReflectionDecision, ReflectorAnswer
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from workflows.strategies.reflective.reflective_position import StepReflection
from workflows.strategies.reflective.steps import completed_steps, pending_steps, room_for_steps, steps_of

CONTINUE, ADJUST, COMPLETE = ReflectionDecision.CONTINUE, ReflectionDecision.ADJUST, ReflectionDecision.COMPLETE


def fewest_steps(state: ResearchState, limits: EffectiveLimits) -> int:
    """Steps that must be done before a reflection may end the research: not more than there are in the plan."""
    return min(limits.min_steps, len(steps_of(state.plan)))


def may_adjust(state: ResearchState, limits: EffectiveLimits) -> bool:
    """Whether another plan may be made: an iteration and a step are left."""
    return state.iteration < limits.max_iterations and room_for_steps(state.plan, limits.max_steps) > 0


def decide_step(
    state: ResearchState, limits: EffectiveLimits, step: str, said: ReflectorAnswer | None
) -> StepReflection:
    """The one place where a reflection is held to the limits; what it is changed from is on record.

    `said` is None where nobody reflects: then the plan is carried out to its end.
    """
    wanted = said.decision if said else CONTINUE
    reasoning = said.reasoning if said else "the plan is carried out to its end"
    decision = wanted
    if decision is ADJUST and not may_adjust(state, limits):
        decision = CONTINUE
    if decision is COMPLETE and len(completed_steps(state.plan)) < fewest_steps(state, limits):
        decision = CONTINUE
    if decision is CONTINUE and not pending_steps(state.plan):
        decision = COMPLETE
    changed = wanted if decision is not wanted else None
    return StepReflection(step=step, decision=decision, coerced_from=changed, reasoning=reasoning[:500])
