"""Checks of a finished draft: its review, and the verification of its claims with corrections.

Both work on the draft of any strategy, also after a forced ending. Whatever ends them (a limit, a person, a fault),
the verdicts so far count, and the other claims are unverified.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.call_sizes import BYTES_PER_TOKEN, CLAIMS_PER_CALL
from contracts.checking import ReviewSummary, Verification
from contracts.checking_roles import CHECKER, CORRECTOR, REVIEWER, CheckInput, CorrectInput, ReviewerAnswer, ReviewInput
from contracts.evidence import Verdict
from contracts.messages import (
    ApplyRequest,
    ExtractClaimsRequest,
    ExtractedClaims,
    FinalizedVerification,
    FinalizeVerificationRequest,
    StateChange,
)
from contracts.outcome import GateIssue, Mark, Progress, UnitProgress
from contracts.request import Review, Verify
from contracts.roles import SYNTHESIZER
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from workflows.phases.role_inputs import write_input
from workflows.run.calls import CallOptions, is_cancelled, reason_of, record_options
from workflows.run.host import abandon
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.role_calls import Unanswered

REVIEW_BAR: Final = 6.0
"""Score of 10 below which a draft is revised."""
VERIFICATION: Final = "verification"
"""Name of the phase."""
AT_ONCE: Final = 4
"""Calls in parallel, at least."""
TOKEN_SHARE: Final = 0.25
"""Share of the run's earlier tokens that checking and correcting may add."""
CALL_TOKENS: Final = 1_100
"""Tokens of a call besides its claims."""
CORRECTION_TOKENS: Final = 350
"""Tokens of a proposal and of checking it again."""
FEWEST_CORRECTIONS: Final = 5
NOT_IN_THE_TEXT: Final = ("unresolved_markers", "foreign_urls", "confidence", "iteration", "kind", "direct", "empty")
"""Fields of a draft that do not follow from its text."""


# --- review --------------------------------------------------------------------------------------------------------
async def review(run: ResearchRun) -> None:
    """Score the draft against question and brief, and have it revised once if it falls short; the better one remains.

    An interruption leaves the draft as it is.
    """
    state, mode = run.state, run.resolved.checks.review
    if mode is Review.OFF or state.draft is None or state.draft.empty:
        return
    engine = run.resolved.engine if mode is Review.MODEL else EngineKind.EXTRACTIVE
    try:
        first = await run.ask(REVIEWER, "review", _review_input(state), engine)
        state.verification = state.verification.model_copy(update={"review": _summary(first)})
        run.note("review.finished", f"the draft scores {first.scores.overall:g} of 10", score=first.scores.overall)
        if first.scores.overall < REVIEW_BAR and writer_engine(state.engine_by_role) is EngineKind.MODEL:
            await _revise(run, first, engine)
    except Interrupted:
        run.inbox.clear()
        run.degrade("the draft was not reviewed to the end")
    if mode is Review.RULES:
        # A review that the request gives to rules is no fallback of a role.
        state.engine_by_role.pop(REVIEWER.name, None)


async def _revise(run: ResearchRun, first: ReviewerAnswer, engine: EngineKind) -> None:
    """Make one revision by the notes of the review; it replaces the draft if it scores higher."""
    state, draft = run.state, run.state.draft
    notes = [GateIssue(code="review", message=note[:300]) for note in [*first.notes, *first.missing]]
    output = await run.ask(SYNTHESIZER, "revise", write_input(run, issues=notes))
    if output.account.engine is not EngineKind.MODEL:
        state.engine_by_role[SYNTHESIZER.name] = EngineKind.MODEL.value
        return
    try:
        state.draft = output.draft
        second = await run.ask(REVIEWER, "review-revision", _review_input(state), engine)
    except Interrupted:
        state.draft = draft
        raise
    better = second.scores.overall > first.scores.overall
    if not better:
        state.draft = draft
    summary = _summary(second if better else first)
    summary = summary.model_copy(update={"revised": better, "before": first.scores.overall})
    state.verification = state.verification.model_copy(update={"review": summary})
    text = f"a revision scores {second.scores.overall:g} and was {'kept' if better else 'dropped'}"
    run.note("review.finished", text, kept=better)


def _review_input(state: ResearchState) -> ReviewInput:
    """Return the request to the reviewer. Raises ValueError without a draft."""
    if state.draft is None:
        raise ValueError("there is no draft to review")
    cited = [state.evidence[item] for item in state.draft.evidence_ids if item in state.evidence]
    return ReviewInput(
        brief=state.plan.brief,
        draft=state.draft.document,
        sub_queries=[query.text for query in state.plan.questions],
        unanswered=[query.text for query in state.plan.questions if not query.finding_count],
        sources_cited=len({item.source_id for item in cited}),
        findings=len(state.findings),
    )


def _summary(output: ReviewerAnswer) -> ReviewSummary:
    return ReviewSummary(
        method="model" if output.account.engine is EngineKind.MODEL else "rules",
        scores=output.scores,
        overall=output.scores.overall,
        reasons=output.reasons,
        missing=output.missing,
    )


# --- verification --------------------------------------------------------------------------------------------------
def verification_is_due(run: ResearchRun) -> bool:
    """Return true if a model is to check the claims of the draft before the report is rendered."""
    draft = run.state.draft
    return run.resolved.verify is Verify.FULL and draft is not None and not draft.empty


async def verify(run: ResearchRun) -> None:
    """Check and correct the draft. A fault leaves it as it is, and the report says so."""
    if not verification_is_due(run):
        return
    state = run.state
    state.phase = VERIFICATION
    await run.watchers.enter_phase(run)
    run.note("phase.started", "checking the claims", phase=VERIFICATION, label="verify", iteration=state.iteration)
    before = state.verification
    state.verification = Verification(answers=before.answers, review=before.review)
    state.verdicts_entry = ""
    checks = _ClaimChecks(run)
    try:
        await checks.carry_out()
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"the claims could not all be checked ({reason_of(error)})")
    for number, verdict in enumerate(checks.verdicts, 1):
        run.note("claim.verified", f"claim {number}: {verdict.value}", number=number, verdict=verdict.value)
    summary = state.verification.summary
    counts = (
        ", ".join(f"{count} {verdict}" for verdict, count in summary.verdict_counts.items()) or "no claim was judged"
    )
    run.note("verification.summary", f"claims checked: {counts}", **summary.model_dump(mode="json"))
    run.note("phase.finished", f"claims checked: {counts}", phase=VERIFICATION, iteration=state.iteration)


def with_verification(progress: Progress, state: ResearchState) -> Progress:
    """Return the strategy's progress with the verification as a further unit, if the request demands one."""
    if state.resolved is None or state.resolved.verify is not Verify.FULL:
        return progress
    done, running = state.result is not None, state.phase == VERIFICATION
    mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
    counts = state.verification.summary.verdict_counts
    detail = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    unit = UnitProgress(name=VERIFICATION, label="verify", mark=mark, detail=detail)
    return progress.model_copy(update={"units": [*progress.units, unit]})


class _ClaimChecks:
    """One verification of one draft."""

    def __init__(self, run: ResearchRun) -> None:
        self._run = run
        self._ids = {"research_id": run.resolved.research_id, "tenant": run.resolved.tenant}
        self._by_model = run.resolved.engine is EngineKind.MODEL
        self._tokens_before = run.state.usage.tokens
        self.verdicts: list[Verdict] = []
        """Verdict of each claim of the draft, in order."""

    async def carry_out(self) -> None:
        """Weigh the claims, check them, then correct them and check the corrections."""
        run, checks = self._run, self._run.resolved.checks
        weighed = await self._weigh()
        unreached = await self._check(weighed, "check")
        concluded = await self._conclude(unreached, corrects=bool(checks.correct), claims_entry=weighed.claims_entry)
        wrong = {Verdict.CONTRADICTED, Verdict.UNSUPPORTED} & set(concluded.verdicts)
        if checks.correct and (concluded.doubtful_entry or wrong) and run.inbox.interruption is None:
            corrected = await self._correct(concluded)
            await self._check(corrected, "check-corrected")
            await self._conclude(unreached, corrects=False, corrected_entry=corrected.claims_entry)

    async def _weigh(self) -> ExtractedClaims:
        run, answers = self._run, self._run.state.verification.answers

        async def send(change: StateChange) -> ExtractedClaims:
            request = ExtractClaimsRequest(**self._ids, change=change, answers=answers)
            return await run.host.execute(activities.EXTRACT_CLAIMS, request, self._options("weigh", "find the claims"))

        weighed = await run.checkpoints.with_newest_state(send)
        run.operation_done("weigh")
        run.state.note_entry(weighed.claims_entry)
        run.note("status", f"{weighed.claims} claims, {len(weighed.sizes)} of them for the checker", level="info")
        return weighed

    async def _check(self, weighed: ExtractedClaims, step: str) -> int:
        """Have the claims checked, the most important ones first; the number of claims that were not reached."""

        async def check(call: int, numbers: list[int], size: int) -> None:
            request = CheckInput(entry=weighed.asked_entry, numbers=numbers, bytes_shown=size)
            output = await self._run.ask(CHECKER, f"{step}/{call}", request)
            if output.entry is not None:
                verification = self._run.state.verification
                self._run.state.note_entry(output.entry)
                # Sorted, because the order of arrival must not decide.
                answers = sorted({*verification.answers, output.entry})
                self._run.state.verification = verification.model_copy(update={"answers": answers})
            self._run.note("status", f"{len(output.verdicts)} claims checked", level="info")

        batches = list(_batches(weighed.sizes))
        reached = await self._in_parallel([check(*batch) for batch in batches])
        return sum(len(numbers) for (_, numbers, _), done in zip(batches, reached, strict=True) if not done)

    async def _conclude(self, unreached: int, *, corrects: bool, **entries: str) -> FinalizedVerification:
        """Have the verdicts put together, and take them over with the corrected draft."""
        run, known = self._run, self._run.state.verification
        request = FinalizeVerificationRequest(
            **self._ids,
            **entries,
            mode=run.resolved.verify.value,
            by_model=self._by_model,
            corrections_entry=known.corrections_entry,
            answers=known.answers,
            unreached=unreached,
            corrects=corrects,
        )
        options = self._options("conclude", "put the verdicts together")
        concluded = await run.host.execute(activities.FINALIZE_VERIFICATION, request, options)
        concluded = concluded.model_copy(update={"claims_entry": concluded.claims_entry or request.claims_entry})
        run.operation_done("conclude")
        self._take_over(concluded)
        return concluded

    def _take_over(self, concluded: FinalizedVerification) -> None:
        run, state = self._run, self._run.state
        entries = ("claims_entry", "verdicts_entry", "corrections_entry")
        for entry in (*(getattr(concluded, name) for name in entries), concluded.evidence_entry):
            state.note_entry(entry)
        if concluded.draft is not None and state.draft is not None:
            # The corrected draft is known by its text alone.
            history = {name: getattr(state.draft, name) for name in NOT_IN_THE_TEXT}
            update = history | {"revision": state.draft.revision + 1}
            state.draft = concluded.draft.model_copy(update=update)
            for action, count in concluded.summary.correction_counts.items():
                run.note("citation.corrected", f"{action}: {count} claims", action=action, count=count)
        for place in concluded.evidence if concluded.evidence_entry else ():
            passage = place.evidence(concluded.evidence_entry)
            state.evidence.setdefault(passage.id, passage)
        state.verdicts_entry = concluded.verdicts_entry
        known = {name: getattr(concluded, name) for name in (*entries, "summary")}
        state.verification = state.verification.model_copy(update=known)
        self.verdicts = concluded.verdicts

    async def _correct(self, concluded: FinalizedVerification) -> ExtractedClaims:
        """Put proposals of the corrector, or of rules, into the draft; the result is still to be checked."""
        run, proposals = self._run, list[tuple[int, str]]()
        sizes = concluded.sizes[: self._affordable(concluded.sizes)] if self._by_model else []

        async def correct(call: int, numbers: list[int], size: int) -> None:
            request = CorrectInput(entry=concluded.doubtful_entry, numbers=numbers, bytes_shown=size)
            output = await run.ask(CORRECTOR, f"correct/{call}", request)
            if output.entry:
                run.state.note_entry(output.entry)
                proposals.append((call, output.entry))

        await self._in_parallel([correct(*batch) for batch in _batches(sizes)])
        request = ApplyRequest(
            **self._ids,
            by_model=self._by_model,
            claims_entry=concluded.claims_entry,
            doubtful_entry=concluded.doubtful_entry,
            proposals=[entry for _, entry in sorted(proposals)],
            answers=run.state.verification.answers,
        )
        options = self._options("apply", "put the corrections into the draft")
        corrected = await run.host.execute(activities.APPLY_CORRECTIONS, request, options)
        run.operation_done("apply")
        return corrected

    def _affordable(self, sizes: Sequence[int]) -> int:
        """Return the number of corrections, the most important first, that the share of tokens allows."""
        spent = self._run.state.usage.tokens - self._tokens_before
        left = TOKEN_SHARE * self._tokens_before - spent - 2 * CALL_TOKENS
        needed = accumulate(size / BYTES_PER_TOKEN + CORRECTION_TOKENS for size in sizes)
        return max(FEWEST_CORRECTIONS, sum(tokens <= left for tokens in needed))

    async def _in_parallel(self, calls: Sequence[Coroutine[Any, Any, None]]) -> list[bool]:
        """Make calls in parallel within bounds, the first ones first; true for each that was made."""
        turns = asyncio.Semaphore(max(AT_ONCE, self._run.resolved.limits.max_parallel))

        async def make(call: Coroutine[Any, Any, None]) -> bool:
            async with turns:
                try:
                    await call
                except Interrupted:
                    return False
                except Unanswered:
                    return True
                return True

        tasks = [asyncio.ensure_future(make(call)) for call in calls]
        try:
            await self._run.host.settle(tasks)
        except asyncio.CancelledError:
            await abandon(self._run.host, tasks)
            raise
        return [task.result() for task in tasks]

    def _options(self, step: str, summary: str) -> CallOptions:
        run = self._run
        return record_options(run.operation(step), summary, run.clock.remaining_work_seconds())


def _batches(sizes: Sequence[int]) -> Iterator[tuple[int, list[int], int]]:
    """Divide claims evenly over as few calls as possible: number of the call from 1, numbers of claims, their size."""
    calls = max(1, -(-len(sizes) // CLAIMS_PER_CALL))
    each = -(-len(sizes) // calls) or 1
    for call, start in enumerate(range(0, len(sizes), each), 1):
        part = sizes[start : start + each]
        yield call, list(range(start, start + len(part))), sum(part)
