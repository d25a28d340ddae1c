"""The living report: notes of the research put under the headings that they fit, update by update."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from temporalio.exceptions import ActivityError

from contracts.addresses import normalized_text
from contracts.evidence import Finding
from contracts.living_roles import MOST_NOTES_OF_UPDATE, SectionNotes
from contracts.report_updates import REPORTER, AppliedUpdate, DraftStep, ReporterResult, ReportUpdate
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind
from workflows.phases.drafts import apply_updates, take_step, update_input
from workflows.run.calls import is_cancelled, reason_of
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun

SHORTEST_WORD = 4
"""Characters of a word that says what a heading is about."""
STEM = 5
"""Characters that forms of one word share."""


async def start_report(run: ResearchRun) -> None:
    """Make the title and the headings of the outline the text of the report, if it has none. Raises `Interrupted`."""
    if run.state.draft is None:
        first = (await apply_updates(run, [])).draft
        if first is not None:
            take_step(run, DraftStep(draft=first))


async def place_notes(run: ResearchRun, engine: EngineKind | None = EngineKind.EXTRACTIVE) -> bool:
    """Put every note that is not in the report under the heading that it fits; true if there were any.

    Rules do so, unless another engine is given (None: that of the run). A refresh leaves the notes out that the report
    was without before.
    Raises `Interrupted`.
    """
    placed, before = False, list[SectionNotes]()
    await start_report(run)
    while (due := unwritten(run.state, left_out(run.state))) and due != before:
        before = due
        calls = [
            asyncio.ensure_future(
                run.ask(
                    REPORTER,
                    f"place-notes/{number}",
                    update_input(run, each.heading, notes_of(run.state, each.notes)),
                    engine,
                )
            )
            for number, each in enumerate(due, start=1)
        ]
        outcomes = await write_updates(run, calls)
        if not any(outcome.step for outcome in outcomes):
            break  # what is left does not fit into any update
        placed = True
    return placed


async def write_updates(
    run: ResearchRun, calls: "Sequence[asyncio.Task[ReporterResult]]", call_ids: Sequence[str] = ()
) -> list[AppliedUpdate]:
    """Wait for updates of different sections, and apply them in the order of their calls.

    One that could not be written costs its own section alone. Raises `Interrupted`.
    """
    outcomes, due = list[AppliedUpdate](), list[ReportUpdate]()
    failed = await settled(run, calls)
    for call in calls:
        if call not in failed:
            due.append(call.result().update)
    applied = iter((await apply_updates(run, due)).outcomes if due else ())
    for call, call_id in zip(calls, call_ids or [""] * len(calls), strict=True):
        if (error := failed.get(call)) is not None:
            run.branch_failed(f"an update of the report: {reason_of(error)}")
            outcomes.append(AppliedUpdate(refusal=f"it could not be written ({reason_of(error)})"))
            continue
        outcomes.append(next(applied))
        if (step := outcomes[-1].step) is not None:
            take_step(run, step, **({"call_id": call_id} if call_id else {}))
    return outcomes


async def settled(run: ResearchRun, jobs: "Sequence[asyncio.Task[Any]]") -> "dict[asyncio.Task[Any], ActivityError]":
    """Wait until all jobs are done: an answer that was paid for counts, whatever became of the others.

    Returns the errors of calls that failed for good. Raises any other error, of the first job that has one.
    """
    try:
        await run.host.settle(list(jobs))
    except asyncio.CancelledError:
        await abandon(run.host, list(jobs))
        raise
    failed = {}
    # The error of every job is looked at, also where the first one is raised.
    for job, error in [(job, job.exception()) for job in jobs]:
        if isinstance(error, ActivityError) and not is_cancelled(error):
            failed[job] = error
        elif error is not None:
            raise error
    return failed


# --- notes ---------------------------------------------------------------------------------------------------------
def notes_of(state: ResearchState, numbers: Sequence[int]) -> list[Finding]:
    """Return the notes of these numbers, each once; a number stands for one note in every turn."""
    return [state.findings[number - 1] for number in dict.fromkeys(numbers)]


def left_out(state: ResearchState) -> list[int]:
    """Return the numbers of the notes that a report lacked before its refresh: it goes on without them."""
    names = set(state.refresh.unwritten if state.refresh else ())
    return [number for number, finding in enumerate(state.findings, start=1) if finding.id in names]


def unwritten(state: ResearchState, apart_from: Collection[int] = ()) -> list[SectionNotes]:
    """Return the notes that the report does not cite, under the headings that they fit, as many as an update takes."""
    outline = state.plan.outline
    cited, sections = set(state.draft.evidence_ids if state.draft else ()), dict[str, list[int]]()
    for number, finding in enumerate(state.findings, start=1):
        if number not in apart_from and not cited.intersection(finding.evidence_ids):
            sections.setdefault(heading_for(state, finding), []).append(number)
    return [
        SectionNotes(heading=heading, notes=sections[heading][:MOST_NOTES_OF_UPDATE])
        for heading in outline
        if heading in sections
    ]


def heading_for(state: ResearchState, finding: Finding) -> str:
    """Return the heading that has most words in common with a finding and its query.

    Without any it is the one in the place of the query.
    """
    outline, queries = state.plan.outline, state.plan.sub_queries
    place = next((place for place, query in enumerate(queries) if query.id == finding.sub_query_id), 0)
    words = subject_words(f"{finding.statement} {queries[place].text if queries else ''}")
    shared = [len(words & subject_words(heading)) for heading in outline]
    most = max(shared)
    return outline[shared.index(most) if most else min(place, len(outline) - 1)]


def subject_words(text: str) -> set[str]:
    """Return the beginnings of the words of a text that say what it is about: forms of one word are one."""
    return {word[:STEM] for word in normalized_text(text).split() if len(word) >= SHORTEST_WORD or not word.isascii()}
