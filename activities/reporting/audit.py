"""The audit: check a report again, offline, from its JSON and the stored documents alone."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from activities.reporting.citations import CitationMark, numbers_in
from activities.reporting.claims import NO_METHOD, VERBATIM, CitedWords, judge
from activities.reporting.links import Registry, addresses_in_markdown, is_registered, link_targets
from activities.reporting.markdown_layout import layout
from activities.reporting.quotations import Page, Stretch, quotations, words_of
from activities.roles.evidence_markers import OWN_FORM
from contracts.base import Contract
from contracts.identity import digest
from contracts.request import Verify
from providers.errors import ContentCorrupt, ContentMissing
from providers.interfaces import IsolatedCalls
from providers.verification.rules_checker import Verdict

TextOf = Callable[[str], Awaitable[str]]
BytesOf = Callable[[str], Awaitable[bytes]]

COMPARED: Final = f"{__name__}:compare_plainly"
COMPARING_SECONDS: Final = 120.0
SHOWN = 80
"""Characters of a quotation that a problem names it by."""


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


@dataclass(frozen=True)
class AuditProblem:
    """One difference between the report and what it rests on."""

    kind: str
    id: str
    message: str


@dataclass
class AuditResult:
    """What was compared, what could not be, and every difference found."""

    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, int] = field(default_factory=dict)
    problems: list[AuditProblem] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that was compared agreed."""
        return not self.problems

    def count(self, what: str) -> None:
        """One more item compared."""
        self.checked[what] = self.checked.get(what, 0) + 1

    def skip(self, what: str) -> None:
        """One more item that could not be compared."""
        self.unchecked[what] = self.unchecked.get(what, 0) + 1

    def problem(self, kind: str, identity: str, message: str) -> None:
        """One more difference."""
        self.problems.append(AuditProblem(kind, identity, message))


async def audit(
    report: Mapping[str, Any],
    get_text: TextOf,
    get_bytes: BytesOf,
    *,
    markdown: str | None = None,
    isolated: IsolatedCalls | None = None,
) -> AuditResult:
    """Check every source, passage, citation, claim, number and address of a `report.json`.

    `get_text` and `get_bytes` give a stored document by its hash and raise `ContentMissing` or `ContentCorrupt`.
    `markdown` is the `report.md` to compare with, if there is one. With `isolated` the texts are looked through in a
    process that can be killed; then `InputUnprocessable` is raised for a report that ends its readers.
    """
    result = AuditResult()
    try:
        audited = AuditedReport.model_validate(report)
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False):
            result.problem("malformed", ".".join(str(part) for part in item["loc"]), item["msg"])
        return result
    texts = {}
    for source in audited.sources:
        texts[source.id] = await _stored_text(source, get_text, result)
        await _raw_bytes(source, get_bytes, result)
    if isolated is None:
        return compare(audited, texts, markdown, result)
    checked, unchecked, problems = await isolated.call(
        COMPARED, audited, texts, markdown, result, seconds=COMPARING_SECONDS
    )
    return AuditResult(checked, unchecked, [AuditProblem(*problem) for problem in problems])


def compare_plainly(
    audited: AuditedReport, texts: Mapping[str, str | None], markdown: str | None, result: AuditResult
) -> tuple[dict[str, int], dict[str, int], list[tuple[str, str, str]]]:
    """`compare` for a child process: the fields of its result."""
    found = compare(audited, texts, markdown, result)
    return found.checked, found.unchecked, [(item.kind, item.id, item.message) for item in found.problems]


def compare(
    audited: AuditedReport, texts: Mapping[str, str | None], markdown: str | None, result: AuditResult
) -> AuditResult:
    """The result with every difference between the report and the stored texts, by the id of their source."""
    for evidence in audited.evidence:
        _check_evidence(evidence, texts, result)
    _check_identities(audited, result)
    _check_citations(audited, result)
    _check_claims(audited, result)
    _check_findings(audited, result)
    _check_numbers(audited, result)
    _check_quotations(audited, texts, result)
    _check_addresses(audited, result)
    _check_markdown(audited, markdown, result)
    return result


async def _stored_text(source: AuditedSource, get_text: TextOf, result: AuditResult) -> str | None:
    if source.text_hash is None:
        result.skip("sources without a stored text")
        return None
    try:
        text = await get_text(source.text_hash)
    except ContentCorrupt:
        result.problem("text_differs", source.id, "the stored text is not what its hash says")
    except ContentMissing:
        result.problem("text_missing", source.id, "the stored text is gone")
    else:
        result.count("stored texts")
        if digest(text) == source.text_hash:
            return text
        result.problem("text_differs", source.id, "the stored text is not what its hash says")
    return None


async def _raw_bytes(source: AuditedSource, get_bytes: BytesOf, result: AuditResult) -> None:
    if source.content_hash is None:
        result.skip("sources without a stored original")
        return
    try:
        data = await get_bytes(source.content_hash)
    except ContentCorrupt:
        result.problem("original_differs", source.id, "the stored original is not what its hash says")
    except ContentMissing:
        result.problem("original_missing", source.id, "the stored original is gone")
    else:
        result.count("stored originals")
        if "sha256:" + hashlib.sha256(data).hexdigest() != source.content_hash:
            result.problem("original_differs", source.id, "the stored original is not what its hash says")


def _check_evidence(evidence: AuditedEvidence, texts: Mapping[str, str | None], result: AuditResult) -> None:
    if evidence.source_id not in texts:
        result.problem("evidence_without_source", evidence.id, f"the source {evidence.source_id} is not listed")
        return
    if digest(evidence.quote) != evidence.quote_hash:
        result.problem("quote_differs", evidence.id, "the quote is not what its hash says")
    text = texts[evidence.source_id]
    if text is None:
        result.skip("passages without their text")
        if not any(problem.id == evidence.source_id for problem in result.problems):
            result.problem("evidence_without_text", evidence.id, "its source has no stored text")
        return
    result.count("passages")
    before, after = text[: evidence.start], text[evidence.end :]
    if text[evidence.start : evidence.end] != evidence.quote:
        result.problem("quote_differs", evidence.id, "the stored text has other words at this place")
    elif not before.endswith(evidence.prefix) or not after.startswith(evidence.suffix):
        result.problem("context_differs", evidence.id, "the stored text has other words around this place")


def _check_identities(report: AuditedReport, result: AuditResult) -> None:
    """Ids of one kind are distinct: a second entry would hide the first one."""
    for kind, listed in (("source", report.sources), ("evidence", report.evidence), ("claim", report.claims)):
        counts = Counter(item.id for item in listed)
        for identity in sorted(one for one, count in counts.items() if count > 1):
            result.problem("id_twice", identity, f"two entries of kind {kind} have this id")


def _check_citations(report: AuditedReport, result: AuditResult) -> None:
    known = {source.id for source in report.sources}
    numbers: dict[int, str] = {}
    sources: dict[str, int] = {}
    for citation in report.citations:
        result.count("citations")
        label = f"[{citation.number}]"
        if citation.number < 1 or citation.number in numbers:
            result.problem("number_twice", label, "a number stands for exactly one source and begins at 1")
        if citation.source_id in sources:
            result.problem("source_twice", label, f"{citation.source_id} has another number already")
        if citation.source_id not in known:
            result.problem("citation_without_source", label, f"the source {citation.source_id} is not listed")
        numbers[citation.number] = citation.source_id
        sources[citation.source_id] = citation.number
    for source in report.sources:
        if source.cited != (source.id in sources):
            result.problem("cited_differs", source.id, "the mark `cited` and the list of citations disagree")


def _check_claims(report: AuditedReport, result: AuditResult) -> None:
    evidence = {item.id: item for item in report.evidence}
    numbers = {citation.source_id: citation.number for citation in report.citations}
    titles = {source.id: source.title for source in report.sources}
    registry = _registry(report)
    written_numbers = _marks(report)
    places = [mark.start for mark in written_numbers]
    for claim in report.claims:
        result.count("claims")
        if report.report.markdown[claim.start : claim.end] != claim.text:
            result.problem("claim_moved", claim.id, "the report has other words at this place")
        missing = [identity for identity in claim.evidence_ids if identity not in evidence]
        for identity in missing:
            result.problem("claim_without_evidence", claim.id, f"the passage {identity} is not listed")
        if missing or not claim.evidence_ids:
            if not claim.evidence_ids:
                result.problem("claim_without_evidence", claim.id, "it names no passage")
            continue
        expected = {numbers.get(evidence[identity].source_id) for identity in claim.evidence_ids}
        own = written_numbers[bisect_left(places, claim.start) : bisect_left(places, claim.end)]
        written = {mark.number for mark in own}
        if not expected == set(claim.citation_numbers) == written:
            result.problem("claim_numbers_differ", claim.id, "its numbers, its text and its passages disagree")
        words = words_of(report.report.markdown, Stretch(claim.start, claim.end, own))
        cited = [evidence[identity] for identity in claim.evidence_ids]
        compared = [CitedWords(item.quote, item.heading, titles.get(item.source_id, "")) for item in cited]
        _check_verdict(claim, words, compared, registry, report.language, result)


def _check_verdict(
    claim: AuditedClaim,
    words: str,
    cited: list[CitedWords],
    registry: Registry,
    language: str,
    result: AuditResult,
) -> None:
    """Judge the claim again: the same rules on the same words must give the verdict that the report states."""
    if claim.method == NO_METHOD:
        result.skip("claims that no comparison of words can check")
        if claim.verdict == Verdict.SUPPORTED:
            result.problem("verdict_without_method", claim.id, "it is called supported, yet nothing was compared")
        return
    result.count("word for word claims" if claim.method == VERBATIM else "claims judged by rules")
    judged = judge(words, cited, registry, language, quoted=False, verify=Verify.LIGHT)
    if claim.method == VERBATIM and judged.method != VERBATIM:
        result.problem("claim_not_the_quote", claim.id, "it is not word for word a passage that it cites")
    elif judged.verdict != claim.verdict:
        message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
        result.problem("verdict_differs", claim.id, message)


def _check_findings(report: AuditedReport, result: AuditResult) -> None:
    known = {item.id for item in report.evidence}
    for finding in report.findings:
        result.count("findings")
        for identity in finding.evidence_ids:
            if identity not in known:
                result.problem("finding_without_evidence", finding.id, f"the passage {identity} is not listed")


def _marks(report: AuditedReport) -> list[CitationMark]:
    """The numbers of the text with their places."""
    return [CitationMark(match.start(), match.end(), int(match[1]), ()) for match in numbers_in(report.report.markdown)]


def _check_numbers(report: AuditedReport, result: AuditResult) -> None:
    known = {citation.number for citation in report.citations}
    seen = set()
    for mark in _marks(report):
        result.count("numbers in the text")
        seen.add(mark.number)
        if mark.number not in known:
            result.problem("number_unknown", f"[{mark.number}]", "no source has this number")
    for number in sorted(known - seen):
        result.problem("number_unused", f"[{number}]", "the text does not have this number")
    for match in OWN_FORM.finditer(layout(report.report.markdown).masked):
        if match["items"] and not match["items"].isdigit():
            result.problem("marker_left", match[0], "a marker was not resolved")


def _check_quotations(report: AuditedReport, texts: Mapping[str, str | None], result: AuditResult) -> None:
    """What a block quote cites must hold its words: each passage of it, in every source that it names."""
    markdown, registry = report.report.markdown, _registry(report)
    pages = {}
    for citation in report.citations:
        text = texts.get(citation.source_id)
        if text is not None:
            pages[citation.number] = Page(text, registry)
    for _, found in quotations(markdown, _marks(report)):
        for stretch in found:
            words = words_of(markdown, stretch)
            for number in sorted({mark.number for mark in stretch.marks}):
                if number not in pages:
                    result.skip("quotations without the text of their source")
                    continue
                result.count("quotations")
                if not pages[number].has(words):
                    line = markdown.count("\n", 0, stretch.start) + 1
                    message = (
                        f"line {line}, “{' '.join(words.split())[:SHOWN]}”: these words do not stand in its source"
                    )
                    result.problem("quotation_differs", f"[{number}]", message)


def _foreign(report: AuditedReport, result: AuditResult) -> Iterator[str]:
    registry = _registry(report)
    for address in addresses_in_markdown(report.report.markdown):
        result.count("addresses in the text")
        if not registry.names(address):
            yield address
    for target in link_targets(report.report.markdown):
        result.count("links in the text")
        if not is_registered(target, registry):
            yield target


def _check_addresses(report: AuditedReport, result: AuditResult) -> None:
    for address in dict.fromkeys(_foreign(report, result)):
        result.problem("address_unknown", address[:200], "no source has this address")


def _check_markdown(report: AuditedReport, markdown: str | None, result: AuditResult) -> None:
    if markdown is None:
        result.skip("report.md")
        return
    result.count("report.md")
    if markdown != report.report.markdown:
        result.problem("markdown_differs", "report.md", "it differs from the text in report.json")


def _registry(report: AuditedReport) -> Registry:
    quotes = (item.quote for item in report.evidence)
    return Registry.of([source.url for source in report.sources], report.query, quotes)
