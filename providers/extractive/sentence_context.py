"""What stands around a sentence: its term line, headings, title, and what was said before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from providers.extractive.question_terms import text_keys, text_pairs
from providers.extractive.sentence_places import NUMBERING
from providers.extractive.sources_read import Reading
from providers.extractive.text_structure import LABEL_LENGTH, Structure, TextBlock, TextBlockKind
from providers.extractive.wanted_words import Wanted


@dataclass
class SentenceContext:
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

    def leads(self, wanted: Sequence[Wanted]) -> bool:
        """Whether it opens a section whose heading names what is asked for, and no more."""
        if not _opens_block(self.reading.document, self.index) or not self.path:
            return False
        number = self.reading.document.sentences[self.index].block
        before = self.reading.document.blocks[number - 1] if number else None
        heading = self.reading.document.keys_of(NUMBERING.sub("", self.inner))
        asked = {one.key for one in wanted}.union(*(one.parts for one in wanted))
        opens = before is None or before.section != self.block.section
        return opens and all(one.credit(heading) for one in wanted) and len(heading - asked) <= 1

    def label_fits(self, wanted: Sequence[Wanted]) -> bool:
        """Whether the term line says little more than what is asked for."""
        asked = {one.key for one in wanted}.union(*(one.parts for one in wanted))
        own = self.reading.document.keys_of(self.label_text.partition(" (")[0])
        return len(own - asked) <= 1 and not any("_" in word for word in self.label_text.split())


def _label_of(document: Structure, block: TextBlock) -> str:
    return document.text[block.label : block.label + LABEL_LENGTH].split("\n", 1)[0] if block.label is not None else ""


def commands_follow(document: Structure, index: int) -> bool:
    """Whether commands stand right behind the paragraph of a sentence."""
    own = document.sentences[index].block
    following = document.blocks[own + 1 : own + 2]
    return (
        bool(following)
        and following[0].kind is TextBlockKind.CODE
        and following[0].section == document.blocks[own].section
    )


def _before(document: Structure, index: int) -> range:
    """The sentences of the same block before one."""
    first = index
    while first and document.sentences[first - 1].block == document.sentences[index].block:
        first -= 1
    return range(first, index)


def _opens_block(document: Structure, index: int) -> bool:
    return index == 0 or document.sentences[index - 1].block != document.sentences[index].block
