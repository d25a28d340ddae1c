"""Writing the report: in one call, or, where it is to be long, section by section and then put together."""

import asyncio
from dataclasses import dataclass, replace

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.addresses import finding_id
from contracts.call_sizes import FEWEST_REPORT_SECTIONS, LONG_REPORT_WORDS, MOST_REPORT_SECTIONS
from contracts.evidence import DocumentRef, Evidence, Finding, ReportDraft
from contracts.messages import JoinRequest, Removals, ReviseRequest
from contracts.outcome import GateIssue
from contracts.plan import PlanNode
from contracts.roles import SYNTHESIZER, ReportPart, SynthesizerResult, WriteInput
from contracts.vocabulary import AgentRole, Confidence, EngineKind
from workflows.phases.role_inputs import extract_of, write_input
from workflows.phases.selecting import keep_evidence, select_evidence
from workflows.run.activity_options import record_options
from workflows.run.call_errors import is_cancelled
from workflows.run.research_run import ResearchRun

FRAME_WORDS = 500
SPANS_PER_SECTION = 6
LOSSES_NAMED = 5


@dataclass(frozen=True)
class PlannedSection:
    """What one section is to answer, and from what."""

    heading: str
    question: str
    findings: list[Finding]


async def write_report(run: ResearchRun, issues: list[GateIssue]) -> ReportDraft:
    """The draft. Raises `Interrupted`."""
    sections = _planned_sections(run)
    if sections:
        draft = await _write_by_sections(run, sections, issues)
        if draft is not None:
            return draft
    return (await run.ask(SYNTHESIZER, "write", write_input(run, issues=issues))).draft


def _planned_sections(run: ResearchRun) -> list[PlannedSection]:
    """One section per sub-query that found something; none where the report is written as a whole."""
    state, resolved = run.state, run.resolved
    if resolved.engine is not EngineKind.MODEL or (resolved.target_words or 0) < LONG_REPORT_WORDS:
        return []
    if resolved.sections:
        planned = [PlannedSection(each, f"{resolved.query} {each}", state.findings) for each in resolved.sections]
    else:
        planned = [
            PlannedSection(_heading(query), query.text, findings)
            for query in state.plan.sub_queries
            if (findings := [finding for finding in state.findings if finding.sub_query_id == query.id])
        ]
    return planned[:MOST_REPORT_SECTIONS] if len(planned) >= FEWEST_REPORT_SECTIONS else []


def _heading(query: PlanNode) -> str:
    return query.facet[:1].upper() + query.facet[1:] if query.facet else query.text.rstrip("?")


async def _write_by_sections(
    run: ResearchRun, sections: list[PlannedSection], issues: list[GateIssue]
) -> ReportDraft | None:
    """The sections side by side, then the frame around them. None where a section could not be written by the model."""
    passages = await _select(run, sections)
    outline = [section.heading for section in sections]
    words = max(200, ((run.resolved.target_words or LONG_REPORT_WORDS) - FRAME_WORDS) // len(sections))
    calls = [
        asyncio.ensure_future(
            run.ask(SYNTHESIZER, f"write-section-{number}", _section_input(run, number, section, found, outline, words))
        )
        for number, (section, found) in enumerate(zip(sections, passages, strict=True), start=1)
    ]
    try:
        written = await asyncio.gather(*calls)
    except BaseException:
        await run.abandon(calls)
        raise
    if any(output.account.engine is not EngineKind.MODEL for output in written):
        run.degrade("the report was written as a whole: a section could not be written by itself")
        return None
    whole = write_input(run, issues=issues)
    part = ReportPart(outline=outline, sections=[output.draft.document for output in written])
    frame = await run.ask(
        SYNTHESIZER, "write-frame", whole.model_copy(update={"part": part, "target_words": FRAME_WORDS})
    )
    if frame.account.engine is not EngineKind.MODEL:
        return frame.draft
    draft = await _join(run, frame, written, outline)
    if draft is not None:
        keep_evidence(run, (item for found in passages for item in found), draft.evidence_ids)
    return draft


async def _select(run: ResearchRun, sections: list[PlannedSection]) -> list[list[Evidence]]:
    """Passages of the whole texts for each section; without them it is written from its findings alone."""
    try:
        questions = [section.question for section in sections]
        return await select_evidence(run, "select-for-sections", questions, per_question=SPANS_PER_SECTION)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade("sections were written from the findings alone: no further passages could be looked for")
        return [[] for _ in sections]


def _section_input(
    run: ResearchRun, number: int, section: PlannedSection, passages: list[Evidence], outline: list[str], words: int
) -> WriteInput:
    """The hand-off for one section: its findings, and the passages that no finding tells of."""
    known = {identity for finding in section.findings for identity in finding.evidence_ids}
    further = [item for item in passages if item.id not in known]
    told = [
        Finding(
            id=finding_id(section.question, [item.id]),
            statement=f"A passage on: {section.question}"[:600],
            confidence=Confidence.LOW,
            evidence_ids=[item.id],
            source_ids=[item.source_id],
        )
        for item in further
    ]
    findings = [*section.findings, *told]
    cited = {source_id for finding in findings for source_id in finding.source_ids}
    whole = write_input(run, issues=[])
    return whole.model_copy(
        update={
            "findings": findings,
            "evidence": [*(item for item in whole.evidence if item.id in known), *further],
            "sources": [extract_of(one, to_search=False) for one in run.state.readable_sources() if one.id in cited],
            "gaps": [],
            "improvements": [],
            "target_words": words,
            "part": ReportPart(number=number, heading=section.heading, question=section.question, outline=outline),
        }
    )


async def _join(
    run: ResearchRun, frame: SynthesizerResult, written: list[SynthesizerResult], outline: list[str]
) -> ReportDraft | None:
    request = JoinRequest(
        research_id=run.resolved.research_id,
        tenant=run.resolved.tenant,
        frame=frame.draft,
        sections=[output.draft.document for output in written],
        headings=outline,
    )
    options = record_options(run.operation("join"), "join the sections", run.remaining_work_seconds())
    try:
        draft = await run.within_limits(run.host.execute(activities.join_report, request, replace(options, first=True)))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade("the report was written as a whole: its sections could not be put together")
        return None
    run.operation_done("join")
    parts = [frame.draft, *(output.draft for output in written)]
    return draft.model_copy(
        update={
            "unresolved_markers": list(dict.fromkeys(one for part in parts for one in part.unresolved_markers)),
            "foreign_urls": list(dict.fromkeys(one for part in parts for one in part.foreign_urls)),
        }
    )


async def revise(
    run: ResearchRun, step: str, changed: dict[int, DocumentRef], removes: Removals | None = None
) -> list[str]:
    """Make the next revision of the run's draft: new texts for parts by their numbers from 0, the head included.

    A revision that loses a section, a citation or the outline without saying so is refused and recorded, and the draft
    stays as it was; the losses. Raises `ActivityError`, `Interrupted`, ValueError without a draft.
    """
    state = run.state
    if state.draft is None:
        raise ValueError("there is no draft to revise")
    request = ReviseRequest(
        research_id=run.resolved.research_id,
        tenant=run.resolved.tenant,
        draft=state.draft,
        sections=changed,
        removes=removes or Removals(),
    )
    options = record_options(run.operation(step), "revise the report", run.remaining_work_seconds())
    revised = await run.within_limits(run.host.execute(activities.revise_report, request, replace(options, first=True)))
    run.operation_done(step)
    if revised.draft is None:
        outputs = {"losses": len(revised.losses)}
        reason = f"it would have lost {'; '.join(revised.losses[:LOSSES_NAMED])}"
        run.decide(AgentRole.SYNTHESIZER, "revision_refused", reason, {"parts": sorted(changed)}, outputs)
    else:
        state.draft = revised.draft
    return revised.losses
