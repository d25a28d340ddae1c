"""HTML pages: parsed by libxml2, walked once, written as canonical text.

libxml2 was chosen by measurement: parse and walk together take a third of the time of resiliparse on the same pages
(its parser is faster, its node access eight times slower), and it has no quadratic repair of wrongly nested tags.
"""

from collections.abc import Callable
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import TEXT_LIMIT, BlockKind, Extraction, TextBuilder, add_code
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.formats.plain_text import write_plain_text
from providers.reading.html.cascade import mark_hidden
from providers.reading.html.code import code_of
from providers.reading.html.math import formula_of
from providers.reading.html.metadata import PageMetadata, metadata_of
from providers.reading.html.pregate import NESTING_LIMIT, check_html
from providers.reading.html.rules import (
    BLOCKS,
    BOXED,
    HEADINGS,
    Element,
    beginning_of,
    is_dropped,
    is_hidden,
    is_titled,
    meaning_of,
    script_mark,
)
from providers.reading.html.tables import Cell, is_data_table, rows_of, write_rows

MAIN_CONTENT: Final = ".//main | .//*[@role='main']"
IN_HIDDEN: Final = "boolean(ancestor-or-self::*[@hidden][not(self::body or self::html)])"
LEAST_MAIN_CHARACTERS: Final = 200
PROSE_IN_PRE_SHARE: Final = 0.6
LEAST_PLAIN_PAGE: Final = 3_000
LONGEST_TERM: Final = 200
PHRASES: Final = frozenset(("sup", "sub", "br", "math"))
"""Elements inside a line that are more than their words."""
BLOCK_MARK: Final = "\0"
"""Stands between blocks while they are put on one line; no cleaned text holds it."""


def extract_html(markup: str) -> Extraction:
    """The canonical text of a page. Raises `SourceUnreadable` too_large, malformed or no_text."""
    check_html(markup)
    root = parse(markup)
    found = extraction_of(root, metadata_of(root))
    if not found.text.strip():
        raise SourceUnreadable("no_text", "the page holds no text")
    return found


def extraction_of(root: Element, metadata: PageMetadata, limit: int = TEXT_LIMIT) -> Extraction:
    """The canonical text of a tree, perhaps empty, up to so many characters. Raises `SourceUnreadable` too_large."""
    body = root.find("body")
    builder = TextBuilder(limit)
    try:
        if body is not None:
            _Writer(builder).write(main_content(body))
    except RecursionError as error:
        raise SourceUnreadable("too_large", "elements are nested too deep") from error
    text = builder.text()
    headings = (text[block.start : block.end] for block in builder.blocks if block.kind is BlockKind.HEADING)
    return Extraction(
        title=metadata.title or next(headings, ""),
        text=text,
        media_type="text/html",
        blocks=builder.blocks,
        language=metadata.language,
        authors=metadata.authors,
        publisher=metadata.publisher,
        published_at=metadata.published_at,
        cut=builder.cut,
    )


def parse(markup: str, sheet_of: Callable[[str], str] | None = None) -> Element:
    """The tree of a page, without comments. Raises `SourceUnreadable` malformed, no_text.

    `sheet_of` gives the style sheet at an address, for pages that come together with their sheets.
    """
    parser = etree.HTMLParser(remove_comments=True, remove_pis=True, huge_tree=True, no_network=True, encoding="utf-8")
    data = clean(markup).encode("utf-8")
    if not data.strip():
        raise SourceUnreadable("no_text", "the page holds no text")
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise SourceUnreadable("malformed", "the page is no HTML") from error
    if root is None:
        raise SourceUnreadable("no_text", "the page holds no text")
    if sheet_of is not None:
        for link in list(root.iter("link")):
            if "stylesheet" in link.get("rel", "").lower() and (sheet := sheet_of(link.get("href", ""))):
                link.tag, link.text = "style", clean(sheet)
    mark_hidden(root)
    return root


def main_content(body: Element) -> Element:
    """The one part that the page marks as its content, if that is seen and says something; else all of it."""
    mains = body.xpath(MAIN_CONTENT)
    if len(mains) != 1 or mains[0].xpath(IN_HIDDEN):
        return body
    return mains[0] if len("".join(mains[0].itertext()).strip()) >= LEAST_MAIN_CHARACTERS else body


def one_line_each(text: str) -> str:
    """White space collapsed; a `<br>`, which stands as a vertical tab, keeps its line end."""
    if "\v" not in text:
        return one_line(text)
    return "\n".join(filter(None, map(one_line, text.split("\v"))))


class _Inline:
    """Text that is being gathered for a block, and how much of it is links."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.linked = 0
        self.characters = 0

    def add(self, words: str, *, in_link: bool) -> None:
        if words.isspace():
            if self.parts:  # what comes before the first word is stripped anyway
                self.parts.append(words)
            return
        self.parts.append(words)
        self.characters += len(words)
        if in_link:
            self.linked += len(words)

    def take(self) -> tuple[str, float]:
        """The words on one line (a `<br>` keeps its line end) and their link share; then empty."""
        words = one_line_each("".join(self.parts))
        share = self.linked / self.characters if self.characters else 0.0
        self.parts, self.linked, self.characters = [], 0, 0
        return words, share


class _Writer:
    """Walks the tree of a page and writes its blocks."""

    def __init__(self, builder: TextBuilder) -> None:
        self.builder = builder
        self.inline = _Inline()
        self.bullet = ""
        self.label = ""
        self.after_term = False
        self.boxes = 0
        self.in_script = False
        self.page_size: int | None = None
        self.lists: list[int] = []
        """The open lists: the next number of an ordered one, 0 for others."""

    def write(self, root: Element) -> None:
        self._children(root, depth=0, in_link=False)
        self._flush()

    def _children(self, element: Element, *, depth: int, in_link: bool) -> None:
        if element.text:
            self.inline.add(element.text, in_link=in_link)
        for child in element:
            if self.builder.cut or self.inline.characters > self.builder.limit:
                return
            self._element(child, depth=depth + 1, in_link=in_link)
            if child.tail:
                self.inline.add(child.tail, in_link=in_link)

    def _element(self, element: Element, *, depth: int, in_link: bool) -> None:
        tag = element.tag
        if not isinstance(tag, str):
            return
        if depth > NESTING_LIMIT:
            raise SourceUnreadable("too_large", f"elements are nested deeper than {NESTING_LIMIT}")
        if is_dropped(element, tag):
            return
        if tag not in BLOCKS:
            self._phrase(element, tag, depth=depth, in_link=in_link)
            return
        self._flush()
        self._block(element, tag, depth=depth, in_link=in_link)
        self._flush()

    def _phrase(self, element: Element, tag: str, *, depth: int, in_link: bool) -> None:
        if tag == "br":
            self.inline.add("\v", in_link=in_link)
        elif tag in {"sup", "sub"}:
            self._script(element, tag, depth=depth, in_link=in_link)
        elif tag == "math":
            self.inline.add(formula_of(element), in_link=in_link)
        elif tag != "img":
            self._children(element, depth=depth, in_link=in_link or (tag == "a" and element.get("href") is not None))

    def _script(self, element: Element, tag: str, *, depth: int, in_link: bool) -> None:
        if self.in_script:
            # One in another only gets its mark: each must not take in all of its content again.
            self.inline.add("_" if tag == "sub" else "^", in_link=in_link)
            self._gather(element, depth, in_link=in_link)
            return
        self.in_script = True
        linked = in_link or next(element.iter("a"), None) is not None
        words = self._words_of(element, depth=depth)[0] if len(element) else element.text or ""
        self.inline.add(script_mark(tag, words, linked=linked), in_link=in_link)
        self.in_script = False

    def _block(self, element: Element, tag: str, *, depth: int, in_link: bool) -> None:
        if tag in HEADINGS or (tag == "div" and is_titled(element)):
            self._heading(element, HEADINGS.get(tag, 1), depth=depth)
        elif tag in {"pre", "xmp", "listing", "plaintext"}:
            self._write_preformatted(element)
        elif tag == "table" and is_data_table(element):
            self._table(element, depth=depth)
        elif tag in {"ul", "ol", "dir"}:
            self.lists.append(1 if tag == "ol" else 0)
            self._children(element, depth=depth, in_link=in_link)
            self.lists.pop()
        elif tag == "li":
            self._item(element, depth=depth, in_link=in_link)
        elif tag == "dt":
            self._term(element, depth=depth)
        elif tag == "dd":
            self._definition(element, depth=depth, in_link=in_link)
        elif tag in {"figcaption", "caption"}:
            self._caption(element, depth=depth)
        else:
            boxed = bool(meaning_of(element.get("class")) & BOXED) or tag in {"aside", "td", "th", "figure"}
            self.boxes += boxed
            self._children(element, depth=depth, in_link=in_link)
            self._flush()
            self.boxes -= boxed
            self.label = "" if boxed else self.label

    def _heading(self, element: Element, level: int, *, depth: int) -> None:
        words, share = self._words_of(element, depth=depth)
        words = words.replace("\n", " ").rstrip("¶# ").strip()
        if not words:
            return
        self.after_term = False
        if self.boxes or self.lists:
            self.label = words if words.endswith((":", ".", "?", "!")) else words + ":"
        else:
            before = "#" * level + " "
            self.builder.add(BlockKind.HEADING, words, before=before, level=level, link_share=share)

    def _write_preformatted(self, element: Element) -> None:
        code = code_of(element)
        page = self._page_size(element)
        self.after_term = False
        if page and len(code) > PROSE_IN_PRE_SHARE * page:
            write_plain_text(self.builder, code)
        else:
            add_code(self.builder, code)

    def _table(self, element: Element, *, depth: int) -> None:
        caption = element.find("caption")
        if caption is not None and not is_hidden(caption):
            self._caption(caption, depth=depth)
        self.after_term = False
        rows = rows_of(element, lambda cell: Cell(*self._words_of(cell, depth=depth, separator="; ")))
        write_rows(self.builder, rows)

    def _item(self, element: Element, *, depth: int, in_link: bool) -> None:
        number = self.lists[-1] if self.lists else 0
        if number:
            self.lists[-1] += 1
        indent = "  " * max(0, min(len(self.lists), 6) - 1)
        self.bullet = f"{indent}{number}. " if number else f"{indent}- "
        self._children(element, depth=depth, in_link=in_link)
        self._flush()
        self.bullet = ""

    def _term(self, element: Element, *, depth: int) -> None:
        words, share = self._words_of(element, depth=depth)
        if words:
            close = self.after_term
            self.builder.add(BlockKind.TERM, escape_markup(words), link_share=share, close=close)
            self.after_term = len(words) <= LONGEST_TERM

    def _definition(self, element: Element, *, depth: int, in_link: bool) -> None:
        outer = self.builder.term
        last = self.builder.blocks[-1] if self.builder.blocks else None
        if last is not None and last.kind is BlockKind.TERM:
            self.builder.term = last.start
        self._children(element, depth=depth, in_link=in_link)
        self._flush()
        self.builder.term = outer

    def _caption(self, element: Element, *, depth: int) -> None:
        words, share = self._words_of(element, depth=depth)
        self.after_term = False
        if words:
            kind = "Table: " if element.tag == "caption" else "Figure: "
            self.builder.add(BlockKind.PARAGRAPH, kind + words.replace("\n", " "), link_share=share)

    def _words_of(self, element: Element, *, depth: int, separator: str = " ") -> tuple[str, float]:
        """All words below an element on one line, blocks parted by the separator."""
        outer, self.inline = self.inline, _Inline()
        self._gather(element, depth, in_link=False)
        words, share = self.inline.take()
        self.inline = outer
        pieces = (piece for piece in words.replace("\n", " ").split(BLOCK_MARK))
        return separator.join(filter(None, (one_line(piece) for piece in pieces))), share

    def _gather(self, element: Element, depth: int, *, in_link: bool) -> None:
        if depth > NESTING_LIMIT:
            raise SourceUnreadable("too_large", f"elements are nested deeper than {NESTING_LIMIT}")
        if element.text:
            self.inline.add(element.text, in_link=in_link)
        for child in element:
            tag = child.tag
            if isinstance(tag, str) and not is_dropped(child, tag):
                if tag in PHRASES:
                    self._phrase(child, tag, depth=depth + 1, in_link=in_link)
                else:
                    mark = BLOCK_MARK if tag in BLOCKS else ""
                    self.inline.add(mark, in_link=in_link)
                    self._gather(child, depth + 1, in_link=in_link or tag == "a")
                    self.inline.add(mark, in_link=in_link)
            if child.tail:
                self.inline.add(child.tail, in_link=in_link)

    def _flush(self) -> None:
        if not self.inline.parts:
            return
        words, share = self.inline.take()
        if not words:
            return
        if self.label:
            words, self.label = f"{self.label} {words}", ""
        kind = BlockKind.ITEM if self.bullet else BlockKind.PARAGRAPH
        close = self.after_term and kind is BlockKind.PARAGRAPH
        self.builder.add(kind, escape_markup(words), before=self.bullet, link_share=share, close=close)
        self.bullet = ""
        self.after_term = False

    def _page_size(self, element: Element) -> int:
        """Characters of the whole page, asked only for a long preformatted block, and counted once."""
        if beginning_of(element, LEAST_PLAIN_PAGE) is not None:
            return 0
        if self.page_size is None:
            self.page_size = sum(len(part) for part in next(element.iterancestors("body"), element).itertext())
        return self.page_size
