"""Closing a run: write from what is there, number, render, save."""

import asyncio
from dataclasses import replace

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.messages import RenderedReport, RenderRequest, StateChange
from contracts.outcome import Ending, ResearchResult
from contracts.request import Review, Verify
from contracts.roles import SYNTHESIZER
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import (
    NATURAL_STOPS,
    STOP_REASON_TEXTS,
    EngineKind,
    Outcome,
    ReportKind,
    RunStatus,
    StopReason,
)
from workflows.phases.analysis import analyze_hastily
from workflows.phases.claim_verification import is_wanted, verify
from workflows.phases.counts import counts_of
from workflows.phases.report_review import review
from workflows.phases.role_inputs import write_input
from workflows.rules.endings import completeness_of, limitations_of, outcome_of, stop_reason_of
from workflows.rules.sub_queries import skip_unfinished
from workflows.run.activity_options import CLOSING_SECONDS, record_options
from workflows.run.call_errors import is_cancelled, is_given_up, reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

RENDER = "render"
WRITING_SHARE = 0.65
"""Of the time that is left when a run must end early: the rest is for checking what was written."""
LAYOUT_SECONDS = 10.0
"""Kept for setting out what was found without the model, rendering and saving, up to a share of what is left."""
LAYOUT_SHARE = 0.5
LEAST_WRITING_SECONDS = 3.0
"""With less than this no model is asked for the report: its answer would be paid for and come too late."""
CLOSING = "closing"
"""The phase of what is analyzed and written because the run ends early."""


async def close(run: ResearchRun, reason: StopReason) -> Outcome:
    """Bring the run to its end: the report, the result in the state, the session saved."""
    skip_unfinished(run.state, STOP_REASON_TEXTS[reason])
    if reason not in NATURAL_STOPS:
        run.note("status", f"ending early: {reason.value}", level="warning")
        await _write_what_is_there(run, reason)
    await _check_what_was_written(run, reason)
    state = run.state
    while True:
        outcome, final_reason = _conclude(run, reason)
        try:
            rendered = await _render(run)
            break
        except ActivityError as error:
            if not is_given_up(error) or state.draft is None:
                raise
            reason = await _write_otherwise(run, reason, reason_of(error))
    state.citations = rendered.citations
    state.result = _result(state, rendered, outcome, final_reason)
    state.status = RunStatus(outcome.value)
    run.note("run.finished", f"{outcome.value}: {final_reason.value}", outcome=outcome.value)
    await _save_closed(run)
    return outcome


def _conclude(run: ResearchRun, reason: StopReason) -> tuple[Outcome, StopReason]:
    """How the run ends with what is there; the report is told by the state."""
    state = run.state
    final_reason = stop_reason_of(state, reason)
    outcome = outcome_of(run.resolved.query, state, final_reason)
    state.limitations = limitations_of(run.resolved.query, state, final_reason)
    state.ending = Ending(
        outcome=outcome,
        stop_reason=final_reason,
        completeness=completeness_of(state, outcome),
        ended_at=run.now_text(),
    )
    state.usage = state.usage.model_copy(update={"active_seconds": round(run.elapsed_seconds(), 3)})
    return outcome, final_reason


async def _write_otherwise(run: ResearchRun, reason: StopReason, why: str) -> StopReason:
    """A text that no renderer survives makes room for one that the findings are set out in without a model.

    Where it was such a text already, the report goes without one. Why the run ends then.
    """
    state = run.state
    by_model = writer_engine(state.engine_by_role) is EngineKind.MODEL
    state.draft = None
    state.verdicts_entry = ""
    run.operation_done(RENDER)
    run.branch_failed(f"the text of the report could not be laid out ({why})")
    if by_model:
        run.inbox.clear()
        await _write(run, reason, EngineKind.EXTRACTIVE)
        run.degrade("the report was written anew without the model, whose text could not be laid out")
    return reason if state.draft is not None else StopReason.INTERNAL_ERROR


async def _write_what_is_there(run: ResearchRun, reason: StopReason) -> None:
    """Analyze without a model what was read, then write, within the reserve (or at once, if even that is used up)."""
    run.inbox.clear()
    run.state.phase = CLOSING
    # After an outage that ate the deadline the run still gets its reserve.
    earliest = run.host.now().timestamp() + run.resolved.limits.reserve_seconds
    run.state.deadline_at = max(run.state.deadline_at, earliest)
    left = run.remaining_seconds()
    checked = run.resolved.verify is Verify.FULL
    writing = left * WRITING_SHARE if checked else left - _layout_seconds(left)
    hopeless = reason is StopReason.PROVIDER_OUTAGE or writing < LEAST_WRITING_SECONDS
    alarm = asyncio.ensure_future(_ring(run, writing))
    try:
        await analyze_hastily(run)
        if run.state.findings and not _draft_is_current(run.state):
            await _write(run, reason, EngineKind.EXTRACTIVE if hopeless else None)
        elif not run.state.findings and run.state.plan.nodes:
            await _write(run, reason, EngineKind.EXTRACTIVE)
    finally:
        alarm.cancel()
        run.inbox.clear()


async def _check_what_was_written(run: ResearchRun, reason: StopReason) -> None:
    """Review and verification, as far as time, limits and people allow; the report is laid out in any case."""
    reviews = reason in NATURAL_STOPS and run.resolved.checks.review is not Review.OFF
    if not reviews and not is_wanted(run):
        return
    left = run.remaining_seconds()
    alarm = asyncio.ensure_future(_ring(run, left - _layout_seconds(left)))
    try:
        if reviews:
            await review(run)
        await verify(run)
    finally:
        alarm.cancel()
        run.inbox.clear()


async def _write(run: ResearchRun, reason: StopReason, engine: EngineKind | None = None) -> None:
    """The report from what is there, out of what each limit keeps for it.

    If the model does not manage it in time, or not even that much is left, the extractive engine does it.
    """
    request = write_input(run, issues=[], cut_short=None if reason in NATURAL_STOPS else reason.value)
    try:
        output = await run.ask(SYNTHESIZER, "write", request, engine)
    except Interrupted:
        run.inbox.clear()
        try:
            output = await run.ask(SYNTHESIZER, "write-at-once", request, EngineKind.EXTRACTIVE)
        except Interrupted:
            run.degrade("no text could be written, not even without the model")
            return
    run.state.draft = output.draft


def _draft_is_current(state: ResearchState) -> bool:
    """Whether the draft knows every finding (there is one): written in this iteration, after the last analysis."""
    if state.draft is None:
        return False
    newest = max(finding.iteration for finding in state.findings)
    return state.draft.iteration >= newest and not state.hasty_analyses


def _layout_seconds(left: float) -> float:
    return min(LAYOUT_SECONDS, LAYOUT_SHARE * left)


async def _ring(run: ResearchRun, seconds: float) -> None:
    await run.host.sleep(seconds, "until the report must be there")
    run.inbox.interrupt(StopReason.BUDGET_TIME)


def _longest(run: ResearchRun) -> float:
    """Seconds for which the report is rendered and saved: a store may come back after the deadline."""
    return max(0.0, run.remaining_seconds()) + CLOSING_SECONDS


async def _render(run: ResearchRun) -> RenderedReport:
    options = replace(record_options(run.operation(RENDER), "render the report", _longest(run)), first=True)
    resolved = run.resolved

    async def send(change: StateChange) -> RenderedReport:
        request = RenderRequest(research_id=resolved.research_id, tenant=resolved.tenant, change=change)
        return await run.host.execute(activities.render_report, request, options)

    return await run.checkpoints.with_newest_state(send)


async def _save_closed(run: ResearchRun) -> None:
    options = replace(record_options(run.operation("save"), "save the session", _longest(run)), first=True)
    try:
        await run.checkpoints.save(closed=True, options=options)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade("the finished session could not be saved: only the engine's history has this result")
        if run.state.result is not None:
            run.state.result = run.state.result.model_copy(update={"degraded": list(run.state.degraded)})


def _result(state: ResearchState, rendered: RenderedReport, outcome: Outcome, reason: StopReason) -> ResearchResult:
    resolved = state.resolution
    return ResearchResult(
        research_id=resolved.research_id,
        outcome=outcome,
        stop_reason=reason,
        completeness=completeness_of(state, outcome),
        kind=state.draft.kind if state.draft else ReportKind.REPORT,
        summary=rendered.summary or (state.draft.summary if state.draft else ""),
        report=rendered.text,
        report_cut=rendered.cut,
        report_ref=rendered.files.markdown,
        files=rendered.files,
        counts=counts_of(state),
        usage=state.usage,
        verification=rendered.verification,
        review=state.verification.review,
        degraded=state.degraded,
        failed_branches=state.failed_branches,
        limitations=state.limitations,
        resumable=outcome is not Outcome.COMPLETED,
        started_at=state.started_at,
        ended_at=state.ending.ended_at if state.ending else "",
        metadata=resolved.metadata,
    )
