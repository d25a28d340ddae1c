"""The think-pause after each phase: gate, reflection, hook, decision (S0-080 to S0-093, S0-172, S0-183)."""

from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.decisions import GateResult, Verdict
from contracts.roles import SUPERVISOR, ReflectInput, ReflectOutput
from contracts.state import ResearchState
from contracts.vocabulary import Action, AgentRole, Confidence, GatePolicy, Phase, ThinkMode
from workflows.run.activity_options import hook_options
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.gates import evaluate
from workflows.strategies.supervisor.iteration import decide, retry_key, should_iterate
from workflows.strategies.supervisor.reflection_prompts import reflection_prompt

UNREADABLE: Final = object()
"""Stands for an answer of a hook that is no JSON."""


async def think(run: ResearchRun, phase: Phase, *, can_change: bool) -> Verdict:
    """Evaluate, reflect, let the hook speak, decide, record: in this order, after every phase."""
    gate = evaluate_phase_completion(run, phase)
    prompt = reflection_prompt(phase, run.state)
    reflection = await _reflect(run, gate, prompt)
    await _hook(run, phase, prompt)
    verdict = decide(run.state, gate, reflection, can_change=can_change)
    _record(run, gate, verdict)
    return verdict


def evaluate_phase_completion(run: ResearchRun, phase: Phase) -> GateResult:
    """The gate's result, recorded as a decision (S0-087)."""
    gate = evaluate(phase, run.state)
    run.state.gates.append(gate)
    outputs = {"quality_ok": gate.valid, **phase_outputs(phase, run.state)}
    inputs = {"phase": phase.value, "iteration": run.state.iteration}
    reasons = "; ".join(issue.message for issue in gate.issues)
    run.decide(AgentRole.SUPERVISOR, "evaluate_phase", reasons, inputs, outputs)
    verdict = "passed" if gate.valid else f"not passed ({reasons})"
    run.note(
        "gate.evaluated",
        f"gate {gate.quality_score:.0f}/10 {verdict}",
        phase=phase.value,
        valid=gate.valid,
        score=gate.quality_score,
        issues=[issue.message for issue in gate.issues],
    )
    return gate


def phase_outputs(phase: Phase, state: ResearchState) -> dict[str, Any]:
    """What the evaluation of each phase records (S0-088 to S0-092)."""
    if phase is Phase.PLANNING:
        return {"sub_query_count": len(state.plan.sub_queries), "has_research_brief": bool(state.plan.brief.strip())}
    if phase is Phase.GATHERING:
        return {"source_count": len(state.readable_sources())}
    if phase is Phase.ANALYSIS:
        top = (Confidence.HIGH, Confidence.CONFIRMED)
        high = sum(finding.confidence in top for finding in state.findings)
        return {"finding_count": len(state.findings), "high_confidence_count": high}
    if phase is Phase.SYNTHESIS:
        return {"has_report": state.draft is not None, "report_length": state.draft.characters if state.draft else 0}
    return {"unaddressed_gaps": len(state.unaddressed_gaps()), "should_iterate": should_iterate(state)}


async def _reflect(run: ResearchRun, gate: GateResult, prompt: str) -> ReflectOutput | None:
    """A model's opinion, or none; without a model the gate's own issues are the guidance."""
    if run.resolved.gates.think is ThinkMode.OFF:
        return None
    if run.resolved.gates.think is ThinkMode.RULES:
        for issue in gate.issues:
            run.guide("rules", issue.message, gate.phase)
        return None
    request = ReflectInput(
        phase=gate.phase,
        prompt=prompt,
        metrics=gate.metrics,
        gate_valid=gate.valid,
        gate_score=gate.quality_score,
        open_gaps=[gap.description for gap in run.state.unaddressed_gaps()],
        issues=gate.issues,
    )
    reflection = await run.ask(SUPERVISOR, f"reflect/{gate.phase.value}", request)
    run.guide("model", reflection.guidance, gate.phase)
    return reflection


async def _hook(run: ResearchRun, phase: Phase, prompt: str) -> None:
    """The operator's hook: called with (state, prompt), answers guidance or nothing (S0-081, S0-082)."""
    hook = run.resolved.hook
    if hook is None:
        return
    operation = run.operation(f"hook/{phase.value}")
    options = hook_options(operation, hook.task_queue, run.remaining_work_seconds())
    view = hook_view(run.state)
    try:
        answer = await run.within_limits(run.host.execute_hook(hook.activity, [view, prompt], options))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"hook {hook.name} failed after {phase.value}: {reason_of(error)}")
        return
    except ValueError:
        answer = UNREADABLE
    if answer is not None and not isinstance(answer, str):
        run.degrade(f"hook {hook.name} answered after {phase.value} with something that is neither text nor null")
        return
    run.decide(AgentRole.SUPERVISOR, "think_pause_hook", hook.name, {"phase": phase.value}, {"answered": bool(answer)})
    run.guide("hook", answer or "", phase)


def hook_view(state: ResearchState) -> dict[str, Any]:
    """The state as a hook sees it: everything but events and packed details."""
    hidden = {"events", "candidates", "term_documents", "operations", "result"}
    return state.model_dump(mode="json", exclude=hidden)


def _record(run: ResearchRun, gate: GateResult, verdict: Verdict) -> None:
    state = run.state
    state.verdict = verdict
    if verdict.action is Action.RETRY:
        state.strategy.retried.append(retry_key(gate.phase, state.iteration))
    elif not gate.valid and gate.policy is GatePolicy.STRICT:
        for issue in gate.issues:
            run.degrade(f"{gate.phase.value} gate: {issue.message}")
    if gate.phase is Phase.SYNTHESIS:
        inputs = {
            "gap_count": len(state.unaddressed_gaps()),
            "iteration": state.iteration,
            "max_iterations": run.resolved.limits.max_iterations,
        }
        iterate = verdict.action is Action.ITERATE
        outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
        run.decide(AgentRole.SUPERVISOR, "decide_iteration", verdict.rationale, inputs, outputs)
    else:
        run.decide(AgentRole.SUPERVISOR, verdict.action.value, verdict.rationale, {}, {"score": verdict.score})
