"""PDF as blocks: the words of one engine, in the layout of another, checked by a third.

`pdfium` knows the letters and the direction of writing, and reads across columns. `liteparse` finds columns, headings,
lists and tables, and changes words: it joins them at hyphens and writes formulas in signs of its own. So each word of
the first is put into the block of the second that surrounds it. `pdf_oxide` reads the page again: where their words
differ, the source says so.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from ctypes import byref, c_double, c_int
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from typing import Any, Final, TypeAlias

import liteparse
import pdf_oxide
import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import raw as pdfium
from spellchecker import SpellChecker

from contracts.texts import plural
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import (
    Block,
    Code,
    DocumentFacts,
    Heading,
    Item,
    Page,
    Paragraph,
    TableRow,
    stated_facts,
)
from providers.reading.left_out import MIN_SHARE
from providers.reading.right_to_left import Glyph, parted, spoken_words
from providers.text import detect_language, is_wrapped

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in points, from the upper left corner of the page as it is shown."""

MAX_PAGES: Final = 5_000
PAGES_AT_ONCE: Final = 20
SCALE: Final = 1_000  # of a point, in which pdfium maps places to the page as it is shown
COLUMN_GAP: Final = 3  # heights of a line, from which a gap in it parts two columns
LINE_OVERLAP: Final = 0.5  # share of the height of the lower of two words that are on one line
EDGE_LINES: Final = 2
"""Lines at the top and at the bottom of a page that may be its running head or foot."""
DIFFERENCE: Final = 0.02
"""Share of the words of a page that two engines read differently, above which the page is uncertain."""
BETTER_BY: Final = 0.4
"""How much more of its own words must be known for the second engine's reading of a page to replace the first one's."""
KNOWN_LENGTH: Final = 3  # letters of a word that tells words from parts of them
OFTEN: Final = 5
SHOWN_PAGES: Final = 12  # in a warning
MIN_WORDS: Final = 20  # of a page; with fewer one odd word is more than the share
LINE_END_HYPHEN: Final = "\x02"  # what pdfium reads for a hyphen at the end of a line
HYPHENS: Final = f"-\u2010\u00ad{LINE_END_HYPHEN}"
BROKEN_RANGE: Final = re.compile(r"(?<=\d)([-\u2010\u2013])[ \n](?=\d)")  # "10-" at the end of a line, "14" on the next
BROKEN: Final = re.compile(f"([^\\W\\d_]{{2,}})[{HYPHENS}]\\s*([^\\W\\d_]{{2,}})")
RUN: Final = re.compile(f"[^\\s\\x00{LINE_END_HYPHEN}]+{LINE_END_HYPHEN}?")
WORDS: Final = re.compile(r"[^\W_]+")
RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
NO_SPACES: Final = re.compile("[\u0590-\u1cff\u2e80-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Writing of which the engines find words by spaces that they guess, or in shapes: letters are compared instead."""
TYPED_FIELDS: Final = frozenset(("text", "textfield", "combobox", "listbox"))
HEADING_SIZES: Final = ((1.8, 1), (1.4, 2), (1.2, 3))
"""Letters so many times as high as the usual ones of the pages around are of a heading of this level."""
MAX_HEADING_LINES: Final = 2
NUMBER: Final = re.compile(r"\d{1,9}")
KNOWN_SHARE: Final = 0.1
"""How common a joined word must be, compared with the rarer of its halves, to be the word that a line end divided."""


@dataclass(slots=True)
class Word:
    """A word as pdfium reads it; `order` counts within the page."""

    text: str
    box: Box
    order: float
    upright: bool = True
    line: float | None = None
    """The line of a word from right to left, which no layout divides."""

    @property
    def middle(self) -> tuple[float, float]:
        """The place that decides to which block the word belongs."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


@dataclass(slots=True)
class Doubts:
    """What a second engine reads otherwise, filled while the blocks are read."""

    words: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Words that only one of two engines reads, by the number of the page."""
    unread: list[int] = field(default_factory=list)
    """Pages that could not be opened."""
    shown: int = 0
    outside: int = 0
    """Words that the pages show, and those beyond their edges."""


def read_pdf(raw: bytes) -> tuple[Iterable[Block], DocumentFacts, Doubts]:
    """Return the blocks of a document, page by page, and its facts. Raises `SourceUnreadable`."""
    try:
        document = pypdfium2.PdfDocument(raw)
        if len(document) > MAX_PAGES:
            raise SourceUnreadable("too_large", f"the document has more than {MAX_PAGES} pages")
        stated = document.get_metadata_dict()
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise SourceUnreadable("encrypted", "the document is protected by a password") from error
        raise SourceUnreadable("malformed", "a damaged PDF") from error
    date = (stated.get("CreationDate") or stated.get("ModDate") or "").removeprefix("D:")[:8]
    doubts = Doubts()
    return _blocks(raw, document, doubts), stated_facts(stated.get("Title"), [stated.get("Author")], date), doubts


def _blocks(raw: bytes, document: Any, doubts: Doubts) -> Iterator[Block]:
    heads = _RunningHeads()
    second = _SecondOpinion(raw)
    with closing(document):
        for batch in _layout(raw):
            pages = [(number, *_read_page(document, number - 1, doubts)) for number, _ in batch]
            hyphens = _Hyphens([word.text for _, words, _ in pages for word in words])
            usual = _usual_height([word for _, words, _ in pages for word in words])
            for (number, layout), (_, printed, hidden) in zip(batch, pages, strict=True):
                yield Page(number)
                words = [*printed, *_typed_words(layout, len(printed))]
                other = second.text_of(number - 1)
                ours, theirs = differing(words, other, hidden)
                if is_better(theirs, ours, hyphens.is_word):
                    doubts.words[number] |= set(theirs)
                    yield from map(Paragraph, re.split(r"\n\s*\n", other))
                    continue
                doubts.words[number] |= set(ours)
                yield from _page_blocks(heads.removed(number, words), layout, hyphens, usual)


def _layout(raw: bytes) -> Iterator[list[tuple[int, Any]]]:
    """Yield the number and layout of each page, some pages at a time."""
    parser = liteparse.LiteParse(
        ocr_enabled=False, quiet=True, num_workers=1, max_pages=MAX_PAGES, image_mode="off", extract_links=False,
        keep_headers_footers=True, extract_blocks=True, extract_form_fields=True, extract_annotations=True,
        output_format="markdown", continue_on_page_error=True,
    )  # fmt: skip
    try:
        for batch in parser.parse_batches(raw, PAGES_AT_ONCE):
            found = {page.page_num: page for page in batch.result.pages}
            yield [(number, found.get(number)) for number in range(batch.start_page, batch.end_page + 1)]
    except liteparse.ParseError as error:
        raise SourceUnreadable("malformed", "a damaged PDF") from error


# --- words -----------------------------------------------------------------------------------------------------------
def _read_page(document: Any, index: int, doubts: Doubts) -> tuple[list[Word], Counter[str]]:
    """Return the words of a page, and those that it hides."""
    try:
        with closing(document[index]) as page, closing(page.get_textpage()) as text:
            words, hidden, outside = _words(page, text)
    except pypdfium2.PdfiumError:
        doubts.unread.append(index + 1)
        return [], Counter()
    doubts.shown += len(words)
    doubts.outside += len(outside)
    return words, Counter(word.text for word in (*hidden, *outside))


def _words(page: Any, text: Any) -> tuple[list[Word], list[Word], list[Word]]:
    """Split a page at its white space; return the words, the hidden ones, and those beyond the page.

    Words of render mode 3 are hidden, but over an image they are a scan's text. Those beyond the page are cut away.
    """
    count = pdfium.FPDFText_CountChars(text)
    characters = "".join(map(chr, map(pdfium.FPDFText_GetUnicode, repeat(text.raw, count), range(count))))
    shown = _Shown(page)
    words: list[Word] = []
    hidden: list[Word] = []
    outside: list[Word] = []
    places: dict[int, tuple[int, int]] = {}
    for start, end in _runs(characters):
        box = shown.box(text, start, end)
        if box is None:
            continue
        upright = abs(pdfium.FPDFText_GetCharAngle(text, start)) < 0.01
        word = Word(characters[start:end], box, len(words) + len(hidden), upright)
        places[word.order] = start, end
        if not shown.contains(word):
            outside.append(word)
        else:
            (hidden if _is_invisible(text, start) else words).append(word)
    if RIGHT_TO_LEFT.search(characters):
        words = list(_spoken(words, places, characters, text, shown))
    if hidden and any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)):
        words = sorted(words + hidden, key=lambda word: word.order)
        hidden = []
    return words, hidden, outside


def _spoken(
    words: list[Word], places: dict[int, tuple[int, int]], characters: str, text: Any, shown: "_Shown"
) -> Iterator[Word]:
    """Yield words, those of lines with writing from right to left as they are spoken; their line has its place."""
    yield from (word for word in words if not word.upright)
    for line in _geometric_lines([word for word in words if word.upright]):
        if not any(RIGHT_TO_LEFT.search(word.text) for word in line):
            yield from line
            continue
        top, bottom = min(word.box[1] for word in line), max(word.box[3] for word in line)
        height = max(word.box[3] - word.box[1] for word in line)
        glyphs = [  # from the origin: some fonts state no widths
            Glyph(characters[place], min(box[0], shown.origin(text, place)), box[2], word.order)
            for word in line
            for place in range(*places[word.order])
            if (box := shown.box(text, place, place + 1)) is not None
        ]
        first = min(word.order for word in line)
        spoken = [each for part in parted(glyphs, COLUMN_GAP * height) for each in spoken_words(part, height)]
        for number, signs in enumerate(spoken):
            left, right = min(sign.left for sign in signs), max(sign.right for sign in signs)
            order = first + number / len(spoken)
            yield Word("".join(sign.text for sign in signs), (left, top, right, bottom), order, line=first)


def _runs(characters: str) -> Iterator[tuple[int, int]]:
    """Yield the places of words; a hyphen at the end of a line ends one."""
    for match in RUN.finditer(characters):
        yield match.span()


def _is_invisible(text: Any, place: int) -> bool:
    piece = pdfium.FPDFText_GetTextObject(text, place)
    return bool(piece) and pdfium.FPDFTextObj_GetTextRenderMode(piece) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


class _Shown:
    """Maps the places of a page to the page as it is shown: turned, and cut to its box."""

    def __init__(self, page: Any) -> None:
        width, height = page.get_size()
        self._width, self._height = width, height
        size = int(width * SCALE), int(height * SCALE)

        def shown(x: float, y: float) -> tuple[float, float]:
            left, top = c_int(), c_int()
            pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, byref(left), byref(top))
            return left.value / SCALE, top.value / SCALE

        (self._x, self._y), (x_of_x, y_of_x), (x_of_y, y_of_y) = shown(0, 0), shown(1_000, 0), shown(0, 1_000)
        self._of_x = (x_of_x - self._x) / 1_000, (y_of_x - self._y) / 1_000
        self._of_y = (x_of_y - self._x) / 1_000, (y_of_y - self._y) / 1_000
        self._bounds = pdfium.FS_RECTF()
        self._reference = byref(self._bounds)
        self._find = pdfium.FPDFText_GetLooseCharBox

    def contains(self, word: Word) -> bool:
        """Return whether the middle of a word is on the page; others are cut away when it is shown."""
        x, y = word.middle
        return bool(0 <= x <= self._width and 0 <= y <= self._height)

    def box(self, text: Any, start: int, end: int) -> Box | None:
        """Return the box around the first and the last character of a word."""
        bounds, reference = self._bounds, self._reference
        if not self._find(text, start, reference):
            return None
        left, top, right, bottom = bounds.left, bounds.top, bounds.right, bounds.bottom
        if self._find(text, end - 1, reference):
            left, right = min(left, bounds.left), max(right, bounds.right)
            top, bottom = max(top, bounds.top), min(bottom, bounds.bottom)
        (x, y), (other_x, other_y) = self._point(left, top), self._point(right, bottom)
        return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)

    def origin(self, text: Any, place: int) -> float:
        """Return where a character begins, from the left edge of the page."""
        x, y = c_double(), c_double()
        pdfium.FPDFText_GetCharOrigin(text, place, byref(x), byref(y))
        return self._point(x.value, y.value)[0]

    def _point(self, x: float, y: float) -> tuple[float, float]:
        return (self._x + x * self._of_x[0] + y * self._of_y[0], self._y + x * self._of_x[1] + y * self._of_y[1])


def _typed_words(layout: Any, order: int) -> list[Word]:
    """Return what was typed into a page: the values of form fields, and notes that stand on it."""
    if layout is None:
        return []
    fields = [(each.value, each.rect) for each in layout.form_fields or () if each.type in TYPED_FIELDS]
    notes = [(each.contents, each.rect) for each in layout.annotations or () if each.subtype.lower() == "freetext"]
    words: list[Word] = []
    for text, rect in (*fields, *notes):
        if rect is None:
            continue
        lines = (text or "").splitlines()
        for number, line in enumerate(lines):
            top, height = rect.y + rect.height * number / len(lines), rect.height / len(lines)
            pieces = line.split()
            for place, piece in enumerate(pieces):
                left, width = rect.x + rect.width * place / len(pieces), rect.width / len(pieces)
                words.append(Word(piece, (left, top, left + width, top + height), order + len(words)))
    return words


# --- lines -----------------------------------------------------------------------------------------------------------
def lines_of(words: list[Word]) -> list[list[Word]]:
    """Return words as lines from the top; turned text, and lines from right to left, in the order of pdfium."""
    if not all(word.upright for word in words):
        return [words]
    lines = _geometric_lines(words)
    for line in lines:
        is_rtl = any(RIGHT_TO_LEFT.search(word.text) for word in line)
        line.sort(key=(lambda word: word.order) if is_rtl else (lambda word: (word.box[0], word.order)))
    return lines


def _geometric_lines(words: list[Word]) -> list[list[Word]]:
    """Group words by their height on the page."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda each: (each.middle[1], each.order)):
        _, top, _, bottom = word.box
        above = lines[-1][0].box if lines else (0.0, 0.0, 0.0, -1.0)
        common = min(bottom, above[3]) - max(top, above[1])
        if lines and common >= LINE_OVERLAP * min(bottom - top, above[3] - above[1]):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def _line_text(line: list[Word]) -> str:
    return " ".join(word.text for word in line)


class _RunningHeads:
    """Lines at the edges of pages that earlier pages have, too: the same words, and numbers that are equal or count."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, list[int]]] = {}

    def removed(self, page: int, words: list[Word]) -> list[Word]:
        """Return the words without the running heads and feet that an earlier page has."""
        lines = lines_of([word for word in words if word.upright])
        if len(lines) <= 2 * EDGE_LINES:
            return words
        gone = set[int]()
        for line in (*lines[:EDGE_LINES], *lines[-EDGE_LINES:]):
            text = _line_text(line)
            skeleton, numbers = NUMBER.sub("#", text), [int(number) for number in NUMBER.findall(text)]
            last, before = self._seen.get(skeleton, (page, numbers))
            if last < page and all(new in {old, old + page - last} for new, old in zip(numbers, before, strict=True)):
                gone |= {id(word) for word in line}
            self._seen[skeleton] = page, numbers
        return [word for word in words if id(word) not in gone]


class _Hyphens:
    """Decides whether the hyphen at the end of a line is one of the word."""

    def __init__(self, words: list[str]) -> None:
        self._counts = Counter(word.strip(".,;:!?()\"'“”").lower() for word in words)
        self._language = detect_language(" ".join(words[:500]))

    def is_word(self, word: str) -> bool:
        """Return whether a word is in the dictionary of the document's language, or often in the document itself."""
        return _known_words(self._language)[word] > 0 or self._counts[word] >= OFTEN

    def mended(self, text: str) -> str:
        """Return a text whose line ends are spaces with its divided words whole."""
        whole = BROKEN.sub(self._whole, text).replace(LINE_END_HYPHEN, "-").replace("\u00ad", "")
        return BROKEN_RANGE.sub(r"\1", whole)

    def _whole(self, match: re.Match[str]) -> str:
        left, right = match[1], match[2]
        if match[0] in {f"{left}-{right}", f"{left}\u2010{right}"}:  # within a line
            return match[0]
        joined, written = f"{left}{right}".lower(), f"{left}-{right}".lower()
        if self._counts[written] > self._counts[joined]:
            return f"{left}-{right}"
        if self._counts[joined]:
            return left + right
        if right[0].isupper() and not left.isupper():  # a name of two
            return f"{left}-{right}"
        known = _known_words(self._language)
        rarer = min(known[left.lower()], known[right.lower()])
        return f"{left}-{right}" if rarer and known[joined] < KNOWN_SHARE * rarer else left + right


@cache
def _known_words(language: str) -> Counter[str]:
    """Return how often words occur in subtitles of films, of languages that the library ships; else nothing."""
    try:
        return Counter(SpellChecker(language=language).word_frequency.dictionary)
    except ValueError:
        return Counter()


# --- blocks ----------------------------------------------------------------------------------------------------------
def _page_blocks(words: list[Word], layout: Any, hyphens: _Hyphens, usual: float) -> Iterator[Block]:
    """Yield the blocks of a page: those of the layout with the words in them, and other words where they stand."""
    areas = [] if layout is None else [block for block in layout.blocks or () if block.bbox is not None]
    boxes = [_box(area.bbox) for area in areas]
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
    for place in sorted(members):
        area = areas[place] if place >= 0 else None
        yield from _block(members[place], area, hyphens, usual)


def _usual_height(words: list[Word]) -> float:
    """Return the height of most letters."""
    heights: Counter[float] = Counter()
    for word in words:
        heights[round(word.box[3] - word.box[1], 1)] += len(word.text)
    return heights.most_common(1)[0][0] if heights else 0.0


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


def _block(words: list[Word], area: Any, hyphens: _Hyphens, usual: float) -> Iterator[Block]:
    kind = "paragraph" if area is None else area.kind
    if kind == "table":
        yield from _table(words, area, hyphens)
        return
    lines = lines_of(words)
    texts = list(map(_line_text, lines))
    text = hyphens.mended((" " if kind != "paragraph" or is_wrapped(texts) else "\n").join(texts))
    least = min(word.box[3] - word.box[1] for word in words) / usual if usual and kind == "paragraph" else 0.0
    if kind == "heading":
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
        yield Code(own if same else "\n".join(map(_line_text, lines)))
    else:
        yield Paragraph(text)


def _table(words: list[Word], area: Any, hyphens: _Hyphens) -> Iterator[Block]:
    """Yield the rows of a table; each word belongs to the cell around it, or nearest to it."""
    rows = [row for row in (area.header or [], *(area.rows or ())) if row]
    places = [(row, column) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell.bbox]
    boxes = [_box(rows[row][column].bbox) for row, column in places]
    if not boxes:
        yield Paragraph(hyphens.mended(" ".join(map(_line_text, lines_of(words)))))
        return
    members: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        place = _around(word, boxes)
        members[places[place if place >= 0 else _before(word, boxes)]].append(word)
    for row, cells in enumerate(rows):
        texts = (" ".join(map(_line_text, lines_of(members[row, column]))) for column in range(len(cells)))
        yield TableRow([hyphens.mended(text) for text in texts])


# --- the second opinion ----------------------------------------------------------------------------------------------
class _SecondOpinion:
    """Another engine's words of a page."""

    def __init__(self, raw: bytes) -> None:
        try:
            self._document: Any = pdf_oxide.PdfDocument.from_bytes(raw)
        except (OSError, RuntimeError, ValueError):
            self._document = None

    def text_of(self, index: int) -> str:
        """Return the text of a page; empty if this engine cannot read it."""
        if self._document is None:
            return ""
        try:
            return str(self._document.extract_text(index))
        except (OSError, RuntimeError, ValueError):
            return ""


def differing(words: list[Word], other: str, hidden: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the words that only the first and only the second engine reads, if they are more than `DIFFERENCE`."""
    text = " ".join(word.text for word in words)
    if len(words) < MIN_WORDS or not other.strip() or NO_SPACES.search(text):
        return Counter(), Counter()
    ours, theirs = compared_words(text), compared_words(other) - compared_words(" ".join(hidden.elements()))
    common = sum((ours & theirs).values())
    if common >= (1 - DIFFERENCE) * max(sum(ours.values()), sum(theirs.values())):
        return Counter(), Counter()
    return ours - theirs, theirs - ours


def is_better(theirs: Counter[str], ours: Counter[str], known: Callable[[str], bool]) -> bool:
    """Return whether the second engine reads words where the first reads none: by far more of its own are known."""
    if sum(ours.values()) < MIN_WORDS or sum(theirs.values()) < MIN_WORDS:
        return False
    return _known_share(theirs, known) >= _known_share(ours, known) + BETTER_BY


def _known_share(words: Counter[str], known: Callable[[str], bool]) -> float:
    long = {word: count for word, count in words.items() if len(word) >= KNOWN_LENGTH and word.isalpha()}
    return sum(count for word, count in long.items() if known(word)) / max(1, sum(words.values()))


def compared_words(text: str) -> Counter[str]:
    """Return the words of a text as two engines are compared: without hyphens, in small letters."""
    return Counter(WORDS.findall(re.sub(f"[{HYPHENS}]\\s*", "", text).lower()))


def page_warnings(doubts: Doubts) -> list[str]:
    """Return the warnings: pages that could not be opened, pages on which two differ, words beyond the edge."""
    uncertain = [number for number, words in doubts.words.items() if words]
    warnings = []
    if doubts.unread:
        warnings.append(f"{plural(len(doubts.unread), 'page')} could not be read: {_numbers(doubts.unread)}")
    if uncertain:
        pages = f"{plural(len(uncertain), 'page')}, where two readers differ: {_numbers(uncertain)}"
        warnings.append(f"reading uncertain on {pages}")
    if doubts.outside > (1 - MIN_SHARE) * (doubts.shown + doubts.outside):
        share = doubts.shown / (doubts.shown + doubts.outside)
        warnings.append(f"{share:.0%} of the words are read; not read: beyond the edge of a page ({doubts.outside:,})")
    return warnings


def _numbers(pages: list[int]) -> str:
    shown = ", ".join(map(str, pages[:SHOWN_PAGES]))
    return shown + (" …" if len(pages) > SHOWN_PAGES else "")
