"""Texts, sheets and presentations of OpenDocument as blocks: one walk over `content.xml`.

Notes, annotations, deleted text and the marks of all of them are not read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import Any, Final, TypeAlias
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

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
from providers.reading.notation import SIGNS_OF_FONTS, formula_text, with_signs_of_font, written_number
from providers.reading.word import block_text, is_page_number

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

OPEN: Final = "urn:oasis:names:tc:opendocument:xmlns"
SPACES: Final = {
    **{name: f"{OPEN}:{name}:1.0" for name in ("office", "text", "table", "style", "meta", "presentation")},
    "xlink": "http://www.w3.org/1999/xlink",
    "draw": f"{OPEN}:drawing:1.0",
    "svg": f"{OPEN}:svg-compatible:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
}


def _name(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{{{SPACES[prefix]}}}{local}"


SKIPPED: Final = frozenset(
    map(
        _name,
        """text:note office:annotation office:annotation-end text:tracked-changes text:ruby-text office:forms
        text:sequence-decls text:variable-decls text:user-field-decls draw:image table:table-columns
        table:table-column table:shapes svg:title svg:desc office:scripts text:page-number text:page-count
        presentation:date-time-decl presentation:footer-decl presentation:header-decl""".split(),
    )
)
SIGNS: Final = {_name("text:tab"): "\t", _name("text:line-break"): "\n"}
SPACE, HEADING, PARAGRAPH, LIST = (_name(f"text:{name}") for name in ("s", "h", "p", "list"))
TABLE: Final = _name("table:table")
FORMATTING: Final = f"{{{OPEN}:xsl-fo-compatible:1.0}}"
SHAPES: Final = _name("table:shapes")
CHART: Final = f"{{{OPEN}:chart:1.0}}"
ROW: Final = _name("table:table-row")
OBJECT, SLIDE, FRAME, NOTES = (_name(f"draw:{name}") for name in ("object", "page", "frame", "notes"))
BODIES: Final = tuple(_name(f"office:{name}") for name in ("text", "spreadsheet", "presentation"))
HEADING_LEVEL: Final = 2
"""Level of the titles of slides and sheets, below the title of the document."""
MAX_FORMULA_BYTES: Final = 200_000
CELLS: Final = frozenset((_name("table:table-cell"), _name("table:covered-table-cell")))
BOXES: Final = frozenset((_name("draw:text-box"), _name("draw:custom-shape"), _name("draw:rect")))
ITEMS: Final = frozenset((_name("text:list-item"), _name("text:list-header")))
MAX_LEVELS: Final = 10
MAX_REPEATED: Final = 64
"""Cells or rows that a repeated one with words may stand for; some programs repeat the last one a million times."""
FORMS: Final = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


def read_opendocument(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a text, and its facts."""
    with ZipFile(BytesIO(raw)) as archive:
        names = set(archive.namelist())
        content, styles, meta = (
            _parsed(archive.read(name)) if name in names else None for name in ("content.xml", "styles.xml", "meta.xml")
        )
        inner = [part for part in archive.infolist() if part.filename.endswith("/content.xml")]
        parts = {part.filename: archive.read(part) for part in inner if part.file_size <= MAX_FORMULA_BYTES}
    if content is None:
        raise ValueError("an archive without content")
    roots = [root for root in (styles, content) if root is not None]
    body = next(content.iter(*BODIES), content)
    reader = _Reader(roots, parts)
    if body.tag != BODIES[0] and body is not content:
        return reader.sheets(body) if body.tag == BODIES[1] else reader.slides(body), _facts(meta)
    headers, footers = (reader.edge(roots, name) for name in ("header", "footer"))
    return chain(headers, reader.blocks(body), footers), _facts(meta)


def _parsed(raw: bytes) -> Element:
    return etree.fromstring(raw, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))


def _facts(meta: Element | None) -> DocumentFacts:
    if meta is None:
        return DocumentFacts()

    def text(*names: str) -> str | None:
        found = (meta.findtext(f".//{_name(name)}") for name in names)
        return next(filter(None, found), None)

    author = text("meta:initial-creator", "dc:creator")
    return stated_facts(text("dc:title"), [author], text("meta:creation-date", "dc:date"), text("dc:language"))


@dataclass(frozen=True, slots=True)
class _Level:
    """The numbering of one level of a list: bullets have no form."""

    form: str
    prefix: str
    suffix: str
    shown: int
    """Levels of which the number is shown: 2 for `3.1`."""
    start: int


class _Reader:
    def __init__(self, roots: list[Element], parts: dict[str, bytes]) -> None:
        self._parts = parts
        """Documents inside the document, by the names of their parts."""
        self._is_sheet = False
        self._is_in_chart = False
        self._lists: dict[str, dict[int, _Level]] = {}
        self._headings: dict[int, _Level] = {}
        self._hidden: set[str] = set()
        self._raised: dict[str, str] = {}
        """Sign of superscripts and subscripts by style."""
        self._fonts: dict[str, str] = {}
        """Font of a style, if it has signs in the place of letters."""
        self._numbers: dict[int, int] = {}
        """Numbers that the headings have reached by level."""
        self._reached: dict[str, int] = {}
        """Numbers that the lists have reached, by style, or by id."""
        faces = {
            face.get(_name("style:name")): face.get(_name("svg:font-family"), "").strip("' ")
            for root in roots
            for face in root.iter(_name("style:font-face"))
        }
        for root in roots:
            for style in root.iter(_name("text:list-style")):
                self._lists[style.get(_name("style:name"), "")] = _levels(style)
            for style in root.iter(_name("text:outline-style")):
                self._headings = _levels(style)
            for style in root.iter(_name("style:style")):
                name = style.get(_name("style:name"), "")
                properties = style.find(_name("style:text-properties"))
                if properties is None or style.get(_name("style:family")) != "text":
                    continue
                if properties.get(_name("text:display")) == "none":
                    self._hidden.add(name)
                font = properties.get(_name("style:font-name"))
                family = faces.get(font, font or "") or properties.get(f"{FORMATTING}font-family", "").strip("' ")
                if family.lower() in SIGNS_OF_FONTS:
                    self._fonts[name] = family
                place = properties.get(_name("style:text-position"), "").split(" ")[0]
                if place and place.strip("0%"):
                    self._raised[name] = "_" if place.startswith(("sub", "-")) else "^"

    def edge(self, roots: list[Element], name: str) -> Iterator[Block]:
        """Yield the texts of page headers or page footers, equal ones once."""
        names = [_name(f"style:{name}{variant}") for variant in ("", "-left", "-first")]
        texts = (text for root in roots for part in root.iter(*names) for text in block_text(self.blocks(part)))
        yield from map(Paragraph, dict.fromkeys(text for text in texts if not is_page_number(text)))

    def sheets(self, body: Element) -> Iterator[Block]:
        """Yield each sheet under its name, hidden ones too, with its cells as they are shown."""
        self._is_sheet = True
        for sheet in body.iterchildren(TABLE):
            rows = self._rows(sheet)
            shapes = (shape for each in sheet.iterchildren(SHAPES) for shape in self.blocks(each))
            charts = (block for each in sheet.iter(OBJECT) for block in self._chart(each))
            drawn = [*shapes, *charts]
            if rows or drawn:
                yield Heading(sheet.get(_name("table:name"), ""), HEADING_LEVEL)
            yield from map(TableRow, rows)
            yield from drawn

    def slides(self, body: Element) -> Iterator[Block]:
        """Yield each slide under its title, and then its notes."""
        for number, slide in enumerate(body.iterchildren(SLIDE), 1):
            yield Page(number)
            titles = [frame for frame in slide.iterchildren(FRAME) if frame.get(_name("presentation:class")) == "title"]
            for frame in titles:
                yield Heading(" ".join(block_text(self.blocks(frame))), HEADING_LEVEL)
            for element in slide:
                if element not in titles:
                    yield from self.blocks([element])

    def blocks(self, parent: Iterable[Element], depth: int = 0) -> Iterator[Block]:
        """Yield the blocks of the text, a section, a cell or a text box."""
        for element in parent:
            tag = element.tag
            if tag in {HEADING, PARAGRAPH}:
                yield from self._paragraph(element)
            elif tag == LIST:
                yield from self._list(element, depth, None)
            elif tag == TABLE:
                yield from self._table(element)
            elif tag == OBJECT:
                yield from () if self._is_sheet else self._chart(element)
            elif isinstance(tag, str) and tag not in SKIPPED:
                yield from self.blocks(element, depth)

    def _paragraph(self, paragraph: Element, mark: str = "", depth: int = 0) -> Iterator[Block]:
        """Yield a paragraph, and then the text boxes that are anchored in it."""
        boxes: list[Element] = []
        text = "".join(self._words(paragraph, boxes)).strip()
        if text and paragraph.tag == HEADING:
            level = _integer(paragraph, "text:outline-level", 1)
            yield Heading(f"{self._heading_number(paragraph, level)} {text}", min(max(level, 1), 6))
        elif text and mark:
            is_simple = mark == "-" or (mark[:-1].isdecimal() and mark[-1] in ".)")
            yield Item(text, depth, mark) if is_simple else Paragraph(f"{mark} {text}")
        elif text:
            yield Paragraph(text)
        for box in boxes:
            yield from self.blocks([box] if box.tag == OBJECT else box)

    def _list(self, element: Element, depth: int, outer: str | None) -> Iterator[Block]:
        style = element.get(_name("text:style-name")) or outer or ""
        level = self._lists.get(style, {}).get(depth, _Level("", "", "", 1, 1))
        continued = element.get(_name("text:continue-list"))
        key = f"{style} {depth}"
        number = level.start - 1
        if continued is not None:
            number = self._reached.get(f"#{continued} {depth}", number)
        elif element.get(_name("text:continue-numbering")) == "true":
            number = self._reached.get(key, number)
        name = element.get("{http://www.w3.org/XML/1998/namespace}id", "")
        for item in element:
            if item.tag not in ITEMS:
                continue
            is_item = item.tag != _name("text:list-header")
            if is_item:
                number = _integer(item, "text:start-value", number + 1)
            self._reached[key] = self._reached[f"#{name} {depth}"] = number
            mark = ""
            if is_item:
                mark = _mark(level, number, self._outer_numbers(style, depth, level))
            for child in item:
                if child.tag == LIST:
                    yield from self._list(child, depth + 1, style)
                elif child.tag in {PARAGRAPH, HEADING}:
                    yield from self._paragraph(child, mark, depth)
                    mark = ""
                elif isinstance(child.tag, str) and child.tag not in SKIPPED:
                    yield from self.blocks(child, depth)

    def _outer_numbers(self, style: str, depth: int, level: _Level) -> str:
        """Return the numbers of the levels above that a level shows."""
        above = range(max(0, depth + 1 - level.shown), depth)
        return "".join(f"{self._reached.get(f'{style} {each}', 1)}." for each in above)

    def _heading_number(self, heading: Element, level: int) -> str:
        form = self._headings.get(level - 1)
        if heading.get(_name("text:is-list-header")) == "true" or form is None or not form.form:
            return ""
        self._numbers[level] = self._numbers.get(level, form.start - 1) + 1
        for deeper in [each for each in self._numbers if each > level]:
            del self._numbers[deeper]
        above = range(max(1, level + 1 - form.shown), level)
        return _mark(form, self._numbers[level], "".join(f"{self._numbers.get(each, 1)}." for each in above))

    def _table(self, table: Element) -> Iterator[Block]:
        rows = self._rows(table)
        if max(map(len, rows), default=0) > 1:
            yield from map(TableRow, rows)
        else:  # a frame around a text
            for row in _descendants(table, ROW):
                for cell in (cell for cell in row if cell.tag in CELLS):
                    yield from self.blocks(cell)

    def _rows(self, table: Element) -> list[list[str]]:
        """Return the rows that have words, without the empty cells at their ends."""
        rows = list[list[str]]()
        for row in _descendants(table, ROW):
            cells = [text for cell in row if cell.tag in CELLS for text in self._cell(cell)]
            while cells and not cells[-1]:
                cells.pop()
            times = _integer(row, "table:number-rows-repeated", 1)
            rows += [cells] * (min(times, MAX_REPEATED) if any(cells) else 0)
        return rows

    def _cell(self, cell: Element) -> list[str]:
        text = " ".join(filter(None, block_text(self.blocks(cell))))
        return [text] * min(max(_integer(cell, "table:number-columns-repeated", 1), 1), MAX_REPEATED)

    def _words(self, parent: Element, boxes: list[Element]) -> Iterator[str]:
        """Yield the text within a paragraph; note the text boxes on the way."""
        yield _spaced(parent.text)
        for element in parent:
            tag = element.tag
            style = element.get(_name("text:style-name"), "")
            if tag in SIGNS:
                yield SIGNS[tag]
            elif tag == SPACE:
                yield " " * min(_integer(element, "text:c", 1), MAX_REPEATED)
            elif tag in BOXES:
                boxes.append(element)
            elif tag == OBJECT:
                yield self._formula(element)
                boxes.append(element)
            elif isinstance(tag, str) and tag not in SKIPPED and style not in self._hidden:
                inner = with_signs_of_font("".join(self._words(element, boxes)), self._fonts.get(style, ""))
                yield f"{self._raised[style]}{inner}" if style in self._raised and inner.strip() else inner
            yield _spaced(element.tail)

    def _formula(self, element: Element) -> str:
        """Return the formula in an object, or the empty text for a chart and the like."""
        inner = self._object(element)
        if inner is not None and etree.QName(inner).localname == "math":
            return formula_text(inner)
        return ""

    def _chart(self, element: Element) -> Iterator[Block]:
        """Yield the titles of the chart in an object and, but in a sheet, which has them in its cells, its values."""
        if self._is_in_chart:  # one that has itself as its title would have no end
            return
        self._is_in_chart = True
        inner = self._object(element)
        if inner is not None:
            for chart in inner.iter(f"{CHART}chart"):
                for title in chart.iter(f"{CHART}title", f"{CHART}subtitle"):
                    yield from self.blocks(title)
                if not self._is_sheet:
                    yield from self.blocks(chart.iterchildren(TABLE))
        self._is_in_chart = False

    def _object(self, element: Element) -> Element | None:
        """Return the root of the document that an object is."""
        place = element.get(_name("xlink:href"), "").removeprefix("./").strip("/")
        raw = self._parts.get(f"{place}/content.xml")
        if raw is not None:
            return _parsed(raw)
        return next((child for child in element if isinstance(child.tag, str)), None)


def _spaced(text: str | None) -> str:
    """Return a text with its line ends as spaces: only elements end lines."""
    return (text or "").replace("\n", " ")


def _descendants(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the rows of a table, also those of its head and its groups, but not of tables in its cells."""
    for element in parent:
        if element.tag == tag:
            yield element
        elif isinstance(element.tag, str) and element.tag not in CELLS:
            yield from _descendants(element, tag)


def _levels(style: Element) -> dict[int, _Level]:
    levels = {}
    for level in style:
        if isinstance(level.tag, str):
            number = _integer(level, "text:level", 1) - 1
        else:
            number = MAX_LEVELS
        if number < MAX_LEVELS:
            levels[number] = _Level(
                level.get(_name("style:num-format"), ""),
                level.get(_name("style:num-prefix"), ""),
                level.get(_name("style:num-suffix"), ""),
                _integer(level, "text:display-levels", 1),
                _integer(level, "text:start-value", 1),
            )
    return levels


def _mark(level: _Level, number: int, above: str) -> str:
    """Return the mark before an item: `-`, `3.`, `(a)`."""
    if not level.form:
        return "-"
    return f"{level.prefix}{above}{written_number(number, FORMS.get(level.form, 'decimal'))}{level.suffix}".strip()


def _integer(element: Element, name: str, default: int) -> int:
    written = element.get(_name(name), "")
    if written.isdecimal() and written.isascii():
        return int(written[:9])
    return default
