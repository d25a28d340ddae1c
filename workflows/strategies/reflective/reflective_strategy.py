"""The `reflective` strategy: coordinate → background → plan → (step → reflect)* → write."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.addresses import canonical_url, name_page, source_id, sub_query_id
from contracts.evidence import Candidate, Finding, Gap, SearchHit, Source
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import WITHOUT_SEARCH, Plan, PlanNode
from contracts.reflective_roles import (
    COORDINATOR,
    INVESTIGATOR,
    REFLECTOR,
    RESEARCHER,
    RESPONDER,
    STEP_PLANNER,
    ClassifyInput,
    Complexity,
    InvestigateInput,
    PlanStepsInput,
    ReflectionDecision,
    ReflectOnStepInput,
    ReflectorAnswer,
    ReflectorResult,
    ResearchStepInput,
    RespondInput,
    StepKind,
    StepSummary,
)
from contracts.request import Depth, Mode
from contracts.resolved import EffectiveLimits
from contracts.sentences import Message, Text
from contracts.state import ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vocabulary import Action, AgentRole, Confidence, EngineKind, NodeStatus, Quality, StopReason, ThinkMode
from workflows.phases.agent_reading import describe_hit
from workflows.phases.analysis import analyze
from workflows.phases.drafts import take_draft
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import limit_sources, to_extract
from workflows.phases.searching import Searching
from workflows.phases.writing import write_draft
from workflows.rules.duplicates import Identities, hits_to_protect, protected_ids
from workflows.rules.gaps import give_up_gap
from workflows.rules.sub_queries import assign_readings, pass_over_unread, queries_to_analyze, reading_nodes
from workflows.run.host import beside, run_parallel
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.units import (
    UnitName,
    UnitPosition,
    UnitStrategy,
    carry_out,
    skip_steps,
    step_node,
    unit_progress,
    unplanned_requests,
)

STEP_MARKS: Final = {
    NodeStatus.EXECUTING: Mark.RUNNING,
    NodeStatus.COMPLETED: Mark.DONE,
    NodeStatus.FAILED: Mark.FAILED,
}
MAX_OBSERVATIONS: Final = 6
"""Statements of a step shown to planner and reflector."""
DEPTHS: Final = {
    Complexity.SIMPLE: Depth.LIGHT,
    Complexity.MODERATE: Depth.MEDIUM,
    Complexity.COMPLEX: Depth.EXTENDED,
}
MAX_TITLES: Final = 10
MAX_READINGS: Final = 5
"""Gaps for which one reflection may have sections read further."""
MAX_OFFERED_PAGES: Final = 12
"""Found but unread pages offered to the model."""
BACKGROUND_QUERIES: Final = 3
MAX_HITS_PER_QUERY: Final = 5
"""First hits of each background query shown to the planner."""


class UnitKind(UnitName):
    """The units of work, in order of first occurrence."""

    COORDINATION = "coordination", "classify"
    BACKGROUND = "background", "explore"
    PLANNING = "planning", "plan"
    STEP = "step"
    SYNTHESIS = "synthesis", "write"
    ANSWER = "answer"
    """Replaces everything after the coordination for a question that needs no research."""


class StepReflection(BaseModel):
    """The decision after a step, and the reflector's own decision if limits changed it."""

    step: str
    decision: ReflectionDecision
    coerced_from: ReflectionDecision | None = None
    reasoning: str = ""


class ReflectivePosition(UnitPosition):
    """The next unit, and values passed between units."""

    NAME: ClassVar[str] = "reflective"

    next_unit: UnitKind = UnitKind.COORDINATION
    route: Mode = Mode.DEEP
    choice: str = ""
    """The depth or mode chosen for a request that leaves it open."""
    brief: str = ""
    """The coordinator's summary of earlier turns and instructions."""
    assumption: Text = ""
    """The note to readers about an ambiguous question."""
    background_queries: list[str] = []
    """Proposed while the route is chosen; empty if they are still to be asked for."""
    background: list[SearchHit] = []
    feedback: str = ""
    """Reason for adjusting the plan; empty for the first plan."""
    suggested_changes: list[str] = []
    turns: int = 0
    """Turns taken in the current step."""
    reflections: list[StepReflection] = []


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
        name, label, step = unit.value, unit.label, None
        if unit is UnitKind.STEP:
            # Steps are numbered from 1 by their index in the plan.
            pending, steps = pending_steps(run.state.work.plan), run.state.work.plan.steps
            number = steps.index(pending[0]) + 1 if pending else len(steps)
            name, label = f"{unit}-{number}", f"{unit.label} {number}"
            step = named_step(run.state, name)
        title = f"{name}: {step.text}" if step else name
        await carry_out(run, name, work, lambda: describe_unit(run.state, unit, name), label=label, title=title)
        return Unit(name=name, iteration_ended=unit is UnitKind.STEP)

    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Reflect on a step, and set the next unit."""
        state, position = run.state, ReflectivePosition.of(run.state)
        match position.next_unit:
            case UnitKind.STEP:
                return await _reflect_on_step(run, name, position)
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
        position.finished, position.rewritten = False, False
        if position.assumption:
            state.work.limitations.append(position.assumption)

    def replan(self, state: ResearchState) -> None:
        """Plan again, with the person's message as guidance."""
        super().replan(state)
        ReflectivePosition.of(state).feedback = "a person wants another plan"

    def progress(self, state: ResearchState) -> Progress:
        """Return coordination, background, plan, each step and report; a direct answer has no steps."""
        position, steps = ReflectivePosition.read(state), state.work.plan.steps
        kinds = [kind for kind in UnitKind if kind is not UnitKind.STEP]
        units = {kind: unit_progress(state, position, kind, describe_unit(state, kind, kind)) for kind in kinds}
        answer = units.pop(UnitKind.ANSWER)
        if position.next_unit is UnitKind.ANSWER:
            return Progress(summary="a direct answer", units=[units[UnitKind.COORDINATION], answer])
        report = units.pop(UnitKind.SYNTHESIS)
        step_units = [_step_progress(state, step, number) for number, step in enumerate(steps, start=1)]
        ended = steps_with_status(state.work.plan, NodeStatus.COMPLETED, NodeStatus.FAILED)
        summary = f"step {min(len(ended) + 1, len(steps))} of {len(steps)}" if steps else ""
        if summary and state.work.iteration > 1:
            summary += f", plan {state.work.iteration} of at most {state.resolution.limits.max_iterations}"
        return Progress(summary=summary, units=[*units.values(), *step_units, report])


def _step_progress(state: ResearchState, step: PlanNode, number: int) -> UnitProgress:
    mark = STEP_MARKS.get(step.status, Mark.WAITING)
    name = f"{UnitKind.STEP}-{number}"
    return UnitProgress(name=name, label=f"{UnitKind.STEP} {number}", mark=mark, detail=_step_detail(state, step))


def named_step(state: ResearchState, unit: str) -> PlanNode | None:
    """Return the step done by the unit with this name; None for a unit that only analyzed leftovers."""
    steps, number = state.work.plan.steps, unit.removeprefix(f"{UnitKind.STEP}-")
    return steps[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(steps) else None


def describe_unit(state: ResearchState, kind: UnitKind, name: str) -> str:
    """Return the results of a unit in a few words."""
    position = ReflectivePosition.read(state)
    match kind:
        case UnitKind.COORDINATION:
            is_deep = position.route is Mode.DEEP
            return f"{position.route.value}, {state.resolution.depth.value}" if is_deep else position.route.value
        case UnitKind.BACKGROUND:
            return plural(len(position.background), "title")
        case UnitKind.PLANNING:
            return plural(len(state.work.plan.steps), "step")
        case UnitKind.STEP:
            step = named_step(state, name)
            return _step_detail(state, step) if step else ""
        case UnitKind.SYNTHESIS | UnitKind.ANSWER:
            return plural(state.evidence.draft.word_count if state.evidence.draft else 0, "word")


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
    resolved, position = run.resolved, ReflectivePosition.of(run.state)
    if resolved.mode in (Mode.DIRECT, Mode.QUICK):
        position.route = resolved.mode
        return
    may_answer = resolved.mode is Mode.AUTO and resolved.engine is EngineKind.MODEL
    may_answer = may_answer and not resolved.protected_sources
    classify = partial(run.ask, COORDINATOR, "classify", ClassifyInput(may_answer=may_answer))
    is_early = resolved.engine is EngineKind.MODEL and not run.state.needs_approval
    output = await (beside(run.host, classify, partial(_propose_background, run)) if is_early else classify())
    position.route = output.route if resolved.mode is Mode.AUTO else resolved.mode
    # The choice of limits is the mode of a short route, else the recommended depth, else the depth by complexity.
    recommended = Depth(output.recommended_depth)
    depth = DEPTHS[output.complexity] if recommended is Depth.AUTO else recommended
    choice = depth.value if position.route is Mode.DEEP else position.route.value
    position.brief, position.choice = output.brief, choice if choice in resolved.choices else ""
    run.choose_limits(choice)
    outputs = {"route": position.route.value, "complexity": output.complexity.value, "choice": position.choice}
    run.decide(COORDINATOR.name, "route", output.reasoning, {"mode": resolved.mode.value}, outputs)
    clarified = any(any(question_round.answers) for question_round in run.state.people.clarification.rounds)
    if output.is_ambiguous and not clarified:
        asked = shorten("; ".join(output.clarifying_questions), 300) or Message("several_readings")
        position.assumption = Message("taken_as_it_stands", asked=asked)
        run.state.work.limitations.append(position.assumption)


async def _plan(run: ResearchRun) -> None:
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
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
            brief = state.work.plan.brief or output.thought or output.title
            state.work.plan = with_new_steps(state.work.plan, brief, fresh)
    position.feedback, position.suggested_changes = "", []
    count = len(state.work.plan.steps)
    run.note("plan.drafted", plural(count, "step"), count=count, **state.work.plan.texts())


async def _research(run: ResearchRun) -> None:
    """Do the next step within its limits, first the searches that an interruption cut off.

    A step fails if all its searches do; a resumed run repeats it. Raises `Interrupted`.
    """
    state, position = run.state, ReflectivePosition.of(run.state)
    await take_draft(run, None)  # a draft would lack the findings of this step
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
        while await _take_turn(run, step):
            pass
    searches = state.work.plan.children(step)
    failed = bool(searches) and all(search.status is NodeStatus.FAILED for search in searches)
    count = sum(search.finding_count for search in searches)
    done = step.failed(searches[0].error) if failed else step.with_fields(status=NodeStatus.COMPLETED, error=None)
    state.work.plan = state.work.plan.with_nodes(done.with_fields(finding_count=count))
    if not count:
        state.evidence.gaps = give_up_gap(state.evidence.gaps, step.gap_id)


async def _write(run: ResearchRun) -> None:
    """Write the report, after the sections that the last reflection had read further. Raises `Interrupted`."""
    if queries_to_analyze(run.state):
        await analyze(run)
    await write_draft(run)


async def _answer(run: ResearchRun) -> None:
    output = await run.ask(RESPONDER, "answer", RespondInput(context=run.resolved.earlier_turns))
    by_model = output.account.engine is EngineKind.MODEL
    await take_draft(run, output.draft.with_fields(direct=by_model, empty=not by_model))


# --- reflection ------------------------------------------------------------------------------------------------
async def _reflect_on_step(run: ResearchRun, unit: str, position: ReflectivePosition) -> Pause:
    """Have the reflector judge a step, then continue, adjust the plan or complete. Raises `Interrupted`."""
    state, step = run.state, named_step(run.state, unit)
    answer = await _ask_reflector(run, position)
    reflection = decide_step(state, run.resolved.limits, step.text if step else unit, answer)
    position.reflections.append(reflection)
    if answer is not None:
        run.settle_gaps(answer.settled_gaps, REFLECTOR.name)
        _read_further(run, step, answer)
    outputs: dict[str, object] = {"decision": reflection.decision.value}
    proposed = ""
    if reflection.coerced_from is not None:
        outputs["coerced_from"] = reflection.coerced_from.value
        proposed = f" (it proposed to {reflection.coerced_from.value})"
    if answer is not None and answer.suggested_changes:
        outputs["suggested_changes"] = [text[:200] for text in answer.suggested_changes]
    inputs = {"completed_steps": len(completed_steps(state.work.plan))}
    run.decide(REFLECTOR.name, reflection.decision.value, reflection.reasoning + proposed, inputs, outputs)
    action = Action.PROCEED
    if reflection.decision is ReflectionDecision.ADJUST:
        position.feedback = reflection.reasoning
        position.suggested_changes = answer.suggested_changes if answer else []
        position.next_unit, action = UnitKind.PLANNING, Action.ITERATE
        state.work.iteration += 1
        pass_over_unread(state)
    elif reflection.decision is ReflectionDecision.COMPLETE:
        skip_steps(state, position, replaceable_steps(state.work.plan))
        requested = pending_steps(state.work.plan)
        position.next_unit = UnitKind.STEP if requested else UnitKind.SYNTHESIS
        action = Action.PROCEED if requested else Action.COMPLETE
    return Pause(phase=unit, action=action, rationale=reflection.reasoning)


def _read_further(run: ResearchRun, step: PlanNode | None, answer: ReflectorResult) -> None:
    """Plan an analysis of sections already read for each gap that they may answer; the next unit reads them."""
    state = run.state
    nodes = reading_nodes(state, answer.readings, state.work.iteration, step)[:MAX_READINGS]
    state.work.plan = state.work.plan.with_nodes(*nodes)
    assign_readings(state, nodes)
    for node in nodes:
        inputs, outputs = {"gap_id": node.gap_id}, {"sections": len(node.sections)}
        run.decide(REFLECTOR.name, "read_further", node.text, inputs, outputs)


async def _ask_reflector(run: ResearchRun, position: ReflectivePosition) -> ReflectorResult | None:
    think, limits, state = run.resolved.gates.think, run.resolved.limits, run.state
    if think is ThinkMode.OFF or position.route is Mode.QUICK or len(possible_decisions(state, limits)) == 1:
        return None
    # Best sources first, latest first among equals, because a prompt shows only the first ones.
    by_quality = {quality: place for place, quality in enumerate(Quality)}
    readable = state.evidence.readable_sources()
    sources = sorted(readable, key=lambda source: (by_quality[source.quality], -source.iteration))
    unaddressed = state.evidence.unaddressed_gaps()
    gaps = [Gap(id=gap.id, description=gap.description, suggested_queries=gap.suggested_queries) for gap in unaddressed]
    by_model = think is not ThinkMode.RULES and run.resolved.engine is EngineKind.MODEL
    request = ReflectOnStepInput(
        steps=[step.with_fields(observations=[]) for step in summarize_steps(state)],
        findings=state.evidence.findings,
        pending=[step.text for step in pending_steps(state.work.plan)],
        source_titles=[name_page(source.title, source.url) for source in sources],
        gaps=gaps,
        read_sources=[to_extract(source, to_search=False) for source in sources] if gaps and by_model else [],
        completed=len(completed_steps(state.work.plan)),
        fewest_steps=_min_steps(state, limits),
        may_adjust=_may_adjust(state, limits),
    )
    step = f"reflect/{len(position.reflections) + 1}"
    return await run.ask(REFLECTOR, step, request, EngineKind.EXTRACTIVE if think is ThinkMode.RULES else None)


# --- rules ---------------------------------------------------------------------------------------------------------
def decide_step(
    state: ResearchState, limits: EffectiveLimits, step: str, answer: ReflectorAnswer | None
) -> StepReflection:
    """Apply the limits to a reflection, and record a decision changed by them.

    `answer` is None without a reflection; the plan is then followed to its end.
    """
    proposed = answer.decision if answer else ReflectionDecision.CONTINUE
    reasoning = answer.reasoning if answer else "the plan is carried out to its end"
    possible = possible_decisions(state, limits)
    decision = proposed if proposed in possible else possible[0]
    changed = proposed if answer and decision is not proposed else None
    return StepReflection(step=step, decision=decision, coerced_from=changed, reasoning=reasoning[:500])


def possible_decisions(state: ResearchState, limits: EffectiveLimits) -> list[ReflectionDecision]:
    """Return the decisions that a reflection may make now, the default first; if there is one, no model is asked."""
    is_over = not pending_steps(state.work.plan)
    possible = [ReflectionDecision.COMPLETE if is_over else ReflectionDecision.CONTINUE]
    if _may_adjust(state, limits):
        possible.append(ReflectionDecision.ADJUST)
    if not is_over and len(completed_steps(state.work.plan)) >= _min_steps(state, limits):
        possible.append(ReflectionDecision.COMPLETE)
    return possible


def _min_steps(state: ResearchState, limits: EffectiveLimits) -> int:
    """Return the number of completed steps required before a reflection may end the research."""
    return min(limits.min_steps, len(state.work.plan.steps))


def _may_adjust(state: ResearchState, limits: EffectiveLimits) -> bool:
    """Return true if the plan may be adjusted, because an iteration and a step are left."""
    return state.work.iteration < limits.max_iterations and room_for_steps(state.work.plan, limits.max_steps) > 0


def _plan_requested_steps(run: ResearchRun, position: ReflectivePosition) -> None:
    """Add a step for each new request of a person, before all others, while steps are left.

    It may displace the last steps that have not started.
    """
    state = run.state
    if position.route is not Mode.DEEP or position.next_unit not in (UnitKind.STEP, UnitKind.SYNTHESIS):
        return
    for gap in unplanned_requests(state):
        if room := room_for_steps(state.work.plan, run.resolved.limits.max_steps):
            text, facet = gap.suggested_queries[0], StepKind.RESEARCH.value
            step = step_node(text, facet=facet, description=text, iteration=state.work.iteration, request=gap)
            others = replaceable_steps(state.work.plan)[: room - 1]
            state.work.plan = with_new_steps(state.work.plan, state.work.plan.brief, [step, *others])
            run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
            position.next_unit, position.finished = UnitKind.STEP, False


def _stop_reason(state: ResearchState) -> StopReason:
    if state.evidence.draft is not None and state.evidence.draft.direct:
        return StopReason.ANSWERED_DIRECTLY
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    return StopReason.COVERAGE_SUFFICIENT if ReflectivePosition.read(state).skipped else StopReason.NO_ACTIONABLE_GAPS


# --- the searches of one step in turns, and the background search before the plan ----------------------------------
async def _take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Choose queries, search, read, analyze; return true if another turn may follow."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    if not open_queries(state, step):
        nodes = await _next_nodes(run, step)
        if not nodes:
            return False
        state.work.plan = state.work.plan.with_nodes(*nodes)
        position.turns += 1
    room = _reads_left(state, step, limits.max_reads_per_step)
    # Without a model, at light depth or on the quick route, the researcher gets no turn to react to results.
    by_model = run.resolved.engine is EngineKind.MODEL
    has_turns = by_model and run.resolved.depth is not Depth.LIGHT and position.route is not Mode.QUICK
    await Gathering(run, open_queries(state, step), cap=room, labelled=has_turns).carry_out()
    await analyze(run)
    return has_turns


async def _next_nodes(run: ResearchRun, step: PlanNode) -> list[PlanNode]:
    """Return the next searches as chosen by the researcher, and a node for the found pages it chose to read."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    searches = [node for node in state.work.plan.children(step) if node.origin != WITHOUT_SEARCH]
    searches_left = limits.max_searches_per_step - len(searches)
    if searches_left <= 0 or (position.turns and not _reads_left(state, step, limits.max_reads_per_step)):
        return []
    if position.route is Mode.QUICK:
        return query_nodes(step, [step.text], state.work.iteration)
    names = {node.id for node in state.work.plan.children(step)}
    read = [source for source in state.evidence.readable_sources() if names.intersection(source.sub_query_ids)]
    titles = [name_page(source.title, source.url) for source in read]
    offered = _unread_pages(state, step)
    request = ResearchStepInput(
        step_title=step.text,
        description=step.expected_contribution,
        most_queries=searches_left,
        asked=[node.text for node in state.work.plan.sub_queries],
        observations=[finding.statement for finding in findings_of(state, step)],
        titles=titles[:MAX_TITLES],
        pages=[describe_hit(Candidate(sub_query_id=step.id, hit=hit)) for hit in offered],
        turn=position.turns + 1,
    )
    output = await run.ask(RESEARCHER, f"research/{step.id}/{position.turns + 1}", request)
    known = {node.id for node in state.work.plan.nodes}
    nodes = [node for node in query_nodes(step, output.queries, state.work.iteration) if node.id not in known]
    if output.pages:
        # A sub-query that already has hits is read without a search.
        chosen = query_nodes(step, [step.expected_contribution or step.text], state.work.iteration)[0]
        page_id = sub_query_id(f"{step.id} pages {position.turns + 1}")
        nodes.append(chosen.with_fields(id=page_id, origin=WITHOUT_SEARCH))
        hits = [offered[number - 1].with_fields(rank=rank) for rank, number in enumerate(output.pages, 1)]
        state.evidence.candidates += [Candidate(sub_query_id=nodes[-1].id, hit=hit) for hit in hits]
        run.decide(RESEARCHER.name, "choose_pages", output.reasoning, {"offered": len(offered)}, {"chosen": len(hits)})
    return nodes


def _unread_pages(state: ResearchState, step: PlanNode) -> list[SearchHit]:
    """Return the unread titled hits of the step's searches and of the background search, one per page."""
    evidence = state.evidence
    search_ids = {node.id for node in state.work.plan.children(step)}
    known = Identities(evidence.sources, evidence.aliases)
    hits = [candidate.hit for candidate in evidence.candidates if candidate.sub_query_id in search_ids]
    fetched = evidence.fetched_sources()
    unread: dict[str, SearchHit] = {}
    for hit in [*hits, *ReflectivePosition.of(state).background]:
        if hit.title and known.identity_of(hit) not in fetched:
            unread.setdefault(canonical_url(hit.url), hit)
    return list(unread.values())[:MAX_OFFERED_PAGES]


def _reads_left(state: ResearchState, step: PlanNode, limit: int) -> int:
    """Return the number of sources that a step may still read; unreadable ones count, protected ones do not."""
    names = {node.id for node in state.work.plan.children(step)}
    protected = set(protected_ids(state).values())
    sources = [
        source for source in state.evidence.fetched_sources().values() if names.intersection(source.sub_query_ids[:1])
    ]
    read = [source for source in sources if source.id not in protected]
    return max(0, limit - len(read))


async def _propose_background(run: ResearchRun) -> None:
    """Have background searches proposed. Raises `Interrupted`."""
    output = await run.ask(INVESTIGATOR, "background", InvestigateInput(most_queries=BACKGROUND_QUERIES))
    ReflectivePosition.of(run.state).background_queries = output.queries


async def investigate(run: ResearchRun) -> None:
    """Make a few background searches in parallel; their first hits become unfetched sources, for the planner.

    Raises `Interrupted`.
    """
    position = ReflectivePosition.of(run.state)
    if not position.background_queries:
        await _propose_background(run)
    nodes = [PlanNode(id=sub_query_id(text), text=text) for text in position.background_queries]
    number = run.decide(AgentRole.GATHERER, "search_background", "", {"queries": len(nodes)})
    searching = Searching(run, nodes)
    searches = [partial(searching.search, node) for node in nodes]
    calls = await run.within_limits(run_parallel(run.host, searches, run.resolved.limits.max_parallel))
    hits: dict[str, SearchHit] = {}
    for node, call in zip(nodes, calls, strict=True):
        answer = call.result()
        run.state.evidence.query_ledger += answer.asked
        if answer.failed is not None:
            run.note("status", f"background search failed: {node.text}: {answer.failed_in_words}", level="warning")
            continue
        for hit in searching.response(answer).hits[:MAX_HITS_PER_QUERY]:
            if not run.is_excluded(hit) and canonical_url(hit.url) not in hits:
                hits[canonical_url(hit.url)] = hit
                run.state.evidence.sources.setdefault(source_id(hit.url), Source.of_hit(hit, [node.id]))
    position.background = list(hits.values())
    run.decided(number, {"titles": len(hits)})


# --- steps by status -----------------------------------------------------------------------------------------------
def steps_with_status(plan: Plan, *statuses: NodeStatus) -> list[PlanNode]:
    """Return the steps with one of these statuses."""
    return [step for step in plan.steps if step.status in statuses]


def completed_steps(plan: Plan) -> list[PlanNode]:
    """Return the completed steps, which no later plan changes."""
    return steps_with_status(plan, NodeStatus.COMPLETED)


def pending_steps(plan: Plan) -> list[PlanNode]:
    """Return the unfinished steps, the current one first."""
    return [*steps_with_status(plan, NodeStatus.EXECUTING), *steps_with_status(plan, NodeStatus.PENDING)]


def replaceable_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that a new plan may replace: not started, and not requested by a person during the run."""
    return [step for step in steps_with_status(plan, NodeStatus.PENDING) if step.gap_id is None]


def room_for_steps(plan: Plan, limit: int) -> int:
    """Return the number of steps that a planner may still add; started and requested steps count against the limit."""
    fixed = len(plan.steps) - len(steps_with_status(plan, NodeStatus.SKIPPED)) - len(replaceable_steps(plan))
    return max(0, limit - fixed)


def open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
    """Return the unfinished searches of a step."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    return [node for node in state.work.plan.children(step) if node.status in unfinished]


# --- changes of the plan -------------------------------------------------------------------------------------------
def with_new_steps(plan: Plan, brief: str, fresh: Sequence[PlanNode]) -> Plan:
    """Return the plan with new steps in place of the replaceable ones."""
    replaced = {step.id for step in replaceable_steps(plan)}
    nodes = {node.id: node for node in plan.nodes if node.id not in replaced}
    fresh = [step for step in fresh if step.id not in nodes]
    return Plan(version=plan.version + 1, brief=brief, nodes=[*nodes.values(), *fresh])


def query_nodes(step: PlanNode, queries: Sequence[str], iteration: int) -> list[PlanNode]:
    """Return the searches of a step as its child nodes."""
    purpose, place = step.expected_contribution, {"parent": step.id, "depth": 1, "iteration": iteration}
    fields = [{"id": sub_query_id(text), "text": text, "expected_contribution": purpose, **place} for text in queries]
    return [PlanNode.model_validate(each) for each in fields]


# --- results of a step ---------------------------------------------------------------------------------------------
def findings_of(state: ResearchState, step: PlanNode) -> list[Finding]:
    """Return the findings of a step, in order."""
    names = {node.id for node in state.work.plan.children(step)}
    return [finding for finding in state.evidence.findings if finding.sub_query_id in names]


def summarize_steps(state: ResearchState, *statuses: NodeStatus) -> list[StepSummary]:
    """Return summaries of the steps for planner and reflector: those with these statuses, or all if none is given."""
    return [
        StepSummary(
            title=step.text,
            status=step.status,
            # Best-supported findings first.
            observations=[
                finding.statement
                for finding in sorted(findings_of(state, step), key=lambda one: list(Confidence).index(one.confidence))
            ][:MAX_OBSERVATIONS],
            queries=[node.id for node in state.work.plan.children(step)],
            finding_count=step.finding_count,
        )
        for step in (steps_with_status(state.work.plan, *statuses) if statuses else state.work.plan.steps)
    ]
