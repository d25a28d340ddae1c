"""The strategy `reflective`: coordinate → background → plan → (step → reflect)* → write."""

from contracts.outcome import Pause, Progress
from contracts.reflective_roles import (
    COORDINATOR,
    REFLECTOR,
    RESPONDER,
    STEP_PLANNER,
    ClassifyInput,
    PlanStepsInput,
    ReflectionDecision,
    ReflectOnStepInput,
    ReflectorAnswer,
    RespondInput,
    Route,
)
from contracts.request import Mode
from contracts.roles import SYNTHESIZER
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, NodeStatus, StopReason, ThinkMode
from workflows.phases.analysis import analyze
from workflows.phases.asking import approval_comes
from workflows.phases.pause import call_hook
from workflows.phases.role_inputs import write_input
from workflows.rules.gaps import STEER
from workflows.rules.report_check import report_issues
from workflows.rules.sub_queries import ENOUGH
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.reflective.background import investigate
from workflows.strategies.reflective.reflective_position import (
    ReflectivePosition,
    StepReflection,
    UnitKind,
    position_of,
)
from workflows.strategies.reflective.routing import limits_choice, only_step, route_of
from workflows.strategies.reflective.step_decision import decide_step, fewest_steps, may_adjust
from workflows.strategies.reflective.step_progress import (
    LABELS,
    named_step,
    progress_of,
    step_summary,
    unit_summary,
)
from workflows.strategies.reflective.step_research import open_queries, research_step
from workflows.strategies.reflective.steps import (
    completed_steps,
    pending_steps,
    room_for_steps,
    step_node,
    steps_of,
    summaries_of,
    with_new_steps,
    with_wish,
    without_steps,
)


class ReflectiveStrategy:
    """One unit per call: coordination, background, plan, one step, report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = position_of(run.state)
        run.choose_limits(position.choice)
        self._take_wishes(run, position)
        if position.finished:
            return Finished(self._stop_reason(run.state))
        kind = position.next_unit
        name, label = self._name(run.state, kind)
        run.state.phase = name
        await run.watchers.enter_phase(run)
        step = named_step(run.state, name) if kind is UnitKind.STEP else None
        started = f"{name}: {step.text}" if step else name
        run.note("phase.started", started, phase=name, label=label, iteration=run.state.iteration)
        work = {
            UnitKind.COORDINATION: self._coordinate,
            UnitKind.BACKGROUND: investigate,
            UnitKind.PLANNING: self._plan,
            UnitKind.STEP: self._research,
            UnitKind.SYNTHESIS: self._write,
            UnitKind.ANSWER: self._answer,
        }[kind]
        await work(run)
        summary = step_summary(run.state, name) if kind is UnitKind.STEP else unit_summary(run.state, kind)
        run.note("phase.finished", summary or name, phase=name, summary=summary)
        return Unit(name=name, iteration_ended=kind is UnitKind.STEP)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """No rule judges a unit but the report's own check; a reflector does after each step."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Reflect where a step was done, let the hook speak, and move on."""
        position = position_of(run.state)
        name, kind = opened.unit.name, position.next_unit
        await call_hook(run, name, f"The unit {name} is done: {progress_of(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        if kind is UnitKind.STEP:
            pause = await self._after_step(run, opened, position)
        elif kind is UnitKind.SYNTHESIS:
            pause = self._after_report(run, opened, position)
        elif kind is UnitKind.ANSWER:
            position.finished = True
        elif kind is UnitKind.COORDINATION:
            position.next_unit = {
                Route.DIRECT: UnitKind.ANSWER,
                Route.QUICK: UnitKind.PLANNING,
                # Before a plan is approved nothing is searched.
                Route.DEEP: UnitKind.PLANNING if approval_comes(run.state) else UnitKind.BACKGROUND,
            }[position.route]
        elif kind is UnitKind.BACKGROUND:
            position.next_unit = UnitKind.PLANNING
        else:
            position.next_unit = UnitKind.STEP if pending_steps(run.state.plan) else UnitKind.SYNTHESIS
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Steps that are left go on, but for those that a reflection left out; a finished report is written anew."""
        position = position_of(state)
        left_out = [step for step in steps_of(state.plan) if step.id in position.skipped]
        update = {"status": NodeStatus.SKIPPED, "status_reason": ENOUGH}
        state.plan = state.plan.with_nodes(*(step.model_copy(update=update) for step in left_out))
        # A search that failed is made again, so its step is not over.
        lacking = [step for step in completed_steps(state.plan) if open_queries(state, step)]
        state.plan = state.plan.with_nodes(
            *(step.model_copy(update={"status": NodeStatus.EXECUTING}) for step in lacking)
        )
        unheard = [opened for opened in state.open_pauses if opened.unit.iteration_ended]
        state.open_pauses = [] if redo_analysis or lacking else unheard
        if position.next_unit in (UnitKind.STEP, UnitKind.SYNTHESIS):
            left = pending_steps(state.plan) or redo_analysis or state.open_pauses
            position.next_unit = UnitKind.STEP if left else UnitKind.SYNTHESIS
        position.finished, position.rewritten = False, False
        if position.assumption:
            state.limitations.append(position.assumption)

    def replan(self, state: ResearchState) -> None:
        """Planning is done again, with what the person said as its guidance."""
        position = position_of(state)
        position.next_unit, position.feedback = UnitKind.PLANNING, "a person wants another plan"

    def progress(self, state: ResearchState) -> Progress:
        """Coordination, background, plan, each step, report."""
        return progress_of(state)

    # --- units -----------------------------------------------------------------------------------------------------
    async def _coordinate(self, run: ResearchRun) -> None:
        """Decide how much ceremony the question gets; a mode that the request names is not decided anew."""
        resolved, position = run.resolved, position_of(run.state)
        if resolved.mode in (Mode.DIRECT, Mode.QUICK):
            position.route = Route(resolved.mode.value)
            return
        may_answer = resolved.mode is Mode.AUTO and resolved.engine is EngineKind.MODEL
        request = ClassifyInput(may_answer=may_answer, context=resolved.context, system_prompt=resolved.system_prompt)
        output = await run.ask(COORDINATOR, "classify", request)
        position.route = route_of(output, resolved.mode)
        position.choice, position.brief = limits_choice(output, position.route), output.brief
        run.choose_limits(position.choice)
        outputs = {"route": position.route.value, "complexity": output.complexity.value, "choice": position.choice}
        run.decide(COORDINATOR.name, "route", output.reasoning, {"mode": resolved.mode.value}, outputs)
        if output.is_ambiguous:
            # Nobody is asked here: what was assumed instead is for the reader to know.
            asked = "; ".join(output.clarifying_questions) or "it can be read in several ways"
            position.assumption = f"The question was taken as it stands, though it leaves open: {asked}"[:400]
            run.state.limitations.append(position.assumption)

    async def _plan(self, run: ResearchRun) -> None:
        state, limits, position = run.state, run.resolved.limits, position_of(run.state)
        if position.route is Route.QUICK:
            state.plan = with_new_steps(state.plan, run.resolved.query, "", [only_step(run.resolved.query)])
            return
        done, room = completed_steps(state.plan), max(1, room_for_steps(state.plan, limits.max_steps))
        request = PlanStepsInput(
            system_prompt=run.resolved.system_prompt,
            corpus=run.resolved.corpus,
            brief=position.brief,
            hits=position.background,
            steps=summaries_of(state, NodeStatus.COMPLETED, NodeStatus.FAILED),
            feedback=position.feedback,
            suggested_changes=position.suggested_changes,
            fewest=min(room, max(1, limits.min_steps - len(done))),
            most=room,
        )
        output = await run.ask(STEP_PLANNER, "plan", request)
        fresh = [step_node(draft, state.iteration) for draft in output.steps]
        if output.has_enough_context and state.findings:
            fresh = []
            self._leave_out_the_rest(state)
            run.decide(STEP_PLANNER.name, "enough_context", output.thought)
        elif output.has_enough_context:
            run.decide(STEP_PLANNER.name, "enough_context_ignored", "nothing has been found yet")
        if fresh:
            state.plan = with_new_steps(state.plan, output.title, output.thought, fresh)
        position.feedback, position.suggested_changes = "", []
        run.note(
            "plan.drafted",
            plural(len(steps_of(state.plan)), "step"),
            count=len(steps_of(state.plan)),
            version=state.plan.version,
        )

    async def _research(self, run: ResearchRun) -> None:
        left = pending_steps(run.state.plan)
        run.state.draft = None  # it does not know what this step finds
        if not left:
            await analyze(run)  # what an earlier end had analyzed in haste
            return
        await research_step(run, left[0])

    async def _write(self, run: ResearchRun) -> None:
        output = await run.ask(SYNTHESIZER, "write", write_input(run, issues=run.issues(UnitKind.SYNTHESIS)))
        run.state.draft = output.draft
        run.note("report.updated", f"{output.draft.characters} characters", characters=output.draft.characters)

    async def _answer(self, run: ResearchRun) -> None:
        output = await run.ask(RESPONDER, "answer", RespondInput(context=run.resolved.earlier_turns))
        by_model = output.account.engine is EngineKind.MODEL
        run.state.draft = output.draft.model_copy(update={"direct": by_model, "empty": not by_model})

    # --- pauses ----------------------------------------------------------------------------------------------------
    async def _after_step(self, run: ResearchRun, opened: OpenPause, position: ReflectivePosition) -> Pause:
        state, step = run.state, named_step(run.state, opened.unit.name)
        said = await self._reflect(run, position)
        made = decide_step(state, run.resolved.limits, step.text if step else opened.unit.name, said)
        position.reflections.append(made)
        self._record(run, made, said)
        action = Action.PROCEED
        if made.decision is ReflectionDecision.ADJUST:
            position.feedback, position.suggested_changes = made.reasoning, said.suggested_changes if said else []
            position.next_unit, action = UnitKind.PLANNING, Action.ITERATE
            state.start_new_iteration()
            state.candidates = []
        elif made.decision is ReflectionDecision.COMPLETE:
            self._leave_out_the_rest(state)
            wished = pending_steps(state.plan)
            position.next_unit = UnitKind.STEP if wished else UnitKind.SYNTHESIS
            action = Action.PROCEED if wished else Action.COMPLETE
        return Pause(phase=opened.unit.name, action=action, rationale=made.reasoning)

    async def _reflect(self, run: ResearchRun, position: ReflectivePosition) -> ReflectorAnswer | None:
        think, limits = run.resolved.gates.think, run.resolved.limits
        if think is ThinkMode.OFF or position.route is Route.QUICK:
            return None
        state = run.state
        request = ReflectOnStepInput(
            steps=summaries_of(state),
            pending=[step.text for step in pending_steps(state.plan)],
            source_titles=[source.title for source in state.readable_sources()],
            open_gaps=[gap.description for gap in state.unaddressed_gaps()],
            completed=len(completed_steps(state.plan)),
            fewest_steps=fewest_steps(state, limits),
            may_adjust=may_adjust(state, limits),
        )
        number = len(position.reflections) + 1
        by_rules = EngineKind.EXTRACTIVE if think is ThinkMode.RULES else None
        return await run.ask(REFLECTOR, f"reflect/{number}", request, by_rules)

    def _leave_out_the_rest(self, state: ResearchState) -> None:
        state.plan, left_out = without_steps(state.plan, ENOUGH)
        position_of(state).skipped += left_out

    def _take_wishes(self, run: ResearchRun, position: ReflectivePosition) -> None:
        """What a person asked for since the plan was made becomes the next step, as long as one is left."""
        state = run.state
        if position.route is not Route.DEEP or position.next_unit not in (UnitKind.STEP, UnitKind.SYNTHESIS):
            return
        taken = {node.gap_id for node in state.plan.nodes}
        for gap in state.unaddressed_gaps():
            if gap.origin != STEER or gap.id in taken:
                continue
            before = state.plan
            state.plan, gone = with_wish(before, gap, state.iteration, run.resolved.limits.max_steps)
            if state.plan is not before:
                outputs = {"instead_of": gone.text} if gone else {}
                run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id}, outputs)
                position.next_unit, position.finished = UnitKind.STEP, False

    def _record(self, run: ResearchRun, made: StepReflection, said: ReflectorAnswer | None) -> None:
        outputs: dict[str, object] = {"decision": made.decision.value}
        if made.coerced_from is not None:
            outputs["coerced_from"] = made.coerced_from.value
        if said is not None and said.suggested_changes:
            outputs["suggested_changes"] = [text[:200] for text in said.suggested_changes]
        completed = len(completed_steps(run.state.plan))
        run.decide(REFLECTOR.name, made.decision.value, made.reasoning, {"completed_steps": completed}, outputs)

    def _after_report(self, run: ResearchRun, opened: OpenPause, position: ReflectivePosition) -> Pause:
        issues = report_issues(run.state)
        if issues and not position.rewritten and run.resolved.engine is EngineKind.MODEL:
            position.rewritten = True
            why = "; ".join(issue.message for issue in issues)
            return Pause(phase=opened.unit.name, action=Action.RETRY, rationale=why[:500])
        position.finished = True
        return Pause(phase=opened.unit.name, action=Action.COMPLETE)

    def _name(self, state: ResearchState, kind: UnitKind) -> tuple[str, str]:
        """Name and label of a unit; steps are numbered by their place in the plan."""
        if kind is not UnitKind.STEP:
            return kind.value, LABELS[kind]
        left = pending_steps(state.plan)
        steps = [step.id for step in steps_of(state.plan)]
        number = steps.index(left[0].id) + 1 if left else len(steps)
        return f"{UnitKind.STEP}-{number}", f"step {number}"

    def _stop_reason(self, state: ResearchState) -> StopReason:
        if state.draft is not None and state.draft.direct:
            return StopReason.ANSWERED_DIRECTLY
        if not state.has_unresolved_gaps():
            return StopReason.NO_OPEN_GAPS
        return StopReason.COVERAGE_SUFFICIENT if position_of(state).skipped else StopReason.NO_ACTIONABLE_GAPS
