"""The claims of a text: which of its statements can be true or false, what they cite, and how verdicts are counted.

A claim is a sentence, a row of a table, or a piece of a block quote up to its citations. Text with a citation is a
claim in any form; text without one is a claim if it asserts something. The citation at the end of a paragraph or a list
item counts for its sentences back to the citation before. Bold lead words, and uncited sentences about the research
itself under a heading such as *Gaps and limitations*, are no claims.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from activities.reporting.tree import Block, Blocks, CitationMark, Run, Sentence, WrittenText, sentences
from contracts.addresses import long_hash
from contracts.evidence import Verdict
from contracts.outlines import STATE_HEADING
from providers.verification.quantities import find_quantities

MAX_UNSUPPORTED_SHARE: Final = 0.2
"""Share of unsupported among cited statements above which a report is not complete."""
MIN_WORDS: Final = 4
"""Words that an assertion needs; a shorter line is a name, a label or an exclamation."""
INTRODUCED_KINDS: Final = ("list", "table", "quote")


@dataclass(frozen=True)
class ParsedClaim:
    """A claim and its sentences in the tree."""

    id: str
    words: str
    """Plain text."""
    section: str
    """The nearest heading above it, below the title; empty if there is none."""
    evidence_ids: list[str]
    sentences: tuple[Sentence, ...]
    quoted: bool = False
    """True if it is a piece of a block quote."""
    row: bool = False
    with_heads: str = ""
    """The words of a row with the head of its column before each cell."""
    shared: tuple[CitationMark, ...] = ()
    """The citation of a later sentence that counts for this one, too."""

    @property
    def marks(self) -> list[CitationMark]:
        """Its citations in order: its own, else the one that it shares."""
        return [mark for sentence in self.sentences for mark in sentence.marks] or list(self.shared)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its citations in a report, each once."""
        return list(dict.fromkeys(mark.number for mark in self.marks))

    def span(self, written: WrittenText) -> tuple[int, int]:
        """Return its start and end in the Markdown of its tree."""
        return written.spans[self.sentences[0]][0], written.spans[self.sentences[-1]][1]


def find_claims(blocks: Blocks, language: str = "en", *, uncited: bool = True) -> list[ParsedClaim]:
    """Return the claims of a text in order; without `uncited`, only those with citations.

    The extractive engine's own sentences are about the report itself: without a citation, they are no claims.
    """
    seen: Counter[str] = Counter()
    claims = []
    for claim in _ClaimFinder(language).walk(blocks):
        if claim.evidence_ids or (uncited and claim.words):
            key = claim_key(claim.words, claim.evidence_ids)
            claims.append(replace(claim, id=claim_id(claim.words, claim.evidence_ids, seen[key])))
            seen[key] += 1
    return claims


def claim_key(text: str, evidence_ids: Sequence[str]) -> str:
    """Return the key of a claim: its words without white space, and its sorted evidence ids."""
    return "".join(text.split()) + "\x1e" + " ".join(sorted(evidence_ids))


def claim_id(text: str, evidence_ids: Sequence[str], occurrence: int = 0) -> str:
    """Return the id of a claim; `occurrence` is the number of earlier claims with the same words and evidence."""
    return "c-" + long_hash(claim_key(text, evidence_ids), occurrence)


class _ClaimFinder:
    """Walks over blocks and yields their claims, without ids."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._section = ""
        self._about_research = False
        """True below a heading about the research itself."""

    def walk(self, blocks: Blocks) -> Iterator[ParsedClaim]:
        for index, block in enumerate(blocks):
            match block.kind:
                case "heading":
                    self._section = block.words if block.level > 1 else ""
                    if block.level <= 2:
                        self._about_research = STATE_HEADING.fullmatch(block.words.strip(" .:")) is not None
                    yield from self._claim(block.sentences, only_cited=True)
                case "paragraph":
                    introduces = index + 1 < len(blocks) and blocks[index + 1].kind in INTRODUCED_KINDS
                    yield from self._paragraph(block.sentences, introduces=introduces)
                case "list":
                    for item in block.parts:
                        yield from self.walk(item)
                case "table":
                    for number, row in enumerate(block.rows):
                        heads = block.rows[0] if number else ()
                        yield from self._claim(row, row=True, heads=heads, only_cited=number == 0)
                case "quote":
                    yield from self._quote(block)

    def _paragraph(self, leaf: tuple[Sentence, ...], *, introduces: bool) -> Iterator[ParsedClaim]:
        # The last citation counts for the sentences back to the one before.
        cited = [number for number, sentence in enumerate(leaf) if sentence.marks]
        ends_cited = bool(cited) and cited[-1] == len(leaf) - 1
        first_shared = (cited[-2] + 1 if len(cited) > 1 else 0) if ends_cited else len(leaf)
        for number, sentence in enumerate(leaf):
            if number == 0 and len(leaf) > 1 and _is_lead(sentence):
                continue
            yield from self._claim(
                (sentence,),
                shared=tuple(leaf[-1].marks) if number >= first_shared else (),
                only_cited=self._about_research,
                introduces=introduces and sentence is leaf[-1],
            )

    def _quote(self, block: Block) -> Iterator[ParsedClaim]:
        pieces: list[list[Sentence]] = [[]]
        for sentence in sentences(block.parts[0]):
            pieces[-1].append(sentence)
            if sentence.marks:
                pieces.append([])
        # Words after the last citation belong to its piece.
        trailing = pieces.pop()
        if pieces:
            pieces[-1] += trailing
        for piece in pieces or [trailing]:
            yield from self._claim(tuple(piece), quoted=True)

    def _claim(
        self,
        parts: tuple[Sentence, ...],
        *,
        quoted: bool = False,
        row: bool = False,
        heads: tuple[Sentence, ...] = (),
        shared: tuple[CitationMark, ...] = (),
        only_cited: bool = False,
        introduces: bool = False,
    ) -> Iterator[ParsedClaim]:
        marked = any(part.marks for part in parts)
        marks = [mark for part in parts for mark in part.marks] or shared
        evidence_ids = list(dict.fromkeys(key for mark in marks for key in mark.evidence_ids))
        words = (", " if row else " ").join(text for part in parts if (text := part.words))
        words = words.lstrip(".,;:!? ") if quoted else words
        if marked or (not only_cited and _asserts(words, self._language, introduces=introduces)):
            pairs = zip_longest((head.words for head in heads), (cell.words for cell in parts), fillvalue="")
            with_heads = "; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell) if heads else ""
            yield ParsedClaim("", words, self._section, evidence_ids, parts, quoted, row, with_heads, tuple(shared))


def _is_lead(sentence: Sentence) -> bool:
    """Return whether a first sentence is a lead word in bold or italics, without a citation."""
    runs = [inline for inline in sentence.inlines if isinstance(inline, Run) and inline.text.strip()]
    return not sentence.marks and bool(runs) and all(run.bold or run.italic for run in runs)


def _asserts(sentence: str, language: str, *, introduces: bool) -> bool:
    """Return whether an uncited sentence is a claim about the world; in doubt, it is.

    Questions, lines that introduce a list or a quotation (`introduces`), and labels are not.
    """
    text = sentence.strip().rstrip("\"'”’»“)]*_`").rstrip()
    if text.endswith(("?", "？", "؟")) or (introduces and text.endswith((":", "："))):
        return False
    return len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)) >= MIN_WORDS or bool(find_quantities(text, language))


class CountedClaim(NamedTuple):
    """The properties of a claim that the figures of a verification count."""

    verdict: str
    method: str
    citations: int
    section: str


def count_verdicts(judged: Collection[CountedClaim], removed: int = 0) -> dict[str, Any]:
    """Return the figures of a `VerificationSummary`; `removed` is the number of removed statements."""
    verdicts = Counter(claim.verdict for claim in judged)
    undecided = verdicts[Verdict.UNVERIFIED] + verdicts[Verdict.NOT_ENOUGH_INFORMATION]
    decided = max(1, len(judged) - undecided)
    return {
        "claims": len(judged),
        "uncited_claims": sum(not claim.citations for claim in judged),
        "verdict_counts": dict(sorted(verdicts.items())),
        "method_counts": dict(sorted(Counter(claim.method for claim in judged).items())),
        "unsupported_share": round(verdicts[Verdict.UNSUPPORTED] / decided, 4),
        "contradicted_share": round(verdicts[Verdict.CONTRADICTED] / decided, 4),
        "effective_citations": sum(claim.citations for claim in judged if claim.verdict == Verdict.SUPPORTED),
        "warning": not is_well_supported(judged) or (removed > 0 and not any(claim.citations for claim in judged)),
    }


def is_well_supported(judged: Iterable[CountedClaim]) -> bool:
    """Return whether a report's statements are supported well enough for a completed run.

    Of the cited ones none is contradicted, none in the answer itself (the first section) is unsupported, and at most a
    fifth are unsupported overall.
    """
    cited = [claim for claim in judged if claim.citations]
    unsupported = [claim for claim in cited if claim.verdict == Verdict.UNSUPPORTED]
    return (
        all(claim.verdict != Verdict.CONTRADICTED for claim in cited)
        and all(claim.section != cited[0].section for claim in unsupported)
        and len(unsupported) <= MAX_UNSUPPORTED_SHARE * len(cited)
    )
