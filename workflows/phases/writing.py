"""Writing a report: in one call, or section by section if it is long.

The claims of separately written sections are checked while the frame around them is written. A report that one call
writes has nothing to check before its answer, and its sentences are not known while it comes.
"""

from functools import partial
from typing import Final

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.call_sizes import LONG_REPORT_WORDS, MAX_REPORT_SECTIONS, MIN_REPORT_SECTIONS
from contracts.evidence import Finding, ReportDraft
from contracts.messages import JoinRequest
from contracts.outcome import GateIssue
from contracts.roles import SYNTHESIZER, ReportPart, SynthesizerResult
from contracts.sentences import Message
from contracts.vocabulary import EngineKind, Phase
from workflows.phases.checking import check_sections
from workflows.phases.drafts import call_records, has_live_report, run_ids, take_written, words_of_model
from workflows.phases.role_inputs import findings_to_report, write_input
from workflows.run.calls import is_cancelled
from workflows.run.host import all_or_first_error, beside
from workflows.run.research_run import ResearchRun

FRAME_WORDS: Final = 500

Section = tuple[str, str, list[Finding]]
"""Heading, question that the section answers, and findings."""


async def write_draft(run: ResearchRun) -> None:
    """Write the report, given the issues of an earlier attempt: in one call, or section by section if it is long.

    Raises `Interrupted`.
    """
    issues = run.issues(Phase.SYNTHESIS)
    sections = _planned_sections(run)
    words_before = words_of_model(run.state)
    draft = None
    if sections:
        draft = await _write_by_sections(run, sections, issues)
    if draft is None:
        draft = (await run.ask(SYNTHESIZER, "write", write_input(run, issues=issues))).draft
    is_taken = await take_written(run, draft, words_before)
    if is_taken and not has_live_report(run):  # else each step has its event
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)


def _planned_sections(run: ResearchRun) -> list[Section]:
    """Return one section per requested heading, or else per sub-query with findings; none for a short report."""
    state = run.state
    resolved = run.resolved
    if resolved.engine is not EngineKind.MODEL or (resolved.output.target_words or 0) < LONG_REPORT_WORDS:
        return []
    reportable = findings_to_report(state.evidence.findings)
    if headings := resolved.output.sections:
        planned = [(heading, f"{resolved.query} {heading}", reportable) for heading in headings]
    else:
        planned = []
        for query in state.work.plan.sub_queries:
            findings = [finding for finding in reportable if finding.sub_query_id == query.id]
            if query.facet:
                heading = query.facet[:1].upper() + query.facet[1:]
            else:
                heading = query.text.rstrip("?")
            if findings:
                planned += [(heading, query.text, findings)]
    if len(planned) < MIN_REPORT_SECTIONS:
        return []
    return planned[:MAX_REPORT_SECTIONS]


async def _write_by_sections(run: ResearchRun, sections: list[Section], issues: list[GateIssue]) -> ReportDraft | None:
    """Write the sections in parallel, then the frame around them; None if a model could not write a section."""
    outline = [heading for heading, _, _ in sections]
    words = max(200, ((run.resolved.output.target_words or LONG_REPORT_WORDS) - FRAME_WORDS) // len(sections))
    whole = write_input(run, issues=[])
    calls = []
    for number, (heading, question, findings) in enumerate(sections, start=1):
        # A section is written only from its findings and their passages.
        cited = {identity for finding in findings for identity in finding.evidence_ids}
        read = {source_id for finding in findings for source_id in finding.source_ids}
        request = whole.with_fields(
            findings=findings,
            evidence=[item for item in whole.evidence if item.id in cited],
            sources=[source for source in whole.sources if source.id in read],
            gaps=[],
            improvements=[],
            target_words=words,
            part=ReportPart(number=number, heading=heading, question=question, outline=outline),
        )
        calls.append(partial(run.ask, SYNTHESIZER, f"write-section-{number}", request))
    written = await all_or_first_error(run.host, calls)
    if any(output.account.engine is not EngineKind.MODEL for output in written):
        run.degrade(Message("degraded_whole_section"))
        return None
    frame_part = ReportPart(outline=outline, sections=[output.draft.document for output in written])
    request = write_input(run, issues=issues).with_fields(part=frame_part, target_words=FRAME_WORDS)
    write_frame = partial(run.ask, SYNTHESIZER, "write-frame", request)
    # The check comes second, so that it takes no room from the frame.
    frame = await beside(run.host, write_frame, partial(check_sections, run, frame_part.sections, outline))
    if frame.account.engine is not EngineKind.MODEL:
        return frame.draft
    return await _join(run, frame, written, outline)


async def _join(
    run: ResearchRun, frame: SynthesizerResult, written: list[SynthesizerResult], outline: list[str]
) -> ReportDraft | None:
    """Join frame and sections; None if that failed."""
    sections = [output.draft.document for output in written]
    request = JoinRequest(**run_ids(run), frame=frame.draft, sections=sections, headings=outline)
    try:
        draft = await run.within_limits(
            call_records(run, activities.JOIN_REPORT, request, "join", "join the sections", first=True)
        )
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("degraded_whole_joined"))
        return None
    drafts = [frame.draft, *(output.draft for output in written)]
    return draft.with_fields(
        unresolved_markers=list(dict.fromkeys(marker for part in drafts for marker in part.unresolved_markers)),
        foreign_urls=list(dict.fromkeys(url for part in drafts for url in part.foreign_urls)),
    )
