"""The position of the loop, and every decision about where it goes: after a phase, at the end, when resumed. Pure."""

from typing import ClassVar

from contracts.evidence import Gap
from contracts.outcome import GateIssue, GateResult, Pause
from contracts.roles import SupervisorAnswer
from contracts.state import Position, ResearchState
from contracts.texts import plural
from contracts.vocabulary import (
    Action,
    AgentRole,
    EngineKind,
    GatePolicy,
    Phase,
    Severity,
    SourceStatus,
    StopReason,
)
from workflows.rules.sub_queries import unread_hits

SEVERITY_ORDER = {Severity.MINOR: 0, Severity.MODERATE: 1, Severity.CRITICAL: 2}
FOLLOWING = {
    Phase.PLANNING: Phase.GATHERING,
    Phase.GATHERING: Phase.ANALYSIS,
    Phase.ANALYSIS: Phase.SYNTHESIS,
}
"""The transitions without a choice."""


class SupervisorPosition(Position):
    """The phase that comes next, and which phases were retried."""

    NAME: ClassVar[str] = "supervisor"

    next_phase: Phase = Phase.PLANNING
    retried: list[str] = []
    """`<phase>/<iteration>` of each phase that had its one retry."""
    recommended: bool | None = None
    """The refiner's recommendation to iterate; None before a refinement."""


# --- after a phase -------------------------------------------------------------------------------------------------
def decide(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None, *, can_change: bool) -> Pause:
    """Decide what happens after a phase.

    A reflection may tighten; it may loosen the iteration decision alone. `can_change` is false where doing the phase
    again would have the same input.
    """
    is_retried = was_retried(state, gate.phase, state.iteration)
    has_remedy = bool(curable_issues(state, gate)) and gate.policy is GatePolicy.STRICT
    retry_is_due = has_remedy or (reflection is not None and reflection.action is Action.RETRY)
    if retry_is_due and gate.phase != Phase.REFINEMENT and not is_retried and can_change:
        return _pause(gate, Action.RETRY, _reasons(gate, reflection))
    if gate.phase == Phase.SYNTHESIS:
        return _after_synthesis(state, gate, reflection)
    if gate.phase == Phase.REFINEMENT:
        return _after_refinement(state, gate)
    if retry_is_due or not gate.valid:
        return _pause(gate, Action.PROCEED, f"{_why_no_retry(gate, is_retried)}: {_reasons(gate, reflection)}")
    return _pause(gate, Action.PROCEED, reflection.rationale if reflection else "the gate is satisfied")


def decide_provisionally(state: ResearchState, gate: GateResult, *, can_change: bool) -> Pause | None:
    """Return the decision under which a gathering starts while the model still reflects on the phase before it.

    A gathering asks no model, so guidance cannot reach it: the analysis is the first that can use it. None where the
    next phase is no gathering, or where a retry is due or just over.
    """
    retried = was_retried(state, gate.phase, state.iteration)
    if gate.phase not in (Phase.PLANNING, Phase.REFINEMENT) or not gate.valid or retried:
        return None
    pause = decide(state, gate, None, can_change=can_change)
    return None if pause.action is Action.COMPLETE else pause


def curable_issues(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Return the issues that doing the phase again might cure: a retry and a note are about these.

    Of ordinary sites none is of high quality, whichever are read; without such a source no finding is of high
    confidence; a folder whose every hit has been read has no more; and rules find in the same pages the same findings.
    """
    hopeless = set()
    if state.engine_by_role.get(AgentRole.ANALYZER) == EngineKind.EXTRACTIVE and state.findings:
        hopeless |= {"too_few_findings", "low_coverage", "no_high_confidence"}
    if state.resolved is not None and state.resolved.web:
        hopeless.add("no_high_quality_source")
    elif all(source.status is SourceStatus.FULL for source in state.sources.values()) and not unread_hits(state):
        hopeless.add("too_few_sources")
    if not state.high_quality_sources():
        hopeless.add("no_high_confidence")
    return [issue for issue in gate.issues if issue.code not in hopeless]


def was_retried(state: ResearchState, phase: str, iteration: int) -> bool:
    """Return true if a phase had its one retry in this iteration."""
    return f"{phase}/{iteration}" in SupervisorPosition.read(state).retried


def _after_synthesis(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None) -> Pause:
    if not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "no gap is left that another iteration could close")
    if reflection is not None and reflection.action is Action.COMPLETE and gate.valid:
        still_open = ", ".join(gap.id for gap in actionable_gaps(state))
        return _pause(gate, Action.COMPLETE, f"the supervisor completes with open gaps: {still_open}")
    return _pause(gate, Action.ITERATE, f"gaps that matter: {len(actionable_gaps(state))}; an iteration is left")


def _after_refinement(state: ResearchState, gate: GateResult) -> Pause:
    follow_ups = [query for query in state.pending_sub_queries() if query.gap_id]
    if SupervisorPosition.read(state).recommended is False:
        return _pause(gate, Action.COMPLETE, "the refiner advises against another iteration")
    if not follow_ups or not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "the refinement found nothing new to search for")
    return _pause(gate, Action.ITERATE, plural(len(follow_ups), "follow-up query"))


def _why_no_retry(gate: GateResult, is_retried: bool) -> str:
    if is_retried:
        return "the one retry is used"
    return "nothing_to_change" if gate.policy is GatePolicy.STRICT else "the gate is advisory"


def _reasons(gate: GateResult, reflection: SupervisorAnswer | None) -> str:
    reasons = [issue.message for issue in gate.issues]
    if not reasons and reflection is not None:
        reasons = [reflection.rationale]
    return "; ".join(reasons)


def _pause(gate: GateResult, action: Action, rationale: str) -> Pause:
    return Pause(phase=gate.phase, action=action, rationale=rationale[:500], score=gate.quality_score)


# --- to the next phase ---------------------------------------------------------------------------------------------
def apply_pause(state: ResearchState) -> StopReason | None:
    """Move the position by the last pause, by the transition table of the design; the reason where the run is over."""
    position, pause = SupervisorPosition.of(state), state.pause
    if pause is not None and pause.action is Action.RETRY:
        position.next_phase = Phase(pause.phase)
    if pause is None or pause.phase != position.next_phase or pause.action is Action.RETRY:
        return None
    if position.next_phase in FOLLOWING:
        position.next_phase = FOLLOWING[position.next_phase]
    elif pause.action is not Action.ITERATE:
        return stop_reason_after_synthesis(state)
    elif position.next_phase == Phase.SYNTHESIS:
        position.next_phase = Phase.REFINEMENT
    else:
        state.start_new_iteration()
        state.candidates = []
        position.next_phase = Phase.GATHERING
    return None


def should_iterate(state: ResearchState) -> bool:
    """Return true if gaps remain that matter and an iteration is left."""
    last = state.resolved.limits.max_iterations if state.resolved else 1
    return bool(actionable_gaps(state)) and state.iteration < last


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Return the open gaps that matter enough to search again; unaddressable ones are no longer open."""
    floor = state.resolved.limits.severity_floor if state.resolved else Severity.MODERATE
    return [gap for gap in state.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= SEVERITY_ORDER[floor]]


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Return the reason for which a run completes after a synthesis."""
    if not state.has_unresolved_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    last = state.resolved.limits.max_iterations if state.resolved else 1
    if state.iteration >= last:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT


# --- a resumed run -------------------------------------------------------------------------------------------------
def reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    """Move the position of a stored state to its first unfinished phase.

    A finished run is decided again under the new limits. One that was interrupted after its last phase continues to
    its end.
    """
    before = SupervisorPosition.read(state).next_phase
    _reposition(state, redo_analysis=redo_analysis)
    if SupervisorPosition.read(state).next_phase != before or redo_analysis:
        state.open_pauses = []


def _reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    position, pause = SupervisorPosition.of(state), state.pause
    if not state.plan.nodes:
        position.next_phase, state.pause = Phase.PLANNING, None
    elif state.pending_sub_queries() and position.next_phase != Phase.PLANNING:
        position.next_phase, state.pause = Phase.GATHERING, None
    elif redo_analysis:
        position.next_phase, state.pause = Phase.ANALYSIS, None
    elif pause is not None and pause.phase == position.next_phase and pause.action is Action.COMPLETE:
        if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
            state.pause = pause.model_copy(update={"action": Action.ITERATE})
        elif state.ending is not None:
            position.next_phase, state.pause = Phase.SYNTHESIS, None
