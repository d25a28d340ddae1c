"""The synthesizer's text as a stored draft whose every marker names a passage."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from activities.reporting.links import Registry, clean_links
from activities.reporting.markdown_layout import clean_characters
from activities.reporting.quotations import Page, unquoted_where_other
from activities.reporting.report_sections import section_texts
from activities.roles.evidence_markers import MARKER, Citable, PageWords, cited_evidence, unify_markers
from activities.roles.grounding import RoleWork
from activities.roles.report_shape import ReportShape, shape_of, without_source_lists
from activities.roles.untrusted import label_all, label_key
from contracts.addresses import digest
from contracts.evidence import ConfidenceSummary, DocumentRef, Evidence, Finding, ReportDraft
from contracts.roles import SynthesizerAnswer, SynthesizerResult, WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, EngineKind, ReportKind
from providers.errors import InvalidOutput

Work = RoleWork[WriteInput, SynthesizerAnswer]

EVIDENCE_NAME: Final = re.compile(r"ev-[0-9a-f]++", re.IGNORECASE)
MOST_OF_SOURCE: Final = 3
"""Passages that a citation of a source as a whole stands for at most."""
MARKDOWN: Final = "text/markdown"


@dataclass(frozen=True)
class CleanReport:
    """A report fit to be stored, and what was taken out of it."""

    markdown: str
    shape: ReportShape
    cited: list[str]
    unresolved: list[str]
    foreign_urls: list[str]
    unquoted: int
    """Block quotes that became plain text, since no source that they cite has their words."""


def clean_report(markdown: str, request: WriteInput, documents: Mapping[str, str] | None = None) -> CleanReport:
    """The report with unified markers, without lists of sources and without addresses that no source has.

    `documents` are the stored texts by hash. Only the evidence of this request can be cited: by the labels of its
    prompt, which no page can know, or by its ids, which can be worked out: one that a page holds counts for nothing.
    """
    texts = {source.id: documents[source.text.hash] for source in request.sources
             if documents and source.text and source.text.hash in documents}  # fmt: skip
    shown = {key for finding in request.findings for key in finding.evidence_ids}
    cited = {item.id: item for item in request.evidence if item.id in shown}
    quotes = (texts[item.source_id][item.start : item.end] for item in cited.values() if item.source_id in texts)
    registry = Registry.of([source.url for source in request.sources], request.query, quotes)
    # The extractive engine escapes every bracket of a page; what is left unescaped is its own.
    exact = request.engine is EngineKind.EXTRACTIVE
    names, of_sources = {key: key for key in cited}, dict[str, list[str]]()
    if not exact:
        of_pages = {name.lower() for stored in texts.values() for name in EVIDENCE_NAME.findall(stored)}
        names = label_all(cited, label_key(request)) | {key: key for key in cited if key not in of_pages}
        of_sources = _passages_by_source(cited.values(), label_key(request))
    text, foreign = clean_links(without_source_lists(_unwrap(clean_characters(markdown))), registry)
    text, unresolved = unify_markers(text, Citable(names, of_sources), exact=exact, pages=PageWords(texts.values()))
    sources = {identity: Page(stored, registry) for identity, stored in texts.items()}
    pages = {key: sources[item.source_id] for key, item in cited.items() if item.source_id in sources}
    text, unquoted = unquoted_where_other(text, MARKER, pages)
    text = text.strip() + "\n"
    return CleanReport(text, shape_of(text), cited_evidence(text), unresolved, foreign, unquoted)


def _passages_by_source(cited: Iterable[Evidence], key: str) -> dict[str, list[str]]:
    """The passages of each source by the label of its prompt, which no page can know.

    A writer that names the source means what it was shown of it. Where that is much, it is not known what it means.
    """
    passages: dict[str, list[str]] = {}
    for item in cited:
        passages.setdefault(item.source_id, []).append(item.id)
    labels = label_all(passages, key)
    return {label: passages[source] for label, source in labels.items() if len(passages[source]) <= MOST_OF_SOURCE}


def _unwrap(text: str) -> str:
    """The report without a code fence around all of it that says Markdown, or in which a heading comes first."""
    lines = text.strip().split("\n")
    fence, info = lines[0].rstrip(), ""
    for sign in "`~":
        if fence.startswith(3 * sign):
            bare = fence.lstrip(sign)
            fence, info = fence[: len(fence) - len(bare)], bare.strip().lower()
    inner = "\n".join(lines[1:-1])
    if len(lines) < 2 or not fence.startswith(("```", "~~~")) or lines[-1].strip() != fence:
        return text
    return inner if info in ("markdown", "md") or (not info and inner.lstrip().startswith("#")) else text


def ground_report(work: Work) -> SynthesizerResult:
    """A draft that refers to its text by hash; the text of its sections is put into `work.texts`.

    Raises `InvalidOutput` if nothing is left of it.
    """
    report = clean_report(work.answer.markdown, work.request, work.documents)
    if not report.markdown.strip():
        raise InvalidOutput("markdown: the report is empty")
    by_model = work.account.engine is EngineKind.MODEL
    if by_model and work.request.findings and not report.cited:
        raise InvalidOutput("markdown: the report cites none of the findings; cite each with its [ev-…] marker")
    if report.unresolved:
        work.warnings.append(f"{len(report.unresolved)} markers that name no passage were removed")
    if report.foreign_urls:
        work.warnings.append(f"{len(report.foreign_urls)} addresses outside the source registry were removed")
    if report.unquoted:
        work.warnings.append(f"{report.unquoted} quotations that their source does not have were made plain text")
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
        kind=ReportKind.REPORT if by_model else ReportKind.PASSAGES,
        empty=_says_nothing_found(work, report.cited),
    )
    work.texts.extend(section_texts(report.markdown))
    return SynthesizerResult(draft=draft)


def confidence_summary(findings: Iterable[Finding]) -> ConfidenceSummary:
    """How many findings are well supported: confirmed counts as high, speculation as low."""
    levels = [finding.confidence for finding in findings]
    high, medium = sum(level in TOP_CONFIDENCE for level in levels), levels.count(Confidence.MEDIUM)
    return ConfidenceSummary(high=high, medium=medium, low=len(levels) - high - medium)


def _says_nothing_found(work: Work, cited: list[str]) -> bool:
    """Only the extractive engine decides that findings do not answer; a model that cites nothing just cites nothing."""
    return not cited and (not work.request.findings or work.account.engine is EngineKind.EXTRACTIVE)
