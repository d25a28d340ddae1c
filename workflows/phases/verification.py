"""Verification: the claims of the draft are checked, what is doubtful is corrected once and checked again.

It works on the draft of any strategy, and after a forced ending on what was written then. Whatever ends it (a limit, a
person, a fault), what was judged until then counts, and the rest is called unverified.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.checking import Verification
from contracts.claims import Verdict
from contracts.evidence import Evidence
from contracts.expected_calls import CLAIMS_PER_CALL
from contracts.identity import evidence_id
from contracts.messages import (
    ApplyRequest,
    Concluded,
    ConcludeRequest,
    StateChange,
    Weighed,
    WeighRequest,
)
from contracts.progress import Mark, Progress, UnitProgress
from contracts.request import Verify
from contracts.roles import CHECKER, CORRECTOR, CheckInput, CheckOutput, CorrectInput, CorrectOutput, RoleOutput
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind
from workflows.run.activity_options import CallOptions, record_options
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.role_calls import Unanswered

T = TypeVar("T", bound=RoleOutput)

VERIFICATION: Final = "verification"
LABEL: Final = "verify"
FEWEST_PER_CALL: Final = 6
"""Claims of one call: fewer cost the instructions more often."""
AT_ONCE: Final = 3
"""Calls that run side by side, at least."""
DRAFT_FIELDS: Final = (
    *("document", "title", "summary", "sections", "word_count", "characters", "has_headings", "evidence_ids"),
)


def is_wanted(run: ResearchRun) -> bool:
    """Whether the claims of the draft are to be checked before the report is rendered."""
    draft = run.state.draft
    return run.resolved.verify is Verify.FULL and draft is not None and not draft.empty


async def verify(run: ResearchRun) -> None:
    """Check and correct the draft. A fault leaves it as it is, and the report says so."""
    if not is_wanted(run):
        return
    state = run.state
    state.phase = VERIFICATION
    await run.watchers.enter_phase(run)
    run.note("phase.started", "checking the claims", phase=VERIFICATION, label=LABEL, iteration=state.iteration)
    before = state.verification
    state.verification = Verification(answers=before.answers, review=before.review)
    state.verdicts_entry = ""
    verifying = _Verifying(run)
    try:
        await verifying.carry_out()
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"the claims could not all be checked ({reason_of(error)})")
    for number, verdict in enumerate(verifying.verdicts, 1):
        run.note("claim.verified", f"claim {number}: {verdict.value}", number=number, verdict=verdict.value)
    summary = state.verification.summary
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items()) or "no claim was judged"
    run.note("verification.summary", f"claims checked: {counts}", **summary.model_dump(mode="json"))
    run.note("phase.finished", f"claims checked: {counts}", phase=VERIFICATION, iteration=state.iteration)


def with_verification(progress: Progress, state: ResearchState) -> Progress:
    """The strategy's progress with the verification as one unit more, where the request wants one by a model."""
    resolved = state.resolved
    if resolved is None or resolved.verify is not Verify.FULL:
        return progress
    done, running = state.result is not None, state.phase == VERIFICATION
    mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
    counts = state.verification.summary.verdicts
    detail = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    unit = UnitProgress(name=VERIFICATION, label=LABEL, mark=mark, detail=detail)
    return progress.model_copy(update={"units": [*progress.units, unit]})


@dataclass(frozen=True)
class _Batch:
    """The claims of one call."""

    numbers: list[int]
    bytes_shown: int


class _Verifying:
    """One verification of one draft."""

    def __init__(self, run: ResearchRun) -> None:
        self._run = run
        resolved = run.resolved
        self._ids = {"research_id": resolved.research_id, "tenant": resolved.tenant}
        self._by_model = resolved.engine is EngineKind.MODEL
        self.verdicts: list[Verdict] = []
        """Of each claim of the draft that stands, in order."""

    async def carry_out(self) -> None:
        run, checks = self._run, self._run.resolved.checks
        weighed = await self._weigh()
        unreached = await self._check(weighed, "check")
        corrects = checks.correct and self._by_model
        concluded = await self._conclude(unreached, corrects=corrects, claims_entry=weighed.claims_entry)
        # Without `strict` once, with it once more if the report would still warn of itself.
        for last in (not checks.strict, True)[: 1 + checks.strict]:
            if not concluded.doubtful_entry or run.inbox.interruption is not None:
                return
            tried = await self._correct(concluded)
            if tried is None:
                return
            await self._check(tried, "check-corrected")
            concluded = await self._conclude(unreached, corrects=not last, corrected_entry=tried.claims_entry)
            if not concluded.summary.warning:
                return

    # --- steps -----------------------------------------------------------------------------------------------------
    async def _weigh(self) -> Weighed:
        run, answers = self._run, self._run.state.verification.answers

        async def send(change: StateChange) -> Weighed:
            request = WeighRequest(**self._ids, change=change, answers=answers)
            return await run.host.execute(activities.weigh_claims, request, self._options("weigh", "find the claims"))

        weighed = await run.checkpoints.with_newest_state(send)
        run.operation_done("weigh")
        run.state.note_entry(weighed.claims_entry)
        run.note("status", f"{weighed.claims} claims, {len(weighed.sizes)} of them for the checker", level="info")
        return weighed

    async def _check(self, weighed: Weighed, step: str) -> int:
        """Ask the checker, the most important claims first. How many it was not asked for."""
        done: list[bool] = []

        async def check(number: int, batch: _Batch) -> None:
            request = CheckInput(entry=weighed.asked_entry, numbers=batch.numbers, bytes_shown=batch.bytes_shown)
            output: CheckOutput = await self._run.ask(CHECKER, f"{step}/{number}", request)
            self._take_answers(output)

        batches = list(self._batches(weighed.sizes))
        done = await self._all([check(number, batch) for number, batch in enumerate(batches, 1)])
        return sum(len(batch.numbers) for batch, reached in zip(batches, done, strict=True) if not reached)

    async def _conclude(self, unreached: int, *, corrects: bool, **entries: str) -> Concluded:
        run, state = self._run, self._run.state
        known = state.verification
        request = ConcludeRequest(
            **self._ids,
            **entries,
            mode=run.resolved.verify.value,
            strict=run.resolved.checks.strict,
            by_model=self._by_model,
            corrections_entry=known.corrections_entry,
            answers=known.answers,
            unreached=unreached,
            corrects=corrects,
        )
        options = self._options("conclude", "put the verdicts together")
        concluded = await run.host.execute(activities.conclude_check, request, options)
        run.operation_done("conclude")
        self._take_over(concluded)
        return concluded

    async def _correct(self, concluded: Concluded) -> Weighed | None:
        """The draft with what a corrector proposes, still to be checked; None if there is nothing to try."""
        run, proposals = self._run, []

        async def correct(number: int, batch: _Batch) -> None:
            request = CorrectInput(entry=concluded.doubtful_entry, numbers=batch.numbers, bytes_shown=batch.bytes_shown)
            output: CorrectOutput = await run.ask(CORRECTOR, f"correct/{number}", request)
            if output.entry:
                run.state.note_entry(output.entry)
                proposals.append((number, output.entry))

        await self._all([correct(number, batch) for number, batch in enumerate(self._batches(concluded.sizes), 1)])
        if not proposals:
            return None
        request = ApplyRequest(
            **self._ids,
            claims_entry=concluded.claims_entry,
            verdicts_entry=concluded.verdicts_entry,
            doubtful_entry=concluded.doubtful_entry,
            proposals=[entry for _, entry in sorted(proposals)],
            answers=run.state.verification.answers,
        )
        options = self._options("apply", "put the corrections into the draft")
        tried = await run.host.execute(activities.apply_corrections, request, options)
        run.operation_done("apply")
        return tried

    # --- parts of them ---------------------------------------------------------------------------------------------
    def _batches(self, sizes: Sequence[int]) -> Iterator[_Batch]:
        """Claims in the order of their weight, as many a call as let all calls run side by side."""
        at_once = max(AT_ONCE, self._run.resolved.limits.max_parallel)
        each = min(CLAIMS_PER_CALL, max(FEWEST_PER_CALL, -(-len(sizes) // at_once)))
        for start in range(0, len(sizes), each):
            part = sizes[start : start + each]
            yield _Batch(list(range(start, start + len(part))), sum(part))

    async def _all(self, work: Sequence[Any]) -> list[bool]:
        """Do calls side by side within bounds, the first ones first; whether each was made."""
        turns = asyncio.Semaphore(max(AT_ONCE, self._run.resolved.limits.max_parallel))

        async def one(call: Any) -> bool:
            async with turns:
                try:
                    await call
                except Interrupted:
                    return False
                except Unanswered:
                    return True
                return True

        tasks = [asyncio.ensure_future(one(call)) for call in work]
        try:
            await self._run.host.settle(tasks)
        except asyncio.CancelledError:
            await self._run.abandon(tasks)
            raise
        return [task.result() for task in tasks]

    def _take_answers(self, output: CheckOutput) -> None:
        state = self._run.state
        if output.entry is not None:
            state.note_entry(output.entry)
            answers = [*state.verification.answers, output.entry]
            # The order in which calls return decides nothing.
            state.verification = state.verification.model_copy(update={"answers": sorted(set(answers))})
        self._run.note("status", f"{len(output.verdicts)} claims checked", level="info")

    def _take_over(self, concluded: Concluded) -> None:
        run, state = self._run, self._run.state
        for entry in (concluded.claims_entry, concluded.verdicts_entry, concluded.corrections_entry):
            state.note_entry(entry)
        if concluded.draft is not None and state.draft is not None:
            given = {name: getattr(concluded.draft, name) for name in DRAFT_FIELDS}
            state.draft = state.draft.model_copy(update=given)
            for action, count in concluded.summary.corrections.items():
                run.note("citation.corrected", f"{action}: {count} claims", action=action, count=count)
        if concluded.evidence_entry:
            state.note_entry(concluded.evidence_entry)
            for place in concluded.evidence:
                identity = evidence_id(place.source_id, place.start, place.end)
                fresh = Evidence(
                    id=identity,
                    source_id=place.source_id,
                    start=place.start,
                    end=place.end,
                    entry=concluded.evidence_entry,
                )
                state.evidence.setdefault(identity, fresh)
        state.verdicts_entry = concluded.verdicts_entry
        state.verification = state.verification.model_copy(
            update={
                "claims_entry": concluded.claims_entry,
                "verdicts_entry": concluded.verdicts_entry,
                "corrections_entry": concluded.corrections_entry,
                "summary": concluded.summary,
            }
        )
        self.verdicts = concluded.verdicts

    def _options(self, step: str, summary: str) -> CallOptions:
        run = self._run
        return record_options(run.operation(step), summary, run.remaining_work_seconds())
