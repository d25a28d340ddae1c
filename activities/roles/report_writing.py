"""Report text from answers of the synthesizer and the reporter, in which every citation names a passage."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from activities.reporting.drafts import MARKDOWN_TYPE, CleanDraft, clean_draft, describe_draft
from activities.reporting.references import DraftMarks, KnownAddresses, cited_evidence
from activities.reporting.tree import write
from activities.reporting.updates import UpdateRefused, check_fences, empty_report, read_body, read_live, update_body
from activities.roles.grounding import RoleWork
from activities.roles.untrusted import label_all
from contracts.addresses import digest
from contracts.evidence import DocumentRef, ReportDraft
from contracts.report_updates import Operation, OperationKind, ReporterAnswer, ReporterResult, ReportUpdate, UpdateInput
from contracts.roles import SynthesizerAnswer, SynthesizerResult, WriteInput
from contracts.vocabulary import EngineKind, ReportKind
from providers.errors import InvalidCall, InvalidOutput

MAX_PASSAGES_OF_SOURCE: Final = 3  # most passages that replace the citation of a whole source


def clean_text(
    work: RoleWork[WriteInput, Any] | RoleWork[UpdateInput, Any], markdown: str, present: Sequence[str] = ()
) -> CleanDraft:
    """Make a draft of a writer's text, with citations that name passages and without a list of sources.

    The passages of the request and those already `present` in the report can be cited. A model must cite by the labels
    of its prompt, because ids can be computed and a page may contain them.
    """
    request = work.request
    by_model = work.engine is EngineKind.MODEL
    texts = {source.id: work.documents[source.text.hash] for source in request.sources
             if source.text and source.text.hash in work.documents}  # fmt: skip
    cited = {item.id: item for item in request.evidence}
    quotes = {
        key: texts[item.source_id][item.start : item.end] for key, item in cited.items() if item.source_id in texts
    }
    urls = [address for source in request.sources for address in (source.url, source.address) if address]
    registry = KnownAddresses.of(urls, request.query, quotes.values())
    names = {key: [key] for key in (*cited, *present)}
    if by_model:
        names = {label: [key] for label, key in label_all(names, request).items()}
        # A citation of a source means its passages in the prompt, unless there are too many to tell which.
        for label, source in label_all((item.source_id for item in cited.values()), request).items():
            passages = [item.id for item in cited.values() if item.source_id == source]
            if len(passages) <= MAX_PASSAGES_OF_SOURCE:
                names |= {label: passages}
    # The extractive engine escapes all brackets of a page, so unescaped ones are its own.
    marks = DraftMarks({name.lower(): ids for name, ids in names.items()}, exact=not by_model,
                       quotes=list(quotes.values()))  # fmt: skip
    return clean_draft(markdown, marks, registry, quotes)


# --- a whole report ---------------------------------------------------------------------------------------------------
def ground_report(work: RoleWork[WriteInput, SynthesizerAnswer]) -> SynthesizerResult:
    """Return a draft by hash, and put its text into `work.texts`. Raises `InvalidOutput` if it is unusable."""
    report = clean_text(work, work.answer.markdown)
    by_model = work.engine is EngineKind.MODEL
    if not report.blocks:
        raise InvalidOutput("markdown: the report is empty")
    base = ReportDraft(
        document=DocumentRef(hash=digest(work.answer.markdown), media_type=MARKDOWN_TYPE),  # until its text is stored
        unresolved_markers=[*report.unresolved, *report.copied],
        foreign_urls=report.foreign_urls,
        iteration=work.request.iteration,
        kind=ReportKind.REPORT if by_model else ReportKind.PASSAGES,
    )
    draft, text = describe_draft(base, report.blocks)
    if by_model and work.request.findings and not draft.evidence_ids:
        raise InvalidOutput("markdown: the report cites none of the findings; cite each with its [ev-…] marker")
    if report.unresolved:
        work.warnings.append(f"markers that name no passage were removed: {len(report.unresolved)}")
    if report.copied:
        work.warnings.append(f"names of the prompt were removed from the text: {len(report.copied)}")
    if report.foreign_urls:
        work.warnings.append(f"addresses outside the source registry were removed: {len(report.foreign_urls)}")
    if report.unquoted:
        work.warnings.append(f"quotations that their passages do not have: {report.unquoted} made plain text")
    work.texts.append(text)
    return SynthesizerResult(draft=draft.with_fields(empty=not draft.evidence_ids))


# --- an update of a live report ---------------------------------------------------------------------------------------
def section_of(request: UpdateInput, documents: Mapping[str, str]) -> str:
    """Return the current Markdown of the section. Raises `InvalidCall` for a heading that the report lacks."""
    if request.draft:
        report = read_live(documents[request.draft.hash])
    else:
        report = empty_report("", request.outline)
    try:
        return report.sections[report.index_of(request.heading)][1]
    except UpdateRefused as refusal:
        raise InvalidCall(str(refusal)) from None


def ground_update(work: RoleWork[UpdateInput, ReporterAnswer]) -> ReporterResult:
    """Return an update of the section, and the notes that it does not cite, left or omitted. Raises `InvalidOutput`.

    Without a model, operations that do not fit are skipped, and their notes are left for the next update.
    """
    request = work.request
    by_model = work.engine is EngineKind.MODEL
    if by_model:
        answer = work.answer.fitted(request, work.warnings)
    else:
        answer = work.answer
    body = section_of(request, work.documents)
    operations = list[Operation]()
    try:
        for operation in answer.operations:
            try:
                clean = _clean(operation, body, work)
                if not by_model:
                    update_body(body, [*operations, clean], request.most_characters)
            except UpdateRefused:
                if by_model:
                    raise
            else:
                operations.append(clean)
        if operations:
            update_body(body, operations, request.most_characters)
    except UpdateRefused as refusal:
        raise InvalidOutput(str(refusal)) from None
    cited = {key for operation in operations for key in cited_evidence(read_body(operation.text))}
    if by_model and operations and request.findings and not cited and not request.issues:
        raise InvalidOutput("operations: they cite none of the notes; cite each with its [ev-…] marker")
    update = ReportUpdate(
        heading=request.heading,
        base=digest(body),
        operations=operations,
        kind=ReportKind.REPORT if by_model else ReportKind.PASSAGES,
    )
    unused = [finding.id for finding in request.findings if not cited.intersection(finding.evidence_ids)]
    moved = {
        request.findings[place.note - 1].id: request.outline[place.heading - 1]
        for place in answer.belongs_under
        if 0 < place.note <= len(request.findings) and 0 < place.heading <= len(request.outline)
    }
    moved = {name: heading for name, heading in moved.items() if name in unused and heading != request.heading}
    named = {request.findings[number - 1].id for number in answer.omitted if 0 < number <= len(request.findings)}
    # A writer passes over what the section says already with all passages of the note.
    known = cited.union(cited_evidence(read_body(body))) if by_model else set()
    reported = {finding.id for finding in request.findings if known.issuperset(finding.evidence_ids)}
    return ReporterResult(
        update=update,
        notes_left=[name for name in unused if name not in named and name not in moved and name not in reported],
        notes_omitted=[name for name in unused if name in named and name not in moved],
        notes_moved=moved,
    )


def _clean(operation: Operation, body: str, work: RoleWork[UpdateInput, ReporterAnswer]) -> Operation:
    """Return an operation with its text cleaned as that of a draft. Raises `UpdateRefused`."""
    if operation.kind is OperationKind.REMOVE:
        if not work.request.issues:
            raise UpdateRefused("operations: without a remark of the review nothing is removed; add or replace")
        return operation.with_fields(text="")
    check_fences(operation.text)
    draft = clean_text(work, operation.text, cited_evidence(read_body(body)))
    if work.engine is EngineKind.MODEL and draft.foreign_urls:
        raise UpdateRefused("text: an address that is no source's; write no addresses, citations become links")
    if draft.unresolved:
        raise UpdateRefused("text: a citation that names no passage of the notes; copy the markers as they are")
    return operation.with_fields(text=write(draft.blocks).text.strip("\n") if draft.blocks else "")
