"""The model of `report.json`: written by the renderer, read by the audit, the exports, and clients."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from contracts.agents import AgentRecord
from contracts.base import BoundedList, BoundedMap, Contract
from contracts.checking import Correction, ReviewSummary, VerificationSummary
from contracts.evidence import Artifact, Finding, Gap, QueryRecord, SourceDetails
from contracts.outcome import AgentDecision, Citation, Guidance
from contracts.plan import PlanContent, PlanNode
from contracts.report_changes import ReportChanges, compare_reports
from contracts.resolved import CorpusSnapshot
from contracts.texts import problem_message
from contracts.tokens import Band, ContentEntry, FidelityTotals, total_of
from contracts.vocabulary import ReportKind

MARKDOWN_FILE: Final = "report.md"
HTML_FILE: Final = "report.html"
JSON_FILE: Final = "report.json"
LARGEST_REPORT: Final = 20_000_000
"""Bytes of a `report.json`: one with a thousand sources is a quarter of it."""
LONGEST_TEXT: Final = 2_000_000
"""Characters of the text of a report: ten thousand words and a thousand sources are a fifth of it."""
MOST_PROBLEMS: Final = 100


class ReportText(Contract):
    """The text of `report.md`."""

    markdown: str = Field(max_length=LONGEST_TEXT)
    draft: str = Field(default="", max_length=LONGEST_TEXT)
    """The text with the passages of each citation, `[ev-…]`, in place of numbers; empty where the run wrote none."""
    sections: BoundedList[str] = []
    """Headings of the second level."""
    word_count: int = 0
    """Of the body: without sources and method."""


class ReportSource(SourceDetails):
    """A source that the run found; the texts are in the content store, by their hashes."""

    id: str
    """Follows from the first address that it was found under."""
    url: str
    aliases: BoundedList[str] = []
    """Other addresses that led to it."""
    publisher: str | None = None
    quality: str = ""
    quality_reason: str = ""
    content_hash: str | None = None
    """SHA-256 of the bytes as they were fetched."""
    media_type: str = ""
    """Of these bytes; empty where they are not stored."""
    text_hash: str | None = None
    """SHA-256 of the text that was read from them."""
    pages_hash: str | None = None
    """SHA-256 of a JSON list: the offsets in the text at which its pages or slides begin."""
    file_id: str | None = None
    """Of the original among the artifacts; None where it was not read."""
    notes: BoundedList[str] = []
    """Ids of the findings from it."""
    retrieved_at: str | None = None
    """Time of reading; None where it was not read."""
    status: str = ""
    status_reason: str = ""
    provider: str = ""
    analyzed: bool = False
    cited: bool = False
    query_ids: BoundedList[str] = []


class ReportEvidence(Contract):
    """A verbatim passage: `quote == text[start:end]` of the stored text of its source."""

    id: str
    source_id: str
    quote: str = Field(min_length=1)
    quote_hash: str = ""
    prefix: str = Field(default="", max_length=32)
    suffix: str = Field(default="", max_length=32)
    """Characters of the stored text around it."""
    heading: str = ""
    start: int = Field(default=0, ge=0)
    end: int = Field(default=1, ge=1)
    page: int | None = None


class ReportClaim(Contract):
    """A statement of the text: `markdown[start:end] == text`."""

    id: str
    text: str
    start: int = Field(default=0, ge=0)
    end: int = Field(default=0, ge=0)
    section: str = ""
    citation_numbers: BoundedList[int] = []
    evidence_ids: BoundedList[str] = []
    """Empty for an assertion that cites nothing."""
    verdict: str = ""
    method: str = ""
    reason: str = ""


class ReportCitation(Citation):
    """A number and its source."""

    label: str = ""
    """Text of the link in place of `[number]`; empty for a plain number."""


class ReportFile(Contract):
    """A file of the corpus that could not be used."""

    path: str
    kind: str = ""
    reason: str = ""


class ReportVerification(VerificationSummary):
    """Check of the claims, with corrections, reviews and removals."""

    corrections: BoundedList[Correction] = []
    review: ReviewSummary | None = None
    passages_matched: int = 0
    """Passages that are word for word in the stored texts: all of them, or there is no report."""
    markers_removed: BoundedList[str] = []
    addresses_removed: int = Field(default=0, ge=0, le=100_000)


class ReportFidelity(Contract):
    """What models were shown of the content of their calls; tokens are estimates."""

    fidelity: float
    """Tokens shown divided by tokens considered, 0 to 1: the sums of all calls, dropped items counting as 0."""
    item_mean: float
    """Mean of the same ratio over the items."""
    lowest: float
    """Of a single call."""
    band: Band
    considered_share: float | None
    """Characters considered divided by characters stored, of the sources that were analyzed; None if none was."""
    phases: BoundedMap[FidelityTotals] = {}
    shortened_calls: BoundedList[ContentEntry] = []
    """The calls in which an item was not whole, with all of their items."""
    dropped_content_ids: BoundedList[str] = []
    content_archive_hashes: BoundedList[str] = []
    """Of the texts that `research archive` knows."""
    not_analyzed: int = 0
    """Sources that were read and that no call showed."""


def fidelity_of_run(
    phases: Mapping[str, FidelityTotals],
    shortened: Sequence[ContentEntry],
    dropped: Sequence[str],
    not_analyzed: int,
    archived: Sequence[str] = (),
) -> ReportFidelity | None:
    """Return the fidelity of a run; None where no model was shown content that can be shortened."""
    if not phases:
        return None
    total, items = total_of(phases.values()), [item for call in shortened for item in call.items]
    stored = total.stored_characters
    whole = max(0, total.items - len(items))
    ratios = whole + sum(item.compression_ratio for item in items)
    return ReportFidelity(
        fidelity=round(total.fidelity, 4),
        item_mean=round(ratios / total.items, 4) if total.items else 1.0,
        lowest=round(total.lowest, 4),
        band=Band.of(total.fidelity),
        considered_share=round(total.considered_characters / stored, 4) if stored else None,
        phases=dict(phases),
        shortened_calls=list(shortened),
        dropped_content_ids=list(dropped),
        content_archive_hashes=list(archived),
        not_analyzed=not_analyzed,
    )


class Report(Contract):
    """The content of `report.json`: the whole graph of evidence, so that any program can check the report."""

    schema_version: Literal[1] = 1
    product_version: str = ""
    research_id: str = Field(max_length=200)
    query: str = ""
    effective_request: BoundedMap[Any] = {}
    strategy: str = ""
    engine_by_role: BoundedMap[str] = {}
    models: BoundedList[str] = []
    prompt_versions: BoundedMap[str] = {}
    language: str = "en"
    corpus: CorpusSnapshot | None = None
    kind: ReportKind = ReportKind.REPORT
    outcome: str = ""
    outcome_before_check: str = ""
    """Outcome of the work, before the verdicts on its statements."""
    stop_reason: str = ""
    completeness: str = ""
    iterations: int = 0
    started_at: str | None = None
    ended_at: str = ""
    forms: BoundedMap[str] = {}
    """SHA-256 of `report.md` and `report.html`."""
    report: ReportText
    sources: BoundedList[ReportSource] = []
    artifacts: BoundedList[Artifact] = []
    evidence: BoundedList[ReportEvidence] = []
    findings: BoundedList[Finding] = []
    gaps: BoundedList[Gap] = []
    claims: BoundedList[ReportClaim] = []
    citations: BoundedList[ReportCitation] = []
    citations_count: int = 0
    confidence_summary: BoundedMap[int] = {}
    decisions: BoundedList[AgentDecision] = []
    decisions_dropped: int = 0
    plan: PlanContent = PlanContent()
    queries: BoundedList[PlanNode] = []
    queries_failed: int = 0
    query_ledger: BoundedList[QueryRecord] = []
    """Every query to every provider, from which `queries` follows."""
    documents_searched: int | None = None
    skipped_files: BoundedList[ReportFile] = []
    agents: BoundedList[AgentRecord] = []
    calls: BoundedMap[dict[str, int]] = {}
    """Number of calls of one role by another, by caller and role, those of all agents included."""
    guidance: BoundedList[Guidance] = []
    fallbacks: BoundedMap[int] = {}
    """Number of times that each role fell back because its answers could not be used."""
    usage: BoundedMap[Any] = {}
    """The total; where it is known who used what, `by_role` and `by_phase` besides, each of which sums up to it."""
    fidelity: ReportFidelity | None = None
    """None for a run without a model, or without management of tokens."""
    verification: ReportVerification = ReportVerification()
    degraded: BoundedList[str] = []
    failed_branches: BoundedList[str] = []
    limitations: BoundedList[str] = []
    changes: ReportChanges | None = None
    """Differences from the report before the sources were read again; None for a run that was not refreshed."""

    def cited_sources(self) -> Iterator[tuple[int, ReportSource]]:
        """Give the cited sources with their numbers, in order."""
        known = {source.id: source for source in self.sources}
        for citation in sorted(self.citations, key=lambda each: each.number):
            if citation.source_id in known:
                yield citation.number, known[citation.source_id]


def read_report(data: bytes) -> Report | list[tuple[str, str]]:
    """Read a `report.json`: the report, or place and problem of each malformed part; the place may be empty.

    A file may come from a stranger, and a parser needs many times its size: call it in a process that can be killed.
    """
    try:
        return Report.model_validate_json(data)
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)[:MOST_PROBLEMS]
        return [(".".join(str(part) for part in each["loc"]), problem_message(each)) for each in problems]


def compare_documents(before: bytes, after: bytes) -> ReportChanges | int:
    """Compare two `report.json`, in a process that can be killed; 0 or 1 for the first file that is none."""
    reports = list[Report]()
    for place, data in enumerate((before, after)):
        report = read_report(data)
        if not isinstance(report, Report):
            return place
        reports.append(report)
    return compare_reports(reports[0], reports[1])
