"""Words of a PDF that no reader of its pages sees: what looks ordinary is believed, all else is drawn and looked at.

A page is drawn once as it is, and once without the words in doubt: where nothing changes in the place of a letter,
readers do not see it, whatever the trick is. Words that lie over one another are taken out one after the other.
"""

import ctypes
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]
from pypdfium2 import PdfMatrix

from providers.reading.formats.pdf_drawing import Drawing

MOST_OBJECTS: Final = 10_000
"""Of one page; of what comes behind them all words are in doubt."""
MOST_GROUNDS: Final = 200
DEEPEST: Final = 20
"""Forms inside one another; of what is deeper no words are read."""
SECONDS: Final = 4.0
"""Of processor time that is spent on drawing the pages of one document."""
MOST_TURNS: Final = 6
"""How often a page is drawn without some words; what lies under so many others is not read."""
CELL: Final = 4.0
"""Points: words in one cell may lie over one another."""
RECOGNIZED: Final = frozenset((pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP))
SMALLEST_LETTERS: Final = 1.5
"""Points, high and wide; fine print has four."""
NARROWEST: Final = 20.0
"""How many times as high as wide letters may be."""
THIN: Final = 2.0
"""Points of a line that covers no words."""
DARK, LIGHT, OPAQUE = 128, 200, 250

PLAIN: Final = PdfMatrix()


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def holds(self, other: "_Box") -> bool:
        return (
            self.left <= other.left + THIN
            and other.right <= self.right + THIN
            and self.bottom <= other.bottom + THIN
            and other.top <= self.top + THIN
        )

    @property
    def thickness(self) -> float:
        return min(self.right - self.left, self.top - self.bottom)


@dataclass
class _Words:
    """One object of text: its place in the order of drawing, its box on the page, and why it is in doubt."""

    one: Any
    place: int
    box: _Box | None
    recognized: bool
    tiny: bool
    odd: bool
    """It does not look like ordinary words by itself, whatever is around it."""
    parts: list[list[int]] = field(default_factory=list)
    """The numbers of its letters, word by word."""
    unseen: list[int] = field(default_factory=list)


class UnseenWords:
    """Looks for unseen words on the pages of one document, for a limited time."""

    def __init__(self) -> None:
        self._spent = 0.0
        self.unchecked = 0
        """Pages on which words were left out or kept without having been looked at."""

    def seen_text(self, page: Any) -> str:
        """The text of a page without words that are drawn invisible, covered, cut off, or in the colour of the ground.

        Invisible words over the print of a scan, which are what was recognized in it, are kept.
        """
        objects = list(_objects(page.raw))
        doubtful = {_address(words.one): words for words in _in_doubt(objects, _Box(*page.get_cropbox()))}
        layer = page.get_textpage()
        try:
            if not doubtful:
                return str(layer.get_text_range())
            others = _gather(layer, doubtful)
            begun = time.process_time()
            if self._spent < SECONDS:
                _look(page, layer, list(doubtful.values()), others)
            else:
                self.unchecked += 1
                for words in doubtful.values():
                    words.unseen = _letters_of(words.parts) if words.odd or words.tiny or words.recognized else []
            self._spent += time.process_time() - begun
            return _without(layer, [number for words in doubtful.values() for number in words.unseen])
        finally:
            layer.close()


def _objects(page: Any) -> Iterator[tuple[Any, int, PdfMatrix]]:
    """All objects of a page and of the forms on it, as they are drawn: kind, and the place of the form."""
    count = pdfium_c.FPDFPage_CountObjects(page)
    waiting = [(pdfium_c.FPDFPage_GetObject(page, place), PLAIN, 0) for place in reversed(range(count))]
    while waiting:
        one, matrix, depth = waiting.pop()
        kind = pdfium_c.FPDFPageObj_GetType(one)
        yield one, kind, matrix
        if kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < DEEPEST:
            inner = _matrix(one).multiply(matrix)
            count = pdfium_c.FPDFFormObj_CountObjects(one)
            waiting += [
                (pdfium_c.FPDFFormObj_GetObject(one, place), inner, depth + 1) for place in reversed(range(count))
            ]


def _in_doubt(objects: list[tuple[Any, int, PdfMatrix]], sheet: _Box) -> list[_Words]:
    """The words that may not be seen: all but dark ones, whole on the page, with nothing but light under them."""
    words, grounds = [], []
    for place, (one, kind, matrix) in enumerate(objects):
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            words.append(_words(one, place, matrix, sheet))
        elif kind != pdfium_c.FPDF_PAGEOBJ_FORM and (box := _box(one, matrix)) and box.thickness > THIN:
            grounds.append((place, box, _is_light(one, kind)))
    if len(grounds) > MOST_GROUNDS or len(objects) > MOST_OBJECTS:
        return words
    return [
        one
        for one in words
        if one.odd
        or one.box is None
        or any(box.meets(one.box) and not (light and place < one.place) for place, box, light in grounds)
    ]


def _words(one: Any, place: int, matrix: PdfMatrix, sheet: _Box) -> _Words:
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(one)
    color, box = _color(pdfium_c.FPDFPageObj_GetFillColor, one), _box(one, matrix)
    size = _size(one, matrix)
    plain = (
        matrix is PLAIN
        and mode == pdfium_c.FPDF_TEXTRENDERMODE_FILL
        and color is not None
        and max(color[:3]) <= DARK
        and color[3] >= OPAQUE
        and size >= 2 * SMALLEST_LETTERS
        and box is not None
        and sheet.holds(box)
        and not pdfium_c.FPDFPageObj_HasTransparency(one)
        and not _is_of_a_layer(one)
        and _is_whole(one, box)
    )
    return _Words(one, place, box, mode in RECOGNIZED, tiny=size < SMALLEST_LETTERS, odd=not plain)


def _is_light(one: Any, kind: int) -> bool:
    """Whether dark words on a filled shape are seen."""
    if kind != pdfium_c.FPDF_PAGEOBJ_PATH:
        return False
    color = _color(pdfium_c.FPDFPageObj_GetFillColor, one)
    return color is not None and min(color[:3]) >= LIGHT


def _is_of_a_layer(one: Any) -> bool:
    """Whether words belong to a layer that may be switched off."""
    for place in range(pdfium_c.FPDFPageObj_CountMarks(one)):
        name, size = (ctypes.c_ushort * 8)(), ctypes.c_ulong()
        mark = pdfium_c.FPDFPageObj_GetMark(one, place)
        if pdfium_c.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), size) and bytes(name)[:6] == b"O\0C\0\0\0":
            return True
    return False


def _is_whole(one: Any, box: _Box) -> bool:
    """Whether no clip takes anything of an object away, as far as clips are rectangles."""
    clip = pdfium_c.FPDFPageObj_GetClipPath(one)
    count = pdfium_c.FPDFClipPath_CountPaths(clip) if clip else 0
    if count <= 0:
        return True
    for path in range(count):
        segments = pdfium_c.FPDFClipPath_CountPathSegments(clip, path)
        points = [_point(clip, path, place) for place in range(min(segments, 6))]
        across, along = sorted({round(x) for x, _ in points}), sorted({round(y) for _, y in points})
        if segments > 5 or len(across) != 2 or len(along) != 2:
            return False
        if not _Box(across[0], along[0], across[1], along[1]).holds(box):
            return False
    return True


def _point(clip: Any, path: int, place: int) -> tuple[float, float]:
    across, along = ctypes.c_float(), ctypes.c_float()
    segment = pdfium_c.FPDFClipPath_GetPathSegment(clip, path, place)
    pdfium_c.FPDFPathSegment_GetPoint(segment, across, along)
    return across.value, along.value


def _gather(layer: Any, doubtful: dict[int, _Words]) -> int:
    """Give each object in doubt its letters, word by word; how many letters others have."""
    others, last, open_word = 0, 0, False
    for number in range(layer.count_chars()):
        sign = pdfium_c.FPDFText_GetUnicode(layer, number)
        one = pdfium_c.FPDFText_GetTextObject(layer, number)
        address = _address(one) if one else 0
        words = doubtful.get(address)
        if words is None or sign <= 32 or sign == 0xA0:
            others += words is None and sign > 32
            open_word = False
            continue
        if not open_word or address != last:
            words.parts.append([])
        words.parts[-1].append(number)
        last, open_word = address, True
    return others


def _look(page: Any, layer: Any, doubtful: list[_Words], others: int) -> None:
    """Find the unseen letters of words in doubt by drawing the page without some of them at a time."""
    recognized = [words for words in doubtful if words.recognized]
    for words in (words for words in doubtful if words.tiny or words.recognized):
        words.unseen = _letters_of(words.parts)
        _show(words, shown=False)
    drawn = Drawing(page)
    for turn in _turns([words for words in doubtful if words.parts and not words.unseen]):
        for words in turn:
            _show(words, shown=False)
        without = drawn.again()
        for words in turn:
            seen = [part for part in words.parts if _mostly(drawn.changes(layer, number, without) for number in part)]
            words.unseen = _letters_of(part for part in words.parts if part not in seen)
            # What is not seen stays away, so that the same words beneath are not taken for its traces.
            _show(words, shown=bool(seen))
    seen_letters = others + sum(len(_letters_of(words.parts)) - len(words.unseen) for words in doubtful)
    if sum(len(words.unseen) for words in recognized) > seen_letters:
        for words in doubtful:
            _show(words, shown=False)
        scan = drawn.again()
        for words in recognized:
            found = (part for part in words.parts if not _mostly(drawn.is_printed(layer, n, scan) for n in part))
            words.unseen = _letters_of(found)


def _turns(doubtful: list[_Words]) -> list[list[_Words]]:
    """Words that may be looked at together, for none of them lies over another; the rest is not seen."""
    turns: list[list[_Words]] = []
    taken: list[set[tuple[int, int]]] = []
    for words in reversed(doubtful):
        cells = set(_cells(words.box)) if words.box else set()
        place = next((place for place, others in enumerate(taken) if others.isdisjoint(cells)), len(turns))
        if place >= MOST_TURNS:
            words.unseen = _letters_of(words.parts)
            continue
        if place == len(turns):
            turns.append([])
            taken.append(set())
        turns[place].append(words)
        taken[place] |= cells
    return turns


def _cells(box: _Box) -> Iterator[tuple[int, int]]:
    """The cells of a grid over a page in which words lie, but for a narrow margin; none for those far outside."""
    margin = min(1.0, box.thickness / 4)
    across = range(max(-100, int((box.left + margin) / CELL)), min(4_000, int((box.right - margin) / CELL) + 1))
    along = range(max(-100, int((box.bottom + margin) / CELL)), min(4_000, int((box.top - margin) / CELL) + 1))
    return ((column, row) for column in across for row in along)


def _without(layer: Any, unseen: Iterable[int]) -> str:
    """The text of a page without some letters."""
    gone = {pdfium_c.FPDFText_GetTextIndexFromCharIndex(layer, number) for number in unseen}
    text = str(layer.get_text_range()).encode("utf-16-le", "surrogatepass")
    kept = b"".join(text[place : place + 2] for place in range(0, len(text), 2) if place // 2 not in gone)
    return kept.decode("utf-16-le", "ignore")


def _show(words: _Words, *, shown: bool) -> None:
    pdfium_c.FPDFPageObj_SetIsActive(words.one, shown)


def _letters_of(parts: Iterable[list[int]]) -> list[int]:
    return [number for part in parts for number in part]


def _mostly(found: Iterable[bool]) -> bool:
    each = list(found)
    return 2 * sum(each) >= len(each)


def _size(one: Any, matrix: PdfMatrix) -> float:
    """The lesser of height and width of the letters on the page, in points."""
    size = ctypes.c_float()
    if not pdfium_c.FPDFTextObj_GetFontSize(one, size):
        return SMALLEST_LETTERS
    a, b, c, d, _, _ = _matrix(one).multiply(matrix).get()
    # Letters may be set narrow, up to a point.
    return float(abs(size.value) * min(max(abs(c), abs(d)), NARROWEST * max(abs(a), abs(b))))


def _matrix(one: Any) -> PdfMatrix:
    found = pdfium_c.FS_MATRIX()
    return PdfMatrix.from_raw(found) if pdfium_c.FPDFPageObj_GetMatrix(one, found) else PLAIN


def _box(one: Any, matrix: PdfMatrix) -> _Box | None:
    """The box of an object on the page."""
    parts = [ctypes.c_float() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetBounds(one, *parts):
        return None
    bounds = [part.value for part in parts]
    return _Box(*(bounds if matrix is PLAIN else matrix.on_rect(*bounds)))


def _color(ask: Any, one: Any) -> tuple[int, ...] | None:
    """Red, green, blue and opacity, each up to 255."""
    parts = [ctypes.c_uint() for _ in range(4)]
    return tuple(part.value for part in parts) if ask(one, *parts) else None


def _address(one: Any) -> int:
    return ctypes.addressof(one.contents)
