"""Decisions after a phase: a retry, another iteration, the next phase or the end. Pure functions of the state."""

from typing import ClassVar, Final

from contracts.addresses import name_page
from contracts.evidence import Gap
from contracts.outcome import GateIssue, GateResult, Pause
from contracts.plan import PlanNode
from contracts.state import OpenPause, Position, ResearchState
from contracts.supervisor_roles import RefinerResult, ReflectInput, SupervisorAnswer
from contracts.texts import plural, shorten
from contracts.vocabulary import Action, EngineKind, GapStatus, GatePolicy, Phase, StopReason, ThinkMode
from workflows.rules.gaps import SEVERITY_ORDER
from workflows.rules.sub_queries import pass_over_unread, queries_to_analyze
from workflows.strategies.supervisor.gates import ANALYSES_FAILED, curable_issues, gate_needs, shown_metrics

NEXT_PHASES = {
    Phase.PLANNING: Phase.GATHERING,
    Phase.GATHERING: Phase.ANALYSIS,
    Phase.ANALYSIS: Phase.SYNTHESIS,
}
"""The unconditional transitions."""
MAX_TITLES: Final = 60
"""Titles of new pages shown to the supervisor after the gathering."""


class SupervisorPosition(Position):
    """The next phase, and the phases already retried."""

    NAME: ClassVar[str] = "supervisor"

    next_phase: Phase = Phase.PLANNING
    retried: list[str] = []
    """`<phase>/<iteration>` of each phase that has used its only retry."""
    recommended: bool | None = None
    """The refiner's recommendation to iterate; None before a refinement."""
    refined: RefinerResult | None = None
    """A refiner's answer that was given beside the report, for the refinement after it."""
    judged_gaps: list[str] = []
    """Ids of the gaps that it was shown."""


def decide(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None, *, can_change: bool) -> Pause:
    """Decide what happens after a phase.

    A reflection may be stricter than the gate, and may only loosen the decision to iterate. `can_change` is false if a
    retry would have the same input.
    """
    is_retried = was_retried(state, gate.phase, state.work.iteration)
    is_strict = gate.policy is GatePolicy.STRICT
    rationale = reflection.rationale if reflection else "the gate is satisfied"
    reasons = "; ".join(issue.message for issue in gate.issues) or rationale
    wants_retry = reflection is not None and reflection.action is Action.RETRY
    issues = curable_issues(state, gate)
    retry_is_due = wants_retry or (is_strict and bool(issues))
    action = Action.PROCEED
    repeated_for = None
    if retry_is_due and gate.phase != Phase.REFINEMENT and not is_retried and can_change:
        action = Action.RETRY
        rationale = reasons
        # A failed call is repeated as it was: that it failed says nothing to a model.
        repeated_for = [issue for issue in issues if issue.code != ANALYSES_FAILED]
        if reflection is not None and wants_retry:
            repeated_for.append(GateIssue(code="reflection", message=reflection.rationale))
    elif gate.phase == Phase.SYNTHESIS:
        completes = reflection is not None and reflection.action is Action.COMPLETE and gate.valid
        action = Action.COMPLETE
        gaps = actionable_gaps(state)
        if not should_iterate(state):
            rationale = "no gap is left that another iteration could close"
        elif completes:
            rationale = f"the supervisor completes with open gaps: {', '.join(gap.id for gap in gaps)}"
        else:
            action = Action.ITERATE
            rationale = f"gaps that matter: {len(gaps)}; an iteration is left"
    elif gate.phase == Phase.REFINEMENT:
        action = Action.COMPLETE
        pending = open_follow_ups(state)
        if SupervisorPosition.read(state).recommended is False:
            rationale = "more searching would not help"
        elif not pending or not should_iterate(state):
            rationale = "the refinement found nothing new to search for"
        else:
            action = Action.ITERATE
            rationale = plural(len(pending), "follow-up query")
    elif retry_is_due or not gate.valid:
        obstacle = "nothing to change" if is_strict else "the gate is advisory"
        rationale = f"{'the one retry is used' if is_retried else obstacle}: {reasons}"
    rationale = shorten(rationale, 500)
    return Pause(phase=gate.phase, action=action, rationale=rationale, score=gate.quality_score, issues=repeated_for)


def was_retried(state: ResearchState, phase: str, iteration: int) -> bool:
    """Return true if a phase has used its only retry in this iteration."""
    return f"{phase}/{iteration}" in SupervisorPosition.read(state).retried


def open_follow_ups(state: ResearchState) -> list[PlanNode]:
    """Return the follow-up queries that are to be searched for or, from pages already read, to be analyzed."""
    pending = {query.id for query in (*state.work.pending_sub_queries(), *queries_to_analyze(state))}
    return [query for query in state.work.plan.sub_queries if query.gap_id and query.id in pending]


# --- to the next phase -----------------------------------------------------------------------------------------------
def apply_pause(state: ResearchState) -> StopReason | None:
    """Move the position by the last pause and the table of transitions; return the stop reason at the end."""
    position = SupervisorPosition.of(state)
    pause = state.work.pause
    if pause is not None and pause.action is Action.RETRY:
        position.next_phase = Phase(pause.phase)
    if pause is None or pause.phase != position.next_phase or pause.action is Action.RETRY:
        return None
    if position.next_phase in NEXT_PHASES:
        position.next_phase = NEXT_PHASES[position.next_phase]
    elif pause.action is not Action.ITERATE:
        return stop_reason_after_synthesis(state)
    elif position.next_phase == Phase.SYNTHESIS:
        position.next_phase = Phase.REFINEMENT
    else:
        state.work.iteration += 1
        pass_over_unread(state)
        position.next_phase = Phase.GATHERING
    return None


def should_iterate(state: ResearchState) -> bool:
    """Return true if actionable gaps remain and an iteration is left."""
    return bool(actionable_gaps(state)) and state.work.iteration < state.resolution.limits.max_iterations


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Return the open gaps severe enough for another search; unaddressable ones are no longer open."""
    floor = SEVERITY_ORDER[state.resolution.limits.severity_floor]
    return [gap for gap in state.evidence.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= floor]


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Return the reason why a run completes after its last phase."""
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    if state.work.iteration >= state.resolution.limits.max_iterations:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT


# --- reflections -----------------------------------------------------------------------------------------------------
def is_reflected_on(state: ResearchState, gate: GateResult) -> bool:
    """Return true if a model is to reflect on a phase.

    By default it does so where something is left to decide: after an analysis, and where a gate is not satisfied.
    Before another iteration the refiner, which sees the report, judges the gaps and whether more searches would help.
    """
    think = state.resolution.gates.think
    if think is not ThinkMode.AUTO:
        return think is ThinkMode.MODEL
    return gate.phase != Phase.REFINEMENT and (gate.phase == Phase.ANALYSIS or not gate.valid)


def may_reflect_beside(state: ResearchState, opened: OpenPause) -> bool:
    """Return true if a report may be written while a model reflects on the analysis: only that may ask for a retry."""
    if opened.question is None or opened.gate is None or opened.gate.phase != Phase.ANALYSIS:
        return False
    return decide(state, opened.gate, None, can_change=opened.unit.can_change).action is Action.PROCEED


def may_refine_beside(state: ResearchState) -> bool:
    """Return true if the gaps may be judged while the report is written, since the refinement follows in any case.

    A model that reflects on every report may end the run there; then the refiner waits for it.
    """
    if state.resolution.engine is not EngineKind.MODEL or state.resolution.gates.think is ThinkMode.MODEL:
        return False
    return SupervisorPosition.read(state).refined is None and should_iterate(state)


def take_refined(state: ResearchState) -> RefinerResult | None:
    """Remove and return the answer that was given beside the report; None if a gap is open that it did not see."""
    position = SupervisorPosition.of(state)
    refined = position.refined
    seen = set(position.judged_gaps)
    position.refined = None
    position.judged_gaps = []
    if not all(gap.id in seen for gap in state.evidence.unaddressed_gaps()):
        return None
    return refined


def reflection_input(phase: Phase, state: ResearchState, gate: GateResult) -> ReflectInput:
    """Return the request to the supervisor: the results of a phase, not only their numbers."""
    evidence = state.evidence
    has_findings = phase in (Phase.ANALYSIS, Phase.SYNTHESIS, Phase.REFINEMENT)
    titles: list[str] = []
    if phase is Phase.GATHERING:
        fresh = [source for source in evidence.readable_sources() if source.iteration == state.work.iteration]
        titles = [name_page(source.title, source.url) for source in fresh][:MAX_TITLES]
    return ReflectInput(
        phase=phase,
        prompt=reflection_prompt(phase, state),
        metrics=shown_metrics(state, gate),
        gate_valid=gate.valid,
        gate_score=gate.quality_score,
        gate_needs=gate_needs(phase, state),
        sub_queries=[
            PlanNode(id=query.id, text=query.text, status=query.status, finding_count=query.finding_count)
            for query in state.work.plan.sub_queries
        ],
        findings=evidence.findings if has_findings else [],
        titles=titles,
        gaps=[
            Gap(id=gap.id, description=gap.description, severity=gap.severity) for gap in evidence.unaddressed_gaps()
        ],
        draft=evidence.draft.document if evidence.draft and phase is Phase.SYNTHESIS else None,
        issues=gate.issues,
    )


def reflection_prompt(phase: Phase, state: ResearchState) -> str:
    """Return a phase's figures followed by questions about it, for the reflecting model."""
    evidence = state.evidence
    match phase:
        case Phase.PLANNING:
            has_brief = "yes" if state.work.plan.brief.strip() else "no"
            return (
                f"The plan is made: {plural(len(state.work.plan.sub_queries), 'sub-query')}; research brief: "
                f"{has_brief}. Do the sub-queries cover the whole question, and what aspect is missing?"
            )
        case Phase.GATHERING:
            return (
                f"Searching is done: {plural(len(evidence.readable_sources()), 'source')} read{_spread(state)}. "
                "Do their titles fit the sub-queries, and which sub-query has none that does?"
            )
        case Phase.ANALYSIS:
            gaps = plural(len(evidence.unaddressed_gaps()), "gap")
            return (
                f"The sources are analyzed: {plural(len(evidence.findings), 'finding')}, {gaps}. "
                "Which parts of the question have no finding, and is any gap critical?"
            )
        case Phase.SYNTHESIS:
            length = evidence.draft.characters if evidence.draft else 0
            return (
                f"The report is written: {length} characters, "
                f"iteration {state.work.iteration} of {state.resolution.limits.max_iterations}. "
                "Is it good enough, or does it need another round?"
            )
        case Phase.REFINEMENT:
            addressed = sum(gap.status is GapStatus.ADDRESSED for gap in evidence.gaps)
            return f"The gaps are reviewed: {addressed} of {len(evidence.gaps)} addressed. Go on iterating, or finish?"


def _spread(state: ResearchState) -> str:
    """Return how good and how independent the sources are; empty for one collection, which is one publisher."""
    if state.resolution.one_collection:
        return ""
    publishers = {source.publisher or source.provider for source in state.evidence.readable_sources()}
    good = len(state.evidence.high_quality_sources())
    return f", {good} of high quality, from {plural(len(publishers), 'publisher')}"
