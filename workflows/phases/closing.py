"""Closing a run: write from the results so far, check, render, save."""

from collections.abc import Awaitable, Callable

from temporalio.exceptions import ActivityError

from contracts import activities, names
from contracts.messages import RenderedReport, RenderRequest, StateChange
from contracts.outcome import Ending
from contracts.request import Verify
from contracts.roles import SYNTHESIZER
from contracts.sentences import Message, counted, why_stopped
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import (
    NATURAL_STOPS,
    SPENDING_LIMITS,
    EngineKind,
    JudgeMode,
    Outcome,
    ReportKind,
    RunStatus,
    StopReason,
)
from workflows.phases.analysis import analyze_without_model
from workflows.phases.checking import check_draft, note_verdicts, verification_is_due
from workflows.phases.drafts import has_live_report, keep_draft, run_ids, take_draft, take_written, words_of_model
from workflows.phases.last_look import look_at_gaps
from workflows.phases.role_inputs import findings_to_report, write_input
from workflows.rules.duplicates import add_unread_protected
from workflows.rules.endings import (
    advice_of,
    completeness_of,
    find_unanswered,
    limitations_of,
    outcome_of,
    result_of,
    stop_reason_of,
)
from workflows.rules.sub_queries import skip_unfinished
from workflows.run.calls import CLOSING_SECONDS, CallOptions, call_options, is_cancelled, is_given_up, reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.run_budget import CallRefused

RENDER = "render"
WRITING_SHARE = 0.65
"""Share of the remaining time for writing if a run ends early and its claims must be checked."""
LAYOUT_SECONDS = 10.0
"""Time reserved for writing without the model, rendering and saving, up to a share of the remaining time."""
LAYOUT_SHARE = 0.5
MIN_WRITING_SECONDS = 3.0
"""Below this no model writes the report, because its paid answer would come too late."""
CLOSING = "closing"
"""Name of the phase of analysis and writing if a run ends early."""


WriteEarly = Callable[..., Awaitable[None]]
"""Writes the report of a run that ends early (`write_early`), under a time limit set by the caller."""


async def write_early(run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None) -> None:
    """Have the synthesizer write from the findings, within the reserves, unless the draft already covers them.

    `changed` is true if there are new findings or the draft is lost; `engine` is `EXTRACTIVE` if no model may be
    called. If the model is too slow or the reserve too small, the report is written without it; but a draft of the
    model stays, as rules only write a poorer one, and the report says what it lacks.
    """
    state = run.state
    if not _writing_is_due(state, changed=changed):
        return
    words_before = 0
    if state.evidence.findings:
        words_before = words_of_model(state)
    else:
        engine = EngineKind.EXTRACTIVE
    if words_before and engine is EngineKind.EXTRACTIVE:
        keep_draft(run, why_stopped(reason))
        return
    request = write_input(run, issues=[], cut_short=None if reason in NATURAL_STOPS else reason.value)
    request = request.with_fields(words_before=words_before)
    try:
        output = await run.ask(SYNTHESIZER, "write", request, engine)
    except Interrupted as interruption:
        run.inbox.clear()
        if words_before:
            is_refused = isinstance(interruption, CallRefused)
            keep_draft(run, Message("shorter_report_only") if is_refused else why_stopped(interruption.reason))
            return
        try:
            request = request.with_fields(caller="")  # the run itself is the caller
            output = await run.ask(SYNTHESIZER, "write-at-once", request, EngineKind.EXTRACTIVE)
        except Interrupted:
            run.degrade(Message("degraded_no_text"))
            return
    await take_written(run, output.draft, words_before)


def _writing_is_due(state: ResearchState, *, changed: bool) -> bool:
    """Return whether a report has to be written: there is none yet, or it lacks findings that may enter it."""
    findings = findings_to_report(state.evidence.findings)
    if not findings:
        return bool(state.work.plan.nodes or changed)
    draft = state.evidence.draft
    return changed or draft is None or draft.iteration < max(finding.iteration for finding in findings)


async def close(run: ResearchRun, reason: StopReason, writer: WriteEarly = write_early) -> Outcome:
    """End the run: finish the report, put the result into the state, save the session.

    `writer` writes the report if the run ends early (`Strategy.write_early`).
    """
    state = run.state
    cause = reason if reason in NATURAL_STOPS else stop_reason_of(state, reason)
    skip_unfinished(state, why_stopped(cause))
    if reason not in NATURAL_STOPS:
        text = f"ending early: {cause.text}"
        run.note("status", text, level="warning", ends=reason.value)
        await _write_from_results_so_far(run, reason, writer)
    await _check_draft(run, reason)
    # No save of an older state may follow the last one, and the report tells of one that failed.
    await run.checkpoints.settle()
    ending, rendered = await _render(run, reason, writer)
    ending = _take_report(run, ending, rendered)
    natural = ending.outcome is Outcome.PARTIAL and ending.stop_reason in NATURAL_STOPS
    why = "see the limitations in the report" if natural else ending.stop_reason.text
    run.note_end(ending.outcome, f"{ending.outcome.value}: {why}")
    await _save_closed(run)
    return ending.outcome


async def _render(run: ResearchRun, reason: StopReason, writer: WriteEarly) -> tuple[Ending, RenderedReport]:
    """Decide how the run ends, and render its report; a draft that crashes the renderer is replaced."""

    async def render(change: StateChange) -> RenderedReport:
        request = RenderRequest(**run_ids(run), change=change)
        return await run.host.execute(activities.RENDER_REPORT, request, options)

    while True:
        ending = _conclude(run, reason)
        options = _closing_options(run, RENDER, "render the report")
        try:
            return ending, await run.checkpoints.with_newest_state(render)
        except ActivityError as error:
            if not is_given_up(error) or run.state.evidence.draft is None:
                raise
            reason = await _replace_draft(run, reason, reason_of(error), writer)


def _take_report(run: ResearchRun, ending: Ending, rendered: RenderedReport) -> Ending:
    """Put the rendered report and the result into the state; return the ending after the check of the report."""
    state = run.state
    incomplete = ending.outcome is not Outcome.COMPLETED
    ending = state.work.ending = ending.after_check(rendered.verification)
    if rendered.verification.warning:
        count, cited = rendered.verification.shortfall
        statements = counted("statement", cited)
        if run.resolved.verify is Verify.LIGHT:
            state.work.limitations.append(Message("not_supported_remedy", count=count, statements=statements))
        else:
            state.work.limitations.append(Message("not_supported", count=count, statements=statements))
    note_verdicts(run, rendered.verdicts, rendered.verification)
    state.evidence.citations = rendered.citations
    state.work.result = result_of(
        state,
        ending.outcome,
        ending.stop_reason,
        ending.ended_at,
        resumable=incomplete,
        advice=advice_of(state, ending.outcome, ending.stop_reason) if incomplete else "",
        completeness=ending.completeness,
        kind=state.evidence.draft.kind if state.evidence.draft else ReportKind.REPORT,
        summary=rendered.summary or (state.evidence.draft.summary if state.evidence.draft else ""),
        report=rendered.text,
        report_cut=rendered.cut,
        report_ref=rendered.files.markdown,
        files=rendered.files,
        verification=rendered.verification,
        review=state.evidence.verification.review,
        limitations=state.work.limitations,
    )
    state.work.status = RunStatus(ending.outcome.value)
    return ending


async def _save_closed(run: ResearchRun) -> None:
    """Save the ended session; the result says so if that fails."""
    state = run.state
    try:
        await run.checkpoints.save(closed=True, options=_closing_options(run, "save", "save the session"))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("session_unsaved"))
        if state.work.result is not None:
            state.work.result = state.work.result.with_fields(degraded=list(map(str, state.work.degraded)))


# --- the draft -----------------------------------------------------------------------------------------------------
async def _write_from_results_so_far(run: ResearchRun, reason: StopReason, writer: WriteEarly) -> None:
    """Analyze the rest without a model, then write within the reserve, or at once if even that is used up."""
    state = run.state
    run.inbox.clear()
    state.work.phase = CLOSING
    # After an outage that used up the deadline, the run still gets its reserve.
    state.clock.deadline_at = max(
        state.clock.deadline_at, run.host.now().timestamp() + run.resolved.limits.reserve_seconds
    )
    remaining = run.clock.remaining_seconds()
    without_layout = remaining - min(LAYOUT_SECONDS, LAYOUT_SHARE * remaining)
    seconds = remaining * WRITING_SHARE if run.resolved.verify is Verify.FULL else without_layout
    async with run.time_limit(seconds):
        changed = await analyze_without_model(run)
        by_rules = reason is StopReason.PROVIDER_OUTAGE or seconds < MIN_WRITING_SECONDS
        may_add = has_live_report(run) or _writing_is_due(state, changed=changed)
        if reason in SPENDING_LIMITS and not by_rules and may_add:
            changed = await look_at_gaps(run) or changed
        await writer(run, reason, changed=changed, engine=EngineKind.EXTRACTIVE if by_rules else None)


async def _check_draft(run: ResearchRun, reason: StopReason) -> None:
    """Review and verify the draft as far as time, limits and people allow; it is rendered either way."""
    refresh = run.state.work.refresh
    draft = run.state.evidence.draft
    if refresh is not None and draft is not None and draft.document.hash == refresh.draft:
        return  # the same text was checked before
    # A refresh only follows changes of its sources, so it is not reviewed.
    # After any other end, a revision that a review asks for has neither time nor money.
    is_ended = reason in NATURAL_STOPS
    is_reviewed = is_ended and run.resolved.checks.review is not JudgeMode.OFF and refresh is None
    if not is_reviewed and not verification_is_due(run):
        return
    remaining = run.clock.remaining_seconds()
    async with run.time_limit(remaining - min(LAYOUT_SECONDS, LAYOUT_SHARE * remaining)):
        await check_draft(run, is_reviewed=is_reviewed)


async def _replace_draft(run: ResearchRun, reason: StopReason, problem: str, writer: WriteEarly) -> StopReason:
    """Replace a draft that crashes renderers by one without a model, and return the stop reason.

    If it was not written by a model, the run ends without a report.
    """
    state = run.state
    by_model = writer_engine(state.accounts.engine_by_role) is EngineKind.MODEL
    await take_draft(run, None)
    state.evidence.verification = state.evidence.verification.with_fields(verdicts_entry="")
    run.operation_done(RENDER)
    run.branch_failed(Message("layout_failed", problem=problem))
    if by_model:
        run.inbox.clear()
        await writer(run, reason, changed=True, engine=EngineKind.EXTRACTIVE)
        run.degrade(Message("degraded_anew"))
    if state.evidence.draft is not None:
        return reason
    return StopReason.INTERNAL_ERROR


# --- the end -------------------------------------------------------------------------------------------------------
def _conclude(run: ResearchRun, reason: StopReason) -> Ending:
    """Decide how the run ends with its current results; the renderer reads the ending from the state."""
    state = run.state
    unread = add_unread_protected(state)
    reason = stop_reason_of(state, reason)
    outcome = outcome_of(run.resolved.query, state, reason)
    state.work.limitations = [*limitations_of(run.resolved.query, state, reason), *unread]
    completeness = completeness_of(run.resolved.query, state, reason)
    by_model = run.resolved.engine is EngineKind.MODEL
    state.work.ending = Ending(
        outcome=outcome,
        stop_reason=reason,
        completeness=completeness,
        unanswered=len(find_unanswered(run.resolved.query, state)) if by_model else None,
        ended_at=run.now_text(),
    )
    run.record_time()
    return state.work.ending


def _closing_options(run: ResearchRun, step: str, summary: str) -> CallOptions:
    """Return options that let rendering and saving continue after the deadline, as a store may recover."""
    seconds = max(0.0, run.clock.remaining_seconds()) + CLOSING_SECONDS
    return call_options(names.RECORDS_QUEUE, run.operation(step), summary, seconds, first=True)
