"""A sentence taken apart for comparison: words, names, negations, quantities."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from providers.text import STOP_WORDS, stem
from providers.verification.quantities import Quantity, find_quantities
from providers.verification.wording import (
    BY,
    DIRECTED,
    EXCLUSIVE,
    GRAMMATICAL,
    HEDGES,
    NEGATIONS,
    NEGATIVE_PREFIXES,
    OBLIGATIONS,
    OPTIONS,
    PARTLY,
    PASSIVE,
    SPLITS,
    UNIVERSAL,
)

WORD: Final = re.compile(r"[^\W_]++(?:[._:/@#+'’-]++[^\W_]++)*+(?:\(\))?|[,;:()—–]")
LIMIT: Final = re.compile(
    r"(?:no|not) (?:more|less|fewer|later|earlier|longer) than\b|not (?:only|just)\b"
    r"|nothing (?:but|except|other than)\b",
    re.IGNORECASE,
)
"""Words that look like a denial and are none: a limit, or `only` in other words."""
ONLY: Final = re.compile(r"nothing (?:but|except|other than)\b", re.IGNORECASE)
NOT_ONLY: Final = re.compile(r"\bnot (?:only|just|merely|solely)\b", re.IGNORECASE)
INNER: Final = re.compile(r"[\d_.:/@#]|(?<=[a-z])[A-Z]")
SCOPE: Final = 4
"""Content words that a negation reaches."""
COMMON_ENDINGS: Final = (
    *("s", "ing", "tion", "sion", "ment", "ness", "ity", "ance", "ence", "ly", "ed", "ism", "ship", "ure", "age"),
    *("ung", "heit", "keit", "schaft", "ité", "dad", "ção", "ción", "zione", "tà", "heid"),
)
"""Endings of words that begin sentences and are no names."""
FUNCTION_WORDS: Final = (
    STOP_WORDS | HEDGES | OBLIGATIONS | OPTIONS | UNIVERSAL | PARTLY | PASSIVE | SPLITS | NEGATIONS
) - {"fails", "failed", "refuses", "refused", "proposed", "planned", "expected", "estimated", "required", "requires"}


@dataclass(frozen=True)
class Word:
    """A word of a statement."""

    text: str
    place: int
    """Its number among the words."""
    clause: int
    first: bool
    """Whether it begins a sentence, so that its capital letter says nothing."""
    language: str
    start: int = 0
    """Where it stands in the text."""
    limiting: bool = False
    """Whether it belongs to `no more than`, which denies nothing."""

    @cached_property
    def low(self) -> str:
        """In small letters, with a plain apostrophe."""
        return self.text.casefold().replace("’", "'").removesuffix("'s")

    @cached_property
    def stem(self) -> str:
        """Its stem."""
        return stem(self.low, self.language)

    @property
    def negation(self) -> bool:
        """Whether it denies."""
        return (self.low in NEGATIONS or self.low.endswith("n't")) and not self.limiting

    @property
    def content(self) -> bool:
        """Whether it says something by itself."""
        return (
            self.low not in FUNCTION_WORDS
            and not (self.language != "en" and self.low in GRAMMATICAL)
            and not self.text.isdecimal()
            and (len(self.text) > 1)
        )

    @property
    def name(self) -> bool:
        """Whether it is surely a name: a capital inside a sentence, an acronym, an identifier."""
        if not self.content or self.text[0].isdigit():
            return False
        if INNER.search(self.text) or (self.text.isupper() and len(self.text) > 1):
            return True
        return self.text[0].isupper() and not self.first and self.language != "de"

    @property
    def may_be_name(self) -> bool:
        """Whether it begins a sentence with a capital and has no ending that marks a common word."""
        return self.first and self.content and self.text[0].isupper() and not self.low.endswith(COMMON_ENDINGS)


class Statement:
    """A claim, or a sentence of a passage."""

    def __init__(self, text: str, language: str = "en") -> None:
        self.text = text
        self.language = language

    @cached_property
    def words(self) -> list[Word]:
        """All words in order."""
        found: list[Word] = []
        clause = 0
        for match in WORD.finditer(self.text):
            written = match[0]
            if written in ",;:()—–":
                clause += 1
                continue
            before = self.text[: match.start()].rstrip(" \"'“”‘’(*_`")
            first = not before or before[-1] in ".!?\n|"
            if written.casefold() in SPLITS:
                clause += 1
            limiting = LIMIT.match(self.text, match.start()) is not None
            found.append(Word(written, len(found), clause, first, self.language, match.start(), limiting))
        return found

    @cached_property
    def content(self) -> list[Word]:
        """The words that say something."""
        return [word for word in self.words if word.content]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Their stems."""
        return frozenset(word.stem for word in self.content)

    @cached_property
    def low_words(self) -> frozenset[str]:
        """Every word in small letters."""
        return frozenset(word.low for word in self.words)

    @cached_property
    def names(self) -> dict[str, Word]:
        """What is surely a name, by its small letters."""
        spans = [(quantity.start, quantity.end) for quantity in self.quantities]
        units = {place for start, end in spans for place in range(start, end)}
        return {word.low: word for word in self.words if word.name and word.start not in units}

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Numbers with their units."""
        return find_quantities(self.text, self.language)

    @cached_property
    def clauses(self) -> dict[int, list[Word]]:
        """The words of each part of the sentence."""
        parts: dict[int, list[Word]] = {}
        for word in self.words:
            parts.setdefault(word.clause, []).append(word)
        return parts

    def clause_at(self, offset: int) -> int:
        """The part of the sentence at a place of the text."""
        clause = 0
        for match in WORD.finditer(self.text):
            if match.start() > offset:
                break
            if match[0] in ",;:()—–" or match[0].casefold() in SPLITS:
                clause += 1
        return clause

    @cached_property
    def negated(self) -> frozenset[str]:
        """The stems that a negation reaches: the next few content words of its part of the sentence."""
        return frozenset(self._negated())

    def _negated(self) -> Iterator[str]:
        for word in self.words:
            if not word.negation:
                continue
            reach = [w for w in self.words[word.place + 1 :] if w.clause == word.clause and w.content][:SCOPE]
            behind = [w for w in self.words[: word.place] if w.clause == word.clause and w.content][-1:]
            yield from (other.stem for other in (reach or behind))

    @cached_property
    def negative(self) -> bool:
        """Whether it has a negation at all."""
        return any(word.negation for word in self.words)

    @cached_property
    def exclusive(self) -> bool:
        """Whether it says that something is so of nothing else."""
        return bool(self.low_words & EXCLUSIVE) or ONLY.search(self.text) is not None

    def directed(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Each word that relates what is before it to what is behind: (stem, before, behind); passives turned."""
        for word in self.words:
            if word.stem not in DIRECTED:
                continue
            before = [w.stem for w in self.words[: word.place] if w.content and w.stem not in DIRECTED][-3:]
            behind = [w.stem for w in self.words[word.place + 1 :] if w.content and w.stem not in DIRECTED][:3]
            near = [w.low for w in self.words[max(0, word.place - 2) : word.place]]
            after = [w.low for w in self.words[word.place + 1 : word.place + 3]]
            if set(near) & PASSIVE and set(after) & BY:
                before, behind = behind, before
            if before and behind:
                yield word.stem, before, behind


def negative_form(word: str, stems: frozenset[str], language: str) -> str | None:
    """The stem that a word denies by its prefix (`unsupported` denies `support`), if that stem is among `stems`."""
    for prefix in NEGATIVE_PREFIXES:
        if word.startswith(prefix) and len(word) > len(prefix) + 3:
            rest = stem(word[len(prefix) :], language)
            if rest in stems:
                return rest
    return None
