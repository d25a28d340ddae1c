"""What the audit reads of a `report.json`."""

from typing import Literal

from pydantic import Field

from activities.reporting.citation_styles import label_places
from activities.reporting.citations import CitationMark, numbers_in
from activities.reporting.links import Registry
from activities.reporting.markdown_layout import layout
from contracts.base import Contract


class AuditedSource(Contract):
    """A source with the hashes of its text and of its original."""

    id: str
    url: str
    title: str
    cited: bool
    content_hash: str | None
    text_hash: str | None


class AuditedEvidence(Contract):
    """A passage with its place."""

    id: str
    source_id: str
    quote: str = Field(min_length=1)
    quote_hash: str
    heading: str
    prefix: str = Field(max_length=32)
    suffix: str = Field(max_length=32)
    start: int = Field(ge=0)
    end: int = Field(ge=1)


class AuditedClaim(Contract):
    """A statement of the text."""

    id: str
    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    citation_numbers: list[int]
    evidence_ids: list[str]
    verdict: str
    method: str


class AuditedCitation(Contract):
    """A number and its source."""

    number: int
    source_id: str
    label: str = ""
    """As it stands in the text; empty in reports that know numbers alone."""


class AuditedFinding(Contract):
    """A finding and its passages."""

    id: str
    evidence_ids: list[str]


class AuditedText(Contract):
    """The text."""

    markdown: str


class AuditedReport(Contract):
    """What the audit compares."""

    schema_version: Literal[1]
    query: str
    language: str
    report: AuditedText
    sources: list[AuditedSource]
    evidence: list[AuditedEvidence]
    claims: list[AuditedClaim]
    citations: list[AuditedCitation]
    findings: list[AuditedFinding]
    forms: dict[str, str] = {}
    """The hashes of `report.md` and `report.html`; empty in reports of older versions."""


def registry_of(report: AuditedReport) -> Registry:
    """The addresses that the text may name."""
    quotes = (item.quote for item in report.evidence)
    return Registry.of([source.url for source in report.sources], report.query, quotes)


def marks_of(report: AuditedReport) -> list[CitationMark]:
    """The citations of the text with their places."""
    markdown, labels = report.report.markdown, labels_of(report)
    if not labels:
        return [CitationMark(match.start(), match.end(), int(match[1]), ()) for match in numbers_in(markdown)]
    return [
        CitationMark(start, start + len(label), labels[label], ())
        for start, label in label_places(layout(markdown).masked, labels)
    ]


def labels_of(report: AuditedReport) -> dict[str, int]:
    """What stands for each number in the text; empty where the numbers themselves do."""
    labels = {citation.label: citation.number for citation in report.citations if citation.label}
    return {} if all(label == f"[{number}]" for label, number in labels.items()) else labels
