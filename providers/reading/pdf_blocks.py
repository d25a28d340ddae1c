"""The blocks of a page of a PDF: what a layout says of its kinds, in the order in which the page is read."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import Any, Final

from spellchecker import SpellChecker

from providers.reading.canonical_text import Block, Code, Heading, Item, Paragraph, TableRow
from providers.reading.pdf_words import (
    LINE_END_HYPHEN,
    RIGHT_TO_LEFT,
    Box,
    Word,
    geometric_lines,
    is_beside,
    lines_of,
    text_of,
)
from providers.text import detect_language, is_wrapped

EDGE_LINES: Final = 3
"""Lines at the top and at the bottom of a page that may be its running head or foot."""
HEAD_GAP: Final = 1.3
"""How far a running head is from the text, in distances of the lines of the page."""
HEAD_HEIGHT: Final = 1.15
"""Height of a running head, at most, in that of most letters: a larger line is a title."""
MIN_BODY_LINES: Final = 3
OFTEN: Final = 5  # times that a document has a word that no dictionary knows, from which it is one
HYPHENS: Final = f"-\u2010\u00ad{LINE_END_HYPHEN}"
BROKEN_RANGE: Final = re.compile(r"(?<=\d)([-\u2010\u2013])\n(?=\d)")  # "10-" at the end of a line, "14" on the next
BROKEN_NAME: Final = re.compile(f"(?<=\\w)[{HYPHENS}]\\n(?=\\d)")  # "COVID-" and "19"
BROKEN: Final = re.compile(f"(?<![^\\W\\d_])([^\\W\\d_]+)[{HYPHENS}]\\n([^\\W\\d_]+)(-?)")
COMPOUNDING: Final = frozenset(("de", "nl"))
"""Languages that write compounds as one word: a word that is divided between two words is no sign of a hyphen."""
FREQUENT: Final = 40
"""Words of a language so frequent that after a hyphen one is the next word, as in `two- and three-year`."""
NUMBER: Final = re.compile(r"\d{1,9}")
KNOWN_SHARE: Final = 0.1
"""How common a joined word must be, compared with the rarer of its halves, to be the word that a line end divided."""
HEADING_SIZES: Final = ((1.8, 1), (1.4, 2), (1.2, 3))
"""Letters so many times as high as the usual ones of the pages around are of a heading of this level."""
MAX_HEADING_LINES: Final = 2
MIN_SPACED: Final = 5
"""Single letters of a line, from which they may be words that are set with space between their letters."""
WORD_GAP: Final = 1.6
"""Gap between two words of such a line, in the gap between most of its letters."""
WIDE_GAP: Final = 2.0
"""Heights of a line, from which a gap within it may part two columns."""
MAX_RISES: Final = 0.15
"""Share of the lines drawn that may be above the one before; with more a page is drawn in an order of its own."""
FEW_RISES: Final = 3  # lines above the one before that a page of few lines may have all the same
MIN_CONTINUED: Final = 0.1
"""Share of the lines with a wide gap after which the drawing stays right of it for a further line, as cells do."""
STRAY: Final = 20
"""Of so many words of a column one may reach beyond it, as those of a page head do."""
SHORT_CELL: Final = 0.4
"""Share of the way to the next column that words take in cells, such as those of terms; lines of a column fill it."""
WHOLE: Final = 0.9
"""Share of the words of a block that are drawn one after the other; else the layout mixed blocks."""
MARKER: Final = re.compile(r"(?:\d{1,3}|[a-z])[.)]|[•◦▪–·‣]")
MARKER_GAP: Final = 3  # heights of a line between a marker and its item, at most
TURNED_GAP: Final = 30  # points between turned words, from which they are of two lines
NEAR: Final = 5
"""Words drawn between a word and its block, at most."""
PARAGRAPH_GAP: Final = 0.7
"""Heights of a line between two of them that begin another paragraph."""


class Heights:
    """How high words are, compared with most letters of the same direction of writing: Arabic fonts are higher."""

    def __init__(self, words: list[Word]) -> None:
        counts: defaultdict[bool, Counter[float]] = defaultdict(Counter)
        for word in words:
            counts[word.line is None][round(word.height, 1)] += len(word.text)
        self._usual = {side: heights.most_common(1)[0][0] for side, heights in counts.items()}

    def of(self, word: Word) -> float:
        """Return the height of a word in that of most letters; 1 if there are no others."""
        return word.height / (self._usual.get(word.line is None) or word.height or 1.0)


class RunningHeads:
    """Lines at the edges of pages that earlier pages have, too: the same words, and numbers that are equal or count."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, list[int]]] = {}
        self.words = 0
        """Words of repeated heads and feet, which are not read again."""

    def removed(self, page: int, words: list[Word], heights: Heights) -> list[Word]:
        """Return the words without the running heads and feet that an earlier page has."""
        lines = lines_of([word for word in words if word.upright and not word.typed])
        gone = set[int]()
        for line in _edges(lines):
            text = text_of(line)
            skeleton = NUMBER.sub("#", text)
            numbers = [int(number) for number in NUMBER.findall(text)]
            last, before = self._seen.get(skeleton, (page, numbers))
            is_small = max(heights.of(word) for word in line) <= HEAD_HEIGHT
            is_same = numbers == before
            counts = is_small and all(new in {old, old + page - last} for new, old in zip(numbers, before, strict=True))
            if last < page and (is_same or counts):
                gone |= {id(word) for word in line}
            self._seen[skeleton] = page, numbers
        self.words += len(gone)
        return [word for word in words if id(word) not in gone]


def _edges(lines: list[list[Word]]) -> Iterator[list[Word]]:
    """Yield the lines at the top and the bottom of a page that a gap parts from its text."""
    tops = [line[0].box[1] for line in lines]
    distances = sorted(below - above for above, below in pairwise(tops))
    if len(lines) < MIN_BODY_LINES + 1:
        return
    least = HEAD_GAP * distances[len(distances) // 2]
    first = max(
        (at for at in range(1, EDGE_LINES + 1) if at < len(tops) and tops[at] - tops[at - 1] >= least), default=0
    )
    last = max(
        (at for at in range(1, EDGE_LINES + 1) if at < len(tops) and tops[-at] - tops[-at - 1] >= least), default=0
    )
    if len(lines) - first - last >= MIN_BODY_LINES:
        yield from lines[:first]
        yield from lines[len(lines) - last :]


class Hyphens:
    """Decides whether the hyphen at the end of a line is one of the word."""

    def __init__(self, words: list[str]) -> None:
        self._counts = Counter(word.strip(".,;:!?()\"'“”").lower() for word in words)
        self._language = detect_language(" ".join(words[:500]))

    def is_word(self, word: str) -> bool:
        """Return whether a word is in the dictionary of the document's language, or often in the document itself."""
        return _known_words(self._language)[word] > 0 or self._counts[word] >= OFTEN

    def mended(self, lines: list[str], *, is_one: bool) -> str:
        """Return lines with their divided words whole; as one line if `is_one`."""
        whole = BROKEN.sub(self._whole, "\n".join(lines))
        whole = BROKEN_NAME.sub("-", BROKEN_RANGE.sub(r"\1", whole))
        whole = whole.replace(LINE_END_HYPHEN, "-").replace("\u00ad", "")
        if is_one:
            return whole.replace("\n", " ")
        return whole

    def _whole(self, match: re.Match[str]) -> str:
        left = match[1]
        right = match[2]
        further = match[3]
        with_hyphen = f"{left}-{right}{further}"
        joined = f"{left}{right}".lower()
        written = f"{left}-{right}".lower()
        known = _known_words(self._language)
        if self._counts[written] > self._counts[joined] or len(left) == 1:  # "x-ray"
            return with_hyphen
        if self._counts[joined]:
            return left + right + further
        if right[0].isupper() and not (left.isupper() and right.isupper()):  # a name of two
            return with_hyphen
        if not further and right in _frequent_words(self._language) and not known[joined]:
            return f"{left}- {right}"
        rarer = min(known[left.lower()], known[right.lower()])
        is_compound = self._language in COMPOUNDING or not rarer or known[joined] >= KNOWN_SHARE * rarer
        if is_compound:
            return left + right + further
        return with_hyphen


@cache
def _known_words(language: str) -> Counter[str]:
    """Return how often words occur in subtitles of films, of languages that the library ships; else nothing."""
    try:
        return Counter(SpellChecker(language=language).word_frequency.dictionary)
    except ValueError:
        return Counter()


@cache
def _frequent_words(language: str) -> frozenset[str]:
    return frozenset(word for word, _ in _known_words(language).most_common(FREQUENT))


def page_blocks(words: list[Word], layout: Any, hyphens: Hyphens, heights: Heights) -> Iterator[Block]:
    """Yield the blocks of a page: those of the layout with the words in them, and other words where they stand.

    Letters that are turned on a page of upright ones, as those of a watermark, come last.
    """
    _attach_markers(words)
    upright = [word for word in words if word.upright]
    if 2 * len(upright) < len(words):
        upright = words
    areas = []
    if layout is not None:
        areas = [block for block in layout.blocks or () if block.bbox is not None]
    boxes = [_box(area.bbox) for area in areas]
    members = _members(upright, boxes)
    if not is_drawn_as_read(upright):
        for place in sorted(members):
            area = areas[place] if place >= 0 else None
            if area is not None and area.kind == "table" and _is_prose(members[place], area):
                yield from _paragraphs(members[place], hyphens, heights)
            else:
                yield from _block(members[place], area, hyphens, heights)
    else:
        yield from _drawn_blocks(members, areas, hyphens, heights)
    if upright is not words:
        turned = [word for word in words if not word.upright]
        for run in _runs(turned):
            yield Paragraph(hyphens.mended([text_of(run)], is_one=True))


def _runs(words: list[Word]) -> Iterator[list[Word]]:
    """Yield turned words that are drawn one after the other, each next to the one before."""
    run: list[Word] = []
    for word in words:
        if run:
            last = run[-1].box
            apart = max(word.box[0] - last[2], last[0] - word.box[2], word.box[1] - last[3], last[1] - word.box[3])
            if apart > TURNED_GAP:
                yield run
                run = []
        run.append(word)
    if run:
        yield run


def _attach_markers(words: list[Word]) -> None:
    """Let the number or sign of a list item, which some programs draw by itself, be drawn before the item's words."""
    by_order = {word.order: word for word in words}
    for line in geometric_lines([word for word in words if word.upright]):
        line.sort(key=lambda word: word.box[0])
        for marker, word in pairwise(line):
            before = by_order.get(marker.order - 1)
            following = by_order.get(marker.order + 1)
            is_apart = following is None or not _is_after(marker, following)
            if before is not None and _is_after(before, marker):  # the end of a line, such as "page 12)"
                continue
            if MARKER.fullmatch(marker.text) and is_apart and _is_after(marker, word):
                marker.order = word.order - 0.5


def _is_after(marker: Word, word: Word) -> bool:
    """Return whether a word is a little to the right of a marker."""
    return is_beside(word, marker) and 0 <= word.box[0] - marker.box[2] <= MARKER_GAP * word.height


def _members(words: list[Word], boxes: list[Box]) -> dict[int, list[Word]]:
    """Return the words of each box by its place; those of no box belong to the nearest."""
    members: defaultdict[int, list[Word]] = defaultdict(list)
    of_lines: defaultdict[float, Counter[int]] = defaultdict(Counter)
    around = [_around(word, boxes) for word in words]
    for word, place in zip(words, around, strict=True):
        if word.line is not None:
            of_lines[word.line][place] += 1
    for word, place in zip(words, around, strict=True):
        members[place if word.line is None else of_lines[word.line].most_common(1)[0][0]].append(word)
    for line in lines_of(members.pop(-1, [])):
        members[_before(line[0], boxes)] += line
    return members


def is_drawn_as_read(words: list[Word]) -> bool:
    """Return whether the order in which a page is drawn is one in which it can be read.

    Most programs draw column by column and cell by cell. Where every line is drawn across all columns nothing in the
    order tells columns from rows, unless most lines at the left are as short as the cells of a table. A page that is
    drawn upwards again and again has no order at all; on a form, once is enough, because programs draw the labels of
    fields after all other words.
    """
    lines = _drawn_lines([word for word in words if not word.typed], WIDE_GAP)
    is_form = any(word.typed for word in words)
    if not is_form and _is_drawn_in_columns(lines):
        return True
    rises = wide = continued = 0
    fills: list[float] = []  # shares of the way to the next cell or column that its words take
    further: int | None = None  # lines of a cell or column after its first, once a line went right or came back
    for before, line in pairwise(lines):
        left = min(word.box[0] for word in before)
        right = max(word.box[2] for word in before)
        is_higher = is_beside(line[0], before[-1]) or line[0].middle[1] < before[0].middle[1]
        is_further = line[0].box[0] >= right if line[0].line is None else line[0].box[2] <= left
        if is_further and is_higher:
            wide += 1
            fills.append((right - left) / max(line[0].box[0] - left, right - line[-1].box[2], 1.0))
            continued += (further or 0) > 0 or not is_beside(line[0], before[-1])
            further = 0
        elif is_higher:
            rises += 1
            further = None
        elif min(word.box[0] for word in line) < right and max(word.box[2] for word in line) > left:
            further = None if further is None else further + 1
        else:
            continued += (further or 0) > 0
            further = 0
    if rises > (0 if is_form else max(FEW_RISES, MAX_RISES * len(lines))):
        return False
    has_short_cells = wide > 0 and sorted(fills)[wide // 2] < SHORT_CELL
    return has_short_cells or wide < MIN_CONTINUED * len(lines) or continued >= MIN_CONTINUED * wide


def _is_drawn_in_columns(lines: list[list[Word]]) -> bool:
    """Return whether each part of a page that is drawn downwards is beside the part before it."""
    parts: list[list[list[Word]]] = [[]]
    for line in lines:
        if parts[-1] and not is_beside(line[0], parts[-1][-1][-1]) and line[0].middle[1] < parts[-1][-1][0].middle[1]:
            parts.append([])
        parts[-1].append(line)
    columns = [[word.box for line in part for word in line] for part in parts if len(part) > MIN_BODY_LINES]
    edges = [(sorted(left for left, *_ in boxes), sorted(right for _, _, right, _ in boxes)) for boxes in columns]
    sides = [(lefts[len(lefts) // STRAY], rights[-1 - len(rights) // STRAY]) for lefts, rights in edges]
    return len(sides) > 1 and all(after[0] >= before[1] or after[1] <= before[0] for before, after in pairwise(sides))


def _drawn_lines(words: list[Word], gap: float = float("inf")) -> list[list[Word]]:
    """Group words in the order in which they are drawn: those after each other on one line, without wide gaps."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda each: each.order):
        last = lines[-1][-1] if lines else None
        distance = word.box[0] - last.box[2] if last else 0.0
        is_next = word.line is None and -word.height < distance < gap * word.height
        if last and is_beside(word, last) and (is_next or (word.line is not None and word.line == last.line)):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def _drawn_blocks(
    members: dict[int, list[Word]], areas: list[Any], hyphens: Hyphens, heights: Heights
) -> Iterator[Block]:
    """Yield blocks in the order in which they are drawn; words of blocks that the layout mixed are paragraphs."""
    place_of = {id(word): place for place, words in members.items() for word in words}
    ordered = sorted((word for words in members.values() for word in words), key=lambda each: each.order)
    stretches = [(place, list(words)) for place, words in groupby(ordered, key=lambda word: place_of[id(word)])]
    longest: dict[int, list[Word]] = {}
    for place, words in stretches:
        longest[place] = max(longest.get(place, words), words, key=len)
    whole = {
        place
        for place, words in members.items()
        if place >= 0 and len(longest[place]) >= WHOLE * len(words) and not _is_mixed(words, areas[place])
    }
    if len(whole) < len(members):  # paragraphs that the layout mixed continue in those that it did not
        whole = {place for place in whole if areas[place].kind != "paragraph"}
    own = {place: [word for word in members[place] if _is_near(word, longest[place])] for place in whole}
    inside = {id(word) for words in own.values() for word in words}
    loose: list[Word] = []
    for place, words in stretches:
        loose += [word for word in words if id(word) not in inside]
        if place in whole and words is longest[place]:
            yield from _paragraphs(loose, hyphens, heights)
            loose = []
            yield from _block(own[place], areas[place], hyphens, heights)
    yield from _paragraphs(loose, hyphens, heights)


def _is_near(word: Word, stretch: list[Word]) -> bool:
    """Return whether a word is drawn within or next to a stretch, as a raised one may be."""
    return stretch[0].order - NEAR <= word.order <= stretch[-1].order + NEAR


def _is_mixed(words: list[Word], area: Any) -> bool:
    """Return whether the block of a layout puts words into another order than they are drawn.

    The cells of a table must be in order: justified lines and numbered code have gaps that look like those of a table.
    """
    if area.kind == "table":
        lines = [cell for row in _cells(words, area) for cell in row if cell]
        return _steps_back(lines, 0) > MIN_CONTINUED * len(lines)
    lines = lines_of(words)
    return _steps_back(lines, NEAR) > MIN_CONTINUED * len(lines)


def _steps_back(lines: list[list[Word]], near: float) -> int:
    """Return how often a word is read before one that is drawn more than `near` words earlier."""
    read = [word.order for line in lines for word in line]
    return sum(before - after > near for before, after in pairwise(read))


def _is_prose(words: list[Word], area: Any) -> bool:
    """Return whether the cells of a table mix lines that are drawn one below the other."""
    lines = _drawn_lines(words)
    is_falling = all(line[0].box[3] >= before[0].middle[1] for before, line in pairwise(lines))
    return is_falling and all(word.line is None for word in words) and _is_mixed(words, area)


def _paragraphs(words: list[Word], hyphens: Hyphens, heights: Heights) -> Iterator[Block]:
    """Yield words as they are drawn; a gap between two lines, or one above the other, begins another paragraph."""
    lines = _drawn_lines(words)
    paragraph: list[list[Word]] = []
    for line in lines:
        if paragraph:
            gap = min(word.box[1] for word in line) - max(word.box[3] for word in paragraph[-1])
            if not -line[0].height < gap < PARAGRAPH_GAP * line[0].height:
                yield from _block([word for each in paragraph for word in each], None, hyphens, heights, paragraph)
                paragraph = []
        paragraph.append(line)
    if paragraph:
        yield from _block([word for each in paragraph for word in each], None, hyphens, heights, paragraph)


def _box(rect: Any) -> Box:
    return rect.x, rect.y, rect.x + rect.width, rect.y + rect.height


def _around(word: Word, boxes: list[Box]) -> int:
    """Return the smallest box that contains the middle of a word, or -1."""
    x, y = word.middle
    found = [
        ((right - left) * (bottom - top), place)
        for place, (left, top, right, bottom) in enumerate(boxes)
        if left <= x <= right and top <= y <= bottom
    ]
    return min(found)[1] if found else -1


def _before(word: Word, boxes: list[Box]) -> int:
    """Return the box nearest to a word that no box contains, or -1."""
    x, y = word.middle
    distances = [
        (max(left - x, 0, x - right) + 2 * max(top - y, 0, y - bottom), place)
        for place, (left, top, right, bottom) in enumerate(boxes)
    ]
    return min(distances)[1] if distances else -1


def _block(
    words: list[Word], area: Any, hyphens: Hyphens, heights: Heights, lines: list[list[Word]] | None = None
) -> Iterator[Block]:
    kind = "paragraph" if area is None else area.kind
    if kind == "table":
        yield from _table(words, area, hyphens)
        return
    lines = lines_of(words) if lines is None else lines
    if kind == "list_item" and (end := _end_of_item(lines)):
        yield from _block([word for line in lines[:end] for word in line], area, hyphens, heights)
        yield from _block([word for line in lines[end:] for word in line], None, hyphens, heights)
        return
    texts = [_unspaced(line, hyphens) or text_of(line) for line in lines]
    text = hyphens.mended(texts, is_one=kind != "paragraph" or is_wrapped(texts))
    printed = [heights.of(word) for word in words if not word.typed]
    least = min(printed) if printed and kind == "paragraph" else 0.0
    if kind == "heading" and printed:
        yield Heading(text, min(max(area.level or 1, 1), 6))
    elif least >= HEADING_SIZES[-1][0] and len(lines) <= MAX_HEADING_LINES and words[0].upright:
        yield Heading(text.replace("\n", " "), next(level for size, level in HEADING_SIZES if least >= size))
    elif kind == "list_item":
        marker = (area.marker or "").strip()
        rest = text.removeprefix(marker).strip() if marker else text
        if area.ordered and re.fullmatch(r"\d{1,9}[.)]", marker):
            yield Item(rest, max(area.level or 0, 0), marker)
        elif area.ordered:
            yield Paragraph(text)
        else:
            yield Item(rest if marker else text.lstrip("•◦▪–-* "), max(area.level or 0, 0))
    elif kind in {"code", "grid_fallback"} and not RIGHT_TO_LEFT.search(text):
        own = "\n".join(area.lines or ())
        same = sorted(own.split()) == sorted(word.text for word in words)
        yield Code(own if same else "\n".join(texts))
    else:
        yield Paragraph(text)


def _end_of_item(lines: list[list[Word]]) -> int:
    """Return the place of the first line of the next paragraph in the lines of an item; 0 if there is none.

    It begins left of the item's number, or below it after a gap: further lines of an item are indented, or near.
    """
    if any(word.line is not None for line in lines for word in line):
        return 0
    starts = [min(word.box[0] for word in line) for line in lines]
    height = lines[0][0].height
    for place in range(1, len(lines)):
        gap = min(word.box[1] for word in lines[place]) - max(word.box[3] for word in lines[place - 1])
        is_below = starts[place] < starts[0] + height / 4 and gap >= PARAGRAPH_GAP * height
        if is_below or starts[place] < starts[0] - height / 2:
            return place
    return 0


def _unspaced(line: list[Word], hyphens: Hyphens) -> str:
    """Return the words of a line whose letters are set apart, as of a heading; empty if it has no such words."""
    if len(line) < MIN_SPACED or not all(len(word.text) == 1 and word.text.isalpha() for word in line):
        return ""
    gaps = [after.box[0] - before.box[2] for before, after in pairwise(line)]
    least = WORD_GAP * max(sorted(gaps)[len(gaps) // 2], 1)
    text = line[0].text
    for gap, word in zip(gaps, line[1:], strict=True):
        text += f" {word.text}" if gap > least else word.text
    if all(map(hyphens.is_word, text.lower().split())) and max(map(len, text.split())) > 2:
        return text
    return ""


def _cells(words: list[Word], area: Any) -> list[list[list[Word]]]:
    """Return the words of each cell of each row; a word belongs to the cell around it, or nearest to it.

    Rows begin at the right if that is the order in which words from right to left are drawn.
    """
    rows = [row for row in (area.header or [], *(area.rows or ())) if row]
    places = [(row, column) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell.bbox]
    boxes = [_box(rows[row][column].bbox) for row, column in places]
    if not boxes:
        return []
    members: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        place = _around(word, boxes)
        members[places[place if place >= 0 else _before(word, boxes)]].append(word)
    found = [[members[row, column] for column in range(len(cells))] for row, cells in enumerate(rows)]
    if any(word.line is not None for word in words):
        turned = [cells[::-1] for cells in found]
        ordered = ([cell for row in each for cell in row if cell] for each in (found, turned))
        from_left, from_right = (_steps_back(lines, 0) for lines in ordered)
        return turned if from_right < from_left else found
    return found


def _table(words: list[Word], area: Any, hyphens: Hyphens) -> Iterator[Block]:
    rows = _cells(words, area)
    for cells in rows:
        yield TableRow([hyphens.mended(list(map(text_of, lines_of(cell))), is_one=True) for cell in cells])
    if not rows:
        yield Paragraph(hyphens.mended(list(map(text_of, lines_of(words))), is_one=True))
