"""Presentations and workbooks as blocks, with `python-pptx` and `openpyxl`."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile

import openpyxl  # type: ignore[import-untyped]
import pptx
from lxml import etree  # type: ignore[import-untyped]
from openpyxl.styles.numbers import STRIP_RE  # type: ignore[import-untyped]

from providers.reading.canonical_text import (
    Block,
    DocumentFacts,
    Heading,
    Item,
    Page,
    Paragraph,
    TableRow,
    raised,
    stated_facts,
)
from providers.reading.charts import chart_blocks
from providers.reading.notation import DRAWING, diagram_lines, formula_text, with_signs_of_font, written_number

HEADING_LEVEL: Final = 2
"""Level of the titles of slides and sheets, below the title of the document."""
COMPATIBLE: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
DIAGRAM_DATA: Final = ".//*[local-name()='relIds']/@r:dm"
PARSER: Final = etree.XMLParser(resolve_entities=False, no_network=True)
MAX_EMPTY_CELLS: Final = 64
"""Empty cells between two others that are written; a row may have its next value thousands of columns away."""
QUOTED: Final = re.compile(r'"[^"]*"|\\.|_.|\*.')
"""Literal text of a number format."""
SECTION: Final = re.compile(r'((?:[^;"\\]|"[^"]*"|\\.)*)(?:;|$)')
FORMAT_PART: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|(?P<ignored>\[[^\]]*\]|\*.)|(?P<filler>_.)'
    r"|(?P<places>(?i:general)|[eE][+-]|[0#?.,/]+)|(?P<sign>.)",
    re.DOTALL,
)
"""A piece of a number format; colours, conditions, and the sign that fills a cell have no words."""
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
        _choose_alternatives(slide.shapes._spTree)  # noqa: SLF001  the library does not see them
        title = slide.shapes.title
        if title is not None:
            yield Heading(" ".join(_frame_lines(title.text_frame)), HEADING_LEVEL)
        yield from _shapes(shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            yield from _paragraphs(notes)


def _choose_alternatives(tree: Any) -> None:
    """Put the first choice in the place of alternatives; the fallback is the same for older programs, or a picture."""
    for alternatives in list(tree.iter(f"{COMPATIBLE}AlternateContent")):
        choice = alternatives.find(f"{COMPATIBLE}Choice")
        parent = alternatives.getparent()
        if choice is not None and parent is not None:
            for element in list(choice):
                alternatives.addprevious(element)
            parent.remove(alternatives)


def _shapes(shapes: Iterable[Any]) -> Iterator[Block]:
    for shape in shapes:
        if shape._element.xpath("./*/p:cNvPr/@hidden") in (["1"], ["true"]):  # noqa: SLF001  no public name
            continue
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame:
            yield from _paragraphs(shape.text_frame)
        elif getattr(shape, "has_table", False):
            yield from (TableRow([_cell_text(cell) for cell in row.cells]) for row in shape.table.rows)
        elif getattr(shape, "has_chart", False):
            yield from chart_blocks(shape.chart_part.blob)
        elif (name := shape._element.xpath(DIAGRAM_DATA)) and name[0] in shape.part.rels:  # noqa: SLF001
            yield from map(Paragraph, diagram_lines(shape.part.related_part(name[0]).blob))


def _paragraphs(frame: Any) -> Iterator[Block]:
    """Yield the paragraphs of a text; those that have numbers with them."""
    reached: dict[int, tuple[str, int]] = {}
    for paragraph in frame.paragraphs:
        text = "".join(_words(paragraph._p))  # noqa: SLF001  no public name
        level = paragraph.level
        numbered = next(iter(paragraph._p.xpath("./a:pPr/a:buAutoNum")), None)  # noqa: SLF001
        for deeper in [each for each in reached if each > level or (each == level and numbered is None)]:
            del reached[deeper]
        if not text.strip():
            continue
        if numbered is None:
            yield Item(text, level - 1) if level else Paragraph(text)
            continue
        written = numbered.get("startAt", "")
        form = numbered.get("type", "")
        known, number = reached.get(level, ("", 0))
        if known == f"{form} {written}":
            number = number + 1
        elif written.isdecimal():
            number = int(written)
        else:
            number = 1
        reached[level] = f"{form} {written}", number
        mark = _number_mark(number, form)
        yield Item(text, level, mark) if mark[:-1].isdecimal() and mark[-1] in ".)" else Paragraph(f"{mark} {text}")


def _number_mark(number: int, form: str) -> str:
    """Return the mark before a numbered paragraph: `3.`, `(a)`."""
    kinds = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
    kind = next((written for name, written in kinds.items() if form.startswith(name)), "decimal")
    before = "(" if form.endswith("ParenBoth") else ""
    after = ")" if form.endswith(("ParenBoth", "ParenR")) else "."
    return f"{before}{written_number(number, kind)}{after}"


def _words(paragraph: Any) -> Iterator[str]:
    """Yield the text of a paragraph, with marks of superscripts and subscripts, and formulas as text."""
    for element in paragraph:
        name = ""
        if isinstance(element.tag, str):
            name = etree.QName(element).localname
        if name == "br":
            yield "\n"
        elif name == "r" or (name == "fld" and element.get("type") != "slidenum"):
            text = (element.findtext(f"{DRAWING}t") or "").replace("\v", "\n")
            properties = element.find(f"{DRAWING}rPr")
            place = ""
            if properties is not None:
                for font in properties.iterchildren(f"{DRAWING}sym", f"{DRAWING}latin"):
                    text = with_signs_of_font(text, font.get("typeface", ""))
                place = properties.get("baseline", "").rstrip("%")
            if not text.strip() or not place.strip("-0"):
                yield text
            elif place.startswith("-"):
                yield f"_{text}"
            else:
                yield raised(text)
        elif name == "m":
            yield "".join(formula_text(formula) for formula in element.iter("{*}oMath"))


def _frame_lines(frame: Any) -> Iterator[str]:
    for paragraph in frame.paragraphs:
        yield " ".join("".join(_words(paragraph._p)).split())  # noqa: SLF001  no public name


def _cell_text(cell: Any) -> str:
    if cell.is_spanned:
        return ""
    return " ".join(filter(None, _frame_lines(cell.text_frame)))


# --- workbooks -------------------------------------------------------------------------------------------------------
def read_workbook(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a workbook, and its facts: each sheet with the values that were saved."""
    book = openpyxl.load_workbook(BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    properties = book.properties
    stated = properties.created or properties.modified
    facts = stated_facts(properties.title, [properties.creator], stated and stated.isoformat(), properties.language)
    return _sheets(book, raw), facts


def _sheets(book: Any, raw: bytes) -> Iterator[Block]:
    archive = ZipFile(BytesIO(raw))
    for sheet in book.worksheets:
        heading = Heading(sheet.title, HEADING_LEVEL)
        sheet.reset_dimensions()  # the saved ones may be wrong
        rows = (row for cells in sheet.iter_rows() if cells and any(row := _row(cells)))
        first = next(rows, None)
        drawn = list(_drawings(archive, sheet._worksheet_path))  # noqa: SLF001  the library does not read them here
        if first is not None or drawn:
            yield heading
        if first is not None:
            yield TableRow(first)
            yield from map(TableRow, rows)
        yield from drawn


def _drawings(archive: ZipFile, sheet: str) -> Iterator[Block]:
    """Yield what is drawn over a sheet: text boxes, the titles of charts, and diagrams."""
    for drawing in _related(archive, sheet, "/drawing"):
        for paragraph in etree.fromstring(archive.read(drawing), PARSER).iter(f"{DRAWING}p"):
            if text := "".join(part.text or "" for part in paragraph.iter(f"{DRAWING}t")).strip():
                yield Paragraph(text)
        for chart in _related(archive, drawing, "/chart"):
            yield from chart_blocks(archive.read(chart), has_values=False)
        for diagram in _related(archive, drawing, "/diagramData"):
            yield from map(Paragraph, diagram_lines(archive.read(diagram)))


def _related(archive: ZipFile, part: str, kind: str) -> Iterable[str]:
    """Return the names of the parts of a kind to which a part refers, each once."""
    folder, _, name = part.strip("/").rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in archive.NameToInfo:
        return ()
    found = (
        posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
        for relation in etree.fromstring(archive.read(relations), PARSER)
        if isinstance(relation.tag, str) and relation.get("Type", "").endswith(kind)
    )
    return dict.fromkeys(target for target in found if target in archive.NameToInfo)


def _row(cells: Iterable[Any]) -> list[str]:
    """Return the cells of a row up to its last value, without the later part of a long gap."""
    row: list[str] = []
    gap = 0
    for cell in cells:
        text = ""
        if cell.value is not None:
            text = cell_text(cell.value, cell.number_format or "General")
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
        case time() if not value.hour and {"h", "s"}.isdisjoint(_signs(number_format)):
            return "0"  # as a date, zero would be the last day of 1899
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
    """Write the parts of a moment that the format has: a date, a month, a year, a time, or a date and a time."""
    signs = _signs(number_format)
    has_date = not {"y", "d"}.isdisjoint(signs) or "mmm" in signs
    has_time = not {"h", "s"}.isdisjoint(signs)
    clock = value.time().isoformat("auto" if value.second else "minutes")
    if has_time and not has_date:
        return clock
    if has_time or value.time() != time():
        return f"{value.date()} {clock}"
    if "y" in signs and "d" not in signs:
        if "m" in signs:
            return f"{value:%Y-%m}"
        return f"{value:%Y}"
    return value.date().isoformat()


def _duration(value: timedelta, number_format: str) -> str:
    """Write hours beyond 24 as hours, 37:30, or as the minutes or seconds that the format counts."""
    seconds = round(value.total_seconds())
    signs = number_format.lower()
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    minutes, rest = divmod(seconds, 60)
    if "h" not in signs:
        if "s" not in signs:
            return f"{sign}{minutes}"
        if "m" in signs:
            return f"{sign}{minutes}:{rest:02}"
        return f"{sign}{seconds}"
    clock = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    if rest or "s" in _signs(number_format):
        return f"{clock}:{rest:02}"
    return clock


def _number(value: float, number_format: str) -> str:
    """Write a number with all its digits, and with the words and signs that its format writes around them."""
    if isinstance(value, int):
        number = Decimal(value)
    else:
        number = Decimal(f"{value:.{SIGNIFICANT}g}")
    sections = _sections(number_format)
    tokens = sections[0]
    if number < 0 and len(sections) > 1 and not any(is_place for is_place, _ in sections[1]):
        tokens = sections[1]
    elif number == 0 and len(sections) > 2:
        tokens = sections[2]
    places = [index for index, (is_place, _) in enumerate(tokens) if is_place]
    texts = [text for _, text in tokens]
    if not places:
        words = "".join(texts).strip(" @")
        if any(map(str.isalnum, words)):
            return words
        return _plain(number)
    before = texts[: places[0]]
    inner = tokens[places[0] : places[-1] + 1]
    after = texts[places[-1] + 1 :]
    sign = "-" if number < 0 else ""
    number = abs(number) * (100 if "%" in texts else 1)
    return f"{sign}{''.join(before).lstrip()}{_digits(number, inner)}{''.join(after).rstrip()}"


@lru_cache(maxsize=1_000)
def _sections(number_format: str) -> list[list[tuple[bool, str]]]:
    """Return the sections of a number format: of positive numbers, negative ones, and zero."""
    return [_tokens(section) for section in SECTION.findall(number_format)]


def _tokens(section: str) -> list[tuple[bool, str]]:
    """Divide a section of a number format into places of digits (true) and text (false)."""
    tokens = list[tuple[bool, str]]()
    for match in FORMAT_PART.finditer(section):
        if match["places"] is not None:
            tokens.append((True, match["places"].lower()))
        elif match["filler"] is not None:
            tokens.append((False, " "))
        elif match["ignored"] is None:
            text = next(match[name] for name in ("quoted", "escaped", "currency", "sign") if match[name] is not None)
            tokens.append((False, text))
    return tokens


def _digits(number: Decimal, tokens: list[tuple[bool, str]]) -> str:
    """Write a number with at least as many decimals and leading zeros as its format has places."""
    places = "".join(text for is_place, text in tokens if is_place)
    if not set(places) <= set("0#.,"):  # as a fraction, or with an exponent
        return _plain(number)
    if not all(is_place for is_place, _ in tokens):  # a telephone number
        if number == int(number):
            return _filled(str(int(number)), tokens)
        return _plain(number)
    number /= Decimal(1000) ** (len(places) - len(places.rstrip(",")))
    whole, _, fraction = places.partition(".")
    exact = f"{number:f}".partition(".")[2].rstrip("0")
    written = f"{number:.{max(fraction.count('0'), len(exact))}f}"
    length = len(written.partition(".")[0])
    return "0" * (whole.count("0") - length) + written


def _filled(digits: str, tokens: list[tuple[bool, str]]) -> str:
    """Put digits into the places of a format, from the right; those that remain come before them."""
    rest = list(digits)
    written = ""
    for is_place, text in reversed(tokens):
        if not is_place:
            written = text + written
            continue
        for place in reversed(text):
            if rest:
                written = rest.pop() + written
            elif place == "0":
                written = "0" + written
    return "".join(rest) + written


def _plain(number: Decimal) -> str:
    written = f"{number:f}"
    if "." in written:
        return written.rstrip("0").rstrip(".")
    return written
