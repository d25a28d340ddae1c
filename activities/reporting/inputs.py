"""Everything that a report is made of, gathered once for its three forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from activities.reporting.addresses import KnownAddresses, addresses_of
from activities.reporting.citations import DraftMarks, citation_labels, number_citations, without_signs
from activities.reporting.claims import CitedWords, FoundClaim, Tallied, count_verdicts, find_claims, judge
from activities.reporting.drafts import without_source_lists
from activities.reporting.tree import Blocks, CitationPlace, Run, Sentence, change_sentences, one_line, parse, sentences
from activities.reporting.words import ReportWords
from contracts.addresses import digest
from contracts.checking import Correction, CorrectionAction, VerificationSummary
from contracts.evidence import ClaimVerdict, Evidence, Finding, Source, Verdict
from contracts.outcome import Citation, Ending
from contracts.report import ReportFidelity, fidelity_of_run
from contracts.request import Verify
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.tokens import ContentEntry
from contracts.vocabulary import EngineKind, SourceStatus
from providers.errors import ContentCorrupt, ContentMissing, InvalidCall
from providers.interfaces import SkippedFile

SELECTOR_CHARACTERS: Final = 32
"""Length of prefix and suffix of a text quote selector (Web Annotation)."""


@dataclass(frozen=True)
class QuotedPassage:
    """A verbatim passage: `quote == text[start:end]` of the stored text of its source."""

    evidence: Evidence
    text: str

    @property
    def quote(self) -> str:
        """The words of the passage."""
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

    mark: CitationPlace
    source: Source
    passages: list[QuotedPassage]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of the text with its verdict."""

    index: int
    """From 1."""
    claim: FoundClaim
    judged: ClaimVerdict


@dataclass(frozen=True)
class ReportInputs:
    """The parts of a report."""

    state: ResearchState
    resolved: ResolvedResearch
    ending: Ending
    product_version: str
    words: ReportWords
    """The fixed sentences of this report."""
    title: str
    body: Blocks
    """The draft below its title, with numbers."""
    claims: list[JudgedClaim]
    checked: VerificationSummary
    """Figures of the claims."""
    citations: list[Citation]
    """Every number of the run."""
    passages: Mapping[str, QuotedPassage]
    cited: list[CitedSource]
    also_read: list[Source]
    """Read in full, yet not cited."""
    unread: list[Source]
    """Found, yet not readable or not read."""
    skipped: list[SkippedFile]
    registry: KnownAddresses
    contradictions: list[tuple[Finding, Finding]]
    """Findings of different sources that cannot both be true."""
    corrections: Sequence[Correction]
    """Actions on claims that did not pass."""
    replaced_list: bool
    """The draft had a list of sources of its own, which ours replaces."""
    unresolved: list[str]
    """Citations of the draft that name nothing."""
    foreign_urls: list[str]
    """Addresses that were taken out of the draft."""
    fidelity: ReportFidelity | None
    """What models were shown."""

    def show(self, text: str) -> str:
        """Return a foreign line (a title, a reason, a question) as a report may print it."""
        return one_line(self.registry.strip(one_line(text)))


def gather_inputs(
    state: ResearchState,
    draft: str | None,
    texts: Mapping[str, str],
    skipped: Sequence[SkippedFile],
    product_version: str,
    verdicts: Sequence[ClaimVerdict] = (),
    corrections: Sequence[Correction] = (),
    shortened: Sequence[ContentEntry] = (),
) -> ReportInputs:
    """Number the draft, judge its claims, and sort the sources.

    `draft` is the text with evidence markers, None if the run wrote none; `texts` are the stored texts of every source
    that evidence names, by hash. Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    resolved, ending = state.resolved, state.ending
    if resolved is None or ending is None:
        raise InvalidCall("the state has no resolved request or does not know how the run ended")
    passages = cut_passages(state.evidence, state.sources, texts)
    quotes = (passage.quote for passage in passages.values())
    registry = KnownAddresses.of(addresses_of(state.sources.values()), resolved.query, quotes)
    foreign: list[str] = []
    marks = DraftMarks({key.lower(): [key] for key in state.evidence})
    parsed = parse(draft or "", marks, registry.filter(foreign), without_signs)
    title, blocks = _split_title(parsed)
    title = title or (state.draft.title if state.draft else "") or resolved.query
    body = without_source_lists(blocks)
    free = state.draft is not None and writer_engine(state.engine_by_role) is not EngineKind.EXTRACTIVE
    labels = citation_labels(resolved.output.citation_style, state.sources, registry)
    numbered, citations = number_citations(body, state.evidence, state.citations, labels)
    cited = _cited_sources(numbered, passages, state.sources)
    others = [source for source in state.sources.values() if source.id not in {each.source.id for each in cited}]
    given = {verdict.claim_id: verdict for verdict in verdicts}
    claims = find_claims(numbered, resolved.language, uncited=free)
    judged = _judge_all(claims, given, passages, registry, state)
    figures = count_verdicts(
        [Tallied(one.judged.verdict, one.judged.method, len(one.claim.numbers), one.claim.section) for one in judged],
        state.verification.summary.correction_counts.get(CorrectionAction.REMOVE, 0),
    )
    checked = state.verification.summary.model_copy(update=figures | {"mode": resolved.verify.value})
    words = ReportWords.of(state.engine_by_role, resolved.output.language, resolved.language)
    if resolved.verify is not Verify.OFF:  # which is said under the title
        numbered, judged = _with_signs(numbered, judged, words)
    return ReportInputs(
        state=state,
        resolved=resolved,
        ending=ending.after_check(checked),
        product_version=product_version,
        words=words,
        title=one_line(registry.strip(title)),
        body=numbered,
        claims=judged,
        checked=checked,
        citations=citations,
        passages=passages,
        cited=cited,
        also_read=[source for source in others if source.status is SourceStatus.FULL],
        unread=[source for source in others if source.status is not SourceStatus.FULL],
        skipped=list(skipped),
        registry=registry,
        contradictions=[
            (one, other)
            for one, other in combinations(state.findings, 2)
            if other.id in one.contradicts or one.id in other.contradicts
        ],
        corrections=corrections,
        replaced_list=len(body) < len(blocks),
        unresolved=list(dict.fromkeys(marks.unresolved)),
        foreign_urls=list(dict.fromkeys(foreign)),
        fidelity=fidelity_of_run(
            state.fidelity,
            shortened,
            state.dropped_content_ids,
            sum(not source.analyzed for source in state.readable_sources()),
            state.content_archive_hashes,
        ),
    )


def _split_title(blocks: Blocks) -> tuple[str, Blocks]:
    """Take off the title; other headings of the first level become sections."""
    titled = bool(blocks) and blocks[0].kind == "heading" and blocks[0].level == 1
    rest = blocks[1:] if titled else blocks
    lowered = (replace(each, level=2) if each.kind == "heading" and each.level == 1 else each for each in rest)
    return blocks[0].words if titled else "", tuple(lowered)


def _cited_sources(
    body: Blocks, passages: Mapping[str, QuotedPassage], sources: Mapping[str, Source]
) -> list[CitedSource]:
    first: dict[int, CitationPlace] = {}
    cited: dict[int, dict[str, QuotedPassage]] = {}
    for mark in (mark for each in sentences(body) for mark in each.marks):
        first.setdefault(mark.number, mark)
        cited.setdefault(mark.number, {}).update({key: passages[key] for key in mark.evidence_ids})
    return [
        CitedSource(first[number], sources[next(iter(found.values())).evidence.source_id], list(found.values()))
        for number, found in sorted(cited.items())
    ]


def _judge_all(
    claims: Sequence[FoundClaim],
    given: Mapping[str, ClaimVerdict],
    passages: Mapping[str, QuotedPassage],
    registry: KnownAddresses,
    state: ResearchState,
) -> list[JudgedClaim]:
    """Return the claims with the verdicts of the verification, by the id of their claim, else with those of rules.

    Rules compare the words that `report.json` shows, so that an audit can do it again.
    """
    resolved = state.resolution
    strip, titles = registry.strip, {source.id: source.title for source in state.sources.values()}
    found = []
    for index, claim in enumerate(claims, start=1):
        judged = given.get(claim.id)
        if judged is None:
            items = [(passages[key].quote, passages[key].evidence) for key in claim.evidence_ids]
            cited = [CitedWords(quote, strip(item.heading), strip(titles[item.source_id])) for quote, item in items]
            judged = judge(claim.words, cited, registry, resolved.language, quoted=claim.quoted, verify=resolved.verify)
        found.append(JudgedClaim(index, claim, judged))
    return found


def _with_signs(body: Blocks, judged: Sequence[JudgedClaim], say: ReportWords) -> tuple[Blocks, list[JudgedClaim]]:
    """Put a sign and its words behind each statement with citations that is not supported."""
    changed: dict[Sentence, Sentence] = {}
    for each in judged:
        cited = [sentence for sentence in each.claim.sentences if sentence.marks]
        if cited and each.judged.verdict is not Verdict.SUPPORTED:
            sign = CitationPlace(sign=say.sign(each.judged.verdict))
            changed[cited[-1]] = replace(cited[-1], inlines=(*cited[-1].inlines, Run(" "), sign))
    signed = [
        replace(each, claim=replace(each.claim, sentences=tuple(changed.get(one, one) for one in each.claim.sentences)))
        for each in judged
    ]
    return change_sentences(body, lambda each: changed.get(each, each)), signed


# --- passages --------------------------------------------------------------------------------------------------------
def words_around(text: str, start: int, end: int, most: int = 100) -> tuple[str, str]:
    """Return the text before and after a place, at most so many characters of each, cut between words."""
    before, after = text[max(0, start - most) : start], text[end : end + most]
    if start > most and " " in before:
        before = before.split(" ", 1)[1]
    if end + most < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0]
    return before, after


def cut_passages(
    evidence: Mapping[str, Evidence], sources: Mapping[str, Source], texts: Mapping[str, str]
) -> dict[str, QuotedPassage]:
    """Cut every passage of a run out of its text, by evidence id; `texts` are the stored texts by hash.

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
