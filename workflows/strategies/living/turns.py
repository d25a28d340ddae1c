"""The `living` strategy: its position, the turns of its agent with the execution of calls, and its report."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from contracts.addresses import normalized_text, sub_query_id
from contracts.evidence import Source
from contracts.living_roles import (
    FETCH_URL,
    FILE_ID_CHARACTERS,
    FINISH,
    LIVING_AGENT,
    MAX_UPDATE_NOTES,
    PARSE_CONTENT,
    UPDATE_REPORT,
    WEB_SEARCH,
    FetchArguments,
    LivingInput,
    ParseArguments,
    UpdateArguments,
)
from contracts.plan import CHOSEN_BY_AGENT, OTHER_FORM, PlanNode
from contracts.report_updates import asked_of_limit
from contracts.resolved import EffectiveLimits
from contracts.roles import AnalyzerResult
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.texts import plural, shorten
from contracts.tools import ToolAnswer, ToolCall, ToolSpec, refuse_call
from contracts.vocabulary import EngineKind, NodeKind, NodeStatus, SourceStatus
from workflows.phases.agent_reading import (
    NO_PLACE,
    PageReading,
    describe_reading,
    describe_search,
    list_links,
    list_pages,
    list_unread,
    may_read_by_rules,
    number_of_place,
    page_refusal,
    page_source,
    page_title,
    read_for_purposes,
    repeated_reading,
    search_and_open,
    unanalyzed_sources,
    unread_reason,
)
from workflows.phases.drafts import follow_outline, update_input
from workflows.phases.role_inputs import findings_to_report
from workflows.rules.sub_queries import same_query, sources_left
from workflows.run.host import all_answers
from workflows.run.research_run import ResearchRun
from workflows.strategies.living.live_report import (
    WrittenUpdate,
    empty_sections,
    find_notes,
    note_numbers,
    unwritten_notes,
    write_updates,
)
from workflows.strategies.living.position import LivingPosition, LivingUnit
from workflows.strategies.units import CALL_A_TOOL, planned_queries

MAX_TURNS: Final = 30
"""Limit of the agent's turns; twenty pages in waves of five need about sixteen."""
MAX_IDLE_TURNS: Final = 2
"""Consecutive turns without progress after which the agent's part ends."""
NOTHING_NEW: Final = (
    "That turn brought nothing new. If the next one brings nothing either, the research ends: search in other words, "
    "write down what is not in the report yet, or finish."
)
QUESTION: Final = "question"
"""Temporary id of the task in an analysis, which is the question itself."""
MIN_FILE_NOTES: Final = 4
"""Notes that a reader may make of any file; of a long one it may make more."""
CONTRIBUTION_CHARACTERS: Final = 300
NOTE_CHARACTERS: Final = 200
"""Of a note in an event; the record has the whole."""
ONE_UPDATE_EACH: Final = "This section is updated by another call of this turn: make the call again in the next turn."


FINISHED: Final = "the agent has finished"
"""Reason of the end of its turns that is the agent's own choice."""


def unasked_queries(state: ResearchState) -> list[PlanNode]:
    """Return the approved queries not searched yet."""
    return [query for query in planned_queries(state) if query.status is NodeStatus.PENDING]


@dataclass
class TurnWork:
    """The calls of a turn to execute, by call id, and the refused ones."""

    searches: dict[str, PlanNode] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    files: dict[str, PageReading] = field(default_factory=dict)
    updates: dict[str, UpdateArguments] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons why calls are not executed."""


async def follow_plan(run: ResearchRun, position: LivingPosition) -> None:
    """Have report and agent go by another version of the plan, which a person approved after the first turn.

    Raises `Interrupted`.
    """
    state = run.state
    followed = position.plan_version
    position.plan_version = state.work.plan.version
    headings = list(state.evidence.draft_sections)
    if followed in (0, state.work.plan.version) or not (headings != state.work.plan.outline or unasked_queries(state)):
        return
    position.plan_version = followed  # until the report has the headings
    await follow_outline(run)
    position.plan_version = state.work.plan.version
    cited = set(state.evidence.draft_citations)
    # Notes of removed sections may be written again, under other headings.
    position.placed = [
        note.id for note in state.evidence.findings if note.id in position.placed and cited & set(note.evidence_ids)
    ]
    position.unwritable = []
    position.deferred = []
    position.omitted = []
    position.headings = {}
    position.idle_turns = 0
    position.has_reported = False
    position.ended = ""
    position.finished = False
    position.next_unit = LivingUnit.TURN
    if position.turn > MAX_TURNS:
        position.ended = "the turns of the agent are used up"
        position.next_unit = LivingUnit.COMPLETION
    position.reminder = describe_change(state, position)
    run.decide(LIVING_AGENT.name, "follow_plan", "", {"version": state.work.plan.version})


def describe_change(state: ResearchState, position: LivingPosition) -> str:
    """Describe a changed plan to the agent: the headings, and the queries and notes that it is to see to."""
    lines = ["The person changed the plan. The headings of the report are now: " + "; ".join(state.work.plan.outline)]
    if queries := [query.text for query in unasked_queries(state)]:
        lines.append("Queries of the plan that were not asked yet: " + "; ".join(queries))
    if notes := [number for numbers in unwritten_notes(state, position.unwritable).values() for number in numbers]:
        lines.append("Notes that no section has: " + ", ".join(map(str, sorted(notes))))
    return "\n".join(lines)


# --- the turn --------------------------------------------------------------------------------------------------------
async def take_turn(run: ResearchRun) -> None:
    """Have the agent call tools, and execute its calls. Raises `Interrupted`."""
    state = run.state
    position = LivingPosition.of(run.state)
    if position.transcript is None and run.resolved.engine is EngineKind.MODEL:
        await _ask_plan(run, position)
    step = f"work/{position.turn}"
    output = await run.turn(LIVING_AGENT, step, turn_request(run, position))
    calls = [call for call in output.calls if not call.problem]
    work = _sort_calls(run, position, calls)
    # Files are analyzed individually, so all searches count as analyzed.
    search_ids = [node.id for node in (*state.work.plan.sub_queries, *work.searches.values())]
    state.work.analyzed_sub_queries = list(dict.fromkeys(search_ids))
    progress = _measure_progress(state)
    answers, results = await _carry_out(run, position, work, calls)
    _finish(state, position, calls, answers, can_fetch=can_fetch(state, position, run.resolved.limits))
    # The turn counts only from here; if cut short before, it is repeated with the answer from the journal, unpaid.
    position.transcript = output.transcript
    position.answers = [answers.get(call.id) or refuse_call(call) for call in output.calls]
    run.note_answers(LIVING_AGENT, step, output.calls, position.answers, results)
    is_idle = not position.ended and _measure_progress(state) == progress
    position.idle_turns = position.idle_turns + 1 if is_idle else 0
    if not is_idle:
        position.reminder = ""
    elif output.calls:
        position.reminder = NOTHING_NEW
    else:
        position.reminder = CALL_A_TOOL
    position.turn += 1
    if position.ended:
        return
    if position.idle_turns >= MAX_IDLE_TURNS:
        # No service failed: what is left of the plan is done by rules.
        position.ended = Message("idle_turns", turns=counted("turn", MAX_IDLE_TURNS))
        run.degrade(position.ended)
    elif position.turn > MAX_TURNS:
        position.ended = Message("turns_used_up")
    if position.ended:
        run.decide(LIVING_AGENT.name, "end_work", position.ended, {"turn": position.turn - 1})


async def _ask_plan(run: ResearchRun, position: LivingPosition) -> None:
    """Search for the queries of the plan, which the agent would have to ask in any case. Raises `Interrupted`."""
    state = run.state
    nodes = unasked_queries(state)
    if nodes:
        state.work.analyzed_sub_queries = list(
            dict.fromkeys([*state.work.analyzed_sub_queries, *(node.id for node in nodes)])
        )
        await search_and_open(run, position, nodes, [])


def _describe_plan_hits(state: ResearchState) -> tuple[list[str], list[int]]:
    """Return what the queries of the plan found, line by line, and the numbers of the pages listed."""
    lines = list[str]()
    listed = list[int]()
    for query in planned_queries(state):
        if query.status is not NodeStatus.PENDING:
            text, numbers = describe_search(state, query, listed)
            listed += numbers or []
            lines += text.splitlines()
    return lines, listed


def _measure_progress(state: ResearchState) -> tuple[int, int, int, str]:
    """Return the measures of progress: the numbers of pages, sources and notes, and the hash of the text."""
    text = state.evidence.draft.document.hash if state.evidence.draft else ""
    return len(list_pages(state)), len(state.evidence.fetched_sources()), len(state.evidence.findings), text


def turn_request(run: ResearchRun, position: LivingPosition) -> LivingInput:
    """Return the request for a turn; the first one opens with the plan."""
    state = run.state
    is_opening = position.transcript is None
    opened = set(position.opened)
    pages = list_pages(state)
    unopened = [number for number in range(1, len(pages) + 1) if number not in opened]
    hits = list[str]()
    if is_opening and run.resolved.engine is EngineKind.MODEL:
        hits, listed = _describe_plan_hits(state)
        position.listed = list(dict.fromkeys([*listed, *position.listed]))
    return LivingInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered_tools(state, position, run.resolved.limits),
        reminder=position.reminder if is_opening else "\n".join(filter(None, [position.reminder, what_is_left(run)])),
        queries=[query.text for query in planned_queries(state)] if is_opening else [],
        outline=state.work.plan.outline if is_opening else [],
        assumptions=state.work.plan.assumptions if is_opening else [],
        hits=hits,
        pages_left=sources_left(state, run.resolved.limits),
        turns_left=MAX_TURNS - position.turn + 1,
        unasked=[query.text for query in unasked_queries(state)],
        found=sorted(unopened, key=lambda number: (pages[number - 1].hit.rank, number)),
        files=[file_id(source) for source in unanalyzed_sources(state, position)],
        unwritten=unwritten_notes(state, position.unwritable),
        open_questions=[f"Nothing was found for: {heading}" for heading in empty_sections(state)],
    )


def what_is_left(run: ResearchRun) -> str:
    """Return how much the agent may still do, the words of each section, and the queries of the plan not asked yet."""
    state = run.state
    position = LivingPosition.read(run.state)
    pages = sources_left(state, run.resolved.limits)
    turns = MAX_TURNS - position.turn + 1
    unasked = "; ".join(query.text for query in unasked_queries(state))
    lines = [f"Left: {plural(pages, 'page')} to fetch, {plural(turns, 'turn')}, this one included."]
    if unasked:
        lines += [f"Queries of the plan not asked yet: {unasked}"]
    sections = state.evidence.draft_sections
    if any(sections.values()):
        lengths = "; ".join(f"{name}: {count or 'empty'}" for name, count in sections.items())
        lines.append(f"Words of each section: {lengths}.")
    return "\n".join(lines)


def can_fetch(state: ResearchState, position: LivingPosition, limits: EffectiveLimits) -> bool:
    """Return true while a page that was found may be fetched."""
    return sources_left(state, limits) > 0 and len(list_pages(state)) > len(position.opened)


def offered_tools(state: ResearchState, position: LivingPosition, limits: EffectiveLimits) -> list[str]:
    """Return the names of the tools that can have an effect in the next turn."""
    may_fetch = can_fetch(state, position, limits)
    may_search = sources_left(state, limits) > 0 or bool(unasked_queries(state))
    has_searched = any(query.status is not NodeStatus.PENDING for query in state.work.plan.sub_queries)
    usable: dict[ToolSpec[Any], bool] = {
        WEB_SEARCH: may_search,
        FETCH_URL: may_fetch,
        PARSE_CONTENT: bool(state.evidence.readable_sources()),
        UPDATE_REPORT: bool(state.evidence.findings),
        FINISH: has_searched and not (may_fetch and not state.evidence.fetched_sources()),
    }
    return [tool.name for tool, is_usable in usable.items() if is_usable] or [FINISH.name]


# --- its calls -------------------------------------------------------------------------------------------------------
def _sort_calls(run: ResearchRun, position: LivingPosition, calls: Sequence[ToolCall]) -> TurnWork:
    """Decide which calls to execute."""
    work = TurnWork()
    for call in calls:
        if call.name == WEB_SEARCH.name:
            _sort_search(run.state, work, call.id, WEB_SEARCH.read(call).query)
        elif call.name == FETCH_URL.name:
            _sort_fetch(run, work, call.id, FETCH_URL.read(call), position.opened)
        elif call.name == PARSE_CONTENT.name:
            _sort_parse(run.state, work, call.id, PARSE_CONTENT.read(call), position)
        elif call.name == UPDATE_REPORT.name:
            _sort_update(run.state, work, call.id, UPDATE_REPORT.read(call), position.placed)
    return work


def _sort_search(state: ResearchState, work: TurnWork, call_id: str, query: str) -> None:
    text = " ".join(query.split())
    known = next((node for node in state.work.plan.sub_queries if same_query(node.text, text)), None)
    is_repeated = any(same_query(node.text, text) for node in work.searches.values())
    if is_repeated or (known is not None and known.status is NodeStatus.COMPLETED):
        work.refused[call_id] = f"“{text}” was searched for already: its pages are listed above"
        return
    if known is None:
        known = PlanNode(id=sub_query_id(text), text=text, origin=CHOSEN_BY_AGENT, iteration=state.work.iteration)
    work.searches[call_id] = known


def _sort_fetch(
    run: ResearchRun, work: TurnWork, call_id: str, arguments: FetchArguments, opened: Sequence[int]
) -> None:
    number = arguments.page
    if not number and arguments.place:
        number = number_of_place(run.state, arguments.place)
        if not number:
            work.refused[call_id] = NO_PLACE.format(place=shorten(arguments.place, 100))
            return
    left = sources_left(run.state, run.resolved.limits) - len(work.pages)
    if problem := page_refusal(run, number, [*opened, *work.pages.values()], left):
        work.refused[call_id] = problem
    else:
        work.pages[call_id] = number


def _sort_parse(
    state: ResearchState, work: TurnWork, call_id: str, arguments: ParseArguments, position: LivingPosition
) -> None:
    name = arguments.file_id.strip().removeprefix("sha256:")[:FILE_ID_CHARACTERS]
    files = {file_id(source): source.id for source in state.evidence.readable_sources()}
    if name not in files:
        work.refused[call_id] = f"{name} is no fetched file: fetch a page first"
        return
    reading = PageReading(files[name], " ".join(arguments.focus.split()), arguments.section or 0)
    if reading in work.files.values():
        work.refused[call_id] = f"{name} is read for this purpose by another call of this turn"
    elif problem := repeated_reading(position, reading):
        work.refused[call_id] = f"{name}: {problem}"
    else:
        work.files[call_id] = reading


def _sort_update(
    state: ResearchState, work: TurnWork, call_id: str, arguments: UpdateArguments, placed: Collection[str]
) -> None:
    wanted = normalized_text(arguments.heading.lstrip("# "))
    heading = next((text for text in state.work.plan.outline if normalized_text(text) == wanted), None)
    reportable = {finding.id for finding in findings_to_report(state.evidence.findings)}
    unknown = [number for number in arguments.notes if not 0 < number <= len(state.evidence.findings)]
    if heading is None:
        problem = "the outline has no such heading; its headings are: " + "; ".join(state.work.plan.outline)
    elif unknown:
        problem = f"there is no note {unknown[0]}: notes are numbered from 1 to {len(state.evidence.findings)}"
    elif not arguments.notes:
        problem = "name the numbers of the notes that the passage is to report"
    elif made_by_rules := [
        number for number in arguments.notes if state.evidence.findings[number - 1].id not in reportable
    ]:
        problem = f"note {made_by_rules[0]} was made without a model, and cannot be reported: have its page read again"
    elif any(update.heading == heading for update in work.updates.values()):
        problem = ONE_UPDATE_EACH
    elif not (notes := [number for number in arguments.notes if state.evidence.findings[number - 1].id not in placed]):
        problem = "these notes are in the report already"
    else:
        notes = notes[:MAX_UPDATE_NOTES]
        work.updates[call_id] = arguments.with_fields(heading=heading, notes=notes)
        return
    work.refused[call_id] = problem


async def _carry_out(
    run: ResearchRun, position: LivingPosition, work: TurnWork, calls: Sequence[ToolCall]
) -> tuple[dict[str, ToolAnswer], dict[str, dict[str, Any]]]:
    """Execute everything in parallel; return answers and event fields by call. Raises `Interrupted`."""
    state = run.state
    written = dict[str, WrittenUpdate]()
    read = dict[PageReading, AnalyzerResult]()
    known_notes = {finding.id for finding in state.evidence.findings}

    async def write() -> None:
        written.update(await _update(run, position, work.updates))

    async def read_files() -> None:
        read.update(await analyze_files(run, position, list(work.files.values())))

    jobs: list[Callable[[], Awaitable[object]]] = [
        partial(search_and_open, run, position, list(work.searches.values()), list(work.pages.values())),
        read_files,
        write,
    ]
    await all_answers(run.host, jobs)
    answers = dict[str, ToolAnswer]()
    results = dict[str, dict[str, Any]]()
    for call in calls:
        name = call.id
        passing: list[str] = []
        if name in work.refused:
            text = work.refused[name]
            is_error = True
        elif name in work.searches:
            limit = WEB_SEARCH.read(call).max_results
            text, numbers = describe_search(state, work.searches[name], position.listed, limit)
            position.listed += numbers or []
            is_error = numbers is None
            results[name] = {"pages": [_found_page(state, work.searches[name], number) for number in numbers or ()]}
        elif name in work.pages:
            text, is_error = _describe_fetched(state, work.pages[name])
            results[name] = _fetched_fields(state, work.pages[name])
        elif name in work.files:
            result = read.get(work.files[name])
            text, is_error = _describe_file(state, work.files[name], known_notes, result)
            passing = [*list_unread(state, result), *list_links(state, result)]
            # Another reading of the same page in this turn lists its own notes alone.
            if result:
                known_notes |= {finding.id for finding in result.findings}
            results[name] = _note_fields(state, work.files[name].source_id)
        elif name in work.updates:
            text, results[name] = _describe_update(state, work.updates[name].heading, written[name])
            is_error = written[name].outcome.step is None and not (written[name].omitted or written[name].moved)
        else:
            continue
        answers[name] = ToolAnswer(call_id=name, text=text, passing=passing, is_error=is_error)
    return answers, results


async def analyze_files(
    run: ResearchRun,
    position: LivingPosition,
    readings: Sequence[PageReading] | None = None,
    engine: EngineKind | None = None,
) -> dict[PageReading, AnalyzerResult]:
    """Have files read for their purposes (None: each unread one for the question), each in its own call, in parallel.

    So the notes on a file do not depend on other files. Returns the results by reading. Raises `Interrupted`.
    """
    state = run.state
    if readings is None:
        readings = [PageReading(source.id) for source in unanalyzed_sources(state, position)]
    task = PlanNode(
        id=QUESTION,
        text=run.resolved.query,
        kind=NodeKind.TASK,
        needs_search=False,
        facet=OTHER_FORM,
        expected_contribution=shorten("; ".join(state.work.plan.outline), CONTRIBUTION_CHARACTERS),
    )
    try:
        return await read_for_purposes(run, position, task, readings, engine, MIN_FILE_NOTES)
    finally:
        _attribute(state)


def _attribute(state: ResearchState) -> None:
    """Attribute each note to the first query that found its source, and update all queries' finding counts."""
    first = {source.id: source.sub_query_ids[0] for source in state.evidence.sources.values() if source.sub_query_ids}
    for index, finding in enumerate(state.evidence.findings):
        if finding.sub_query_id == QUESTION and finding.source_ids:
            state.evidence.findings[index] = finding.with_fields(
                sub_query_id=first.get(finding.source_ids[0], QUESTION)
            )
    noted = {name for finding in state.evidence.findings for name in finding.source_ids}
    counts = Counter(
        name for source in state.evidence.sources.values() if source.id in noted for name in source.sub_query_ids
    )
    nodes = [node for node in state.work.plan.nodes if node.id != QUESTION]
    nodes = [node.with_fields(finding_count=counts[node.id]) for node in nodes]
    state.work.plan = state.work.plan.with_fields(nodes=nodes)


async def analyze_last_pages(run: ResearchRun, position: LivingPosition) -> None:
    """Have rules read the pages that no model read before the run ends, if there is no other note.

    Raises `Interrupted`.
    """
    if may_read_by_rules(run, position):
        await analyze_files(run, position, engine=EngineKind.EXTRACTIVE)


async def _update(
    run: ResearchRun, position: LivingPosition, updates: Mapping[str, UpdateArguments]
) -> dict[str, "WrittenUpdate"]:
    """Have passages for different sections written in parallel; return them by call."""
    if not updates:
        return {}
    state = run.state
    requests = {
        f"update/{position.turn}-{number}": update_input(run, item.heading, find_notes(state, item.notes), item.purpose)
        for number, item in enumerate(updates.values(), start=1)
    }
    written = await write_updates(run, requests, list(updates))
    for arguments, update in zip(updates.values(), written, strict=True):
        if update.outcome.step is None or not update.outcome.step.inserted:
            position.unwritable += arguments.notes
        position.deferred = sorted({*position.deferred, *note_numbers(state, [*update.left, *update.moved])})
    return dict(zip(updates, written, strict=True))


def _finish(
    state: ResearchState,
    position: LivingPosition,
    calls: Sequence[ToolCall],
    answers: dict[str, ToolAnswer],
    *,
    can_fetch: bool,
) -> None:
    """End the agent's part at its request if the plan is done; else answer with the missing parts."""
    finishes = [call for call in calls if call.name == FINISH.name]
    for call in finishes:
        questions = [text.strip()[:400] for text in FINISH.read(call).open_questions if text.strip()]
        problem = finish_refusal(state, questions, can_fetch=can_fetch)
        if len(calls) > len(finishes):
            problem = "The other calls of this turn came first: look at what they brought, then finish."
        answers[call.id] = ToolAnswer(call_id=call.id, text=problem or "The research is over.", is_error=bool(problem))
        if not problem:
            position.has_reported = True
            position.open_questions = questions
            position.ended = FINISHED


def finish_refusal(state: ResearchState, questions: Sequence[str], *, can_fetch: bool) -> str:
    """Describe the parts of the plan that are neither done nor named as open; empty if there are none.

    `can_fetch` is true while a page that was found may still be fetched.
    """
    named = normalized_text(" ".join(questions))
    queries = [query.text for query in unasked_queries(state) if normalized_text(query.text) not in named]
    headings = [heading for heading in empty_sections(state) if normalized_text(heading) not in named]
    missing = []
    if queries:
        missing = [f"these queries of the plan were not asked: {'; '.join(queries)}"]
    if headings:
        missing += [f"these headings are still empty: {'; '.join(headings)}"]
    if can_fetch and not state.evidence.fetched_sources():
        return "No page was fetched yet: titles answer nothing. Fetch the most promising pages and have them read."
    if not missing:
        return ""
    return f"{'. '.join(missing)}. Do so, or name each of them in open_questions with the reason."


# --- answers ---------------------------------------------------------------------------------------------------------
def _describe_fetched(state: ResearchState, number: int) -> tuple[str, bool]:
    """Describe the file of a fetched page, and return true if it could not be fetched."""
    source = page_source(state, number)
    title = page_title(list_pages(state)[number - 1])
    if source is None or source.status is not SourceStatus.FULL or source.text is None:
        return f"Page {number}, “{title}”, is unavailable: {unread_reason(source)}.", True
    text = f"Page {number}, “{source.title}”: file {file_id(source)}, {source.media_type}, "
    return f"{text}{source.text.size} characters of text.", False


def _found_page(state: ResearchState, search: PlanNode, number: int) -> dict[str, Any]:
    """Return the event fields of a page that a search listed."""
    hit = list_pages(state)[number - 1].hit
    same = [
        page.hit for page in state.evidence.candidates if page.sub_query_id == search.id and page.hit.url == hit.url
    ]
    snippet = next((one.snippet for one in same if one.snippet), hit.snippet)
    return {"page": number, "url": hit.url, "title": hit.title, "snippet": snippet}


def _fetched_fields(state: ResearchState, number: int) -> dict[str, Any]:
    """Return the event fields of a fetched page, with its file if it could be fetched."""
    source = page_source(state, number)
    hit = list_pages(state)[number - 1].hit
    fields: dict[str, Any] = {"url": hit.url, "title": hit.title}
    if source is None or source.status is not SourceStatus.FULL or source.text is None:
        return fields
    file = {"file_id": file_id(source), "content_type": source.media_type, "characters": source.text.size}
    return fields | {"url": source.url, "title": source.title} | file


def _note_fields(state: ResearchState, name: str) -> dict[str, Any]:
    """Return the event fields of a file that was read: its address, and all notes on it by number."""
    source = state.evidence.sources[name]
    notes = {
        number: finding.statement[:NOTE_CHARACTERS]
        for number, finding in enumerate(state.evidence.findings, start=1)
        if name in finding.source_ids
    }
    return {"url": source.url, "title": source.title, "authors": source.authors[:3], "notes": notes}


def _describe_file(
    state: ResearchState, reading: PageReading, known: Collection[str], result: AnalyzerResult | None
) -> tuple[str, bool]:
    """Describe a file by the notes of its newest reading, and return true if it could not be analyzed."""
    source = state.evidence.sources[reading.source_id]
    about = [source.publisher or "", source.retrieved_at[:10] if source.retrieved_at else ""]
    about += [] if state.resolution.one_collection else [f"quality {source.quality.value}"]
    known_of_it = ", ".join(filter(None, about))
    head = f"“{source.title}” ({known_of_it})" if known_of_it else f"“{source.title}”"
    if result is None:
        return f"{head} could not be analyzed.", True
    return "\n".join([f"{head}:", *describe_reading(state, source, known, result)]), False


def _describe_update(state: ResearchState, heading: str, update: "WrittenUpdate") -> tuple[str, dict[str, Any]]:
    """Describe an update with its section's text and the notes that it lacks, and return its event fields."""
    step = update.outcome.step
    moved = [
        f"The writer says that note {number} belongs under “{place}”: ask for it there."
        for name, place in update.moved.items()
        for number in note_numbers(state, [name])
    ]
    if step is None:
        unchanged = f"“{heading}” is unchanged: {update.outcome.refusal}"
        return "\n".join([unchanged, *moved]), {"heading": heading}
    lines = [f"“{heading}”: {step.inserted} characters inserted, {step.removed} removed."]
    if update.outcome.section:
        lines += ["It now reads:", update.outcome.section]
    if left := note_numbers(state, update.left):
        most = asked_of_limit(state.resolution.limits.max_update_characters)
        used = f"{step.inserted + step.removed} of at most {most} characters were used"
        numbers = ", ".join(map(str, left))
        lines.append(f"Not reported yet: the notes {numbers} ({used}). Ask for those that the section needs once more.")
    if omitted := note_numbers(state, update.omitted):
        numbers = ", ".join(map(str, omitted))
        lines.append(f"The writer left out the notes {numbers} for good: the section says them, or needs them not.")
    lines += moved
    result = {"heading": heading, "inserted": step.inserted, "removed": step.removed}
    return "\n".join(lines), result | {"report": step.draft.document.hash}


def file_id(source: Source) -> str:
    """Return the short name of a fetched file in a conversation."""
    return (source.content_hash or "").removeprefix("sha256:")[:FILE_ID_CHARACTERS]
