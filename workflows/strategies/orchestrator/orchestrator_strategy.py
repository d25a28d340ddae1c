"""The strategy `orchestrator`: plan → cycles of agents side by side → report."""

from contracts.orchestrator_roles import OUTLINER, OutlineInput
from contracts.outcome import Pause, Progress
from contracts.plan import Plan
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import NATURAL_STOPS, Action, AgentRole, EngineKind, StopReason
from workflows.phases.pause import call_hook
from workflows.phases.writing import write_report
from workflows.rules.gaps import STEER
from workflows.rules.report_check import report_issues
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.cycle import USED_UP, work_cycle
from workflows.strategies.orchestrator.cycle_rules import deciding_cycles
from workflows.strategies.orchestrator.orchestrator_position import CycleUnit, OrchestratorPosition, position_of
from workflows.strategies.orchestrator.orchestrator_progress import (
    LABELS,
    cycle_summary,
    progress_of,
    unit_summary,
)
from workflows.strategies.orchestrator.task_nodes import (
    MOST_STEPS,
    as_resumed,
    spent_limit,
    step_node,
    steps_of,
    unserved,
    with_queries_as_steps,
    with_wish,
)
from workflows.strategies.protocol import Finished


class OrchestratorStrategy:
    """One unit per call: the plan, one cycle, the report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = position_of(run.state)
        self._take_wishes(run, position)
        if position.finished:
            return Finished(self._stop_reason(run.state, position))
        kind = position.next_unit
        name, label = self._name(position, kind)
        run.state.phase = name
        await run.watchers.enter_phase(run)
        run.note("phase.started", name, phase=name, label=label, iteration=run.state.iteration)
        work = {
            CycleUnit.PLANNING: self._plan,
            CycleUnit.CYCLE: self._cycle,
            CycleUnit.SYNTHESIS: self._write,
        }[kind]
        await work(run)
        summary = (
            unit_summary(run.state, kind) if kind is not CycleUnit.CYCLE else cycle_summary(run.state, position.cycle)
        )
        run.note("phase.finished", summary or name, phase=name, summary=summary)
        return Unit(name=name, iteration_ended=kind is CycleUnit.CYCLE)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Reports of agents are judged by rules as they come; the draft by its check."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Let the hook speak, and move on."""
        position = position_of(run.state)
        name, kind = opened.unit.name, position.next_unit
        await call_hook(run, name, f"The unit {name} is done: {progress_of(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        if kind is CycleUnit.PLANNING:
            position.next_unit = CycleUnit.CYCLE
        elif kind is CycleUnit.CYCLE:
            pause = self._after_cycle(run, name, position)
        else:
            pause = self._after_report(run, name, position)
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Agents that were cut off get their tasks again, steps whose agents failed wait for others."""
        del redo_analysis  # agents analyze what they read
        position = position_of(state)
        state.plan = as_resumed(state, position.skipped)
        state.open_pauses = [opened for opened in state.open_pauses if opened.unit.iteration_ended]
        cycles_left = state.resolved is not None and position.cycle < deciding_cycles(state.resolved.limits)
        left = unserved(state.plan) or state.open_pauses or position.ended == USED_UP
        if position.next_unit is not CycleUnit.PLANNING and cycles_left and left:
            position.next_unit, position.ended = CycleUnit.CYCLE, ""
            position.goes_on = position.transcript is not None and not position.is_under_way
        position.finished, position.rewritten = False, False

    def replan(self, state: ResearchState) -> None:
        """Planning is done again, with what the person said as its guidance."""
        position_of(state).next_unit = CycleUnit.PLANNING

    def progress(self, state: ResearchState) -> Progress:
        """The plan, each cycle, the report."""
        return progress_of(state)

    # --- units -----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> None:
        resolved, state = run.resolved, run.state
        request = OutlineInput(
            system_prompt=resolved.system_prompt,
            context=resolved.earlier_turns,
            corpus=resolved.corpus,
            most=min(MOST_STEPS, resolved.limits.max_steps or MOST_STEPS),
            previous=[step.text for step in steps_of(state.plan)],
        )
        output = await run.ask(OUTLINER, "plan", request)
        steps = [step_node(step) for step in output.steps]
        state.plan = Plan(version=state.plan.version + 1, brief=output.approach, nodes=steps)
        run.note("plan.drafted", plural(len(steps), "step"), count=len(steps), version=state.plan.version)

    async def _cycle(self, run: ResearchRun) -> None:
        run.state.plan = with_queries_as_steps(run.state.plan)
        run.state.draft = None  # it does not know what these agents find
        await work_cycle(run)

    async def _write(self, run: ResearchRun) -> None:
        run.state.draft = draft = await write_report(run, run.issues(CycleUnit.SYNTHESIS))
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)

    # --- pauses ----------------------------------------------------------------------------------------------------
    def _after_cycle(self, run: ResearchRun, name: str, position: OrchestratorPosition) -> Pause:
        if position.ended:
            position.next_unit = CycleUnit.SYNTHESIS
            return Pause(phase=name, action=Action.PROCEED, rationale=position.ended)
        run.state.start_new_iteration()
        return Pause(phase=name, action=Action.ITERATE)

    def _after_report(self, run: ResearchRun, name: str, position: OrchestratorPosition) -> Pause:
        issues = report_issues(run.state)
        if issues and not position.rewritten and run.resolved.engine is EngineKind.MODEL:
            position.rewritten = True
            why = "; ".join(issue.message for issue in issues)
            return Pause(phase=name, action=Action.RETRY, rationale=why[:500])
        position.finished = True
        return Pause(phase=name, action=Action.COMPLETE)

    # --- parts -----------------------------------------------------------------------------------------------------
    def _take_wishes(self, run: ResearchRun, position: OrchestratorPosition) -> None:
        """What a person asked for since the plan was made becomes a step of it, as long as a cycle is left."""
        state = run.state
        if position.next_unit is CycleUnit.PLANNING or position.finished:
            return
        if position.cycle >= deciding_cycles(run.resolved.limits):
            return
        taken = {node.gap_id for node in state.plan.nodes}
        for gap in state.unaddressed_gaps():
            if gap.origin == STEER and gap.id not in taken:
                state.plan = with_wish(state.plan, gap)
                run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
                position.next_unit, position.ended = CycleUnit.CYCLE, ""

    def _name(self, position: OrchestratorPosition, kind: CycleUnit) -> tuple[str, str]:
        if kind is not CycleUnit.CYCLE:
            return kind.value, LABELS[kind]
        return f"{kind.value}-{position.cycle + 1}", f"{LABELS[kind]} {position.cycle + 1}"

    def _stop_reason(self, state: ResearchState, position: OrchestratorPosition) -> StopReason:
        if not state.findings:
            # Agents that were cut short say nothing about what is to be found.
            reasons = [record.result.stop_reason for record in state.agents if record.result is not None]
            return next((reason for reason in reasons if reason not in NATURAL_STOPS), StopReason.NO_ACTIONABLE_GAPS)
        if (spent := spent_limit(state)) is not None:
            return spent
        if position.ended == USED_UP:
            return StopReason.MAX_ITERATIONS
        return StopReason.COVERAGE_SUFFICIENT if state.has_unresolved_gaps() else StopReason.NO_OPEN_GAPS
