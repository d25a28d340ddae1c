"""What exports read of a `report.json`; every word in it may come from a page or a model."""

import re
from typing import Any, Final

from pydantic import Field, ValidationError

from activities.reporting.markdown_layout import clean_characters
from contracts.base import Contract

NOT_IN_XML: Final = re.compile("[\ufffe\uffff\ufdd0-\ufdef]")
WEB: Final = re.compile(r"https?://[^\s/?#@\\\"<>{}|^`]+(?:[/?#][^\s\\\"<>{}|^`]*)?", re.IGNORECASE)


class ReportUnusable(Exception):
    """A `report.json` has not the form that exports need; the message says where."""


class ExportedSource(Contract):
    """A source."""

    id: str
    url: str
    title: str = ""
    authors: list[str] = []
    publisher: str | None = None
    venue: str | None = None
    doi: str | None = None
    published_at: str | None = None
    retrieved_at: str | None = None
    source_type: str = "web"
    quality: str = ""
    status: str = ""
    provider: str = ""
    content_hash: str | None = None
    text_hash: str | None = None
    cited: bool = False
    query_ids: list[str] = []


class ExportedEvidence(Contract):
    """A passage."""

    id: str
    source_id: str
    quote: str
    quote_hash: str = ""
    heading: str = ""
    start: int = 0
    end: int = 0


class ExportedClaim(Contract):
    """A statement of the text."""

    id: str
    text: str
    citation_numbers: list[int] = []
    evidence_ids: list[str] = []
    verdict: str = ""
    method: str = ""
    reason: str = ""


class ExportedCitation(Contract):
    """A number and its source."""

    number: int
    source_id: str


class ExportedFinding(Contract):
    """A finding."""

    id: str
    statement: str
    confidence: str = ""
    evidence_ids: list[str] = []


class ExportedQuery(Contract):
    """A search."""

    id: str
    text: str = ""
    status: str = ""
    provider: str | None = None
    result_count: int | None = None


class ExportedDecision(Contract):
    """An entry of the log of decisions."""

    seq: int
    agent: str = ""
    action: str = ""
    phase: str | None = None
    timestamp: str = ""


class ExportedText(Contract):
    """The text."""

    markdown: str


class ExportedReport(Contract):
    """The parts of a `report.json`; what is missing in older ones is empty."""

    research_id: str = Field(max_length=200)
    product_version: str = ""
    query: str = ""
    language: str = "en"
    strategy: str = ""
    outcome: str = ""
    started_at: str = ""
    ended_at: str = ""
    report: ExportedText
    forms: dict[str, str] = {}
    sources: list[ExportedSource] = []
    evidence: list[ExportedEvidence] = []
    claims: list[ExportedClaim] = []
    citations: list[ExportedCitation] = []
    findings: list[ExportedFinding] = []
    queries: list[ExportedQuery] = []
    decisions: list[ExportedDecision] = []
    engine_by_role: dict[str, str] = {}
    models: list[str] = []
    usage: dict[str, Any] = {}

    def numbered(self) -> list[tuple[int, ExportedSource]]:
        """The cited sources with their numbers, in order."""
        known = {source.id: source for source in self.sources}
        ordered = sorted(self.citations, key=lambda citation: citation.number)
        return [(item.number, known[item.source_id]) for item in ordered if item.source_id in known]


def read_report(document: dict[str, Any]) -> ExportedReport:
    """The report of a parsed `report.json`. Raises `ReportUnusable`."""
    try:
        return ExportedReport.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ReportUnusable(f"the report.json cannot be exported: {place}: {first['msg']}") from None


def safe_text(text: str) -> str:
    """The text without characters that no document may hold: controls, invisible and bidirectional ones, surrogates."""
    return NOT_IN_XML.sub("", clean_characters(text))


def safe_line(text: str | None) -> str:
    """The same on one line."""
    return " ".join(safe_text(text or "").split())


def web_address(url: str) -> str | None:
    """The address if a document may link to it: http or https, without a user name, spaces or braces."""
    return url if WEB.fullmatch(url) and url == safe_line(url) else None
