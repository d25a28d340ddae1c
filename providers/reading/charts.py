"""Charts of Office documents as blocks: titles, and a table of their categories and values."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.canonical_text import Block, Paragraph, TableRow
from providers.reading.notation import DRAWING

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

CHART: Final = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
FIRST_DAY: Final = datetime(1899, 12, 30)  # noqa: DTZ001  days of sheets have no zone
MAX_DAYS: Final = 2_958_465
"""The last day of the year 9999."""
MAX_DIGITS: Final = 9
UNSHOWN: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
"""Literal text, colours and conditions of a number format."""
SIGNIFICANT: Final = 15
"""Digits that programs keep of a number; the others are noise of its binary form."""


def chart_blocks(raw: bytes, *, has_values: bool = True) -> Iterator[Block]:
    """Yield the title of a chart and of its axes, and its categories and values as rows below the names of its series.

    `has_values`: whether to yield the rows, which a chart of a workbook only repeats from cells.
    """
    root = etree.fromstring(raw, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))
    chart = None if root is None else root.find(f".//{CHART}chart")
    if chart is None:
        return
    titles = [chart.find(f"{CHART}title"), *(axis.find(f"{CHART}title") for axis in _axes(chart))]
    yield from (Paragraph(text) for title in titles if title is not None and (text := _drawn_text(title)))
    if not has_values:
        return
    series = [_Series(element) for element in chart.iter(f"{CHART}ser")]
    categories: dict[int, str] = {}
    for each in series:
        for place, text in each.categories.items():
            categories.setdefault(place, text)
    places = sorted({place for each in series for place in (*each.categories, *each.values)})
    if places and any(each.name for each in series):
        yield TableRow(["", *(each.name for each in series)])
    for place in places:
        yield TableRow([categories.get(place, ""), *(each.values.get(place, "") for each in series)])


def _axes(chart: Element) -> Iterator[Element]:
    area = chart.find(f"{CHART}plotArea")
    if area is not None:
        yield from area.iterchildren(*(f"{CHART}{name}" for name in ("catAx", "dateAx", "valAx", "serAx")))


class _Series:
    """A row of values with its name; categories and values by their place."""

    def __init__(self, element: Element) -> None:
        name = element.find(f"{CHART}tx")
        if name is None:
            self.name = ""
        else:
            self.name = " ".join(part.text or "" for part in name.iter(f"{CHART}v")).strip()
        self.categories = _points(element, "cat") or _points(element, "xVal")
        self.values = _points(element, "val") or _points(element, "yVal")


def _points(series: Element, name: str) -> dict[int, str]:
    """Return the texts of categories or values by their place; categories of several levels are joined, outer first."""
    parent = series.find(f"{CHART}{name}")
    if parent is None:
        return {}
    is_number = any(True for _ in parent.iter(f"{CHART}numCache", f"{CHART}numLit"))
    found: dict[int, str] = {}
    for level in list(parent.iter(f"{CHART}lvl"))[::-1] or [parent]:  # the outermost is the last
        number_format = level.findtext(f".//{CHART}formatCode") or ""
        inner: dict[int, str] = {}
        for point in level.iter(f"{CHART}pt"):
            place = point.get("idx", "")
            text = (point.findtext(f"{CHART}v") or "").strip()
            if place.isdecimal() and len(place) <= MAX_DIGITS:
                if is_number:
                    shown = _shown(text, point.get("formatCode") or number_format)
                else:
                    shown = text
                inner[int(place)] = shown
        outer = ""
        for number in sorted(inner):
            outer = found.get(number, outer)  # the name of a group is written at its first place
            inner[number] = f"{outer} {inner[number]}".strip()
        found = inner
    return found


def _shown(value: str, number_format: str) -> str:
    """Return a value as it is shown, but with all its digits: percentages and dates by the format of its number."""
    try:
        number = Decimal(f"{Decimal(value):.{SIGNIFICANT}g}")
    except InvalidOperation:
        return value
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS * 2:
        return value
    signs = UNSHOWN.sub("", number_format.split(";", maxsplit=1)[0]).lower()
    if "%" in signs:
        return f"{_plain(number * 100)}%"
    if ("y" in signs or "d" in signs) and 0 < number < MAX_DAYS:
        return (FIRST_DAY + timedelta(days=int(number))).date().isoformat()
    return _plain(number)


def _plain(number: Decimal) -> str:
    written = f"{number:f}"
    if "." in written:
        return written.rstrip("0").rstrip(".")
    return written


def _drawn_text(parent: Element) -> str:
    """Return the paragraphs of a title as one line."""
    paragraphs = parent.iter(f"{DRAWING}p")
    texts = ("".join(part.text or "" for part in each.iter(f"{DRAWING}t")) for each in paragraphs)
    return " ".join(filter(None, map(str.strip, texts)))
