"""The synthesizer's text as a stored draft whose every marker names a passage."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.citations import DraftMarks
from activities.reporting.drafts import MARKDOWN, CleanDraft, clean_draft, describe_draft
from activities.roles.grounding import RoleWork
from activities.roles.untrusted import label_all
from contracts.addresses import digest
from contracts.evidence import ConfidenceSummary, DocumentRef, Finding, ReportDraft
from contracts.roles import SynthesizerAnswer, SynthesizerResult, WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, EngineKind, ReportKind
from providers.errors import InvalidOutput

Work = RoleWork[WriteInput, SynthesizerAnswer]

EVIDENCE_NAME: Final = re.compile(r"ev-[0-9a-f]++", re.IGNORECASE)
PROMPT_IN_REPORT: Final = (
    "markdown: the text has names or tags of the prompt (src-…, ev-…, </…>): write none into sentences; only the "
    "markers of passages belong there, each in square brackets behind its statement"
)
MOST_OF_SOURCE: Final = 3
"""Most passages that a citation of a source as a whole is replaced by."""


def clean_report(markdown: str, request: WriteInput, documents: Mapping[str, str]) -> CleanDraft:
    """Make a draft of a report: its citations name passages, and it has no list of sources and no foreign address.

    `documents` are the stored texts by hash. Only the evidence of this request can be cited: by the labels of its
    prompt, which no page can know, or by its ids, which can be worked out: one that a page contains is ignored.
    """
    texts = {source.id: documents[source.text.hash] for source in request.sources
             if source.text and source.text.hash in documents}  # fmt: skip
    shown = {key for finding in request.findings for key in finding.evidence_ids}
    cited = {item.id: item for item in request.evidence if item.id in shown}
    quotes = {
        key: texts[item.source_id][item.start : item.end] for key, item in cited.items() if item.source_id in texts
    }
    registry = KnownAddresses.of([source.url for source in request.sources], request.query, quotes.values())
    # The extractive engine escapes every bracket of a page; what is left unescaped is its own.
    exact = request.engine is EngineKind.EXTRACTIVE
    names = {key: [key] for key in cited}
    if not exact:
        of_pages = {name.lower() for stored in texts.values() for name in EVIDENCE_NAME.findall(stored)}
        names = {key: [key] for key in cited if key not in of_pages}
        names |= {label: [key] for label, key in label_all(cited, request).items()}
        # A writer that names a source means the passages of it that it was shown; of many the meaning is unclear.
        for label, source in label_all((item.source_id for item in cited.values()), request).items():
            passages = [item.id for item in cited.values() if item.source_id == source]
            names |= {label: passages} if len(passages) <= MOST_OF_SOURCE else {}
    marks = DraftMarks({name.lower(): found for name, found in names.items()}, exact=exact)
    return clean_draft(markdown, marks, registry, quotes)


def ground_report(work: Work) -> SynthesizerResult:
    """A draft that refers to its text by hash; the text is put into `work.texts`.

    Raises `InvalidOutput` if it is empty.
    """
    report = clean_report(work.answer.markdown, work.request, work.documents)
    by_model = work.engine is EngineKind.MODEL
    if by_model and report.copied and work.request.repair is None:
        raise InvalidOutput(PROMPT_IN_REPORT)
    if not report.blocks:
        raise InvalidOutput("markdown: the report is empty")
    base = ReportDraft(
        document=DocumentRef(hash=digest(work.answer.markdown), media_type=MARKDOWN),  # until its text is stored
        unresolved_markers=report.unresolved,
        foreign_urls=report.foreign_urls,
        confidence=confidence_summary(work.request.findings),
        iteration=work.request.iteration,
        kind=ReportKind.REPORT if by_model else ReportKind.PASSAGES,
    )
    draft, text = describe_draft(base, report.blocks)
    if by_model and work.request.findings and not draft.evidence_ids:
        raise InvalidOutput("markdown: the report cites none of the findings; cite each with its [ev-…] marker")
    if report.unresolved:
        work.warnings.append(f"markers that name no passage were removed: {len(report.unresolved)}")
    if report.foreign_urls:
        work.warnings.append(f"addresses outside the source registry were removed: {len(report.foreign_urls)}")
    if report.unquoted:
        work.warnings.append(f"quotations that their passages do not have: {report.unquoted} made plain text")
    work.texts.append(text)
    # A model that cites none of its findings does not decide that there are none.
    empty = not draft.evidence_ids and (not work.request.findings or not by_model)
    return SynthesizerResult(draft=draft.model_copy(update={"empty": empty}))


def confidence_summary(findings: Iterable[Finding]) -> ConfidenceSummary:
    """Count findings by support: confirmed counts as high, speculation as low."""
    levels = [finding.confidence for finding in findings]
    high, medium = sum(level in TOP_CONFIDENCE for level in levels), levels.count(Confidence.MEDIUM)
    return ConfidenceSummary(high=high, medium=medium, low=len(levels) - high - medium)
