"""Finds the passages that answer a question in the form that it asks for; finds none where there is none."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from providers.extractive.answer_evidence import AnswerEvidence, Piece, evidence
from providers.extractive.asked_form import MEASURES, PARTICLES, AnswerForm, AskedForm
from providers.extractive.lexicon import ASIDE_OPENING, HYPOTHETICAL, OF_THE_TEXT, PAST, RELATED
from providers.extractive.question_terms import PARTS, Frequencies, key_words, text_keys, text_pairs, word_keys
from providers.extractive.sentence_places import HISTORY
from providers.extractive.sentence_places import NUMBERING as _NUMBERING
from providers.extractive.sources_read import Reading
from providers.extractive.text_structure import LABEL_LENGTH, Structure, TextBlock, TextBlockKind, is_foreign
from providers.language_words import language_words
from providers.text import stem

COLLECTION_WIDE: Final = 0.4
"""Share of documents from which a word is what the whole collection is about: a passage need not repeat it."""
MOST_DOCUMENTS: Final = 0.6
"""The same for a word that is no name."""
MANY_DOCUMENTS: Final = 50
"""From so many on a word that most hold says nothing; of a few long ones each holds every common word."""
LABEL_CREDIT: Final = 0.95
ENTRY_CREDIT: Final = 0.8
"""For what an entry said before, under the same term line."""
HEADING_CREDIT: Final = 0.85
OUTER_CREDIT: Final = 0.7
BESIDE_CREDIT: Final = 0.6
WIDE_CREDIT: Final = 0.9
RELATED_CREDIT: Final = 0.75
GROUP_CREDIT: Final = 0.9
"""For another word of the same doing: who wrote it is its author."""
OTHER_WORD_CREDIT: Final = 0.6
"""For a word that only shares its stem: `porting` is no `port`."""
NAMED_CREDIT: Final = 0.7
HEAVY: Final = 0.25
"""Share of a question's weight from which a word must be there."""
LEAST_COVERAGE: Final = 0.72
LEAST_EVIDENCE: Final = 0.55
LEAST_STRENGTH: Final = 0.72
LEAST_STRENGTHS: Final = {AnswerForm.STEPS: 0.84, AnswerForm.YES_NO: 0.8}
"""More where nearly every sentence has the form."""
REPLY_STRENGTH: Final = 1.2
SAME_QUESTION: Final = 0.8
"""Share of the weight, and of the words, that a question of a document must have in common with the one asked."""
LEAST_WEIGHT: Final = 0.6
LONGEST: Final = 1_200
"""Characters of a sentence that can be quoted."""
COMPOUNDING: Final = ("de", "nl")
SHORTEST_PART: Final = 4
COUNTED_COVERAGE: Final = 0.58
"""Coverage that is enough where the number stands right beside what is counted."""
LOOKED_AT: Final = 0.5
SEEDS_OF_A_DOCUMENT: Final = 6
SIDES: Final = ("one", "other")
LEAST_OPPOSED: Final = 0.68
OPPOSED_STRENGTH: Final = 0.6
"""What a sentence about one side of a difference has for opening with it."""
NO_PROSE: Final = re.compile(r"\]\(|[-=~_]{6}|\(\d++\): ")
"""What rules, links and lists of changes have in them."""
FAR: Final = 14
"""Words from which a figure is hardly said of a subject any more."""
POINTED: Final = MEASURES | {AnswerForm.VALUE, AnswerForm.PERSON, AnswerForm.TIME, AnswerForm.PLACE}
SPACIOUS: Final = frozenset(
    {
        AnswerForm.STEPS,
        AnswerForm.REASON,
        AnswerForm.PURPOSE,
        AnswerForm.MECHANISM,
        AnswerForm.CONSEQUENCE,
        AnswerForm.DIFFERENCE,
        AnswerForm.YES_NO,
        AnswerForm.TOPIC,
    }
)
"""Forms whose answer may take a whole paragraph."""


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


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """A sentence of a source that answers, and how surely (0 to about 1)."""

    reading: Reading
    index: int
    strength: float
    coverage: float
    evidence: AnswerEvidence
    leans_on: int
    """First sentence that it cannot be understood without."""


@dataclass
class AnswerSearch:
    """One question against the sources that were read."""

    asked: AskedForm
    wanted: tuple[Wanted, ...]
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Neighbours that must stand side by side: a name and its number."""
    _seen: dict[tuple[str, int], FoundAnswer | None] = field(default_factory=dict)
    _replied: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, asked: AskedForm, known: Frequencies) -> "AnswerSearch":
        """Weigh the words of a question by how rare they are."""
        return cls(asked, tuple(_wanted(asked, known)), _numbered(asked))

    def find(self, every: Iterable[Reading]) -> list[FoundAnswer]:
        """All sentences that answer, the surest first; ties by place."""
        every = list(every)
        found = [answer for reading in every for answer in (*self._replies(reading), *self._opposed(reading))]
        known = {(one.reading.source.id, one.index) for one in found}
        found += [
            one
            for reading in every
            for index in range(len(reading.document.sentences))
            if (reading.source.id, index) not in known and (one := self.of_sentence(reading, index)) is not None
        ]
        return sorted(found, key=lambda one: (-round(one.strength, 6), one.reading.source.id, one.index))

    def _replies(self, reading: Reading) -> Iterable[FoundAnswer]:
        """The first sentences after a question of the document that is the very question asked."""
        document = reading.document
        for index in range(len(document.sentences) - 1):
            sentence = document.sentences[index]
            if document.text[sentence.end - 1] != "?" or document.text[document.sentences[index + 1].end - 1] == "?":
                continue
            if self._same_question(document.of(sentence), document.language):
                made = FoundAnswer(reading, index + 1, REPLY_STRENGTH, 1.0, AnswerEvidence(1.0), index + 1)
                self._seen[(reading.source.id, index + 1)] = made
                yield made

    def _opposed(self, reading: Reading) -> Iterable[FoundAnswer]:
        """For each side of a difference the sentence that opens with it and says nothing of the other."""
        sides = self._sides
        if len(sides) != len(SIDES):
            return
        document, best = reading.document, dict[str, FoundAnswer]()
        for index in range(len(document.sentences)):
            for one, other in (sides, sides[::-1]):
                made = self._speaks_of(reading, index, one, other)
                if made is not None and (one.key not in best or made.strength > best[one.key].strength):
                    best[one.key] = made
        if len(best) == len(SIDES) and len({document.block_of(one.index).path[:-1] for one in best.values()}) == 1:
            for made in best.values():
                self._seen[(reading.source.id, made.index)] = made
                yield made

    def _speaks_of(self, reading: Reading, index: int, one: Wanted, other: Wanted) -> FoundAnswer | None:
        document = reading.document
        traits, block = document.traits(index), document.block_of(index)
        if block.kind in (TextBlockKind.CODE, TextBlockKind.ROW) or not traits.quotable or other.credit(traits.keys) == 1.0:
            return None
        around = _Around(reading, index)
        entry = one.credit(around.label) == 1.0 and around.labelled and other.credit(around.label) < 1.0
        if not entry and one.credit(traits.opening) < 1.0:
            return None
        rest = [word for word in self.wanted if word.key not in (one.key, other.key)]
        total = sum(word.weight for word in (one, *rest))
        covered = (one.weight + sum(word.weight * self._credit(word, around) for word in rest)) / total
        if covered < LEAST_COVERAGE:
            return None
        strength = OPPOSED_STRENGTH + (0.1 if entry else 0.0) + self._extras(reading, index, around, Piece.of(document.of(document.sentences[index])), document.of(document.sentences[index]))
        if strength < LEAST_OPPOSED:
            return None
        return FoundAnswer(reading, index, strength, covered, AnswerEvidence(1.0), index)

    @cached_property
    def _sides(self) -> tuple[Wanted, ...]:
        """The words that tell the two sides of a difference apart."""
        by_word = {one.word: one for one in self.wanted}
        return tuple(by_word[side] for side in self.asked.sides or () if side in by_word)

    def _same_question(self, text: str, language: str) -> bool:
        keys = {key for word in key_words(text, language) for key in word_keys(word, language)[:1]}
        if not keys or not self.wanted:
            return False
        asked = {one.key for one in self.wanted}
        total = sum(one.weight for one in self.wanted)
        held = sum(one.weight * (1.0 if one.wide else one.credit(frozenset(keys))) for one in self.wanted) / total
        return held >= SAME_QUESTION and len(keys & asked) >= SAME_QUESTION * len(
            keys - {one.key for one in self.wanted if one.wide}
        )

    def of_sentence(self, reading: Reading, index: int) -> FoundAnswer | None:
        """The answer that a sentence gives, or None."""
        place = (reading.source.id, index)
        if place not in self._seen:
            self._seen[place] = self._look(reading, index)
        return self._seen[place]

    def strength_of(self, reading: Reading, start: int, end: int) -> float:
        """How surely a range of characters answers: the best of its sentences, 0 where none does."""
        document = reading.document
        if reading.source.id not in self._replied:
            self._replied.add(reading.source.id)
            _ = [*self._replies(reading), *self._opposed(reading)]
        inside = [
            answer
            for index, sentence in enumerate(document.sentences)
            if start <= sentence.start
            and sentence.end <= end
            and (answer := self.of_sentence(reading, index)) is not None
        ]
        return max((answer.strength for answer in inside), default=0.0)

    def _look(self, reading: Reading, index: int) -> FoundAnswer | None:
        if not self.wanted:
            return None
        document = reading.document
        block = document.block_of(index)
        text = document.of(document.sentences[index])
        if block.kind is TextBlockKind.CODE or len(text) > LONGEST or is_foreign(text) or NO_PROSE.search(text):
            return None
        around = _Around(reading, index, passage=self.asked.form in SPACIOUS)
        held_by = [self._credit(one, around) for one in self.wanted]
        total = sum(one.weight for one in self.wanted)
        covered = sum(one.weight * credit for one, credit in zip(self.wanted, held_by, strict=True)) / total
        if covered < LOOKED_AT:
            return None
        piece = Piece.of(text, row=block.kind is TextBlockKind.ROW, label=around.labelled)
        held_by = [
            min(credit, self._surface(one, piece, around)) for one, credit in zip(self.wanted, held_by, strict=True)
        ]
        covered = sum(one.weight * credit for one, credit in zip(self.wanted, held_by, strict=True)) / total
        here = around.keys | around.label | (around.beside if self.asked.form in SPACIOUS else frozenset())
        if any(one.credit(here) < 1.0 for one in self._sides):
            return None
        counted = self.asked.form is AnswerForm.COUNT and covered >= COUNTED_COVERAGE and len(self.wanted) > 2
        if not counted and (covered < LEAST_COVERAGE or self._lacks(held_by, total, around)):
            return None
        if around.labelled and self.asked.form is AnswerForm.DEFINITION:
            piece = replace(
                piece, label=all(one.credit(around.label) for one in self.wanted) and around.label_fits(self)
            )
        if self.asked.form is AnswerForm.DEFINITION and not around.labelled:
            piece = replace(piece, lead=around.leads(self))
        held = self._evidence(piece, around)
        if self.asked.form is AnswerForm.STEPS and held.strength and _commands_follow(document, index):
            held = replace(held, strength=1.0)
        if held.strength < (LEAST_EVIDENCE if covered >= LEAST_COVERAGE else 1.0):
            return None
        strength = 0.55 * covered + 0.3 * held.strength + self._extras(reading, index, around, piece, text)
        if strength < LEAST_STRENGTHS.get(self.asked.form, LEAST_STRENGTH):
            return None
        return FoundAnswer(reading, index, strength, covered, held, around.first)

    def _evidence(self, piece: Piece, around: "_Around") -> AnswerEvidence:
        """The form as the sentence holds it, weaker where it stands far from what it is to be said of."""
        held = evidence(self.asked, piece, around.names_of)
        if self.asked.form not in POINTED or piece.row or not held.places:
            return held
        keys = {one.key for one in self.wanted}
        near = [place for place, token in enumerate(piece.tokens) if keys & set(word_keys(token, self.asked.language))]
        far = FAR if self.asked.form is not AnswerForm.VALUE else FAR // 2
        if near and not any(abs(place - beside) <= far for place in held.places for beside in near):
            return replace(held, strength=0.7 * held.strength)
        return held

    def _credit(self, one: Wanted, around: "_Around") -> float:
        if (own := one.credit(around.keys)) == 1.0:
            return 1.0
        best = max(
            own,
            LABEL_CREDIT * one.credit(around.label),
            HEADING_CREDIT * one.credit(around.heading),
            OUTER_CREDIT * one.credit(around.outer),
            BESIDE_CREDIT * one.credit(around.beside),
            ENTRY_CREDIT * one.credit(around.entry),
        )
        free = one.wide and self._narrower and (not one.named or around.reading.document.mentions(one.word))
        return max(best, WIDE_CREDIT) if free else best

    @cached_property
    def _phrases(self) -> frozenset[tuple[str, str]]:
        """Neighbouring words of the question that both carry meaning."""
        keys = {one.key for one in self.wanted}.union(*(one.parts for one in self.wanted))
        return frozenset(
            pair for pair in text_pairs(self.asked.text, self.asked.language) if pair[0] in keys and pair[1] in keys
        )

    @property
    def _narrower(self) -> bool:
        """Whether there is a word besides those that the whole collection is about."""
        return not all(one.wide or one.group for one in self.wanted)

    def _surface(self, one: Wanted, piece: Piece, around: "_Around") -> float:
        """At most what a word counts that is no form of the one asked for but shares its stem."""
        if one.wide or one.key not in around.keys:
            return 1.0
        same = [token for token in piece.tokens if one.key in word_keys(token, self.asked.language)]
        folded = one.word.casefold()
        return (
            1.0
            if not same
            or any(_one_word(folded, part, self.asked.language) for token in same for part in (token, *PARTS.split(token)))
            else OTHER_WORD_CREDIT
        )

    def _lacks(self, held_by: Sequence[float], total: float, around: "_Around") -> bool:
        """Whether a name, or a word of weight, is not there."""
        if not all(self._side_by_side(pair, around.pairs) for pair in self.pairs):
            return True
        return any(
            (one.named and not one.wide and credit < NAMED_CREDIT) or (one.weight >= HEAVY * total and credit < 0.5)
            for one, credit in zip(self.wanted, held_by, strict=True)
        )

    def _side_by_side(self, pair: tuple[str, str], pairs: frozenset[tuple[str, str]]) -> bool:
        """Whether a name and its number stand together, or the number behind the word for a version."""
        versions = language_words(self.asked.language).tells["version"].first_words()
        return pair in pairs or any((stem(word, self.asked.language), pair[1]) in pairs for word in versions)

    def _extras(self, reading: Reading, index: int, around: "_Around", piece: Piece, text: str) -> float:
        """What speaks for or against a sentence besides what it holds."""
        document = reading.document
        asked = {one.key for one in self.wanted}
        found = 0.05 if asked & document.traits(index).opening else 0.0
        share = sum(bool(set(word_keys(token, document.language)) & asked) for token in piece.tokens)
        found += 0.08 * min(1.0, 3 * share / max(6, len(piece.tokens)))
        total = sum(one.weight for one in self.wanted)
        near = sum(one.weight * one.credit(around.heading | around.label) for one in self.wanted) / total
        found += 0.07 * near * around.heading_precision(asked)
        phrases = self._phrases
        if phrases:
            side_by_side = around.pairs | around.label_pairs
            share_held = len(phrases & side_by_side) / len(phrases)
            found += 0.1 * share_held - (0.06 if not share_held else 0.0)
        hints = [
            hint.score for hint in reading.source.sections if hint.start <= document.sentences[index].start < hint.end
        ]
        found += 0.04 if hints else 0.0
        found -= 0.08 if ASIDE_OPENING.match(text) or OF_THE_TEXT.search(text) or HYPOTHETICAL.search(text) else 0.0
        found -= 0.1 if PAST.search(text) else 0.0
        if self.asked.form is not AnswerForm.TIME:
            found -= 0.12 if any(HISTORY.search(title) for title in (*around.path, reading.source.title)) else 0.0
        return found


@dataclass
class _Around:
    """What stands around a sentence: its label, headings, title and the sentence before it."""

    reading: Reading
    index: int
    passage: bool = False
    """Whether the whole paragraph counts, not only the sentence before."""

    def __post_init__(self) -> None:
        document = self.reading.document
        self.block = document.block_of(self.index)
        self.path = self.block.path
        self.keys = document.traits(self.index).keys
        self.label_text = _label_of(document, self.block)
        self.labelled = bool(self.label_text) and _opens_block(document, self.index)
        self.label = text_keys(self.label_text, document.language) if self.label_text else frozenset()
        inner = self.path[-1] if self.path else self.reading.source.title
        self.inner = inner
        self.heading = document.keys_of(inner)
        self.outer = document.context_keys[self.path] | document.keys_of(self.reading.source.title)
        self.first = self.index
        self.beside = self.entry = frozenset[str]()
        if not _opens_block(document, self.index) and self.block.kind is not TextBlockKind.ROW:
            self.beside = document.traits(self.index - 1).keys
        if self.label_text and self.block.kind is not TextBlockKind.ROW:
            self.entry = frozenset[str]().union(*(document.traits(one).keys for one in _before(document, self.index)))
        if self.passage:
            self.beside = document.block_keys(document.sentences[self.index].block)

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbouring stems of the sentence and its headings."""
        document = self.reading.document
        above = " \n ".join((*self.path, self.reading.source.title))
        return document.traits(self.index).pairs | text_pairs(above, document.language)

    @property
    def label_pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbouring stems of the term line."""
        return text_pairs(self.label_text, self.reading.document.language)

    def names_of(self, word: str) -> bool:
        """Whether a capitalised word is a name: the document never writes it small."""
        return word.casefold() not in self.reading.document.small_words

    def heading_precision(self, asked: set[str]) -> float:
        """Share of the heading's words that the question has."""
        keys = self.label or self.heading
        return len(keys & asked) / len(keys) if keys else 0.0

    def leads(self, search: AnswerSearch) -> bool:
        """Whether it opens a section whose heading names what is asked for, and no more."""
        if not _opens_block(self.reading.document, self.index) or not self.path:
            return False
        number = self.reading.document.sentences[self.index].block
        before = self.reading.document.blocks[number - 1] if number else None
        heading = self.reading.document.keys_of(_NUMBERING.sub("", self.inner))
        asked = {one.key for one in search.wanted}.union(*(one.parts for one in search.wanted))
        opens = before is None or before.section != self.block.section
        return opens and all(one.credit(heading) for one in search.wanted) and len(heading - asked) <= 1

    def label_fits(self, search: AnswerSearch) -> bool:
        """Whether the term line says little more than what is asked for."""
        asked = {one.key for one in search.wanted}.union(*(one.parts for one in search.wanted))
        own = self.reading.document.keys_of(self.label_text.partition(" (")[0])
        return len(own - asked) <= 1 and not any("_" in word for word in self.label_text.split())


def _wanted(asked: AskedForm, known: Frequencies) -> Iterable[Wanted]:
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
                group |= {stem(one, asked.language) for one in words_of.tells[others].first_words()}
        if asked.form is AnswerForm.SIZE and folded in words_of.tells["large"].first_words():
            continue
        if asked.form is AnswerForm.PLACE and folded in words_of.tells["located"].first_words() and len(asked.content) > 1:
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
    (frozenset({AnswerForm.PERSON}), "makes", "makers"),
    (frozenset({AnswerForm.TIME}), "began", "began"),
)


def _numbered(asked: AskedForm) -> frozenset[tuple[str, str]]:
    """A name and the number behind it, as the question has them: `SQLite 4`."""
    named = {key for name in asked.names for key in word_keys(name, asked.language)}
    found = text_pairs(asked.text, asked.language)
    return frozenset(pair for pair in found if pair[1][0].isdigit() and pair[0] in named)


def _label_of(document: Structure, block: TextBlock) -> str:
    return document.text[block.label : block.label + LABEL_LENGTH].split("\n", 1)[0] if block.label is not None else ""


def _commands_follow(document: Structure, index: int) -> bool:
    """Whether commands stand right behind the paragraph of a sentence."""
    own = document.sentences[index].block
    following = document.blocks[own + 1 : own + 2]
    return bool(following) and following[0].kind is TextBlockKind.CODE and following[0].section == document.blocks[own].section


def _before(document: Structure, index: int) -> range:
    """The sentences of the same block before one."""
    first = index
    while first and document.sentences[first - 1].block == document.sentences[index].block:
        first -= 1
    return range(first, index)


def _opens_block(document: Structure, index: int) -> bool:
    return index == 0 or document.sentences[index - 1].block != document.sentences[index].block


_ENDINGS: Final = {"en": frozenset(("", "s", "es", "ed", "d", "e", "y", "ies", "ied", "'s", "er"))}


def _one_word(one: str, other: str, language: str) -> bool:
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
