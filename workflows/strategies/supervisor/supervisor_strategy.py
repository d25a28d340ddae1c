"""The strategy `supervisor`: plan → gather → analyze → synthesize → (refine → gather …)."""

from typing import Final

from contracts.outcome import GateResult, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import PLANNER, REFINER, GapAssessment, PlanInput
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vocabulary import Action, AgentRole, EngineKind, GapStatus, GatePolicy, Phase
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.phases.pause import apply_reflection, call_hook, question_of, record_gate
from workflows.phases.role_inputs import refine_input
from workflows.rules.gaps import apply_assessments, asked_for
from workflows.rules.sub_queries import follow_ups, plan_sub_queries, unread_candidates
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.supervisor.decisions import (
    SupervisorPosition,
    apply_pause,
    curable_issues,
    decide,
    evaluate,
    reflection_prompt,
    reposition,
    should_iterate,
    was_retried,
)
from workflows.strategies.units import carry_out, mark_of, write_draft

LABELS: Final = {
    Phase.PLANNING: "plan",
    Phase.GATHERING: "gather",
    Phase.ANALYSIS: "analyze",
    Phase.SYNTHESIS: "write",
    Phase.REFINEMENT: "refine",
}
"""The phases in the order of the loop; planning belongs to the first iteration alone."""


class SupervisorStrategy:
    """One phase per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Go where the last pause leads, and do that phase."""
        iteration = run.state.iteration
        stop = apply_pause(run.state)
        if stop is not None:
            return Finished(stop)
        if run.state.iteration > iteration:
            run.note("phase.finished", f"iteration {run.state.iteration} begins", phase=Phase.REFINEMENT)
        phase = SupervisorPosition.of(run.state).next_phase
        work = {
            Phase.PLANNING: self._plan,
            Phase.GATHERING: self._gather,
            Phase.ANALYSIS: self._analyze,
            Phase.SYNTHESIS: self._synthesize,
            Phase.REFINEMENT: self._refine,
        }[phase]
        again = run.retries(phase)
        title = f"{phase}{' again' if again else ''}, iteration {run.state.iteration}"
        return await carry_out(
            run, phase, LABELS[phase], work, lambda: phase_summary(run.state, phase), title=title, again=again
        )

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Record the gate of the phase, and name the question to the model that reflects on it."""
        phase, state = Phase(unit.name), run.state
        gate = evaluate(phase, state)
        outputs = dict(gate.metrics)
        if phase is Phase.REFINEMENT:
            outputs["should_iterate"] = should_iterate(state)
        record_gate(run, gate, outputs, curable_issues(state, gate))
        question = question_of(run, gate, reflection_prompt(phase, state))
        return OpenPause(unit=unit, moment=run.moment(), gate=gate, question=question)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Apply the reflection, call the hook, decide, record. Raises ValueError for a pause without a gate."""
        if opened.gate is None:
            raise ValueError("this strategy opens no pause without a gate")
        phase = Phase(opened.unit.name)
        apply_reflection(run, opened)
        _record_reflection(run, opened)
        await call_hook(run, phase, reflection_prompt(phase, run.state))
        pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
        run.state.pause = pause
        _note_issues(run, opened, opened.gate, pause)
        _record_decision(run, opened, pause)
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Do an unfinished phase again; decide a finished run again under the new limits."""
        reposition(state, redo_analysis=redo_analysis)

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        SupervisorPosition.of(state).next_phase = Phase.PLANNING
        state.pause = Pause(phase=Phase.PLANNING, action=Action.RETRY, rationale="a person wants another plan")

    def progress(self, state: ResearchState) -> Progress:
        """Return the phases of the iteration, in the order of the loop."""
        current = list(LABELS).index(SupervisorPosition.read(state).next_phase)
        # A run that a person did not approve has a result and no report.
        reported = state.result is not None and state.result.files is not None
        units = []
        for place, (phase, label) in enumerate(LABELS.items()):
            finished = reported or (place == current and state.open_pause is not None)
            started = state.phase is not None and state.result is None
            mark = mark_of(place, current, finished=finished, started=started)
            detail = phase_summary(state, phase) if finished or place < current else ""
            units.append(UnitProgress(name=phase, label=label, mark=mark, detail=detail))
        last = state.resolved.limits.max_iterations if state.resolved else 1
        return Progress(summary=f"iteration {state.iteration} of {last}", units=units)

    # --- phases ----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> Unit:
        state, resolved = run.state, run.resolved
        limit = resolved.limits.max_sub_queries
        request = PlanInput(
            system_prompt=resolved.system_prompt,
            context=resolved.earlier_turns,
            min_sub_queries=min(2, limit),
            max_sub_queries=limit,
            corpus=resolved.corpus,
            previous=[query.text for query in state.plan.sub_queries],
            issues=run.issues(Phase.PLANNING),
        )
        output = await run.ask(PLANNER, "plan", request)
        queries = plan_sub_queries(output.sub_queries, state.iteration, limit)
        changed = [query.text for query in queries] != [query.text for query in state.plan.sub_queries]
        run.draft_plan(output.research_brief, queries)
        return Unit(name=Phase.PLANNING, can_change=changed and resolved.engine is EngineKind.MODEL)

    async def _gather(self, run: ResearchRun) -> Unit:
        state = run.state
        again = [query for query in state.plan.sub_queries if query.iteration == state.iteration]
        chosen = state.pending_sub_queries() or (again if run.retries(Phase.GATHERING) else [])
        number = run.decide(AgentRole.GATHERER, "execute_gathering", "", {"sub_queries": len(chosen)})
        before = len(state.readable_sources())
        await Gathering(run, chosen).carry_out()
        run.decided(number, {"new_sources": len(state.readable_sources()) - before})
        return Unit(name=Phase.GATHERING, can_change=bool(unread_candidates(state, run.resolved.limits)))

    async def _analyze(self, run: ResearchRun) -> Unit:
        await analyze(run, again=run.retries(Phase.ANALYSIS))
        return Unit(name=Phase.ANALYSIS, can_change=run.resolved.engine is EngineKind.MODEL)

    async def _synthesize(self, run: ResearchRun) -> Unit:
        await write_draft(run)
        run.state.report_improvements = []
        run.state.candidates = []  # unread hits only mattered until here
        return Unit(name=Phase.SYNTHESIS, can_change=run.resolved.engine is EngineKind.MODEL, iteration_ended=True)

    async def _refine(self, run: ResearchRun) -> Unit:
        state, position = run.state, SupervisorPosition.of(run.state)
        output = await run.ask(REFINER, "refine", refine_input(run))
        state.gaps = apply_assessments(state.gaps, output.gap_analysis)
        state.report_improvements = output.report_improvements
        advice = output.iteration_recommendation
        position.recommended = advice.should_iterate or asked_for(state.gaps)
        # A follow-up that no iteration will search for is not planned: its gap remains open.
        fresh: list[PlanNode] = []
        if position.recommended and should_iterate(state):
            limit = run.resolved.limits.max_sub_queries
            fresh = follow_ups(state, output.gap_analysis, advice.priority_gaps, limit)
        state.plan = state.plan.with_nodes(*fresh)
        # One whose search had failed before takes its old place, and is analyzed again.
        again = {query.id for query in fresh}
        state.analyzed_sub_queries = [query for query in state.analyzed_sub_queries if query not in again]
        _record_reviewed_gaps(run, output.gap_analysis, fresh)
        run.note("plan.drafted", plural(len(fresh), "follow-up query"), count=len(fresh))
        return Unit(name=Phase.REFINEMENT, can_change=False)


def phase_summary(state: ResearchState, phase: Phase) -> str:
    """Return the results of a phase in a few words."""
    return {
        Phase.PLANNING: f"{len(state.plan.sub_queries)} sub-queries",
        Phase.GATHERING: f"{plural(len(state.readable_sources()), 'source')} read",
        Phase.ANALYSIS: f"{plural(len(state.findings), 'finding')}, {plural(len(state.unaddressed_gaps()), 'gap')}",
        Phase.SYNTHESIS: f"{state.draft.word_count if state.draft else 0} words",
        Phase.REFINEMENT: plural(len(state.pending_sub_queries()), "follow-up query"),
    }[phase]


# --- records -------------------------------------------------------------------------------------------------------
def _record_reviewed_gaps(run: ResearchRun, reviewed: list[GapAssessment], fresh: list[PlanNode]) -> None:
    """Record each gap that the refiner gave up or pursues: every change of a gap is a decision."""
    reviewed_ids = {item.gap_id for item in reviewed}
    for gap in run.state.gaps:
        follow_ups_of_gap = [query.id for query in fresh if query.gap_id == gap.id]
        inputs = {"gap_id": gap.id}
        if gap.status is GapStatus.UNADDRESSABLE and gap.id in reviewed_ids:
            run.decide(AgentRole.REFINER, "gap_unaddressable", gap.description, inputs, {"status": gap.status.value})
        elif follow_ups_of_gap:
            run.decide(AgentRole.REFINER, "gap_pursued", gap.description, inputs, {"sub_queries": follow_ups_of_gap})


def _record_reflection(run: ResearchRun, opened: OpenPause) -> None:
    """Record the supervisor's judgement of a phase, regardless of the decision will be."""
    reflection = opened.reflection
    if reflection is None:
        return
    assessment = reflection.quality_assessment
    outputs = {
        "action": reflection.action.value,
        "score": assessment.score,
        "strengths": [shorten(text, 200) for text in assessment.strengths[:5]],
        "weaknesses": [shorten(text, 200) for text in assessment.weaknesses[:5]],
    }
    inputs = {"phase": opened.unit.name, "iteration": opened.moment.iteration}
    run.decide(AgentRole.SUPERVISOR, "reflect", reflection.rationale, inputs, outputs, opened.moment)


def _note_issues(run: ResearchRun, opened: OpenPause, gate: GateResult, pause: Pause) -> None:
    """Remember a retry, or note the issues that remain after one, or that another model's attempt might have cured."""
    iteration, retried = opened.moment.iteration, was_retried(run.state, gate.phase, opened.moment.iteration)
    if pause.action is Action.RETRY:
        SupervisorPosition.of(run.state).retried.append(f"{gate.phase}/{iteration}")
    elif not gate.valid and gate.policy is GatePolicy.STRICT and (opened.unit.can_change or retried):
        # Where the input could not change, the documents have no more: the report says that.
        for issue in curable_issues(run.state, gate):
            run.degrade(f"{gate.phase} gate: {issue.message}")


def _record_decision(run: ResearchRun, opened: OpenPause, pause: Pause) -> None:
    state, at = run.state, opened.moment
    if pause.phase != Phase.SYNTHESIS or pause.action is Action.RETRY:
        run.decide(AgentRole.SUPERVISOR, pause.action.value, pause.rationale, {}, {"score": pause.score}, at)
        return
    inputs = {
        "gap_count": len(state.unaddressed_gaps()),
        "iteration": state.iteration,
        "max_iterations": run.resolved.limits.max_iterations,
    }
    iterate = pause.action is Action.ITERATE
    outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
    run.decide(AgentRole.SUPERVISOR, "decide_iteration", pause.rationale, inputs, outputs, at)
