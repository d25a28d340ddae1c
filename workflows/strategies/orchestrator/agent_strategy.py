"""The scoped strategy `agent`: in turns, it searches, has pages read, thinks, and reports its findings.

Searches that come with its task are made before its first turn, which then can open pages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from contracts.addresses import sub_query_id
from contracts.agents import SUMMARY_CHARACTERS, LostWork, PageRead
from contracts.evidence import Candidate, DocumentRef
from contracts.orchestrator_roles import AGENT, AGENT_REPORT, OPEN_PAGE, SEARCH, THINK, OpenArguments, WorkInput
from contracts.outcome import Pause, Progress
from contracts.plan import OTHER_FORM, WITHOUT_SEARCH, PlanNode
from contracts.roles import AnalyzerResult, ProposedGap
from contracts.sentences import Message
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.tools import ToolAnswer, ToolCall, refuse_call
from contracts.vocabulary import Action, EngineKind, GapKind, NodeKind, SourceStatus, StopReason
from workflows.phases.agent_reading import (
    NO_PLACE,
    PageReading,
    ReadingPosition,
    describe_hit,
    describe_page,
    describe_search,
    list_links,
    list_notes,
    list_pages,
    list_sections,
    list_unread,
    may_read_by_rules,
    number_of_place,
    page_refusal,
    page_source,
    read_for_purposes,
    repeated_reading,
    search_and_open,
    unanalyzed_sources,
)
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import limit_sources
from workflows.rules.duplicates import Identities
from workflows.rules.gaps import fruitless_gaps, open_gaps, with_gaps
from workflows.rules.sub_queries import find_asked, same_query, sources_left
from workflows.run.research_run import ResearchRun, describe_call
from workflows.strategies.orchestrator.orchestrator_strategy import answer_thought, thinks_by_itself
from workflows.strategies.protocol import Finished, ScopedStrategy
from workflows.strategies.units import CALL_A_TOOL, carry_out

MAX_SILENT_TURNS: Final = 2
"""Consecutive turns without a call after which the agent's work ends."""
EXTRA_TURNS: Final = 4
"""Turns allowed on top of one per search and per page."""
QUESTION_CHARACTERS: Final = 400  # of what an agent reports as open, or as looked for and not found
NO_MORE_PAID: Final = "your part of the budget pays for no more"
READ_BEFORE: Final = "pages that were read before"
"""Node of the plan for what an earlier start has read."""
MAX_SHOWN_ITEMS: Final = 12
"""Pages and gaps in the request, for the scripted fallback."""


class AgentPosition(ReadingPosition):
    """The next turn, and values passed between turns."""

    NAME: ClassVar[str] = "agent"

    turn: int = 1
    earlier: int = 0
    """Number of pages that an earlier start had opened; they are numbered first and count against no limit."""
    transcript: DocumentRef | None = None
    answers: list[ToolAnswer] = []
    """Answers to the previous turn's calls."""
    searches: int = 0
    """Searches that count against the limit; repeated ones do not."""
    has_searched: bool = False
    """True if the previous turn searched."""
    thought: bool = False
    """True if the previous turn was a thought."""
    silent_turns: int = 0
    """Consecutive turns without a call."""
    wanted: list[OpenArguments] = []
    """Pages that the current turn has read; empty once it is carried out."""
    open_questions: list[str] | None = None
    """Questions reported as open by the agent; None if it did not report."""
    nothing_on: list[str] = []
    """What it reports that its pages say nothing on."""
    finished: str = ""
    """Reason why there are no more turns; empty while there are."""


class AgentStrategy(ScopedStrategy):
    """One unit per turn; the agent gets only its task, no other part of the run that started it."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Take the next turn."""
        position = AgentPosition.of(run.state)
        if reason := end_reason(run.state):
            if not position.finished:
                position.finished = reason
                run.decide(AGENT.name, "end_work", reason)
            await _repeat_lost_work(run)
            return Finished(StopReason.NO_OPEN_GAPS if position.open_questions == [] else StopReason.NO_ACTIONABLE_GAPS)
        name = f"turn-{position.turn}"
        await carry_out(run, name, _take_turn, lambda: _summary(run.state), sub_turn=position.turn)
        return Unit(name=name, iteration_ended=True)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Move on to the next turn."""
        del run
        return Pause(phase=opened.unit.name, action=Action.PROCEED)

    def progress(self, state: ResearchState) -> Progress:
        """Return the numbers of pages and findings; turns are only events."""
        return Progress(summary=_summary(state))

    def list_read(self, state: ResearchState) -> dict[str, PageRead]:
        """Return the pages that it has had read by a model, with their purposes and what was not shown of them."""
        position = AgentPosition.read(state)
        return {
            name: PageRead(purposes=purposes, hidden=position.hidden.get(name, []))
            for name, purposes in position.purposes.items()
            if purposes
        }

    async def conclude(self, run: ResearchRun) -> str:
        """Analyze the remaining pages, record the open questions as gaps, and sum up. Raises `Interrupted`."""
        state = run.state
        position = AgentPosition.of(run.state)
        if unanalyzed_sources(state, position) and may_read_by_rules(run, position):
            await analyze_pages(run, EngineKind.EXTRACTIVE)
            run.degrade(Message("read_last_by_rules"))
        if position.open_questions is not None:
            # The agent's open questions replace gaps from the analyses of its pages.
            drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in position.open_questions]
            state.evidence.gaps = []
        else:
            # What it had asked of pages when its share ended is not to be lost with it.
            drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in _unread_wishes(state)]
        origin = f"sub_query:{state.scope}"
        state.evidence.gaps = with_gaps(state, open_gaps(state, drafts, origin))
        state.evidence.gaps = with_gaps(state, fruitless_gaps(state, position.nothing_on, origin))
        reason_given = ""
        if position.open_questions is None:
            reason_given = f" ({position.finished})" if position.finished else ""
            # A search that was not made is no gap: others may have read what it would have found.
            if waiting := _searches_waiting(state):
                reason_given += f" (not searched for: {'; '.join(shorten(text, 100) for text in waiting)})"
        headline = "nothing was found"
        if state.evidence.findings:
            headline = state.evidence.findings[0].statement
        return f"{_summary(state)}{reason_given}: {headline}"[:SUMMARY_CHARACTERS]


def _unread_wishes(state: ResearchState) -> list[str]:
    """Return the questions for which an interrupted turn asked for pages that were not read for them."""
    position = AgentPosition.read(state)
    wishes = []
    for wanted in position.wanted:
        page = OpenedPage.asked_for(wanted)
        reading = page.reading(state)
        is_read = reading is not None and reading.purpose in position.purposes.get(reading.source_id, [])
        if page.focus and not is_read:
            wishes.append(page.focus)
    return list(dict.fromkeys(wishes))


def _summary(state: ResearchState) -> str:
    pages = len(state.evidence.readable_sources())
    findings = len(state.evidence.findings)
    return f"{plural(pages, 'page')} read, {plural(findings, 'finding')}"


async def _take_turn(run: ResearchRun) -> None:
    """Have the agent call tools, and execute its calls. Raises `Interrupted`."""
    position = AgentPosition.of(run.state)
    if position.transcript is None:
        _take_up(run, position)
        await _search_first(run, position)
    step = f"work/{position.turn}"
    output = await run.turn(AGENT, step, _request(run), sub_turn=position.turn)
    position.transcript = output.transcript
    for call in output.calls:
        if call.name != THINK.name:
            run.decide(AGENT.name, "call", f"{call.name}: {describe_call(call)}", {"turn": position.turn})
    answers = await _carry_out_calls(run, position, [call for call in output.calls if not call.problem])
    position.answers = [answers.get(call.id) or refuse_call(call) for call in output.calls]
    run.note_answers(AGENT, step, output.calls, position.answers, sub_turn=position.turn)
    position.silent_turns = 0 if output.calls else position.silent_turns + 1
    position.turn += 1


def _take_up(run: ResearchRun, position: AgentPosition) -> None:
    """Number the pages that an earlier start has read first, with the purposes for which it read them."""
    state = run.state
    read = state.work.task.pages_read if state.work.task else {}
    pages = [state.evidence.sources[name] for name in read if name in state.evidence.sources]
    if not pages or position.opened:
        return
    run.decide(AGENT.name, "go_on", f"{plural(len(pages), 'page')} read before")
    node = PlanNode(id=sub_query_id(READ_BEFORE), text=READ_BEFORE, origin=WITHOUT_SEARCH, iteration=1)
    state.work.plan = state.work.plan.with_nodes(node)
    _count_as_analyzed(state, [node])
    state.evidence.candidates = [
        *state.evidence.candidates,
        *(Candidate(sub_query_id=node.id, hit=page.as_hit()) for page in pages),
    ]
    position.opened = list(range(1, len(list_pages(state)) + 1))
    position.earlier = len(position.opened)
    position.purposes = {page.id: list(read[page.id].purposes) for page in pages}
    position.hidden = {page.id: list(read[page.id].hidden) for page in pages}


def _list_earlier(state: ResearchState, position: AgentPosition) -> list[str]:
    """Return what an earlier start has read and noted, line by line."""
    lines = list[str]()
    notes = {finding.id for finding in state.evidence.findings}
    for number, page in enumerate(list_pages(state)[: position.earlier], start=1):
        source = page_source(state, number)
        if source is None:
            continue
        hidden = position.hidden.get(source.id, [])
        extent = "in part" if hidden else "whole"
        lines.append(f"Page {number}, {describe_hit(page)}, read {extent}:")
        lines += [*list_notes(state, source, notes), *list_sections(hidden)]
    gaps = [gap.description for gap in state.evidence.unaddressed_gaps()] if lines else []
    return [*lines, *(f"still open: {description}" for description in gaps)]


async def _search_first(run: ResearchRun, position: AgentPosition) -> None:
    """Make the searches that came with the task, but for one that is left to the agent. Raises `Interrupted`."""
    state = run.state
    known = {node.id for node in state.work.plan.sub_queries}
    ids = {sub_query_id(text): text for text in _given_searches(state) if text}
    if position.earlier:  # what an earlier start had no room to search for comes first
        ids = dict(sorted(ids.items(), key=lambda item: find_asked(state.evidence.ledger.queries, item[1]) is not None))
    fresh = [
        PlanNode(id=name, text=text, iteration=state.work.iteration) for name, text in ids.items() if name not in known
    ]
    nodes = fresh[: max(1, run.resolved.limits.max_searches_per_step - 1) - position.searches]
    if not nodes:
        return
    run.decide(AGENT.name, "search_first", "; ".join(node.text for node in nodes))
    position.searches += len(nodes)
    _count_as_analyzed(state, await search_and_open(run, position, nodes, []))
    position.has_searched = True


def _given_searches(state: ResearchState) -> list[str]:
    """Return the searches that came with the task."""
    given: list[str] = []
    if state.work.task:
        given = state.work.task.given.get("searches", [])
    return [" ".join(text.split()) for text in given]


def _searches_waiting(state: ResearchState) -> list[str]:
    """Return the searches that came with the task and were not made."""
    made = {node.id for node in state.work.plan.sub_queries}
    return [text for text in dict.fromkeys(_given_searches(state)) if text and sub_query_id(text) not in made]


def _first_hits(state: ResearchState) -> list[str]:
    """Return what the searches before the first turn found, line by line."""
    lines = list[str]()
    listed = list(range(1, AgentPosition.read(state).earlier + 1))
    for node in state.work.plan.sub_queries:
        if node.origin == WITHOUT_SEARCH:
            continue
        text, numbers = describe_search(state, node, listed)
        listed += numbers or []
        lines += text.splitlines()
    return lines


async def _carry_out_calls(run: ResearchRun, position: AgentPosition, calls: list[ToolCall]) -> dict[str, ToolAnswer]:
    """Execute the valid calls, and return the answers by call. Raises `Interrupted`."""
    answers = answer_thought(run, AGENT.name, calls, {"turn": position.turn})
    position.thought = bool(answers)
    position.has_searched = not answers and any(call.name == SEARCH.name for call in calls)
    if answers:
        return answers
    subjects = _subjects(run, position, calls)
    known_ids = {node.id for node in run.state.work.plan.sub_queries}
    nodes = {node.id: node for node in subjects.values() if isinstance(node, PlanNode) and node.id not in known_ids}
    pages = [page for page in subjects.values() if isinstance(page, OpenedPage)]
    opened = {call.id: subject for call in calls if isinstance(subject := subjects.get(call.id), OpenedPage)}
    position.wanted = [
        OPEN_PAGE.read(call).with_fields(index=opened[call.id].number) for call in calls if call.id in opened
    ]
    new = list(dict.fromkeys(page.number for page in pages if page.number not in position.opened))
    known = {finding.id for finding in run.state.evidence.findings}
    searched = await search_and_open(run, position, list(nodes.values()), new)
    _count_as_analyzed(run.state, searched)
    results = await analyze_pages(run, pages=pages)
    position.wanted = []
    for call in calls:
        subject = subjects.get(call.id)
        is_error = True
        passing: list[str] = []
        if isinstance(subject, PlanNode):
            text, numbers = describe_search(run.state, subject, position.opened)
            is_error = numbers is None
        elif isinstance(subject, OpenedPage):
            reading = subject.reading(run.state)
            result = results.get(reading) if reading else None
            text, is_error = describe_page(run.state, subject.number, known, result)
            passing = [*list_unread(run.state, result), *list_links(run.state, result)]
        else:
            text = subject or "The other calls of this turn came first: look at what they brought, then report."
        answers[call.id] = ToolAnswer(call_id=call.id, text=text, passing=passing, is_error=is_error)
    report = next((call for call in calls if call.name == AGENT_REPORT.name), None)
    if report is not None and not nodes and not pages:
        reported = AGENT_REPORT.read(report)
        position.open_questions = _stated(reported.open_questions)
        position.nothing_on = _stated(reported.nothing_on)
        position.finished = "it has reported"
        answers[report.id] = ToolAnswer(call_id=report.id, text="The report was handed over.")
    return answers


def _stated(texts: Iterable[str]) -> list[str]:
    """Return texts of an agent's report that are not empty, each cut to its limit."""
    return [text.strip()[:QUESTION_CHARACTERS] for text in texts if text.strip()]


@dataclass(frozen=True)
class OpenedPage:
    """A page to read, for the first time or for another purpose."""

    number: int
    focus: str = ""
    section: int = 0

    @classmethod
    def asked_for(cls, arguments: OpenArguments) -> "OpenedPage":
        """Return the page that a call asks for."""
        return cls(arguments.index, " ".join(arguments.focus.split()), arguments.section or 0)

    def reading(self, state: ResearchState) -> PageReading | None:
        """Return the reading of its source; None if it could not be read."""
        source = page_source(state, self.number)
        if source is None or source.status is not SourceStatus.FULL:
            return None
        return PageReading(source.id, self.focus, self.section)


def _subjects(
    run: ResearchRun, position: AgentPosition, calls: list[ToolCall]
) -> dict[str, PlanNode | OpenedPage | str]:
    """Map each call to its search, its page, or the reason for refusal; reports have no entry."""
    state = run.state
    subjects = dict[str, PlanNode | OpenedPage | str]()
    searches = searches_left(state)
    pages = pages_left(state)
    for call in calls:
        if call.name == SEARCH.name:
            text = " ".join(SEARCH.read(call).query.split())
            searched = [
                *state.work.plan.sub_queries,
                *(node for node in subjects.values() if isinstance(node, PlanNode)),
            ]
            repeated = next((node for node in searched if same_query(node.text, text)), None)
            if repeated is not None:
                subjects[call.id] = repeated
            elif searches:
                subjects[call.id] = PlanNode(id=sub_query_id(text), text=text, iteration=state.work.iteration)
                searches -= 1
            else:
                subjects[call.id] = "no search is left: open pages that were found, or report"
        elif call.name == OPEN_PAGE.name:
            arguments = OPEN_PAGE.read(call)
            if not arguments.index and arguments.place:
                arguments = arguments.with_fields(index=number_of_place(state, arguments.place))
                if not arguments.index:
                    subjects[call.id] = NO_PLACE.format(place=shorten(arguments.place, 100))
                    continue
            page = OpenedPage.asked_for(arguments)
            asked = [subject for subject in subjects.values() if isinstance(subject, OpenedPage)]
            is_new = page.number not in [*position.opened, *(each.number for each in asked)]
            subjects[call.id] = _page_problem(run, position, page, asked, pages if is_new else None) or page
            pages -= is_new and subjects[call.id] is page
    position.searches += searches_left(state) - searches
    return subjects


def _page_problem(
    run: ResearchRun,
    position: AgentPosition,
    page: OpenedPage,
    asked: Sequence[OpenedPage],
    reads_left: int | None,
) -> str:
    """Return the reason why a page is not read; empty if it is.

    `asked` are the pages of the same turn, and `reads_left` counts pages that may still be opened; None for an opened
    one, which is read again.
    """
    if page in asked:
        return f"page {page.number} is read for this purpose by another call of this turn"
    if reads_left is not None:
        return page_refusal(run, page.number, (), reads_left)
    reading = page.reading(run.state)
    problem = repeated_reading(position, reading) if reading else ""
    if not problem:
        return ""
    return f"page {page.number}: {problem}"


async def _repeat_lost_work(run: ResearchRun) -> None:
    """Repeat the searches and reads that failed in an earlier start and are missing from this one.

    Raises `Interrupted`.
    """
    state = run.state
    if run.state.work.task:
        lost = run.state.work.task.lost
    else:
        lost = LostWork()
    known = Identities(state.evidence.sources, state.evidence.aliases)
    by_text = {query.text: query for query in state.work.plan.sub_queries}
    nodes = list[PlanNode]()
    limit = pages_left(state)
    source_count = len(state.evidence.sources)
    for text in lost.queries:
        node = by_text.get(text) or PlanNode(id=sub_query_id(text), text=text, iteration=state.work.iteration)
        hits = [candidate.hit for candidate in state.evidence.candidates if candidate.sub_query_id == node.id]
        if text not in by_text or (hits and not any(known.identity_of(hit) in state.evidence.sources for hit in hits)):
            nodes.append(node)
    if pages := [hit for hit in lost.pages if known.identity_of(hit) not in state.evidence.sources]:
        of_pages = {"id": sub_query_id("lost"), "text": "lost pages", "origin": WITHOUT_SEARCH}
        nodes.insert(0, PlanNode(iteration=state.work.iteration, **of_pages))
        state.evidence.candidates += [Candidate(sub_query_id=nodes[0].id, hit=hit) for hit in pages]
    if not nodes:
        return
    await Gathering(run, nodes, cap=limit).carry_out()
    _count_as_analyzed(state, nodes)
    await analyze_pages(run)
    known = Identities(state.evidence.sources, state.evidence.aliases)
    first = {candidate.sub_query_id: candidate.hit for candidate in state.evidence.candidates[::-1]}
    due = [*pages, *(first[node.id] for node in nodes if node.id in first)]
    left_out = dict.fromkeys(
        hit.title or hit.url for hit in due if known.identity_of(hit) not in state.evidence.sources
    )
    if left_out and len(state.evidence.sources) - source_count >= limit:
        run.branch_failed(Message("not_read_again", titles=shorten("; ".join(left_out), 99)))


# --- the request ---------------------------------------------------------------------------------------------------
def _request(run: ResearchRun) -> WorkInput:
    state = run.state
    position = AgentPosition.of(run.state)
    thinks = thinks_by_itself(run.resolved, AGENT)
    has_pages = bool(pages_left(state) and unopened_pages(state))
    may_open = has_pages or bool(pages_left(state) and state.resolution.corpus)  # a document opens by its place
    # What a search finds is of use only while a page is left to open.
    offered = [SEARCH.name] if searches_left(state) and pages_left(state) else []
    if position.searches or not offered:
        offered.append(AGENT_REPORT.name)
    if may_open or position.purposes:  # a page that was read may be read for another purpose
        offered.append(OPEN_PAGE.name)
    if not thinks and not position.thought:
        offered.append(THINK.name)
    reminders = list[str]()
    if position.silent_turns:
        reminders.append(CALL_A_TOOL)
    elif position.has_searched and has_pages:
        reminders.append("Titles prove nothing: open the most promising pages, unless the task is already answered.")
    request = WorkInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered,
        searches_left=searches_left(state),
        pages_left=pages_left(state),
        reasons=thinks,
        earlier=_list_earlier(state, position) if position.transcript is None else [],
        hits=_first_hits(state) if position.transcript is None else [],
        searches_waiting=_searches_waiting(state) if position.transcript is None else [],
        found=unopened_pages(state)[:MAX_SHOWN_ITEMS],
        searches=position.searches,
        open_gaps=[gap.description for gap in state.evidence.unaddressed_gaps()][:MAX_SHOWN_ITEMS],
    )
    readings = scarce_readings(run.agents.room_for_reading(AGENT, request).readings, pages_left(state))
    if position.transcript is not None:  # the opening has what is left
        reminders.append(_list_left(state, readings))
    return request.with_fields(reminder="\n".join(reminders), readings_left=readings)


def _list_left(state: ResearchState, readings: int | None) -> str:
    """Return the sentence on what an agent may still do: one number of pages, whatever limits it."""
    searches = plural(searches_left(state), "search")
    if readings is not None:
        return f"Left: {searches}, about {plural(readings, 'reading')} of a page, opened before or not: {NO_MORE_PAID}."
    pages = plural(pages_left(state), "page")
    return f"Left: {searches}, {pages} to open; those opened may be read again for another focus."


# --- limits --------------------------------------------------------------------------------------------------------
def end_reason(state: ResearchState) -> str:
    """Return the reason why the agent takes no more turns; empty while it does."""
    position = AgentPosition.read(state)
    if position.finished:
        return position.finished
    if position.silent_turns >= MAX_SILENT_TURNS:
        return "it called no tool"
    limits = state.resolution.limits
    if position.turn > limits.max_searches_per_step + limits.max_reads_per_step + EXTRA_TURNS:
        return "its turns are used up"
    return ""


def searches_left(state: ResearchState) -> int:
    """Return the number of searches that the agent may still make."""
    return max(0, state.resolution.limits.max_searches_per_step - AgentPosition.read(state).searches)


def scarce_readings(readings: int | None, pages: int) -> int | None:
    """Return about how many readings a budget pays for, if these are fewer than the pages that may be opened.

    `readings` is None for a budget without a limit. One is always paid for: without it, no turn would be taken.
    """
    if readings is None or readings >= pages:
        return None
    return max(1, readings)


def pages_left(state: ResearchState) -> int:
    """Return the number of pages that the agent may still open."""
    limits = state.resolution.limits
    position = AgentPosition.read(state)
    left = limits.max_reads_per_step - (len(position.opened) - position.earlier)
    return max(0, min(left, sources_left(state, limits)))


# --- pages ---------------------------------------------------------------------------------------------------------
def unopened_pages(state: ResearchState) -> list[tuple[int, int]]:
    """Return the number and search rank of each page not opened yet."""
    opened = set(AgentPosition.read(state).opened)
    return [(number, page.hit.rank) for number, page in enumerate(list_pages(state), start=1) if number not in opened]


def _count_as_analyzed(state: ResearchState, searches: Sequence[PlanNode]) -> None:
    """Mark searches as analyzed, because their pages are analyzed for the task instead."""
    state.work.analyzed_sub_queries = list(
        dict.fromkeys([*state.work.analyzed_sub_queries, *(node.id for node in searches)])
    )


async def analyze_pages(
    run: ResearchRun, engine: EngineKind | None = None, pages: Sequence[OpenedPage] = ()
) -> dict[PageReading, AnalyzerResult]:
    """Have pages read for their purposes, and sources that no role has read yet for the agent's task.

    Returns the results by reading. Raises `Interrupted`.
    """
    state = run.state
    position = AgentPosition.of(run.state)
    readings = [reading for page in pages if (reading := page.reading(state)) is not None]
    named = {reading.source_id for reading in readings}
    others = [source for source in unanalyzed_sources(state, position) if source.id not in named]
    readings += [PageReading(source.id) for source in limit_sources(state, others)]
    if not readings:
        return {}
    # The pages of one turn may lack findings without leaving a gap, hence the facet `OTHER_FORM`.
    task = PlanNode(id=state.scope, text=run.resolved.query, kind=NodeKind.TASK, needs_search=False, facet=OTHER_FORM)
    return await read_for_purposes(run, position, task, readings, engine)
