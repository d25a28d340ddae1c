"""The strategy `supervisor`: plan → gather → analyze → synthesize → (refine → gather …)."""

from typing import Any

from contracts.outcome import Pause, Progress
from contracts.plan import PlanNode
from contracts.roles import PLANNER, REFINER, GapAssessment, PlanInput
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, GapStatus, Phase, StopReason
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import refine_input
from workflows.phases.writing import write_report
from workflows.rules.gaps import apply_assessments, asked_for
from workflows.rules.sub_queries import follow, follow_ups, plan_sub_queries, unread_candidates
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.supervisor.iteration import should_iterate, stop_reason_after_synthesis
from workflows.strategies.supervisor.phase_pause import conclude, evaluate_phase
from workflows.strategies.supervisor.phase_progress import LABELS, phase_summary, progress_of
from workflows.strategies.supervisor.reposition import reposition
from workflows.strategies.supervisor.supervisor_position import position_of

FOLLOWING = {
    Phase.PLANNING: Phase.GATHERING,
    Phase.GATHERING: Phase.ANALYSIS,
    Phase.ANALYSIS: Phase.SYNTHESIS,
}
"""The transitions without a choice."""


class SupervisorStrategy:
    """One phase per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Go where the last pause leads, and do that phase."""
        stop = self._move(run)
        if stop is not None:
            return Finished(stop)
        phase = position_of(run.state).next_phase
        run.state.phase = phase
        await run.watchers.enter_phase(run)
        again = run.retries(phase)
        text = f"{phase}{' again' if again else ''}, iteration {run.state.iteration}"
        run.note("phase.started", text, phase=phase, label=LABELS[phase], iteration=run.state.iteration, again=again)
        work = {
            Phase.PLANNING: self._plan,
            Phase.GATHERING: self._gather,
            Phase.ANALYSIS: self._analyze,
            Phase.SYNTHESIS: self._synthesize,
            Phase.REFINEMENT: self._refine,
        }[phase]
        done = await work(run)
        run.note(
            "phase.finished", phase_summary(run.state, phase), phase=phase, summary=phase_summary(run.state, phase)
        )
        return done

    def _move(self, run: ResearchRun) -> StopReason | None:
        """Apply the last pause to the position, by the transition table of the design."""
        state, position, pause = run.state, position_of(run.state), run.state.pause
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
            run.note("phase.finished", f"iteration {state.iteration} begins", phase=Phase.REFINEMENT)
        return None

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """The gate of the phase, and whether a gathering may begin while the model reflects."""
        return evaluate_phase(run, unit)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Reflection, hook, decision, after every phase."""
        return await conclude(run, opened)

    def resumed(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """An unfinished phase is done again; a finished run is decided again under the new limits."""
        reposition(state, redo_analysis=redo_analysis)

    def plan_anew(self, state: ResearchState) -> None:
        """Planning is done again, with what the person said as its guidance."""
        position_of(state).next_phase = Phase.PLANNING
        state.pause = Pause(phase=Phase.PLANNING, action=Action.RETRY, rationale="a person wants another plan")

    def progress(self, state: ResearchState) -> Progress:
        """The phases of the iteration, in the order of the loop."""
        return progress_of(state)

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
        if state.sources or state.candidates:
            # A late reflection wants another plan: what was found for the first one is found for nothing.
            state.sources, state.aliases, state.candidates, state.duplicates = {}, {}, [], 0
        run.draft_plan(output.research_brief, queries)
        return Unit(name=Phase.PLANNING, can_change=changed and resolved.engine is EngineKind.MODEL)

    async def _gather(self, run: ResearchRun) -> Unit:
        state = run.state
        retrying = run.retries(Phase.GATHERING)
        pending = state.pending_sub_queries()
        again = [query for query in state.plan.sub_queries if query.iteration == state.iteration]
        chosen = pending or (again if retrying else [])
        number = run.decide(AgentRole.GATHERER, "execute_gathering", "", {"sub_queries": len(chosen)})
        before = len(state.readable_sources())
        await Gathering(run, chosen).carry_out()
        run.decided(number, {"new_sources": len(state.readable_sources()) - before})
        return Unit(name=Phase.GATHERING, can_change=bool(unread_candidates(state, run.resolved.limits)))

    async def _analyze(self, run: ResearchRun) -> Unit:
        await analyze(run, again=run.retries(Phase.ANALYSIS))
        return Unit(name=Phase.ANALYSIS, can_change=run.resolved.engine is EngineKind.MODEL)

    async def _synthesize(self, run: ResearchRun) -> Unit:
        draft = await write_report(run, run.issues(Phase.SYNTHESIS))
        run.state.draft = draft
        run.state.report_improvements = []
        run.state.candidates = []  # what was found and not read only mattered until here
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)
        return Unit(name=Phase.SYNTHESIS, can_change=run.resolved.engine is EngineKind.MODEL, iteration_ended=True)

    async def _refine(self, run: ResearchRun) -> Unit:
        state = run.state
        output = await run.ask(REFINER, "refine", refine_input(run))
        state.gaps = apply_assessments(state.gaps, output.gap_analysis)
        state.report_improvements = output.report_improvements
        advice = output.iteration_recommendation
        position_of(state).recommended = advice.should_iterate or asked_for(state.gaps)
        limit = run.resolved.limits.max_sub_queries
        # What is not going to be searched is not planned: its gap stays stated instead.
        wanted = position_of(state).recommended and should_iterate(state)
        fresh = follow_ups(state, output.gap_analysis, advice.priority_gaps, limit) if wanted else []
        follow(state, fresh)
        self._close_hopeless(run, output.gap_analysis, fresh)
        run.note("plan.drafted", plural(len(fresh), "follow-up query"), count=len(fresh))
        return Unit(name=Phase.REFINEMENT, can_change=False)

    def _close_hopeless(self, run: ResearchRun, reviewed: list[GapAssessment], fresh: list[PlanNode]) -> None:
        """Record each gap that the refiner found unaddressable: every change of a gap is a decision."""
        pursued = {query.gap_id for query in fresh}
        for gap in run.state.gaps:
            if gap.status is GapStatus.UNADDRESSABLE and gap.id in {item.gap_id for item in reviewed}:
                outputs: dict[str, Any] = {"status": gap.status.value}
                run.decide(AgentRole.REFINER, "gap_unaddressable", gap.description, {"gap_id": gap.id}, outputs)
            elif gap.id in pursued:
                outputs = {"sub_queries": [query.id for query in fresh if query.gap_id == gap.id]}
                run.decide(AgentRole.REFINER, "gap_pursued", gap.description, {"gap_id": gap.id}, outputs)
