"""The claims of a finished report, each with the verdict that was given for it or that rules find."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from activities.reporting.citations import CitationMark
from activities.reporting.claim_finder import find_claims
from activities.reporting.links import Registry, strip_addresses
from activities.reporting.markdown_layout import clean_characters, plain_text
from activities.reporting.quotations import QUOTE_SIGNS, bare_words, forms, print_words, without_quotation_marks
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict
from contracts.request import Verify
from providers.verification.rules import check

WORD_FOR_WORD = "The passage is word for word the quoted text of its source."
NOT_CHECKED = "Nobody has checked whether the cited passages support this sentence."
NOT_THE_QUOTE = "The passage is not word for word the text that it cites."
CITES_NOTHING = "It cites no passage."


@dataclass(frozen=True)
class CitedWords:
    """A passage as a claim is compared with it."""

    quote: str
    heading: str
    title: str


@dataclass(frozen=True)
class PlacedPart:
    """One of several things that a claim asserts: its plain words, and their range in the Markdown."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class PlacedClaim:
    """A statement of the report: `markdown[start:end] == text`."""

    id: str
    text: str
    start: int
    end: int
    kind: str
    section: str
    parts: list[PlacedPart]
    citation_numbers: list[int]
    evidence_ids: list[str]
    """Empty for an assertion that cites nothing."""
    verdict: str
    """A `Verdict`."""
    method: str
    """A `CheckMethod`."""
    reason: str
    rests_on: list[str] = field(default_factory=list)
    """The passages that the verdict rests on, where they are others than the claim cites."""


@dataclass(frozen=True)
class Judged:
    """Verdict, method and reason."""

    verdict: str
    method: str
    reason: str


def judge(
    words: str, cited: Sequence[CitedWords], registry: Registry, language: str, *, quoted: bool, verify: Verify
) -> Judged:
    """What the rules say of the words of a claim and of the passages that it cites. Pure: an audit does it again."""
    if not cited:
        return Judged(Verdict.UNVERIFIED, CheckMethod.NONE, CITES_NOTHING)
    if word_for_word(words, (item.quote for item in cited), registry):
        return Judged(Verdict.SUPPORTED, CheckMethod.VERBATIM, WORD_FOR_WORD)
    if quoted or verify is Verify.OFF:
        return Judged(Verdict.UNVERIFIED, CheckMethod.NONE, NOT_THE_QUOTE if quoted else NOT_CHECKED)
    about = [text for item in cited for text in (item.title, item.heading) if text]
    judgement = check(plain_text(words), [item.quote for item in cited], about, language)
    return Judged(judgement.verdict, CheckMethod.RULES, judgement.reason)


def word_for_word(piece: str, quotes: Iterable[str], registry: Registry) -> bool:
    """Whether a piece of Markdown, its own numbers left out, is exactly one of the quotes. White space is as blanks."""
    said, bare = forms(piece), bare_words(without_quotation_marks(QUOTE_SIGNS.sub("", piece).strip()))
    return any(
        print_words(quote, registry) in said
        or (bare and bare_words(strip_addresses(clean_characters(quote), registry, [])) == bare)
        for quote in quotes
    )


def judge_claims(
    markdown: str,
    marks: Sequence[CitationMark],
    passages: Mapping[str, CitedWords],
    registry: Registry,
    *,
    language: str = "en",
    verify: Verify = Verify.LIGHT,
    uncited: bool = True,
    passed_over: tuple[int, int] = (0, 0),
    given: Mapping[str, ClaimVerdict] | None = None,
) -> list[PlacedClaim]:
    """The claims of a finished report with their verdicts, in order. `marks` are the places of its citations.

    What was `given` for the claim of an id holds; the others are judged by rules. `uncited` and `passed_over` are as
    for `find_claims`.
    """
    known = given or {}
    placed = []
    for found in find_claims(markdown, marks, language=language, uncited=uncited, passed_over=passed_over):
        claim = found.claim
        verdict = known.get(claim.id)
        if verdict is None:
            words = [passages[identity] for identity in claim.evidence_ids]
            judged = judge(found.words, words, registry, language, quoted=found.quoted, verify=verify)
        else:
            judged = Judged(verdict.verdict, verdict.method, verdict.reason)
        placed.append(
            PlacedClaim(
                id=claim.id,
                text=markdown[claim.start : claim.end],
                start=claim.start,
                end=claim.end,
                kind=claim.kind,
                section=claim.section,
                parts=[PlacedPart(part.text, part.start, part.end) for part in claim.parts],
                citation_numbers=list(dict.fromkeys(mark.number for mark in found.marks)),
                evidence_ids=claim.evidence_ids,
                verdict=judged.verdict,
                method=judged.method,
                reason=judged.reason,
                rests_on=verdict.evidence_ids if verdict else [],
            )
        )
    return placed
