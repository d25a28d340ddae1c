"""Words of a PDF that no reader of its pages sees: taken out before the text is read."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]

MOST_OBJECTS: Final = 10_000
"""Of one page; what comes behind them is not looked at."""
MOST_GROUNDS: Final = 300
UNSEEN_MODES: Final = frozenset((pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP))
SMALLEST_LETTERS: Final = 1.5
"""Points, high and wide; fine print has four."""
NARROWEST: Final = 20.0
"""How many times as high as wide letters may be."""
MOST_CLIPS: Final = 20
LEAST_LEFT: Final = 2.0
"""Points of what a clip leaves of a page, high and wide."""
FAINTEST: Final = 13
"""Of 255."""
WHITE: Final = 250


@dataclass(frozen=True)
class _Box:
    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "_Box") -> bool:
        """Whether the two have a point in common."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )


def drop_unseen_text(page: Any) -> int:
    """Take out words that are drawn invisible, too small, too faint, white on white or off the page; how many parts.

    A page with no other words keeps its invisible ones: they are what was recognized in a scan.
    """
    handle = page.raw
    count = pdfium_c.FPDFPage_CountObjects(handle)
    objects = [pdfium_c.FPDFPage_GetObject(handle, place) for place in range(min(count, MOST_OBJECTS))]
    kinds = [pdfium_c.FPDFPageObj_GetType(one) for one in objects]
    words = [place for place, kind in enumerate(kinds) if kind == pdfium_c.FPDF_PAGEOBJ_TEXT]
    if not words:
        return 0
    sheet = _Box(*page.get_cropbox())
    grounds = _Grounds(objects, kinds)
    recognized, unseen = [], []
    for place in words:
        if pdfium_c.FPDFTextObj_GetTextRenderMode(objects[place]) in UNSEEN_MODES:
            recognized.append(place)
        elif _is_unseen(objects[place], place, sheet, grounds):
            unseen.append(place)
    if len(recognized) + len(unseen) < len(words):
        unseen += recognized
    for place in unseen:
        if pdfium_c.FPDFPage_RemoveObject(handle, objects[place]):
            pdfium_c.FPDFPageObj_Destroy(objects[place])
    return len(unseen)


class _Grounds:
    """What is painted on a page beside words, looked for when it is needed."""

    def __init__(self, objects: list[Any], kinds: list[int]) -> None:
        self._objects = objects
        self._kinds = kinds
        self._found: list[tuple[int, _Box]] | None = None

    def lie_under(self, place: int, box: _Box) -> bool:
        """Whether something that is not white was painted there before the object at a place; in doubt it was."""
        if self._found is None:
            self._found = list(self._all())
        if len(self._found) > MOST_GROUNDS:
            return True
        return any(before < place and ground.meets(box) for before, ground in self._found)

    def _all(self) -> Iterator[tuple[int, _Box]]:
        for place, (one, kind) in enumerate(zip(self._objects, self._kinds, strict=True)):
            if kind != pdfium_c.FPDF_PAGEOBJ_TEXT and (box := _box(one)) is not None:
                color = _fill(one) if kind == pdfium_c.FPDF_PAGEOBJ_PATH else None
                if color is None or min(color[:3]) < WHITE:
                    yield place, box


def _is_unseen(one: Any, place: int, sheet: _Box, grounds: _Grounds) -> bool:
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(one)
    color = _stroke(one) if mode == pdfium_c.FPDF_TEXTRENDERMODE_STROKE else _fill(one)
    if color is not None and color[3] <= FAINTEST:
        return True
    box = _box(one)
    if box is None:
        return False
    if not box.meets(sheet) or _letters(one) < SMALLEST_LETTERS or _is_clipped(one, box):
        return True
    if color is None or min(color[:3]) < WHITE:
        return False
    # White letters are read where something was painted before them.
    return not grounds.lie_under(place, box)


def _letters(one: Any) -> float:
    """The lesser of height and width of the letters on the page, in points."""
    size, matrix = ctypes.c_float(), pdfium_c.FS_MATRIX()
    if not pdfium_c.FPDFTextObj_GetFontSize(one, size) or not pdfium_c.FPDFPageObj_GetMatrix(one, matrix):
        return SMALLEST_LETTERS
    # Letters may be set narrow, up to a point.
    wide = NARROWEST * max(abs(matrix.a), abs(matrix.b))
    return float(abs(size.value) * min(max(abs(matrix.c), abs(matrix.d)), wide))


def _is_clipped(one: Any, box: _Box) -> bool:
    """Whether a clip leaves nothing of an object; one that is no rectangle counts as large as the box around it."""
    clip = pdfium_c.FPDFPageObj_GetClipPath(one)
    count = pdfium_c.FPDFClipPath_CountPaths(clip) if clip else 0
    for path in range(min(count, MOST_CLIPS)):
        points = [_point(clip, path, place) for place in range(pdfium_c.FPDFClipPath_CountPathSegments(clip, path))]
        if not points or None in points:
            continue
        across, along = zip(*filter(None, points), strict=True)
        left = _Box(min(across), min(along), max(across), max(along))
        if min(left.right - left.left, left.top - left.bottom) < LEAST_LEFT or not left.meets(box):
            return True
    return False


def _point(clip: Any, path: int, place: int) -> tuple[float, float] | None:
    segment = pdfium_c.FPDFClipPath_GetPathSegment(clip, path, place)
    across, along = ctypes.c_float(), ctypes.c_float()
    if not segment or not pdfium_c.FPDFPathSegment_GetPoint(segment, across, along):
        return None
    return across.value, along.value


def _fill(one: Any) -> tuple[int, ...] | None:
    """Red, green, blue and opacity, each up to 255."""
    return _color(pdfium_c.FPDFPageObj_GetFillColor, one)


def _stroke(one: Any) -> tuple[int, ...] | None:
    return _color(pdfium_c.FPDFPageObj_GetStrokeColor, one)


def _color(ask: Any, one: Any) -> tuple[int, ...] | None:
    parts = [ctypes.c_uint() for _ in range(4)]
    return tuple(part.value for part in parts) if ask(one, *parts) else None


def _box(one: Any) -> _Box | None:
    parts = [ctypes.c_float() for _ in range(4)]
    return _Box(*(part.value for part in parts)) if pdfium_c.FPDFPageObj_GetBounds(one, *parts) else None
