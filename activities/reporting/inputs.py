"""The inputs of a report, gathered once for its three forms: text, claims, passages and sources."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
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
from contracts.checking import Correction, VerificationSummary
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Finding, Source, Verdict
from contracts.outcome import Citation, Ending
from contracts.report import ReportFidelity, ThreadAnswer, run_fidelity
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
        fidelity=_fidelity(state, material.shortened),
        answers=material.answers,
    )


def _fidelity(state: ResearchState, shortened: Sequence[ContentEntry]) -> ReportFidelity | None:
    """Return how much of the texts models were shown; `shortened` are the records of calls that were shown less."""
    accounts = state.accounts
    unread = sum(not source.analyzed for source in state.evidence.readable_sources())
    return run_fidelity(
        accounts.fidelity, shortened, accounts.dropped_content_ids, unread, accounts.content_archive_hashes
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
