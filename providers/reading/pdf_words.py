"""The words of a page of a PDF with their places, as `pdfium` reads them, and the lines that they form."""

import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from ctypes import byref, c_double, c_int, c_ushort
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise, repeat
from typing import Any, Final, TypeAlias

from pypdfium2 import raw as pdfium  # type: ignore[import-untyped]

from providers.reading.canonical_text import raised
from providers.reading.right_to_left import Glyph, parted, spoken_words

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in points, from the upper left corner of the page as it is shown."""

SCALE: Final = 1_000  # of a point, in which pdfium maps places to the page as it is shown
COLUMN_GAP: Final = 3  # heights of a line, from which a gap in it parts two columns
LINE_OVERLAP: Final = 0.5  # share of the height of the lower of two words that are on one line
LINE_END_HYPHEN: Final = "\x02"  # what pdfium reads for a hyphen at the end of a line
RUN: Final = re.compile(f"[^\\s\\x00{LINE_END_HYPHEN}]+{LINE_END_HYPHEN}?")
RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
MIXED_SCRIPTS: Final = re.compile("[\u0590-\u08ff]++[A-Za-z]++[\u0590-\u08ff]|[A-Za-z]++[\u0590-\u08ff]++[A-Za-z]")
"""Letters of one script between those of another: a font has signs of other letters under the names of these."""
RAISED_HEIGHT: Final = 0.92  # of the height of its word, below which a letter may be raised
RAISED_BY: Final = 0.12  # of the height of its word, from which a letter is raised
MAX_UNNAMED: Final = 0.02
"""Share of the words of a page that begin with a sign without a letter, above which its lines stay as they are."""
LEVEL: Final = 0.01  # radians
QUARTER: Final = math.pi / 2
SAMPLE: Final = 200
"""Letters of a page for each of which one word is asked for its angle."""
ACCENTS: Final = dict(
    zip("`´ˆ˜¯˘˙¨˚˝ˇ", "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c", strict=True)
)
"""Marks that a page may draw over a letter, and their combining forms."""
ACCENTED: Final = re.compile(f"[{''.join(ACCENTS)}][^\\W\\d_]")
DOTLESS: Final = {"ı": "i", "ȷ": "j"}
TYPED_FIELDS: Final = frozenset(("text", "textfield", "combobox", "listbox"))
BUTTONS: Final = frozenset(("checkbox", "radiobutton", "radio"))
CHECKED: Final = "☑"
UNCHECKED: Final = "☐"


@dataclass(slots=True)
class Word:
    """A word as pdfium reads it; `order` counts within the page, in the order in which it is drawn."""

    text: str
    box: Box
    order: float
    upright: bool = True
    line: float | None = None
    """The line of a word from right to left, which no layout divides."""
    typed: bool = False
    """Whether it was typed into the page; it may be a line of words."""

    @property
    def middle(self) -> tuple[float, float]:
        """The place that decides to which block the word belongs."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2

    @property
    def height(self) -> float:
        """The height of its line in points."""
        return self.box[3] - self.box[1]


@dataclass(slots=True)
class PageWords:
    """The words that a page shows, and the others of its file."""

    shown: list[Word] = field(default_factory=list)
    hidden: list[Word] = field(default_factory=list)
    """Words of invisible letters."""
    outside: list[Word] = field(default_factory=list)
    """Words beyond the edge, which are cut away when the page is shown."""
    unnamed: list[str] = field(default_factory=list)
    """Shown words that begin with a sign of which the file does not say which letter it is, or names a false one."""
    is_picture: bool = False
    """Whether the page has a picture and no word."""
    is_turned: bool = False
    """Whether people turn the page to read it: the places of its words are those of the turned page."""


def read_words(page: Any) -> PageWords:
    """Split a page at its white space. Words of render mode 3 are hidden, but over an image they are a scan's text."""
    found = PageWords()
    with closing(page.get_textpage()) as text:
        characters = _characters(text)
        direction, turns = _direction(page, text, characters)
        found.is_turned = turns > 0
        shown = _Shown(page, turns)
        places = _sort_words(found, shown, text, characters, direction)
        if turns and _is_upwards(found.shown):
            _order_by_lines(found.shown)
        elif RIGHT_TO_LEFT.search(characters) and len(found.unnamed) <= MAX_UNNAMED * len(found.shown):
            found.shown = list(_spoken(found.shown, places, characters, text, shown))
            found.unnamed += [word.text for word in found.shown if MIXED_SCRIPTS.search(word.text)]
    if found.hidden or not found.shown:
        _look_for_picture(page, found)
    return found


def _sort_words(
    found: PageWords, shown: "_Shown", text: Any, characters: str, direction: float
) -> dict[float, tuple[int, int]]:
    """Sort the words of a page by what people see of them; return the places of their characters by their order."""
    places: dict[float, tuple[int, int]] = {}
    for match in RUN.finditer(characters):
        start, end = match.span()
        box = shown.box(text, start, end)
        if box is None:
            continue
        upright = abs(pdfium.FPDFText_GetCharAngle(text, start) - direction) < LEVEL
        word = Word(match[0], box, len(places), upright)
        places[word.order] = start, end
        if upright and not direction and end - start > 1 and shown.is_uneven:
            word.text = shown.with_raised(text, match[0], start)
        if ACCENTED.search(match[0]):
            word.text = shown.with_accents(text, match[0], start)
        if not shown.contains(word):
            found.outside.append(word)
        elif _is_invisible(text, start):
            found.hidden.append(word)
        else:
            found.shown.append(word)
            if pdfium.FPDFText_HasUnicodeMapError(text, start) == 1:
                found.unnamed.append(word.text)
    return places


def _order_by_lines(words: list[Word]) -> None:
    """Put the words of a turned page into the order of its lines, each from the left."""
    ordered = (word for line in geometric_lines(words) for word in sorted(line, key=lambda each: each.box[0]))
    for order, word in enumerate(ordered):
        word.order = order
    words.sort(key=lambda each: each.order)


def _look_for_picture(page: Any, found: PageWords) -> None:
    """Show hidden words that stand over a picture, and note a page that is nothing but a picture."""
    has_picture = any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3))
    if found.hidden and has_picture:
        found.shown = sorted(found.shown + found.hidden, key=lambda word: word.order)
        found.hidden = []
    found.is_picture = has_picture and not found.shown


def _characters(text: Any) -> str:
    """Return the characters of a page, one for each place."""
    count = pdfium.FPDFText_CountChars(text)
    buffer = (c_ushort * (count + 1))()
    if pdfium.FPDFText_GetText(text, 0, count, buffer) == count + 1:
        written = bytes(buffer)[: 2 * count].decode("utf-16-le", "surrogatepass")
        if len(written) == count:
            return written.replace("\ufffe", LINE_END_HYPHEN)
    return "".join(map(chr, map(pdfium.FPDFText_GetUnicode, repeat(text.raw, count), range(count))))


def _direction(page: Any, text: Any, characters: str) -> tuple[float, int]:
    """Return the angle of most letters in radians, and by how many quarters a reader turns the page clockwise."""
    places = [match.start() for match in islice(RUN.finditer(characters), 0, None, max(1, len(characters) // SAMPLE))]
    quarters = Counter(round(pdfium.FPDFText_GetCharAngle(text, place) / QUARTER) % 4 for place in places)
    quarter, count = quarters.most_common(1)[0] if quarters else (0, 0)
    if 2 * count <= len(places):
        return 0.0, 0
    return quarter * QUARTER, (-quarter - page.get_rotation() // 90) % 4


def _is_upwards(words: list[Word]) -> bool:
    """Return whether most lines are above the one before: for some turned pages the library counts from their end."""
    steps = [after.middle[1] - before.middle[1] for before, after in pairwise(words) if not is_beside(after, before)]
    return 2 * sum(step < 0 for step in steps) > len(steps)


def _is_invisible(text: Any, place: int) -> bool:
    piece = pdfium.FPDFText_GetTextObject(text, place)
    return bool(piece) and pdfium.FPDFTextObj_GetTextRenderMode(piece) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


class _Shown:
    """Maps the places of a page to the page as it is read: turned, and cut to its box."""

    def __init__(self, page: Any, turns: int) -> None:
        if turns % 2 == 0:
            width, height = page.get_size()
        else:
            width, height = reversed(page.get_size())
        self._width = width
        self._height = height
        size = int(width * SCALE), int(height * SCALE)

        def shown(x: float, y: float) -> tuple[float, float]:
            left = c_int()
            top = c_int()
            pdfium.FPDF_PageToDevice(page, 0, 0, *size, turns, x, y, byref(left), byref(top))
            return left.value / SCALE, top.value / SCALE

        (self._x, self._y), (x_of_x, y_of_x), (x_of_y, y_of_y) = shown(0, 0), shown(1_000, 0), shown(0, 1_000)
        self._of_x = (x_of_x - self._x) / 1_000, (y_of_x - self._y) / 1_000
        self._of_y = (x_of_y - self._x) / 1_000, (y_of_y - self._y) / 1_000
        self._bounds = pdfium.FS_RECTF()
        self._reference = byref(self._bounds)
        self._find = pdfium.FPDFText_GetLooseCharBox
        self.is_uneven = False
        """Whether the first and the last letter of the last word are of different heights."""

    def contains(self, word: Word) -> bool:
        """Return whether the middle of a word is on the page; others are cut away when it is shown."""
        x, y = word.middle
        return bool(0 <= x <= self._width and 0 <= y <= self._height)

    def box(self, text: Any, start: int, end: int) -> Box | None:
        """Return the box around the first and the last character of a word."""
        bounds = self._bounds
        reference = self._reference
        if not self._find(text, start, reference):
            return None
        left = bounds.left
        top = bounds.top
        right = bounds.right
        bottom = bounds.bottom
        height = top - bottom
        if self._find(text, end - 1, reference):
            self.is_uneven = not RAISED_HEIGHT * height < bounds.top - bounds.bottom < height / RAISED_HEIGHT
            left = min(left, bounds.left)
            right = max(right, bounds.right)
            top = max(top, bounds.top)
            bottom = min(bottom, bounds.bottom)
        x, y = self._point(left, top)
        other_x, other_y = self._point(right, bottom)
        return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)

    def with_raised(self, text: Any, word: str, start: int) -> str:
        """Return a word in which a sign sets off raised letters: `1887^3` is no number of five digits."""
        spans = []
        for place in range(start, start + len(word)):
            if not self._find(text, place, self._reference):
                return word
            spans.append((self._bounds.bottom, self._bounds.top))
        height = max(top - bottom for bottom, top in spans)
        base = min(bottom for bottom, top in spans if top - bottom == height)
        small = [top - bottom < RAISED_HEIGHT * height and bottom > base + RAISED_BY * height for bottom, top in spans]
        first = next((place for place in range(len(word), 0, -1) if not small[place - 1]), len(word))
        if 0 < first < len(word) and word[first].isalnum():
            return word[:first] + raised(word[first:])
        last = next((place for place in range(len(word)) if not small[place]), 0)
        if word[:last].isdigit():
            return f"{raised(word[:last])} {word[last:]}"
        return word

    def with_accents(self, text: Any, word: str, start: int) -> str:
        """Return a word in which marks that stand over the next letter are one with it."""
        spans = []
        for place in range(start, start + len(word)):
            if not self._find(text, place, self._reference):
                return word
            spans.append((self._bounds.left, self._bounds.right))
        whole = ""
        place = 0
        while place < len(word):
            letter = word[place]
            following = word[place + 1 : place + 2]
            is_over = bool(following) and spans[place][0] < sum(spans[place + 1]) / 2 < spans[place][1]
            composed = unicodedata.normalize("NFC", DOTLESS.get(following, following) + ACCENTS.get(letter, letter))
            if letter in ACCENTS and is_over and len(composed) == 1:
                whole += composed
                place += 2
            else:
                whole += letter
                place += 1
        return whole

    def sides(self, text: Any, place: int, letter: str) -> tuple[float, float] | None:
        """Return the left and the right side of a letter: from its origin, since some fonts state no widths.

        A mark over a letter is where its ink is.
        """
        x = c_double()
        y = c_double()
        right = c_double()
        top = c_double()
        if unicodedata.category(letter) == "Mn":
            pdfium.FPDFText_GetCharBox(text, place, byref(x), byref(right), byref(y), byref(top))
            first = self._point(x.value, y.value)[0]
            second = self._point(right.value, top.value)[0]
            return min(first, second), max(first, second)
        box = self.box(text, place, place + 1)
        pdfium.FPDFText_GetCharOrigin(text, place, byref(x), byref(y))
        if box is None:
            return None
        return (min(box[0], self._point(x.value, y.value)[0]), box[2])

    def _point(self, x: float, y: float) -> tuple[float, float]:
        return (self._x + x * self._of_x[0] + y * self._of_y[0], self._y + x * self._of_x[1] + y * self._of_y[1])


def _spoken(
    words: list[Word], places: dict[float, tuple[int, int]], characters: str, text: Any, shown: _Shown
) -> Iterator[Word]:
    """Yield words, those of lines with writing from right to left as they are spoken; their line has its place."""
    yield from (word for word in words if not word.upright)
    letters = [character for character in characters if character.isalpha()]
    is_rtl = 2 * sum(map(bool, map(RIGHT_TO_LEFT.match, letters))) > len(letters)
    across = geometric_lines([word for word in words if word.upright])
    for line in chain.from_iterable(map(_drawn_apart, across)):
        if not any(RIGHT_TO_LEFT.search(word.text) for word in line):
            yield from line
            continue
        top = min(word.box[1] for word in line)
        bottom = max(word.box[3] for word in line)
        height = max(word.height for word in line)
        glyphs = [
            Glyph(characters[place], *sides, word.order, place)
            for word in line
            for place in range(*places[word.order])
            if (sides := shown.sides(text, place, characters[place])) is not None
        ]
        first = min(word.order for word in line)
        parts = list(parted(glyphs, COLUMN_GAP * height))
        if is_rtl or not any(glyph.kind == "L" for glyph in glyphs):
            parts.reverse()
        spoken = [each for part in parts for each in spoken_words(part, height)]
        for number, signs in enumerate(spoken):
            left = min(sign.left for sign in signs)
            right = max(sign.right for sign in signs)
            order = first + number / len(spoken)
            yield Word("".join(sign.text for sign in signs), (left, top, right, bottom), order, line=first)


def _drawn_apart(line: list[Word]) -> list[list[Word]]:
    """Divide a line at gaps between words that are not drawn one after the other, as those of two columns are not."""
    runs: list[list[Word]] = []
    for word in sorted(line, key=lambda each: each.order):
        if runs and word.order - runs[-1][-1].order <= 1:
            runs[-1].append(word)
        else:
            runs.append([word])
    parts: list[list[Word]] = []
    right = height = 0.0  # of the last part, whose words may be many
    for run in sorted(runs, key=lambda each: min(word.box[0] for word in each)):
        lowest = min(word.height for word in run)
        if parts and min(word.box[0] for word in run) - right < min(lowest, height):
            parts[-1] += run
            height = min(height, lowest)
        else:
            parts.append(run)
            height = lowest
            right = run[0].box[2]
        right = max(right, *(word.box[2] for word in run))
    return parts


def typed_words(layout: Any, printed: list[Word]) -> list[Word]:
    """Return what was typed into a page: the values of form fields, and notes that stand on it.

    Each follows the printed word before it on its line, as if it was printed there.
    """
    if layout is None:
        return []
    fields = [
        (form_field.value, form_field.rect)
        for form_field in layout.form_fields or ()
        if form_field.type in TYPED_FIELDS
    ]
    fields += [
        (CHECKED if form_field.checked else UNCHECKED, form_field.rect)
        for form_field in layout.form_fields or ()
        if form_field.type in BUTTONS
    ]
    notes = [
        (annotation.contents, annotation.rect)
        for annotation in layout.annotations or ()
        if annotation.subtype.lower() == "freetext"
    ]
    words: list[Word] = []
    for text, rect in (*fields, *notes):
        lines = [] if rect is None else (text or "").splitlines()
        for number, line in enumerate(lines):
            height = rect.height / len(lines)
            top = rect.y + height * number
            box = (rect.x, top, rect.x + rect.width, top + height)
            words.append(Word(" ".join(line.split()), box, 0, typed=True))
    from_top = sorted(printed, key=lambda each: (each.middle[1], each.order))
    heights = [word.middle[1] for word in from_top]
    for number, word in enumerate(sorted(words, key=lambda each: (each.box[1], each.box[0])), 1):
        first = bisect_left(heights, word.box[1])
        last = bisect_right(heights, word.box[3])
        beside = [each for each in from_top[first:last] if each.middle[0] < word.box[0]]
        above = from_top[first - 1].order if first else -1
        if beside:
            before = max(beside, key=lambda each: each.box[2]).order
        else:
            before = above
        word.order = before + number / (len(words) + 1)
    return [word for word in words if word.text]


def lines_of(words: list[Word]) -> list[list[Word]]:
    """Return words as lines from the top; turned text, and lines from right to left, in their order."""
    if not all(word.upright for word in words):
        return [words]
    lines = geometric_lines(words)
    for line in lines:
        is_rtl = any(word.line is not None for word in line)
        line.sort(key=(lambda word: word.order) if is_rtl else (lambda word: (word.box[0], word.order)))
    return lines


def geometric_lines(words: list[Word]) -> list[list[Word]]:
    """Group words by their height on the page."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda each: (each.middle[1], each.order)):
        if lines and is_beside(word, lines[-1][0]):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def is_beside(word: Word, other: Word) -> bool:
    """Return whether two words are on one line."""
    common = min(word.box[3], other.box[3]) - max(word.box[1], other.box[1])
    return common >= LINE_OVERLAP * min(word.height, other.height)


def text_of(line: list[Word]) -> str:
    """Return the words of a line with spaces between them."""
    return " ".join(word.text for word in line)
