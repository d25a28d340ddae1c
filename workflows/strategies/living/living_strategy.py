"""The strategy `living`: plan → a person's approval → turns of an agent, which update the report → completion."""

from typing import Final

from contracts.addresses import sub_query_id
from contracts.living_roles import DECOMPOSER, LIVING_AGENT, DecomposeInput
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import ProposedGap, SubQuery
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, GapKind, StopReason
from workflows.phases.agent_reading import pages_found, source_of_page, unanalyzed
from workflows.phases.gathering import Gathering
from workflows.phases.pause import call_hook
from workflows.phases.refreshing import read_again, withdraw_sources
from workflows.rules.gaps import open_gaps, silent_gap
from workflows.rules.sub_queries import plan_sub_queries
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.living.position import (
    LABELS,
    REFRESH_LABEL,
    LivingPosition,
    LivingUnit,
    planned_queries,
    unasked_queries,
)
from workflows.strategies.living.report import place_notes, start_report
from workflows.strategies.living.turns import MOST_TURNS, analyze_files, take_turn
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.units import carry_out, unit_progress, unplanned_requests


class LivingStrategy(Strategy):
    """One unit per call: the plan, a turn of the agent, the completion of what it left undone."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = LivingPosition.of(run.state)
        if position.finished:
            return Finished(_stop_reason(run.state, position))
        _plan_requests(run, position)
        kind = position.next_unit
        name, label = kind.value, LABELS.get(kind, REFRESH_LABEL)
        work = WORK[kind]
        if kind is LivingUnit.TURN:
            await start_report(run)
            name, label = f"{name}-{position.turn}", f"{label} {position.turn}"
        await carry_out(run, name, label, work, lambda: _summary(run.state, kind))
        return Unit(name=name, iteration_ended=kind is LivingUnit.TURN)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook, and move on."""
        position, name = LivingPosition.of(run.state), opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {self.progress(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        match position.next_unit:
            case LivingUnit.PLANNING:
                position.next_unit = LivingUnit.TURN
            case LivingUnit.TURN if position.ended and _has_work_left(run.state, position):
                position.next_unit = LivingUnit.COMPLETION
                pause = Pause(phase=name, action=Action.PROCEED, rationale=position.ended)
            case LivingUnit.TURN if not position.ended:
                pass
            case LivingUnit.REFRESH:
                position.finished = True
                pause = Pause(phase=name, action=Action.COMPLETE)
            case LivingUnit.TURN | LivingUnit.COMPLETION:
                _state_open_questions(run, position)
                position.finished = True
                pause = Pause(phase=name, action=Action.COMPLETE, rationale=position.ended)
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Let the agent go on unless it had finished; what was asked and read stays. A refresh is all that it does."""
        del redo_analysis  # a note of rules stays in the report
        position = LivingPosition.of(state)
        # Pages that were lost are opened again, and files that no analysis showed are analyzed.
        position.opened = [number for number in position.opened if source_of_page(state, number) is not None]
        position.finished = False
        if state.refresh is None:
            position.not_analyzed = []
        if not state.plan.nodes:
            return
        if state.refresh is not None:
            position.next_unit = LivingUnit.REFRESH
            return
        if not position.has_reported or not state.findings:
            position.ended, position.has_reported, position.idle_turns = "", False, 0
            position.turn = min(position.turn, MOST_TURNS)
        position.next_unit = LivingUnit.COMPLETION if position.ended else LivingUnit.TURN

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        LivingPosition.of(state).next_unit = LivingUnit.PLANNING

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Put what was read and noted into the report by rules: no other writer rewrites it."""
        del reason, changed, engine
        state = run.state
        if not state.plan.outline:
            return
        waiting = [source.id for source in unanalyzed(state, LivingPosition.of(state))]
        try:
            await analyze_files(run, LivingPosition.of(state), waiting, EngineKind.EXTRACTIVE)
        except Interrupted:
            run.degrade("not everything that was read could be analyzed in time")
        try:
            await place_notes(run)
        except Interrupted:
            run.degrade("not everything that was noted could be put into the report in time")

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each section with its words, and the completion."""
        position = LivingPosition.read(state)
        labels = LABELS | ({LivingUnit.REFRESH: REFRESH_LABEL} if state.refresh else {})
        plan, *ends = (
            unit_progress(state, position, kind, labels, _summary(state, kind))
            for kind in labels
            if kind is not LivingUnit.TURN
        )
        words = state.draft.words_by_section if state.draft else {}
        sections = [
            UnitProgress(
                name=f"section-{number}",
                label=heading,
                mark=Mark.DONE if words.get(heading) else Mark.WAITING,
                detail=plural(words[heading], "word") if words.get(heading) else "",
            )
            for number, heading in enumerate(state.plan.outline, start=1)
        ]
        is_working = position.next_unit == LivingUnit.TURN
        summary = f"turn {position.turn} of at most {MOST_TURNS}" if is_working else _summary(state, LivingUnit.TURN)
        return Progress(summary=summary, units=[plan, *sections, *ends])


def _summary(state: ResearchState, kind: LivingUnit) -> str:
    """Return the results of a unit in a few words."""
    if kind is LivingUnit.PLANNING:
        return f"{plural(len(state.plan.sub_queries), 'query')}, {plural(len(state.plan.outline), 'heading')}"
    words = sum(state.draft.words_by_section.values()) if state.draft else 0
    read, notes = len(state.readable_sources()), len(state.findings)
    return f"{plural(read, 'page')} read, {plural(notes, 'note')}, {plural(words, 'word')}"


def _stop_reason(state: ResearchState, position: LivingPosition) -> StopReason:
    if position.turn > MOST_TURNS and not position.has_reported:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT if state.unaddressed_gaps() else StopReason.NO_OPEN_GAPS


def _plan_requests(run: ResearchRun, position: LivingPosition) -> None:
    """Add a query for each request of a person since the plan, while turns are left; the outline stays as it is."""
    state = run.state
    if not state.plan.nodes or position.turn > MOST_TURNS or position.next_unit == LivingUnit.REFRESH:
        return
    for gap in unplanned_requests(state):
        text = (gap.suggested_queries or [gap.description])[0][:500]
        node = PlanNode(id=sub_query_id(text), text=text, origin=f"gap:{gap.id}", rationale=gap.description[:300])
        state.plan = state.plan.with_nodes(node)
        run.decide(AgentRole.SUPERVISOR, "query_added", gap.description, {"gap_id": gap.id})
        if position.ended:
            position.next_unit, position.ended, position.has_reported = LivingUnit.TURN, "", False


# --- units -----------------------------------------------------------------------------------------------------------
async def _plan(run: ResearchRun) -> None:
    """Have the question decomposed into queries and an outline; nothing is searched for that. Raises `Interrupted`."""
    state, resolved = run.state, run.resolved
    request = DecomposeInput(
        system_prompt=resolved.system_prompt,
        context=resolved.earlier_turns,
        corpus=resolved.corpus,
        constraints=resolved.constraints,
        most_queries=resolved.limits.max_sub_queries,
        rounds=state.clarification.rounds,
        previous=[query.text for query in state.plan.sub_queries],
        previous_outline=state.plan.outline,
    )
    output = await run.ask(DECOMPOSER, "plan", request)
    proposed = [SubQuery(query=query, priority=1) for query in output.expanded_queries]
    run.draft_plan(
        output.brief,
        plan_sub_queries(proposed, state.iteration, resolved.limits.max_sub_queries),
        outline=output.outline,
        questions=output.clarifying_questions,
        assumptions=output.assumptions,
    )


def _has_work_left(state: ResearchState, position: LivingPosition) -> bool:
    """Return true if the agent left something of the plan undone."""
    nothing_noted = not state.findings and pages_found(state)
    return bool(nothing_noted or not position.has_reported or unasked_queries(state) or unanalyzed(state, position))


async def _complete(run: ResearchRun) -> None:
    """Do what the agent left undone: approved queries that it never asked, pages not read, notes that stand nowhere.

    Raises `Interrupted`.
    """
    state, position = run.state, LivingPosition.of(run.state)
    if due := unasked_queries(state) if state.findings else planned_queries(state):
        if position.has_reported and not state.findings:
            run.branch_failed("the agent finished without a note: rules chose the pages that were read")
        await Gathering(run, due).carry_out()
    if waiting := unanalyzed(state, position):
        await analyze_files(run, position, [source.id for source in waiting])
    await place_notes(run)


async def _refresh(run: ResearchRun) -> None:
    """Read every source again; where a text differs, analyze it anew and have the report changed.

    Raises `Interrupted`.
    """
    state, position = run.state, LivingPosition.of(run.state)
    if changed := await read_again(run):
        await withdraw_sources(run, changed)
        # Numbers of notes and files are others now: the agent would have to begin with the plan.
        position.transcript, position.answers, position.reminder, position.unwritable = None, [], "", []
        position.not_analyzed = [name for name in position.not_analyzed if name not in changed]
    if waiting := unanalyzed(state, position):
        await analyze_files(run, position, [source.id for source in waiting])
    await place_notes(run, None)
    await place_notes(run)


WORK: Final = {
    LivingUnit.PLANNING: _plan,
    LivingUnit.TURN: take_turn,
    LivingUnit.COMPLETION: _complete,
    LivingUnit.REFRESH: _refresh,
}


def _state_open_questions(run: ResearchRun, position: LivingPosition) -> None:
    """Enter as gaps the questions that the agent left open, and the queries that nothing answers."""
    state = run.state
    for query in planned_queries(state) if run.resolved.engine is EngineKind.MODEL else ():
        if not query.finding_count and not query.stated_gaps:
            state.gaps = [*state.gaps, *open_gaps(state, [silent_gap(query)], f"sub_query:{query.id}")]
    drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in position.open_questions]
    state.gaps = [*state.gaps, *open_gaps(state, drafts, LIVING_AGENT.name)]
