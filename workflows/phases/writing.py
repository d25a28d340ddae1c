"""Writing the report: in one call or, if it is to be long, section by section with a frame around them."""

import asyncio

from temporalio.exceptions import ActivityError

from contracts import activities, names
from contracts.call_sizes import FEWEST_REPORT_SECTIONS, LONG_REPORT_WORDS, MOST_REPORT_SECTIONS
from contracts.evidence import Finding, ReportDraft
from contracts.messages import JoinRequest
from contracts.outcome import GateIssue
from contracts.roles import SYNTHESIZER, ReportPart, SynthesizerResult, WriteInput
from contracts.vocabulary import EngineKind
from workflows.phases.role_inputs import write_input
from workflows.run.calls import call_options, is_cancelled
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun

FRAME_WORDS = 500

Section = tuple[str, str, list[Finding]]
"""Heading, question that the section answers, and its findings."""


async def write_report(run: ResearchRun, issues: list[GateIssue]) -> ReportDraft:
    """Return the draft. Raises `Interrupted`."""
    sections = _planned_sections(run)
    if sections:
        draft = await _write_by_sections(run, sections, issues)
        if draft is not None:
            return draft
    return (await run.ask(SYNTHESIZER, "write", write_input(run, issues=issues))).draft


def _planned_sections(run: ResearchRun) -> list[Section]:
    """Return one section for each heading of the request, or sub-query with findings; none for a short report."""
    state, resolved = run.state, run.resolved
    if resolved.engine is not EngineKind.MODEL or (resolved.output.target_words or 0) < LONG_REPORT_WORDS:
        return []
    if headings := resolved.output.sections:
        planned = [(each, f"{resolved.query} {each}", state.findings) for each in headings]
    else:
        planned = []
        for query in state.plan.sub_queries:
            findings = [finding for finding in state.findings if finding.sub_query_id == query.id]
            heading = query.facet[:1].upper() + query.facet[1:] if query.facet else query.text.rstrip("?")
            planned += [(heading, query.text, findings)] if findings else []
    return planned[:MOST_REPORT_SECTIONS] if len(planned) >= FEWEST_REPORT_SECTIONS else []


async def _write_by_sections(run: ResearchRun, sections: list[Section], issues: list[GateIssue]) -> ReportDraft | None:
    """Write the sections in parallel, then the frame around them; None if a model could not write a section."""
    outline = [heading for heading, _, _ in sections]
    words = max(200, ((run.resolved.output.target_words or LONG_REPORT_WORDS) - FRAME_WORDS) // len(sections))
    calls = []
    for number, (heading, question, findings) in enumerate(sections, start=1):
        part = ReportPart(number=number, heading=heading, question=question, outline=outline)
        request = _section_input(run, part, findings, words)
        calls.append(asyncio.ensure_future(run.ask(SYNTHESIZER, f"write-section-{number}", request)))
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
    return await _join(run, frame, written, outline)


def _section_input(run: ResearchRun, part: ReportPart, findings: list[Finding], words: int) -> WriteInput:
    """Return the request for one section, with its findings and their passages."""
    whole = write_input(run, issues=[])
    cited = {identity for finding in findings for identity in finding.evidence_ids}
    read = {source_id for finding in findings for source_id in finding.source_ids}
    return whole.model_copy(
        update={
            "findings": findings,
            "evidence": [item for item in whole.evidence if item.id in cited],
            "sources": [source for source in whole.sources if source.id in read],
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
    remaining = run.clock.remaining_work_seconds()
    options = call_options(names.RECORDS_QUEUE, run.operation("join"), "join the sections", remaining, first=True)
    try:
        draft = await run.within_limits(run.host.execute(activities.JOIN_REPORT, request, options))
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
