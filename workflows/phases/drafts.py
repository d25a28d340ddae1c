"""The text of a report: the one way in which a run gets a new one.

Where a strategy declares a live report, every new text is reached by steps within `limits.max_update_characters`, each
of them a whole report. The state names a text before its event is given.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts import activities, names
from contracts.evidence import Finding, ReportDraft
from contracts.outcome import GateIssue
from contracts.report_updates import (
    LONGER_FIGURES,
    MOST_REVISIONS,
    REPORTER,
    AppliedUpdates,
    DraftStep,
    DraftSteps,
    ReporterResult,
    ReportUpdate,
    SplitRequest,
    UpdateInput,
    UpdatesRequest,
    WithdrawRequest,
)
from contracts.strategies import declaration
from contracts.texts import shorten
from contracts.vocabulary import EngineKind
from workflows.phases.role_inputs import extract_of
from workflows.run.calls import CallOptions, call_options, is_cancelled, reason_of
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun

NOTES_OF_REVISION: Final = 12
"""Findings that the report lacks, for each section of a revision."""
NOT_IN_THE_TEXT: Final = ("unresolved_markers", "foreign_urls", "confidence", "iteration", "kind", "direct", "empty")
"""Fields of a draft that do not follow from its text."""


def has_live_report(run: ResearchRun) -> bool:
    """Return true if the strategy of the run declares a live report."""
    return declaration(run.resolved.strategy).live_report


async def take_draft(run: ResearchRun, draft: ReportDraft | None) -> None:
    """Make a text the one of the report; None drops the text.

    A live report reaches it step by step, with an event for each; a change that no step can make is not made.
    """
    before = run.state.draft
    if draft is None or not has_live_report(run):
        run.state.draft = draft
        return
    try:
        way = await _split(run, before, draft)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"a change of the report could not be divided into updates, and was not made ({reason_of(error)})")
        return
    for step in way.steps:
        take_step(run, step)
    if run.state.draft is not None:
        others = {name: getattr(draft, name) for name in (*NOT_IN_THE_TEXT, "revision")}
        run.state.draft = run.state.draft.model_copy(update=others)
    if way.unreached:
        run.degrade("parts of a new text exceed limits.max_update_characters, so the report lacks them")


def take_step(run: ResearchRun, step: DraftStep, **data: str) -> None:
    """Make the text after an update the one of the report, and give its event, with further fields."""
    name_text(run, _with_evidence(run.state.draft, [step]))
    run.note(
        "report.updated",
        f"{step.draft.characters} characters",
        report=step.draft.document.hash,
        characters=step.draft.characters,
        inserted=step.inserted,
        removed=step.removed,
        **data,
    )


def _with_evidence(before: ReportDraft | None, steps: Sequence[DraftStep]) -> ReportDraft:
    """Return the text after one step or more, with the evidence that it cites."""
    cited = before.evidence_ids if before else []
    for step in steps:
        cited = [*(key for key in cited if key not in step.withdrawn), *step.cited]
    return steps[-1].draft.model_copy(update={"evidence_ids": cited})


def name_text(run: ResearchRun, draft: ReportDraft) -> None:
    """Name the newest text of a live report in the state, without an event; the newest earlier ones stay named."""
    state = run.state
    earlier = [each for each in state.revisions if each != draft.document.hash]
    state.revisions = [*earlier, draft.document.hash][-MOST_REVISIONS:]
    state.draft = draft


# --- updates ---------------------------------------------------------------------------------------------------------
def update_input(
    run: ResearchRun, heading: str, findings: Sequence[Finding], purpose: str = "", issues: Iterable[GateIssue] = ()
) -> UpdateInput:
    """Return the request to the reporter for one section and its notes."""
    state = run.state
    cited = {key for finding in findings for key in finding.evidence_ids}
    read = {key for finding in findings for key in finding.source_ids}
    return UpdateInput(
        draft=state.draft.document if state.draft else None,
        heading=heading,
        outline=outline_of(run),
        purpose=purpose,
        findings=list(findings),
        evidence=[item for key, item in state.evidence.items() if key in cited],
        sources=[extract_of(source, to_search=False) for source in state.readable_sources() if source.id in read],
        most_characters=run.resolved.limits.max_update_characters,
        issues=list(issues),
    )


def outline_of(run: ResearchRun) -> list[str]:
    """Return the headings of the live report in their order."""
    return run.state.plan.outline or list(run.state.draft.words_by_section if run.state.draft else [])


async def apply_updates(run: ResearchRun, updates: Sequence[ReportUpdate]) -> AppliedUpdates:
    """Apply updates in order to the text of the state, which stays as it is: `take_step` makes the outcome the text.

    Raises `Interrupted`, `ActivityError`.
    """
    request = UpdatesRequest(**_live_report(run, run.state.draft), updates=list(updates))
    options = _options(run, "update", "update the report")
    applied = await run.within_limits(run.host.execute(activities.APPLY_REPORT_UPDATES, request, options))
    run.operation_done("update")
    return applied


async def revise_sections(run: ResearchRun, notes: Sequence[GateIssue]) -> ReportDraft | None:
    """Have the reporter meet the notes of a review, section by section; the result is not the text of the report yet.

    None if no section was changed. Raises `Interrupted`.
    """
    draft = run.state.draft
    if draft is None:
        return None
    cited = set(draft.evidence_ids)
    lacking = [one for one in run.state.findings if not cited.intersection(one.evidence_ids)][:NOTES_OF_REVISION]
    calls = [
        asyncio.ensure_future(
            run.ask(REPORTER, f"revise-section-{number}", update_input(run, heading, lacking, issues=notes))
        )
        for number, heading in enumerate(outline_of(run), start=1)
    ]
    try:
        written: list[ReporterResult] = await asyncio.gather(*calls)
    except (asyncio.CancelledError, Exception):
        await abandon(run.host, calls)
        raise
    by_model = (one.update for one in written if one.account.engine is EngineKind.MODEL)
    updates = [update for update in by_model if update.operations]
    try:
        applied = await apply_updates(run, updates) if updates else None
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"the report was not revised ({reason_of(error)})")
        return None
    steps = [outcome.step for outcome in applied.outcomes if outcome.step] if applied else []
    return _with_evidence(draft, steps) if steps else None


async def withdraw_evidence(run: ResearchRun, evidence_ids: Collection[str]) -> None:
    """Take out of a live report what cites any of these passages, step by step. Raises `Interrupted`."""
    draft = run.state.draft
    if draft is None or not set(draft.evidence_ids).intersection(evidence_ids):
        return
    request = WithdrawRequest(**_live_report(run, draft), evidence_ids=sorted(evidence_ids))
    options = _options(run, "withdraw", "take withdrawn passages out of the report")
    way = await run.within_limits(run.host.execute(activities.WITHDRAW_EVIDENCE, request, options))
    run.operation_done("withdraw")
    for step in way.steps:
        take_step(run, step)


async def _split(run: ResearchRun, before: ReportDraft | None, after: ReportDraft) -> DraftSteps:
    """Return the steps from one text to another."""
    request = SplitRequest(**_live_report(run, before), after=_slim(after) or after)
    options = _options(run, "split", "divide a change of the report into updates")
    way = await run.host.execute(activities.SPLIT_DRAFT, request, options)
    run.operation_done("split")
    return way


def _slim(draft: ReportDraft | None) -> ReportDraft | None:
    """Return a draft without the longer figures that follow from its text: the activities do not need them."""
    return draft and draft.model_copy(update=LONGER_FIGURES)


def _live_report(run: ResearchRun, base: ReportDraft | None) -> dict[str, Any]:
    """Return the fields of a `LiveReportRequest` that starts from this text."""
    return {
        "research_id": run.resolved.research_id,
        "tenant": run.resolved.tenant,
        "base": _slim(base),
        "title": shorten(" ".join(run.resolved.query.split()), 120),
        "outline": outline_of(run),
        "most_characters": run.resolved.limits.max_update_characters,
    }


def _options(run: ResearchRun, step: str, summary: str) -> CallOptions:
    return call_options(
        names.RECORDS_QUEUE, run.operation(step), summary, run.clock.remaining_work_seconds(), first=run.inbox.closing
    )
