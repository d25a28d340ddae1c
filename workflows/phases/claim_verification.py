"""Verification: the claims of the draft are checked, what is doubtful is corrected once and checked again.

It works on the draft of any strategy, and after a forced ending on what was written then. Whatever ends it (a limit, a
person, a fault), what was judged until then counts, and the rest is called unverified.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.addresses import evidence_id, sub_query_id
from contracts.call_sizes import BYTES_PER_TOKEN, CLAIMS_PER_CALL
from contracts.checking import Verification, read_verdicts
from contracts.checking_roles import (
    CHECKER,
    CORRECTOR,
    CheckerResult,
    CheckInput,
    CorrectInput,
    CorrectorResult,
)
from contracts.evidence import Evidence, Verdict
from contracts.messages import (
    ApplyRequest,
    Concluded,
    ConcludeRequest,
    StateChange,
    Weighed,
    WeighRequest,
)
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.request import Verify
from contracts.roles import (
    RoleAnswer,
)
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import EngineKind
from workflows.phases.gathering import Gathering
from workflows.rules.query_matching import drop_repeated
from workflows.rules.sub_queries import sources_left
from workflows.run.activity_options import CallOptions, record_options
from workflows.run.call_errors import is_cancelled, reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.role_calls import Unanswered

T = TypeVar("T", bound=RoleAnswer)

VERIFICATION: Final = "verification"
LABEL: Final = "verify"
AT_ONCE: Final = 4
"""Calls that run side by side, at least."""
MOST_SHARE: Final = 0.25
"""Of the run's tokens before it, that checking and correcting may add; `strict` corrects whatever it costs."""
CALL_TOKENS: Final = 1_100
"""What a call costs besides the claims that it is about."""
CORRECTION_TOKENS: Final = 350
"""A proposal, and checking it again."""
FEWEST_CORRECTIONS: Final = 5
LEAST_SECONDS: Final = 30.0
LEAST_OF_RESERVE: Final = 0.5
"""Time that must be left for searching beyond what was read."""
DRAFT_FIELDS: Final = (
    *(
        "document",
        "section_documents",
        "title",
        "summary",
        "sections",
        "word_count",
        "characters",
        "has_headings",
        "evidence_ids",
    ),
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
        self._tokens_before = run.state.usage.tokens
        self.verdicts: list[Verdict] = []
        """Of each claim of the draft that stands, in order."""

    async def carry_out(self) -> None:
        run, checks = self._run, self._run.resolved.checks
        weighed = await self._weigh()
        unreached = await self._check(weighed, "check")
        corrects = checks.correct
        concluded = await self._conclude(unreached, corrects=corrects, claims_entry=weighed.claims_entry)
        if await self._search_outside(concluded.queries):
            weighed = await self._weigh()
            concluded = await self._conclude(unreached, corrects=corrects, claims_entry=weighed.claims_entry)
        # Without `strict` once, with it once more if the report would still warn of itself.
        for last in (not checks.strict, True)[: 1 + checks.strict]:
            if not concluded.doubtful_entry or run.inbox.interruption is not None:
                return
            tried = await self._correct(concluded)
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
            output: CheckerResult = await self._run.ask(CHECKER, f"{step}/{number}", request)
            self._take_answers(output)

        batches = list(self._batches(weighed.sizes))
        done = await self._all([check(number, batch) for number, batch in enumerate(batches, 1)])
        return sum(len(batch.numbers) for batch, reached in zip(batches, done, strict=True) if not reached)

    async def _search_outside(self, queries: Sequence[str]) -> bool:
        """One bounded round of searches for what no text that was read bears out; whether it brought a new source.

        The questions are no part of the plan: what they do not find makes no run incomplete.
        """
        run, state = self._run, self._run.state
        allowed = [query for query in queries if not run.gives_away(query)]
        enough = max(LEAST_SECONDS, LEAST_OF_RESERVE * run.resolved.limits.reserve_seconds)
        early = run.inbox.interruption is not None or run.remaining_seconds() < enough
        if not allowed or early or not sources_left(state, run.resolved.limits):
            return False
        nodes = [
            PlanNode(id=sub_query_id(text), text=text, origin=VERIFICATION, iteration=state.iteration)
            for text in drop_repeated(allowed, [query.text for query in state.plan.sub_queries])
        ]
        if not nodes:
            return False
        plan, failed, read = state.plan, list(state.failed_branches), len(state.readable_sources())
        state.plan = plan.with_nodes(*nodes)
        run.note("status", f"searching for what no source bears out: {plural(len(nodes), 'claim')}", level="info")
        try:
            await Gathering(run, nodes).carry_out()
        except Interrupted:
            run.degrade("not all claims that are not borne out could be searched for")
        finally:
            state.plan = plan
        for note in state.failed_branches[len(failed) :]:
            run.degrade(note)
        state.failed_branches = failed
        return len(state.readable_sources()) > read

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
        concluded = concluded.model_copy(update={"claims_entry": concluded.claims_entry or request.claims_entry})
        run.operation_done("conclude")
        self._take_over(concluded)
        return concluded

    async def _correct(self, concluded: Concluded) -> Weighed:
        """The draft with what a corrector proposes, and rules where there is none; still to be checked."""
        run, proposals = self._run, []
        sizes = concluded.sizes[: self._affordable(concluded.sizes)] if self._by_model else []

        async def correct(number: int, batch: _Batch) -> None:
            request = CorrectInput(entry=concluded.doubtful_entry, numbers=batch.numbers, bytes_shown=batch.bytes_shown)
            output: CorrectorResult = await run.ask(CORRECTOR, f"correct/{number}", request)
            if output.entry:
                run.state.note_entry(output.entry)
                proposals.append((number, output.entry))

        await self._all([correct(number, batch) for number, batch in enumerate(self._batches(sizes), 1)])
        request = ApplyRequest(
            **self._ids,
            by_model=self._by_model,
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

    def _affordable(self, sizes: Sequence[int]) -> int:
        """How many corrections, the most important first, keep the whole check within its share of the run's tokens."""
        if self._run.resolved.checks.strict:
            return len(sizes)
        used = self._run.state.usage.tokens
        left = MOST_SHARE * self._tokens_before - (used - self._tokens_before) - 2 * CALL_TOKENS
        needed = accumulate(size / BYTES_PER_TOKEN + CORRECTION_TOKENS for size in sizes)
        return max(FEWEST_CORRECTIONS, sum(tokens <= left for tokens in needed))

    # --- parts of them ---------------------------------------------------------------------------------------------
    def _batches(self, sizes: Sequence[int]) -> Iterator[_Batch]:
        """Claims in the order of their weight, shared out evenly over as few calls as there must be."""
        calls = max(1, -(-len(sizes) // CLAIMS_PER_CALL))
        each = -(-len(sizes) // calls) or 1
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

    def _take_answers(self, output: CheckerResult) -> None:
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
            state.draft = state.draft.model_copy(update=given | {"revision": state.draft.revision + 1})
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
        self.verdicts = read_verdicts(concluded.verdicts)

    def _options(self, step: str, summary: str) -> CallOptions:
        run = self._run
        return record_options(run.operation(step), summary, run.remaining_work_seconds())
