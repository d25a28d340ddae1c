"""Checks of a finished draft: its review, and the verification of its claims with corrections.

Both work on any strategy's draft, even after a forced ending. If a limit, a person or a fault ends them, the verdicts
so far count, and the other claims are unverified.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.call_sizes import claims_per_call
from contracts.checking import ReviewSummary, Verification, VerificationSummary
from contracts.checking_roles import (
    CHECKER,
    CORRECTOR,
    REVIEWER,
    AnsweredGap,
    CheckInput,
    CorrectInput,
    ReviewerAnswer,
    ReviewInput,
)
from contracts.evidence import DocumentRef, ReportDraft, Verdict
from contracts.gaps import SettledGap
from contracts.messages import (
    ApplyRequest,
    ExtractClaimsRequest,
    ExtractedClaims,
    FinalizedVerification,
    FinalizeVerificationRequest,
    StateChange,
)
from contracts.outcome import GateIssue, Mark, Progress, UnitProgress
from contracts.request import Verify
from contracts.roles import SYNTHESIZER
from contracts.sentences import Message, counted
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.texts import plural
from contracts.vocabulary import EngineKind, JudgeMode
from workflows.phases.drafts import call_records, has_live_report, revise_sections, run_ids, take_draft
from workflows.phases.role_inputs import gaps_to_answer, write_input
from workflows.run.calls import is_cancelled, reason_of
from workflows.run.host import run_parallel
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun, Unanswered
from workflows.run.run_budget import CallRefused

MIN_REVIEW_SCORE: Final = 6.0
"""Score, out of 10, below which a draft is revised."""
MIN_REVIEWED_SECONDS: Final = 60.0
"""Shortest deadline of a run, in seconds, with which its draft is reviewed."""
VERIFICATION: Final = "verification"
"""Name of the phase."""
MIN_PARALLEL_CALLS: Final = 4
"""Calls of checkers and correctors that are made side by side, however few the limit of the run allows."""
BatchCall = Callable[[int, list[int], int], Awaitable[None]]
"""Takes the number of the call from 1, the indexes of its claims, and their size in bytes."""


async def check_draft(run: ResearchRun, *, is_reviewed: bool) -> None:
    """Review the draft and verify its claims, side by side; a draft that scores too low is revised and verified again.

    A statement that stays is not judged again. A model reviews a draft only where a revision can follow.
    """
    if not is_reviewed or not _can_be_reviewed(run) or not _can_be_revised(run):
        await verify(run)
        return
    weighed = None
    if run.resolved.checks.review is JudgeMode.MODEL:
        weighed = await _weigh(run)
    calls: list[Callable[[], Awaitable[ReviewerAnswer | None]]] = [
        partial(_review, run, weighed),
        partial(verify, run, weighed),
    ]
    tasks = await run_parallel(run.host, calls, at_once=2)
    opinion = tasks[0].result()
    if opinion and await _revise(run, opinion):
        await verify(run)
    if run.resolved.checks.review is JudgeMode.RULES:
        # A review by rules was requested and is not a fallback.
        run.state.accounts.engine_by_role.pop(REVIEWER.name, None)


# --- review --------------------------------------------------------------------------------------------------------
def _can_be_reviewed(run: ResearchRun) -> bool:
    """Return false for a direct answer, which has no sources, and a run with a deadline of less than a minute."""
    draft = run.state.evidence.draft
    is_short = run.resolved.limits.deadline_seconds < MIN_REVIEWED_SECONDS
    is_off = run.resolved.checks.review is JudgeMode.OFF
    return not (is_off or is_short or draft is None or draft.empty or draft.direct)


def _can_be_revised(run: ResearchRun) -> bool:
    """Return whether what a review finds can be acted on; one by rules costs nothing, and its scores are shown."""
    by_model = writer_engine(run.state.accounts.engine_by_role) is EngineKind.MODEL
    return by_model or _reviewing_engine(run) is not EngineKind.MODEL


async def _review(run: ResearchRun, weighed: ExtractedClaims | None) -> ReviewerAnswer | None:
    """Score the draft against question and brief.

    None if the call was interrupted, or does not fit beside a revision and its checks.
    """
    draft = run.state.evidence.draft
    if draft is None:
        return None
    try:
        request = review_input(run.state, draft, weighed)
        if _reviewing_engine(run) is EngineKind.MODEL:
            request = request.with_fields(
                gaps=gaps_to_answer(run.state.evidence.gaps), passage_ids=list(draft.evidence_ids)
            )
        answer = await run.ask(REVIEWER, "review", request, _reviewing_engine(run))
    except CallRefused:
        return None
    except Interrupted:
        run.degrade(Message("degraded_not_reviewed"))
        return None
    _record_review(run, answer)
    run.settle_gaps(settled_by_draft(run.state, answer.answered_gaps), REVIEWER.name)
    run.note("review.finished", f"the draft scores {answer.scores.overall:g} of 10", score=answer.scores.overall)
    return answer


def settled_by_draft(state: ResearchState, answered: Sequence[AnsweredGap]) -> list[SettledGap]:
    """Return the gaps that a draft answers, with the findings that its passages belong to; without any it is open."""
    settled = []
    for gap in answered:
        cited = set(gap.passages)
        findings = [finding.id for finding in state.evidence.findings if not cited.isdisjoint(finding.evidence_ids)]
        settled.append(SettledGap(gap_id=gap.gap_id, answered_by=findings))
    return settled


async def review_earlier_draft(run: ResearchRun) -> list[str]:
    """Return a reviewer's remarks on the report of an earlier iteration, for its next version; none if it is not asked.

    They are no verdict on the run: its last report is reviewed by itself.
    """
    draft = run.state.evidence.draft
    if draft is None or not _can_be_reviewed(run):
        return []
    request = review_input(run.state, draft, None, is_earlier=True)
    try:
        answer = await run.ask(REVIEWER, "review-earlier", request, _reviewing_engine(run))
    except (ActivityError, Interrupted):
        return []
    return [*answer.notes, *answer.missing]


def _reviewing_engine(run: ResearchRun) -> EngineKind:
    if run.resolved.checks.review is JudgeMode.MODEL:
        return run.resolved.engine
    return EngineKind.EXTRACTIVE


async def _revise(run: ResearchRun, first: ReviewerAnswer) -> bool:
    """Have a draft that scores too low revised once; the better one wins. Return whether that is the revision."""
    state = run.state
    score = first.scores.overall
    if score >= MIN_REVIEW_SCORE or writer_engine(state.accounts.engine_by_role) is not EngineKind.MODEL:
        return False
    notes = [GateIssue(code="review", message=note[:300]) for note in [*first.notes, *first.missing]]
    try:
        if has_live_report(run):
            revision = await revise_sections(run, notes)
        else:
            revised = await run.ask(SYNTHESIZER, "revise", write_input(run, issues=notes))
            revision = revised.draft if revised.account.engine is EngineKind.MODEL else None
            state.accounts.engine_by_role[SYNTHESIZER.name] = EngineKind.MODEL.value  # either draft is by a model
        if revision is None:
            return False
        request = review_input(state, revision, None)
        second = await run.ask(REVIEWER, "review-revision", request, _reviewing_engine(run))
    except Interrupted:
        run.inbox.clear()
        run.degrade(Message("degraded_not_reviewed"))
        return False
    better = second.scores.overall > score
    if better:
        await take_draft(run, revision)
    _record_review(run, second if better else first, revised=better, before=score)
    text = f"a revision scores {second.scores.overall:g} and was {'kept' if better else 'dropped'}"
    run.note("review.finished", text, kept=better)
    return better


def _record_review(run: ResearchRun, output: ReviewerAnswer, **revision: Any) -> None:
    summary = ReviewSummary(
        method="model" if output.account.engine is EngineKind.MODEL else "rules",
        scores=output.scores,
        overall=output.scores.overall,
        reasons=output.reasons,
        missing=output.missing,
        **revision,
    )
    run.state.evidence.verification = run.state.evidence.verification.with_fields(review=summary)


def review_input(
    state: ResearchState, draft: ReportDraft, weighed: ExtractedClaims | None, *, is_earlier: bool = False
) -> ReviewInput:
    """Return the request to review a draft, whose claims may be `weighed`; of an earlier one while more is read."""
    cited = [state.evidence.passages[item] for item in draft.evidence_ids if item in state.evidence.passages]
    # What is researched while an earlier report is reviewed is nothing that this report lacks.
    last = state.work.iteration - is_earlier
    researched = [query for query in state.work.plan.sub_queries if query.iteration <= last]
    return ReviewInput(
        brief=state.work.plan.brief,
        draft=draft.document,
        sub_queries=[query.text for query in researched],
        unanswered=[query.text for query in researched if not query.finding_count],
        sources_cited=len({item.source_id for item in cited}),
        findings=len(state.evidence.findings),
        passages_cited=len(draft.evidence_ids),
        claims_entry=weighed.claims_entry if weighed else "",
        answers=state.evidence.verification.answers,
    )


# --- verification --------------------------------------------------------------------------------------------------
def verification_is_due(run: ResearchRun) -> bool:
    """Return true if the draft's claims must be fully checked before the report is rendered."""
    draft = run.state.evidence.draft
    return run.resolved.verify is Verify.FULL and draft is not None and not draft.empty


async def verify(run: ResearchRun, weighed: ExtractedClaims | None = None) -> None:
    """Check and correct the draft, whose claims may be `weighed`; a failure leaves it unchanged and is reported."""
    if not verification_is_due(run):
        return
    state = run.state
    state.work.phase = VERIFICATION
    run.hooks.enter_phase()
    run.note("phase.started", "checking the claims", phase=VERIFICATION, label="verify", iteration=state.work.iteration)
    previous = state.evidence.verification
    state.evidence.verification = Verification(answers=previous.answers, review=previous.review)
    try:
        await _check_claims(run, weighed)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("degraded_not_checked", reason=reason_of(error)))
    text = f"claims checked: {_describe_verdicts(state.evidence.verification.summary)}"
    run.note("phase.finished", text, phase=VERIFICATION, iteration=state.work.iteration)


def note_verdicts(run: ResearchRun, verdicts: Sequence[Verdict], summary: VerificationSummary) -> None:
    """Emit an event for the verdict on each claim, by a model or by rules, and one for all of them."""
    if run.resolved.verify is Verify.OFF:
        return
    for number, verdict in enumerate(verdicts, 1):
        run.note("claim.verified", f"claim {number}: {verdict.value}", number=number, verdict=verdict.value)
    text = f"claims checked: {_describe_verdicts(summary)}"
    run.note("verification.summary", text, **summary.model_dump(mode="json"))


def _describe_verdicts(summary: VerificationSummary) -> str:
    text = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in summary.verdict_counts.items())
    return text or "no claim was judged"


def with_verification(progress: Progress, state: ResearchState) -> Progress:
    """Return the strategy's progress, with the verification as an extra unit if the request enables it."""
    if state.work.resolved is None or state.work.resolved.verify is not Verify.FULL:
        return progress
    done = state.work.result is not None
    running = state.work.phase == VERIFICATION
    if done:
        mark = Mark.DONE
    elif running:
        mark = Mark.RUNNING
    else:
        mark = Mark.WAITING
    summary = state.evidence.verification.summary
    detail = ""
    if summary.verdict_counts:
        detail = _describe_verdicts(summary)
    unit = UnitProgress(name=VERIFICATION, label="verify", mark=mark, detail=detail)
    return progress.with_fields(units=[*progress.units, unit])


async def check_sections(run: ResearchRun, sections: Sequence[DocumentRef], headings: Sequence[str]) -> None:
    """Have the claims of separately written sections checked while the rest of the report is written.

    The check of the whole asks only about claims without an answer, so that what fails here is made up for there.
    """
    if run.resolved.verify is not Verify.FULL or run.resolved.engine is not EngineKind.MODEL:
        return
    try:
        weighed = await _find_claims(run, "weigh-sections", sections=list(sections), headings=list(headings))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        return
    await _check(run, weighed, "check-sections")


async def _find_claims(run: ResearchRun, step: str, **of_sections: Any) -> ExtractedClaims:
    """Find the claims of the draft, or of sections, and judge them by rules. Raises `ActivityError`."""
    answers = run.state.evidence.verification.answers

    async def find(change: StateChange) -> ExtractedClaims:
        request = ExtractClaimsRequest(**run_ids(run), change=change, answers=answers, **of_sections)
        return await call_records(run, activities.EXTRACT_CLAIMS, request, step, "find the claims")

    return await run.checkpoints.with_newest_state(find)


async def _weigh(run: ResearchRun) -> ExtractedClaims | None:
    """Find the claims of the draft and judge them by rules; None if that failed, which is reported."""
    try:
        weighed = await _find_claims(run, "weigh")
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("degraded_not_checked", reason=reason_of(error)))
        return None
    run.state.evidence.note_entry(weighed.claims_entry)
    return weighed


async def _check_claims(run: ResearchRun, weighed: ExtractedClaims | None) -> None:
    """Find, weigh and check the claims, look again at the failing ones, then correct these and check again."""
    checks = run.resolved.checks
    weighed = weighed or await _weigh(run)
    if weighed is None:
        return
    text = f"{plural(weighed.claims, 'claim')}, {len(weighed.sizes)} of them for the checker"
    run.note("status", text, level="info")
    unreached = await _check(run, weighed, "check")
    concluded = await _conclude(run, unreached, corrects=bool(checks.correct), claims_entry=weighed.claims_entry)
    if concluded.second_entry and run.inbox.interruption is None:
        concluded = await _look_again(run, unreached, concluded)
    wrong = {Verdict.CONTRADICTED, Verdict.UNSUPPORTED} & set(concluded.verdicts)
    if checks.correct and (concluded.doubtful_entry or wrong) and run.inbox.interruption is None:
        corrected = await _correct(run, concluded)
        await _check(run, corrected, "check-corrected")
        final = await _conclude(run, unreached, corrects=False, corrected_entry=corrected.claims_entry)
        if final.undone:
            run.degrade(Message("removals_undone", statements=counted("statement", final.undone)))


async def _look_again(run: ResearchRun, unreached: int, concluded: FinalizedVerification) -> FinalizedVerification:
    """Ask once more about the doubtful claims, with whole sections of their pages; unchanged if that has no room."""
    count = concluded.second_claims
    request = CheckInput(entry=concluded.second_entry, numbers=list(range(count)), bytes_shown=concluded.second_bytes)
    try:
        output = await run.ask(CHECKER, "check-again", request)
    except (Interrupted, Unanswered):
        return concluded
    if output.entry is None:
        return concluded
    _note_answers(run, output.entry)
    run.note("status", f"a second look at {plural(count, 'claim')}", level="info")
    return await _conclude(
        run, unreached, corrects=True, claims_entry=concluded.claims_entry, looked_entry=concluded.second_entry
    )


def _note_answers(run: ResearchRun, entry: str) -> None:
    verification = run.state.evidence.verification
    run.state.evidence.note_entry(entry)
    # Sorted, so that the order of arrival does not matter.
    answers = sorted({*verification.answers, entry})
    run.state.evidence.verification = verification.with_fields(answers=answers)


async def _check(run: ResearchRun, weighed: ExtractedClaims, step: str) -> int:
    """Have the claims checked, most important first; return the number of claims not reached."""
    checked = 0

    async def check(call: int, numbers: list[int], size: int) -> None:
        request = CheckInput(entry=weighed.asked_entry, numbers=numbers, bytes_shown=size)
        nonlocal checked
        output = await run.ask(CHECKER, f"{step}/{call}", request)
        checked += len(output.verdicts)
        if output.entry is not None:
            _note_answers(run, output.entry)
        run.note("status", f"{checked:,} of {plural(len(weighed.sizes), 'claim')} checked", level="info")

    return await _call_in_batches(run, weighed.sizes, check)


async def _conclude(run: ResearchRun, unreached: int, *, corrects: bool, **entries: str) -> FinalizedVerification:
    """Combine the verdicts, and adopt them together with the corrected draft."""
    state = run.state
    verification = run.state.evidence.verification
    request = FinalizeVerificationRequest(
        **run_ids(run),
        **entries,
        mode=run.resolved.verify.value,
        by_model=run.resolved.engine is EngineKind.MODEL,
        corrections_entry=verification.corrections_entry,
        answers=verification.answers,
        unreached=unreached,
        corrects=corrects,
    )
    spec = activities.FINALIZE_VERIFICATION
    summary = "put the verdicts together"
    concluded = await call_records(run, spec, request, "conclude", summary)
    claims_entry = concluded.claims_entry or request.claims_entry
    for entry in (claims_entry, concluded.verdicts_entry, concluded.corrections_entry):
        state.evidence.note_entry(entry)
    if concluded.draft is not None and state.evidence.draft is not None:
        # The activity returns only the figures that follow from the text.
        before = state.evidence.draft
        state.evidence.passages.update({item.id: item for item in concluded.evidence})
        await take_draft(run, concluded.draft.with_history_of(before, before.revision + 1))
        for action, count in concluded.summary.correction_counts.items():
            run.note("citation.corrected", f"{action}: {plural(count, 'claim')}", action=action, count=count)
    if concluded.answers_entry:
        _note_answers(run, concluded.answers_entry)
    # A review beside it may have changed the state.
    state.evidence.verification = state.evidence.verification.with_fields(
        claims_entry=claims_entry,
        verdicts_entry=concluded.verdicts_entry,
        corrections_entry=concluded.corrections_entry,
        summary=concluded.summary,
    )
    return concluded.with_fields(claims_entry=claims_entry)


async def _correct(run: ResearchRun, concluded: FinalizedVerification) -> ExtractedClaims:
    """Apply proposals of the corrector, or of rules, to the draft; the result must still be checked."""
    proposals = dict[int, str]()
    by_model = run.resolved.engine is EngineKind.MODEL

    async def correct(call: int, numbers: list[int], size: int) -> None:
        request = CorrectInput(entry=concluded.doubtful_entry, numbers=numbers, bytes_shown=size)
        output = await run.ask(CORRECTOR, f"correct/{call}", request)
        if output.entry:
            run.state.evidence.note_entry(output.entry)
            proposals[call] = output.entry

    if by_model:
        await _call_in_batches(run, concluded.sizes, correct)
    request = ApplyRequest(
        **run_ids(run),
        by_model=by_model,
        claims_entry=concluded.claims_entry,
        doubtful_entry=concluded.doubtful_entry,
        proposals=[entry for _, entry in sorted(proposals.items())],
        answers=run.state.evidence.verification.answers,
    )
    summary = "put the corrections into the draft"
    return await call_records(run, activities.APPLY_CORRECTIONS, request, "apply", summary)


async def _call_in_batches(run: ResearchRun, sizes: Sequence[int], call: BatchCall) -> int:
    """Divide claims of these sizes over a few calls, made with limited concurrency.

    Returns the number of claims not reached because the run must end.
    """
    count = len(sizes)
    batch_size = claims_per_call(sizes)

    async def make(number: int, start: int) -> int:
        numbers = list(range(start, min(start + batch_size, count)))
        try:
            await call(number, numbers, sum(sizes[start : start + batch_size]))
        except Interrupted:
            return len(numbers)
        except Unanswered:
            return 0
        return 0

    calls = [partial(make, *batch) for batch in enumerate(range(0, count, batch_size), start=1)]
    tasks = await run_parallel(run.host, calls, max(MIN_PARALLEL_CALLS, run.resolved.limits.max_parallel))
    return sum(task.result() for task in tasks)
