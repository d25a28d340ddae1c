"""When to go round again, and when to stop: pure functions of the state."""

from contracts.evidence import Gap
from contracts.outcome import GateIssue, GateResult, Pause
from contracts.roles import SupervisorAnswer
from contracts.state import ResearchState
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
from workflows.strategies.supervisor.supervisor_position import position_of

SEVERITY_ORDER = {Severity.MINOR: 0, Severity.MODERATE: 1, Severity.CRITICAL: 2}


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Open gaps that matter enough to search again; unaddressable ones are no longer open."""
    floor = state.resolved.limits.severity_floor if state.resolved else Severity.MODERATE
    return [gap for gap in state.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= SEVERITY_ORDER[floor]]


def should_iterate(state: ResearchState) -> bool:
    """Whether gaps remain that matter and an iteration is left."""
    last = state.resolved.limits.max_iterations if state.resolved else 1
    return bool(actionable_gaps(state)) and state.iteration < last


def retry_key(phase: str, iteration: int) -> str:
    """How a phase's one retry is remembered."""
    return f"{phase}/{iteration}"


def decide(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None, *, can_change: bool) -> Pause:
    """What happens after a phase. A reflection may tighten; it may loosen the iteration decision alone."""
    wants_retry = (bool(mendable(state, gate)) and gate.policy is GatePolicy.STRICT) or (
        reflection is not None and reflection.action is Action.RETRY
    )
    retried = retry_key(gate.phase, state.iteration) in position_of(state).retried
    if wants_retry and gate.phase != Phase.REFINEMENT and not retried and can_change:
        return _pause(gate, Action.RETRY, _reasons(gate, reflection))
    if gate.phase == Phase.SYNTHESIS:
        return _after_synthesis(state, gate, reflection)
    if gate.phase == Phase.REFINEMENT:
        return _after_refinement(state, gate)
    if wants_retry or not gate.valid:
        return _pause(gate, Action.PROCEED, f"{_why_no_retry(gate, retried)}: {_reasons(gate, reflection)}")
    return _pause(gate, Action.PROCEED, reflection.rationale if reflection else "the gate is satisfied")


def mendable(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Issues that doing the phase again might mend: they are what a retry and a note are about.

    Of ordinary sites none is of high quality, whichever are read; without such a source no finding is of high
    confidence; a folder in which everything that was found has been read holds no more; and rules find in the same
    pages what they found before.
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


def decision_meanwhile(state: ResearchState, gate: GateResult, *, can_change: bool) -> Pause | None:
    """The decision that a gathering goes by while the model still reflects on the phase before it.

    A gathering asks no model, so it hears no guidance: the analysis is the first that can. None where the next phase
    is no gathering, or where a retry is due or just over.
    """
    retried = retry_key(gate.phase, state.iteration) in position_of(state).retried
    if gate.phase not in (Phase.PLANNING, Phase.REFINEMENT) or not gate.valid or retried:
        return None
    pause = decide(state, gate, None, can_change=can_change)
    return None if pause.action is Action.COMPLETE else pause


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Why a run that completes after a synthesis does so."""
    if not state.has_unresolved_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    last = state.resolved.limits.max_iterations if state.resolved else 1
    if state.iteration >= last:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT


def _after_synthesis(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None) -> Pause:
    if not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "no gap is left that another iteration could close")
    if reflection is not None and reflection.action is Action.COMPLETE and gate.valid:
        kept = ", ".join(gap.id for gap in actionable_gaps(state))
        return _pause(gate, Action.COMPLETE, f"the supervisor completes with open gaps: {kept}")
    return _pause(gate, Action.ITERATE, f"gaps that matter: {len(actionable_gaps(state))}; an iteration is left")


def _after_refinement(state: ResearchState, gate: GateResult) -> Pause:
    follow_ups = [query for query in state.pending_sub_queries() if query.gap_id]
    if position_of(state).recommended is False:
        return _pause(gate, Action.COMPLETE, "the refiner advises against another iteration")
    if not follow_ups or not should_iterate(state):
        return _pause(gate, Action.COMPLETE, "the refinement found nothing new to search for")
    return _pause(gate, Action.ITERATE, plural(len(follow_ups), "follow-up query"))


def _why_no_retry(gate: GateResult, retried: bool) -> str:
    if retried:
        return "the one retry is used"
    return "nothing_to_change" if gate.policy is GatePolicy.STRICT else "the gate is advisory"


def _reasons(gate: GateResult, reflection: SupervisorAnswer | None) -> str:
    reasons = [issue.message for issue in gate.issues]
    if not reasons and reflection is not None:
        reasons = [reflection.rationale]
    return "; ".join(reasons)


def _pause(gate: GateResult, action: Action, rationale: str) -> Pause:
    return Pause(phase=gate.phase, action=action, rationale=rationale[:500], score=gate.quality_score)
