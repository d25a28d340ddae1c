"""One turn of the agent: its calls are sorted, carried out side by side, and answered."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.addresses import canonical_url, normalized_text, sub_query_id
from contracts.evidence import Source
from contracts.living_roles import (
    FETCH_URL,
    FILE_ID_CHARACTERS,
    FINISH,
    LIVING_AGENT,
    MOST_NOTES_OF_UPDATE,
    PARSE_CONTENT,
    UPDATE_REPORT,
    WEB_SEARCH,
    LivingInput,
    UpdateArguments,
    WebSearchArguments,
)
from contracts.plan import CHOSEN_BY_AGENT, OTHER_FORM, PlanNode
from contracts.report_updates import REPORTER, AppliedUpdate, ReporterResult
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import EngineKind, NodeKind, NodeStatus, SourceStatus
from workflows.phases.agent_reading import (
    analyze_opened,
    notes_on,
    pages_found,
    reason_against_page,
    search_and_open,
    source_of_page,
    title_of,
    unanalyzed,
)
from workflows.phases.drafts import update_input
from workflows.phases.role_inputs import analyze_input, extract_of
from workflows.rules.query_matching import same_query
from workflows.rules.sub_queries import sources_left
from workflows.run.research_run import ResearchRun
from workflows.strategies.living.position import LivingPosition, empty_sections, planned_queries, unasked_queries
from workflows.strategies.living.report import notes_of, settled, unwritten, write_updates

MOST_TURNS: Final = 30
"""Turns of the agent: twenty pages in waves of five need about sixteen."""
MOST_IDLE: Final = 2
"""Turns in a row that bring nothing, after which the agent's part ends."""
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
NOTHING_NEW: Final = (
    "That turn brought nothing new. If one more does not, the research ends: search in other words, write down what "
    "is not in the report yet, or finish."
)
QUESTION: Final = "question"
"""Id of the task of an analysis while it lasts: the question itself."""
NOTES_OF_FILE: Final = 4
"""Most notes on one file."""
CONTRIBUTION_CHARACTERS: Final = 300
ONE_EACH: Final = "This section is updated by another call of this turn: make the call again in the next turn."


@dataclass
class TurnWork:
    """The calls of a turn that are carried out, by the id of the call, and the answers to the others."""

    searches: dict[str, PlanNode] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Ids of sources."""
    updates: dict[str, UpdateArguments] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons for which calls are not carried out."""


# --- the turn --------------------------------------------------------------------------------------------------------
async def take_turn(run: ResearchRun) -> None:
    """Have the agent call tools, and carry out its calls. Raises `Interrupted`."""
    state, position = run.state, LivingPosition.of(run.state)
    step = f"work/{position.turn}"
    output = await run.turn(LIVING_AGENT, step, request_of(run, position))
    calls = [call for call in output.calls if not call.problem]
    work = _sorted(run, position, calls)
    # Files are analyzed one by one, so no search is left to be analyzed at the end.
    searched = [node.id for node in (*state.plan.sub_queries, *work.searches.values())]
    state.analyzed_sub_queries = list(dict.fromkeys(searched))
    before = _Found.of(state)
    answers, results = await _carried_out(run, position, work, calls)
    _finish(state, position, calls, answers)
    # The turn counts from here on: one that is cut short is taken again, and its answer is not paid again.
    position.transcript = output.transcript
    position.answers = [answers.get(call.id) or refusal_of(call) for call in output.calls]
    run.note_answers(LIVING_AGENT, step, output.calls, position.answers, results)
    is_idle = not position.ended and _Found.of(state) == before
    position.idle_turns = position.idle_turns + 1 if is_idle else 0
    position.reminder = "" if not is_idle else NOTHING_NEW if output.calls else CALL_A_TOOL
    position.turn += 1
    if position.ended:
        return
    if position.idle_turns >= MOST_IDLE:
        position.ended = f"{plural(MOST_IDLE, 'turn')} of the agent in a row brought nothing"
        run.branch_failed(position.ended)
    elif position.turn > MOST_TURNS:
        position.ended = "the turns of the agent are used up"
    if position.ended:
        run.decide(LIVING_AGENT.name, "end_work", position.ended, {"turn": position.turn - 1})


@dataclass(frozen=True)
class _Found:
    """Numbers that grow when a turn brings something."""

    pages: int
    sources: int
    notes: int
    text: str

    @classmethod
    def of(cls, state: ResearchState) -> "_Found":
        text = state.draft.document.hash if state.draft else ""
        return cls(len(pages_found(state)), len(state.fetched_sources()), len(state.findings), text)


def request_of(run: ResearchRun, position: LivingPosition) -> LivingInput:
    """Return the request for a turn; the first one opens with the plan."""
    state, is_opening = run.state, position.transcript is None
    taken, found = set(position.opened), pages_found(state)
    unopened = [number for number in range(1, len(found) + 1) if number not in taken]
    return LivingInput(
        transcript=position.transcript,
        answers=position.answers,
        reminder=position.reminder,
        queries=[query.text for query in planned_queries(state)] if is_opening else [],
        outline=state.plan.outline if is_opening else [],
        assumptions=state.plan.assumptions if is_opening else [],
        pages_left=sources_left(state, run.resolved.limits),
        turns_left=MOST_TURNS - position.turn + 1,
        unasked=[query.text for query in unasked_queries(state)],
        found=sorted(unopened, key=lambda number: (found[number - 1].hit.rank, number)),
        files=[file_id(source) for source in unanalyzed(state, position)],
        unwritten=unwritten(state, position.unwritable),
        open_questions=[f"Nothing was found for: {heading}" for heading in empty_sections(state)],
    )


# --- its calls -------------------------------------------------------------------------------------------------------
def _sorted(run: ResearchRun, position: LivingPosition, calls: Sequence[ToolCall]) -> TurnWork:
    """Decide which calls are carried out."""
    state, work = run.state, TurnWork()
    left = sources_left(state, run.resolved.limits)
    for call in calls:
        if call.name == WEB_SEARCH.name:
            _sort_search(state, work, call.id, WEB_SEARCH.read(call))
        elif call.name == FETCH_URL.name:
            number, taken = FETCH_URL.read(call).page, [*position.opened, *work.pages.values()]
            if problem := reason_against_page(run, number, taken, left - len(work.pages)):
                work.refused[call.id] = problem
            else:
                work.pages[call.id] = number
        elif call.name == PARSE_CONTENT.name:
            _sort_file(state, position, work, call.id, PARSE_CONTENT.read(call).file_id)
        elif call.name == UPDATE_REPORT.name:
            _sort_update(state, work, call.id, UPDATE_REPORT.read(call))
    return work


def _sort_search(state: ResearchState, work: TurnWork, call_id: str, arguments: WebSearchArguments) -> None:
    text = " ".join(arguments.query.split())
    known = next((node for node in state.plan.sub_queries if same_query(node.text, text)), None)
    made = any(same_query(node.text, text) for node in work.searches.values())
    if made or (known is not None and known.status is NodeStatus.COMPLETED):
        work.refused[call_id] = f"“{text}” was searched for already: its pages are listed above"
    else:
        node = PlanNode(id=sub_query_id(text), text=text, origin=CHOSEN_BY_AGENT, iteration=state.iteration)
        work.searches[call_id] = known or node


def _sort_file(state: ResearchState, position: LivingPosition, work: TurnWork, call_id: str, name: str) -> None:
    waiting = {file_id(source): source.id for source in unanalyzed(state, position)}
    known = {file_id(source) for source in state.readable_sources()}
    name = name.strip().removeprefix("sha256:")[:FILE_ID_CHARACTERS]
    if name in waiting and waiting[name] not in work.files.values():
        work.files[call_id] = waiting[name]
    else:
        why = "was read already: its notes stand above" if name in known else "is no fetched file: fetch a page first"
        work.refused[call_id] = f"{name} {why}"


def _sort_update(state: ResearchState, work: TurnWork, call_id: str, arguments: UpdateArguments) -> None:
    heading = next((each for each in state.plan.outline if is_same_heading(each, arguments.heading)), None)
    unknown = [number for number in arguments.notes if not 0 < number <= len(state.findings)]
    if heading is None:
        problem = "the outline has no such heading; its headings are: " + "; ".join(state.plan.outline)
    elif unknown:
        problem = f"there is no note {unknown[0]}: notes are numbered from 1 to {len(state.findings)}"
    elif not arguments.notes:
        problem = "name the numbers of the notes that the passage is to report"
    elif any(each.heading == heading for each in work.updates.values()):
        problem = ONE_EACH
    else:
        notes = arguments.notes[:MOST_NOTES_OF_UPDATE]
        work.updates[call_id] = arguments.model_copy(update={"heading": heading, "notes": notes})
        return
    work.refused[call_id] = problem


async def _carried_out(
    run: ResearchRun, position: LivingPosition, work: TurnWork, calls: Sequence[ToolCall]
) -> tuple[dict[str, ToolAnswer], dict[str, dict[str, Any]]]:
    """Do everything side by side; the answers by call, and what watchers learn of the results. Raises `Interrupted`."""
    state = run.state
    known_notes = {finding.id for finding in state.findings}
    opening = search_and_open(run, position, list(work.searches.values()), list(work.pages.values()))
    analyzing = analyze_files(run, position, list(work.files.values()))
    writing = asyncio.ensure_future(_update(run, position, work.updates))
    jobs = [asyncio.ensure_future(opening), asyncio.ensure_future(analyzing), writing]
    for error in (await settled(run, jobs)).values():
        raise error
    written = writing.result()
    answers = {name: ToolAnswer(call_id=name, text=reason, is_error=True) for name, reason in work.refused.items()}
    results: dict[str, dict[str, Any]] = {}
    for call in calls:
        if call.id in work.searches:
            most = WEB_SEARCH.read(call).max_results
            answers[call.id] = _answer_search(state, position, call.id, work.searches[call.id], most)
        elif call.id in work.pages:
            answers[call.id] = _answer_fetch(state, call.id, work.pages[call.id])
        elif call.id in work.files:
            answers[call.id] = _answer_parse(state, call.id, work.files[call.id], known_notes)
        elif call.id in work.updates:
            answers[call.id], results[call.id] = _answer_update(state, call.id, work.updates[call.id], written[call.id])
    return answers, results


async def analyze_files(
    run: ResearchRun, position: LivingPosition, files: Sequence[str], engine: EngineKind | None = None
) -> None:
    """Have each source analyzed in a call of its own, side by side: what is noted depends on no other file.

    Raises `Interrupted`.
    """
    state = run.state
    task = PlanNode(
        id=QUESTION,
        text=run.resolved.query,
        kind=NodeKind.TASK,
        needs_search=False,
        facet=OTHER_FORM,
        expected_contribution="; ".join(state.plan.outline)[:CONTRIBUTION_CHARACTERS],
    )
    request = analyze_input(run, task, issues=[]).model_copy(update={"max_findings": NOTES_OF_FILE})
    requests = {
        f"analyze/{name}": request.model_copy(update={"sources": [extract_of(state.sources[name])]}) for name in files
    }
    try:
        await analyze_opened(run, position, task, requests, engine)
    finally:
        _attribute(state)


def _attribute(state: ResearchState) -> None:
    """Give each note to the first query that found its source, and count notes for every query that did."""
    first = {source.id: source.sub_query_ids[0] for source in state.sources.values() if source.sub_query_ids}
    state.findings = [
        finding.model_copy(update={"sub_query_id": first.get(finding.source_ids[0], QUESTION)})
        if finding.sub_query_id == QUESTION and finding.source_ids
        else finding
        for finding in state.findings
    ]
    noted = {name for finding in state.findings for name in finding.source_ids}
    found = Counter(name for source in state.sources.values() if source.id in noted for name in source.sub_query_ids)
    nodes = [node for node in state.plan.nodes if node.id != QUESTION]
    nodes = [node.model_copy(update={"finding_count": found[node.id]}) for node in nodes]
    state.plan = state.plan.model_copy(update={"nodes": nodes})


@dataclass(frozen=True)
class _Written:
    """One update: what came of it, and the notes without room in it."""

    outcome: AppliedUpdate
    left: list[int]


async def _update(
    run: ResearchRun, position: LivingPosition, updates: Mapping[str, UpdateArguments]
) -> dict[str, _Written]:
    """Have passages of different sections written side by side, and apply them in the order of the calls."""
    if not updates:
        return {}
    state = run.state
    calls: list[asyncio.Task[ReporterResult]] = []
    for number, asked in enumerate(updates.values(), start=1):
        request = update_input(run, asked.heading, notes_of(state, asked.notes), asked.purpose)
        calls.append(asyncio.ensure_future(run.ask(REPORTER, f"update/{position.turn}-{number}", request)))
    outcomes = await write_updates(run, calls, list(updates))
    numbers = {finding.id: number for number, finding in enumerate(state.findings, start=1)}
    left = [[] if call.exception() else [numbers[name] for name in call.result().notes_left] for call in calls]
    for asked, outcome in zip(updates.values(), outcomes, strict=True):
        if outcome.step is None or not outcome.step.inserted:
            position.unwritable += asked.notes
    return {name: _Written(*each) for name, each in zip(updates, zip(outcomes, left, strict=True), strict=True)}


def _finish(
    state: ResearchState, position: LivingPosition, calls: Sequence[ToolCall], answers: dict[str, ToolAnswer]
) -> None:
    """End the agent's part if it asks for that and nothing of the plan is missing; else answer with what is."""
    finishes = [call for call in calls if call.name == FINISH.name]
    for call in finishes:
        questions = [text.strip()[:400] for text in FINISH.read(call).open_questions if text.strip()]
        problem = reason_against_finish(state, questions)
        if len(calls) > len(finishes):
            problem = "The other calls of this turn came first: look at what they brought, then finish."
        answers[call.id] = ToolAnswer(call_id=call.id, text=problem or "The research is over.", is_error=bool(problem))
        if not problem:
            position.has_reported, position.open_questions = True, questions
            position.ended = "the agent has finished"


def reason_against_finish(state: ResearchState, questions: Sequence[str]) -> str:
    """Return what of the plan is neither done nor named as open; empty if nothing is."""
    named = normalized_text(" ".join(questions))
    queries = [query.text for query in unasked_queries(state) if normalized_text(query.text) not in named]
    headings = [heading for heading in empty_sections(state) if normalized_text(heading) not in named]
    missing = [f"these queries of the plan were not asked: {'; '.join(queries)}"] if queries else []
    missing += [f"nothing stands under these headings: {'; '.join(headings)}"] if headings else []
    if pages_found(state) and not state.fetched_sources():
        return "No page was fetched yet: titles answer nothing. Fetch the pages that promise most, and have them read."
    if not missing:
        return ""
    return f"{'. '.join(missing)}. Do so, or name each of them in open_questions with the reason."


# --- answers ---------------------------------------------------------------------------------------------------------
def _answer_search(
    state: ResearchState, position: LivingPosition, call_id: str, node: PlanNode, most: int
) -> ToolAnswer:
    """List the best pages of a search that were not listed before."""
    searched = state.plan.newest(node)
    if searched.error and not searched.result_count:
        text = f"The search for “{node.text}” failed: {searched.error}."
        return ToolAnswer(call_id=call_id, text=text, is_error=True)
    ranks = {canonical_url(one.hit.url): one.hit.rank for one in state.candidates if one.sub_query_id == node.id}
    pages, ranked = pages_found(state), list[tuple[int, int]]()
    for number, page in enumerate(pages, start=1):
        if (rank := ranks.get(canonical_url(page.hit.url))) is not None and number not in position.listed:
            ranked.append((rank, number))
    numbers = [number for _, number in sorted(ranked)[:most]]
    position.listed += numbers
    lines = [f"{number}. {title_of(pages[number - 1])}" for number in numbers]
    found = f"Found for “{node.text}”:" if lines else f"Nothing new was found for “{node.text}”."
    return ToolAnswer(call_id=call_id, text="\n".join([found, *lines]))


def _answer_fetch(state: ResearchState, call_id: str, number: int) -> ToolAnswer:
    source, title = source_of_page(state, number), title_of(pages_found(state)[number - 1])
    if source is None or source.status is not SourceStatus.FULL or source.text is None:
        reason = source.status_reason if source and source.status_reason else "the limit of pages is reached"
        return ToolAnswer(call_id=call_id, text=f"Page {number}, “{title}”, could not be had: {reason}.", is_error=True)
    text = f"Page {number}, “{source.title}”: file {file_id(source)}, {source.media_type}, "
    return ToolAnswer(call_id=call_id, text=f"{text}{source.text.size} characters of text.")


def _answer_parse(state: ResearchState, call_id: str, name: str, known: set[str]) -> ToolAnswer:
    source = state.sources[name]
    about = [source.publisher or "", source.retrieved_at[:10] if source.retrieved_at else ""]
    head = f"“{source.title}” ({', '.join(filter(None, [*about, f'quality {source.quality.value}']))})"
    if not source.analyzed:
        return ToolAnswer(call_id=call_id, text=f"{head} could not be analyzed.", is_error=True)
    notes = notes_on(state, source, known)
    return ToolAnswer(call_id=call_id, text="\n".join([f"{head}:", *notes] if notes else [f"{head}: nothing to note."]))


def _answer_update(
    state: ResearchState, call_id: str, asked: UpdateArguments, written: _Written
) -> tuple[ToolAnswer, dict[str, Any]]:
    """Say what was inserted and removed, how long each section is, and what had no room."""
    step = written.outcome.step
    if step is None:
        text = f"“{asked.heading}” is unchanged: {written.outcome.refusal}"
        return ToolAnswer(call_id=call_id, text=text, is_error=True), {"heading": asked.heading}
    sections = state.draft.words_by_section if state.draft else {}
    lengths = "; ".join(f"{heading}: {count or 'empty'}" for heading, count in sections.items())
    lines = [
        f"“{asked.heading}”: {step.inserted} characters inserted, {step.removed} removed.",
        f"Words of each section: {lengths}.",
    ]
    if written.left:
        lines.append(f"No room was left for the notes {', '.join(map(str, written.left))}: ask for them once more.")
    result = {"heading": asked.heading, "inserted": step.inserted, "removed": step.removed}
    return ToolAnswer(call_id=call_id, text="\n".join(lines)), result | {"report": step.draft.document.hash}


def is_same_heading(one: str, other: str) -> bool:
    """Return true for one heading in two spellings."""
    return normalized_text(one) == normalized_text(other.lstrip("# "))


def file_id(source: Source) -> str:
    """Return the short name of an original in a conversation."""
    return (source.content_hash or "").removeprefix("sha256:")[:FILE_ID_CHARACTERS]
