"""The synthesizer's text as a stored draft whose every marker names a passage (S0-070 to S0-074, X-7)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from activities.finishing import Draft
from activities.markers import Citable, cited_evidence, unified_markers
from activities.report_shape import ReportShape, shape_of, without_source_lists
from activities.reporting.addresses import Registry, clean_links
from activities.reporting.characters import clean_characters
from contracts.documents import DocumentRef
from contracts.evidence import Finding
from contracts.identity import digest
from contracts.report import ConfidenceSummary, ReportDraft
from contracts.roles import ReportTextDraft, WriteInput, WriteOutput
from contracts.vocabulary import Confidence, EngineKind
from providers.errors import InvalidOutput

Work = Draft[WriteInput, ReportTextDraft]

WRAPPED: Final = re.compile(
    r"\A\s*(`{3,}|~{3,})[ \t]*(?:(?:markdown|md)[ \t]*\n|\n(?=\s*#{1,6}[ \t]))(.*)\n\1\s*\Z", re.DOTALL | re.IGNORECASE
)
"""The whole report in a code fence: said to be Markdown, or beginning with a heading."""
MARKDOWN: Final = "text/markdown"
HIGH: Final = (Confidence.CONFIRMED, Confidence.HIGH)


@dataclass(frozen=True)
class CleanReport:
    """A report fit to be stored, and what was taken out of it."""

    markdown: str
    shape: ReportShape
    cited: list[str]
    unresolved: list[str]
    foreign_urls: list[str]


def clean_report(markdown: str, request: WriteInput) -> CleanReport:
    """The report with unified markers, without lists of sources and without addresses that no source has."""
    text = clean_characters(markdown)
    wrapped = WRAPPED.match(text)
    text = without_source_lists(wrapped[2] if wrapped else text)
    citable = Citable(request.findings, {item.id: item for item in request.evidence})
    # The extractive engine escapes every bracket of a page; what is left unescaped is its own.
    literal = request.engine is EngineKind.EXTRACTIVE
    text, unresolved = unified_markers(text, citable, escapes_are_literal=literal)
    registry = Registry.of([source.url for source in request.sources], request.query)
    text, foreign = clean_links(text, registry)
    text = text.strip() + "\n"
    return CleanReport(text, shape_of(text), cited_evidence(text), unresolved, foreign)


def finish_report(work: Work) -> tuple[WriteOutput, str]:
    """The output, which names its document by what is in it, and the cleaned text that is to be stored as that.

    Raises `InvalidOutput` if nothing is left of it.
    """
    report = clean_report(work.draft.markdown, work.request)
    if not report.markdown.strip():
        raise InvalidOutput("markdown: the report is empty")
    by_model = work.account.engine is EngineKind.MODEL
    if by_model and work.request.findings and not report.cited:
        raise InvalidOutput("markdown: the report cites none of the findings; cite each with its [ev-…] marker")
    if report.unresolved:
        work.warnings.append(f"{len(report.unresolved)} markers that name no passage were removed")
    if report.foreign_urls:
        work.warnings.append(f"{len(report.foreign_urls)} addresses outside the source registry were removed")
    draft = ReportDraft(
        document=DocumentRef(hash=digest(report.markdown), media_type=MARKDOWN, size=len(report.markdown)),
        title=report.shape.title,
        summary=report.shape.summary,
        sections=report.shape.sections,
        word_count=report.shape.word_count,
        characters=len(report.markdown.strip()),
        has_headings="##" in report.markdown,
        evidence_ids=report.cited,
        unresolved_markers=report.unresolved,
        foreign_urls=report.foreign_urls,
        confidence=confidence_summary(work.request.findings),
        iteration=work.request.iteration,
        empty=_says_nothing_found(work, report.cited),
    )
    return WriteOutput(draft=draft, account=work.accounted()), report.markdown


def confidence_summary(findings: Iterable[Finding]) -> ConfidenceSummary:
    """How many findings are well supported: confirmed counts as high, speculation as low."""
    levels = [finding.confidence for finding in findings]
    high, medium = sum(level in HIGH for level in levels), levels.count(Confidence.MEDIUM)
    return ConfidenceSummary(high=high, medium=medium, low=len(levels) - high - medium)


def _says_nothing_found(work: Work, cited: list[str]) -> bool:
    """Only the extractive engine decides that findings do not answer; a model that cites nothing just cites nothing."""
    return not cited and (not work.request.findings or work.account.engine is EngineKind.EXTRACTIVE)
