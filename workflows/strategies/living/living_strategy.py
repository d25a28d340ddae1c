"""The `living` strategy: plan → a person's approval → turns of an agent that updates the report → completion."""

from contextlib import suppress
from typing import Final

from contracts.addresses import sub_query_id
from contracts.living_roles import DECOMPOSER, LIVING_AGENT, DecomposeInput
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import ProposedGap, SubQuery
from contracts.sentences import Message
from contracts.state import ResearchState, Unit
from contracts.supervisor_roles import REFINER, RefineInput
from contracts.texts import plural, shorten
from contracts.vocabulary import SPENDING_LIMITS, Action, AgentRole, EngineKind, GapKind, StopReason
from workflows.phases.agent_reading import list_pages, page_source, unanalyzed_sources
from workflows.phases.analysis import analyze
from workflows.phases.drafts import follow_outline
from workflows.phases.gathering import Gathering, read_again, withdraw_sources
from workflows.phases.role_inputs import to_extract
from workflows.rules.gaps import apply_assessments, open_gaps, silent_gap, with_gaps
from workflows.rules.sub_queries import assign_readings, plan_sub_queries, reading_nodes
from workflows.run.inbox import Interrupted, with_searched
from workflows.run.research_run import ResearchRun
from workflows.strategies.living.live_report import (
    name_omitted,
    place_notes,
    start_report,
    unwritten_notes,
    write_last_notes,
)
from workflows.strategies.living.position import LivingPosition, LivingUnit
from workflows.strategies.living.turns import (
    FINISHED,
    MAX_TURNS,
    analyze_files,
    analyze_last_pages,
    follow_plan,
    take_turn,
    unasked_queries,
)
from workflows.strategies.protocol import Finished
from workflows.strategies.units import UnitStrategy, carry_out, planned_queries, unit_progress, unplanned_requests

MAX_LOOKED_BACK: Final = 8
"""Gaps for which sections of pages already read are read once more."""


class LivingStrategy(UnitStrategy):
    """One unit per call: the plan, a turn of the agent, the completion of its work."""

    position = LivingPosition
    planning = LivingUnit.PLANNING

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the next unit."""
        state = run.state
        position = LivingPosition.of(run.state)
        if position.next_unit != LivingUnit.PLANNING:
            await follow_plan(run, position)
        if position.finished:
            if position.turn > MAX_TURNS and not position.has_reported:
                return Finished(StopReason.MAX_ITERATIONS)
            if not state.evidence.unaddressed_gaps():
                return Finished(StopReason.NO_OPEN_GAPS)
            # Only an agent that ends its work judges what it leaves open.
            is_judged = position.has_reported and run.resolved.engine is EngineKind.MODEL
            return Finished(StopReason.COVERAGE_SUFFICIENT if is_judged else StopReason.NO_ACTIONABLE_GAPS)
        _plan_requests(run, position)
        unit = position.next_unit
        work = {
            LivingUnit.PLANNING: _plan,
            LivingUnit.TURN: take_turn,
            LivingUnit.COMPLETION: _complete,
            LivingUnit.REFRESH: _refresh,
        }[unit]
        name = unit.value
        label = unit.label
        if unit is LivingUnit.TURN:
            await start_report(run)
            name = f"{name}-{position.turn}"
            label = f"{label} {position.turn}"
        await carry_out(run, name, work, lambda: _summary(state, unit), label=label)
        return Unit(name=name, iteration_ended=unit is LivingUnit.TURN)

    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Move from the plan to the turns, and after the last turn to the completion if anything is left."""
        state = run.state
        position = LivingPosition.of(run.state)
        has_rest = unasked_queries(state) or unanalyzed_sources(state, position) or _may_look_back(run, position)
        is_incomplete = not position.has_reported or has_rest
        nothing_noted = not state.evidence.findings and list_pages(state)
        match position.next_unit:
            case LivingUnit.PLANNING:
                position.next_unit = LivingUnit.TURN
            case LivingUnit.TURN if position.ended and (is_incomplete or nothing_noted):
                position.next_unit = LivingUnit.COMPLETION
            case LivingUnit.TURN if not position.ended:
                pass
            case LivingUnit.REFRESH:
                position.finished = True
            case LivingUnit.TURN | LivingUnit.COMPLETION:
                if position.next_unit == LivingUnit.TURN:
                    # Notes that the agent chose not to use are no loss; those that it could not write are.
                    tried = {*position.unwritable, *position.deferred} - set(position.omitted)
                    chosen = set(range(1, len(state.evidence.findings) + 1)).difference(tried)
                    name_omitted(run, unwritten_notes(state, chosen))
                _state_open_questions(run, position)
                position.finished = True
        action = Action.COMPLETE if position.finished else Action.PROCEED
        return Pause(phase=name, action=action, rationale=position.ended)

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Let the agent continue with its searches and pages, unless it had finished; or only refresh the sources."""
        del redo_analysis  # notes made by rules stay in the report
        position = LivingPosition.of(state)
        # Lost pages may be opened again, and files whose analysis failed are analyzed again.
        position.opened = [number for number in position.opened if page_source(state, number) is not None]
        position.finished = False
        cited = set(state.evidence.draft_citations)
        position.placed = [note.id for note in state.evidence.findings if cited.intersection(note.evidence_ids)]
        if state.work.refresh is None:
            position.not_analyzed = []
        if not state.work.plan.nodes:
            return
        if state.work.refresh is not None:
            position.next_unit = LivingUnit.REFRESH
            return
        if not position.has_reported or not state.evidence.findings:
            position.ended = ""
            position.has_reported = False
            position.idle_turns = 0
            position.turn = min(position.turn, MAX_TURNS)
        position.next_unit = LivingUnit.COMPLETION if position.ended else LivingUnit.TURN

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Add the notes so far to the report by rules, as no other writer rewrites it; without any, read by rules.

        Where a limit of spending was reached, the model writes its notes first, from what is reserved for them.
        """
        del changed
        state = run.state
        if not state.work.plan.outline:
            return
        if (
            reason in SPENDING_LIMITS
            and engine is None
            and any(not finding.by_rules for finding in state.evidence.findings)
        ):
            with suppress(Interrupted):
                await follow_outline(run)
                await write_last_notes(run)
            run.inbox.clear()
        try:
            await follow_outline(run)
            await analyze_last_pages(run, LivingPosition.of(state))
        except Interrupted:
            run.degrade(Message("degraded_analysis"))
        try:
            await place_notes(run)
        except Interrupted:
            run.degrade(Message("notes_not_placed"))

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each section with its word count, and the completion."""
        position = LivingPosition.read(state)
        units = [LivingUnit.PLANNING, LivingUnit.COMPLETION]
        if state.work.refresh:
            units.append(LivingUnit.REFRESH)
        plan, *ends = (unit_progress(state, position, unit, _summary(state, unit)) for unit in units)
        words = state.evidence.draft_sections
        sections = [
            UnitProgress(
                name=f"section-{number}",
                label=heading,
                mark=Mark.DONE if words.get(heading) else Mark.WAITING,
                detail=plural(words[heading], "word") if words.get(heading) else "",
            )
            for number, heading in enumerate(state.work.plan.outline, start=1)
        ]
        is_working = position.next_unit == LivingUnit.TURN
        if is_working:
            summary = f"turn {position.turn} of at most {MAX_TURNS}"
        else:
            summary = _summary(state, LivingUnit.TURN)
        return Progress(summary=summary, units=[plan, *sections, *ends])


def _summary(state: ResearchState, kind: LivingUnit) -> str:
    """Return the results of a unit in a few words."""
    if kind is LivingUnit.PLANNING:
        return f"{plural(len(state.work.plan.sub_queries), 'query')}, {plural(len(state.work.plan.outline), 'heading')}"
    words = sum(state.evidence.draft_sections.values())
    pages = len(state.evidence.readable_sources())
    notes = len(state.evidence.findings)
    return f"{plural(pages, 'page')} read, {plural(notes, 'note')}, {plural(words, 'word')}"


def _plan_requests(run: ResearchRun, position: LivingPosition) -> None:
    """Add a query for each new request of a person, while turns are left; the outline does not change."""
    state = run.state
    if not state.work.plan.nodes or position.turn > MAX_TURNS or position.next_unit == LivingUnit.REFRESH:
        return
    for gap in unplanned_requests(state):
        text = gap.suggested_queries[0]
        node = PlanNode(
            id=sub_query_id(text), text=text, origin=f"gap:{gap.id}", rationale=shorten(gap.description, 300)
        )
        state.work.plan = state.work.plan.with_nodes(node)
        run.decide(AgentRole.SUPERVISOR, "query_added", gap.description, {"gap_id": gap.id})
        if position.ended:
            position.next_unit = LivingUnit.TURN
            position.ended = ""
            position.has_reported = False


# --- units -----------------------------------------------------------------------------------------------------------
async def _plan(run: ResearchRun) -> None:
    """Have the question decomposed into queries and an outline, without searching. Raises `Interrupted`."""
    state = run.state
    resolved = run.resolved
    request = DecomposeInput(
        constraints=resolved.constraints,
        most_queries=resolved.limits.max_sub_queries,
        rounds=state.people.clarification.rounds,
        previous=[query.text for query in state.work.plan.sub_queries],
        previous_outline=state.work.plan.outline,
    )
    output = await run.ask(DECOMPOSER, "plan", request)
    proposed = [SubQuery(query=query, priority=1) for query in output.expanded_queries]
    planned = plan_sub_queries(proposed, state.work.iteration, resolved.limits.max_sub_queries)
    run.draft_plan(
        output.brief,
        with_searched(state.work.plan, planned),
        title=output.title,
        outline=output.outline,
        questions=output.clarifying_questions,
        assumptions=output.assumptions,
    )


async def _complete(run: ResearchRun) -> None:
    """Complete the agent's work: unsearched queries, unread pages, and notes missing from the report.

    Raises `Interrupted`.
    """
    state = run.state
    position = LivingPosition.of(run.state)
    if due := unasked_queries(state) if state.evidence.findings else planned_queries(state):
        if position.has_reported and not state.evidence.findings:
            run.degrade(Message("no_notes"))
        await Gathering(run, due).carry_out()
    await analyze_files(run, position)
    await _place_unreported_notes(run, position)
    if _may_look_back(run, position):
        await _look_back(run, position)


async def _place_unreported_notes(run: ResearchRun, position: LivingPosition) -> None:
    """Complete the report with the notes that the agent did not report.

    What a model that finished of its own accord omitted stays out, and is counted; what it asked for and no update had
    room for is written once more. Where a limit ended its turns, a model writes its notes; without a model, rules do.
    Raises `Interrupted`.
    """
    state = run.state
    if all(finding.by_rules for finding in state.evidence.findings):
        await place_notes(run)
        return
    if position.ended != FINISHED:
        await write_last_notes(run)
        await place_notes(run)
        return
    asked = {*position.unwritable, *position.deferred} - set(position.omitted)
    others = set(range(1, len(state.evidence.findings) + 1)) - asked
    await write_last_notes(run, others)
    if no_room := unwritten_notes(state, others):
        name_omitted(run, no_room)
    if left_out := sum(map(len, unwritten_notes(state, asked).values())):
        notes = plural(len(state.evidence.findings), "note")
        reason = f"the agent finished with {left_out} of its {notes} not in the report"
        run.decide(LIVING_AGENT.name, "leave_out", reason, {"notes": left_out})


def _may_look_back(run: ResearchRun, position: LivingPosition) -> bool:
    """Return true if the agent left something open that pages already read may answer; asked once."""
    is_judged = position.has_reported and run.resolved.engine is EngineKind.MODEL and not position.has_looked_back
    return bool(
        is_judged and run.state.evidence.findings and (position.open_questions or run.state.evidence.unaddressed_gaps())
    )


async def _look_back(run: ResearchRun, position: LivingPosition) -> None:
    """Have a refiner compare what the agent left open with its notes and with passages of the pages read.

    Sections that may answer a gap are read once more, and what they say is written into the report. The agent itself
    sees no text of a page. Raises `Interrupted`.
    """
    state = run.state
    _state_open_questions(run, position)
    request = RefineInput(
        gaps=state.evidence.unaddressed_gaps(),
        remaining_iterations=0,
        most_queries=MAX_LOOKED_BACK,
        draft=state.evidence.draft_text,
        source_count=len(state.evidence.readable_sources()),
        finding_count=len(state.evidence.findings),
        asked=[query.text for query in state.work.plan.sub_queries],
        findings=state.evidence.findings,
        read_sources=[to_extract(source, to_search=False) for source in state.evidence.readable_sources()],
    )
    output = await run.ask(REFINER, "look-back", request)
    run.settle_gaps(output.gap_analysis, REFINER.name)
    state.evidence.gaps = apply_assessments(state, output.gap_analysis)
    nodes = reading_nodes(state, output.readings, state.work.iteration)[:MAX_LOOKED_BACK]
    state.work.plan = state.work.plan.with_nodes(*nodes)
    assign_readings(state, nodes)
    for node in nodes:
        run.decide(REFINER.name, "read_further", node.text, {"gap_id": node.gap_id}, {"sections": len(node.sections)})
    position.has_looked_back = True
    before = range(1, len(state.evidence.findings) + 1)
    await analyze(run)
    # What the agent has left out of the report stays out.
    excluded = before if position.ended == FINISHED else ()
    await write_last_notes(run, excluded)
    await place_notes(run, excluded)


async def _refresh(run: ResearchRun) -> None:
    """Read every source again; if a text has changed, analyze it again and update the report.

    Raises `Interrupted`.
    """
    position = LivingPosition.of(run.state)
    if changed := await read_again(run):
        await withdraw_sources(run, changed)
        # Numbers of notes and files have changed, so a continuing agent would have to start from the plan.
        position.transcript = None
        position.answers = []
        position.reminder = ""
        position.unwritable = []
        position.deferred = []
        position.omitted = []
        position.headings = {}
        position.not_analyzed = [name for name in position.not_analyzed if name not in changed]
        position.purposes = {name: read for name, read in position.purposes.items() if name not in changed}
    await analyze_files(run, position)
    await write_last_notes(run)
    await place_notes(run)


def _state_open_questions(run: ResearchRun, position: LivingPosition) -> None:
    """Record the agent's open questions and the unanswered queries as gaps."""
    state = run.state
    if run.resolved.engine is EngineKind.MODEL:
        silent = [query for query in planned_queries(state) if not query.finding_count and not query.stated_gaps]
        for query in silent:
            state.evidence.gaps = with_gaps(state, open_gaps(state, [silent_gap(query)], f"sub_query:{query.id}"))
    drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in position.open_questions]
    state.evidence.gaps = with_gaps(state, open_gaps(state, drafts, LIVING_AGENT.name))
