"""Presentations and workbooks as blocks, with `python-pptx` and `openpyxl`."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import openpyxl  # type: ignore[import-untyped]
import pptx
from openpyxl.styles.numbers import STRIP_RE  # type: ignore[import-untyped]

from providers.reading.canonical_text import (
    Block,
    DocumentFacts,
    Heading,
    Item,
    Page,
    Paragraph,
    TableRow,
    stated_facts,
)

HEADING_LEVEL: Final = 2
"""Level of the titles of slides and sheets, below the title of the document."""
MAX_EMPTY_CELLS: Final = 64
"""Empty cells between two others that are written; a row may have its next value thousands of columns away."""
QUOTED: Final = re.compile(r'"[^"]*"|\\.|_.|\*.')
"""Literal text of a number format."""
ZEROS: Final = re.compile(r"0{2,}")
PERCENT: Final = re.compile(r"(\s?)%")
SIGNIFICANT: Final = 15
"""Digits that a workbook keeps of a number; the others are noise of its binary form."""


# --- presentations ---------------------------------------------------------------------------------------------------
def read_presentation(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a presentation, and its facts: each slide, and then its notes."""
    show = pptx.Presentation(BytesIO(raw))
    properties = show.core_properties
    stated = properties.created or properties.modified
    facts = stated_facts(
        properties.title, [properties.author], stated and stated.isoformat(), properties.language or None
    )
    return _slides(show), facts


def _slides(show: Any) -> Iterator[Block]:
    for number, slide in enumerate(show.slides, 1):
        yield Page(number)
        title = slide.shapes.title
        if title is not None:
            yield Heading(_without_breaks(title.text_frame.text), HEADING_LEVEL)
        yield from _shapes(shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            yield from _paragraphs(notes)


def _shapes(shapes: Iterable[Any]) -> Iterator[Block]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame:
            yield from _paragraphs(shape.text_frame)
        elif getattr(shape, "has_table", False):
            yield from (TableRow([_cell_text(cell) for cell in row.cells]) for row in shape.table.rows)


def _paragraphs(frame: Any) -> Iterator[Block]:
    for paragraph in frame.paragraphs:
        text = paragraph.text.replace("\v", "\n")
        yield Item(text, paragraph.level - 1) if paragraph.level else Paragraph(text)


def _cell_text(cell: Any) -> str:
    return "" if cell.is_spanned else _without_breaks(cell.text_frame.text)


def _without_breaks(text: str) -> str:
    return text.replace("\v", " ")


# --- workbooks -------------------------------------------------------------------------------------------------------
def read_workbook(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a workbook, and its facts: each sheet with the values that were saved."""
    book = openpyxl.load_workbook(BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    properties = book.properties
    stated = properties.created or properties.modified
    facts = stated_facts(properties.title, [properties.creator], stated and stated.isoformat(), properties.language)
    return _sheets(book), facts


def _sheets(book: Any) -> Iterator[Block]:
    for sheet in book.worksheets:
        heading = Heading(sheet.title, HEADING_LEVEL)
        sheet.reset_dimensions()  # the saved ones may be wrong
        rows = (row for cells in sheet.iter_rows() if cells and any(row := _row(cells)))
        first = next(rows, None)
        if first is not None:
            yield heading
            yield TableRow(first)
            yield from map(TableRow, rows)


def _row(cells: Iterable[Any]) -> list[str]:
    """Return the cells of a row up to its last value, without the later part of a long gap."""
    row: list[str] = []
    gap = 0
    for cell in cells:
        text = "" if cell.value is None else cell_text(cell.value, cell.number_format or "General")
        if text:
            row += [*[""] * min(gap, MAX_EMPTY_CELLS), text]
        gap = 0 if text else gap + 1
    return row


def cell_text(value: object, number_format: str) -> str:
    """Write a value as its number format shows it, but with all its digits: dates, times, durations, 7.5%, 01234."""
    match value:
        case bool():
            return str(value).upper()
        case datetime():
            return _moment(value, number_format)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("auto" if value.second or value.microsecond else "minutes")
        case timedelta():
            return _duration(value, number_format)
        case int() | float():
            return _number(value, number_format)
    return str(value)


def _signs(number_format: str) -> str:
    """Return the signs of the first section of a format, without literal text, colours and conditions."""
    return str(STRIP_RE.sub("", QUOTED.sub("", number_format.split(";", maxsplit=1)[0]))).lower()


def _moment(value: datetime, number_format: str) -> str:
    """Write the parts of a moment that the format has: a date, a time, or both."""
    signs = _signs(number_format)
    has_date, has_time = not {"y", "d"}.isdisjoint(signs) or "mmm" in signs, not {"h", "s"}.isdisjoint(signs)
    clock = value.time().isoformat("auto" if value.second else "minutes")
    if has_time and not has_date:
        return clock
    return f"{value.date()} {clock}" if has_time or value.time() != time() else value.date().isoformat()


def _duration(value: timedelta, number_format: str) -> str:
    """Write hours beyond 24 as hours: 37:30."""
    seconds = round(value.total_seconds())
    sign, seconds = "-" if seconds < 0 else "", abs(seconds)
    minutes, rest = divmod(seconds, 60)
    if "h" not in number_format.lower():
        return f"{sign}{minutes}:{rest:02}"
    clock = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"{clock}:{rest:02}" if rest or "s" in _signs(number_format) else clock


def _number(value: float, number_format: str) -> str:
    number = Decimal(value) if isinstance(value, int) else Decimal(f"{value:.{SIGNIFICANT}g}")
    signs = _signs(number_format)
    percent = PERCENT.search(signs)
    if percent is not None:
        decimals = len(signs.partition(".")[2].partition("%")[0].strip())
        written = f"{number * 100:f}"
        fraction = written.partition(".")[2].rstrip("0")
        return f"{number * 100:.{max(decimals, len(fraction))}f}{percent[1]}%"
    if value == number == int(number) and ZEROS.fullmatch(signs):
        return f"{int(number):0{len(signs)}}"
    written = f"{number:f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
