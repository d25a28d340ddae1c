"""Writing the report: in one call or, if it is to be long, section by section with a frame around them."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.addresses import finding_id
from contracts.call_sizes import FEWEST_REPORT_SECTIONS, LONG_REPORT_WORDS, MOST_REPORT_SECTIONS
from contracts.evidence import Evidence, Finding, ReportDraft
from contracts.messages import JoinRequest
from contracts.outcome import GateIssue
from contracts.plan import PlanNode
from contracts.roles import SYNTHESIZER, ReportPart, SynthesizerResult, WriteInput
from contracts.vocabulary import Confidence, EngineKind
from workflows.phases.role_inputs import extract_of, select_evidence, write_input
from workflows.run.calls import is_cancelled, record_options
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun

FRAME_WORDS = 500
PASSAGES_PER_SECTION = 6


@dataclass(frozen=True)
class PlannedSection:
    """The question that one section answers, and its findings."""

    heading: str
    question: str
    findings: list[Finding]


async def write_report(run: ResearchRun, issues: list[GateIssue]) -> ReportDraft:
    """Return the draft. Raises `Interrupted`."""
    sections = _planned_sections(run)
    if sections:
        draft = await _write_by_sections(run, sections, issues)
        if draft is not None:
            return draft
    return (await run.ask(SYNTHESIZER, "write", write_input(run, issues=issues))).draft


def _planned_sections(run: ResearchRun) -> list[PlannedSection]:
    """Return one section for each heading of the request, or sub-query with findings; none for a short report."""
    state, resolved = run.state, run.resolved
    if resolved.engine is not EngineKind.MODEL or (resolved.output.target_words or 0) < LONG_REPORT_WORDS:
        return []
    if headings := resolved.output.sections:
        planned = [PlannedSection(each, f"{resolved.query} {each}", state.findings) for each in headings]
    else:
        planned = [
            PlannedSection(_heading(query), query.text, findings)
            for query in state.plan.questions
            if (findings := [finding for finding in state.findings if finding.sub_query_id == query.id])
        ]
    return planned[:MOST_REPORT_SECTIONS] if len(planned) >= FEWEST_REPORT_SECTIONS else []


def _heading(query: PlanNode) -> str:
    return query.facet[:1].upper() + query.facet[1:] if query.facet else query.text.rstrip("?")


async def _write_by_sections(
    run: ResearchRun, sections: list[PlannedSection], issues: list[GateIssue]
) -> ReportDraft | None:
    """Write the sections in parallel, then the frame around them; None if a model could not write a section."""
    passages = await _select_passages(run, sections)
    outline = [section.heading for section in sections]
    words = max(200, ((run.resolved.output.target_words or LONG_REPORT_WORDS) - FRAME_WORDS) // len(sections))
    parts = [
        ReportPart(number=number, heading=section.heading, question=section.question, outline=outline)
        for number, section in enumerate(sections, start=1)
    ]
    calls = [
        asyncio.ensure_future(
            run.ask(SYNTHESIZER, f"write-section-{part.number}", _section_input(run, part, section, found, words))
        )
        for part, section, found in zip(parts, sections, passages, strict=True)
    ]
    try:
        written = await asyncio.gather(*calls)
    except (asyncio.CancelledError, Exception):
        await abandon(run.host, calls)
        raise
    if any(output.account.engine is not EngineKind.MODEL for output in written):
        run.degrade("the report was written as a whole: a section could not be written by itself")
        return None
    frame_part = ReportPart(outline=outline, sections=[output.draft.document for output in written])
    request = write_input(run, issues=issues).model_copy(update={"part": frame_part, "target_words": FRAME_WORDS})
    frame = await run.ask(SYNTHESIZER, "write-frame", request)
    if frame.account.engine is not EngineKind.MODEL:
        return frame.draft
    draft = await _join(run, frame, written, outline)
    if draft is not None:
        _store_cited(run, (item for found in passages for item in found), draft)
    return draft


async def _select_passages(run: ResearchRun, sections: list[PlannedSection]) -> list[list[Evidence]]:
    """Choose further passages of the whole texts for each section; none if that fails."""
    try:
        questions = [section.question for section in sections]
        return await select_evidence(run, "select-for-sections", questions, PASSAGES_PER_SECTION)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade("sections were written from the findings alone: no further passages could be looked for")
        return [[] for _ in sections]


def _section_input(
    run: ResearchRun, part: ReportPart, section: PlannedSection, passages: list[Evidence], words: int
) -> WriteInput:
    """Return the request for one section, with its findings and the passages that no finding cites."""
    known = {identity for finding in section.findings for identity in finding.evidence_ids}
    further = [item for item in passages if item.id not in known]
    findings = [
        *section.findings,
        *(
            Finding(
                id=finding_id(section.question, [item.id]),
                statement=f"A passage on: {section.question}"[:600],
                confidence=Confidence.LOW,
                evidence_ids=[item.id],
                source_ids=[item.source_id],
            )
            for item in further
        ),
    ]
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
            "part": part,
        }
    )


async def _join(
    run: ResearchRun, frame: SynthesizerResult, written: list[SynthesizerResult], outline: list[str]
) -> ReportDraft | None:
    """Put frame and sections together; None if that failed."""
    request = JoinRequest(
        research_id=run.resolved.research_id,
        tenant=run.resolved.tenant,
        frame=frame.draft,
        sections=[output.draft.document for output in written],
        headings=outline,
    )
    options = record_options(run.operation("join"), "join the sections", run.clock.remaining_work_seconds())
    try:
        draft = await run.within_limits(run.host.execute(activities.JOIN_REPORT, request, replace(options, first=True)))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade("the report was written as a whole: its sections could not be put together")
        return None
    run.operation_done("join")
    drafts = [frame.draft, *(output.draft for output in written)]
    return draft.model_copy(
        update={
            "unresolved_markers": list(dict.fromkeys(one for part in drafts for one in part.unresolved_markers)),
            "foreign_urls": list(dict.fromkeys(one for part in drafts for one in part.foreign_urls)),
        }
    )


def _store_cited(run: ResearchRun, passages: Iterable[Evidence], draft: ReportDraft) -> None:
    """Make evidence of the run of those passages that the draft cites."""
    for item in passages:
        if item.id in draft.evidence_ids:
            run.state.evidence.setdefault(item.id, item)
            run.state.note_entry(item.entry)
