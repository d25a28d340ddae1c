"""The inputs of a report, gathered once for its three forms: text, claims, passages and sources."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, takewhile
from typing import Final

from activities.reporting.claims import Claim, count_verdicts, find_claims, split_off_by
from activities.reporting.references import (
    DraftMarks,
    KnownAddresses,
    addresses_of,
    citation_labels,
    number_citations,
    without_signs,
    without_source_lists,
)
from activities.reporting.report_messages import ReportMessages
from activities.reporting.tree import (
    Block,
    Blocks,
    CitationMark,
    Run,
    Sentence,
    change_sentences,
    clean_characters,
    heading,
    one_line,
    parse,
    parse_plain_text,
    sentences,
    split_sentences,
    tidy,
    write,
)
from contracts.addresses import digest
from contracts.base import Contract
from contracts.checking import Correction, ShownPassage, VerificationSummary
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Finding, Source, Verdict
from contracts.outcome import Citation, Ending
from contracts.report import ReportEvidence, ReportFidelity, ThreadAnswer, run_fidelity
from contracts.request import Verify
from contracts.resolved import ResolvedResearch, SkippedFile
from contracts.sentences import AS_DATA, Message
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.texts import without_hyphens
from contracts.tokens import ContentEntry
from contracts.vocabulary import EngineKind, SourceStatus
from providers.errors import ContentCorrupt, ContentMissing, InvalidCall
from providers.verification.rules import check, without_lead_in

SELECTOR_CHARACTERS: Final = 32
"""Length of prefix and suffix of a text quote selector (Web Annotation)."""
TERM: Final = re.compile(
    r"`[^`\n]{1,120}`(?:[ \t/,|\[\]{}=.*]{0,9}(?:or[ \t])?`[^`\n]{1,120}`)*[ \t\]}]{0,9}(?:\([^()\n]{1,60}\))?"
)
"""A line that a definition may follow: names in code, perhaps with a type: "`work_mem` (`integer`)"."""
MAX_NAME: Final = 60  # characters of a term that is no code
MAX_TERM: Final = 200  # characters of a term, with other names of the same
FENCES: Final = ("```", "~~~")
AFTER_TERM_CHARACTERS: Final = 4_000
"""Between a term and a later paragraph that may still speak of it."""
LISTING_CHARACTERS: Final = 2_000  # shown of a listing above one of its lines
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)
"""Verdicts that are marked in the text, and listed under *Method and limits*."""
LAYOUT_LINE: Final = re.compile(r"(?m)^[ \t]*(?:(?:```|~~~)[\w+-]*[ \t]*|[|: \t]*-[|: \t-]*|\.{4,}[ \t]*)$")
"""A code fence, the rule below a table's header, or the border of a listing."""
BULLET: Final = re.compile(r"(?m)^[ \t]*(?:[-+•>*][ \t]+|#{1,6}[ \t]+)+")
NUMBER: Final = re.compile(r"(?m)^[ \t]*[0-9]{1,3}[.)][ \t]+")
LAYOUT_SIGNS: Final = str.maketrans({"\\": "", "`": "", "*": "", "…": "", "|": " ", "·": " ", "¦": " "})

VERBATIM: Final = Message("reason_word_for_word")
NOT_CHECKED: Final = Message("reason_not_checked")
NOT_VERBATIM: Final = Message("reason_not_the_quote")
CITES_NOTHING: Final = Message("reason_cites_nothing")


# --- the parts of a report -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class QuotedPassage:
    """A verbatim passage: `quote == text[start:end]` of the stored text of its source."""

    evidence: Evidence
    text: str

    @property
    def quote(self) -> str:
        """The text of the passage."""
        return self.text[self.evidence.start : self.evidence.end]

    @property
    def prefix(self) -> str:
        """The characters before it."""
        return self.text[max(0, self.evidence.start - SELECTOR_CHARACTERS) : self.evidence.start]

    @property
    def suffix(self) -> str:
        """The characters after it."""
        return self.text[self.evidence.end : self.evidence.end + SELECTOR_CHARACTERS]


@dataclass(frozen=True)
class CitedSource:
    """A source with its citation and its cited passages in order of first appearance."""

    mark: CitationMark
    source: Source
    passages: list[QuotedPassage]


@dataclass(frozen=True)
class CitedPassage:
    """The parts of a passage that a claim is compared with."""

    quote: str
    heading: str
    title: str
    page: str = ""
    """The text of its source."""


@dataclass(frozen=True)
class ReportInputs:
    """The parts of a report."""

    state: ResearchState
    resolved: ResolvedResearch
    ending: Ending
    product_version: str
    messages: ReportMessages
    """The fixed sentences of this report."""
    title: str
    draft: str
    """The draft that this report is made of, with citations of passages as `[ev-…]`; empty for none."""
    body: Blocks
    """The draft below its title, with citation numbers."""
    claims: list[Claim]
    """Of the text, with their verdicts."""
    checked: VerificationSummary
    """Figures of the verification of the claims."""
    citations: list[Citation]
    """Every citation number of the run."""
    passages: Mapping[str, QuotedPassage]
    cited: list[CitedSource]
    also_read: list[Source]
    """Read in full but not cited."""
    unread: list[Source]
    """Found but not readable or not read."""
    skipped: list[SkippedFile]
    registry: KnownAddresses
    contradictions: list[tuple[Finding, Finding]]
    """Findings of different sources that cannot both be true."""
    corrections: Sequence[Correction]
    """Corrections of claims that did not pass."""
    unresolved: list[str]
    """Citations of the draft that name no passage."""
    foreign_urls: list[str]
    """Addresses that were removed from the draft."""
    fidelity: ReportFidelity | None
    """How much of the content models were shown."""
    answers: Sequence[ThreadAnswer] = ()
    """The questions of a document that a whole thread makes."""

    def show(self, text: str) -> str:
        """Return a line from outside (a title, a reason, a question) in a form that is safe to print."""
        return one_line(self.registry.strip(one_line(text)))


UNPRINTED: Final = {"state": {"people": {"events"}}}
"""Parts of the material that no report has."""


class RenderMaterial(Contract):
    """The material of a report. Equal material gives equal bytes."""

    state: ResearchState
    draft: str | None = None
    """The text with evidence markers; None if the run wrote none."""
    texts: dict[str, str]
    """The stored text of every source that evidence names, by hash."""
    skipped: list[SkippedFile] = []
    """Files of the corpus that could not be used."""
    product_version: str
    verdicts: list[ClaimVerdict] = []
    """Verdicts that cannot be repeated by rules."""
    corrections: list[Correction] = []
    shortened: list[ContentEntry] = []
    """Content that models were shown in part."""
    previous: str | None = None
    """The `report.json` from before a refresh, with which the report is compared."""
    answers: list[ThreadAnswer] = []
    """The questions of a document that a whole thread makes."""

    def to_json(self) -> bytes:
        """Return the material as JSON for the process that renders, without the run's events, which no report has."""
        return self.model_dump_json(exclude_defaults=True, exclude=UNPRINTED, context=AS_DATA).encode()


@dataclass(frozen=True)
class _Written:
    """The draft of a report, without what it must not print."""

    title: str
    """Empty if the draft has none."""
    body: Blocks
    unresolved: list[str]
    """Its citations that name no passage."""
    foreign: list[str]
    """Addresses that were removed."""


def _read_draft(draft: str, passages: Iterable[str], registry: KnownAddresses) -> _Written:
    """Read a draft with evidence markers; `passages` are the ids that it may cite."""
    foreign: list[str] = []
    marks = DraftMarks({key.lower(): [key] for key in passages})
    title, blocks = _split_title(parse(draft, marks, registry.filter(foreign), without_signs))
    return _Written(
        title, without_source_lists(blocks), list(dict.fromkeys(marks.unresolved)), list(dict.fromkeys(foreign))
    )


def gather_inputs(material: RenderMaterial) -> ReportInputs:
    """Number the citations of the draft, judge its claims, and sort the sources.

    Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    state = material.state
    draft = material.draft
    resolved = state.work.resolved
    ending = state.work.ending
    if resolved is None or ending is None:
        raise InvalidCall("the state has no resolved request or does not know how the run ended")
    passages = cut_passages(state.evidence.passages, state.evidence.sources, material.texts)
    quotes = (passage.quote for passage in passages.values())
    registry = KnownAddresses.of(addresses_of(state.evidence.sources.values()), resolved.query, quotes)
    written = _read_draft(draft or "", state.evidence.passages, registry)
    draft_title = state.evidence.draft.title if state.evidence.draft else ""
    title = one_line(registry.strip(written.title or draft_title or resolved.query))
    by_model = writer_engine(state.accounts.engine_by_role) is not EngineKind.EXTRACTIVE
    free = state.evidence.draft is not None and by_model
    labels = citation_labels(resolved.output.citation_style, state.evidence.sources, registry)
    numbered, citations = number_citations(written.body, state.evidence.passages, state.evidence.citations, labels)
    cited = _cited_sources(numbered, passages, state.evidence.sources)
    cited_ids = {item.source.id for item in cited}
    others = [source for source in state.evidence.sources.values() if source.id not in cited_ids]
    known = {verdict.claim_id: verdict for verdict in material.verdicts}
    level = 3 if material.answers else 2
    claims = find_claims(numbered, resolved.language, uncited=free, section_level=level)
    judged = _judge_all(claims, known, passages, registry, state)
    summary = state.evidence.verification.summary.with_fields(mode=resolved.verify.value)
    checked = count_verdicts(summary, [(claim, claim.judged) for claim in judged], split_off_by(material.corrections))
    messages = ReportMessages.of(state.accounts.engine_by_role, resolved.output.language, resolved.language)
    if resolved.verify is not Verify.OFF:  # `OFF` has a notice under the title instead
        numbered, judged = _with_signs(numbered, judged, messages)
    return ReportInputs(
        state=state,
        resolved=resolved,
        ending=ending.after_check(checked),
        product_version=material.product_version,
        messages=messages,
        title=title,
        draft="" if draft is None else write([heading(1, title), *written.body]).text,
        body=numbered,
        claims=judged,
        checked=checked,
        citations=citations,
        passages=passages,
        cited=cited,
        also_read=[source for source in others if source.status is SourceStatus.FULL],
        unread=[source for source in others if source.status is not SourceStatus.FULL],
        skipped=material.skipped,
        registry=registry,
        contradictions=_contradictions(state.evidence.findings),
        corrections=material.corrections,
        unresolved=written.unresolved,
        foreign_urls=written.foreign,
        fidelity=run_fidelity(
            state.accounts.fidelity,
            material.shortened,
            state.accounts.dropped_content_ids,
            sum(not source.analyzed for source in state.evidence.readable_sources()),
            state.accounts.content_archive_hashes,
        ),
        answers=material.answers,
    )


def _contradictions(findings: Sequence[Finding]) -> list[tuple[Finding, Finding]]:
    """Return the pairs of findings of which one contradicts the other, in order."""
    return [
        (first, second)
        for first, second in combinations(findings, 2)
        if second.id in first.contradicts or first.id in second.contradicts
    ]


def _split_title(blocks: Blocks) -> tuple[str, Blocks]:
    """Split off the title; other headings of the first level become sections."""
    titled = bool(blocks) and blocks[0].kind == "heading" and blocks[0].level == 1
    body = blocks[1:] if titled else blocks
    lowered = (replace(block, level=2) if block.kind == "heading" and block.level == 1 else block for block in body)
    return blocks[0].words if titled else "", tuple(lowered)


def _cited_sources(
    body: Blocks, passages: Mapping[str, QuotedPassage], sources: Mapping[str, Source]
) -> list[CitedSource]:
    first: dict[int, CitationMark] = {}
    cited: dict[int, dict[str, QuotedPassage]] = {}
    for mark in (mark for sentence in sentences(body) for mark in sentence.marks):
        first.setdefault(mark.number, mark)
        cited.setdefault(mark.number, {}).update({key: passages[key] for key in mark.evidence_ids})
    return [
        CitedSource(first[number], sources[next(iter(group.values())).evidence.source_id], list(group.values()))
        for number, group in sorted(cited.items())
    ]


def _judge_all(
    claims: Sequence[Claim],
    known: Mapping[str, ClaimVerdict],
    passages: Mapping[str, QuotedPassage],
    registry: KnownAddresses,
    state: ResearchState,
) -> list[Claim]:
    """Return the claims with their `known` verdicts, by claim id, else with verdicts of rules."""
    language = state.resolution.language
    question = state.resolution.query
    verify = state.resolution.verify
    judged_claims = []
    for index, claim in enumerate(claims, start=1):
        cited = [
            CitedPassage(
                passage.quote,
                passage.evidence.heading,
                state.evidence.sources[passage.evidence.source_id].title,
                passage.text,
            )
            for passage in (passages[key] for key in claim.evidence_ids)
        ]
        judged = known.get(claim.id) or judge(claim, cited, registry, language, question=question, verify=verify)
        judged_claims.append(replace(claim, index=index, judged=judged))
    return judged_claims


def _with_signs(body: Blocks, judged: Sequence[Claim], say: ReportMessages) -> tuple[Blocks, list[Claim]]:
    """Append the sign of its verdict to each cited statement that is wrong or doubtful."""
    changed: dict[Sentence, Sentence] = {}
    for claim in judged:
        if claim.evidence_ids and claim.judged.verdict in DOUBTFUL:
            cited = [sentence for sentence in claim.sentences if sentence.marks]
            last = (cited or claim.sentences)[-1]
            sign = CitationMark(sign=say.sign(claim.judged.verdict))
            changed[last] = replace(last, inlines=(*last.inlines, Run(" "), sign))
    signed = [
        replace(claim, sentences=tuple(changed.get(sentence, sentence) for sentence in claim.sentences))
        for claim in judged
    ]
    return change_sentences(body, lambda sentence: changed.get(sentence, sentence)), signed


# --- passages --------------------------------------------------------------------------------------------------------
def text_around(text: str, start: int, end: int, limit: int = 100) -> tuple[str, str]:
    """Return the text before and after a place, at most `limit` characters of each, cut between words."""
    before = text[max(0, start - limit) : start]
    after = text[end : end + limit]
    if start > limit and " " in before:
        before = before.split(" ", 1)[1]
    if end + limit < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0]
    return before, after


def listing_above(text: str, start: int) -> int | None:
    """Return where the listing begins in which a place lies, or the last lines of a long one; None outside of any."""
    listings = _listings(text)
    index = bisect_right(listings, (start, len(text))) - 1
    if index < 0 or start >= listings[index][1]:
        return None
    if start - listings[index][0] <= LISTING_CHARACTERS:
        return listings[index][0]
    return text.find("\n", start - LISTING_CHARACTERS, start) + 1 or start


@lru_cache(maxsize=32)
def _listings(text: str) -> list[tuple[int, int]]:
    """Return the places of the listings of a text, in order."""
    return [(start, start + len("\n".join(lines))) for start, lines, is_code in _paragraphs(text) if is_code]


def term_above(text: str, start: int) -> str:
    """Return the term whose definition a place belongs to, such as "`work_mem` (`integer`)"; empty if there is none.

    A stored text does not mark the end of a definition. Certain are the paragraph below the term, what that announces
    with a colon, and what lies between two terms of one list. What follows the last term of a list has the heading of
    its section alone. A place that begins with a term names it itself.
    """
    places, terms = _terms(text)
    index = bisect_right(places, start) - 1
    return terms[index] if index >= 0 else ""


def term_place(text: str, start: int) -> int | None:
    """Return where the term begins that `term_above`, or else `term_before`, names for a place; None without any."""
    places, _ = _terms(text)
    index = bisect_right(places, start) - 1
    if term_above(text, start):
        return places[index - 1]
    if term_before(text, start):
        return places[index - 2]
    return None


def table_start(text: str, start: int) -> int | None:
    """Return where the table begins in which a place lies, with the line that names it; None outside of any."""
    first = text.rfind("\n", 0, start) + 1
    if not text.startswith("|", first):
        return None
    while (above := text.rfind("\n", 0, max(0, first - 1)) + 1) < first and text.startswith("|", above):
        first = above
    before = text[:first].rstrip()
    named = before.rfind("\n") + 1
    name = before[named:]
    is_near = text.count("\n", len(before), first) <= 2  # at most one empty line between them
    if name and is_near and len(name) <= MAX_TERM and not name.startswith(("#", "|", *FENCES)):
        return named
    return first


def table_head(text: str, start: int) -> str:
    """Return the name of the table in which a place lies, and the heads of its columns; empty outside of a body."""
    first = table_start(text, start)
    if first is None:
        return ""
    lines = [line for line in text[first:start].splitlines() if line.strip()]
    named = lines[: next((number for number, line in enumerate(lines) if line.startswith("|")), len(lines))]
    rows = lines[len(named) :]
    is_body = len(rows) > 1 and not rows[1].strip("|-: ")
    return " ".join([*named, rows[0]]) if is_body else " ".join(named)


def term_before(text: str, start: int) -> str:
    """Return the last term of the list after which a place stands, if its definition may reach as far; else empty.

    What follows the first paragraph of a list's last term may speak of that term ("this feature") or of the whole
    section, which only a reader can tell: here the place is not below another heading, and not far from the term.
    """
    places, terms = _terms(text)
    index = bisect_right(places, start) - 1
    if index < 1 or terms[index] or not terms[index - 1]:
        return ""
    begins_term = index + 1 < len(terms) and bool(terms[index + 1]) and "\n\n" not in text[start : places[index + 1]]
    above = text[places[index - 1] : start]
    if begins_term or len(above) > AFTER_TERM_CHARACTERS or "\n#" in above:
        return ""
    return terms[index - 1]


@lru_cache(maxsize=32)  # for the many passages of a page
def _terms(text: str) -> tuple[list[int], list[str]]:
    """Return the places of a text from which another term counts, and these terms; an empty one is none."""
    reader = _TermReader()
    for start, lines, is_code in _paragraphs(text):
        reader.read(start, lines, is_code=is_code)
    reader.end()
    return [place for place, _ in reader.changes], [term for _, term in reader.changes]


def _paragraphs(text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Yield the blocks between empty lines with their places, and whether each is a listing, which is one block."""
    start = place = 0
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if fence:
            lines.append(line)
            if mark == fence:
                fence = ""
                yield start, lines, True
                lines = []
        elif mark in FENCES or not line.strip() or line.startswith("#"):
            if lines:
                yield start, lines, False
            lines = []
            if mark in FENCES:
                fence = mark
                start = place
                lines = [line]
            elif line.strip():
                yield place, [line], False
        else:
            start = start if lines else place
            lines.append(line)
        place += len(line) + 1
    if lines:
        yield start, lines, bool(fence)


@dataclass
class _TermReader:
    """Finds the terms of definition lists and what belongs to each, block by block."""

    changes: list[tuple[int, str]] = field(default_factory=list)
    term: str = ""
    is_nested: bool = False
    """True in a list within the definition of another one; its end cannot be seen, so that its terms claim less."""
    announces: bool = False
    """True if the block before ends with a colon."""
    open_place: int | None = None
    """The first block since the term that is its own only if another term follows."""

    def read(self, start: int, lines: list[str], *, is_code: bool) -> None:
        """Take the next block; a listing has no term and no heading."""
        terms = [] if is_code else _terms_of(lines)
        if not is_code and lines[0].startswith("#"):
            self.end()
            self.changes.append((start, ""))
            self.term = ""
            self.is_nested = False
        elif terms:
            # A later block that announces a list may come after the end of the one before.
            is_between = self.open_place is not None and not self.is_nested and not self.announces
            self.is_nested = self.open_place is None if self.is_nested else bool(self.term) and self.announces
            if not is_between:
                self.end()
            self.term = ", ".join(terms)
            self.open_place = None
            self.changes.append((start, ""))
            self.changes.append((start + sum(len(line) + 1 for line in lines[: len(terms)]), self.term))
        elif len(lines) == 2 and not is_code and _is_name(lines[0]):  # a definition whose term is no code
            self.end()
            self.changes.append((start, ""))
            self.term = ""
        elif self.term and self.open_place is None and not self.announces:
            self.open_place = start
        self.announces = lines[-1].rstrip().endswith(":")

    def end(self) -> None:
        """End the definitions of a list: what follows the paragraph of the last term is under no term."""
        if self.open_place is not None:
            self.changes.append((self.open_place, ""))
        self.open_place = None


def _is_name(line: str) -> bool:
    """Return true for a short line that is no sentence, list item or row."""
    return len(line) <= MAX_NAME and line[0].isalpha() and line.rstrip()[-1].isalnum()


def _terms_of(lines: list[str]) -> list[str]:
    """Return the lines of terms at the beginning of a block, if a definition follows them there."""
    terms = list(takewhile(lambda line: len(line) <= MAX_TERM and TERM.fullmatch(line), lines[:-1]))
    return [line.rstrip() for line in terms]


def show_passage(item: Evidence | ReportEvidence, title: str, text: str) -> ShownPassage:
    """Return a passage with the heading above it and the text around it in its source, as shown to checkers.

    A line of a listing comes with those above it, which say what the listing shows, and a row of a table with the name
    of the table and the heads of its columns.
    """
    before, after = text_around(text, item.start, item.end)
    if (listing := listing_above(text, item.start)) is not None:
        before = text[max(0, min(listing, item.start - len(before))) : item.start]
    elif head := table_head(text, item.start):
        row = text.rfind("\n", 0, item.start) + 1
        before = f"{head}\n{text[row : item.start]}" if head not in before else before
    quote = text[item.start : item.end]
    term = term_above(text, item.start)
    if not term and (last := term_before(text, item.start)):
        term = f"after the term {last}"
    title = " § ".join(dict.fromkeys(part for part in (title, item.heading, term) if part))
    return ShownPassage(evidence_id=item.id, title=title, before=before, quote=quote, after=after)


def cut_passages(
    evidence: Mapping[str, Evidence], sources: Mapping[str, Source], texts: Mapping[str, str]
) -> dict[str, QuotedPassage]:
    """Cut the passages of a run out of their texts, by evidence id; `texts` are the stored texts by hash.

    Raises `ContentMissing` if a passage has no source or no stored text, `ContentCorrupt` if its words differ.
    """
    passages = {}
    for identity, item in evidence.items():
        source = sources.get(item.source_id)
        if source is None or source.text is None or source.text.hash not in texts:
            raise ContentMissing(f"{identity}: there is no stored text for its source")
        passage = passages[identity] = QuotedPassage(item, texts[source.text.hash])
        if len(passage.quote) != item.end - item.start or digest(passage.quote) != item.quote_hash:
            raise ContentCorrupt(f"{identity}: the stored text does not have the quoted words at their place")
    return passages


# --- claims ----------------------------------------------------------------------------------------------------------
def judge(
    claim: Claim,
    cited: Sequence[CitedPassage],
    registry: KnownAddresses,
    language: str,
    *,
    question: str = "",
    verify: Verify = Verify.LIGHT,
) -> ClaimVerdict:
    """Judge a claim by rules against its passages, without foreign addresses in titles and headings.

    A name or a number of the `question` needs no passage. Pure, so that an audit can repeat it.
    """
    verdict = Verdict.UNVERIFIED
    method = CheckMethod.NONE
    reason: str = CITES_NOTHING
    if is_verbatim(claim.text, (item.quote for item in cited), registry):
        verdict = Verdict.SUPPORTED
        method = CheckMethod.VERBATIM
        reason = VERBATIM
    elif cited and (claim.quoted or verify is Verify.OFF):
        reason = NOT_VERBATIM if claim.quoted else NOT_CHECKED
    elif cited:
        about = [registry.strip(text) for item in cited for text in (item.title, item.heading) if text]
        if question:
            about += [question]
        quotes = [item.quote for item in cited]
        pages = list(dict.fromkeys(item.page for item in cited))
        judgement = check(claim.stated, quotes, about, language, pages=pages, numbering=claim.numbering)
        verdict = Verdict(judgement.verdict)
        method = CheckMethod.RULES
        reason = judgement.reason
    return ClaimVerdict(claim_id="", verdict=verdict, method=method, reason=reason)


def is_verbatim(claim: str, quotes: Iterable[str], registry: KnownAddresses, *, in_part: bool = False) -> bool:
    """Return whether a claim equals one of the quotes or, with `in_part`, a part of one.

    Layout and hyphens within words may differ.
    """
    written = (without_layout(claim), without_layout(without_lead_in(claim).strip()))
    forms = set(map(without_hyphens, written)) - {""}
    for quote in quotes:
        shown = registry.strip(clean_characters(quote))
        readings = (read(shown) for read in (str, lambda text: NUMBER.sub("", text), parse_plain_text))
        variants = (without_hyphens(without_layout(reading)) for reading in readings)
        if any(form in quoted if in_part else form == quoted for quoted in variants for form in forms):
            return True
    return False


def without_layout(text: str) -> str:
    """Return a text without its layout: code fences, borders of cells, bullets."""
    lines = BULLET.sub("", LAYOUT_LINE.sub("", text))
    return " ".join(lines.translate(LAYOUT_SIGNS).split())


def unquote_inexact_quotes(blocks: Blocks, quotes: Mapping[str, str], registry: KnownAddresses) -> tuple[Blocks, int]:
    """Turn block quotes that are not verbatim in their cited passages into plain text, and count them.

    `quotes` has the text of passages by evidence id; citations of other passages are not judged.
    """
    result: list[Block] = []
    count = 0
    for block in blocks:
        nested = [unquote_inexact_quotes(part, quotes, registry) for part in block.parts]
        count += sum(number for _, number in nested)
        cited: Sequence[Claim] = ()
        if block.kind == "quote":
            cited = find_claims((block,), uncited=False)
        pairs = [(claim.text, quotes[key]) for claim in cited for key in claim.evidence_ids if key in quotes]
        if not all(is_verbatim(claim_text, [quote], registry, in_part=True) for claim_text, quote in pairs):
            count += 1
            for part in block.parts[0]:
                flat = tidy(inline for sentence in part.sentences for inline in (Run(sentence.gap), *sentence.inlines))
                plain = part.kind == "paragraph"
                result.append(replace(part, sentences=tuple(split_sentences(flat))) if plain else part)
        else:
            result.append(replace(block, parts=tuple(part for part, _ in nested)))
    return tuple(result), count
