"""What rules can put right in a claim: one word or amount for another, or the sentence of its source in its place.

A repair is only proposed where `check` calls the claim supported with it. Nothing is made up: every word that is put in
stands in the passages.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from contracts.evidence import Verdict
from providers.sentences import sentence_spans
from providers.verification.alignment import LONGEST, Sort, difference
from providers.verification.clauses import POINTS_BACK
from providers.verification.quantities import Comparison, compare
from providers.verification.rules_checker import NEAR, CitedText, check
from providers.verification.statement import Statement

MOST_TRIED: Final = 12
SHORTEST_SENTENCE: Final = 20
LONGEST_SENTENCE: Final = 400
SAME_QUOTE: Final = 0.6
"""Share of common words from which on a quotation is meant to be a passage."""
LAYOUT: Final = re.compile(r"[|\[\]<>`#*_\\\n]")
WORD: Final = re.compile(r"\w+")
FIGURE: Final = re.compile(r"\d[\d.,]*\d|\d")


def find_exchange(
    claim: str, passages: Sequence[str], about: Sequence[str] = (), language: str = "en"
) -> tuple[str, str] | None:
    """Words of the claim and those of its passages that belong in their place; None where no exchange mends it."""
    tried = dict.fromkeys(_candidates(claim, passages, about, language))
    for ours, theirs in list(tried)[:MOST_TRIED]:
        new = exchange(claim, ours, theirs)
        if new != claim and check(new, passages, about, language).verdict is Verdict.SUPPORTED:
            return ours, theirs
    return None


def exchange(text: str, ours: str, theirs: str) -> str:
    """The text with the words once exchanged, in the case of the first letter that stood there."""
    place = text.find(ours) if ours else -1
    while place >= 0 and (_in_word(text[place - 1 : place]) or _in_word(text[place + len(ours) :][:1])):
        place = text.find(ours, place + 1)
    if place < 0:
        return text
    put = theirs[:1].upper() + theirs[1:] if ours[:1].isupper() and not ours.isupper() else theirs
    before, behind = text[:place], text[place + len(ours) :]
    return before + put + behind if put else before.rstrip() + behind


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _candidates(claim: str, passages: Sequence[str], about: Sequence[str], language: str) -> Iterator[tuple[str, str]]:
    said, evidence = Statement(claim, language), CitedText.of(passages, about, language)
    for sentence in evidence.sentences[:LONGEST]:
        found = difference(said, sentence)
        if found.share < 0.5:
            continue
        for theirs, ours in found.replaced:
            for sort in Sort:
                old, new = ([part for part in parts if part.sort is sort] for parts in (theirs, ours))
                if len(old) == len(new) == 1:
                    yield new[0].text, old[0].text
        for part in found.added:
            if part.key == "(not)":
                yield part.text, ""
    same = (Comparison.EXACT, Comparison.APPROXIMATE)
    there = evidence.whole.quantities[:LONGEST]
    for quantity in said.quantities[:LONGEST]:
        if any(compare(quantity, other) in same for other in there):
            continue
        for other in there:
            if other.unit == quantity.unit and (quantity.unit or other.noun == quantity.noun):
                yield quantity.raw, other.raw


def find_sentence(claim: str, passages: Sequence[str], language: str = "en") -> tuple[int, str] | None:
    """The number of the passage and its sentence that a claim is a version of, fit to stand in its place."""
    said = Statement(claim, language)
    best: tuple[float, int, str] | None = None
    for number, passage in enumerate(passages):
        for start, end in sentence_spans(passage):
            sentence = passage[start:end].strip()
            words = WORD.findall(sentence)
            fit = SHORTEST_SENTENCE <= len(sentence) <= LONGEST_SENTENCE and not LAYOUT.search(sentence)
            if not fit or words[0].casefold() in POINTS_BACK or not sentence[0].isupper() or sentence[-1] not in ".!":
                continue
            kept = difference(said, Statement(sentence, language)).kept
            if kept >= NEAR and (best is None or kept > best[0]):
                best = kept, number, sentence
    return best[1:] if best else None


def find_quoted(quotation: str, passages: Sequence[str]) -> int | None:
    """The number of the passage that a quotation with other words is meant to be."""
    said = WORD.findall(quotation.casefold())
    rated = [
        (SequenceMatcher(None, said, WORD.findall(passage.casefold()), autojunk=False).ratio(), -number)
        for number, passage in enumerate(passages)
    ]
    likeness, number = max(rated, default=(0.0, 0))
    return -number if likeness >= SAME_QUOTE else None


def stands_nowhere(claim: str, texts: Iterable[str], language: str = "en") -> bool:
    """Whether a claim names a name or a figure that is in none of these texts."""
    said = Statement(claim, language)
    figures = {found[0] for quantity in said.quantities if (found := FIGURE.search(quantity.raw))}
    missing = {word.text for word in said.names.values()} | figures
    for text in texts:
        low = text.casefold()
        missing = {word for word in missing if word.casefold() not in low}
    return bool(missing)
