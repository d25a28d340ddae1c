"""Claims of a text: what is cited and what asserts something; and what the rules say of each.

A claim is a sentence, a row of a table, or a piece of a block quote up to its citations. What has a citation is a
claim, regardless of its form; what has none is one if it asserts something.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from activities.reporting.addresses import KnownAddresses
from activities.reporting.markdown import Written
from activities.reporting.tree import (
    Block,
    Blocks,
    Run,
    Sentence,
    clean_characters,
    parse_words,
    sentences,
    split,
    tidy,
)
from contracts.addresses import long_hash
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict
from contracts.request import Verify
from providers.verification.quantities import find_quantities
from providers.verification.rules import check, without_lead_in

MOST_UNSUPPORTED: Final = 0.2
"""Share of the cited statements above which a report with unsupported ones is not complete."""
FEWEST_WORDS: Final = 4
"""Words from which on a line can assert something; a shorter one is a name, a label or an exclamation."""
LED_TO: Final = ("list", "table", "quote")
LAYOUT_LINE: Final = re.compile(r"(?m)^[ \t]*(?:(?:```|~~~)[\w+-]*[ \t]*|[|: \t]*-[|: \t-]*|\.{4,}[ \t]*)$")
"""A fence, the rule below the header of a table, the border of a listing."""
BULLET: Final = re.compile(r"(?m)^[ \t]*(?:[-+•>*][ \t]+|#{1,6}[ \t]+)+")
NUMBER: Final = re.compile(r"(?m)^[ \t]*[0-9]{1,3}[.)][ \t]+")
LAYOUT_SIGNS: Final = str.maketrans({"\\": "", "`": "", "*": "", "…": "", "|": " ", "·": " ", "¦": " "})

WORD_FOR_WORD: Final = "The passage is word for word the quoted text of its source."
NOT_CHECKED: Final = "Nobody has checked whether the cited passages support this sentence."
NOT_THE_QUOTE: Final = "The passage is not word for word the text that it cites."
CITES_NOTHING: Final = "It cites no passage."


@dataclass(frozen=True)
class FoundClaim:
    """A claim and its sentences in the tree."""

    id: str
    words: str
    """Plain text."""
    section: str
    """The nearest heading above it; empty where there is none below the title."""
    evidence_ids: list[str]
    sentences: tuple[Sentence, ...]
    quoted: bool
    """True if it is a piece of a block quote."""
    row: bool

    @property
    def numbers(self) -> list[int]:
        """The numbers of its citations in a report, each once."""
        return list(dict.fromkeys(mark.number for each in self.sentences for mark in each.marks))

    def place(self, written: Written) -> tuple[int, int]:
        """Return where it is in the Markdown of its tree."""
        return written.places[self.sentences[0]][0], written.places[self.sentences[-1]][1]


@dataclass(frozen=True)
class CitedWords:
    """A passage as a claim is compared with it."""

    quote: str
    heading: str
    title: str


def find_claims(blocks: Blocks, language: str = "en", *, uncited: bool = True) -> list[FoundClaim]:
    """Find the claims of a text in order; without `uncited` only those with citations.

    The extractive engine's own words speak of the report alone: what it does not cite is no claim.
    """
    seen: Counter[str] = Counter()
    found = []
    for claim in _Finder(language).walk(blocks):
        if claim.evidence_ids or (uncited and claim.words):
            key = claim_key(claim.words, claim.evidence_ids)
            found.append(replace(claim, id=claim_id(key, seen[key])))
            seen[key] += 1
    return found


def claim_key(words: str, evidence_ids: Sequence[str]) -> str:
    """Return what a claim is known by: its words without white space, and its evidence in any order."""
    return "".join(words.split()) + "\x1e" + " ".join(sorted(evidence_ids))


def claim_id(key: str, before: int) -> str:
    """Return the id of the claim with a key that so many claims before it have."""
    return "c-" + long_hash(key, before)


class _Finder:
    """Walks over blocks and gives their claims without ids."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._section = ""

    def walk(self, blocks: Blocks) -> Iterator[FoundClaim]:
        for place, block in enumerate(blocks):
            match block.kind:
                case "heading":
                    self._section = block.words if block.level > 1 else ""
                    yield from self._claim(block.sentences, only_cited=True)
                case "paragraph":
                    leads = place + 1 < len(blocks) and blocks[place + 1].kind in LED_TO
                    for sentence in block.sentences:
                        yield from self._claim((sentence,), leads=leads and sentence is block.sentences[-1])
                case "list":
                    for item in block.parts:
                        yield from self.walk(item)
                case "table":
                    for number, row in enumerate(block.rows):
                        yield from self._claim(row, row=True, only_cited=number == 0)
                case "quote":
                    yield from self._quote(block)

    def _quote(self, block: Block) -> Iterator[FoundClaim]:
        pieces: list[list[Sentence]] = [[]]
        for sentence in sentences(block.parts[0]):
            pieces[-1].append(sentence)
            if sentence.marks:
                pieces.append([])
        # Words behind the last citation belong to it.
        rest = pieces.pop()
        if pieces:
            pieces[-1] += rest
        for piece in pieces or [rest]:
            yield from self._claim(tuple(piece), quoted=True)

    def _claim(
        self,
        parts: tuple[Sentence, ...],
        *,
        quoted: bool = False,
        row: bool = False,
        only_cited: bool = False,
        leads: bool = False,
    ) -> Iterator[FoundClaim]:
        evidence_ids = list(dict.fromkeys(key for part in parts for mark in part.marks for key in mark.evidence_ids))
        marked = any(part.marks for part in parts)
        words = (", " if row else " ").join(text for part in parts if (text := part.words))
        words = words.lstrip(".,;:!? ") if quoted else words
        if marked or (not only_cited and _asserts(words, self._language, leads=leads)):
            yield FoundClaim("", words, self._section, evidence_ids, parts, quoted, row)


def _asserts(words: str, language: str, *, leads: bool) -> bool:
    """Return whether a sentence that cites nothing is a claim about the world; where its form leaves that open, it is.

    Questions, lines that introduce a list or a quotation (`leads`), and labels are none.
    """
    bare = words.strip().rstrip("\"'”’»“)]*_`").rstrip()
    if bare.endswith(("?", "？", "؟")) or (leads and bare.endswith((":", "："))):
        return False
    return len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", bare)) >= FEWEST_WORDS or bool(find_quantities(bare, language))


class Tallied(NamedTuple):
    """What the figures of a check are made from, of one claim."""

    verdict: str
    method: str
    citations: int
    section: str


def count_verdicts(judged: Collection[Tallied], removed: int = 0) -> dict[str, Any]:
    """Return the figures of a check, by the fields of `VerificationSummary`; `removed` are statements that are gone."""
    verdicts = Counter(each.verdict for each in judged)
    undecided = verdicts[Verdict.UNVERIFIED] + verdicts[Verdict.NOT_ENOUGH_INFORMATION]
    decided = max(1, len(judged) - undecided)
    return {
        "claims": len(judged),
        "uncited_claims": sum(not each.citations for each in judged),
        "verdict_counts": dict(sorted(verdicts.items())),
        "method_counts": dict(sorted(Counter(each.method for each in judged).items())),
        "unsupported_share": round(verdicts[Verdict.UNSUPPORTED] / decided, 4),
        "contradicted_share": round(verdicts[Verdict.CONTRADICTED] / decided, 4),
        "effective_citations": sum(each.citations for each in judged if each.verdict == Verdict.SUPPORTED),
        "warning": not is_borne_out(judged) or (removed > 0 and not any(each.citations for each in judged)),
    }


def is_borne_out(judged: Iterable[Tallied]) -> bool:
    """Return whether a report's statements are supported well enough for a completed run.

    None is contradicted, none in the answer itself (the first section) is unsupported, and at most a fifth of all cited
    ones is.
    """
    cited = [each for each in judged if each.citations]
    unsupported = [each for each in cited if each.verdict == Verdict.UNSUPPORTED]
    return (
        all(each.verdict != Verdict.CONTRADICTED for each in cited)
        and all(each.section != cited[0].section for each in unsupported)
        and len(unsupported) <= MOST_UNSUPPORTED * len(cited)
    )


def judge(
    words: str,
    cited: Sequence[CitedWords],
    registry: KnownAddresses,
    language: str,
    *,
    quoted: bool = False,
    verify: Verify = Verify.LIGHT,
) -> ClaimVerdict:
    """Judge the words of a claim by rules beside the passages that it cites. Pure: an audit does it again."""
    verdict, method, reason = Verdict.UNVERIFIED, CheckMethod.NONE, CITES_NOTHING
    if is_word_for_word(words, (item.quote for item in cited), registry):
        verdict, method, reason = Verdict.SUPPORTED, CheckMethod.VERBATIM, WORD_FOR_WORD
    elif cited and (quoted or verify is Verify.OFF):
        reason = NOT_THE_QUOTE if quoted else NOT_CHECKED
    elif cited:
        about = [text for item in cited for text in (item.title, item.heading) if text]
        judgement = check(words, [item.quote for item in cited], about, language)
        verdict, method, reason = Verdict(judgement.verdict), CheckMethod.RULES, judgement.reason
    return ClaimVerdict(claim_id="", verdict=verdict, method=method, reason=reason)


def is_word_for_word(words: str, quotes: Iterable[str], registry: KnownAddresses, *, in_part: bool = False) -> bool:
    """Return whether the words of a claim are exactly one of the quotes, or a part of one, regardless of the layout."""
    forms = {bare_words(words), bare_words(without_lead_in(words).strip())} - {""}
    for quote in quotes:
        shown = registry.strip(clean_characters(quote))
        theirs = {bare_words(shown), bare_words(NUMBER.sub("", shown)), bare_words(parse_words(shown))}
        if any(form in their if in_part else form == their for form in forms for their in theirs):
            return True
    return False


def bare_words(text: str) -> str:
    """Return the words and signs of a text without what only lays it out: fences, borders of cells, bullets."""
    lines = BULLET.sub("", LAYOUT_LINE.sub("", text))
    return " ".join(lines.translate(LAYOUT_SIGNS).split())


def unquote_other_words(blocks: Blocks, quotes: Mapping[str, str], registry: KnownAddresses) -> tuple[Blocks, int]:
    """Make plain the block quotes whose words the passages that they cite do not have, and count them.

    `quotes` gives the words of passages by evidence id; where one is missing nothing is decided.
    """
    made: list[Block] = []
    count = 0
    for block in blocks:
        inside = [unquote_other_words(part, quotes, registry) for part in block.parts]
        count += sum(each for _, each in inside)
        cited = find_claims((block,), uncited=False) if block.kind == "quote" else ()
        pairs = [(claim.words, quotes[key]) for claim in cited for key in claim.evidence_ids if key in quotes]
        if not all(is_word_for_word(words, [quote], registry, in_part=True) for words, quote in pairs):
            count += 1
            for part in block.parts[0]:
                flat = tidy(inline for each in part.sentences for inline in (Run(each.gap), *each.inlines))
                plain = part.kind == "paragraph"
                made.append(replace(part, sentences=tuple(split(flat))) if plain else part)
        else:
            made.append(replace(block, parts=tuple(part for part, _ in inside)))
    return tuple(made), count
