"""The audit: a report is checked again, offline, from its JSON and the stored documents alone.

What it reads is foreign: a file may come from anybody, so it is bounded where it is opened, and texts are compared in a
process that can be killed.
"""

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Final

from activities.reporting.addresses import KnownAddresses, find_addresses
from activities.reporting.citations import ReportMarks
from activities.reporting.claims import (
    CitedWords,
    FoundClaim,
    Tallied,
    claim_id,
    claim_key,
    count_verdicts,
    find_claims,
    is_word_for_word,
    judge,
)
from activities.reporting.markdown import write
from activities.reporting.page_reading import read_page, squeezed
from activities.reporting.passages import words_around
from activities.reporting.tree import CitationPlace, Run, clean_characters, one_line, parse, sentences
from activities.reporting.words import VERDICT_SIGNS, ReportWords
from activities.roles.claim_checking import find_objection
from contracts.addresses import digest, evidence_id, source_id
from contracts.checking import AskedClaim, CorrectionAction, ShownPassage
from contracts.evidence import CheckMethod, Verdict
from contracts.report import HTML_FILE, MARKDOWN_FILE, Report, ReportClaim, ReportEvidence, ReportSource, read_report
from contracts.request import Verify
from contracts.texts import shorten
from contracts.vocabulary import NodeStatus, Outcome
from providers.errors import ContentCorrupt, ContentMissing
from providers.isolation.pool import KillableCalls, SubprocessPool
from providers.text import KNOWN_LANGUAGES

TextOf = Callable[[str], Awaitable[str]]
BytesOf = Callable[[str], Awaitable[bytes]]

COMPARING_SECONDS: Final = 120.0
"""For the comparison of the largest report, of a thousand sources, on a busy machine."""
DISTRUST: Final = (
    "do not rely on the report: it was changed, or written by something else; take it from the store again: "
    "`research report ID --format json --out report.json`"
)
ARCHIVE: Final = "compare the archive with a backup; `research run` with the same question reads the source again"
TRANSFER: Final = "do not use the bundle: it was changed after it was made; ask the sender for it again"
REMEDIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text_differs", "original_differs", "text_missing", "original_missing"), ARCHIVE),
    **dict.fromkeys(("file_differs", "file_missing", "file_unlisted", "signature_differs"), TRANSFER),
    "signature_missing": "ask the sender for a bundle made with `research export ID --bundle --sign KEYFILE`",
    "markdown_differs": "write the file again: `research report ID --format md --out report.md`",
    "html_differs": "write the file again: `research report ID --format html --out report.html`",
    "report_differs": "the file was changed, or the run went on since: take the report from the store again",
    "report_missing": "write the report again: `research resume ID`",
    "report_damaged": "compare the store with a backup, or ask again: `research resume ID`",
}
"""By kind of difference; any other is one within the report."""


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

    research_id: str = ""
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
        self.problems.append(AuditProblem(kind, identity, message, REMEDIES.get(kind, DISTRUST)))


async def audit(
    document: bytes,
    get_text: TextOf | None,
    get_bytes: BytesOf | None,
    isolated: KillableCalls | SubprocessPool,
    *,
    markdown: str | None = None,
    html: bytes | None = None,
    before: AuditResult | None = None,
) -> AuditResult:
    """Check every source, passage, citation, claim, number and address of a `report.json`.

    `get_text` and `get_bytes` give a stored document by its hash and raise `ContentMissing` or `ContentCorrupt`; None
    where such documents were left out on purpose. `markdown` and `html` are the other forms, if they are there;
    `before` is what was compared so far. Raises `InputUnprocessable` for a report that ends its readers.
    """
    result = before or AuditResult()
    read = await isolated.call(READ, document)
    if not isinstance(read, Report):
        for place, problem in read:
            result.problem("malformed", place, problem)
        return result
    result.research_id = read.research_id
    texts = {}
    for source in read.sources:
        texts[source.id] = await _load("text", source, source.text_hash, get_text, result)
        await _load("original", source, source.content_hash, get_bytes, result)
    _check_forms(read, markdown, html, result)
    page = None if html is None else html.decode("utf-8", "replace")
    checked, unchecked, problems = await isolated.call(COMPARE, read, texts, page, result, seconds=COMPARING_SECONDS)
    return AuditResult(read.research_id, checked, unchecked, [AuditProblem(*problem) for problem in problems])


READ: Final = f"{read_report.__module__}:{read_report.__name__}"
COMPARE: Final = f"{__name__}:compare"


def compare(report: Report, texts: Mapping[str, str | None], page: str | None, result: AuditResult) -> tuple[Any, ...]:
    """Return the fields of the result with every difference between a report, its page and the stored texts."""
    _Comparison(report, texts, result).run(page)
    return result.checked, result.unchecked, [astuple(problem) for problem in result.problems]


async def _load(
    kind: str, source: ReportSource, name: str | None, get: Callable[[str], Awaitable[Any]] | None, result: AuditResult
) -> Any:
    """Load a stored document of a source, if it is what its hash says; anything else is a difference."""
    if name is None or get is None:
        result.skip(f"sources without a stored {kind}" if name is None else f"stored {kind}s that are left out")
        return None
    try:
        found = await get(name)
        result.count(f"stored {kind}s")
    except ContentCorrupt:
        found = ""
    except ContentMissing:
        result.problem(f"{kind}_missing", source.id, f"the stored {kind} is gone")
        return None
    if name == (digest(found) if isinstance(found, str) else _digest_of_bytes(found)):
        return found
    result.problem(f"{kind}_differs", source.id, f"the stored {kind} is not what its hash says")
    return None


def _digest_of_bytes(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _check_forms(report: Report, markdown: str | None, html: bytes | None, result: AuditResult) -> None:
    """Check that the three forms are those that were rendered together."""
    text, forms = digest(report.report.markdown), report.forms
    for noun, kind, expected, found in (
        ("text in report.json", "text_altered", forms.get(MARKDOWN_FILE), text),
        (MARKDOWN_FILE, "markdown_differs", text, None if markdown is None else digest(markdown)),
        (HTML_FILE, "html_differs", forms.get(HTML_FILE), None if html is None else _digest_of_bytes(html)),
    ):
        if expected is None or found is None:
            result.skip(noun)
            continue
        result.count(noun)
        if expected != found:
            result.problem(kind, noun, "it is not what was rendered together with the other forms")


class _Comparison:
    """Compares the parts of a report with one another and with the stored texts."""

    def __init__(self, report: Report, texts: Mapping[str, str | None], result: AuditResult) -> None:
        self._report, self._texts = report, texts
        self._count, self._skip, self._problem = result.count, result.skip, result.problem
        urls = {source.id: source.url for source in report.sources}
        self._registry = KnownAddresses.of(urls.values(), report.query, (item.quote for item in report.evidence))
        self._evidence = {item.id: item for item in report.evidence}
        self._titles = {source.id: source.title for source in report.sources}
        self._stored = {source.id for source in report.sources if source.text_hash}
        self._sources = {citation.number: citation.source_id for citation in report.citations}
        links = {(each.label, urls.get(each.source_id, "")): each.number for each in report.citations if each.label}
        self._marks = ReportMarks(links)
        self._blocks = parse(report.report.markdown, self._marks)
        # Statements are in the text before the list of sources, or before what the report says of itself.
        tops = enumerate(self._blocks)
        last = {block.words: place for place, block in tops if block.kind == "heading" and block.level == 2}
        # A model may have written in another language than that of the question.
        languages = [ReportWords(code) for code in (report.language, *KNOWN_LANGUAGES)]
        self._say = say = next((each for each in languages if each("method") in last), languages[0])
        self._method = self._blocks[last.get(say("method"), len(self._blocks)) :]
        labels = tuple(squeezed([each]) for each in (say.name("outcome", report.outcome), say("not_verified")) if each)
        below = self._blocks[1:2]
        first = squeezed(each.words for each in sentences(below)) if below and below[0].kind == "quote" else ""
        self._noticed = first.startswith(labels)
        # Below the title and the line about the outcome.
        self._body = self._blocks[1 + self._noticed : last.get(say("sources"), last.get(say("method")))]
        self._found = find_claims(self._body, report.language)
        self._by_place: dict[tuple[int, int], FoundClaim] = {}
        written = write(self._blocks)
        if written.text == report.report.markdown:
            self._by_place = {claim.place(written): claim for claim in self._found}
        else:
            result.skip("statements of a text that was written by something else")

    def run(self, page: str | None) -> None:
        """Make every check; `page` is the HTML form."""
        for kind, listed in (
            ("source", self._report.sources), ("evidence", self._report.evidence), ("claim", self._report.claims)
        ):  # fmt: skip
            for identity, count in sorted(Counter(item.id for item in listed).items()):
                if count > 1:  # a second entry would hide the first one
                    self._problem("id_twice", identity, f"two entries of kind {kind} have this id")
        self._check_ids()
        for evidence in self._report.evidence:
            self._check_passage(evidence)
        self._check_citations()
        self._check_listing()
        for claim in self._report.claims:
            self._check_claim(claim)
        self._check_tally()
        self._check_numbers()
        self._check_quotations()
        if self._report.outcome not in ("", Outcome.COMPLETED) and not self._noticed:
            self._problem("notice_missing", "report", "its text does not say at the top that it is not completed")
        if page is not None:
            self._check_page(page)
        for address in dict.fromkeys(self._foreign_addresses()):
            self._problem("address_unknown", address[:200], "no source has this address")

    def _check_ids(self) -> None:
        """Check the ids that follow from what they name."""
        for source in self._report.sources:
            if source.id not in {source_id(url) for url in (source.url, *source.aliases)}:
                self._problem("id_differs", source.id, "the id does not follow from an address of the source")
        for item in self._report.evidence:
            if item.id != evidence_id(item.source_id, item.start, item.end):
                self._problem("id_differs", item.id, "the id does not follow from the place of the passage")

    # --- passages and references -------------------------------------------------------------------------------------
    def _check_passage(self, evidence: ReportEvidence) -> None:
        """Check that a passage is at its place in the stored text of its source, with the words around it."""
        if evidence.source_id not in self._texts:
            self._problem("evidence_without_source", evidence.id, f"the source {evidence.source_id} is not listed")
            return
        if digest(evidence.quote) != evidence.quote_hash:
            self._problem("quote_differs", evidence.id, "the quote is not what its hash says")
        text = self._texts[evidence.source_id]
        if text is None:
            self._skip("passages without their text")
            if evidence.source_id not in self._stored:
                self._problem("evidence_without_text", evidence.id, "its source has no stored text")
            return
        self._count("passages")
        if text[evidence.start : evidence.end] == evidence.quote:
            follows = text.endswith(evidence.prefix, 0, evidence.start)
            if not follows or not text.startswith(evidence.suffix, evidence.end):
                self._problem("context_differs", evidence.id, "the stored text has other words around this place")
        elif (found := text.find(evidence.quote)) >= 0:
            places = f"{evidence.start} to {evidence.end}; the words are at {found} to {found + len(evidence.quote)}"
            self._problem("offset_differs", evidence.id, f"the report says characters {places}")
        else:
            self._problem("quote_differs", evidence.id, "the stored text does not have these words")

    def _check_citations(self) -> None:
        """Check that numbers and sources are one to one, and that sources and passages that are named are listed."""
        numbers = Counter(citation.number for citation in self._report.citations)
        cited = Counter(citation.source_id for citation in self._report.citations)
        for citation in self._report.citations:
            self._count("citations")
            label = f"[{citation.number}]"
            if citation.number < 1 or numbers[citation.number] > 1:
                self._problem("number_twice", label, "a number stands for exactly one source and begins at 1")
            if cited[citation.source_id] > 1:
                self._problem("source_twice", label, f"{citation.source_id} has another number, too")
            if citation.source_id not in self._titles:
                self._problem("citation_without_source", label, f"the source {citation.source_id} is not listed")
        for source in self._report.sources:
            if source.cited != (source.id in cited):
                self._problem("cited_differs", source.id, "the mark `cited` and the list of citations disagree")
        for finding in self._report.findings:
            self._count("findings")
            for identity in finding.evidence_ids:
                if identity not in self._evidence:
                    self._problem("finding_without_evidence", finding.id, f"the passage {identity} is not listed")

    # --- claims ------------------------------------------------------------------------------------------------------
    def _check_listing(self) -> None:
        """Check that each cited sentence is listed, and that each claim has the id of its words and passages."""
        listed = {(claim.start, claim.end): claim for claim in self._report.claims}
        seen: Counter[str] = Counter()
        for place, found in self._by_place.items():
            claim = listed.get(place)
            if claim is not None:
                key = claim_key(found.words, claim.evidence_ids)
                if claim.id != claim_id(key, seen[key]):
                    self._problem("claim_altered", claim.id, "its words or its passages are not those that were judged")
                seen[key] += 1
                if claim.section != found.section:
                    self._problem("section_differs", claim.id, f"it is below the heading “{found.section}”")
            elif found.numbers:
                message = f"nothing is said of “{shorten(found.words, 80)}”"
                self._problem("claim_unlisted", f"{place[0]}-{place[1]}", message)

    def _check_claim(self, claim: ReportClaim) -> None:
        """Check that a claim is at its place, cites what it names, and has the verdict that follows."""
        self._count("claims")
        if self._report.report.markdown[claim.start : claim.end] != claim.text:
            self._problem("claim_moved", claim.id, "the report has other words at this place")
        if not claim.evidence_ids:
            self._count("claims without a citation")
            if claim.citation_numbers or claim.verdict != Verdict.UNVERIFIED:
                message = f"it has a number, or is called {claim.verdict}, yet it names no passage"
                self._problem("claim_without_evidence", claim.id, message)
            return
        missing = [key for key in claim.evidence_ids if key not in self._evidence]
        for key in missing:
            self._problem("claim_without_evidence", claim.id, f"the passage {key} is not listed")
        found = self._by_place.get((claim.start, claim.end))
        if missing or found is None:
            return
        sources = {self._evidence[key].source_id for key in claim.evidence_ids}
        expected = {number for number, source in self._sources.items() if source in sources}
        if not expected == set(claim.citation_numbers) == set(found.numbers):
            self._problem("claim_numbers_differ", claim.id, "its numbers, its text and its passages disagree")
        signs = [each.sign[:1] for one in found.sentences for each in one.inlines if isinstance(each, CitationPlace)]
        due = claim.verdict != Verdict.SUPPORTED and self._report.verification.mode != Verify.OFF
        if "".join(signs) != (VERDICT_SIGNS.get(claim.verdict, "") if due else ""):
            self._problem("sign_differs", claim.id, "the sign behind the sentence is not that of its verdict")
        items = [self._evidence[key] for key in claim.evidence_ids]
        match claim.method:
            case CheckMethod.MODEL:
                self._check_support(claim, found, items)
            case CheckMethod.NONE:
                self._skip("claims that no comparison of words can check")
                if claim.verdict == Verdict.SUPPORTED:
                    message = "it is called supported, yet nothing was compared"
                    self._problem("verdict_without_method", claim.id, message)
            case _:
                self._check_verdict(claim, found, items)

    def _check_support(self, claim: ReportClaim, found: FoundClaim, items: list[ReportEvidence]) -> None:
        """Check that the rules do not object to what a model called supported: it would not have been believed."""
        self._skip("verdicts of a model, which no rule gives again")
        if claim.verdict != Verdict.SUPPORTED:
            return
        self._count("supported by a model, held against the rules")
        passages = []
        for item in items:  # as the checker was shown it
            before, after = words_around(self._texts.get(item.source_id) or "", item.start, item.end)
            title = self._titles.get(item.source_id, "")
            shown = ShownPassage(evidence_id=item.id, title=title, before=before, quote=item.quote, after=after)
            passages.append(shown)
        asked = AskedClaim(fingerprint=claim.id, text=found.words, passages=passages)
        if objection := find_objection(asked, self._report.language):
            message = f"a model called it supported, and the rules object: {objection[1]}"
            self._problem("verdict_differs", claim.id, message)

    def _check_verdict(self, claim: ReportClaim, found: FoundClaim, items: list[ReportEvidence]) -> None:
        """Judge a claim again: the same rules on the same words must give the verdict that the report states."""
        verbatim = claim.method == CheckMethod.VERBATIM
        self._count("word for word claims" if verbatim else "claims judged by rules")
        cited = [CitedWords(item.quote, item.heading, self._titles.get(item.source_id, "")) for item in items]
        judged = judge(found.words, cited, self._registry, self._report.language, quoted=found.quoted)
        if verbatim and judged.method is not CheckMethod.VERBATIM:
            self._problem("claim_not_the_quote", claim.id, "it is not word for word a passage that it cites")
        elif judged.verdict != claim.verdict:
            message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
            self._problem("verdict_differs", claim.id, message)
        elif judged.reason != claim.reason:
            self._problem("reason_differs", claim.id, f"its words and passages give another reason: {judged.reason}")

    def _check_tally(self) -> None:
        """Check that the figures of the check follow from the claims, and that the outcome follows from them."""
        figures = self._report.verification
        expected = count_verdicts(
            [
                Tallied(each.verdict, each.method, len(each.citation_numbers), each.section)
                for each in self._report.claims
            ],
            sum(each.action is CorrectionAction.REMOVE for each in figures.corrections),
        )
        expected["correction_counts"] = dict(sorted(Counter(each.action for each in figures.corrections).items()))
        self._count("tally of verdicts")
        report, confidences = self._report, Counter(each.confidence for each in self._report.findings)
        derived = [(name, getattr(figures, name), wanted) for name, wanted in expected.items()]
        derived += [
            ("mode", figures.mode, report.effective_request.get("verify", figures.mode)),
            ("citations_count", report.citations_count, len(report.citations)),
            ("queries_failed", report.queries_failed, sum(each.status is NodeStatus.FAILED for each in report.queries)),
            ("confidence_summary", Counter(report.confidence_summary), confidences),
        ]
        for name, found, wanted in derived:
            if found != wanted:
                self._problem("tally_differs", name, "the figure does not follow from what it counts")
        if expected["warning"] and self._report.outcome == Outcome.COMPLETED:
            self._problem("outcome_differs", "outcome", "it is called completed, and its statements are not borne out")

    # --- the text ----------------------------------------------------------------------------------------------------
    def _check_numbers(self) -> None:
        """Check that the text has the numbers of the citations, all of them and no other, and no marker."""
        seen = set()
        for mark in (mark for each in sentences(self._blocks) for mark in each.marks):
            self._count("numbers in the text")
            seen.add(mark.number)
            if mark.number not in self._sources:
                self._problem("number_unknown", f"[{mark.number}]", "no source has this number")
        for number in sorted(self._sources.keys() - seen):
            self._problem("number_unused", f"[{number}]", "the text does not have this number")
        for marker in self._marks.unknown:
            self._problem("marker_left", marker, "a marker was not resolved")

    def _check_page(self, page: str) -> None:
        """Check that the HTML form shows the text, the passages and the verdicts of the report, and no other links."""
        report = self._report
        cited = [self._evidence[key] for claim in report.claims for key in claim.evidence_ids if key in self._evidence]
        titles = [one_line(self._registry.strip(source.title)) for _, source in report.cited_sources()]
        method = squeezed(each.words for each in sentences(self._method[2:]))
        expected = {
            "text": squeezed(each.words for each in sentences(self._body)),
            "passages": {squeezed([clean_characters(item.quote)]) for item in cited},
            "verdicts": {f"claim-{n}": each.verdict for n, each in enumerate(report.claims, start=1)},
            "titles": [squeezed([title]) for title in titles if title],
            "outcome": squeezed([self._say.name("outcome", report.outcome)]),
            "method": method.replace(":", ""),
        }
        shown, links = read_page(page)
        for noun, part in expected.items():
            self._count("parts of the page")
            if shown[noun] != part:
                self._problem("page_differs", noun, "the HTML form shows something else than report.json")
        for link in links:
            if self._registry.link_of(link) != link:
                self._problem("address_unknown", link[:200], "no source has this address")

    def _check_quotations(self) -> None:
        """Check that a passage of each source which a block quote cites has its words."""
        for found, number in ((claim, number) for claim in self._found if claim.quoted for number in claim.numbers):
            self._count("quotations")
            source = self._sources.get(number)
            quotes = [item.quote for item in self._report.evidence if item.source_id == source]
            if not is_word_for_word(found.words, quotes, self._registry, in_part=True):
                message = f"“{shorten(found.words, 80)}”: no passage of its source has these words"
                self._problem("quotation_differs", f"[{number}]", message)

    def _foreign_addresses(self) -> Iterator[str]:
        """Give the addresses that the text names or links to and that no source has."""
        for inline in (inline for sentence in sentences(self._blocks) for inline in sentence.inlines):
            if inline.link is not None:
                self._count("links in the text")
                if self._registry.link_of(inline.link) != inline.link:
                    yield inline.link
            for address in find_addresses(inline.text) if isinstance(inline, Run) else ():
                self._count("addresses in the text")
                if self._registry.text_of(address) != address:
                    yield address
