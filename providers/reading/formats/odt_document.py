"""Texts of OpenDocument (ODT): headings, paragraphs, lists and tables in their order, without what nobody sees.

Notes, comments, deleted text and boxes of their own are left out, as they are in Word documents.
"""

from collections.abc import Iterator
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.formats.archives import local_name, open_archive, parse_xml, read_entry, stated_facts
from providers.reading.html.rules import Element, script_mark
from providers.reading.html.styles import WHITE, alike, color_of
from providers.reading.html.tables import MOST_REPEATED, NOTHING, Cell, TableRow, write_rows

CONTENT: Final = "content.xml"
NOT_THERE: Final = frozenset(
    """tracked-changes note annotation annotation-end hidden-text hidden-paragraph ruby-text frame custom-shape
    text-box script forms title desc""".split()
)
"""What is no part of the lines of a text, or is not shown in them."""
SMALLEST: Final = 2.0
"""Points: smaller letters are not seen."""
DEEPEST_LIST: Final = 6
MOST_STYLES: Final = 50
"""Styles that rest on one another."""
MOST_BLANKS: Final = 100


def extract_odt(raw: bytes) -> Extraction:
    """The canonical text of a document. Raises `SourceUnreadable` malformed, too_large, encrypted or no_text."""
    archive = open_archive(raw)
    names = archive.namelist()
    manifest = read_entry(archive, "META-INF/manifest.xml") if "META-INF/manifest.xml" in names else b""
    if b"encryption-data" in manifest:
        raise SourceUnreadable("encrypted", "the document is protected by a password")
    content = parse_xml(read_entry(archive, CONTENT))
    sheets = [content, *(parse_xml(read_entry(archive, name)) for name in ("styles.xml",) if name in names)]
    builder = TextBuilder()
    body = next((element for element in content.iter() if local_name(element) == "text" and _is_body(element)), None)
    if body is not None:
        _OdtWriter(builder, _Styles(sheets)).write(body)
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the document holds no text")
    facts = stated_facts(parse_xml(read_entry(archive, "meta.xml")) if "meta.xml" in names else content)
    stated = vars(facts) | {"title": facts.title or builder.first()[:300]}
    return builder.finish("application/vnd.oasis.opendocument.text", **stated)


def _is_body(element: Element) -> bool:
    return element.getparent() is not None and local_name(element.getparent()) == "body"


def _attribute(element: Element, name: str) -> str:
    """An attribute by its name without a namespace; empty if there is none."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


class _Styles:
    """What named styles say of letters, with the styles that they rest on."""

    def __init__(self, sheets: list[Element]) -> None:
        self._styles: dict[tuple[str, str], Element] = {}
        for sheet in reversed(sheets):
            for element in sheet.iter():
                if local_name(element) == "style":
                    self._styles[_attribute(element, "family"), _attribute(element, "name")] = element
        self._known: dict[tuple[str, str], dict[str, str]] = {}

    def of(self, family: str, name: str) -> dict[str, str]:
        """The properties that a style states, by their names."""
        key = family, name
        if key not in self._known:
            chain: list[Element] = []
            while (style := self._styles.get((family, name))) is not None and len(chain) < MOST_STYLES:
                chain.append(style)
                name = _attribute(style, "parent-style-name")
            self._known[key] = {
                place.rpartition("}")[2]: value
                for style in reversed(chain)
                for properties in style
                for place, value in properties.attrib.items()
            }
        return self._known[key]


def _is_unseen(stated: dict[str, str]) -> bool:
    """Whether letters of such a style are not shown, or not to be told from what they stand on."""
    size = stated.get("font-size", "")
    if stated.get("display") == "none" or (size.endswith("pt") and _number(size[:-2]) < SMALLEST):
        return True
    color, ground = color_of(stated.get("color", "")), color_of(stated.get("background-color", ""))
    # Without a colour of their own, letters go by their ground.
    return "color" in stated and color is not None and alike(color, ground or WHITE)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return SMALLEST


class _OdtWriter:
    """Walks the body of a text and writes its blocks."""

    def __init__(self, builder: TextBuilder, styles: _Styles) -> None:
        self._builder = builder
        self._styles = styles
        self._repeated = 0

    def write(self, parent: Element, bullet: str = "", depth: int = 0) -> None:
        for element in parent:
            if self._builder.cut:
                return
            name = local_name(element)
            if name in NOT_THERE or _attribute(element, "display") == "none":
                continue
            if name == "h":
                self._write_heading(element)
            elif name == "p":
                self._write_paragraph(element, bullet)
                bullet = bullet and "  " * max(depth - 1, 0) + "- "
            elif name == "list":
                self._write_list(element, depth + 1)
            elif name == "table":
                write_rows(self._builder, self._rows(element))
            else:
                self.write(element, bullet, depth)

    def _write_heading(self, element: Element) -> None:
        stated = _attribute(element, "outline-level")
        level = min(max(int(stated), 1), 6) if stated.isdecimal() else 1
        if words := self._words(element):
            self._builder.add(BlockKind.HEADING, words, before="#" * level + " ", level=level)

    def _write_paragraph(self, element: Element, bullet: str) -> None:
        if words := self._words(element):
            kind = BlockKind.ITEM if bullet else BlockKind.PARAGRAPH
            self._builder.add(kind, escape_markup(words), before=bullet)

    def _write_list(self, element: Element, depth: int) -> None:
        for item in element:
            self.write(item, "  " * (min(depth, DEEPEST_LIST) - 1) + "- ", depth)

    def _words(self, element: Element) -> str:
        """The words of a paragraph on one line, empty if its style hides them."""
        stated = self._styles.of("paragraph", _attribute(element, "style-name"))
        return one_line(clean("".join(self._parts(element, stated))))

    def _parts(self, element: Element, stated: dict[str, str]) -> Iterator[str]:
        unseen = _is_unseen(stated)
        if element.text and not unseen:
            yield element.text
        for child in element:
            name = local_name(child)
            if name == "s":
                count = _attribute(child, "c")
                yield " " * min(int(count) if count.isdecimal() else 1, MOST_BLANKS)
            elif name in {"tab", "line-break"}:
                yield " "
            elif name and name not in NOT_THERE:
                yield from self._inner(child, stated)
            if child.tail and not unseen:
                yield child.tail

    def _inner(self, element: Element, outer: dict[str, str]) -> Iterator[str]:
        stated = outer | self._styles.of("text", _attribute(element, "style-name"))
        words = "".join(self._parts(element, stated))
        position = stated.get("text-position", "")
        if stated is not outer and position[:3] in {"sup", "sub"} and not outer.get("text-position"):
            yield script_mark(position[:3], words, linked=False)
        else:
            yield words

    def _rows(self, table: Element) -> list[TableRow]:
        rows: list[TableRow] = []
        for row in table.iter():
            if local_name(row) != "table-row" or next(row.iterancestors(table.tag)) is not table:
                continue
            group = row.getparent()
            if "collapse" in {_attribute(row, "visibility"), _attribute(group, "visibility")}:
                continue
            cells = [cell for cell in row if local_name(cell) in {"table-cell", "covered-table-cell"}]
            read = [found for cell in cells for found in self._cells(cell)]
            if any(cell.words for cell in read):
                rows.append(TableRow(read, header=local_name(group) == "table-header-rows" or not rows))
        return rows

    def _cells(self, element: Element) -> list[Cell]:
        """A cell as often as it stands in its row; empty ones at the end of a row are not worth their number."""
        paragraphs = (self._words(found) for found in element.iter() if local_name(found) in {"p", "h"})
        words = " ".join(filter(None, paragraphs))
        stated = _attribute(element, "number-columns-repeated")
        count = int(stated[:4]) if stated.isdecimal() else 1
        self._repeated += count - 1
        return [Cell(words, 0.0) if words else NOTHING] * (1 if self._repeated > MOST_REPEATED else count)
