"""The strategy `reflective`: coordinate → background → plan → (step → reflect)* → write."""

import asyncio
from typing import Final

from contracts.addresses import canonical_url, source_id, sub_query_id
from contracts.evidence import Candidate, SearchHit, Source
from contracts.outcome import Pause, Progress
from contracts.plan import WITHOUT_SEARCH, PlanNode
from contracts.reflective_roles import (
    COORDINATOR,
    INVESTIGATOR,
    REFLECTOR,
    RESEARCHER,
    RESPONDER,
    STEP_PLANNER,
    ClassifyInput,
    Complexity,
    CoordinatorAnswer,
    InvestigateInput,
    PlanStepsInput,
    ReflectionDecision,
    ReflectOnStepInput,
    ReflectorAnswer,
    ResearchStepInput,
    RespondInput,
    StepKind,
)
from contracts.request import Depth, Mode
from contracts.resolved import EffectiveLimits
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, NodeStatus, Quality, StopReason, ThinkMode
from workflows.phases.analysis import analyze
from workflows.phases.drafts import take_draft
from workflows.phases.gathering import Gathering
from workflows.phases.pause import call_hook
from workflows.phases.role_inputs import shown_at_once
from workflows.phases.searching import Answers, Searching
from workflows.rules.duplicates import Identities, hits_to_protect, protected_ids
from workflows.rules.gaps import after_follow_up
from workflows.rules.query_matching import record_of
from workflows.rules.sub_queries import pass_over_unread
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.reflective.plan import (
    ReflectivePosition,
    StepReflection,
    UnitKind,
    completed_steps,
    findings_of,
    name_of_unit,
    named_step,
    open_queries,
    pending_steps,
    progress_of,
    query_nodes,
    replaceable_steps,
    room_for_steps,
    summaries_of,
    summary_of_unit,
    with_new_steps,
    with_requested_step,
)
from workflows.strategies.units import (
    carry_out,
    judge_report,
    step_node,
    unplanned_requests,
    without_steps,
    write_draft,
)

DEPTH_OF: Final = {
    Complexity.SIMPLE: Depth.LIGHT,
    Complexity.MODERATE: Depth.MEDIUM,
    Complexity.COMPLEX: Depth.EXTENDED,
}
SHOWN_TITLES: Final = 10
OFFERED_PAGES: Final = 12
"""Found and unread pages among which the model may choose."""
BACKGROUND_QUERIES: Final = 3
HITS_OF_QUERY: Final = 5
"""First hits of each background query that the planner sees."""


class ReflectiveStrategy(Strategy):
    """One unit per call: coordination, background, plan, one step, report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = ReflectivePosition.of(run.state)
        run.choose_limits(position.choice)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state))
        kind = position.next_unit
        work = {
            UnitKind.COORDINATION: self._coordinate,
            UnitKind.BACKGROUND: investigate,
            UnitKind.PLANNING: self._plan,
            UnitKind.STEP: self._research,
            UnitKind.SYNTHESIS: write_draft,
            UnitKind.ANSWER: self._answer,
        }[kind]
        name, label = name_of_unit(run.state, kind)
        step = named_step(run.state, name) if kind is UnitKind.STEP else None
        title = f"{name}: {step.text}" if step else name
        await carry_out(run, name, label, work, lambda: summary_of_unit(run.state, kind, name), title=title)
        return Unit(name=name, iteration_ended=kind is UnitKind.STEP)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook, reflect on a step, and move on."""
        position, name = ReflectivePosition.of(run.state), opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {progress_of(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        match position.next_unit:
            case UnitKind.COORDINATION:
                position.next_unit = {
                    Mode.DIRECT: UnitKind.ANSWER,
                    Mode.QUICK: UnitKind.PLANNING,
                    # Before a plan is approved nothing is searched.
                    Mode.DEEP: UnitKind.PLANNING if run.state.needs_approval else UnitKind.BACKGROUND,
                }[position.route]
            case UnitKind.BACKGROUND:
                position.next_unit = UnitKind.PLANNING
            case UnitKind.PLANNING:
                position.next_unit = UnitKind.STEP if pending_steps(run.state.plan) else UnitKind.SYNTHESIS
            case UnitKind.STEP:
                pause = await self._reflect_on_step(run, name, position)
            case UnitKind.SYNTHESIS:
                pause = judge_report(run, position, name)
            case UnitKind.ANSWER:
                position.finished = True
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Continue with the pending steps, but for those that a reflection skipped; write a finished report again."""
        position, plan = ReflectivePosition.of(state), state.plan
        plan = without_steps(plan, [step for step in plan.steps if step.id in position.skipped])
        state.plan = plan
        # A failed search is repeated, so its step is not over.
        reopened = [step for step in completed_steps(plan) if open_queries(state, step)]
        executing = {"status": NodeStatus.EXECUTING}
        state.plan = plan.with_nodes(*(step.model_copy(update=executing) for step in reopened))
        if redo_analysis or reopened or (state.open_pause and not state.open_pause.unit.iteration_ended):
            state.open_pause = None
        if position.next_unit in (UnitKind.STEP, UnitKind.SYNTHESIS):
            has_work = pending_steps(state.plan) or redo_analysis or state.open_pause
            position.next_unit = UnitKind.STEP if has_work else UnitKind.SYNTHESIS
        position.finished, position.rewritten = False, False
        if position.assumption:
            state.limitations.append(position.assumption)

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        position = ReflectivePosition.of(state)
        position.next_unit, position.feedback = UnitKind.PLANNING, "a person wants another plan"

    def progress(self, state: ResearchState) -> Progress:
        """Return coordination, background, plan, each step and report."""
        return progress_of(state)

    # --- units -----------------------------------------------------------------------------------------------------
    async def _coordinate(self, run: ResearchRun) -> None:
        """Decide how much procedure the question needs, unless the request names a mode."""
        resolved, position = run.resolved, ReflectivePosition.of(run.state)
        if resolved.mode in (Mode.DIRECT, Mode.QUICK):
            position.route = resolved.mode
            return
        may_answer = resolved.mode is Mode.AUTO and resolved.engine is EngineKind.MODEL
        may_answer = may_answer and not resolved.protected_sources
        request = ClassifyInput(may_answer=may_answer, context=resolved.context, system_prompt=resolved.system_prompt)
        output = await run.ask(COORDINATOR, "classify", request)
        position.route = output.route if resolved.mode is Mode.AUTO else resolved.mode
        choice, position.brief = _choice_of_limits(output, position.route), output.brief
        position.choice = choice if choice in resolved.choices else ""
        run.choose_limits(choice)
        outputs = {"route": position.route.value, "complexity": output.complexity.value, "choice": position.choice}
        run.decide(COORDINATOR.name, "route", output.reasoning, {"mode": resolved.mode.value}, outputs)
        clarified = any(any(one.answers) for one in run.state.clarification.rounds)
        if output.is_ambiguous and not clarified:
            questions = "; ".join(output.clarifying_questions) or "it can be read in several ways"
            position.assumption = f"The question was taken as it stands, though it leaves open: {questions}"[:400]
            run.state.limitations.append(position.assumption)

    async def _plan(self, run: ResearchRun) -> None:
        state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
        if position.route is Mode.QUICK:
            text, facet = run.resolved.query[:500], StepKind.RESEARCH.value
            state.plan = with_new_steps(state.plan, text, [step_node(text, facet=facet, description=text)])
            return
        room = max(1, room_for_steps(state.plan, limits.max_steps))
        request = PlanStepsInput(
            system_prompt=run.resolved.system_prompt,
            corpus=run.resolved.corpus,
            brief=position.brief,
            hits=position.background,
            steps=summaries_of(state, NodeStatus.COMPLETED, NodeStatus.FAILED),
            feedback=position.feedback,
            suggested_changes=position.suggested_changes,
            fewest=min(room, max(1, limits.min_steps - len(completed_steps(state.plan)))),
            most=room,
        )
        output = await run.ask(STEP_PLANNER, "plan", request)
        if output.has_enough_context and state.findings:
            _skip_pending_steps(state)
            run.decide(STEP_PLANNER.name, "enough_context", output.thought)
        else:
            if output.has_enough_context:
                run.decide(STEP_PLANNER.name, "enough_context_ignored", "nothing has been found yet")
            fresh = [
                step_node(one.title, facet=one.step_type, description=one.description, iteration=state.iteration)
                for one in output.steps
            ]
            if fresh:
                brief = state.plan.brief or output.thought or output.title
                state.plan = with_new_steps(state.plan, brief, fresh)
        position.feedback, position.suggested_changes = "", []
        count = len(state.plan.steps)
        run.note("plan.drafted", plural(count, "step"), count=count, **state.plan.texts())

    async def _research(self, run: ResearchRun) -> None:
        await take_draft(run, None)  # it lacks the findings of this step
        pending = pending_steps(run.state.plan)
        if pending:
            await research_step(run, pending[0])
        else:
            await analyze(run)  # sources that the end of an earlier run had analyzed without a model

    async def _answer(self, run: ResearchRun) -> None:
        output = await run.ask(RESPONDER, "answer", RespondInput(context=run.resolved.earlier_turns))
        by_model = output.account.engine is EngineKind.MODEL
        await take_draft(run, output.draft.model_copy(update={"direct": by_model, "empty": not by_model}))

    # --- reflection ------------------------------------------------------------------------------------------------
    async def _reflect_on_step(self, run: ResearchRun, unit: str, position: ReflectivePosition) -> Pause:
        """Have a step judged, and continue, adjust the plan or complete. Raises `Interrupted`."""
        state, step = run.state, named_step(run.state, unit)
        answer = await self._ask_reflector(run, position)
        decided = decide_step(state, run.resolved.limits, step.text if step else unit, answer)
        position.reflections.append(decided)
        _record_reflection(run, decided, answer)
        action = Action.PROCEED
        if decided.decision is ReflectionDecision.ADJUST:
            position.feedback = decided.reasoning
            position.suggested_changes = answer.suggested_changes if answer else []
            position.next_unit, action = UnitKind.PLANNING, Action.ITERATE
            state.start_new_iteration()
            pass_over_unread(state)
        elif decided.decision is ReflectionDecision.COMPLETE:
            _skip_pending_steps(state)
            requested = pending_steps(state.plan)
            position.next_unit = UnitKind.STEP if requested else UnitKind.SYNTHESIS
            action = Action.PROCEED if requested else Action.COMPLETE
        return Pause(phase=unit, action=action, rationale=decided.reasoning)

    async def _ask_reflector(self, run: ResearchRun, position: ReflectivePosition) -> ReflectorAnswer | None:
        think, limits, state = run.resolved.gates.think, run.resolved.limits, run.state
        if think is ThinkMode.OFF or position.route is Mode.QUICK:
            return None
        # Good sources first, the newest first among equals: a prompt shows the first ones.
        sources = sorted(state.readable_sources(), key=lambda one: (list(Quality).index(one.quality), -one.iteration))
        request = ReflectOnStepInput(
            steps=summaries_of(state),
            pending=[step.text for step in pending_steps(state.plan)],
            source_titles=[source.title for source in sources],
            open_gaps=[gap.description for gap in state.unaddressed_gaps()],
            completed=len(completed_steps(state.plan)),
            fewest_steps=_fewest_steps(state, limits),
            may_adjust=_may_adjust(state, limits),
        )
        step = f"reflect/{len(position.reflections) + 1}"
        return await run.ask(REFLECTOR, step, request, EngineKind.EXTRACTIVE if think is ThinkMode.RULES else None)


# --- rules ---------------------------------------------------------------------------------------------------------
def decide_step(
    state: ResearchState, limits: EffectiveLimits, step: str, answer: ReflectorAnswer | None
) -> StepReflection:
    """Apply the limits to a reflection, and record the decision that they change.

    `answer` is None where no one reflects: then the plan is carried out to its end.
    """
    proposed = answer.decision if answer else ReflectionDecision.CONTINUE
    reasoning = answer.reasoning if answer else "the plan is carried out to its end"
    decision = proposed
    if decision is ReflectionDecision.ADJUST and not _may_adjust(state, limits):
        decision = ReflectionDecision.CONTINUE
    if decision is ReflectionDecision.COMPLETE and len(completed_steps(state.plan)) < _fewest_steps(state, limits):
        decision = ReflectionDecision.CONTINUE
    if decision is ReflectionDecision.CONTINUE and not pending_steps(state.plan):
        decision = ReflectionDecision.COMPLETE
    changed = proposed if decision is not proposed else None
    return StepReflection(step=step, decision=decision, coerced_from=changed, reasoning=reasoning[:500])


def _fewest_steps(state: ResearchState, limits: EffectiveLimits) -> int:
    """Return the number of completed steps that a reflection needs to end the research."""
    return min(limits.min_steps, len(state.plan.steps))


def _may_adjust(state: ResearchState, limits: EffectiveLimits) -> bool:
    """Return true if another plan may be made: an iteration and a step are left."""
    return state.iteration < limits.max_iterations and room_for_steps(state.plan, limits.max_steps) > 0


def _choice_of_limits(answer: CoordinatorAnswer, route: Mode) -> str:
    """Name the limits: the mode of a short route, else the depth, by complexity if none is recommended."""
    if route is not Mode.DEEP:
        return route.value
    depth = Depth(answer.recommended_depth)
    return (DEPTH_OF[answer.complexity] if depth is Depth.AUTO else depth).value


def _plan_requested_steps(run: ResearchRun, position: ReflectivePosition) -> None:
    """Make requests of people since the plan the next steps, while steps are left."""
    state = run.state
    if position.route is not Mode.DEEP or position.next_unit not in (UnitKind.STEP, UnitKind.SYNTHESIS):
        return
    for gap in unplanned_requests(state):
        plan = with_requested_step(state.plan, gap, state.iteration, run.resolved.limits.max_steps)
        if plan is not state.plan:
            state.plan = plan
            run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
            position.next_unit, position.finished = UnitKind.STEP, False


def _skip_pending_steps(state: ResearchState) -> None:
    """Skip the steps that are no longer needed, but for requested ones and those with work that got no answer."""
    unneeded = replaceable_steps(state.plan)
    state.plan = without_steps(state.plan, unneeded)
    ReflectivePosition.of(state).skipped += [step.id for step in unneeded]


def _record_reflection(run: ResearchRun, decided: StepReflection, answer: ReflectorAnswer | None) -> None:
    outputs: dict[str, object] = {"decision": decided.decision.value}
    if decided.coerced_from is not None:
        outputs["coerced_from"] = decided.coerced_from.value
    if answer is not None and answer.suggested_changes:
        outputs["suggested_changes"] = [text[:200] for text in answer.suggested_changes]
    inputs = {"completed_steps": len(completed_steps(run.state.plan))}
    proposed = f" (it proposed to {decided.coerced_from.value})" if decided.coerced_from else ""
    run.decide(REFLECTOR.name, decided.decision.value, decided.reasoning + proposed, inputs, outputs)


def _stop_reason(state: ResearchState) -> StopReason:
    if state.draft is not None and state.draft.direct:
        return StopReason.ANSWERED_DIRECTLY
    if not state.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    return StopReason.COVERAGE_SUFFICIENT if ReflectivePosition.read(state).skipped else StopReason.NO_ACTIONABLE_GAPS


# --- the searches of one step, turn by turn, and the background search before the plan -----------------------------
async def research_step(run: ResearchRun, step: PlanNode) -> None:
    """Carry out a step within its limits, after the searches that an interruption cut off. Raises `Interrupted`."""
    state, position = run.state, ReflectivePosition.of(run.state)
    if not state.plan.children(step):
        position.turns = 0
    state.plan = state.plan.with_nodes(step.model_copy(update={"status": NodeStatus.EXECUTING}))
    # It thinks about the findings, without a search, once what the request protects is read.
    if step.facet == StepKind.ANALYSIS.value and not hits_to_protect(state):
        _assign_all_sources(state, step)
        await analyze(run)
    else:
        while await _take_turn(run, step):
            pass
    _finish(state, step)


def _finish(state: ResearchState, step: PlanNode) -> None:
    """Enter the result of a step: it failed if all its searches did, and a resumed run repeats it."""
    searches = state.plan.children(step)
    failed = bool(searches) and all(search.status is NodeStatus.FAILED for search in searches)
    found = sum(search.finding_count for search in searches)
    update = {
        "status": NodeStatus.FAILED if failed else NodeStatus.COMPLETED,
        "error": searches[0].error if failed else None,
        "finding_count": found,
    }
    state.plan = state.plan.with_nodes(step.model_copy(update=update))
    state.gaps = after_follow_up(state.gaps, step.gap_id, [finding.id for finding in findings_of(state, step)])


async def _take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Choose queries, search, read, analyze; true if another turn may follow."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    if not open_queries(state, step):
        nodes = await _next_nodes(run, step)
        if not nodes:
            return False
        state.plan = state.plan.with_nodes(*nodes)
        position.turns += 1
    room = _reads_left(state, step, limits.max_reads_per_step)
    await Gathering(run, open_queries(state, step), most=room).carry_out()
    await analyze(run)
    # A researcher without a model, at light depth or on the quick route does not see its results.
    by_model = run.resolved.engine is EngineKind.MODEL
    return by_model and run.resolved.depth is not Depth.LIGHT and position.route is not Mode.QUICK


async def _next_nodes(run: ResearchRun, step: PlanNode) -> list[PlanNode]:
    """Have the next searches chosen, and pages to read among those that were found."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    searches = [node for node in state.plan.children(step) if node.origin != WITHOUT_SEARCH]
    searches_left = limits.max_searches_per_step - len(searches)
    if searches_left <= 0 or (position.turns and not _reads_left(state, step, limits.max_reads_per_step)):
        return []
    if position.route is Mode.QUICK:
        return query_nodes(step, [step.text], state.iteration)
    names = {node.id for node in state.plan.children(step)}
    titles = [source.title for source in state.readable_sources() if names.intersection(source.sub_query_ids)]
    offered = _unread_pages(state, step)
    request = ResearchStepInput(
        step_title=step.text,
        description=step.expected_contribution,
        most_queries=searches_left,
        asked=[node.text for node in state.plan.sub_queries],
        observations=[finding.statement for finding in findings_of(state, step)],
        titles=titles[:SHOWN_TITLES],
        pages=[hit.title for hit in offered],
        turn=position.turns + 1,
    )
    output = await run.ask(RESEARCHER, f"research/{step.id}/{position.turns + 1}", request)
    known = {node.id for node in state.plan.nodes}
    nodes = [node for node in query_nodes(step, output.queries, state.iteration) if node.id not in known]
    if output.pages:
        # A sub-query whose hits are there already is read without a search.
        chosen = query_nodes(step, [step.expected_contribution or step.text], state.iteration)[0]
        update = {"id": sub_query_id(f"{step.id} pages {position.turns + 1}"), "origin": WITHOUT_SEARCH}
        nodes.append(chosen.model_copy(update=update))
        hits = [offered[number - 1].model_copy(update={"rank": rank}) for rank, number in enumerate(output.pages, 1)]
        state.candidates += [Candidate(sub_query_id=nodes[-1].id, hit=hit) for hit in hits]
        run.decide(RESEARCHER.name, "choose_pages", output.reasoning, {"offered": len(offered)}, {"chosen": len(hits)})
    return nodes


def _unread_pages(state: ResearchState, step: PlanNode) -> list[SearchHit]:
    """Return titled hits of the step's searches and of the background that were not read, each page once."""
    names, known = {node.id for node in state.plan.children(step)}, Identities(state.sources, state.aliases)
    hits, fetched = [one.hit for one in state.candidates if one.sub_query_id in names], state.fetched_sources()
    unread: dict[str, SearchHit] = {}
    for hit in [*hits, *ReflectivePosition.of(state).background]:
        if hit.title and known.identity_of(hit) not in fetched:
            unread.setdefault(canonical_url(hit.url), hit)
    return list(unread.values())[:OFFERED_PAGES]


def _reads_left(state: ResearchState, step: PlanNode, most: int) -> int:
    """Return the number of sources that a step may still read; unreadable ones count."""
    names = {node.id for node in state.plan.children(step)}
    protected = set(protected_ids(state).values())
    own = [source for source in state.fetched_sources().values() if names.intersection(source.sub_query_ids[:1])]
    read = [source for source in own if source.id not in protected]
    return max(0, most - len(read))


def _assign_all_sources(state: ResearchState, step: PlanNode) -> None:
    """Assign all read sources to a step that only thinks, by a sub-query that counts as searched."""
    node = query_nodes(step, [step.expected_contribution or step.text], state.iteration)[0]
    if any(known.id == node.id for known in state.plan.nodes):
        return
    update = {"status": NodeStatus.COMPLETED, "origin": WITHOUT_SEARCH}
    state.plan = state.plan.with_nodes(node.model_copy(update=update))
    for source in shown_at_once(state, state.readable_sources()):
        owners = [*source.sub_query_ids, node.id]
        state.sources[source.id] = source.model_copy(update={"sub_query_ids": owners})


async def investigate(run: ResearchRun) -> None:
    """Search for two or three things in parallel; the first hits are sources that are not fetched, for the planner.

    Raises `Interrupted`.
    """
    request = InvestigateInput(
        most_queries=BACKGROUND_QUERIES, context=run.resolved.context, corpus=run.resolved.corpus
    )
    output = await run.ask(INVESTIGATOR, "background", request)
    nodes = [PlanNode(id=sub_query_id(text), text=text) for text in output.queries]
    number = run.decide(AgentRole.GATHERER, "search_background", "", {"queries": len(nodes)})
    searching, turns = Searching(run, nodes), asyncio.Semaphore(run.resolved.limits.max_parallel)

    async def search(node: PlanNode) -> Answers:
        async with turns:
            return await searching.search(node)

    async def search_all() -> list[Answers]:
        return await asyncio.gather(*map(search, nodes))

    answers = await run.within_limits(search_all())
    hits: dict[str, SearchHit] = {}
    for node, answer in zip(nodes, answers, strict=True):
        asked = [record_of(node, name, found=found, source_type=kind) for name, kind, found in answer.asked]
        run.state.query_ledger += asked
        if answer.failed is not None:
            run.note("status", f"background search failed: {node.text}: {answer.failed}", level="warning")
            continue
        for hit in searching.response(answer).hits[:HITS_OF_QUERY]:
            if not run.is_excluded(hit) and canonical_url(hit.url) not in hits:
                hits[canonical_url(hit.url)] = hit
                run.state.sources.setdefault(source_id(hit.url), Source.of_hit(hit, [node.id]))
    ReflectivePosition.of(run.state).background = list(hits.values())
    run.decided(number, {"titles": len(hits)})
