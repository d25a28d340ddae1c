"""The reporter's operations as an update whose every citation names a passage, refused where it would break the report.

The work of rules is fitted in instead: of its quotations as many as have room, the others wait for the next update.
"""

from collections.abc import Mapping

from activities.reporting.addresses import KnownAddresses
from activities.reporting.citations import DraftMarks, cited_evidence
from activities.reporting.drafts import clean_draft
from activities.reporting.markdown import write
from activities.reporting.updates import (
    UpdateRefused,
    check_fences,
    first_text,
    read_body,
    read_live,
    update_body,
)
from activities.roles.grounding import RoleWork
from activities.roles.synthesizer import PROMPT_IN_REPORT
from activities.roles.untrusted import label_all
from contracts.addresses import digest
from contracts.report_updates import Operation, ReporterAnswer, ReporterResult, ReportUpdate, UpdateInput
from contracts.vocabulary import EngineKind, ReportKind
from providers.errors import InvalidCall, InvalidOutput

Work = RoleWork[UpdateInput, ReporterAnswer]


def section_of(request: UpdateInput, documents: Mapping[str, str]) -> str:
    """Return the Markdown of the section as it is. Raises `InvalidCall` for a heading that the report lacks."""
    report = read_live(documents[request.draft.hash]) if request.draft else first_text("", request.outline)
    try:
        return report.sections[report.place_of(request.heading)][1]
    except UpdateRefused as refusal:
        raise InvalidCall(str(refusal)) from None


def ground_update(work: Work) -> ReporterResult:
    """An update of the section, and the notes that it does not cite. Raises `InvalidOutput`, with the reason."""
    request, by_model = work.request, work.engine is EngineKind.MODEL
    answer = work.answer.fitted(request, work.warnings) if by_model else work.answer
    body = section_of(request, work.documents)
    try:
        operations, inserted, removed = list[Operation](), 0, 0
        for each in answer.operations:
            try:
                clean = _clean(each, body, work)
                if not by_model:
                    update_body(body, [*operations, clean], request.most_characters)
            except UpdateRefused:
                if by_model:
                    raise
            else:
                operations.append(clean)
        if operations:
            _, inserted, removed = update_body(body, operations, request.most_characters)
    except UpdateRefused as refusal:
        raise InvalidOutput(str(refusal)) from None
    cited = {key for each in operations for key in cited_evidence(read_body(each.text))}
    update = ReportUpdate(
        heading=request.heading,
        base=digest(body),
        operations=operations,
        inserted=inserted,
        removed=removed,
        kind=ReportKind.REPORT if by_model else ReportKind.PASSAGES,
    )
    if by_model and operations and request.findings and not cited and not request.issues:
        raise InvalidOutput("operations: they cite none of the notes; cite each with its [ev-…] marker")
    left = [finding.id for finding in request.findings if not cited.intersection(finding.evidence_ids)]
    return ReporterResult(update=update, notes_left=left)


def _clean(operation: Operation, body: str, work: Work) -> Operation:
    """Return an operation whose text is that of a draft. Raises `UpdateRefused`."""
    request, by_model = work.request, work.engine is EngineKind.MODEL
    texts = {source.id: work.documents[source.text.hash] for source in request.sources
             if source.text and source.text.hash in work.documents}  # fmt: skip
    given = {item.id: item for item in request.evidence}
    quotes = {key: texts[item.source_id][item.start : item.end]
              for key, item in given.items() if item.source_id in texts}  # fmt: skip
    known = [*given, *cited_evidence(read_body(body))]
    names = {key: [key] for key in known}
    if by_model:  # ids can be worked out, and a page may contain them; labels are known to the prompt alone
        names = {label: [key] for label, key in label_all(known, request).items()}
    marks = DraftMarks({name.lower(): found for name, found in names.items()}, exact=not by_model)
    registry = KnownAddresses.of([source.url for source in request.sources], request.query, quotes.values())
    check_fences(operation.text)
    draft = clean_draft(operation.text, marks, registry, quotes)
    if draft.copied and by_model:
        raise UpdateRefused(PROMPT_IN_REPORT.removeprefix("markdown: "))
    if draft.unresolved:
        raise UpdateRefused("text: a citation that names no passage of the notes; copy the markers as they are")
    if draft.foreign_urls and by_model:
        raise UpdateRefused("text: an address that is no source's; write no addresses, citations become links")
    return operation.model_copy(update={"text": write(draft.blocks).text.strip("\n") if draft.blocks else ""})
