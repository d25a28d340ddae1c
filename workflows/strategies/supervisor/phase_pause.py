"""The pause after each phase: gate, reflection, hook, decision, in this order."""

from typing import Any

from contracts.outcome import GateResult, Pause
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import shorten
from contracts.vocabulary import TOP_CONFIDENCE, Action, AgentRole, GatePolicy, Phase
from workflows.phases.pause import call_hook, hear, question_of, record_gate
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.gates import evaluate
from workflows.strategies.supervisor.iteration import decide, decision_meanwhile, mendable, retry_key, should_iterate
from workflows.strategies.supervisor.reflection_prompts import reflection_prompt
from workflows.strategies.supervisor.supervisor_position import position_of


def evaluate_phase(run: ResearchRun, unit: Unit) -> OpenPause:
    """The gate of a phase on record, and what a model is asked of it."""
    phase = Phase(unit.name)
    gate = evaluate(phase, run.state)
    record_gate(run, gate, phase_outputs(phase, run.state), mendable(run.state, gate))
    question = question_of(run, gate, reflection_prompt(phase, run.state))
    opened = OpenPause(unit=unit, moment=run.moment(), gate=gate, question=question)
    if question is not None and not run.resolved.hook:
        opened.meanwhile = decision_meanwhile(run.state, gate, can_change=unit.can_change)
        run.state.pause = opened.meanwhile or run.state.pause
    return opened


async def conclude(run: ResearchRun, opened: OpenPause) -> Pause:
    """Hear the reflection, let the hook speak, decide, record."""
    if opened.gate is None:
        raise ValueError("a pause is opened by evaluate_phase")
    phase = Phase(opened.unit.name)
    hear(run, opened)
    _record_reflection(run, opened)
    await call_hook(run, phase, reflection_prompt(phase, run.state))
    pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
    if opened.meanwhile is not None and phase == Phase.REFINEMENT:
        pause = opened.meanwhile  # no reflection changes it, and what it was decided by is gathered by now
    _record(run, opened, opened.gate, pause)
    return pause


def phase_outputs(phase: Phase, state: ResearchState) -> dict[str, Any]:
    """What the evaluation of each phase records."""
    if phase == Phase.PLANNING:
        return {"sub_query_count": len(state.plan.sub_queries), "has_research_brief": bool(state.plan.brief.strip())}
    if phase == Phase.GATHERING:
        return {"source_count": len(state.readable_sources())}
    if phase == Phase.ANALYSIS:
        high = sum(finding.confidence in TOP_CONFIDENCE for finding in state.findings)
        return {"finding_count": len(state.findings), "high_confidence_count": high}
    if phase == Phase.SYNTHESIS:
        return {"has_report": state.draft is not None, "report_length": state.draft.characters if state.draft else 0}
    return {"unaddressed_gaps": len(state.unaddressed_gaps()), "should_iterate": should_iterate(state)}


def _record_reflection(run: ResearchRun, opened: OpenPause) -> None:
    """What the supervisor thinks of the phase, whatever is decided then."""
    said = opened.reflection
    if said is None:
        return
    assessment = said.quality_assessment
    outputs = {
        "action": said.action.value,
        "score": assessment.score,
        "strengths": [shorten(text, 200) for text in assessment.strengths[:5]],
        "weaknesses": [shorten(text, 200) for text in assessment.weaknesses[:5]],
    }
    inputs = {"phase": opened.unit.name, "iteration": opened.moment.iteration}
    run.decide(AgentRole.SUPERVISOR, "reflect", said.rationale, inputs, outputs, opened.moment)


def _record(run: ResearchRun, opened: OpenPause, gate: GateResult, pause: Pause) -> None:
    state, at = run.state, opened.moment
    state.pause = pause
    retried, retry = position_of(state).retried, retry_key(gate.phase, at.iteration)
    if pause.action is Action.RETRY:
        retried.append(retry)
    elif not gate.valid and gate.policy is GatePolicy.STRICT and (opened.unit.can_change or retry in retried):
        # Where nothing could be done differently, it is the documents that hold no more: the report says that.
        for issue in mendable(state, gate):
            run.degrade(f"{gate.phase} gate: {issue.message}")
    if gate.phase == Phase.SYNTHESIS and pause.action is not Action.RETRY:
        inputs = {
            "gap_count": len(state.unaddressed_gaps()),
            "iteration": state.iteration,
            "max_iterations": run.resolved.limits.max_iterations,
        }
        iterate = pause.action is Action.ITERATE
        outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
        run.decide(AgentRole.SUPERVISOR, "decide_iteration", pause.rationale, inputs, outputs, at)
    else:
        run.decide(AgentRole.SUPERVISOR, pause.action.value, pause.rationale, {}, {"score": pause.score}, at)
