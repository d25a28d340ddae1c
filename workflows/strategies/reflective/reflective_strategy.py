"""The `reflective` strategy: coordinate → background → plan → (step → reflect)* → write."""

from functools import partial
from typing import Final

from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import WITHOUT_SEARCH, Plan, PlanNode
from contracts.reflective_roles import (
    COORDINATOR,
    RESPONDER,
    STEP_PLANNER,
    ClassifyInput,
    Complexity,
    PlanStepsInput,
    RespondInput,
    StepKind,
)
from contracts.request import Depth, Mode
from contracts.sentences import Message
from contracts.state import ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vocabulary import Action, AgentRole, EngineKind, NodeStatus, StopReason
from workflows.phases.analysis import analyze
from workflows.phases.drafts import supersede_draft, take_draft
from workflows.phases.last_look import look_at_gaps
from workflows.phases.role_inputs import limit_sources
from workflows.phases.writing import write_draft
from workflows.rules.duplicates import hits_to_protect
from workflows.rules.gaps import give_up_gap
from workflows.rules.sub_queries import queries_to_analyze
from workflows.run.host import beside
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.reflective.position import ReflectivePosition, UnitKind
from workflows.strategies.reflective.reflections import reflect_on_step
from workflows.strategies.reflective.step_searches import investigate, propose_background, take_turn
from workflows.strategies.reflective.steps import (
    completed_steps,
    findings_of,
    named_step,
    open_queries,
    pending_steps,
    query_nodes,
    replaceable_steps,
    room_for_steps,
    steps_with_status,
    summarize_steps,
    with_new_steps,
)
from workflows.strategies.units import UnitStrategy, carry_out, skip_steps, step_node, unit_progress, unplanned_requests

STEP_MARKS: Final = {
    NodeStatus.EXECUTING: Mark.RUNNING,
    NodeStatus.COMPLETED: Mark.DONE,
    NodeStatus.FAILED: Mark.FAILED,
}
DEPTHS: Final = {
    Complexity.SIMPLE: Depth.LIGHT,
    Complexity.MODERATE: Depth.MEDIUM,
    Complexity.COMPLEX: Depth.EXTENDED,
}


class ReflectiveStrategy(UnitStrategy):
    """One unit per call: coordination, background, plan, one step, report."""

    position = ReflectivePosition
    planning = UnitKind.PLANNING

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the next unit."""
        position = ReflectivePosition.of(run.state)
        run.choose_limits(position.choice)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state))
        unit = position.next_unit
        work = {
            UnitKind.COORDINATION: _coordinate,
            UnitKind.BACKGROUND: investigate,
            UnitKind.PLANNING: _plan,
            UnitKind.STEP: _research,
            UnitKind.SYNTHESIS: _write,
            UnitKind.ANSWER: _answer,
        }[unit]
        name = unit.value
        label = unit.label
        title = name
        if unit is UnitKind.STEP:
            number = _step_number(run.state.work.plan)
            name = f"{unit}-{number}"
            label = f"{unit.label} {number}"
            step = named_step(run.state, name)
            title = f"{name}: {step.text}" if step else name
        await carry_out(run, name, work, lambda: describe_unit(run.state, unit, name), label=label, title=title)
        return Unit(name=name, iteration_ended=unit is UnitKind.STEP)

    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Reflect on a step, and set the next unit."""
        state = run.state
        position = ReflectivePosition.of(state)
        match position.next_unit:
            case UnitKind.STEP:
                return await reflect_on_step(run, name, position)
            case UnitKind.COORDINATION if position.route is Mode.DIRECT:
                position.next_unit = UnitKind.ANSWER
            # Nothing is searched before the plan is approved.
            case UnitKind.COORDINATION if position.route is Mode.DEEP and not state.needs_approval:
                position.next_unit = UnitKind.BACKGROUND
            case UnitKind.COORDINATION | UnitKind.BACKGROUND:
                position.next_unit = UnitKind.PLANNING
            case UnitKind.PLANNING:
                position.next_unit = UnitKind.STEP if pending_steps(state.work.plan) else UnitKind.SYNTHESIS
            case UnitKind.ANSWER:
                position.finished = True
        return Pause(phase=name, action=Action.PROCEED)

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Continue with the pending steps, except those skipped by a reflection; write a finished report again."""
        position = ReflectivePosition.of(state)
        skip_steps(state, position)
        # A failed search is repeated, so its step is not finished.
        reopened = [step for step in completed_steps(state.work.plan) if open_queries(state, step)]
        state.work.plan = state.work.plan.with_nodes(*(step.executing() for step in reopened))
        if redo_analysis or reopened or (state.work.open_pause and not state.work.open_pause.unit.iteration_ended):
            state.work.open_pause = None
        if position.next_unit in (UnitKind.STEP, UnitKind.SYNTHESIS):
            has_work = pending_steps(state.work.plan) or redo_analysis or state.work.open_pause
            position.next_unit = UnitKind.STEP if has_work else UnitKind.SYNTHESIS
        position.finished = False
        position.rewritten = False
        if position.assumption:
            state.work.limitations.append(position.assumption)

    def replan(self, state: ResearchState) -> None:
        """Plan again, with the person's message as guidance."""
        super().replan(state)
        ReflectivePosition.of(state).feedback = "a person wants another plan"

    def progress(self, state: ResearchState) -> Progress:
        """Return coordination, background, plan, each step and report; a direct answer has no steps."""
        position = ReflectivePosition.read(state)
        steps = state.work.plan.steps
        kinds = [kind for kind in UnitKind if kind is not UnitKind.STEP]
        units = {kind: unit_progress(state, position, kind, describe_unit(state, kind, kind)) for kind in kinds}
        answer = units.pop(UnitKind.ANSWER)
        if position.next_unit is UnitKind.ANSWER:
            return Progress(summary="a direct answer", units=[units[UnitKind.COORDINATION], answer])
        report = units.pop(UnitKind.SYNTHESIS)
        step_units = [_step_progress(state, step, number) for number, step in enumerate(steps, start=1)]
        ended = steps_with_status(state.work.plan, NodeStatus.COMPLETED, NodeStatus.FAILED)
        summary = ""
        if steps:
            summary = f"step {min(len(ended) + 1, len(steps))} of {len(steps)}"
        if summary and state.work.iteration > 1:
            summary += f", plan {state.work.iteration} of at most {state.resolution.limits.max_iterations}"
        return Progress(summary=summary, units=[*units.values(), *step_units, report])


def _step_number(plan: Plan) -> int:
    """Return the number of the next step, from 1 by its index in the plan; the last one's if only leftovers remain."""
    pending = pending_steps(plan)
    if not pending:
        return len(plan.steps)
    return plan.steps.index(pending[0]) + 1


def _step_progress(state: ResearchState, step: PlanNode, number: int) -> UnitProgress:
    mark = STEP_MARKS.get(step.status, Mark.WAITING)
    name = f"{UnitKind.STEP}-{number}"
    return UnitProgress(name=name, label=f"{UnitKind.STEP} {number}", mark=mark, detail=_step_detail(state, step))


def describe_unit(state: ResearchState, kind: UnitKind, name: str) -> str:
    """Return the results of a unit in a few words."""
    position = ReflectivePosition.read(state)
    match kind:
        case UnitKind.COORDINATION:
            is_deep = position.route is Mode.DEEP
            if is_deep:
                return f"{position.route.value}, {state.resolution.depth.value}"
            return position.route.value
        case UnitKind.BACKGROUND:
            return plural(len(position.background), "title")
        case UnitKind.PLANNING:
            return plural(len(state.work.plan.steps), "step")
        case UnitKind.STEP:
            step = named_step(state, name)
            return _step_detail(state, step) if step else ""
        case UnitKind.SYNTHESIS | UnitKind.ANSWER:
            return plural(state.evidence.draft_words, "word")


def _step_detail(state: ResearchState, step: PlanNode) -> str:
    match step.status:
        case NodeStatus.COMPLETED:
            count = len(findings_of(state, step))
            if step.finding_count and not count:  # all of them were known before
                return f"no new findings: {step.text}"
            return f"{plural(count, 'finding')}: {step.text}"
        case NodeStatus.FAILED:
            return f"failed ({step.error}): {step.text}"
        case NodeStatus.SKIPPED:
            return f"{step.text} (skipped)"
        case _:
            return step.text


# --- units -----------------------------------------------------------------------------------------------------
async def _coordinate(run: ResearchRun) -> None:
    """Choose a route for the question, unless the request names a mode."""
    resolved = run.resolved
    position = ReflectivePosition.of(run.state)
    if resolved.mode in (Mode.DIRECT, Mode.QUICK):
        position.route = resolved.mode
        return
    may_answer = resolved.mode is Mode.AUTO and resolved.engine is EngineKind.MODEL
    may_answer = may_answer and not resolved.protected_sources
    classify = partial(run.ask, COORDINATOR, "classify", ClassifyInput(may_answer=may_answer))
    if resolved.engine is EngineKind.MODEL and not run.state.needs_approval:
        output = await beside(run.host, classify, partial(propose_background, run))
    else:
        output = await classify()
    position.route = output.route if resolved.mode is Mode.AUTO else resolved.mode
    # The choice of limits is the mode of a short route, else the recommended depth, else the depth by complexity.
    choice: str = position.route.value
    if position.route is Mode.DEEP:
        recommended = Depth(output.recommended_depth)
        choice = (DEPTHS[output.complexity] if recommended is Depth.AUTO else recommended).value
    position.brief = output.brief
    position.choice = choice if choice in resolved.choices else ""
    run.choose_limits(choice)
    outputs = {"route": position.route.value, "complexity": output.complexity.value, "choice": position.choice}
    run.decide(COORDINATOR.name, "route", output.reasoning, {"mode": resolved.mode.value}, outputs)
    clarified = any(any(question_round.answers) for question_round in run.state.people.clarification.rounds)
    if output.is_ambiguous and not clarified:
        asked = shorten("; ".join(output.clarifying_questions), 300) or Message("several_readings")
        position.assumption = Message("taken_as_it_stands", asked=asked)
        run.state.work.limitations.append(position.assumption)


async def _plan(run: ResearchRun) -> None:
    state = run.state
    limits = run.resolved.limits
    position = ReflectivePosition.of(state)
    if position.route is Mode.QUICK:
        text = shorten(run.resolved.query, 500)
        step = step_node(text, facet=StepKind.RESEARCH.value, description=text)
        state.work.plan = with_new_steps(state.work.plan, text, [step])
        return
    room = max(1, room_for_steps(state.work.plan, limits.max_steps))
    request = PlanStepsInput(
        brief=position.brief,
        hits=position.background,
        steps=summarize_steps(state, NodeStatus.COMPLETED, NodeStatus.FAILED),
        feedback=position.feedback,
        suggested_changes=position.suggested_changes,
        fewest=min(room, max(1, limits.min_steps - len(completed_steps(state.work.plan)))),
        most=room,
    )
    output = await run.ask(STEP_PLANNER, "plan", request)
    if output.has_enough_context and state.evidence.findings:
        skip_steps(state, position, replaceable_steps(state.work.plan))
        run.decide(STEP_PLANNER.name, "enough_context", output.thought)
    else:
        if output.has_enough_context:
            run.decide(STEP_PLANNER.name, "enough_context_ignored", "nothing has been found yet")
        fresh = [
            step_node(step.title, facet=step.step_type, description=step.description, iteration=state.work.iteration)
            for step in output.steps
        ]
        if fresh:
            searches = zip(fresh, output.steps, strict=True)
            position.first_searches = {node.id: step.searches for node, step in searches if step.searches}
            brief = state.work.plan.brief or output.thought or output.title
            state.work.plan = with_new_steps(state.work.plan, brief, fresh)
    position.feedback = ""
    position.suggested_changes = []
    count = len(state.work.plan.steps)
    run.note("plan.drafted", plural(count, "step"), count=count, **state.work.plan.texts())


async def _research(run: ResearchRun) -> None:
    """Do the next step within its limits, first the searches that an interruption cut off.

    A step fails if all its searches do; a resumed run repeats it. Raises `Interrupted`.
    """
    state = run.state
    position = ReflectivePosition.of(state)
    supersede_draft(run)  # it lacks the findings of this step
    pending = pending_steps(state.work.plan)
    if not pending:
        await analyze(run)  # repeat what the end of an earlier run had analyzed without a model
        return
    step = pending[0].executing()
    if not state.work.plan.children(step):
        position.turns = 0
    state.work.plan = state.work.plan.with_nodes(step)
    # An analysis step works on sources already read, without a search, unless protected sources are still unread.
    if step.facet == StepKind.ANALYSIS.value and not hits_to_protect(state):
        # All read sources are assigned to a sub-query that counts as searched.
        node = query_nodes(step, [step.expected_contribution or step.text], state.work.iteration)[0]
        if all(known.id != node.id for known in state.work.plan.nodes):
            state.work.plan = state.work.plan.with_nodes(node.completed().with_fields(origin=WITHOUT_SEARCH))
            for source in limit_sources(state, state.evidence.readable_sources()):
                owners = [*source.sub_query_ids, node.id]
                state.evidence.sources[source.id] = source.with_fields(sub_query_ids=owners)
        await analyze(run)
    else:
        while await take_turn(run, step):
            pass
    searches = state.work.plan.children(step)
    count = sum(search.finding_count for search in searches)
    if searches and all(search.status is NodeStatus.FAILED for search in searches):
        done = step.failed(searches[0].error)
    else:
        done = step.with_fields(status=NodeStatus.COMPLETED, error=None)
    state.work.plan = state.work.plan.with_nodes(done.with_fields(finding_count=count))
    if not count:
        state.evidence.gaps = give_up_gap(state.evidence.gaps, step.gap_id)


async def _write(run: ResearchRun) -> None:
    """Write the report, after the sections that the last reflection had read further. Raises `Interrupted`."""
    if queries_to_analyze(run.state):
        await analyze(run)
    if ReflectivePosition.read(run.state).route is not Mode.QUICK:
        await look_at_gaps(run)
    await write_draft(run)


async def _answer(run: ResearchRun) -> None:
    output = await run.ask(RESPONDER, "answer", RespondInput(context=run.resolved.earlier_turns))
    by_model = output.account.engine is EngineKind.MODEL
    await take_draft(run, output.draft.with_fields(direct=by_model, empty=not by_model))


def _plan_requested_steps(run: ResearchRun, position: ReflectivePosition) -> None:
    """Add a step for each new request of a person, before all others, while steps are left.

    It may displace the last steps that have not started.
    """
    state = run.state
    if position.route is not Mode.DEEP or position.next_unit not in (UnitKind.STEP, UnitKind.SYNTHESIS):
        return
    for gap in unplanned_requests(state):
        if room := room_for_steps(state.work.plan, run.resolved.limits.max_steps):
            text = gap.suggested_queries[0]
            facet = StepKind.RESEARCH.value
            step = step_node(text, facet=facet, description=text, iteration=state.work.iteration, request=gap)
            others = replaceable_steps(state.work.plan)[: room - 1]
            state.work.plan = with_new_steps(state.work.plan, state.work.plan.brief, [step, *others])
            run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
            position.next_unit = UnitKind.STEP
            position.finished = False


def _stop_reason(state: ResearchState) -> StopReason:
    if state.evidence.draft is not None and state.evidence.draft.direct:
        return StopReason.ANSWERED_DIRECTLY
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    if ReflectivePosition.read(state).skipped:
        return StopReason.COVERAGE_SUFFICIENT
    return StopReason.NO_ACTIONABLE_GAPS
