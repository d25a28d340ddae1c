"""The live report: notes placed under matching headings, update by update."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from contracts.evidence import Finding
from contracts.living_roles import MAX_LAST_NOTES
from contracts.report_updates import ARRANGER, REPORTER, AppliedUpdate, ArrangeInput, DraftStep, UpdateInput
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind
from workflows.phases.drafts import apply_updates, take_step, update_input
from workflows.phases.role_inputs import findings_to_report
from workflows.rules.sub_queries import subject_words
from workflows.run.host import ended_calls, run_parallel
from workflows.run.research_run import ResearchRun, Unanswered
from workflows.run.run_budget import CallRefused
from workflows.strategies.living.position import LivingPosition

LAST_NOTES: Final = (
    "No section has these notes yet. Add what the report needs of them and this section lacks: priority 1 in full, 2"
    " where it completes or limits a statement, 3 only where a statement is not clear without it; omit the others."
)
"""Purpose of an update with notes that the agent has not asked for there."""
HIGHEST_PRIORITY: Final = 1


def empty_sections(state: ResearchState) -> list[str]:
    """Return the headings without text."""
    words = state.evidence.draft_sections
    return [heading for heading in state.work.plan.outline if not words.get(heading)]


async def start_report(run: ResearchRun) -> None:
    """Start the report with title and headings, if it has no text yet. Raises `Interrupted`."""
    if run.state.evidence.draft is None:
        first = (await apply_updates(run, [])).draft
        if first is not None:
            take_step(run, DraftStep(draft=first))


async def place_notes(run: ResearchRun, excluded: Collection[int] = ()) -> None:
    """Have rules write every note that is not in the report yet, nor `excluded` by its number, by its best heading.

    A refresh skips notes that the report omitted before. Raises `Interrupted`.
    """
    left_out = _left_out(run.state, excluded)
    await start_report(run)
    last_due = dict[str, list[int]]()
    while (due := unwritten_notes(run.state, left_out)) and due != last_due:
        last_due = due
        written = await write_updates(run, _last_requests(run, due), engine=EngineKind.EXTRACTIVE)
        if not any(update.outcome.step for update in written):
            break  # the remaining notes fit into no update
    name_omitted(run, due)


async def write_last_notes(run: ResearchRun, excluded: Collection[int] = ()) -> None:
    """Have the run's engine write every note that is not in the report yet, nor `excluded`, where it belongs.

    That is the heading that an update of the agent or a writer named for it, else the one that the arranger assigns it
    to, all notes in one call. What a writer refuses is offered under the heading that it names. Important notes that no
    section takes are named in the result. Raises `Interrupted`.
    """
    state = run.state
    position = LivingPosition.of(state)
    left_out = _left_out(state, excluded)
    await start_report(run)
    first_due = _due_numbers(state, left_out)
    await _assign_headings(run, position, first_due)
    left_out |= set(position.omitted)
    last_due = dict[str, list[int]]()
    while (due := _by_heading(state, position, left_out)) and due != last_due:
        last_due = due
        written = await write_updates(run, _last_requests(run, due))
        left_out |= set(LivingPosition.of(state).omitted)
        if not any(update.outcome.step or update.omitted or update.moved for update in written):
            break  # the remaining notes fit into no update
    missing = set(_due_numbers(state, ())).intersection(first_due)
    important = [n for n in sorted(missing) if state.evidence.findings[n - 1].priority == HIGHEST_PRIORITY]
    if important:
        numbers = ", ".join(map(str, important))
        run.degrade(Message("important_notes_left_out", notes=counted("note", len(important)), numbers=numbers))


async def _assign_headings(run: ResearchRun, position: LivingPosition, numbers: Sequence[int]) -> None:
    """Give a heading to each of these notes that has none, and omit those that no section needs.

    Without an answer of the arranger, the words that notes and headings share decide. Raises `Interrupted`.
    """
    state = run.state
    outline = state.work.plan.outline
    unassigned = [number for number in numbers if number not in position.headings]
    if not unassigned:
        return
    if len(outline) == 1:
        position.headings |= dict.fromkeys(unassigned, outline)
        return
    request = ArrangeInput(draft=state.evidence.draft_text, outline=outline, findings=find_notes(state, unassigned))
    try:
        answer = await run.ask(ARRANGER, "arrange-notes", request)
    except (CallRefused, Unanswered):
        others = set(range(1, len(state.evidence.findings) + 1)) - set(unassigned)
        for heading, matching in unwritten_notes(state, others, most=len(unassigned)).items():
            position.headings |= {number: [heading] for number in matching}
        return
    assigned = {
        unassigned[number - 1]: [outline[section.heading - 1]]
        for section in answer.fitted(request, []).sections
        for number in section.notes
    }
    position.headings |= assigned
    position.omitted = sorted({*position.omitted, *unassigned} - set(assigned))


def _left_out(state: ResearchState, excluded: Collection[int]) -> set[int]:
    """Return the numbers of notes that are not written: `excluded`, omitted by a writer, or before a refresh."""
    lacking = set(state.work.refresh.unwritten if state.work.refresh else ())
    return {*note_numbers(state, lacking), *excluded, *LivingPosition.of(state).omitted}


def _last_requests(run: ResearchRun, due: Mapping[str, Sequence[int]]) -> dict[str, UpdateInput]:
    return {
        f"place-notes/{number}": update_input(run, heading, find_notes(run.state, notes), LAST_NOTES)
        for number, (heading, notes) in enumerate(due.items(), start=1)
    }


def name_omitted(run: ResearchRun, sections: Mapping[str, Sequence[int]]) -> None:
    """Record the notes that no update could write into the report, by the heading that they fit."""
    if omitted := sum(map(len, sections.values())):
        run.degrade(Message("notes_without_room", notes=counted("note", omitted), sections=list(sections)))


@dataclass(frozen=True)
class WrittenUpdate:
    """The outcome of an update, and of the notes that it does not report."""

    outcome: AppliedUpdate
    left: list[str] = field(default_factory=list)
    """Ids of the notes without room."""
    omitted: list[str] = field(default_factory=list)
    """Ids of the notes that its writer left out for good."""
    moved: dict[str, str] = field(default_factory=dict)
    """Headings that notes belong under, as its writer judges, by their ids."""


async def write_updates(
    run: ResearchRun,
    requests: Mapping[str, UpdateInput],
    call_ids: Sequence[str] = (),
    engine: EngineKind | None = None,
) -> list[WrittenUpdate]:
    """Have updates of different sections written in parallel, one request per step, and apply them in order.

    An update that could not be written affects only its own section. Raises `Interrupted`.
    """
    asked = [partial(run.ask, REPORTER, step, request, engine) for step, request in requests.items()]
    calls = await run_parallel(run.host, asked, len(asked))
    written = [(call, reason) for _, call, reason in ended_calls(requests, calls)]
    due = [call.result().update for call, reason in written if reason is None and call.result().update.operations]
    applied: Iterator[AppliedUpdate] = iter(())
    if due:
        applied = iter((await apply_updates(run, due)).outcomes)
    outcomes = list[WrittenUpdate]()
    position = LivingPosition.of(run.state)
    for request in requests.values():
        for number in note_numbers(run.state, {finding.id for finding in request.findings}):
            earlier = position.headings.get(number, [])
            position.headings[number] = [*(one for one in earlier if one != request.heading), request.heading]
    for (call, reason), call_id in zip(written, call_ids or [""] * len(written), strict=True):
        if reason is not None:
            run.degrade(Message("update_unwritten", reason=reason))
            outcomes.append(WrittenUpdate(AppliedUpdate(refusal=f"it could not be written ({reason})")))
            continue
        result = call.result()
        if result.update.operations:
            outcome = next(applied)
        else:
            outcome = AppliedUpdate(refusal=ALL_OMITTED)
        moved, refused = _move_notes(run.state, position, result.notes_moved)
        omitted = [*result.notes_omitted, *refused]
        outcomes.append(WrittenUpdate(outcome, result.notes_left, omitted, moved))
        position.omitted = sorted({*position.omitted, *note_numbers(run.state, omitted)})
        if (step := outcome.step) is not None:
            data = {"call_id": call_id} if call_id else {}
            take_step(run, step, **data)
    return outcomes


def _move_notes(
    state: ResearchState, position: LivingPosition, moved: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Give notes the headings that a writer named; return these, and the ids of those that were offered there before.

    So no note goes back and forth between two sections that both refuse it.
    """
    accepted = {}
    refused = []
    for name, heading in moved.items():
        (number,) = note_numbers(state, [name])
        if heading in position.headings.get(number, []):
            refused.append(name)
        else:
            position.headings[number] = [*position.headings.get(number, []), heading]
            accepted[name] = heading
    return accepted, refused


ALL_OMITTED: Final = (
    "its writer left out all of these notes, because the section says them or needs them not, or they belong elsewhere"
)


# --- notes -----------------------------------------------------------------------------------------------------------
def find_notes(state: ResearchState, numbers: Sequence[int]) -> list[Finding]:
    """Return the notes with these numbers, without duplicates; a number means the same note in every turn."""
    return [state.evidence.findings[number - 1] for number in dict.fromkeys(numbers)]


def note_numbers(state: ResearchState, ids: Collection[str]) -> list[int]:
    """Return the numbers of the notes with these ids, in order."""
    return [number for number, finding in enumerate(state.evidence.findings, start=1) if finding.id in ids]


def _due_numbers(state: ResearchState, excluded: Collection[int]) -> list[int]:
    """Return the numbers of the notes that can be reported and that the report does not cite."""
    cited = set(state.evidence.draft_citations)
    reportable = {finding.id for finding in findings_to_report(state.evidence.findings)}
    return [
        number
        for number, finding in enumerate(state.evidence.findings, start=1)
        if number not in excluded and finding.id in reportable and not cited.intersection(finding.evidence_ids)
    ]


def _by_heading(state: ResearchState, position: LivingPosition, excluded: Collection[int]) -> dict[str, list[int]]:
    """Return the numbers of uncited notes by the heading that was last named for them, as many as one update takes."""
    outline = state.work.plan.outline
    sections: dict[str, list[int]] = {heading: [] for heading in outline}
    for number in _due_numbers(state, excluded):
        named = position.headings.get(number, [])
        if named and named[-1] in sections:
            sections[named[-1]].append(number)
    important_first = {
        heading: sorted(numbers, key=lambda number: state.evidence.findings[number - 1].priority)
        for heading, numbers in sections.items()
    }
    return {heading: numbers[:MAX_LAST_NOTES] for heading, numbers in important_first.items() if numbers}


def unwritten_notes(
    state: ResearchState, excluded: Collection[int], most: int = MAX_LAST_NOTES
) -> dict[str, list[int]]:
    """Return the numbers of uncited notes by the heading with most words of theirs, at most `most` for each.

    Notes that share no word with any heading are divided with headings that would stay empty.
    """
    outline = state.work.plan.outline
    sections = dict[str, list[int]]()
    unmatched = set[int]()
    for number in _due_numbers(state, excluded):
        heading, is_match = find_heading(state, state.evidence.findings[number - 1])
        sections.setdefault(heading, []).append(number)
        if not is_match:
            unmatched.add(number)
    loose = {heading: [one for one in numbers if one in unmatched] for heading, numbers in sections.items()}
    if loose:
        fullest = max(loose, key=lambda heading: (len(loose[heading]), -outline.index(heading)))
        targets = [heading for heading in empty_sections(state) if heading not in sections or heading == fullest]
        targets = [heading for heading in outline if heading in {*targets, fullest}][: max(1, len(loose[fullest]))]
        size = -(-len(loose[fullest]) // len(targets))
        sections[fullest] = [number for number in sections[fullest] if number not in unmatched]
        for index, heading in enumerate(targets):
            part = loose[fullest][index * size :][:size]
            sections[heading] = sorted([*part, *sections.get(heading, [])])
    return {heading: sections[heading][:most] for heading in outline if sections.get(heading)}


def find_heading(state: ResearchState, finding: Finding) -> tuple[str, bool]:
    """Return the heading that shares most words with a finding and its query, and true.

    A word that several headings have counts for a part of one. If none shares any, return the heading at the query's
    position, and false; for a finding of no query of the plan, the shortest section.
    """
    outline = state.work.plan.outline
    queries = state.work.plan.sub_queries
    index = next((index for index, query in enumerate(queries) if query.id == finding.sub_query_id), None)
    words = subject_words(f"{finding.statement} {'' if index is None else queries[index].text}")
    subjects = [subject_words(heading) for heading in outline]
    counts = Counter(word for subject in subjects for word in subject)
    shared = [sum(1 / counts[word] for word in sorted(words & subject)) for subject in subjects]
    best = max(shared)
    if best:
        return outline[shared.index(best)], True
    if index is not None:
        return outline[min(index, len(outline) - 1)], False
    lengths = state.evidence.draft_sections
    return min(outline, key=lambda heading: lengths.get(heading, 0)), False
