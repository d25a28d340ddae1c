"""Review: the draft is scored against question and brief; below the bar it is revised once, and the better one kept."""

from typing import Final

from contracts.checking import ReviewSummary
from contracts.checking_roles import REVIEWER, ReviewerAnswer, ReviewInput
from contracts.outcome import GateIssue
from contracts.request import Review
from contracts.roles import (
    SYNTHESIZER,
)
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from workflows.phases.role_inputs import write_input
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

BAR: Final = 6.0
"""Of 10, below which a draft is revised."""


async def review(run: ResearchRun) -> None:
    """Score the draft, and have it revised once if it falls short. What interrupts it leaves the draft as it is."""
    state, wanted = run.state, run.resolved.checks.review
    if wanted is Review.OFF or state.draft is None or state.draft.empty:
        return
    engine = run.resolved.engine if wanted is Review.MODEL else EngineKind.EXTRACTIVE
    try:
        first = await run.ask(REVIEWER, "review", review_input(run), engine)
        state.verification = state.verification.model_copy(update={"review": _summary(first)})
        run.note("review.finished", f"the draft scores {first.scores.overall:g} of 10", score=first.scores.overall)
        if first.scores.overall < BAR and writer_engine(state.engine_by_role) is EngineKind.MODEL:
            await _revise(run, first, engine)
    except Interrupted:
        run.inbox.clear()
        run.degrade("the draft was not reviewed to the end")
    if wanted is Review.RULES:
        # What was wanted of rules is no role that a model was kept from.
        state.engine_by_role.pop(REVIEWER.name, None)


async def _revise(run: ResearchRun, first: ReviewerAnswer, engine: EngineKind) -> None:
    """One revision with the notes of the review, kept if it scores higher."""
    state, draft = run.state, run.state.draft
    notes = [GateIssue(code="review", message=note[:300]) for note in [*first.notes, *first.missing]]
    output = await run.ask(SYNTHESIZER, "revise", write_input(run, issues=notes))
    if output.account.engine is not EngineKind.MODEL:
        state.engine_by_role[SYNTHESIZER.name] = EngineKind.MODEL.value
        return
    try:
        state.draft = output.draft
        second = await run.ask(REVIEWER, "review-revision", review_input(run), engine)
    except Interrupted:
        state.draft = draft
        raise
    better = second.scores.overall > first.scores.overall
    if not better:
        state.draft = draft
    kept = _summary(second if better else first)
    told = kept.model_copy(update={"revised": better, "before": first.scores.overall})
    state.verification = state.verification.model_copy(update={"review": told})
    how = "kept" if better else "dropped"
    run.note("review.finished", f"a revision scores {second.scores.overall:g} and was {how}", kept=better)


def review_input(run: ResearchRun) -> ReviewInput:
    """Hand-off to the reviewer."""
    state = run.state
    if state.draft is None:
        raise ValueError("there is no draft to review")
    return ReviewInput(
        brief=state.plan.brief,
        draft=state.draft.document,
        sub_queries=[query.text for query in state.plan.sub_queries],
        unanswered=[query.text for query in state.plan.sub_queries if not query.finding_count],
        sources_cited=_sources_cited(state),
        findings=len(state.findings),
    )


def _sources_cited(state: ResearchState) -> int:
    cited = state.draft.evidence_ids if state.draft else []
    return len({state.evidence[identity].source_id for identity in cited if identity in state.evidence})


def _summary(output: ReviewerAnswer) -> ReviewSummary:
    by_model = output.account.engine is EngineKind.MODEL
    return ReviewSummary(
        method="model" if by_model else "rules",
        scores=output.scores,
        overall=output.scores.overall,
        reasons=output.reasons,
        missing=output.missing,
    )
