"""The pause after each phase: gate, reflection, hook, decision, in this order."""

from typing import Any

from contracts.decisions import GateResult, Pause
from contracts.state import ResearchState
from contracts.vocabulary import TOP_CONFIDENCE, Action, AgentRole, GatePolicy, Phase
from workflows.phases.pause import call_hook, record_gate, reflect
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.gates import evaluate
from workflows.strategies.supervisor.iteration import decide, retry_key, should_iterate
from workflows.strategies.supervisor.position import position_of
from workflows.strategies.supervisor.reflection_prompts import reflection_prompt


async def pause_after(run: ResearchRun, phase: Phase, *, can_change: bool) -> Pause:
    """Evaluate, reflect, let the hook speak, decide, record."""
    gate = evaluate(phase, run.state)
    record_gate(run, gate, phase_outputs(phase, run.state))
    prompt = reflection_prompt(phase, run.state)
    reflection = await reflect(run, gate, prompt)
    await call_hook(run, phase, prompt)
    pause = decide(run.state, gate, reflection, can_change=can_change)
    _record(run, gate, pause)
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


def _record(run: ResearchRun, gate: GateResult, pause: Pause) -> None:
    state = run.state
    state.pause = pause
    if pause.action is Action.RETRY:
        position_of(state).retried.append(retry_key(gate.phase, state.iteration))
    elif not gate.valid and gate.policy is GatePolicy.STRICT:
        for issue in gate.issues:
            run.degrade(f"{gate.phase} gate: {issue.message}")
    if gate.phase == Phase.SYNTHESIS:
        inputs = {
            "gap_count": len(state.unaddressed_gaps()),
            "iteration": state.iteration,
            "max_iterations": run.resolved.limits.max_iterations,
        }
        iterate = pause.action is Action.ITERATE
        outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
        run.decide(AgentRole.SUPERVISOR, "decide_iteration", pause.rationale, inputs, outputs)
    else:
        run.decide(AgentRole.SUPERVISOR, pause.action.value, pause.rationale, {}, {"score": pause.score})
