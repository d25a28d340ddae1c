"""Passages: one to four consecutive sentences that stand by themselves, never torn from what they correct."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from providers.extractive.lexicon import AT_HEADING, CORRECTING, JOINING, LEANING, SELF_NAMED
from providers.extractive.text_structure import TERMINAL, Structure, TextBlock, TextBlockKind, is_foreign, is_statement
from providers.language_words import fold, language_words

LONGEST_PASSAGE = 1_000
MOST_SENTENCES = 4
THIN_PASSAGE = 35
"""Words up to which a passage takes the next sentence of its paragraph along: one short sentence says little."""
VERY_THIN_PASSAGE = 25
"""Words up to which it also takes the first sentence of the next paragraph along."""
SHORT_SENTENCE = 5
"""Words up to which a sentence does not count: `In short, catastrophic data loss.`"""
LEAD_WORDS = 7
"""Words up to which the opening of a paragraph is not quoted without what follows it."""
LONGEST_LIST = 9
"""Items that may follow the sentence that announces them."""


NAMING = re.compile(r"[^\W\d]{3}")
"""A term has letters in a row; a number of a paragraph is none."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A verbatim range of a source's text."""

    source_id: str
    start: int
    end: int
    text: str
    heading: str
    keys: frozenset[str]
    score: float
    coverage: float
    """Share of the question's weight in the passage and its headings."""
    own_coverage: float
    """The same without headings."""
    sentences: int
    section: int = 0
    """Offset where its section begins."""

    @property
    def place(self) -> tuple[str, int, int]:
        """Order that no rank decides."""
        return (self.source_id, self.start, self.end)


def grow(document: Structure, seed: int, wanted: Sequence[float], *, spare: bool = False) -> tuple[int, int] | None:
    """Range of sentence indices (inclusive) of the passage around a sentence, or None if it cannot stand alone.

    `wanted` is each sentence's own score: neighbours that speak of the question are taken along, unless the passage
    is to be `spare`: then only what the sentence needs.
    """
    first = last = seed
    if document.block_of(seed).kind is TextBlockKind.ROW:
        return (first, last)
    if not document.traits(seed).quotable:
        return None
    while leans(document, first):
        if first == 0 or not _adjoin(document, first - 1, first) or _count(document, first, last) >= MOST_SENTENCES:
            return None
        first -= 1
    last = _list_end(document, last)
    if announces(document, last):
        if last == first:
            return None
        last -= 1
    if _is_lead(document, last) and _fits(document, first, last + 1):
        last += 1
    announced = False
    while not announced and _count(document, first, last) < MOST_SENTENCES and _fits(document, first, last + 1):
        following = document.of(document.sentences[last + 1])
        if following.rstrip().endswith(":") and _same_block(document, last, last + 1):
            end = _list_end(document, last + 1)
            if end > last + 1 and not _too_long(document, first, end):
                last, announced = end, True
            break
        if len(following.split()) < 3:
            break
        related = LEANING.match(following) and _same_block(document, last, last + 1) and last - first < 2
        close = _same_block(document, last, last + 1)
        speaks = wanted[last + 1] >= 0.45 * max(wanted[seed], 0.01)
        strong = close and not spare and speaks
        length = _words(document, first, last)
        thin = not spare and (length < THIN_PASSAGE if close else speaks and length < VERY_THIN_PASSAGE)
        if not (CORRECTING.match(following) or related or strong or thin) or following.rstrip().endswith(":"):
            break
        last += 1
    while not spare and last - first + 1 < MOST_SENTENCES - 1 and first > 0 and _fits(document, first - 1, last):
        before = first - 1
        if not _same_block(document, before, first) or wanted[before] < 0.6 * max(wanted[seed], 0.01):
            break
        while before > 0 and leans(document, before):
            before -= 1
        if leans(document, before) or last - before + 1 > MOST_SENTENCES or not _fits(document, before, last):
            break
        first = before
    if _next_corrects(document, last) or _too_long(document, first, last):
        return None
    return _whole_list(document, first, last)


def _whole_list(document: Structure, first: int, last: int) -> tuple[int, int]:
    """A passage of several items as the whole list, with its code and the sentence that announces it, if that fits."""
    numbers = {document.sentences[index].block for index in range(first, last + 1)}
    items = [number for number in numbers if document.blocks[number].kind is TextBlockKind.ITEM]
    if len(items) < 2:
        return (first, last)
    section, low, high = document.blocks[items[0]].section, min(items), max(items)
    listed = (TextBlockKind.ITEM, TextBlockKind.CODE)
    while low and document.blocks[low - 1].kind in listed and document.blocks[low - 1].section == section:
        low -= 1
    end = len(document.blocks) - 1
    while high < end and document.blocks[high + 1].kind in listed and document.blocks[high + 1].section == section:
        high += 1
    start, stop = first, last
    while start and document.sentences[start - 1].block >= low:
        start -= 1
    if (
        start
        and document.of(document.sentences[start - 1]).endswith(":")
        and document.block_of(start - 1).section == section
    ):
        start -= 1
    while stop + 1 < len(document.sentences) and document.sentences[stop + 1].block <= high:
        stop += 1
    return (first, last) if _too_long(document, start, stop) or leans(document, start) else (start, stop)


def span_of(document: Structure, first: int, last: int) -> tuple[int, int]:
    """Character range of the sentences, with the term that the first one explains."""
    start, end = document.sentences[first].start, document.sentences[last].end
    block = document.block_of(first)
    opens_block = first == 0 or document.sentences[first - 1].block != document.sentences[first].block
    if opens_block and block.label is not None and end - block.label <= LONGEST_PASSAGE:
        between = document.text[block.label : start]
        if between.count("\n") <= 3 and len(between) <= 160 and NAMING.search(between):
            start = block.label
    return (start, _closed(document, start, last, end))


def _closed(document: Structure, start: int, last: int, end: int) -> int:
    """Where the bracket closes that a passage opens, if the next sentence of its paragraph closes it; else its end."""
    text = document.text[start:end]
    if text.count("(") <= text.count(")") or last + 1 >= len(document.sentences):
        return end
    following = document.sentences[last + 1]
    longer = document.text[start : following.end]
    close = _same_block(document, last, last + 1) and longer.count("(") <= longer.count(")")
    return following.end if close and len(longer) <= LONGEST_PASSAGE else end


def heading_of(block: TextBlock, title: str) -> str:
    """The innermost heading that says where a passage stands."""
    return block.path[-1] if block.path else title


def containment(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the smaller set that the other holds."""
    return len(one & other) / max(1, min(len(one), len(other)))


def shorten(text: str, limit: int) -> str:
    """A passage as one line of at most `limit` characters, cut after a sentence, else after a word."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    head = flat[:limit]
    ends = [match.end() for match in re.finditer(r"[.!?][\"”’)]*(?=\s)", head)]
    if ends and ends[-1] >= limit // 3:
        return head[: ends[-1]]
    return head[: head.rfind(" ", 0, limit - 1)].rstrip(",;:") + "…" if " " in head else head


def leans(document: Structure, index: int) -> bool:
    """Whether a sentence needs the one before it: an opening that points back, or one that corrects."""
    text = document.of(document.sentences[index])
    if document.block_of(index).kind is TextBlockKind.ROW:
        return False
    opens_with_term = document.block_of(index).label is not None and (
        index == 0 or not _same_block(document, index - 1, index)
    )
    heads = index == 0 or not _same_block(document, index - 1, index)
    opens = heads and _opens_section(document, index)
    if (heads and JOINING.match(text)) or (opens and (SELF_NAMED.match(text) or _means_heading(document, index))):
        return False
    if opens_with_term and not re.match(r"^(?:however|but|otherwise)\b", text, re.IGNORECASE):
        return False
    if document.language != "en" and language_words(document.language).tells["leaning"].at([*fold(text[:60]), ""], 0):
        return True
    small = text[0].islower() and text.split()[0].isalpha() and not (heads and _names(document, index, text.split()[0]))
    return bool(LEANING.match(text) or CORRECTING.match(text) or small)


def _is_lead(document: Structure, index: int) -> bool:
    """Whether a few words open a paragraph that goes on, as a title does: `Measured and not taken. The …`."""
    opens = index == 0 or not _same_block(document, index - 1, index)
    short = len(document.of(document.sentences[index]).split()) <= LEAD_WORDS
    return opens and short and index + 1 < len(document.sentences) and _same_block(document, index, index + 1)


def _means_heading(document: Structure, index: int) -> bool:
    """Whether a sentence at the head of a section says `it` of what the heading names, and does not name it again."""
    path = document.block_of(index).path
    named = document.keys_of(path[-1]) if path else frozenset()
    opening = AT_HEADING.match(document.of(document.sentences[index])) is not None
    return opening and bool(named) and not named & document.traits(index).keys


def _names(document: Structure, index: int, word: str) -> bool:
    """Whether the heading above a sentence has a word, which is then a name that is written small."""
    path = document.block_of(index).path
    return bool(path) and word in path[-1].split()


def _opens_section(document: Structure, index: int) -> bool:
    """Whether no other sentence of its section stands before a sentence."""
    return index == 0 or document.block_of(index - 1).section != document.block_of(index).section


def _next_corrects(document: Structure, last: int) -> bool:
    """Whether the next sentence takes back what this one says, and could not be taken along."""
    if last + 1 >= len(document.sentences) or not _same_block(document, last, last + 1):
        return False
    following = document.of(document.sentences[last + 1])
    return bool(
        re.match(
            r"^(?:this|that|these)\s+(?:is|was|are|were)\s+(?:not|no\s+longer|wrong|incorrect)\b",
            following,
            re.IGNORECASE,
        )
    )


def _words(document: Structure, first: int, last: int) -> int:
    return len(document.text[document.sentences[first].start : document.sentences[last].end].split())


def _count(document: Structure, first: int, last: int) -> int:
    """Sentences of a range; remarks in brackets and very short ones do not count."""
    texts = (document.of(document.sentences[index]) for index in range(first, last + 1))
    return sum(not text.startswith("(") and len(text.split()) > SHORT_SENTENCE for text in texts)


def _list_end(document: Structure, index: int) -> int:
    """The last short item of a list that this sentence announces."""
    if not announces(document, index):
        return index
    last, start = index, document.sentences[index].start
    while last + 1 < len(document.sentences) and last - index < LONGEST_LIST:
        following = document.sentences[last + 1]
        block = document.blocks[following.block]
        gap = document.text[document.sentences[last].end : following.start]
        if (
            block.kind is not TextBlockKind.ITEM
            or following.end - start > LONGEST_PASSAGE
            or "```" in gap
            or len(gap) > 12
        ):
            break
        last += 1
    return last


def announces(document: Structure, index: int) -> bool:
    """Whether a sentence says that something follows: by a colon, or by its words in front of a list."""
    text = document.of(document.sentences[index]).rstrip()
    if text.endswith(":"):
        return True
    following = document.sentences[index + 1 : index + 2]
    own = document.sentences[index].block
    before_list = bool(following) and following[0].block == own + 1
    if not before_list or document.blocks[own + 1].kind is not TextBlockKind.ITEM:
        return False
    return language_words(document.language).tells["following"].found(fold(text))


def _same_block(document: Structure, one: int, other: int) -> bool:
    return document.sentences[one].block == document.sentences[other].block


def _next_item(document: Structure, index: int) -> bool:
    """Whether the next sentence opens the next item of the same list."""
    one, other = document.block_of(index), document.block_of(index + 1)
    gap = document.text[document.sentences[index].end : document.sentences[index + 1].start]
    return (
        one.kind is TextBlockKind.ITEM
        and other.kind is TextBlockKind.ITEM
        and one.section == other.section
        and len(gap) <= 8
    )


def _adjoin(document: Structure, one: int, other: int) -> bool:
    """Whether two sentences follow each other with nothing but white space or an item's bullet between."""
    if _same_block(document, one, other):
        return _whole(document.of(document.sentences[one]))
    first, second = document.block_of(one), document.block_of(other)
    gap = document.text[document.sentences[one].end : document.sentences[other].start]
    plain = all(block.kind in (TextBlockKind.PROSE, TextBlockKind.ITEM) for block in (first, second))
    return (
        plain
        and first.section == second.section
        and second.kind is TextBlockKind.PROSE
        and first.kind is TextBlockKind.PROSE
        and not gap.strip()
        and is_statement(document.of(document.sentences[one]), document.language)
    )


def _fits(document: Structure, first: int, last: int) -> bool:
    if not 0 <= first <= last < len(document.sentences):
        return False
    whole = all(
        _whole(document.of(document.sentences[index])) and document.block_of(index).kind is not TextBlockKind.ROW
        for index in (first, last)
    )
    neighbours = all(
        _same_block(document, index, index + 1) or _adjoin(document, index, index + 1) or _next_item(document, index)
        for index in range(first, last)
    )
    return whole and neighbours and not _too_long(document, first, last)


def _whole(text: str) -> bool:
    """Whether a neighbour is a sentence, however short, that may be quoted along."""
    return not is_foreign(text) and TERMINAL.search(text.strip()) is not None


def _too_long(document: Structure, first: int, last: int) -> bool:
    return document.sentences[last].end - document.sentences[first].start > LONGEST_PASSAGE
