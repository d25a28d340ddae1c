"""The text around a passage of a page without which a reader may miss what the passage speaks of. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from providers.extractive.blocks import MAX_LABEL_LENGTH, STOPS, Kind, PassageBlock, blocks_of
from providers.text import is_wrapped, sentence_spans
from providers.tokens.lookup import with_announced

BEFORE_CHARACTERS: Final = 400  # of a paragraph or an item before a passage in it
LEAD_CHARACTERS: Final = 300  # of what stands above that and introduces it
AFTER_CHARACTERS: Final = 250
LISTING_CHARACTERS: Final = 400  # of a listing just below a passage, which belongs to the sentence above it
ANNOUNCED_CHARACTERS: Final = 600  # of a list that a passage announces
AFTER_LABEL_CHARACTERS: Final = 1_500
"""Between the line that labels paragraphs and one of them that may still speak of it."""
MAX_NAMES: Final = 4  # of one definition, each in a paragraph of its own
OMISSION: Final = " … "


def text_around(text: str, start: int, end: int, limit: int = 100) -> tuple[str, str]:
    """Return the text before and after a place, at most `limit` characters of each, cut between words."""
    before = text[max(0, start - limit) : start]
    after = text[end : end + limit]
    if start > limit and " " in before:
        before = before.split(" ", 1)[1]
    if end + limit < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0]
    return before, after


def surroundings(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the text of a page before and after a passage without which a reader may miss what it speaks of.

    Before it stand its paragraph or item from the beginning, or the nearest sentences of a long one; above that the
    introduction of its list, the line that labels its paragraphs, and the sentence before its paragraph. After it stand
    the rest of its sentence and the next ones of its block, or what it announces with a colon. Omissions are marked.
    """
    blocks = blocks_of(text)
    return _before(text, blocks, start), _after(text, blocks, end)


def sentence_at(text: str, place: int, limit: int) -> tuple[int, int] | None:
    """Return the sentence of a page in which a place lies, or its row of a table; None in a heading or a listing, or if
    it has more than `limit` characters.
    """
    blocks = blocks_of(text)
    index = _block_at(blocks, place)
    if index is None or blocks[index].kind is Kind.CODE:
        return None
    start = blocks[index].start
    end = blocks[index].end
    if blocks[index].kind is not Kind.ROW:
        spans = sentence_spans(text[start:end])
        first, last = next(span for span in reversed(spans) if start + span[0] <= place)
        start, end = start + first, start + last
    end = start + len(text[start:end].rstrip())
    if place >= end or end - start > limit:
        return None
    return start, end


def _before(text: str, blocks: Sequence[PassageBlock], start: int) -> str:
    index = _block_at(blocks, start)
    if index is not None:
        inside = _last_sentences(text, blocks[index].start, start, BEFORE_CHARACTERS)
        is_first = inside == blocks[index].start and len(sentence_spans(text[inside:start])) < 2
        return _joined(text, [*_above(text, blocks, index, is_first=is_first), (inside, start)])
    if text[:start].rstrip(" \t").endswith("\n\n"):  # a line that labels what is below it
        return ""
    return text_around(text, start, start)[0]


def _block_at(blocks: Sequence[PassageBlock], place: int) -> int | None:
    """Return the index of the block in which a place lies; None outside of any."""
    index = bisect_right(blocks, place, key=lambda block: block.start) - 1
    if index < 0 or place >= blocks[index].end:
        return None
    return index


def _last_sentences(text: str, start: int, end: int, limit: int) -> int:
    """Return where the last sentences of `text[start:end]` begin that have at most `limit` characters together.

    A single one may have twice as many; a part of a longer one begins with a word.
    """
    if end - start <= limit:
        return start
    first = end - limit
    earliest = max(start, first - limit)
    begins = [earliest + begin for begin, _ in sentence_spans(text[earliest:end])]
    whole = begins if earliest == start else begins[1:]
    if whole:
        return next((begin for begin in whole if begin >= first), whole[-1])
    blank = text.find(" ", first, end)
    return blank + 1 if blank >= 0 else first


def _above(text: str, blocks: Sequence[PassageBlock], index: int, *, is_first: bool) -> list[tuple[int, int]]:
    """Return the places of what stands above a block and says what it speaks of, in the order of the text.

    `is_first` is true for a passage in the first sentence of the block, which may go on from the sentence before.
    A definition begins with its terms; above it are other names of the same.
    """
    block = blocks[index]
    if _terms_of(text, block):
        start = _first_name(text, blocks, index)
        return [(start, block.start)] if start < block.start else []
    places = []
    if label := _label_above(text, blocks, index):
        places.append(label)
    if item := _item_above(blocks, index):
        places.append((_last_sentences(text, item.start, item.end, LEAD_CHARACTERS), item.end))
    elif block.kind is Kind.ITEM:
        places += _introduction(text, block)
    elif block.kind in (Kind.PROSE, Kind.CODE) and is_first and index:
        places += _said_above(text, blocks, index)
    # A label that stands below the sentence before its paragraph makes that one needless.
    return [place for place in places if place[0] >= places[0][0]]


def _said_above(text: str, blocks: Sequence[PassageBlock], index: int) -> list[tuple[int, int]]:
    """Return the places of what a block below others may go on from: the sentence above it, a listing with the sentence
    before that, or the last item of a list with its introduction.
    """
    above = blocks[index - 1]
    if above.headings != blocks[index].headings:
        return []
    first = _last_sentences(text, above.start, above.end, LEAD_CHARACTERS)
    if above.kind is Kind.LINE:
        return [(first, above.end)]
    if above.kind is Kind.ITEM:
        return [*_introduction(text, above), (first, above.end)]
    is_listing = blocks[index].kind is Kind.CODE  # which is a part of what its paragraph says
    if above.kind is Kind.PROSE:
        last = sentence_spans(text[first : above.end])[-1][0]
        return [(first if is_listing else first + last, above.end)]
    if above.kind is Kind.CODE and not is_listing:
        before = _said_above(text, blocks, index - 1) if index > 1 else []
        return [*before, (_last_lines(text, above), above.end)]
    return []


def _introduction(text: str, item: PassageBlock) -> list[tuple[int, int]]:
    """Return the place of what introduces the list of an item, if anything does."""
    if not item.lead:
        return []
    first, last = item.lead
    return [(_last_sentences(text, first, last, LEAD_CHARACTERS), last)]


def _last_lines(text: str, listing: PassageBlock) -> int:
    """Return where a listing begins, or the last lines of a long one."""
    if listing.end - listing.start <= LISTING_CHARACTERS:
        return listing.start
    return text.find("\n", listing.end - LISTING_CHARACTERS, listing.end) + 1 or listing.start


def _label_above(text: str, blocks: Sequence[PassageBlock], index: int) -> tuple[int, int] | None:
    """Return the place of the line that labels a block, such as the name of an option above its paragraphs.

    It is a line of its own, or the terms with which a definition above begins, whichever is nearer.
    """
    block = blocks[index]
    first = max(0, block.start - AFTER_LABEL_CHARACTERS)
    label = text.rfind(block.label, first, block.start) if block.label else -1
    for number in range(index - 1, -1, -1):
        other = blocks[number]
        if other.headings != block.headings or other.start < max(first, label):
            break
        if terms := _terms_of(text, other):
            return _first_name(text, blocks, number), terms[1]
    return (label, label + len(block.label)) if label >= 0 else None


def _item_above(blocks: Sequence[PassageBlock], index: int) -> PassageBlock | None:
    """Return the list item that a paragraph below it belongs to: another item follows; else None, as a stored text does
    not mark the end of a list.
    """
    block = blocks[index]
    if block.kind not in (Kind.PROSE, Kind.CODE):
        return None
    above = _next_item(block, reversed(blocks[:index]))
    below = _next_item(block, blocks[index + 1 :])
    is_near = above is not None and block.start - above.end <= AFTER_LABEL_CHARACTERS
    return above if is_near and below is not None else None


def _next_item(block: PassageBlock, others: Iterable[PassageBlock]) -> PassageBlock | None:
    """Return the first item among blocks if paragraphs and listings of the same section alone are before it."""
    for other in others:
        if other.headings != block.headings or other.kind not in (Kind.PROSE, Kind.CODE, Kind.ITEM):
            return None
        if other.kind is Kind.ITEM:
            return other
    return None


def _first_name(text: str, blocks: Sequence[PassageBlock], index: int) -> int:
    """Return where the names of a definition begin, which may stand above its block, each a short line of its own."""
    start = blocks[index].start
    for other in reversed(blocks[max(0, index - MAX_NAMES) : index]):
        line = text[other.start : other.end]
        is_name = other.kind in (Kind.PROSE, Kind.LINE) and len(line) <= MAX_LABEL_LENGTH and line[-1] not in STOPS
        if not is_name or "\n" in line or text[other.end : start].strip():
            break
        start = other.start
    return start


def _terms_of(text: str, block: PassageBlock) -> tuple[int, int] | None:
    """Return the place of the short lines with which a definition begins; None for any other block."""
    lines = text[block.start : block.end].splitlines() if block.kind is Kind.PROSE else []
    count = next((n for n, line in enumerate(lines) if len(line) > MAX_LABEL_LENGTH or line[-1:] in STOPS), len(lines))
    if not 0 < count < len(lines) or is_wrapped(lines):
        return None
    return block.start, block.start + len("\n".join(lines[:count]))


def _joined(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return the texts of places in order, with a mark of omission between two that do not follow each other."""
    (start, end), *others = places
    joined = text[start:end]
    for first, last in others:
        between = text[end:first]
        joined += (OMISSION if between.strip() else between) + text[first:last]
        end = last
    return joined


def _after(text: str, blocks: Sequence[PassageBlock], end: int) -> str:
    """Return the text after a passage: sentences of its block, the listing below, or what it announces with a colon."""
    if text[end - 1 : end] == ":":
        return text[end : with_announced(text, end, end + ANNOUNCED_CHARACTERS)]
    index = _block_at(blocks, end - 1)
    if index is None:
        return text_around(text, end, end)[1]
    rest = text[end : blocks[index].end]
    following = blocks[index + 1] if index + 1 < len(blocks) else None
    if not rest.strip() and following and following.kind is Kind.CODE and following.headings == blocks[index].headings:
        return _listing_below(text, end, following)
    if len(rest) <= AFTER_CHARACTERS:
        return rest
    ends = [last for _, last in sentence_spans(rest[:AFTER_CHARACTERS])][:-1]
    if ends:
        return rest[: ends[-1]].rstrip()
    return rest[:AFTER_CHARACTERS].rsplit(" ", 1)[0]


def _listing_below(text: str, start: int, listing: PassageBlock) -> str:
    """Return the text from a place to the end of the listing below, or of the last line that has room."""
    shown = text[start : listing.end]
    room = listing.start - start + LISTING_CHARACTERS
    if len(shown) <= room:
        return shown
    return shown[:room].rpartition("\n")[0]
