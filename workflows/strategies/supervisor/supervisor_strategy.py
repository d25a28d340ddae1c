"""The `supervisor` strategy: plan → gather → analyze → synthesize → (refine → gather …).

What nothing of a phase waits for is asked beside it: a reflection on the analysis and, where another iteration follows,
the refinement while the report is written, and the review of that report while the next analysis is made.
"""

from contextlib import suppress
from functools import partial
from typing import Final

from temporalio.exceptions import ActivityError

from contracts.evidence import ASKED_BY_PERSON, DocumentRef
from contracts.outcome import MODEL, GateResult, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import PLANNER, PlanInput
from contracts.sentences import Message
from contracts.state import OpenPause, ResearchState, Unit
from contracts.supervisor_roles import REFINER, RefineInput, SupervisorAnswer
from contracts.texts import plural, shorten
from contracts.vocabulary import TOP_CONFIDENCE, Action, AgentRole, EngineKind, GapStatus, GatePolicy, Phase, Severity
from workflows.phases.analysis import analyze
from workflows.phases.checking import review_earlier_draft
from workflows.phases.gathering import Gathering
from workflows.phases.last_look import write_last_draft
from workflows.phases.pauses import call_hook
from workflows.phases.role_inputs import to_extract
from workflows.phases.writing import write_draft
from workflows.rules.gaps import apply_assessments, own_gaps, with_gaps
from workflows.rules.sub_queries import (
    assign_readings,
    follow_ups,
    pass_over_unread,
    plan_sub_queries,
    queries_to_repeat,
    unread_candidates,
)
from workflows.run.host import beside
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.supervisor.decisions import (
    SupervisorPosition,
    apply_pause,
    decide,
    is_reflected_on,
    may_refine_beside,
    may_reflect_beside,
    open_follow_ups,
    reflection_input,
    reflection_prompt,
    should_iterate,
    take_refined,
    was_retried,
)
from workflows.strategies.supervisor.gates import GATE_SENTENCES, curable_issues, evaluate
from workflows.strategies.units import carry_out, unit_mark

LABELS: Final = {
    Phase.PLANNING: "plan",
    Phase.GATHERING: "gather",
    Phase.ANALYSIS: "analyze",
    Phase.SYNTHESIS: "write",
    Phase.REFINEMENT: "refine",
}
"""Short names for live views."""


class SupervisorStrategy(Strategy):
    """One phase per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the phase that follows from the last pause."""
        iteration = run.state.work.iteration
        stop = apply_pause(run.state)
        if stop is not None:
            return Finished(stop)
        if run.state.work.iteration > iteration:
            run.note("phase.finished", f"iteration {run.state.work.iteration} begins", phase=Phase.REFINEMENT)
        phase = SupervisorPosition.of(run.state).next_phase
        work = {
            Phase.PLANNING: self._plan,
            Phase.GATHERING: self._gather,
            Phase.ANALYSIS: self._analyze,
            Phase.SYNTHESIS: self._synthesize,
            Phase.REFINEMENT: self._refine,
        }[phase]
        again = run.retries(phase)
        title = f"{phase}{' again' if again else ''}, iteration {run.state.work.iteration}"
        label = LABELS[phase]
        return await carry_out(
            run, phase, work, lambda: phase_summary(run.state, phase), label=label, title=title, again=again
        )

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Record the gate of the phase, and prepare the question to a reflecting model."""
        phase = Phase(unit.name)
        state = run.state
        gate = evaluate(phase, state)
        question = None
        state.work.gates.append(gate)
        outputs = {"quality_ok": gate.valid, **gate.metrics}
        if phase is Phase.REFINEMENT:
            outputs["should_iterate"] = should_iterate(state)
        inputs = {"phase": phase.value, "iteration": state.work.iteration}
        reasons = "; ".join(issue.message for issue in gate.issues)
        run.decide(AgentRole.SUPERVISOR, "evaluate_phase", reasons, inputs, outputs)
        messages = [issue.message for issue in curable_issues(state, gate)]
        text = ""
        if messages and not gate.valid:
            text = f"quality check of the {phase}: {'; '.join(messages)}"
        run.note("gate.evaluated", text, phase=phase, valid=gate.valid, score=gate.quality_score, issues=messages)
        if is_reflected_on(state, gate):
            question = reflection_input(phase, state, gate)
        if phase is Phase.SYNTHESIS:
            state.evidence.report_improvements = []
        opened = OpenPause(unit=unit, gate=gate, question=question)
        return opened.with_fields(beside=may_reflect_beside(state, opened))

    def take_reflection(self, run: ResearchRun, opened: OpenPause) -> Pause | None:
        """Apply a reflection on the analysis after the report was written beside it; a retry undoes the report."""
        if opened.gate is None or opened.reflection is None:
            return None
        _apply_reflection(run, opened.reflection, Phase(opened.unit.name))
        pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
        if pause.action is not Action.RETRY:
            return None
        _note_issues(run, opened, opened.gate, pause)
        _record_decision(run, pause)
        return pause

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Apply the reflection, call the hook, decide, record. Raises ValueError for a pause without a gate."""
        if opened.gate is None:
            raise ValueError("this strategy opens no pause without a gate")
        phase = Phase(opened.unit.name)
        if opened.reflection is not None:
            _apply_reflection(run, opened.reflection, phase)
        await call_hook(run, phase, reflection_prompt(phase, run.state))
        pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
        _note_issues(run, opened, opened.gate, pause)
        _record_decision(run, pause)
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move to the first unfinished phase; a finished run may iterate again under the new limits.

        A run interrupted after its last phase continues to its end.
        """
        position = SupervisorPosition.of(state)
        pause = state.work.pause
        stored_phase = position.next_phase
        if not state.work.plan.nodes:
            position.next_phase = Phase.PLANNING
            state.work.pause = None
        elif state.work.pending_sub_queries() and stored_phase != Phase.PLANNING:
            position.next_phase = Phase.GATHERING
            state.work.pause = None
        elif redo_analysis:
            position.next_phase = Phase.ANALYSIS
            state.work.pause = None
        elif pause is not None and pause.phase == stored_phase and pause.action is Action.COMPLETE:
            if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
                state.work.pause = pause.with_fields(action=Action.ITERATE)
            elif state.work.ending is not None:
                position.next_phase = Phase.SYNTHESIS
                state.work.pause = None
        if position.next_phase != stored_phase or redo_analysis:
            state.work.open_pause = state.work.pending_reflection = None

    def replan(self, state: ResearchState) -> None:
        """Plan again, with the person's message as guidance."""
        SupervisorPosition.of(state).next_phase = Phase.PLANNING
        state.work.pending_reflection = None
        state.work.pause = Pause(phase=Phase.PLANNING, action=Action.RETRY, rationale="a person wants another plan")

    def progress(self, state: ResearchState) -> Progress:
        """Return the phases of the current iteration, in loop order."""
        current = list(Phase).index(SupervisorPosition.read(state).next_phase)
        # A run whose plan was not approved has a result but no report.
        reported = state.work.result is not None and state.work.result.files is not None
        units = []
        for index, phase in enumerate(Phase):
            finished = reported or (index == current and state.work.open_pause is not None)
            started = state.work.phase is not None and state.work.result is None
            mark = unit_mark(index, current, finished=finished, started=started)
            detail = ""
            if finished or index < current:
                detail = phase_summary(state, phase)
            units.append(UnitProgress(name=phase, label=LABELS[phase], mark=mark, detail=detail))
        max_iterations = state.work.resolved.limits.max_iterations if state.work.resolved else 1
        return Progress(summary=f"iteration {state.work.iteration} of {max_iterations}", units=units)

    # --- phases ----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> Unit:
        state = run.state
        resolved = run.resolved
        limit = resolved.limits.max_sub_queries
        request = PlanInput(
            min_sub_queries=min(2, limit),
            max_sub_queries=limit,
            previous=[query.text for query in state.work.plan.sub_queries],
            issues=run.issues(Phase.PLANNING),
        )
        output = await run.ask(PLANNER, "plan", request)
        queries = plan_sub_queries(output.sub_queries, state.work.iteration, limit)
        changed = [query.text for query in queries] != [query.text for query in state.work.plan.sub_queries]
        run.draft_plan(output.research_brief, queries)
        return Unit(name=Phase.PLANNING, can_change=changed and resolved.engine is EngineKind.MODEL)

    async def _gather(self, run: ResearchRun) -> Unit:
        state = run.state
        searched = [query for query in state.work.plan.sub_queries if not query.sections]
        repeated = [query for query in searched if query.iteration == state.work.iteration]
        queries = state.work.pending_sub_queries() or (repeated if run.retries(Phase.GATHERING) else [])
        number = run.decide(AgentRole.GATHERER, "execute_gathering", "", {"sub_queries": len(queries)})
        source_count = len(state.evidence.readable_sources())
        await Gathering(run, queries).carry_out()
        run.decided(number, {"new_sources": len(state.evidence.readable_sources()) - source_count})
        return Unit(name=Phase.GATHERING, can_change=bool(unread_candidates(state, run.resolved.limits)))

    async def _analyze(self, run: ResearchRun) -> Unit:
        state = run.state
        take_refined(state)  # what was judged of an earlier analysis
        again = run.retries(Phase.ANALYSIS)
        if again or state.work.iteration == 1:
            await analyze(run, again=again)
        else:
            await beside(run.host, partial(analyze, run), partial(_review_earlier_report, run))
        can_change = run.resolved.engine is EngineKind.MODEL and bool(queries_to_repeat(state))
        return Unit(name=Phase.ANALYSIS, can_change=can_change)

    async def _synthesize(self, run: ResearchRun) -> Unit:
        if may_refine_beside(run.state):
            # The refiner comes second, so that it takes no room from the report.
            await beside(run.host, partial(write_draft, run), partial(_refine_beside, run))
        elif should_iterate(run.state):
            await write_draft(run)
        else:
            await write_last_draft(run)
        pass_over_unread(run.state)
        return Unit(name=Phase.SYNTHESIS, can_change=run.resolved.engine is EngineKind.MODEL, iteration_ended=True)

    async def _refine(self, run: ResearchRun) -> Unit:
        state = run.state
        position = SupervisorPosition.of(run.state)
        output = take_refined(state)
        if output is None:
            output = await run.ask(REFINER, "refine", _refine_input(run, state.evidence.draft_text))
        own, assessed = own_gaps(state, output.own_gaps)
        state.evidence.gaps = with_gaps(state, own)
        assessments = [*assessed, *output.gap_analysis]
        state.evidence.gaps = apply_assessments(state, assessments)
        state.evidence.report_improvements = output.report_improvements
        advice = output.iteration_recommendation
        is_requested = any(gap.origin == ASKED_BY_PERSON for gap in state.evidence.unaddressed_gaps())
        is_unread = any(gap.unread and gap.severity is not Severity.MINOR for gap in state.evidence.unaddressed_gaps())
        position.recommended = advice.should_iterate or is_requested or is_unread or bool(own)
        # Without an iteration left to search, follow-ups are not planned, and their gaps remain open.
        fresh: list[PlanNode] = []
        if position.recommended and should_iterate(state):
            limit = run.resolved.limits.max_sub_queries
            first = [*(gap.id for gap in own), *advice.priority_gaps]
            fresh = follow_ups(state, assessments, output.readings, first, limit)
            assign_readings(state, fresh)
        state.work.plan = state.work.plan.with_nodes(*fresh)
        # A repeated sub-query whose search failed before is analyzed again.
        again = {query.id for query in fresh}
        state.work.analyzed_sub_queries = [query for query in state.work.analyzed_sub_queries if query not in again]
        # Record each gap that the refiner gives up or pursues as a decision.
        reviewed = {item.gap_id for item in output.gap_analysis}
        for gap in state.evidence.gaps:
            pursued = [query.id for query in fresh if query.gap_id == gap.id]
            inputs = {"gap_id": gap.id}
            if gap.status is not GapStatus.OPEN and gap.id in reviewed:
                run.decide(AgentRole.REFINER, f"gap_{gap.status.value}", gap.description, inputs, gap.settlement)
            elif pursued:
                run.decide(AgentRole.REFINER, "gap_pursued", gap.description, inputs, {"sub_queries": pursued})
        run.note("plan.drafted", plural(len(fresh), "follow-up query"), count=len(fresh))
        return Unit(name=Phase.REFINEMENT, can_change=False)


def _refine_input(run: ResearchRun, draft: DocumentRef | None) -> RefineInput:
    state = run.state
    return RefineInput(
        gaps=state.evidence.unaddressed_gaps(),
        remaining_iterations=run.resolved.limits.max_iterations - state.work.iteration,
        most_queries=run.resolved.limits.max_sub_queries,
        draft=draft,
        source_count=len(state.evidence.readable_sources()),
        finding_count=len(state.evidence.findings),
        high_confidence_count=sum(finding.confidence in TOP_CONFIDENCE for finding in state.evidence.findings),
        asked=[query.text for query in state.work.plan.sub_queries],
        findings=state.evidence.findings,
        read_sources=[to_extract(source, to_search=False) for source in state.evidence.readable_sources()],
    )


async def _refine_beside(run: ResearchRun) -> None:
    """Have the gaps judged while the report is written; without an answer, the refinement after it asks again."""
    position = SupervisorPosition.of(run.state)
    request = _refine_input(run, None)
    with suppress(Interrupted, ActivityError):
        answer = await run.ask(REFINER, "refine", request)
        if answer.account.engine is EngineKind.MODEL:  # else there may be room for a model once the report is paid
            position.refined = answer
            position.judged_gaps = [gap.id for gap in request.gaps]


async def _review_earlier_report(run: ResearchRun) -> None:
    """Have the report of the last iteration reviewed beside the analysis of this one, for the writer of the next."""
    remarks = await review_earlier_draft(run)
    run.state.evidence.report_improvements += remarks


def phase_summary(state: ResearchState, phase: Phase) -> str:
    """Return the results of a phase in a few words."""
    evidence = state.evidence
    match phase:
        case Phase.PLANNING:
            return plural(len(state.work.plan.sub_queries), "sub-query")
        case Phase.GATHERING:
            return f"{plural(len(evidence.readable_sources()), 'source')} read"
        case Phase.ANALYSIS:
            gaps = plural(len(evidence.unaddressed_gaps()), "gap")
            return f"{plural(len(evidence.findings), 'finding')}, {gaps}"
        case Phase.SYNTHESIS:
            return f"{evidence.draft_words} words"
        case Phase.REFINEMENT:
            return plural(len(open_follow_ups(state)), "follow-up query")


def _apply_reflection(run: ResearchRun, reflection: SupervisorAnswer, phase: Phase) -> None:
    """Pass on the guidance of a reflection, close the gaps that it settles, and record it."""
    for item in reflection.guidance:
        run.guide(MODEL, item.text, phase, item.role)
    run.settle_gaps(reflection.settled_gaps, AgentRole.SUPERVISOR)
    assessment = reflection.quality_assessment
    inputs = {"phase": phase.value, "iteration": run.state.work.iteration}
    outputs = {
        "action": reflection.action.value,
        "score": assessment.score,
        "strengths": [shorten(text, 200) for text in assessment.strengths[:5]],
        "weaknesses": [shorten(text, 200) for text in assessment.weaknesses[:5]],
    }
    run.decide(AgentRole.SUPERVISOR, "reflect", reflection.rationale, inputs, outputs)


# --- records -------------------------------------------------------------------------------------------------------
def _note_issues(run: ResearchRun, opened: OpenPause, gate: GateResult, pause: Pause) -> None:
    """Record a retry, or note the issues that remain after one or that a model might have resolved with one."""
    iteration = run.state.work.iteration
    retried = was_retried(run.state, gate.phase, iteration)
    if pause.action is Action.RETRY:
        SupervisorPosition.of(run.state).retried.append(f"{gate.phase}/{iteration}")
    elif not gate.valid and gate.policy is GatePolicy.STRICT and (opened.unit.can_change or retried):
        # If the input cannot change, the sources have no more, which the report states anyway.
        for issue in curable_issues(run.state, gate):
            run.degrade(Message(GATE_SENTENCES[gate.phase], issue=issue.message))


def _record_decision(run: ResearchRun, pause: Pause) -> None:
    state = run.state
    if pause.phase != Phase.SYNTHESIS or pause.action is Action.RETRY:
        run.decide(AgentRole.SUPERVISOR, pause.action.value, pause.rationale, {}, {"score": pause.score})
        return
    inputs = {
        "gap_count": len(state.evidence.unaddressed_gaps()),
        "iteration": state.work.iteration,
        "max_iterations": run.resolved.limits.max_iterations,
    }
    iterate = pause.action is Action.ITERATE
    outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
    run.decide(AgentRole.SUPERVISOR, "decide_iteration", pause.rationale, inputs, outputs)
