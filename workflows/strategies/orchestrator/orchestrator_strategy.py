"""The strategy `orchestrator`: plan → cycles of agents in parallel → report."""

from contracts.orchestrator_roles import OUTLINER, OutlineInput
from contracts.outcome import Pause, Progress
from contracts.plan import Plan
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import NATURAL_STOPS, Action, AgentRole, StopReason
from workflows.phases.pause import call_hook
from workflows.phases.writing import write_report
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.cycle import USED_UP, work_cycle
from workflows.strategies.orchestrator.orchestrator_position import (
    CycleUnit,
    OrchestratorPosition,
    deciding_cycles,
    name_of_unit,
    progress_of,
    summary_of_unit,
)
from workflows.strategies.orchestrator.tasks import (
    MOST_STEPS,
    resumed_plan,
    spent_limit,
    step_node,
    unserved,
    with_queries_as_steps,
    with_requested_step,
)
from workflows.strategies.protocol import Finished
from workflows.strategies.units import carry_out, judge_report, unplanned_wishes


class OrchestratorStrategy:
    """One unit per call: the plan, one cycle, the report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = OrchestratorPosition.of(run.state)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state, position))
        kind = position.next_unit
        work = {CycleUnit.PLANNING: self._plan, CycleUnit.CYCLE: self._cycle, CycleUnit.SYNTHESIS: self._write}[kind]
        name, label = name_of_unit(position)
        await carry_out(run, name, label, work, lambda: summary_of_unit(run.state, kind))
        return Unit(name=name, iteration_ended=kind is CycleUnit.CYCLE)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open a pause without a gate: reports of agents are judged as they come, the draft in `pause`."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook, and move on."""
        position, name = OrchestratorPosition.of(run.state), opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {progress_of(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        match position.next_unit:
            case CycleUnit.PLANNING:
                position.next_unit = CycleUnit.CYCLE
            case CycleUnit.CYCLE if position.ended:
                position.next_unit = CycleUnit.SYNTHESIS
                pause = Pause(phase=name, action=Action.PROCEED, rationale=position.ended)
            case CycleUnit.CYCLE:
                run.state.start_new_iteration()
                pause = Pause(phase=name, action=Action.ITERATE)
            case CycleUnit.SYNTHESIS:
                pause = judge_report(run, position, name)
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Give tasks that were cut off again, and leave steps whose agents failed to other agents."""
        del redo_analysis  # agents analyze the pages that they read
        position = OrchestratorPosition.of(state)
        state.plan = resumed_plan(state, position.skipped)
        state.open_pauses = [opened for opened in state.open_pauses if opened.unit.iteration_ended]
        has_cycles = state.resolved is not None and position.cycle < deciding_cycles(state.resolved.limits)
        has_work = unserved(state.plan) or state.open_pauses or position.ended == USED_UP
        if position.next_unit is not CycleUnit.PLANNING and has_cycles and has_work:
            position.next_unit, position.ended = CycleUnit.CYCLE, ""
            position.resumes = position.transcript is not None and not position.is_under_way
        position.finished, position.rewritten = False, False

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        OrchestratorPosition.of(state).next_unit = CycleUnit.PLANNING

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each cycle and the report."""
        return progress_of(state)

    # --- units -----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> None:
        resolved, state = run.resolved, run.state
        request = OutlineInput(
            system_prompt=resolved.system_prompt,
            context=resolved.earlier_turns,
            corpus=resolved.corpus,
            most=min(MOST_STEPS, resolved.limits.max_steps or MOST_STEPS),
            previous=[step.text for step in state.plan.steps],
        )
        output = await run.ask(OUTLINER, "plan", request)
        steps = [step_node(step) for step in output.steps]
        state.plan = Plan(version=state.plan.version + 1, brief=output.approach, nodes=steps)
        run.note("plan.drafted", plural(len(steps), "step"), count=len(steps), version=state.plan.version)

    async def _cycle(self, run: ResearchRun) -> None:
        run.state.plan = with_queries_as_steps(run.state.plan)
        run.state.draft = None  # it lacks the findings of these agents
        await work_cycle(run)

    async def _write(self, run: ResearchRun) -> None:
        run.state.draft = draft = await write_report(run, run.issues(CycleUnit.SYNTHESIS))
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)


def _plan_requested_steps(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Add a step for each request of a person since the plan, while cycles are left."""
    state, is_planned = run.state, position.next_unit is not CycleUnit.PLANNING
    if not is_planned or position.finished or position.cycle >= deciding_cycles(run.resolved.limits):
        return
    for gap in unplanned_wishes(state):
        state.plan = with_requested_step(state.plan, gap)
        run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
        position.next_unit, position.ended = CycleUnit.CYCLE, ""


def _stop_reason(state: ResearchState, position: OrchestratorPosition) -> StopReason:
    if not state.findings:
        # Agents that ended early prove nothing about what can be found.
        reasons = [record.result.stop_reason for record in state.agents if record.result is not None]
        return next((reason for reason in reasons if reason not in NATURAL_STOPS), StopReason.NO_ACTIONABLE_GAPS)
    if (spent := spent_limit(state)) is not None:
        return spent
    if position.ended == USED_UP:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT if state.has_unresolved_gaps() else StopReason.NO_OPEN_GAPS
