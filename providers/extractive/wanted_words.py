"""The words that an answer must be about: what each counts, and which others may stand for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from providers.extractive.asked_form import PARTICLES, AnswerForm, AskedForm
from providers.extractive.lexicon import RELATED
from providers.extractive.question_terms import Frequencies, text_pairs, word_keys
from providers.language_words import language_words
from providers.text import stem

COLLECTION_WIDE: Final = 0.4
"""Share of documents from which a word is what the whole collection is about: a passage need not repeat it."""
MOST_DOCUMENTS: Final = 0.6
"""The same for a word that is no name."""
MANY_DOCUMENTS: Final = 50
"""From so many on a word that most hold says nothing; of a few long ones each holds every common word."""
RELATED_CREDIT: Final = 0.75
GROUP_CREDIT: Final = 0.9
"""For another word of the same doing: who wrote it is its author."""
LEAST_WEIGHT: Final = 0.6
FREE: Final = frozenset(
    "free gratis kostenlos umsonst frei gratuit gratuitement gratuite gratuito gratuita grátis kosteloos".split()
)
"""Words of a price that are said of much else."""
COMPOUNDING: Final = ("de", "nl")
SHORTEST_PART: Final = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A word that an answer must be about, with the stems that may stand for it."""

    word: str
    key: str
    parts: frozenset[str]
    related: frozenset[str]
    group: frozenset[str]
    """Stems of the words that tell the same doing."""
    weight: float
    wide: bool
    named: bool
    compound: bool = False
    """Whether a part of it, or a longer word that ends with it, may stand for it: `Teller`, `Porzellanteller`."""

    def credit(self, keys: frozenset[str]) -> float:
        """1 if it is there, less for a related word, else 0."""
        if self.key in keys or (self.parts and self.parts <= keys):
            return 1.0
        if self.group & keys:
            return GROUP_CREDIT
        if self.key[0].isdigit() and any(key.startswith(self.key + ".") for key in keys):
            return 1.0
        if self.compound and any(
            (len(one) >= SHORTEST_PART and (self.key.endswith(one) or one.endswith(self.key)))
            or (one.startswith(self.key) and len(one) >= len(self.key) + SHORTEST_PART)
            for one in keys
        ):
            return RELATED_CREDIT
        return RELATED_CREDIT if self.related & keys else 0.0


def wanted_words(asked: AskedForm, known: Frequencies) -> Iterable[Wanted]:
    """The words of a question, each with its weight by how rare it is."""
    words_of = language_words(asked.language)
    counted = [
        known.weight(key)
        for word in asked.content
        for key in word_keys(word, asked.language)[:1]
        if key in known.counts
    ]
    usual = sum(counted) / len(counted) if counted else 1.0
    names = {key for name in asked.names for word in name.split() for key in word_keys(word, asked.language)}
    for word in asked.content:
        key, *parts = word_keys(word, asked.language)
        related = frozenset(RELATED.get(key, ())) if words_of.code == "en" else frozenset[str]()
        folded = word.casefold()
        group = frozenset[str]()
        for form, kind, others in _GROUPS:
            if asked.form in form and folded in words_of.tells[kind].first_words():
                group |= {stem(one, asked.language) for one in words_of.tells[others].first_words() - FREE}
        if asked.form is AnswerForm.SIZE and folded in words_of.tells["large"].first_words():
            continue
        if (
            asked.form is AnswerForm.PLACE
            and folded in words_of.tells["located"].first_words()
            and len(asked.content) > 1
        ):
            continue
        group |= {stem(one, asked.language) for one in words_of.synonyms.get(folded, ())}
        if words_of.code == "en" and folded.rpartition("-")[2] in PARTICLES:
            group |= {stem(folded.replace("-", ""), asked.language)}
        count = known.counts.get(key)
        named = key in names
        share = count / known.documents if count and known.whole_corpus and known.documents > 2 else 0.0
        wide = share >= (COLLECTION_WIDE if named else MOST_DOCUMENTS if known.documents >= MANY_DOCUMENTS else 1.0)
        compound = words_of.code in COMPOUNDING and len(key) >= SHORTEST_PART
        weight = max(known.weight(key) if count is not None or not known.whole_corpus else usual, LEAST_WEIGHT)
        yield Wanted(word, key, frozenset(parts), related, group, weight, wide, named, compound)
    if asked.form is AnswerForm.SIZE:
        stems = {stem(one, asked.language) for one in words_of.tells["large"].first_words()}
        yield Wanted("size", stem("size"), frozenset(), frozenset(), frozenset(stems), 1.5, wide=False, named=False)


_GROUPS: Final = (
    (frozenset({AnswerForm.AMOUNT, AnswerForm.MONEY}), "pay", "pay"),
    (frozenset({AnswerForm.AMOUNT, AnswerForm.MONEY}), "pay", "money"),
    (frozenset({AnswerForm.PERSON}), "makes", "makers"),
    (frozenset({AnswerForm.TIME}), "began", "began"),
)


def numbered_names(asked: AskedForm) -> frozenset[tuple[str, str]]:
    """A name and the number behind it, as the question has them: `SQLite 4`."""
    named = {key for name in asked.names for key in word_keys(name, asked.language)}
    found = text_pairs(asked.text, asked.language)
    return frozenset(pair for pair in found if pair[1][0].isdigit() and pair[0] in named)


_ENDINGS: Final = {"en": frozenset(("", "s", "es", "ed", "d", "e", "y", "ies", "ied", "'s"))}


def is_one_word(one: str, other: str, language: str) -> bool:
    """Whether two words are forms of one: equal but for an ending that makes no other word of it."""
    common = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common += 1
    rests = (one[common:], other[common:])
    endings = _ENDINGS.get(language)
    if endings is None:
        return max(map(len, rests)) <= 4
    return (
        all(rest in endings for rest in rests)
        or other.startswith(one + ".")
        or one in other.replace("-", "_").split("_")
    )
