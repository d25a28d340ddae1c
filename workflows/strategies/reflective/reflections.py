"""Reflections on a step: what the reflector is asked, what its limits leave of the answer, and what follows."""

from typing import Final

from contracts.addresses import name_page
from contracts.evidence import Gap
from contracts.outcome import Pause
from contracts.plan import PlanNode
from contracts.reflective_roles import (
    REFLECTOR,
    ReflectionDecision,
    ReflectOnStepInput,
    ReflectorAnswer,
    ReflectorResult,
)
from contracts.request import Mode
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.vocabulary import Action, EngineKind, Quality, ThinkMode
from workflows.phases.role_inputs import to_extract
from workflows.rules.sub_queries import assign_readings, pass_over_unread, reading_nodes
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.position import ReflectivePosition, StepReflection, UnitKind
from workflows.strategies.reflective.steps import (
    completed_steps,
    named_step,
    pending_steps,
    replaceable_steps,
    room_for_steps,
    summarize_steps,
)
from workflows.strategies.units import skip_steps

MAX_READINGS: Final = 5
"""Gaps for which one reflection may have sections read further."""


async def reflect_on_step(run: ResearchRun, unit: str, position: ReflectivePosition) -> Pause:
    """Have the reflector judge a step, then continue, adjust the plan or complete. Raises `Interrupted`."""
    state = run.state
    step = named_step(state, unit)
    answer = await _ask_reflector(run, position)
    reflection = decide_step(state, run.resolved.limits, step.text if step else unit, answer)
    position.reflections.append(reflection)
    if answer is not None:
        run.settle_gaps(answer.settled_gaps, REFLECTOR.name)
        _read_further(run, step, answer)
    outputs: dict[str, object] = {"decision": reflection.decision.value}
    proposed = ""
    if reflection.coerced_from is not None:
        outputs["coerced_from"] = reflection.coerced_from.value
        proposed = f" (it proposed to {reflection.coerced_from.value})"
    if answer is not None and answer.suggested_changes:
        outputs["suggested_changes"] = [text[:200] for text in answer.suggested_changes]
    inputs = {"completed_steps": len(completed_steps(state.work.plan))}
    run.decide(REFLECTOR.name, reflection.decision.value, reflection.reasoning + proposed, inputs, outputs)
    action = Action.PROCEED
    if reflection.decision is ReflectionDecision.ADJUST:
        position.feedback = reflection.reasoning
        position.suggested_changes = answer.suggested_changes if answer else []
        position.next_unit = UnitKind.PLANNING
        action = Action.ITERATE
        state.work.iteration += 1
        pass_over_unread(state)
    elif reflection.decision is ReflectionDecision.COMPLETE:
        skip_steps(state, position, replaceable_steps(state.work.plan))
        if pending_steps(state.work.plan):  # what a person asked for is never skipped
            position.next_unit = UnitKind.STEP
        else:
            position.next_unit = UnitKind.SYNTHESIS
            action = Action.COMPLETE
    return Pause(phase=unit, action=action, rationale=reflection.reasoning)


def _read_further(run: ResearchRun, step: PlanNode | None, answer: ReflectorResult) -> None:
    """Plan an analysis of sections already read for each gap that they may answer; the next unit reads them."""
    state = run.state
    nodes = reading_nodes(state, answer.readings, state.work.iteration, step)[:MAX_READINGS]
    state.work.plan = state.work.plan.with_nodes(*nodes)
    assign_readings(state, nodes)
    for node in nodes:
        run.decide(REFLECTOR.name, "read_further", node.text, {"gap_id": node.gap_id}, {"sections": len(node.sections)})


async def _ask_reflector(run: ResearchRun, position: ReflectivePosition) -> ReflectorResult | None:
    think = run.resolved.gates.think
    limits = run.resolved.limits
    state = run.state
    if think is ThinkMode.OFF or position.route is Mode.QUICK or len(possible_decisions(state, limits)) == 1:
        return None
    # Best sources first, latest first among equals, because a prompt shows only the first ones.
    by_quality = {quality: place for place, quality in enumerate(Quality)}
    readable = state.evidence.readable_sources()
    sources = sorted(readable, key=lambda source: (by_quality[source.quality], -source.iteration))
    unaddressed = state.evidence.unaddressed_gaps()
    gaps = [Gap(id=gap.id, description=gap.description, suggested_queries=gap.suggested_queries) for gap in unaddressed]
    by_model = think is not ThinkMode.RULES and run.resolved.engine is EngineKind.MODEL
    request = ReflectOnStepInput(
        steps=[step.with_fields(observations=[]) for step in summarize_steps(state)],
        findings=state.evidence.findings,
        pending=[step.text for step in pending_steps(state.work.plan)],
        source_titles=[name_page(source.title, source.url) for source in sources],
        gaps=gaps,
        read_sources=[to_extract(source, to_search=False) for source in sources] if gaps and by_model else [],
        completed=len(completed_steps(state.work.plan)),
        fewest_steps=_min_steps(state, limits),
        may_adjust=_may_adjust(state, limits),
    )
    step = f"reflect/{len(position.reflections) + 1}"
    engine = EngineKind.EXTRACTIVE if think is ThinkMode.RULES else None
    return await run.ask(REFLECTOR, step, request, engine)


# --- rules -----------------------------------------------------------------------------------------------------------
def decide_step(
    state: ResearchState, limits: EffectiveLimits, step: str, answer: ReflectorAnswer | None
) -> StepReflection:
    """Apply the limits to a reflection, and record a decision changed by them.

    `answer` is None without a reflection; the plan is then followed to its end.
    """
    proposed = answer.decision if answer else ReflectionDecision.CONTINUE
    reasoning = answer.reasoning if answer else "the plan is carried out to its end"
    possible = possible_decisions(state, limits)
    decision = proposed if proposed in possible else possible[0]
    changed = proposed if answer and decision is not proposed else None
    return StepReflection(step=step, decision=decision, coerced_from=changed, reasoning=reasoning[:500])


def possible_decisions(state: ResearchState, limits: EffectiveLimits) -> list[ReflectionDecision]:
    """Return the decisions that a reflection may make now, the default first; if there is one, no model is asked."""
    is_over = not pending_steps(state.work.plan)
    possible = [ReflectionDecision.COMPLETE if is_over else ReflectionDecision.CONTINUE]
    if _may_adjust(state, limits):
        possible.append(ReflectionDecision.ADJUST)
    if not is_over and len(completed_steps(state.work.plan)) >= _min_steps(state, limits):
        possible.append(ReflectionDecision.COMPLETE)
    return possible


def _min_steps(state: ResearchState, limits: EffectiveLimits) -> int:
    """Return the number of completed steps required before a reflection may end the research."""
    return min(limits.min_steps, len(state.work.plan.steps))


def _may_adjust(state: ResearchState, limits: EffectiveLimits) -> bool:
    """Return true if the plan may be adjusted, because an iteration and a step are left."""
    return state.work.iteration < limits.max_iterations and room_for_steps(state.work.plan, limits.max_steps) > 0
