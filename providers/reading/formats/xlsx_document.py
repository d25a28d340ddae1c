"""Workbooks of Excel by openpyxl: each sheet under its name, its tables as rows, values as they were last worked out.

No formula is worked out, no macro is run, and nothing that a sheet refers to elsewhere is loaded. What a sheet hides is
left out: sheets, rows and columns that are hidden, values whose format or colour hides them.
"""

import zipfile
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any, Final
from xml.etree.ElementTree import ParseError

import openpyxl  # type: ignore[import-untyped]
from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]
from openpyxl.utils import range_boundaries  # type: ignore[import-untyped]
from openpyxl.utils.exceptions import InvalidFileException  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, one_line
from providers.reading.formats.archives import office_facts, open_archive
from providers.reading.formats.grids import GridWriter
from providers.reading.html.styles import WHITE, Color, alike, color_of
from providers.reading.html.tables import MOST_REPEATED

SHEET: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
MOST_SHEETS: Final = 250
MOST_COLUMNS: Final = 1_000
MOST_ROWS: Final = 1_048_576
"""As many as a sheet of Excel can have."""
LEFT_OUT: Final = "the workbook is large: only its beginning is kept"
HIDDEN: Final = "hidden sheets of the workbook that are left out: {count}"
DIGITS: Final = 12
"""Of a number: what more there is comes from how machines keep numbers."""


def extract_xlsx(raw: bytes) -> Extraction:
    """The canonical text of a workbook. Raises `SourceUnreadable` malformed, too_large, encrypted or no_text."""
    archive = open_archive(raw)
    facts = office_facts(archive)
    builder, hidden = TextBuilder(), 0
    grid = GridWriter(builder)
    try:
        book = openpyxl.load_workbook(BytesIO(raw), read_only=True, data_only=True, keep_links=False)
        for number, sheet in enumerate(book.worksheets):
            if number >= MOST_SHEETS or grid.full:
                builder.cut = True
                break
            if sheet.sheet_state == "visible":
                _write_sheet(builder, grid, sheet, archive)
            else:
                hidden += 1
    except (
        InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, TypeError, ParseError, etree.LxmlError,
        DefusedXmlException,
    ) as error:  # fmt: skip
        raise SourceUnreadable("malformed", "a damaged workbook") from error
    if all(block.kind is BlockKind.HEADING for block in builder.blocks):
        raise SourceUnreadable("no_text", "the workbook holds no values that are shown")
    warnings = [HIDDEN.format(count=hidden)] if hidden else []
    return builder.finish(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", LEFT_OUT, **vars(facts), warnings=warnings
    )


def _write_sheet(builder: TextBuilder, grid: GridWriter, sheet: Any, archive: zipfile.ZipFile) -> None:
    builder.add(BlockKind.HEADING, one_line(clean(sheet.title)), before="# ", level=1)
    with archive.open(sheet._worksheet_path) as part:  # noqa: SLF001  # the library tells the name of no part
        layout = _layout_of(part)
    looks = _CellLooks()
    sheet.reset_dimensions()  # what a sheet says of its size need not be so
    for number, row in enumerate(sheet.iter_rows(), 1):
        if builder.cut or number > MOST_ROWS:
            break
        if (row or number in layout.spans) and number not in layout.rows:
            shown = (cell for cell in row[:MOST_COLUMNS] if cell.value is not None)
            cells = layout.spread(number, {cell.column: looks.words_of(cell) for cell in shown})
            last = max((place for place, words in cells.items() if words), default=0)
            grid.add(cells.get(place, "") for place in range(1, last + 1) if place not in layout.columns)
        elif not row:
            grid.close()
    grid.close()


@dataclass
class _Layout:
    """What a sheet hides, and the cells that stand in several places."""

    rows: set[int] = field(default_factory=set)
    columns: set[int] = field(default_factory=set)
    spans: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Row → column → row and column of the cell that is seen there."""
    places: int = 0
    """How many there are."""
    values: dict[tuple[int, int], str] = field(default_factory=dict)
    """The words of cells that stand in several places."""

    def spread(self, row: int, cells: dict[int, str]) -> dict[int, str]:
        """The cells of a row with those that reach into it."""
        reaching = self.spans.get(row, {})
        for place, origin in reaching.items():
            if origin[0] == row and origin not in self.values:
                self.values[origin] = cells.get(origin[1], "")
            cells[place] = self.values.get(origin, "")
        return cells

    def span(self, reference: str) -> None:
        """Note a cell that reaches over others, as far as there is room."""
        left, top, right, bottom = range_boundaries(reference)
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                self.places += 1
                if self.places > MOST_REPEATED:
                    return
                self.spans.setdefault(row, {})[column] = top, left


def _layout_of(part: Any) -> _Layout:
    """Read the layout of a sheet without keeping its cells."""
    found = _Layout()
    names = [f"{SHEET}{name}" for name in ("col", "row", "mergeCell", "sheetFormatPr")]
    zero, number = False, 0
    for _, element in etree.iterparse(part, tag=names, resolve_entities=False, no_network=True, load_dtd=False):
        kind = element.tag.removeprefix(SHEET)
        if kind == "sheetFormatPr":
            zero = _is_on(element.get("zeroHeight"))
        elif kind == "col" and (_is_on(element.get("hidden")) or element.get("width") == "0"):
            found.columns.update(range(int(element.get("min")), min(int(element.get("max")), MOST_COLUMNS) + 1))
        elif kind == "row":
            number = int(element.get("r", number + 1))
            default = "1" if zero and element.get("customHeight") is None else None
            if _is_on(element.get("hidden", default)) or element.get("ht") == "0":
                found.rows.add(number)
        elif kind == "mergeCell" and found.places < MOST_REPEATED:
            found.span(element.get("ref"))
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]
    return found


def _is_on(value: str | None) -> bool:
    return value in {"1", "true", "on"}


class _CellLooks:
    """Which styles of cells hide what is in them; asked once for each style."""

    def __init__(self) -> None:
        self._hiding: dict[Any, bool] = {}

    def words_of(self, cell: Any) -> str:
        """What is seen of a cell."""
        style = cell._style_id  # noqa: SLF001  # asking for fonts and fills of every cell would take most of the time
        if style not in self._hiding:
            self._hiding[style] = _is_unseen(cell)
        return "" if self._hiding[style] else _write_value(cell.value, str(cell.number_format))


def _is_unseen(cell: Any) -> bool:
    if cell.number_format == ";;;":
        return True
    letters = _color(cell.font.color)
    fill = cell.fill
    ground = WHITE if fill.fill_type is None else _color(fill.fgColor) if fill.fill_type == "solid" else None
    return letters is not None and ground is not None and alike(letters, ground)


def _color(stated: Any) -> Color | None:
    """A colour that is stated as such, or as the white of the theme; None for one that is not known."""
    if stated is None:
        return None
    if stated.type == "theme":
        return WHITE if stated.theme == 0 and not stated.tint else None
    return color_of(f"#{stated.rgb[-6:].lower()}") if stated.type == "rgb" and isinstance(stated.rgb, str) else None


def _write_value(value: Any, layout: str) -> str:
    """A value as a reader would say it: dates in ISO form, shares with their sign."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() if layout.endswith("%"):
            places = len(layout.partition(".")[2].rstrip("%")) if "." in layout else 0
            return f"{value * 100:.{min(places, DIGITS)}f}%"
        case float():
            return f"{value:.{DIGITS}g}" if abs(value) < 10**DIGITS else repr(value)
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return str(value)
