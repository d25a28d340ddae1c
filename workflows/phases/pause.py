"""What strategies share of a pause: the gate on record, the reflection, the operator's hook."""

from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.outcome import HOOK, GateIssue, GateResult
from contracts.roles import SUPERVISOR, ReflectInput
from contracts.state import OpenPause
from contracts.vocabulary import AgentRole, ThinkMode
from workflows.phases.hook_view import hook_view
from workflows.run.activity_options import hook_options
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.research_run import ResearchRun

UNREADABLE: Final = object()
"""Stands for an answer of a hook that is no JSON."""


def record_gate(run: ResearchRun, gate: GateResult, outputs: dict[str, Any], news: list[GateIssue]) -> None:
    """Keep what the gate says, as a decision with the figures of the unit; of its issues, `news` are told to people."""
    run.state.gates.append(gate)
    inputs = {"phase": gate.phase, "iteration": run.state.iteration}
    reasons = "; ".join(issue.message for issue in gate.issues)
    run.decide(AgentRole.SUPERVISOR, "evaluate_phase", reasons, inputs, {"quality_ok": gate.valid, **outputs})
    result = f"passed, {gate.quality_score:.0f}/10" if gate.valid else f"failed: {reasons}"
    run.note(
        "gate.evaluated",
        f"gate {result}",
        phase=gate.phase,
        valid=gate.valid,
        score=gate.quality_score,
        issues=[issue.message for issue in news],
    )


def question_of(run: ResearchRun, gate: GateResult, prompt: str) -> ReflectInput | None:
    """What a model is asked of a unit; None where none reflects."""
    if run.resolved.gates.think is not ThinkMode.MODEL:
        return None
    return ReflectInput(
        phase=gate.phase,
        prompt=prompt,
        metrics=gate.metrics,
        gate_valid=gate.valid,
        gate_score=gate.quality_score,
        open_gaps=[gap.description for gap in run.state.unaddressed_gaps()],
        issues=gate.issues,
    )


async def reflect(run: ResearchRun, opened: OpenPause) -> None:
    """Have a model answer the question of an open pause, and keep its answer there until the pause is concluded."""
    if opened.question is None or opened.reflection is not None:
        return
    step = f"reflect/{opened.question.phase}"
    opened.reflection = await run.ask(SUPERVISOR, step, opened.question, at=opened.moment)


def hear(run: ResearchRun, opened: OpenPause) -> None:
    """Take the reflection as guidance; where rules reflect, the issues that the gate found."""
    name = opened.unit.name
    if opened.reflection is not None:
        run.guide("model", opened.reflection.guidance, name)
    elif run.resolved.gates.think is ThinkMode.RULES and opened.gate is not None:
        for issue in opened.gate.issues:
            run.guide("rules", issue.message, name)


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
    run.take_advice(HOOK, answer or "", phase)
