"""What stands around a sentence: its term line, headings, title, and what was said before it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from providers.extractive.lexicon import PERSONAL
from providers.extractive.question_terms import text_keys, text_pairs
from providers.extractive.quoted_markdown import cells_of
from providers.extractive.sentence_places import NUMBERING
from providers.extractive.sources_read import Reading
from providers.extractive.text_structure import LABEL_LENGTH, Structure, TextBlock, TextBlockKind
from providers.extractive.wanted_words import Wanted
from providers.language_words import fold, language_words

PROPERTY_CELLS: Final = 2
SHORT_NAME: Final = 20
"""Characters before the colon of a property."""
DIGIT: Final = re.compile(r"\d")
MOST_POINTING: Final = 3
"""Sentences in a row that a pronoun opens."""
MOST_AFTER: Final = 4
"""Sentences that tell what a default is of."""


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
        if self.block.kind is TextBlockKind.ROW:
            self.entry = _beside_row(document, self.index)
        elif _says_default(document, self.index):
            self.entry = frozenset[str]().union(*(document.traits(one).keys for one in _after(document, self.index)))
        self.subject = _subject_before(document, self.index)
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
        return len(own - asked) <= 1 and not any(sign in self.label_text.partition(" (")[0] for sign in "_(")


def _subject_before(document: Structure, index: int) -> frozenset[str]:
    """What a sentence that opens with a pronoun speaks of: the opening of the nearest one before it that has none."""
    first = index
    while PERSONAL.match(document.of(document.sentences[first])):
        if _opens_block(document, first) or index - first >= MOST_POINTING:
            return frozenset()
        first -= 1
    return document.traits(first).opening if first < index else frozenset()


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


def list_follows(document: Structure, index: int) -> bool:
    """Whether a sentence ends with a colon, its paragraph too, and a list or a table stands right behind it."""
    own = document.sentences[index].block
    following = document.blocks[own + 1 : own + 2]
    last = index + 1 == len(document.sentences) or document.sentences[index + 1].block != own
    return (
        last
        and document.of(document.sentences[index]).rstrip().endswith(":")
        and bool(following)
        and following[0].kind in (TextBlockKind.ITEM, TextBlockKind.HEAD, TextBlockKind.ROW)
        and following[0].section == document.blocks[own].section
    )


def row_under_header(document: Structure, index: int) -> str:
    """A row of a table, each cell that has a figure followed by the header and the unit of its column."""
    block = document.block_of(index)
    row = document.text[block.start : block.end]
    if block.header is None:
        return row
    heads = [cells_of(document.text[start:end]) for start, end in document.table_heads[block.header]]
    cells = [
        " ".join([cell, *(head[place] for head in heads if place < len(head) and DIGIT.search(cell))])
        for place, cell in enumerate(cells_of(row))
    ]
    return f"| {' | '.join(cells)} |"


def _beside_row(document: Structure, index: int) -> frozenset[str]:
    """What a row of a table leaves to its header; of one property among others (`Default: | 5`), to the other ones."""
    block = document.block_of(index)
    if block.header is not None:
        return document.keys_of(document.text[block.header :].split("\n", 1)[0])
    if not _is_property(document, index):
        return frozenset()
    first = last = index
    while first and _is_property(document, first - 1) and document.block_of(first - 1).section == block.section:
        first -= 1
    while (
        last + 1 < len(document.sentences)
        and _is_property(document, last + 1)
        and (document.block_of(last + 1).section == block.section)
    ):
        last += 1
    return frozenset[str]().union(*(document.traits(one).keys for one in range(first, last + 1)))


def _is_property(document: Structure, index: int) -> bool:
    """Whether a row has a name with a colon, and what is said of it."""
    if document.block_of(index).kind is not TextBlockKind.ROW:
        return False
    cells = [cell.strip() for cell in document.of(document.sentences[index]).strip("| ").split("|")]
    return len(cells) == PROPERTY_CELLS and cells[0].endswith(":")


def _says_default(document: Structure, index: int) -> bool:
    """Whether a paragraph of its own gives a default and nothing else: `Default: 90 days`."""
    start = document.sentences[index].start
    name, colon, _ = document.text[start : start + SHORT_NAME].partition(":")
    if not colon or not _opens_block(document, index):
        return False
    return language_words(document.language).tells["default"].found(fold(name))


def _after(document: Structure, index: int) -> range:
    """The next sentences of the same section."""
    section, last = document.block_of(index).section, index
    while (
        last + 1 < len(document.sentences)
        and last - index < MOST_AFTER
        and (document.block_of(last + 1).section == section)
    ):
        last += 1
    return range(index + 1, last + 1)


def _before(document: Structure, index: int) -> range:
    """The sentences of the same block before one."""
    first = index
    while first and document.sentences[first - 1].block == document.sentences[index].block:
        first -= 1
    return range(first, index)


def _opens_block(document: Structure, index: int) -> bool:
    return index == 0 or document.sentences[index - 1].block != document.sentences[index].block
