"""The audit: a report is checked again, offline, from its JSON and the stored documents alone.

What it reads is foreign: a file may come from anybody, so it is bounded where it is opened, and texts are compared in a
process that can be killed.
"""

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from activities.reporting.addresses import KnownAddresses, find_addresses
from activities.reporting.citations import ReportMarks
from activities.reporting.claims import CitedWords, FoundClaim, PageWords, claim_id, claim_key, find_claims, judge
from activities.reporting.markdown import write
from activities.reporting.tree import Blocks, Run, parse, sentences
from activities.reporting.words import ReportWords
from activities.roles.claim_checking import objections
from contracts.addresses import digest
from contracts.checking import AskedClaim, ShownPassage
from contracts.evidence import CheckMethod, Verdict
from contracts.report import HTML_FILE, MARKDOWN_FILE, Report, ReportClaim, ReportEvidence, ReportSource
from providers.errors import ContentCorrupt, ContentMissing
from providers.interfaces import IsolatedCalls

TextOf = Callable[[str], Awaitable[str]]
BytesOf = Callable[[str], Awaitable[bytes]]

SHOWN_CHARACTERS: Final = 80
"""Of a statement that a problem is named by."""
WINDOW_CHARACTERS: Final = 100
"""Of the stored text on each side of a passage, as a checker saw it."""
COMPARING_SECONDS: Final = 120.0
"""For the comparison of the largest report, of a thousand sources, on a busy machine."""

ARCHIVE: Final = "compare the archive with a backup; `research run` with the same question reads the source again"
EDITED: Final = "take the report from the store again: `research report ID --format json --out report.json`"
WRONG_REPORT: Final = "do not rely on the report: it was changed, or written by something else; ask for it again"
TRANSFER: Final = "ask the sender for the bundle again: it was changed after it was made"
REMEDIES: Final[dict[str, str]] = {
    "text_differs": ARCHIVE,
    "original_differs": ARCHIVE,
    "text_missing": f"the archive may have been cleaned up: {ARCHIVE}",
    "original_missing": f"the archive may have been cleaned up: {ARCHIVE}",
    "offset_differs": f"the words are right and their place is wrong; {EDITED}",
    "quote_differs": f"take no quote from this source without looking it up: `research sources ID SOURCE`; {EDITED}",
    "context_differs": EDITED,
    "quotation_differs": f"look the words up in the source (`research sources ID NUMBER`); {EDITED}",
    "evidence_without_source": f"the source was taken out of the report; {EDITED}",
    "citation_without_source": f"the source was taken out of the report; {EDITED}",
    "evidence_without_text": f"nothing of this source is archived, so nothing of it can be quoted; {EDITED}",
    "claim_moved": f"the text was changed after its claims were placed; {EDITED}",
    "claim_unlisted": f"read the statement as unverified; {WRONG_REPORT}",
    "claim_altered": f"its verdict was given for other words; {WRONG_REPORT}",
    "claim_without_evidence": f"the statement cites nothing that is listed; {EDITED}",
    "claim_numbers_differ": EDITED,
    "claim_not_the_quote": f"read the statement as a paraphrase; {EDITED}",
    "verdict_differs": f"believe the verdict that is given here; {EDITED}",
    "verdict_without_method": f"read the statement as unverified; {EDITED}",
    "markdown_differs": "write the file again: `research report ID --format md --out report.md`",
    "html_differs": "write the file again: `research report ID --format html --out report.html`",
    "text_altered": f"the text is not the one that was rendered; {EDITED}",
    "report_differs": f"the file was changed, or the run went on since it was written; {EDITED}",
    "report_missing": "write the report again: `research resume ID`",
    "report_damaged": "compare the store with a backup, or ask again: `research resume ID`",
    "malformed": f"the file is no report of this product's version; {EDITED}",
    "file_differs": TRANSFER,
    "file_missing": TRANSFER,
    "file_unlisted": f"do not use the file; {TRANSFER}",
}
"""By kind of difference; a kind that is not named here is a contradiction within the report."""


@dataclass(frozen=True)
class AuditProblem:
    """A difference between the report and what it rests on."""

    kind: str
    id: str
    message: str
    remedy: str = ""


@dataclass
class AuditResult:
    """Everything that was compared, everything that could not be, and every difference."""

    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, int] = field(default_factory=dict)
    problems: list[AuditProblem] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if everything that was compared agreed."""
        return not self.problems

    def count(self, noun: str) -> None:
        """Count an item that was compared."""
        self.checked[noun] = self.checked.get(noun, 0) + 1

    def skip(self, noun: str) -> None:
        """Count an item that could not be compared."""
        self.unchecked[noun] = self.unchecked.get(noun, 0) + 1

    def problem(self, kind: str, identity: str, message: str) -> None:
        """Add a difference."""
        self.problems.append(AuditProblem(kind, identity, message, REMEDIES.get(kind, WRONG_REPORT)))


async def audit(
    report: Mapping[str, Any],
    get_text: TextOf | None,
    get_bytes: BytesOf | None,
    *,
    markdown: str | None = None,
    html: bytes | None = None,
    isolated: IsolatedCalls | None = None,
) -> AuditResult:
    """Check every source, passage, citation, claim, number and address of a `report.json`.

    `get_text` and `get_bytes` give a stored document by its hash and raise `ContentMissing` or `ContentCorrupt`; None
    where such documents were left out on purpose. `markdown` and `html` are the other forms to compare with, if they
    are there. With `isolated` the texts are compared in a process that can be killed; then `InputUnprocessable` is
    raised for a report that ends its readers.
    """
    result = AuditResult()
    try:
        read = Report.model_validate(report)
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False):
            result.problem("malformed", ".".join(str(part) for part in item["loc"]), item["msg"])
        return result
    texts = {}
    for source in read.sources:
        texts[source.id] = await _load_text(source, get_text, result)
        await _check_original(source, get_bytes, result)
    _check_forms(read, markdown, html, result)
    if isolated is None:
        return compare(read, texts, result)
    checked, unchecked, problems = await isolated.call(COMPARE, read, texts, result, seconds=COMPARING_SECONDS)
    return AuditResult(checked, unchecked, [AuditProblem(*problem) for problem in problems])


COMPARE: Final = f"{__name__}:compare_in_subprocess"


def compare_in_subprocess(
    report: Report, texts: Mapping[str, str | None], result: AuditResult
) -> tuple[dict[str, int], dict[str, int], list[tuple[str, str, str, str]]]:
    """Compare in a child process: the fields of the result."""
    found = compare(report, texts, result)
    problems = [(item.kind, item.id, item.message, item.remedy) for item in found.problems]
    return found.checked, found.unchecked, problems


def compare(report: Report, texts: Mapping[str, str | None], result: AuditResult) -> AuditResult:
    """Add every difference between a report and the stored texts, which are by the id of their source."""
    _check_identities(report, result)
    _check_passages(report, texts, result)
    _check_references(report, result)
    _TextCheck(report, texts, result).run()
    return result


# --- the archive -----------------------------------------------------------------------------------------------------
async def _load_text(source: ReportSource, get_text: TextOf | None, result: AuditResult) -> str | None:
    """Load the stored text of a source, if it is what its hash says; anything else is a difference."""
    if source.text_hash is None or get_text is None:
        result.skip("sources without a stored text" if source.text_hash is None else "stored texts that are left out")
        return None
    try:
        text = await get_text(source.text_hash)
    except ContentCorrupt:
        text = None
    except ContentMissing:
        result.problem("text_missing", source.id, "the stored text is gone")
        return None
    else:
        result.count("stored texts")
    if text is None or digest(text) != source.text_hash:
        result.problem("text_differs", source.id, "the stored text is not what its hash says")
        return None
    return text


async def _check_original(source: ReportSource, get_bytes: BytesOf | None, result: AuditResult) -> None:
    """Check the bytes as they were fetched against their hash."""
    if source.content_hash is None or get_bytes is None:
        absent = source.content_hash is None
        result.skip("sources without a stored original" if absent else "stored originals that are left out")
        return
    try:
        data = await get_bytes(source.content_hash)
    except ContentCorrupt:
        data = None
    except ContentMissing:
        result.problem("original_missing", source.id, "the stored original is gone")
        return
    else:
        result.count("stored originals")
    if data is None or "sha256:" + hashlib.sha256(data).hexdigest() != source.content_hash:
        result.problem("original_differs", source.id, "the stored original is not what its hash says")


def _check_forms(report: Report, markdown: str | None, html: bytes | None, result: AuditResult) -> None:
    """Check that the three forms are those that were rendered together."""
    text, page = report.forms.get(MARKDOWN_FILE), report.forms.get(HTML_FILE)
    if text is None:
        result.skip("the text in report.json, whose hash is not in it")
    else:
        result.count("text in report.json")
        if digest(report.report.markdown) != text:
            result.problem("text_altered", "report.markdown", "the text in report.json is not what its hash says")
    if markdown is None:
        result.skip(MARKDOWN_FILE)
    else:
        result.count(MARKDOWN_FILE)
        if markdown != report.report.markdown:
            result.problem("markdown_differs", MARKDOWN_FILE, "it differs from the text in report.json")
    if html is None or page is None:
        result.skip(HTML_FILE)
    else:
        result.count(HTML_FILE)
        if "sha256:" + hashlib.sha256(html).hexdigest() != page:
            result.problem("html_differs", HTML_FILE, "it is not the page that was rendered with report.json")


def _check_passages(report: Report, texts: Mapping[str, str | None], result: AuditResult) -> None:
    """Check that each passage is at its place in the stored text of its source, with the words around it."""
    stored = {source.id for source in report.sources if source.text_hash is not None}
    for evidence in report.evidence:
        if evidence.source_id not in texts:
            result.problem("evidence_without_source", evidence.id, f"the source {evidence.source_id} is not listed")
            continue
        if digest(evidence.quote) != evidence.quote_hash:
            result.problem("quote_differs", evidence.id, "the quote is not what its hash says")
        text = texts[evidence.source_id]
        if text is not None:
            result.count("passages")
            _check_place(evidence, text, result)
        else:
            result.skip("passages without their text")
            if evidence.source_id not in stored:
                result.problem("evidence_without_text", evidence.id, "its source has no stored text")


def _check_place(evidence: ReportEvidence, text: str, result: AuditResult) -> None:
    before, after = text[: evidence.start], text[evidence.end :]
    if text[evidence.start : evidence.end] == evidence.quote:
        if not before.endswith(evidence.prefix) or not after.startswith(evidence.suffix):
            result.problem("context_differs", evidence.id, "the stored text has other words around this place")
        return
    found = text.find(evidence.quote)
    if found < 0:
        result.problem("quote_differs", evidence.id, "the stored text does not have these words")
        return
    places = f"{evidence.start} to {evidence.end}; the words are at {found} to {found + len(evidence.quote)}"
    result.problem("offset_differs", evidence.id, f"the report says characters {places}")


# --- references within the report ------------------------------------------------------------------------------------
def _check_identities(report: Report, result: AuditResult) -> None:
    """Check that ids of one kind are distinct: a second entry would hide the first one."""
    for kind, listed in (("source", report.sources), ("evidence", report.evidence), ("claim", report.claims)):
        for identity, count in sorted(Counter(item.id for item in listed).items()):
            if count > 1:
                result.problem("id_twice", identity, f"two entries of kind {kind} have this id")


def _check_references(report: Report, result: AuditResult) -> None:
    """Check that numbers and sources are one to one, and that sources and passages that are named are listed."""
    known = {source.id for source in report.sources}
    numbers: dict[int, str] = {}
    for citation in report.citations:
        result.count("citations")
        label = f"[{citation.number}]"
        if citation.number < 1 or citation.number in numbers:
            result.problem("number_twice", label, "a number stands for exactly one source and begins at 1")
        if citation.source_id in numbers.values():
            result.problem("source_twice", label, f"{citation.source_id} has another number already")
        if citation.source_id not in known:
            result.problem("citation_without_source", label, f"the source {citation.source_id} is not listed")
        numbers[citation.number] = citation.source_id
    for source in report.sources:
        if source.cited != (source.id in numbers.values()):
            result.problem("cited_differs", source.id, "the mark `cited` and the list of citations disagree")
    passages = {item.id for item in report.evidence}
    for finding in report.findings:
        result.count("findings")
        for identity in finding.evidence_ids:
            if identity not in passages:
                result.problem("finding_without_evidence", finding.id, f"the passage {identity} is not listed")


# --- the text --------------------------------------------------------------------------------------------------------
class _TextCheck:
    """Compares the text of a report with its claims, citations, addresses and stored texts."""

    def __init__(self, report: Report, texts: Mapping[str, str | None], result: AuditResult) -> None:
        self._report, self._texts, self._result = report, texts, result
        urls = {source.id: source.url for source in report.sources}
        self._registry = KnownAddresses.of(urls.values(), report.query, (item.quote for item in report.evidence))
        self._evidence = {item.id: item for item in report.evidence}
        self._titles = {source.id: source.title for source in report.sources}
        self._sources = {citation.number: citation.source_id for citation in report.citations}
        links = {(each.label, urls.get(each.source_id, "")): each.number for each in report.citations if each.label}
        self._marks = ReportMarks(links)
        self._blocks = parse(report.report.markdown, self._marks)
        written = write(self._blocks)
        self._by_place: dict[tuple[int, int], FoundClaim] = {}
        self._found = find_claims(self._body(), report.language)
        if written.text == report.report.markdown:
            self._by_place = {claim.place(written): claim for claim in self._found}
        else:
            result.skip("statements of a text that was written by something else")

    def run(self) -> None:
        """Make every check."""
        self._check_listing()
        for claim in self._report.claims:
            self._check_claim(claim)
        self._check_numbers()
        self._check_quotations()
        self._check_addresses()

    def _body(self) -> Blocks:
        """Return the text before the list of sources, or before what the report says of itself."""
        say = ReportWords(self._report.language)
        for message in ("sources", "method"):
            places = [place for place, block in enumerate(self._blocks)
                      if block.kind == "heading" and block.level == 2 and block.words == say(message)]  # fmt: skip
            if places:
                return self._blocks[: places[-1]]
        return self._blocks

    def _check_listing(self) -> None:
        """Check that each cited sentence is listed, and that each claim has the id of its words and passages."""
        listed = {(claim.start, claim.end): claim for claim in self._report.claims}
        seen: Counter[str] = Counter()
        for place, found in self._by_place.items():
            claim = listed.get(place)
            if claim is not None:
                key = claim_key(found.words, claim.evidence_ids)
                if claim.id != claim_id(key, seen[key]):
                    message = "its words or its passages are not those that were judged"
                    self._result.problem("claim_altered", claim.id, message)
                seen[key] += 1
            elif found.numbers:
                message = f"nothing is said of “{found.words[:SHOWN_CHARACTERS]}”"
                self._result.problem("claim_unlisted", f"{place[0]}-{place[1]}", message)

    def _check_claim(self, claim: ReportClaim) -> None:
        """Check that a claim is at its place, cites what it names, and has the verdict that follows."""
        result = self._result
        result.count("claims")
        if self._report.report.markdown[claim.start : claim.end] != claim.text:
            result.problem("claim_moved", claim.id, "the report has other words at this place")
        missing = [key for key in claim.evidence_ids if key not in self._evidence]
        for key in missing:
            result.problem("claim_without_evidence", claim.id, f"the passage {key} is not listed")
        if not claim.evidence_ids:
            self._check_uncited(claim)
        found = self._by_place.get((claim.start, claim.end))
        if missing or not claim.evidence_ids or found is None:
            return
        sources = {self._evidence[key].source_id for key in claim.evidence_ids}
        expected = {number for number, source in self._sources.items() if source in sources}
        if not expected == set(claim.citation_numbers) == set(found.numbers):
            result.problem("claim_numbers_differ", claim.id, "its numbers, its text and its passages disagree")
        if claim.method == CheckMethod.MODEL:
            self._check_support(claim, found)
        else:
            self._check_verdict(claim, found)

    def _check_uncited(self, claim: ReportClaim) -> None:
        """Check that a claim without a citation says so, and that nothing calls it supported."""
        if claim.citation_numbers:
            self._result.problem("claim_without_evidence", claim.id, "it has a number and names no passage")
        elif claim.verdict != Verdict.UNVERIFIED:
            message = f"it is called {claim.verdict}, yet it names no passage"
            self._result.problem("claim_without_evidence", claim.id, message)
        else:
            self._result.count("claims without a citation")

    def _check_support(self, claim: ReportClaim, found: FoundClaim) -> None:
        """Check that the rules do not object to what a model called supported: it would not have been believed."""
        self._result.skip("verdicts of a model, which no rule gives again")
        if claim.verdict != Verdict.SUPPORTED:
            return
        self._result.count("supported by a model, held against the rules")
        passages = [self._shown(self._evidence[key]) for key in claim.evidence_ids]
        asked = AskedClaim(fingerprint=claim.id, text=found.words, passages=passages)
        if objection := next(objections(asked, self._report.language), None):
            message = f"a model called it supported, and the rules object: {objection}"
            self._result.problem("verdict_differs", claim.id, message)

    def _shown(self, item: ReportEvidence) -> ShownPassage:
        """Return a passage as the checker was shown it."""
        text = self._texts.get(item.source_id) or ""
        before, after = text[max(0, item.start - WINDOW_CHARACTERS) : item.start], text[item.end :][:WINDOW_CHARACTERS]
        title = self._titles.get(item.source_id, "")
        return ShownPassage(evidence_id=item.id, title=title, before=before, quote=item.quote, after=after)

    def _check_verdict(self, claim: ReportClaim, found: FoundClaim) -> None:
        """Judge a claim again: the same rules on the same words must give the verdict that the report states."""
        if claim.method == CheckMethod.NONE:
            self._result.skip("claims that no comparison of words can check")
            if claim.verdict == Verdict.SUPPORTED:
                message = "it is called supported, yet nothing was compared"
                self._result.problem("verdict_without_method", claim.id, message)
            return
        verbatim = claim.method == CheckMethod.VERBATIM
        self._result.count("word for word claims" if verbatim else "claims judged by rules")
        items = [self._evidence[key] for key in claim.evidence_ids]
        cited = [CitedWords(item.quote, item.heading, self._titles.get(item.source_id, "")) for item in items]
        judged = judge(found.words, cited, self._registry, self._report.language)
        if verbatim and judged.method is not CheckMethod.VERBATIM:
            message = "it is not word for word a passage that it cites"
            self._result.problem("claim_not_the_quote", claim.id, message)
        elif judged.verdict != claim.verdict:
            message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
            self._result.problem("verdict_differs", claim.id, message)

    def _check_numbers(self) -> None:
        """Check that the text has the numbers of the citations, all of them and no other, and no marker."""
        seen = set()
        for mark in (mark for each in sentences(self._blocks) for mark in each.marks):
            self._result.count("numbers in the text")
            seen.add(mark.number)
            if mark.number not in self._sources:
                self._result.problem("number_unknown", f"[{mark.number}]", "no source has this number")
        for number in sorted(self._sources.keys() - seen):
            self._result.problem("number_unused", f"[{number}]", "the text does not have this number")
        for marker in self._marks.unknown:
            self._result.problem("marker_left", marker, "a marker was not resolved")

    def _check_quotations(self) -> None:
        """Check that each source which a block quote cites has its words."""
        pages = {
            number: PageWords(text, self._registry)
            for number, source in self._sources.items()
            if (text := self._texts.get(source)) is not None
        }
        for found in (claim for claim in self._found if claim.quoted):
            for number in found.numbers:
                if number not in pages:
                    self._result.skip("quotations without the text of their source")
                    continue
                self._result.count("quotations")
                if not pages[number].has(found.words):
                    message = f"“{found.words[:SHOWN_CHARACTERS]}”: its source does not have these words"
                    self._result.problem("quotation_differs", f"[{number}]", message)

    def _check_addresses(self) -> None:
        """Check that the text names and links no address that no source has."""
        for address in dict.fromkeys(self._foreign_addresses()):
            self._result.problem("address_unknown", address[:200], "no source has this address")

    def _foreign_addresses(self) -> Iterator[str]:
        for sentence in sentences(self._blocks):
            links = [inline.link for inline in sentence.inlines if inline.link is not None]
            texts = [inline.text for inline in sentence.inlines if isinstance(inline, Run)]
            for link in links:
                self._result.count("links in the text")
                if self._registry.link_of(link) != link:
                    yield link
            for address in (address for text in texts for address in find_addresses(text)):
                self._result.count("addresses in the text")
                if self._registry.text_of(address) != address:
                    yield address
