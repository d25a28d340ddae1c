"""The live report: notes placed under matching headings, update by update."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from contracts.evidence import Finding
from contracts.living_roles import MAX_UPDATE_NOTES
from contracts.report_updates import REPORTER, AppliedUpdate, DraftStep, UpdateInput
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind
from workflows.phases.drafts import apply_updates, take_step, update_input
from workflows.phases.role_inputs import findings_to_report
from workflows.rules.sub_queries import subject_words
from workflows.run.host import ended_calls, run_parallel
from workflows.run.research_run import ResearchRun
from workflows.strategies.living.position import LivingPosition

LAST_NOTES: Final = (
    "Add what these notes say and the section lacks; leave out for good those that do not belong under its heading."
)
"""Purpose of an update with notes that no agent has placed: words chose their section."""


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


async def place_notes(
    run: ResearchRun, engine: EngineKind | None = EngineKind.EXTRACTIVE, excluded: Collection[int] = ()
) -> None:
    """Write every note that is not in the report yet, nor `excluded` by its number, under its best-matching heading.

    Uses rules unless another engine is given (None: the run's). A refresh skips notes that the report omitted before.
    Raises `Interrupted`.
    """
    state = run.state
    last_due = dict[str, list[int]]()
    lacking = set(state.work.refresh.unwritten if state.work.refresh else ())
    left_out = {number for number, finding in enumerate(state.evidence.findings, start=1) if finding.id in lacking}
    left_out |= {*excluded, *LivingPosition.of(state).omitted}
    await start_report(run)
    while (due := unwritten_notes(state, left_out)) and due != last_due:
        last_due = due
        requests = {
            f"place-notes/{number}": update_input(run, heading, find_notes(state, notes), LAST_NOTES)
            for number, (heading, notes) in enumerate(due.items(), start=1)
        }
        written = await write_updates(run, requests, engine=engine)
        if not any(update.outcome.step or update.omitted for update in written):
            break  # the remaining notes fit into no update
        left_out |= set(LivingPosition.of(state).omitted)
    if engine is EngineKind.EXTRACTIVE:
        name_omitted(run, due)


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
    applied = iter((await apply_updates(run, due)).outcomes if due else ())
    outcomes = list[WrittenUpdate]()
    position = LivingPosition.of(run.state)
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
        outcomes.append(WrittenUpdate(outcome, result.notes_left, result.notes_omitted))
        position.omitted = sorted({*position.omitted, *note_numbers(run.state, result.notes_omitted)})
        if (step := outcome.step) is not None:
            take_step(run, step, **({"call_id": call_id} if call_id else {}))
    return outcomes


ALL_OMITTED: Final = "its writer left out all of these notes, because the section says them or needs them not"


# --- notes -----------------------------------------------------------------------------------------------------------
def find_notes(state: ResearchState, numbers: Sequence[int]) -> list[Finding]:
    """Return the notes with these numbers, without duplicates; a number means the same note in every turn."""
    return [state.evidence.findings[number - 1] for number in dict.fromkeys(numbers)]


def note_numbers(state: ResearchState, ids: Collection[str]) -> list[int]:
    """Return the numbers of the notes with these ids, in order."""
    return [number for number, finding in enumerate(state.evidence.findings, start=1) if finding.id in ids]


def unwritten_notes(state: ResearchState, excluded: Collection[int]) -> dict[str, list[int]]:
    """Return the numbers of uncited notes by best-matching heading, at most as many as one update takes.

    Notes that share no word with any heading are divided with headings that would stay empty.
    """
    outline = state.work.plan.outline
    cited = set(state.evidence.draft_citations)
    sections = dict[str, list[int]]()
    unmatched = set[int]()
    reportable = {finding.id for finding in findings_to_report(state.evidence.findings)}
    for number, finding in enumerate(state.evidence.findings, start=1):
        if number not in excluded and finding.id in reportable and not cited.intersection(finding.evidence_ids):
            heading, is_match = find_heading(state, finding)
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
    return {heading: sections[heading][:MAX_UPDATE_NOTES] for heading in outline if sections.get(heading)}


def find_heading(state: ResearchState, finding: Finding) -> tuple[str, bool]:
    """Return the heading that shares most words with a finding and its query, and true.

    If none shares any, return the heading at the query's position, and false.
    """
    outline = state.work.plan.outline
    queries = state.work.plan.sub_queries
    index = next((index for index, query in enumerate(queries) if query.id == finding.sub_query_id), 0)
    words = subject_words(f"{finding.statement} {queries[index].text if queries else ''}")
    shared = [len(words & subject_words(heading)) for heading in outline]
    best = max(shared)
    return outline[shared.index(best) if best else min(index, len(outline) - 1)], bool(best)
