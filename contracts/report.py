"""The model of `report.json`, and the comparison of two reports.

The renderer writes it; the audit, the exports and clients read it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from contracts.addresses import canonical_url, normalized_text
from contracts.agents import AgentRecord
from contracts.base import BoundedList, BoundedMap, Contract
from contracts.checking import Correction, ReviewSummary, VerificationSummary
from contracts.evidence import Artifact, Finding, Gap, QueryRecord, SourceDetails
from contracts.outcome import AgentDecision, Citation, Guidance
from contracts.plan import PlanContent, PlanNode
from contracts.resolved import CorpusSnapshot, SkippedFile
from contracts.sentences import SENTENCE, Text, from_data
from contracts.texts import problem_message
from contracts.tokens import Band, ContentEntry, FidelityTotals, sum_totals
from contracts.vocabulary import ReportKind, SourceStatus

MARKDOWN_FILE: Final = "report.md"
HTML_FILE: Final = "report.html"
JSON_FILE: Final = "report.json"
MAX_REPORT_BYTES: Final = 20_000_000
"""Bytes of a `report.json`; a thousand sources take a quarter of it."""
MAX_TEXT_CHARACTERS: Final = 2_000_000
"""Characters of a report's text; ten thousand words and a thousand sources take a fifth of it."""
MAX_PROBLEMS: Final = 100
VERDICT_SIGNS: Final = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "○",
    "unverified": "–",
}
"""In display order."""
CITATION: Final = re.compile(r" ?\\?\[\d+\\?\](?:\([^()\s]*\))?")
MIN_SIMILARITY: Final = 0.5
"""Lowest similarity of two statements that count as one, rephrased."""
MAX_PAIRED_CLAIMS: Final = 1_000
"""Claims of each report that are compared by similarity."""
MAX_PASSAGES: Final = 20
"""Passages shown per source."""


class ReportText(Contract):
    """The text of `report.md`."""

    markdown: str = Field(max_length=MAX_TEXT_CHARACTERS)
    draft: str = Field(default="", max_length=MAX_TEXT_CHARACTERS)
    """The text with evidence markers, `[ev-…]`, instead of numbers; empty if the run wrote none."""
    sections: BoundedList[str] = []
    """Headings of the second level."""
    word_count: int = 0
    """Of the body, without sources and method."""


class ReportSource(SourceDetails):
    """A source found by the run; its texts are in the content store, by hash."""

    id: str
    """Derived from the first URL it was found under."""
    url: str
    aliases: BoundedList[str] = []
    """Other URLs that led to it."""
    publisher: str | None = None
    quality: str = ""
    quality_reason: Text = ""
    content_hash: str | None = None
    """SHA-256 of the fetched bytes."""
    media_type: str = ""
    """Media type of the fetched bytes; empty if they are not stored."""
    text_hash: str | None = None
    """SHA-256 of the text extracted from them."""
    pages_hash: str | None = None
    """SHA-256 of JSON with the text offsets at which its pages or slides start, and of words that are uncertain."""
    warnings: BoundedList[Text] = []
    """Parts of the original that are missing in the text, or whose reading is uncertain."""
    reader: str = ""
    """Version of the readers that made the text."""
    file_id: str | None = None
    """Id of the original among the artifacts; None if it was not read."""
    notes: BoundedList[str] = []
    """Ids of the findings from it."""
    retrieved_at: str | None = None
    """Time of reading; None if it was not read."""
    status: str = ""
    status_reason: Text = ""

    @property
    def shown_url(self) -> str:
        """The address to show to people: of a private document the one that its server gives, if it gives one."""
        return self.address or self.url

    provider: str = ""
    analyzed: bool = False
    cited: bool = False
    earlier: bool = False
    """Whether an earlier question of the thread had archived this text."""
    query_ids: BoundedList[str] = []


class ReportEvidence(Contract):
    """A verbatim passage: `quote == text[start:end]` of its source's stored text."""

    id: str
    source_id: str
    quote: str = Field(min_length=1)
    quote_hash: str = ""
    prefix: str = Field(default="", max_length=32)
    suffix: str = Field(default="", max_length=32)
    """Prefix and suffix are the surrounding characters of the stored text."""
    heading: str = ""
    start: int = Field(default=0, ge=0)
    end: int = Field(default=1, ge=1)
    page: int | None = None
    uncertain: bool = False
    """Whether two readers of the original differ on words of it."""


class ReportClaim(Contract):
    """A statement of the text: `markdown[start:end] == text`."""

    id: str
    text: str
    start: int = Field(default=0, ge=0)
    end: int = Field(default=0, ge=0)
    section: str = ""
    citation_numbers: BoundedList[int] = []
    evidence_ids: BoundedList[str] = []
    """Empty for an uncited assertion."""
    verdict: str = ""
    method: str = ""
    reason: Text = ""
    lacking: BoundedList[str] = []
    """Of `partial`: the words of the statement for which no passage speaks, as the checker named them."""


class ReportVerification(VerificationSummary):
    """Verification of the claims, with corrections, review and removals."""

    corrections: BoundedList[Correction] = []
    review: ReviewSummary | None = None
    passages_matched: int = 0
    """Passages found word for word in the stored texts; unless all match, there is no report."""
    markers_removed: BoundedList[str] = []
    addresses_removed: int = Field(default=0, ge=0, le=100_000)


class ReportFidelity(Contract):
    """Share of the content that models were shown; tokens are estimates."""

    fidelity: float
    """Tokens shown divided by tokens considered, 0 to 1, summed over all calls; dropped items count as 0."""
    item_mean: float
    """Mean of this ratio over the items."""
    lowest: float
    """Lowest fidelity of a single call."""
    band: Band
    considered_share: float | None
    """Characters considered divided by characters stored, over analyzed sources; None if none was analyzed."""
    phases: BoundedMap[FidelityTotals] = {}
    shortened_calls: BoundedList[ContentEntry] = []
    """Calls that shortened or dropped an item, with all their items."""
    dropped_content_ids: BoundedList[str] = []
    content_archive_hashes: BoundedList[str] = []
    """Hashes of the texts that `research archive` can fetch."""
    not_analyzed: int = 0
    """Sources that were read and from which nothing was extracted; a scan may have shown an excerpt of them."""


def run_fidelity(
    phases: Mapping[str, FidelityTotals],
    shortened: Sequence[ContentEntry],
    dropped: Sequence[str],
    not_analyzed: int,
    archived: Sequence[str] = (),
) -> ReportFidelity | None:
    """Return the fidelity of a run; None if no model was shown content that can be shortened."""
    if not phases:
        return None
    total = sum_totals(phases.values())
    items = [item for call in shortened for item in call.items]
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


# --- changes ---------------------------------------------------------------------------------------------------------
class ChangeKind(StrEnum):
    """Change of a claim."""

    NEW = "new"
    GONE = "gone"
    WORDED_ANEW = "worded_anew"
    OTHER_VERDICT = "other_verdict"


class SourceChangeKind(StrEnum):
    """Change of a source."""

    CHANGED = "changed"
    GONE = "gone"
    UNREACHABLE = "unreachable"
    """It could not be read again, so it is unknown whether it changed."""


class ClaimChange(Contract):
    """A claim made by only one of two reports, or differently by both."""

    kind: ChangeKind
    section: str = ""
    before: str = ""
    """Its text in the earlier report, without citations; empty for a new claim."""
    after: str = ""
    verdict_before: str = ""
    verdict_after: str = ""


class SourceChange(Contract):
    """A source of the earlier report whose text has changed or is no longer available."""

    kind: SourceChangeKind
    source_id: str
    url: str = ""
    title: str = ""
    reason: str = ""
    """Reason why it was not read again; empty for a changed source."""
    passages: BoundedList[str] = []
    """Archived passages cited by the earlier report."""


class ReportChanges(Contract):
    """Differences between a report and an earlier one."""

    since: str = ""
    """Completion time of the earlier report."""
    claims: BoundedList[ClaimChange] = []
    sources: BoundedList[SourceChange] = []


class ThreadAnswer(Contract):
    """One question of a thread with the figures of its run."""

    research_id: str = Field(max_length=200)
    query: str = ""
    follows: str = Field(default="", max_length=200)
    """Id of the run that the question follows; empty for the first question."""
    strategy: str = ""
    status: str = ""
    """Outcome of the run, or its state as long as it has none."""
    reason: Text = ""
    """Why there is no answer, or what it lacks; empty for a complete one."""
    started_at: str = ""
    ended_at: str = ""
    cost_usd: float | None = 0.0
    """US dollars; None if a paid call had no known price."""
    sources_offered: int = 0
    """Sources that earlier questions had archived."""
    sources: int = 0
    """Sources read, of which an earlier question had archived `sources_earlier`."""
    sources_earlier: int = 0
    passages_cited: int = 0
    passages_earlier: int = 0
    verdict_counts: BoundedMap[int] = {}
    """Statements by verdict."""
    answered: bool = False
    """Whether there is a report, which a document of the thread has."""


class QuestionThread(Contract):
    """The questions of a thread, oldest first; the first one opened it."""

    answers: list[ThreadAnswer] = Field(min_length=1)
    cost_usd: float | None = 0.0
    """US dollars of all its runs; None if one of them is unknown."""

    @classmethod
    def of(cls, answers: Sequence[ThreadAnswer]) -> "QuestionThread":
        """Return a thread with the sum of its costs."""
        costs = [answer.cost_usd for answer in answers]
        total = None if None in costs else round(sum(cost for cost in costs if cost is not None), 6)
        return cls(answers=list(answers), cost_usd=total)


class Report(Contract):
    """The content of `report.json`: the complete evidence graph, so that any program can check the report."""

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
    """Outcome before the verdicts on the claims."""
    stop_reason: str = ""
    completeness: str = ""
    unanswered: int | None = None
    """Number of parts of the plan that are neither answered nor stated as gaps; None if no model judged that."""
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
    citations: BoundedList[Citation] = []
    citations_count: int = 0
    confidence_summary: BoundedMap[int] = {}
    decisions: BoundedList[AgentDecision] = []
    decisions_dropped: int = 0
    plan: PlanContent = PlanContent()
    queries: BoundedList[PlanNode] = []
    queries_failed: int = 0
    query_ledger: BoundedList[QueryRecord] = []
    """Every query to every provider; `queries` is derived from it."""
    documents_searched: int | None = None
    skipped_files: BoundedList[SkippedFile] = []
    agents: BoundedList[AgentRecord] = []
    calls: BoundedMap[dict[str, int]] = {}
    """Number of calls by caller and called role, including those of all agents."""
    guidance: BoundedList[Guidance] = []
    fallbacks: BoundedMap[int] = {}
    """Number of fallbacks by role, caused by unusable answers."""
    rule_answers: BoundedMap[int] = {}
    """Number of answers without the model by role, in a run with a model."""
    usage: BoundedMap[Any] = {}
    """The total and, if known, the breakdowns `by_role` and `by_phase`, each of which sums to it."""
    fidelity: ReportFidelity | None = None
    """None for a run without a model or without token management."""
    verification: ReportVerification = ReportVerification()
    degraded: BoundedList[Text] = []
    failed_branches: BoundedList[Text] = []
    limitations: BoundedList[Text] = []
    messages: Annotated[dict[str, dict[str, Any]], Field(max_length=50_000)] = {}
    """The sentence and values of each text of this file that is a sentence of the product, by JSON pointer."""
    changes: ReportChanges | None = None
    """Differences from the report before the refresh; None for a run that was not refreshed."""
    answers: BoundedList[ThreadAnswer] = []
    """The questions of a document that a whole thread makes; empty for the report of one run."""

    def cited_sources(self) -> Iterator[tuple[int, ReportSource]]:
        """Yield the cited sources with their numbers, in order."""
        known = {source.id: source for source in self.sources}
        for citation in sorted(self.citations, key=lambda citation: citation.number):
            if citation.source_id in known:
                yield citation.number, known[citation.source_id]


def read_report(data: bytes) -> Report | list[tuple[str, str]]:
    """Parse a `report.json`: return the report, or path and problem of each malformed part; a path may be empty.

    Files are untrusted, and parsing takes many times their size in memory: call it in a process that can be killed.
    """
    try:
        return Report.model_validate_json(data)
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
        return [(".".join(str(part) for part in problem["loc"]), problem_message(problem)) for problem in problems]


# --- sentences of the product ----------------------------------------------------------------------------------------
def take_messages(document: Any, pointer: str = "") -> tuple[Any, dict[str, dict[str, Any]]]:
    """Return some JSON with the English text of each message in it, and the messages' data by JSON pointer."""
    if isinstance(document, dict) and SENTENCE in document:
        return str(from_data(document)), {pointer: document}
    is_list = isinstance(document, list)
    entries: Iterable[tuple[Any, Any]]
    if is_list:
        entries = enumerate(document)
    elif isinstance(document, dict):
        entries = document.items()
    else:
        return document, {}
    messages: dict[str, dict[str, Any]] = {}
    texts: dict[Any, Any] = {}
    for key, value in entries:
        if not isinstance(value, (dict, list)):
            texts[key] = value
            continue
        texts[key], found = take_messages(value, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
        messages |= found
    return list(texts.values()) if is_list else texts, messages


def with_messages(report: Report) -> Report:
    """Return a report whose texts are messages where its `messages` has them. Raises ValueError for malformed data."""
    document = report.model_dump(mode="json")
    for pointer, data in report.messages.items():
        place: Any = document
        *steps, last = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
        try:
            for step in steps:
                place = place[int(step) if isinstance(place, list) else step]
            place[int(last) if isinstance(place, list) else last] = data
        except (LookupError, TypeError):
            continue  # an audit finds a message without its text, since a report rendered again has no such message
    return Report.model_validate(document)


# --- the comparison of two reports, claim by claim -------------------------------------------------------------------
def compare_reports(earlier: Report, later: Report, lost: Mapping[str, str] | None = None) -> ReportChanges:
    """Return the differences; `lost` maps ids of sources that could not be read again to the reason."""
    return ReportChanges(
        since=earlier.ended_at,
        claims=list(_claim_changes(earlier, later)),
        sources=list(_source_changes(earlier, later, lost or {})),
    )


def claim_text(claim: ReportClaim) -> str:
    """Return the text of a claim without citations, quote markers and its verdict sign."""
    text = claim.text
    sign = VERDICT_SIGNS.get(claim.verdict)
    if sign and claim.verdict != "supported":
        text = text.rpartition(f" {sign} ")[0] or text
    lines = (line.removeprefix(">").strip() for line in CITATION.sub("", text).splitlines())
    return " ".join(" ".join(lines).split())


def _claim_changes(earlier: Report, later: Report) -> Iterator[ClaimChange]:
    """Yield the claims that differ: those of the newer report in order, then the removed ones."""
    old = list(earlier.claims)
    new = list(later.claims)
    same = _match_same(old, new)
    unmatched = {index: claim for index, claim in enumerate(old) if index not in same.values()}
    rephrased = _match_rephrased(unmatched, {index: claim for index, claim in enumerate(new) if index not in same})
    for index, claim in enumerate(new):
        if index in rephrased:
            yield _change(ChangeKind.WORDED_ANEW, old[rephrased[index]], claim)
        elif index not in same:
            yield _change(ChangeKind.NEW, None, claim)
        elif old[same[index]].verdict != claim.verdict:
            yield _change(ChangeKind.OTHER_VERDICT, old[same[index]], claim)
    for index, claim in unmatched.items():
        if index not in rephrased.values():
            yield _change(ChangeKind.GONE, claim, None)


def _change(kind: ChangeKind, earlier: ReportClaim | None, later: ReportClaim | None) -> ClaimChange:
    newest = later or earlier
    return ClaimChange(
        kind=kind,
        section=newest.section if newest else "",
        before=claim_text(earlier) if earlier else "",
        after=claim_text(later) if later else "",
        verdict_before=earlier.verdict if earlier else "",
        verdict_after=later.verdict if later else "",
    )


def _match_same(old: Sequence[ReportClaim], new: Sequence[ReportClaim]) -> dict[int, int]:
    """Map the index of each newer claim to that of an earlier one with the same text, each used once."""
    by_text: dict[str, list[int]] = {}
    for index, claim in enumerate(old):
        by_text.setdefault(normalized_text(claim_text(claim)), []).append(index)
    partners = {}
    for index, claim in enumerate(new):
        if indexes := by_text.get(normalized_text(claim_text(claim))):
            # Prefer the same section, because a statement may occur in several.
            partners[index] = max(indexes, key=lambda candidate: old[candidate].section == claim.section)
            indexes.remove(partners[index])
    return partners


def _match_rephrased(old: Mapping[int, ReportClaim], new: Mapping[int, ReportClaim]) -> dict[int, int]:
    """Map the index of each rephrased claim to that of the earlier one, most similar pairs first."""
    earlier, later = (
        [(index, normalized_text(claim_text(claim)).split()) for index, claim in [*claims.items()][:MAX_PAIRED_CLAIMS]]
        for claims in (old, new)
    )
    pairs = [
        (-similarity, index, earlier_index)
        for index, words in later
        for earlier_index, earlier_words in earlier
        if (similarity := _similarity(words, earlier_words)) >= MIN_SIMILARITY
    ]
    chosen: dict[int, int] = {}
    for _, index, earlier_index in sorted(pairs):
        if index not in chosen and earlier_index not in chosen.values():
            chosen[index] = earlier_index
    return chosen


def _similarity(words: list[str], other_words: list[str]) -> float:
    """Return the share of words that two statements have in common, in the same order; 0 if clearly too low."""
    is_low = 2 * len({*words} & {*other_words}) < MIN_SIMILARITY * (len({*words}) + len({*other_words}))
    if is_low:
        return 0.0
    return SequenceMatcher(None, words, other_words, autojunk=False).ratio()


def _source_changes(earlier: Report, later: Report, lost: Mapping[str, str]) -> Iterator[SourceChange]:
    """Yield the sources read for the earlier report that have changed or are no longer available."""
    by_address = {canonical_url(address): one for one in later.sources for address in (*one.aliases, one.url)}
    by_id = {source.id: source for source in later.sources}
    for source in earlier.sources:
        if source.status != SourceStatus.FULL.value:
            continue
        newer = by_id.get(source.id) or by_address.get(canonical_url(source.url))
        reason = lost.get(source.id, "")
        if reason:
            kind = SourceChangeKind.GONE if reason == "not_found" else SourceChangeKind.UNREACHABLE
        elif newer is None or newer.status != SourceStatus.FULL.value:
            kind = SourceChangeKind.GONE
            reason = newer.status_reason if newer else "the newer report does not have it"
        elif newer.text_hash != source.text_hash:
            kind = SourceChangeKind.CHANGED
        else:
            continue
        cited = {key for claim in earlier.claims for key in claim.evidence_ids}
        passages = [item.quote for item in earlier.evidence if item.source_id == source.id and item.id in cited]
        fields = {"source_id": source.id, "url": source.url, "title": source.title}
        yield SourceChange(kind=kind, reason=reason, passages=passages[:MAX_PASSAGES], **fields)


def compare_files(earlier: bytes, later: bytes) -> ReportChanges | int:
    """Compare two `report.json` files; return the index (0 or 1) of the first invalid one. Run it in a subprocess."""
    reports = list[Report]()
    for index, data in enumerate((earlier, later)):
        report = read_report(data)
        if not isinstance(report, Report):
            return index
        reports.append(report)
    return compare_reports(reports[0], reports[1])
