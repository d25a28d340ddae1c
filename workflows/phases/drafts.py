"""The text of a report: the only way to give a run a new one.

If a strategy declares a live report, every new text is reached in steps within `limits.max_update_characters`, each
of them a complete report. The state names a text before its event is emitted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError

from contracts import activities, names
from contracts.activities import ActivitySpec
from contracts.base import CompactModel
from contracts.evidence import Finding, ReportDraft
from contracts.outcome import GateIssue
from contracts.report_updates import (
    MAX_REVISIONS,
    REPORTER,
    AppliedUpdates,
    DraftStep,
    LiveReportRequest,
    ReportUpdate,
    SplitRequest,
    UpdateInput,
    UpdatesRequest,
    WithdrawRequest,
)
from contracts.roles import SYNTHESIZER
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.strategies import declaration, writer_engine
from contracts.texts import shorten
from contracts.vocabulary import EngineKind
from workflows.phases.role_inputs import findings_to_report, to_extract
from workflows.rules.sub_queries import subject_words
from workflows.run.calls import call_options, is_cancelled, reason_of
from workflows.run.host import all_or_first_error
from workflows.run.research_run import ResearchRun

A = TypeVar("A", bound=CompactModel)
T = TypeVar("T")


MAX_SUBJECTS: Final = 5
SUBJECT_CHARACTERS: Final = 120
"""Of the sub-queries whose findings are not in a report."""
MAX_REVISION_NOTES: Final = 12
"""Findings offered to each section of a revision."""


def has_live_report(run: ResearchRun) -> bool:
    """Return true if the run's strategy declares a live report."""
    return declaration(run.resolved.strategy).live_report


async def take_draft(run: ResearchRun, draft: ReportDraft | None) -> None:
    """Set the report's text; None drops it.

    A live report reaches the text step by step, with an event for each; changes too large for a step are not made.
    """
    if draft is None or not has_live_report(run):
        run.state.evidence.draft = draft
        return
    request = SplitRequest(**_live_report(run, run.state.evidence.draft), after=draft.without_longer_figures())
    try:
        result = await call_records(run, activities.SPLIT_DRAFT, request, "split", "divide a change of the report")
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("update_undivided", reason=reason_of(error)))
        return
    for step in result.steps:
        take_step(run, step)
    if run.state.evidence.draft is not None:
        run.state.evidence.draft = run.state.evidence.draft.with_history_of(draft, draft.revision)
    if result.unreached:
        run.degrade(Message("update_too_long"))


def words_of_model(state: ResearchState) -> int:
    """Return the words of a draft that a model wrote from findings; 0 without one."""
    draft = state.evidence.draft
    by_model = writer_engine(state.accounts.engine_by_role) is EngineKind.MODEL
    is_written = draft is not None and by_model and not (draft.empty or draft.direct)
    return draft.word_count if draft is not None and is_written else 0


def supersede_draft(run: ResearchRun) -> None:
    """Let a draft be older than all findings, as more are to come; one that no model wrote is dropped.

    It stays where none can be written after them.
    """
    evidence = run.state.evidence
    if evidence.draft is not None and words_of_model(run.state):
        evidence.draft = evidence.draft.with_fields(iteration=0)
    else:
        evidence.draft = None


async def take_written(run: ResearchRun, draft: ReportDraft, words_before: int) -> bool:
    """Set the report's text to that of a synthesizer, unless rules wrote it and a model the draft of `words_before`.

    Return whether it is set.
    """
    engines = run.state.accounts.engine_by_role
    if words_before and writer_engine(engines) is not EngineKind.MODEL:
        engines[SYNTHESIZER.name] = EngineKind.MODEL.value
        keep_draft(run, Message("no_usable_text"))
        return False
    await take_draft(run, draft)
    return True


def keep_draft(run: ResearchRun, why: str) -> None:
    """Leave a draft as it is, and say which findings are not in it and `why`."""
    evidence = run.state.evidence
    draft = evidence.draft
    if draft is None:
        return
    findings = findings_to_report(evidence.findings)
    cited = set(draft.evidence_ids)
    lacking = [finding for finding in findings if 0 < draft.iteration < finding.iteration]
    lacking = lacking or [finding for finding in findings if cited.isdisjoint(finding.evidence_ids)]
    if not lacking:
        return
    owners = {finding.sub_query_id for finding in lacking}
    subjects = [shorten(node.text, SUBJECT_CHARACTERS) for node in run.state.work.plan.nodes if node.id in owners]
    findings_found = counted("finding", len(lacking))
    run.degrade(Message("degraded_kept", findings=findings_found, subjects=subjects[:MAX_SUBJECTS], why=why))


def take_step(run: ResearchRun, step: DraftStep, **data: str) -> None:
    """Set the report's text to that after an update, and emit its event with the fields of `data`."""
    state = run.state
    document = step.draft.document.hash
    state.evidence.draft = _add_evidence(state.evidence.draft, [step])
    # The latest earlier texts remain listed.
    state.evidence.revisions = [*(revision for revision in state.evidence.revisions if revision != document), document][
        -MAX_REVISIONS:
    ]
    run.note(
        "report.updated",
        f"{step.draft.characters} characters",
        report=document,
        characters=step.draft.characters,
        inserted=step.inserted,
        removed=step.removed,
        **data,
    )


def _add_evidence(draft: ReportDraft | None, steps: Sequence[DraftStep]) -> ReportDraft:
    """Return the draft after one or more steps, with its cited evidence."""
    cited = draft.evidence_ids if draft else []
    for step in steps:
        cited = [*(key for key in cited if key not in step.withdrawn), *step.cited]
    return steps[-1].draft.with_fields(evidence_ids=cited)


# --- updates ---------------------------------------------------------------------------------------------------------
def update_input(
    run: ResearchRun, heading: str, findings: Sequence[Finding], purpose: str = "", issues: Iterable[GateIssue] = ()
) -> UpdateInput:
    """Return the reporter's request for one section and its notes."""
    state = run.state
    cited = {key for finding in findings for key in finding.evidence_ids}
    read = {key for finding in findings for key in finding.source_ids}
    return UpdateInput(
        draft=state.evidence.draft_text,
        heading=heading,
        outline=current_outline(run),
        purpose=purpose,
        findings=list(findings),
        evidence=[item for key, item in state.evidence.passages.items() if key in cited],
        sources=[
            to_extract(source, to_search=False) for source in state.evidence.readable_sources() if source.id in read
        ],
        most_characters=run.resolved.limits.max_update_characters,
        issues=list(issues),
    )


def current_outline(run: ResearchRun) -> list[str]:
    """Return the headings of the live report, in order."""
    return run.state.work.plan.outline or list(run.state.evidence.draft_sections)


async def apply_updates(run: ResearchRun, updates: Sequence[ReportUpdate]) -> AppliedUpdates:
    """Apply updates in order and return the outcomes; `take_step` puts them into the state.

    Raises `Interrupted` and `ActivityError`.
    """
    request = UpdatesRequest(**_live_report(run, run.state.evidence.draft), updates=list(updates))
    spec = activities.APPLY_REPORT_UPDATES
    return await run.within_limits(call_records(run, spec, request, "update", "update the report"))


async def revise_sections(run: ResearchRun, notes: Sequence[GateIssue]) -> ReportDraft | None:
    """Have the reporter address a review's remarks, section by section; return the draft without setting it.

    A section gets the remarks that share words with its heading, all remarks that share words with none, and the notes
    that share most words with these remarks, cited or not. Sections without a remark are not written to. None if no
    section was changed. Raises `Interrupted`.
    """
    draft = run.state.evidence.draft
    if draft is None:
        return None
    calls = []
    for number, (heading, remarks) in enumerate(remarks_by_section(current_outline(run), notes).items(), start=1):
        subject = " ".join([heading, *(remark.message for remark in remarks)])
        findings = closest_findings(subject, findings_to_report(run.state.evidence.findings), draft.evidence_ids)
        request = update_input(run, heading, findings, issues=remarks)
        calls.append(partial(run.ask, REPORTER, f"revise-section-{number}", request))
    written = await all_or_first_error(run.host, calls)
    by_model = (result.update for result in written if result.account.engine is EngineKind.MODEL)
    updates = [update for update in by_model if update.operations]
    try:
        applied = await apply_updates(run, updates) if updates else None
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("report_unrevised", reason=reason_of(error)))
        return None
    steps = []
    if applied:
        steps = [outcome.step for outcome in applied.outcomes if outcome.step]
    if not steps:
        return None
    return _add_evidence(draft, steps)


def remarks_by_section(outline: Sequence[str], remarks: Sequence[GateIssue]) -> dict[str, list[GateIssue]]:
    """Return the remarks for each section: those that share most words with its heading, and those that share none."""
    shared = {
        remark.message: [len(subject_words(remark.message) & subject_words(heading)) for heading in outline]
        for remark in remarks
    }
    sections = {
        heading: [remark for remark in remarks if shared[remark.message][index] == max(shared[remark.message])]
        for index, heading in enumerate(outline)
    }
    return {heading: remarks for heading, remarks in sections.items() if remarks}


def closest_findings(subject: str, findings: Sequence[Finding], cited: Collection[str]) -> list[Finding]:
    """Return the findings that share words with a subject, at most `MAX_REVISION_NOTES`; rare words weigh more.

    Among equals, those that the report does not cite come first.
    """
    words = [subject_words(finding.statement) for finding in findings]
    counts = Counter(word for group in words for word in group)
    wanted = subject_words(subject)
    ranked = sorted(
        (-sum(1 / counts[word] for word in sorted(group & wanted)), bool(set(cited) & set(finding.evidence_ids)), index)
        for index, (group, finding) in enumerate(zip(words, findings, strict=True))
    )
    chosen = [index for score, _, index in ranked if score < 0][:MAX_REVISION_NOTES]
    return [findings[index] for index in sorted(chosen)]


async def withdraw_evidence(run: ResearchRun, evidence_ids: Collection[str]) -> None:
    """Remove everything that cites these passages from a live report, step by step. Raises `Interrupted`."""
    draft = run.state.evidence.draft
    if draft is None or not set(draft.evidence_ids).intersection(evidence_ids):
        return
    request = WithdrawRequest(**_live_report(run, draft), evidence_ids=sorted(evidence_ids))
    summary = "take withdrawn passages out of the report"
    result = await run.within_limits(call_records(run, activities.WITHDRAW_EVIDENCE, request, "withdraw", summary))
    for step in result.steps:
        take_step(run, step)


async def follow_outline(run: ResearchRun) -> None:
    """Give a live report the headings of the plan, if it has others; sections that are gone lose their text stepwise.

    Raises `Interrupted`.
    """
    draft = run.state.evidence.draft
    outline = run.state.work.plan.outline
    if draft is None or list(draft.words_by_section) == outline:
        return
    request = LiveReportRequest(**_live_report(run, draft))
    summary = "give the report other headings"
    step = f"outline/{run.state.work.plan.version}"
    result = await run.within_limits(call_records(run, activities.CHANGE_OUTLINE, request, step, summary))
    for change in result.steps:
        take_step(run, change)


def _live_report(run: ResearchRun, base: ReportDraft | None) -> dict[str, Any]:
    """Return the fields of a `LiveReportRequest` based on this text, without its longer figures."""
    return {
        **run_ids(run),
        "base": base and base.without_longer_figures(),
        "title": run.state.work.plan.title or shorten(" ".join(run.resolved.query.split()), 120),
        "outline": current_outline(run),
        "most_characters": run.resolved.limits.max_update_characters,
    }


def run_ids(run: ResearchRun) -> dict[str, str]:
    """Return the fields of the run that every activity request needs."""
    return {"research_id": run.resolved.research_id, "tenant": run.resolved.tenant}


async def call_records(
    run: ResearchRun, spec: ActivitySpec[A, T], request: A, step: str, summary: str, *, first: bool = False
) -> T:
    """Do a step of the run by an activity on the records queue, with priority if it ends the run.

    Raises `ActivityError`.
    """
    remaining = run.clock.remaining_work_seconds()
    first = first or run.inbox.closing
    options = call_options(names.RECORDS_QUEUE, run.operation(step), summary, remaining, first=first)
    answer = await run.host.execute(spec, request, options)
    run.operation_done(step)
    return answer
