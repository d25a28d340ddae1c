"""Word documents as blocks: one walk over the parts that `python-docx` opens.

The library's own paragraphs lack inserted and moved text, content controls, text boxes and the numbers of lists, so the
walk reads the elements. Deleted text, hidden text, comments, footnotes and endnotes are not read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any, Final, TypeAlias

import docx
from docx.oxml.ns import nsmap, qn
from lxml import etree  # type: ignore[import-untyped]

from providers.reading.canonical_text import (
    Block,
    DocumentFacts,
    Heading,
    Item,
    Paragraph,
    TableRow,
    raised,
    stated_facts,
)
from providers.reading.charts import chart_blocks
from providers.reading.notation import diagram_lines, formula_text, sign_of_font, with_signs_of_font, written_number

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

SPACES: Final = {
    **{prefix: nsmap[prefix] for prefix in ("w", "wp", "m")},
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
}


def _names(*names: str) -> frozenset[str]:
    split = (name.split(":") for name in names)
    return frozenset(f"{{{SPACES[prefix]}}}{name}" for prefix, name in split)


SKIPPED: Final = _names(
    *("w:del", "w:moveFrom", "w:rPr", "w:pPr", "w:instrText", "w:delText", "w:delInstrText", "w:rt", "w:sectPr"),
    *("w:tblPr", "w:trPr", "w:tcPr", "w:sdtPr", "w:sdtEndPr", "w:customXmlPr", "w:smartTagPr", "mc:Fallback"),
    *("w:footnoteReference", "w:endnoteReference", "w:annotationRef", "w:binData"),
)
"""Elements without words of the text: what was deleted or moved away, properties, codes of fields, readings."""
SIGNS: Final = {
    qn("w:tab"): "\t", qn("w:ptab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-",
}  # fmt: skip
"""Elements that stand for one character. The hyphen that does not break is a hyphen to who searches for it."""
TEXT: Final = qn("w:t")
FORMULA: Final = next(iter(_names("m:oMath")))
CHART: Final = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
DIAGRAM: Final = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
PARAGRAPH: Final = qn("w:p")
TABLE: Final = qn("w:tbl")
ROW: Final = qn("w:tr")
CELL: Final = qn("w:tc")
RUN: Final = qn("w:r")
BOX: Final = qn("w:txbxContent")
SYMBOL: Final = qn("w:sym")
ALTERNATIVES: Final = next(iter(_names("mc:AlternateContent")))
VALUE: Final = qn("w:val")
LARGE_INITIAL: Final = "./w:framePr[@w:dropCap='drop' or @w:dropCap='margin']"
MAX_LEVELS: Final = 9
MAX_SPAN: Final = 64  # columns of one cell, or before a row
MAX_STYLES: Final = 20  # styles that a style may be based on, one on another
OFF: Final = frozenset(("0", "false", "off", "none"))


def read_word(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a document, its page headers first and its page footers last, and its facts."""
    document = docx.Document(BytesIO(raw))
    properties = document.core_properties
    date = properties.created or properties.modified
    facts = stated_facts(properties.title, [properties.author], date and date.isoformat(), properties.language)
    return _Reader(document).blocks(), facts


@dataclass(slots=True)
class _Style:
    """The relevant parts of a paragraph style, with all that it is based on."""

    heading: int = 0
    """Level of the headings of this style, or 0."""
    number: Element | None = None
    """`w:numPr` of the style."""
    is_hidden: bool = False


@dataclass(slots=True)
class _Level:
    """The numbering of one level of a list."""

    form: str = "decimal"
    text: str = ""
    start: int = 1
    legal: bool = False
    restarts: bool = True
    """Whether its numbers begin again below each number of a level above."""


@dataclass(slots=True)
class _List:
    """A numbering that lists share: its levels and the numbers that they have reached."""

    levels: dict[int, _Level] = field(default_factory=dict)
    reached: Counter[int] = field(default_factory=Counter)


class _Reader:
    def __init__(self, document: Any) -> None:
        self._document = document
        self._styles = _styles(document.styles.element)
        self._hidden = frozenset(name for name, style in self._styles.items() if style.is_hidden)
        self._unfinished = ""
        """Text that belongs to the next paragraph: the end of its own was deleted, or it is a large initial letter."""
        self._default = _find(document.styles.element, "./w:style[@w:type='paragraph'][@w:default='1']/@w:styleId")
        numbering = [
            part.element if hasattr(part, "element") else None
            for part in (relation.target_part for relation in document.part.rels.values() if not relation.is_external)
            if part.partname == "/word/numbering.xml" or part.content_type.endswith("numbering+xml")
        ]
        self._numbering = _Numbering(numbering[0] if numbering else None)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks: page headers, the text, page footers; equal headers of several sections once."""
        headers: dict[str, None] = {}
        footers: dict[str, None] = {}
        for section in self._document.sections:
            kinds = ["{}"]
            if section.different_first_page_header_footer:
                kinds.append("first_page_{}")
            if self._document.settings.odd_and_even_pages_header_footer:
                kinds.append("even_page_{}")
            for name, texts in (("header", headers), ("footer", footers)):
                for part in (getattr(section, kind.format(name)) for kind in kinds):
                    if not part.is_linked_to_previous:
                        found = block_text(self._blocks(part._element))  # noqa: SLF001  no public name
                        texts.update(dict.fromkeys(text for text in found if not is_page_number(text)))
        yield from map(Paragraph, headers)
        yield from self._blocks(self._document.element.body)
        if self._unfinished:
            yield Paragraph(self._unfinished)
        yield from map(Paragraph, footers)

    def _blocks(self, parent: Element) -> Iterator[Block]:
        """Yield the blocks of the body, a cell, a text box or a header."""
        for element in parent:
            if element.tag == PARAGRAPH:
                yield from self._paragraph(element)
            elif element.tag == TABLE:
                yield from self._table(element)
            elif isinstance(element.tag, str) and element.tag not in SKIPPED:  # content controls and the like
                yield from self._blocks(element)

    def _paragraph(self, paragraph: Element) -> Iterator[Block]:
        """Yield a paragraph, and then the text boxes that are anchored in it."""
        boxes: list[Element] = []
        properties = paragraph.find(qn("w:pPr"))
        text = self._unfinished + "".join(_words(paragraph, boxes, self._hidden))
        self._unfinished = ""
        if properties is not None and (_find(properties, "./w:rPr/w:del") or _find(properties, LARGE_INITIAL)):
            self._unfinished = text
            text = ""
        text = text.strip()
        named = None
        if properties is not None:
            named = properties.find(qn("w:pStyle"))
        if named is not None:
            name = named.get(VALUE)
        else:
            name = next(iter(self._default), "")
        style = self._styles.get(name, _Style())
        text = "" if style.is_hidden else text
        heading = style.heading
        number = style.number
        if properties is not None:
            outline = properties.find(qn("w:outlineLvl"))
            own = properties.find(qn("w:numPr"))
            heading = _heading_level(outline) if outline is not None else heading
            number = own if own is not None else number
        if text:
            depth = 0
            label = ""
            if number is not None:
                depth, label = self._numbering.next(number)
            if heading:
                yield Heading(f"{label} {text}", heading)
            elif label == "-" or (label[:-1].isdecimal() and label[-1] in ".)"):
                yield Item(text, depth, label)
            else:
                yield Paragraph(f"{label} {text}")
        for box in boxes:
            yield from self._blocks(box) if box.tag == BOX else self._drawn(box)

    def _drawn(self, drawing: Element) -> Iterator[Block]:
        """Yield the words of a chart or diagram; one in a page header has its data beside that, and is not read."""
        part = self._document.part.rels.get(drawing.get(qn("r:id" if drawing.tag == CHART else "r:dm"), ""))
        if part is None or part.is_external:
            return
        raw = part.target_part.blob
        yield from chart_blocks(raw) if drawing.tag == CHART else map(Paragraph, diagram_lines(raw))

    def _table(self, table: Element) -> Iterator[Block]:
        rows = [row for row in _children(table, ROW) if not _find(row, "./w:trPr/w:del")]
        cells = [[cell for cell in _children(row, CELL) if not _find(cell, "./w:tcPr/w:cellDel")] for row in rows]
        if max(map(len, cells), default=0) <= 1:  # a frame around a text
            for cell in (cell for row in cells for cell in row):
                yield from self._blocks(cell)
            return
        for row, inner in zip(rows, cells, strict=True):
            before = _find(row, "string(./w:trPr/w:gridBefore/@w:val)")
            gap = []
            if before.isdecimal():
                gap = [""] * min(int(before), MAX_SPAN)
            yield TableRow([*gap, *(text for cell in inner for text in self._cell(cell))])

    def _cell(self, cell: Element) -> list[str]:
        """Return the text of a cell, and empty ones for the other columns that it spans."""
        merged = _find(cell, "./w:tcPr/w:vMerge[not(@w:val) or @w:val='continue']")
        text = "" if merged else " ".join(block_text(self._blocks(cell)))
        span = next(iter(_find(cell, "./w:tcPr/w:gridSpan/@w:val")), "1")
        if span.isdecimal():
            return [text, *[""] * (min(int(span), MAX_SPAN) - 1)]
        return [text]


@cache
def _path(path: str) -> etree.XPath:
    return etree.XPath(path, namespaces=SPACES)


def _find(element: Element, path: str) -> Any:
    return _path(path)(element)


def block_text(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the words of blocks, with the numbers of lists."""
    for block in blocks:
        match block:
            case Item(mark=mark) if mark != "-":
                yield f"{mark} {block.text}"
            case TableRow():
                yield " ".join(filter(None, block.cells))
            case Heading() | Paragraph() | Item():
                yield block.text.strip()


def is_page_number(text: str) -> bool:
    """Return whether a page header is empty or a number: that of the page on which a program saved it."""
    return not text.strip(" -–—|/.").strip() or text.strip(" -–—|/.").isdecimal()


def _children(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the rows of a table, or the cells of a row, also those in content controls."""
    for element in parent:
        if element.tag == tag:
            yield element
        elif isinstance(element.tag, str) and element.tag not in SKIPPED:
            yield from _children(element, tag)


def _words(parent: Element, boxes: list[Element], hidden: frozenset[str]) -> Iterator[str]:
    """Yield the text within a paragraph, without that of hidden styles; note text boxes and diagrams on the way."""
    for element in parent:
        tag = element.tag
        if tag in SKIPPED or not isinstance(tag, str):
            continue
        if tag == TEXT:
            yield (element.text or "").replace("\n", " ")
        elif tag in SIGNS:
            yield SIGNS[tag]
        elif tag == FORMULA:
            yield formula_text(element)
        elif tag in {BOX, CHART, DIAGRAM}:
            boxes.append(element)
        elif tag == RUN:
            yield from _run(element, boxes, hidden)
        elif tag == SYMBOL:
            yield _symbol(element.get(qn("w:char"), ""), element.get(qn("w:font"), ""))
        elif tag == ALTERNATIVES:  # the first choice is what current programs show; the fallback says it again
            choices = [choice for choice in element if choice.tag not in SKIPPED] or list(element)
            for choice in choices[:1]:
                yield from _words(choice, boxes, hidden)
        else:
            yield from _words(element, boxes, hidden)


def _run(run: Element, boxes: list[Element], hidden: frozenset[str]) -> Iterator[str]:
    properties = run.find(qn("w:rPr"))
    if properties is None:
        yield "".join(_words(run, boxes, hidden))
        return
    vanish = properties.find(qn("w:vanish"))
    style = properties.find(qn("w:rStyle"))
    if vanish is not None:
        is_hidden = vanish.get(VALUE) not in OFF
    else:
        is_hidden = style is not None and style.get(VALUE) in hidden
    if is_hidden:
        return
    text = "".join(_words(run, boxes, hidden))
    font = properties.find(qn("w:rFonts"))
    if font is not None:
        text = with_signs_of_font(text, font.get(qn("w:ascii"), ""))
    place = properties.find(qn("w:vertAlign"))
    match None if place is None else place.get(VALUE):
        case "superscript":
            yield raised(text)
        case "subscript":
            yield f"_{text}"
        case _:
            yield text


def _symbol(code: str, font: str) -> str:
    """Return the character of a symbol; empty for a picture."""
    try:
        return sign_of_font(int(code, 16), font)
    except ValueError:
        return ""


def _heading_level(outline: Element) -> int:
    level = outline.get(VALUE, "")
    if level.isdecimal() and int(level) < MAX_LEVELS:
        return min(int(level) + 1, 6)
    return 0


def _styles(root: Element) -> dict[str, _Style]:
    """Return the styles of paragraphs and of runs by id."""
    written = _find(root, "./w:style[@w:type='paragraph' or @w:type='character']")
    elements = {style.get(qn("w:styleId")): style for style in written}
    styles: dict[str, _Style] = {}
    for name, style in elements.items():
        found = _Style()
        current = style
        vanish = None
        for _ in range(MAX_STYLES):
            if vanish is None:
                vanish = next(iter(_find(current, "./w:rPr/w:vanish")), None)
            outline = _find(current, "./w:pPr/w:outlineLvl")
            number = _find(current, "./w:pPr/w:numPr")
            found.heading = found.heading or (_heading_level(outline[0]) if outline else 0)
            title = (_find(current, "string(./w:name/@w:val)") or "").lower()
            if not found.heading and (title == "title" or title.startswith("heading ")):
                level = title.removeprefix("heading ")
                if level.isdecimal() and int(level):
                    found.heading = min(int(level), 6)
                else:
                    found.heading = 1
            found.number = number[0] if number and found.number is None else found.number
            current = elements.get(_find(current, "string(./w:basedOn/@w:val)"))
            if current is None:
                break
        found.is_hidden = vanish is not None and vanish.get(VALUE) not in OFF
        styles[name] = found
    return styles


class _Numbering:
    """The lists of a document: each paragraph in turn takes the next number of its list."""

    def __init__(self, root: Element | None) -> None:
        self._lists: dict[str, _List] = {}
        self._by_number: dict[str, str] = {}
        self._own_levels: dict[str, dict[int, _Level]] = {}
        """Levels that only one number of a list has, by that number."""
        self._restarts: dict[str, dict[int, int]] = {}
        """Numbers that restart a list when they are first used, by the number of the list and the level."""
        if root is None:
            return
        for abstract in _find(root, "./w:abstractNum"):
            levels = {int(level.get(qn("w:ilvl"), "0")): _level(level) for level in _find(abstract, "./w:lvl")}
            self._lists[abstract.get(qn("w:abstractNumId"), "")] = _List(levels)
        for number in _find(root, "./w:num"):
            name = number.get(qn("w:numId"), "")
            self._by_number[name] = _find(number, "string(./w:abstractNumId/@w:val)")
            for override in _find(number, "./w:lvlOverride"):
                start = _find(override, "string(./w:startOverride/@w:val)")
                level = override.get(qn("w:ilvl"), "0")
                if start.isdecimal() and level.isdecimal():
                    self._restarts.setdefault(name, {})[int(level)] = int(start)
                for own in _find(override, "./w:lvl"):
                    self._own_levels.setdefault(name, {})[int(own.get(qn("w:ilvl"), "0"))] = _level(own)

    def next(self, number: Element) -> tuple[int, str]:
        """Return the level of the next paragraph of a list, and the mark before it: `-`, `3.`, `2.1`, or nothing."""
        name = _find(number, "string(./w:numId/@w:val)")
        written = _find(number, "string(./w:ilvl/@w:val)")
        level = 0
        if written.isdecimal():
            level = min(int(written), MAX_LEVELS - 1)
        shared = self._lists.get(self._by_number.get(name, ""))
        if shared is None or name == "0":
            return 0, ""
        for each, start in self._restarts.pop(name, {}).items():
            shared.reached[each] = start - 1
            _forget_below(shared, each)
        levels = shared.levels | self._own_levels.get(name, {})
        own = levels.get(level, _Level(form="bullet"))
        shared.reached[level] = shared.reached[level] + 1 if level in shared.reached else own.start
        _forget_below(shared, level)
        return level, _label(levels, shared.reached, own)


def _forget_below(shared: _List, level: int) -> None:
    """Begin the numbers of the deeper levels again, unless they go through the whole list."""
    for deeper in range(level + 1, MAX_LEVELS):
        if shared.levels.get(deeper, _Level()).restarts:
            del shared.reached[deeper]


def _level(level: Element) -> _Level:
    start = _find(level, "string(./w:start/@w:val)")
    return _Level(
        form=_find(level, "string(./w:numFmt/@w:val)") or "decimal",
        text=_find(level, "string(./w:lvlText/@w:val)"),
        start=int(start) if start.isdecimal() else 1,
        legal=bool(_find(level, "./w:isLgl")),
        restarts=_find(level, "string(./w:lvlRestart/@w:val)") != "0",
    )


def _label(levels: Mapping[int, _Level], reached: Mapping[int, int], own: _Level) -> str:
    """Return what is written before a paragraph of a level; nothing for a bullet that is a space."""
    if own.form == "bullet":
        return "-" if own.text.strip() else ""
    label = own.text
    for place in range(MAX_LEVELS):
        if f"%{place + 1}" in label:
            level = levels.get(place, _Level())
            number = reached.get(place, level.start)
            label = label.replace(f"%{place + 1}", written_number(number, "decimal" if own.legal else level.form))
    return " ".join(label.split())
