"""Finds the passages that answer a question in the form that it asks for; finds none where there is none."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from providers.extractive.answer_evidence import DONE, AnswerEvidence, Piece, evidence
from providers.extractive.asked_form import MEASURES, OF_A_NAME, AnswerForm, AskedForm, questions_of, read_asked
from providers.extractive.lexicon import ASIDE_OPENING, HYPOTHETICAL, OF_THE_TEXT, PAST
from providers.extractive.question_terms import PARTS, Frequencies, text_pairs, word_keys
from providers.extractive.sentence_context import SentenceContext, commands_follow, list_follows, row_under_header
from providers.extractive.sentence_places import HISTORY, NUMBERING
from providers.extractive.sources_read import Reading
from providers.extractive.text_structure import Structure, TextBlockKind, is_foreign
from providers.extractive.wanted_words import Wanted, is_one_word, numbered_names, wanted_words
from providers.language_words import fold, language_words
from providers.text import stem

LABEL_CREDIT: Final = 0.95
ENTRY_CREDIT: Final = 0.8
"""For what an entry said before, under the same term line."""
SUBJECT_CREDIT: Final = 0.95
"""For what a pronoun at the head of the sentence stands for."""
HEADING_CREDIT: Final = 0.85
OUTER_CREDIT: Final = 0.7
BESIDE_CREDIT: Final = 0.6
WIDE_CREDIT: Final = 0.9
OTHER_WORD_CREDIT: Final = 0.6
"""For a word that only shares its stem: `porting` is no `port`."""
NAMED_CREDIT: Final = 0.7
HEAVY: Final = 0.25
"""Share of a question's weight from which a word must be there."""
LEAST_COVERAGE: Final = 0.72
LEAST_COVERAGES: Final = {AnswerForm.CHOICE: 0.81}
LEAST_EVIDENCE: Final = 0.55
LEAST_STRENGTH: Final = 0.72
LEAST_STRENGTHS: Final = {
    AnswerForm.STEPS: 0.84,
    AnswerForm.YES_NO: 0.77,
    AnswerForm.REASON: 0.78,
    AnswerForm.DIFFERENCE: 0.78,
}
"""More where nearly every sentence has the form."""
LEAST_WEAK_STRENGTHS: Final = {
    AnswerForm.STEPS: 0.78,
    AnswerForm.YES_NO: 0.8,
    AnswerForm.CHOICE: 0.76,
    AnswerForm.PERSON: 0.76,
    AnswerForm.ITEMS: 0.9,
    AnswerForm.DIFFERENCE: 0.85,
    AnswerForm.REASON: 0.9,
}
"""The same where a sentence has the form by a weak sign alone."""
CERTAIN: Final = 0.8
"""Evidence from which on a sign is no weak one."""
REPLY_STRENGTH: Final = 1.2
SAME_QUESTION: Final = 0.8
"""Share of the weight of the question asked that a question of a document must have."""
NO_OTHER_QUESTION: Final = 0.65
"""Share of the words of a question of a document that the question asked must have."""
LONGEST: Final = 1_200
"""Characters of a sentence that can be quoted."""
COUNTED_COVERAGE: Final = 0.58
"""Coverage that is enough where the number stands right beside what is counted."""
MANY_WIDE: Final = 2
LOOKED_AT: Final = 0.5
SIDES: Final = ("one", "other")
LEAST_OPPOSED: Final = 0.68
OPPOSED_STRENGTH: Final = 0.6
"""What a sentence about one side of a difference has for opening with it."""
NO_PROSE: Final = re.compile(r"\]\(|[-=~_]{6}|\(\d++\): ")
"""What rules, links and lists of changes have in them."""
ASKER: Final = {
    "en": re.compile(r"\W{0,3}I(?:['’]\w{1,3})?\s"),
    "de": re.compile(r"\W{0,3}Ich\s"),
    "fr": re.compile(r"\W{0,3}J(?:e\s|['’])"),
    "nl": re.compile(r"\W{0,3}Ik\s"),
}
"""How a sentence opens in which somebody tells what happened to him: the question of another, or a memory."""
MANUAL_PAGE: Final = re.compile(r"\w\(\d[a-z]?\)")
MOST_MANUAL_PAGES: Final = 3
"""Names of manual pages from which on a sentence is a list of where else to look."""
FAR: Final = 14
"""Words from which a figure is hardly said of a subject any more."""
POINTED: Final = MEASURES | {AnswerForm.VALUE, AnswerForm.PERSON, AnswerForm.TIME, AnswerForm.PLACE}
IN_UNITS: Final = frozenset({AnswerForm.AMOUNT, AnswerForm.MONEY, AnswerForm.SIZE, AnswerForm.DURATION})
"""Forms whose unit the header of a table may say for all of its rows."""
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


LONGEST_ENTRY: Final = 2_500
"""Characters of a page that answers its only question; a longer one is an essay that opens with it."""
HEADED: Final = frozenset(
    {AnswerForm.STEPS, AnswerForm.REASON, AnswerForm.DIFFERENCE, AnswerForm.CONSEQUENCE, AnswerForm.MECHANISM}
)
"""Forms that a heading asks for by its opening words, without a question mark."""


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
    reply: bool = False
    """Whether it opens the section under a heading that is the very question asked."""


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
        return cls(asked, tuple(wanted_words(asked, known)), numbered_names(asked))

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
        headed = [
            (index, title)
            for index, title in _first_sentences(document)
            if "?" in title or self._asks_alike(title, document.language)
        ]
        for index, title in headed if len(headed) > 1 or len(document.text) <= LONGEST_ENTRY else ():
            if any(self._same_question(one, document.language) for one in questions_of(title)):
                made = FoundAnswer(reading, index, REPLY_STRENGTH, 1.0, AnswerEvidence(1.0), index, reply=True)
                self._seen[(reading.source.id, index)] = made
                yield made
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
        if (
            block.kind in (TextBlockKind.CODE, TextBlockKind.ROW)
            or not traits.quotable
            or other.credit(traits.keys) == 1.0
        ):
            return None
        around = SentenceContext(reading, index)
        entry = one.credit(around.label) == 1.0 and around.labelled and other.credit(around.label) < 1.0
        if not entry and one.credit(traits.opening) < 1.0:
            return None
        rest = [word for word in self.wanted if word.key not in (one.key, other.key)]
        total = sum(word.weight for word in (one, *rest))
        covered = (one.weight + sum(word.weight * self._credit(word, around) for word in rest)) / total
        if covered < LEAST_COVERAGE:
            return None
        strength = (
            OPPOSED_STRENGTH
            + (0.1 if entry else 0.0)
            + self._extras(
                reading,
                index,
                around,
                Piece.of(document.of(document.sentences[index])),
                document.of(document.sentences[index]),
            )
        )
        if strength < LEAST_OPPOSED:
            return None
        return FoundAnswer(reading, index, strength, covered, AnswerEvidence(1.0), index)

    @cached_property
    def _sides(self) -> tuple[Wanted, ...]:
        """The words that tell the two sides of a difference apart."""
        by_word = {one.word: one for one in self.wanted}
        return tuple(by_word[side] for side in self.asked.sides or () if side in by_word)

    def _asks_alike(self, title: str, language: str) -> bool:
        """Whether a heading without a question mark begins as the question does: `How to prune old backups`."""
        return self.asked.form in HEADED and read_asked(title, language).form is self.asked.form

    def _same_question(self, text: str, language: str) -> bool:
        given = read_asked(text, language)
        keys = {key for word in given.content for key in word_keys(word, language)[:1]}
        if not keys or not self.wanted:
            return False
        form = given.form
        if form is not self.asked.form and (form in POINTED or self.asked.form in POINTED):
            return False
        total = sum(one.weight for one in self.wanted)
        held = sum(one.weight * (1.0 if one.wide else one.credit(frozenset(keys))) for one in self.wanted) / total
        own = keys - {one.key for one in self.wanted if one.wide}
        shared = sum(any(one.credit(frozenset({key})) for one in self.wanted) for key in own)
        return held >= SAME_QUESTION and shared >= NO_OTHER_QUESTION * len(own)

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
        if self.asked.signs and not _holds_signs(document, index, self.asked.signs):
            return None
        around = SentenceContext(reading, index, passage=self.asked.form in SPACIOUS)
        held_by = [self._credit(one, around) for one in self.wanted]
        total = sum(one.weight for one in self.wanted)
        covered = sum(one.weight * credit for one, credit in zip(self.wanted, held_by, strict=True)) / total
        if covered < LOOKED_AT or _speaks_of_another(text, document.language):
            return None
        if block.header is not None and self._of_another_row(block.header, around):
            return None
        said = f"{around.label_text} {text}" if around.labelled and self._has_default(around) else text
        if block.kind is TextBlockKind.ROW and self.asked.form in IN_UNITS:
            said = row_under_header(document, index)
        piece = Piece.of(said, row=block.kind is TextBlockKind.ROW, label=around.labelled)
        if self.asked.form is AnswerForm.ITEMS:
            piece = replace(piece, announces=list_follows(document, index))
        held_by = [
            min(credit, self._surface(one, piece, around)) for one, credit in zip(self.wanted, held_by, strict=True)
        ]
        covered = sum(one.weight * credit for one, credit in zip(self.wanted, held_by, strict=True)) / total
        if not self._of_the_collection(around):
            return None
        here = around.keys | around.label | (around.beside if self.asked.form in SPACIOUS else frozenset())
        if any(one.credit(here) < 1.0 for one in self._sides):
            return None
        if any(one.named and self._only_in_compounds(one, piece) for one in self.wanted):
            return None
        counted = self.asked.form is AnswerForm.COUNT and covered >= COUNTED_COVERAGE and len(self.wanted) > 2
        if not counted and (
            covered < LEAST_COVERAGES.get(self.asked.form, LEAST_COVERAGE) or self._lacks(held_by, total, around)
        ):
            return None
        if around.labelled and self.asked.form is AnswerForm.DEFINITION:
            piece = replace(
                piece, label=all(one.credit(around.label) for one in self.wanted) and around.label_fits(self.wanted)
            )
        if self.asked.form is AnswerForm.DEFINITION and not around.labelled:
            piece = replace(piece, lead=around.leads(self.wanted))
        held = self._evidence(piece, around)
        least = LEAST_STRENGTHS.get(self.asked.form, LEAST_STRENGTH)
        if self.asked.form is AnswerForm.STEPS and held.strength != DONE and commands_follow(document, index):
            held = replace(held, strength=1.0)
            least = LEAST_STRENGTH if all(one.credit(around.heading) for one in self.wanted) else least
        if held.strength < (LEAST_EVIDENCE if covered >= LEAST_COVERAGE else 1.0):
            return None
        strength = 0.55 * covered + 0.3 * held.strength + self._extras(reading, index, around, piece, text)
        if held.strength < CERTAIN:
            least = LEAST_WEAK_STRENGTHS.get(self.asked.form, least)
        if strength < least:
            return None
        return FoundAnswer(reading, index, strength, covered, held, around.first)

    def _of_another_row(self, header: int, around: SentenceContext) -> bool:
        """Whether another row of the table has a word of the question that this one lacks: it speaks of that one."""
        others = around.reading.document.table_keys(header)
        return any(not one.wide and one.credit(others) == 1.0 > self._credit(one, around) for one in self.wanted)

    def _of_the_collection(self, around: SentenceContext) -> bool:
        """Whether one of several words that the whole collection is about is there, if nothing else says of what."""
        wide = [one for one in self.wanted if one.wide]
        if len(wide) < MANY_WIDE or len(wide) < len(self.wanted) - 1:
            return True
        near = around.keys | around.label | around.heading | around.outer | around.beside | around.entry
        return any(one.credit(near | around.subject) for one in wide)

    def _has_default(self, around: SentenceContext) -> bool:
        """Whether the term line says the default itself: `keepalive (default: 5 s)`."""
        told = language_words(self.asked.language).tells["default"]
        return self.asked.form in POINTED and told.found(fold(around.label_text))

    def _evidence(self, piece: Piece, around: SentenceContext) -> AnswerEvidence:
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

    def _credit(self, one: Wanted, around: SentenceContext) -> float:
        if (own := one.credit(around.keys)) == 1.0:
            return 1.0
        best = max(
            own,
            LABEL_CREDIT * one.credit(around.label),
            HEADING_CREDIT * one.credit(around.heading),
            OUTER_CREDIT * one.credit(around.outer),
            BESIDE_CREDIT * one.credit(around.beside),
            ENTRY_CREDIT * one.credit(around.entry),
            SUBJECT_CREDIT * one.credit(around.subject) if self.asked.form in POINTED else 0.0,
        )
        free = one.wide and self._narrower and (not one.named or around.reading.document.mentions(one.word))
        if free and not self._several:
            free = around.reading.document.mentions(one.word)
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

    @cached_property
    def _several(self) -> bool:
        """Whether there are two or more such words; one alone says too little without what it is said of."""
        return sum(not (one.wide or one.group) for one in self.wanted) > 1

    def _surface(self, one: Wanted, piece: Piece, around: SentenceContext) -> float:
        """At most what a word counts that is no form of the one asked for but shares its stem."""
        if one.wide or one.key not in around.keys:
            return 1.0
        same = [token for token in piece.tokens if one.key in word_keys(token, self.asked.language)]
        folded = one.word.casefold()
        return (
            1.0
            if not same
            or any(
                is_one_word(folded, part, self.asked.language)
                for token in same
                for part in (token, *PARTS.split(token))
            )
            else OTHER_WORD_CREDIT
        )

    def _only_in_compounds(self, one: Wanted, piece: Piece) -> bool:
        """Whether a name is there only as a part of longer names: what is said of `git-gui` is not said of Git."""
        holding = [token for token in piece.tokens if one.key in word_keys(token, self.asked.language)]
        bare = one.word.casefold()
        return not one.compound and bool(holding) and all("-" in token and token != bare for token in holding)

    def _lacks(self, held_by: Sequence[float], total: float, around: SentenceContext) -> bool:
        """Whether a name, or a word of weight, is not there; of who made what, the title does not say what."""
        if not all(self._side_by_side(pair, around.pairs) for pair in self.pairs):
            return True
        if not all(_names_setting(one, around) for one in self.wanted if "_" in one.word):
            return True
        bare = self.asked.form in OF_A_NAME and all(one.named or one.group for one in self.wanted)
        return any(
            (one.named and (credit < HEADING_CREDIT if bare else not one.wide and credit < NAMED_CREDIT))
            or (one.weight >= HEAVY * total and credit < 0.5)
            for one, credit in zip(self.wanted, held_by, strict=True)
        )

    def _side_by_side(self, pair: tuple[str, str], pairs: frozenset[tuple[str, str]]) -> bool:
        """Whether a name and its number stand together, or the number behind the word for a version."""
        versions = language_words(self.asked.language).tells["version"].first_words()
        return pair in pairs or any((stem(word, self.asked.language), pair[1]) in pairs for word in versions)

    def _extras(self, reading: Reading, index: int, around: SentenceContext, piece: Piece, text: str) -> float:
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


def _speaks_of_another(text: str, language: str) -> bool:
    """Whether a sentence only lists manual pages, or tells what happened to who says it."""
    asker = ASKER.get(language_words(language).code)
    return len(MANUAL_PAGE.findall(text)) > MOST_MANUAL_PAGES or (asker is not None and bool(asker.match(text)))


def _first_sentences(document: Structure) -> Iterable[tuple[int, str]]:
    """The first sentence under each heading, and the heading without its number."""
    section = None
    for index in range(len(document.sentences)):
        block = document.block_of(index)
        if block.section != section and block.path:
            yield index, NUMBERING.sub("", block.path[-1])
        section = block.section


def _names_setting(one: Wanted, around: SentenceContext) -> bool:
    """Whether the name of a setting is there as a whole, or its parts in a row: `cache size`, not `size of a cache`."""
    document = around.reading.document
    said = (document.of(document.sentences[around.index]), around.label_text, *around.path, around.reading.source.title)
    keys = around.keys | around.label | around.outer | around.entry
    return one.key in keys or one.word.casefold().replace("_", " ") in "\n".join(said).casefold()


def _holds_signs(document: Structure, index: int, signs: Iterable[str]) -> bool:
    """Whether the paragraph of a sentence, or its term line, has all these signs: `$@`, `&&`."""
    block = document.block_of(index)
    text = document.text[block.start if block.label is None else block.label : block.end]
    return all(sign in text for sign in signs) and any(
        sign in document.of(document.sentences[index]) or block.label is not None for sign in signs
    )
