"""A page of a PDF as it is drawn, and what of its letters is seen there."""

import ctypes
from collections.abc import Iterator
from operator import sub
from typing import Any, Final

import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]
from pypdfium2 import PdfPosConv

SCALE: Final = 2.0
MOST_PIXELS: Final = 2_500
"""Of one side."""
ALIKE: Final = 24
"""Of 255: what changes by no more is not seen."""
PRINTED: Final = 64
"""Of 255, between the lightest and the darkest place of a letter in a scan."""


class Drawing:
    """A page as it is drawn, for comparison."""

    def __init__(self, page: Any) -> None:
        self._page = page
        width, height = page.get_size()
        self._scale = min(SCALE, MOST_PIXELS / max(width, height, 1.0))
        self.whole = self.again()
        places = PdfPosConv(page, (0, 0, self._width, self._height, 0))
        corners = [places.to_bitmap(x, y) for x, y in ((0, 0), (1_000, 0), (0, 1_000))]
        (self._x, self._y), (right_x, right_y), (up_x, up_y) = corners
        self._steps = [(value - zero) / 1_000 for value, zero in (
            (right_x, self._x), (right_y, self._y), (up_x, self._x), (up_y, self._y))]  # fmt: skip

    def again(self) -> bytes:
        """The page as it is now."""
        bitmap = self._page.render(scale=self._scale, draw_annots=False, may_draw_forms=False)
        self._width, self._height, self._stride = bitmap.width, bitmap.height, bitmap.stride
        self._channels = bitmap.n_channels
        try:
            return bytes(bitmap.buffer)
        finally:
            bitmap.close()

    def changes(self, layer: Any, number: int, other: bytes) -> bool:
        """Whether something of a letter is seen: the two drawings differ where it stands."""
        for begin, end in self._rows(layer, number):
            mine, theirs = self.whole[begin:end], other[begin:end]
            if mine != theirs and max(map(abs, map(sub, mine, theirs))) > ALIKE:
                return True
        return False

    def is_printed(self, layer: Any, number: int, drawing: bytes) -> bool:
        """Whether something is drawn in the place of a letter."""
        lightest, darkest = 0, 255
        for begin, end in self._rows(layer, number):
            row = drawing[begin:end]
            lightest, darkest = max(lightest, *row), min(darkest, *row)
        return lightest - darkest >= PRINTED

    def _rows(self, layer: Any, number: int) -> Iterator[tuple[int, int]]:
        """Where the rows of a letter begin and end."""
        parts = [ctypes.c_double() for _ in range(4)]
        if not pdfium_c.FPDFText_GetCharBox(layer, number, *parts):
            return
        left, right, bottom, top = (part.value for part in parts)
        pixels = [self._place(x, y) for x in (left, right) for y in (bottom, top)]
        columns, rows = [x for x, _ in pixels], [y for _, y in pixels]
        begin, end = max(0, int(min(columns))), min(self._width, int(max(columns)) + 1)
        for row in range(max(0, int(min(rows))), min(self._height, int(max(rows)) + 1)):
            if begin < end:
                yield row * self._stride + begin * self._channels, row * self._stride + end * self._channels

    def _place(self, x: float, y: float) -> tuple[float, float]:
        a, b, c, d = self._steps
        return self._x + a * x + c * y, self._y + b * x + d * y
