"""What strategies share of a pause: the gate on record, a reflection, the operator's hook."""

from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.decisions import GateResult
from contracts.roles import SUPERVISOR, ReflectInput, ReflectOutput
from contracts.vocabulary import AgentRole, ThinkMode
from workflows.phases.hook_view import hook_view
from workflows.run.activity_options import hook_options
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.research_run import ResearchRun

UNREADABLE: Final = object()
"""Stands for an answer of a hook that is no JSON."""


def record_gate(run: ResearchRun, gate: GateResult, outputs: dict[str, Any]) -> None:
    """Keep what the gate says, as a decision with the figures of the unit."""
    run.state.gates.append(gate)
    inputs = {"phase": gate.phase, "iteration": run.state.iteration}
    reasons = "; ".join(issue.message for issue in gate.issues)
    run.decide(AgentRole.SUPERVISOR, "evaluate_phase", reasons, inputs, {"quality_ok": gate.valid, **outputs})
    result = "passed" if gate.valid else f"not passed ({reasons})"
    run.note(
        "gate.evaluated",
        f"gate {gate.quality_score:.0f}/10 {result}",
        phase=gate.phase,
        valid=gate.valid,
        score=gate.quality_score,
        issues=[issue.message for issue in gate.issues],
    )


async def reflect(run: ResearchRun, gate: GateResult, prompt: str) -> ReflectOutput | None:
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
    reflection = await run.ask(SUPERVISOR, f"reflect/{gate.phase}", request)
    run.guide("model", reflection.guidance, gate.phase)
    return reflection


async def call_hook(run: ResearchRun, phase: str, prompt: str) -> None:
    """The operator's hook: called with (state, prompt), answers guidance or nothing."""
    hook = run.resolved.hook
    if hook is None:
        return
    operation = run.operation(f"hook/{phase}")
    options = hook_options(operation, hook.task_queue, run.remaining_work_seconds())
    view = hook_view(run.state)
    try:
        answer = await run.within_limits(run.host.execute_hook(hook.activity, [view, prompt], options))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"hook {hook.name} failed after {phase}: {reason_of(error)}")
        return
    except ValueError:
        answer = UNREADABLE
    if answer is not None and not isinstance(answer, str):
        run.degrade(f"hook {hook.name} answered after {phase} with something that is neither text nor null")
        return
    run.decide(AgentRole.SUPERVISOR, "think_pause_hook", hook.name, {"phase": phase}, {"answered": bool(answer)})
    run.guide("hook", answer or "", phase)
