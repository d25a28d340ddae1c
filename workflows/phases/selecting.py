"""Evidence for claims and sections, chosen from the whole stored texts of a run."""

from collections.abc import Collection, Iterable

from contracts import activities
from contracts.evidence import Evidence
from contracts.messages import SPANS_PER_QUESTION, SPANS_PER_SOURCE, SelectionRequest
from contracts.vocabulary import SourceStatus
from workflows.phases.role_inputs import extract_of
from workflows.run.activity_options import selection_options
from workflows.run.research_run import ResearchRun


async def select_evidence(
    run: ResearchRun,
    step: str,
    questions: list[str],
    *,
    per_question: int = SPANS_PER_QUESTION,
    per_source: int = SPANS_PER_SOURCE,
) -> list[list[Evidence]]:
    """Passages for each question, the best first; those that a draft cites are to be kept (`keep_evidence`).

    `step` names the operation (`select/sections`). Raises `ActivityError` where no worker could do it, `Interrupted`.
    """
    state = run.state
    sources = [source for source in state.sources.values() if source.status is SourceStatus.FULL or source.snippet]
    if not questions or not sources:
        return [[] for _ in questions]
    request = SelectionRequest(
        research_id=run.resolved.research_id,
        tenant=run.resolved.tenant,
        language=run.resolved.language,
        questions=questions,
        sources=[extract_of(source) for source in sources],
        per_question=per_question,
        per_source=per_source,
    )
    options = selection_options(run.operation(step), "select passages", run.remaining_work_seconds())
    chosen = await run.within_limits(run.host.execute(activities.select_evidence, request.by_reference(), options))
    run.operation_done(step)
    return chosen.evidence(request)


def keep_evidence(run: ResearchRun, found: Iterable[Evidence], cited: Collection[str]) -> None:
    """What a draft cites of the passages found becomes evidence of the run."""
    for item in found:
        if item.id in cited:
            run.state.evidence.setdefault(item.id, item)
            run.state.note_entry(item.entry)
