"""HTML pages: their visible content without navigation, as clean HTML, and their statements about themselves.

libxml2 parses a page, and one walk prepares it for `documents`, so that every pass is linear.
"""

import re
from dataclasses import replace
from html import escape
from typing import Any, Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import (
    LITERAL_MARK,
    MAX_FACT_LENGTH,
    TERM_MARK,
    DocumentFacts,
    clean,
    is_name,
    iso_date,
    language_code,
    one_line,
    raised,
)

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

MAX_TAGS: Final = 200_000
MAX_ATTRIBUTES: Final = 1_000
"""Per tag, before the parser, which compares each with all others of its tag. Source of these figures and the next:
reliability-and-security 2.2."""
MAX_QUESTIONS: Final = 50
"""Scripts and the like that may look like such a tag; the page before each is parsed to ask."""
MAX_DEPTH: Final = 512
TAG: Final = re.compile(r"<[a-zA-Z](?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+")
QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
ATTRIBUTE: Final = re.compile(r"[\s/=][^\s/=]")

HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
DROPPED: Final = frozenset(
    """script style noscript template svg iframe object embed applet canvas audio video map nav footer input
    select textarea datalist dialog menu head title meta link base img hr annotation annotation-xml wbr""".split()
)
KEPT: Final = frozenset("p ul ol li dl dt dd pre code table tr td th".split()).union(HEADINGS)
BLOCKS: Final = frozenset(
    """address article aside blockquote body center details div fieldset figcaption figure form frameset header hgroup
    button html legend main search section summary tbody tfoot thead""".split()
)
"""Written as `div`."""
RENAMED: Final = {"caption": "p", "kbd": "code", "samp": "code", "tt": "code"}
"""Of all other elements, such as links and emphasis, only the text is written."""
NUMBERS: Final = {"td": ("colspan", "rowspan"), "th": ("colspan", "rowspan"), "ol": ("start",)}
SMALL_NUMBER: Final = re.compile("[0-9]{1,3}")
INLINE: Final = frozenset(("code", "br"))
MAX_WRITTEN_DEPTH: Final = 40
"""`kreuzberg` drops elements nested deeper than 60; below this level they are written as a sequence of blocks."""
LAYOUT: Final = ("table", "h1", "h2", "h3", "h4", "pre", "dl", "section", "article", "form")
"""Elements in table cells that mark a table as mere layout."""
PARTS_OF_TABLES: Final = frozenset(("table", "thead", "tbody", "tfoot", "tr", "td", "th"))
MAX_CELL_LENGTH: Final = 1_500  # in a table without headers, where longer cells are columns of a page

NAVIGATION_ROLES: Final = frozenset("navigation contentinfo search menu menubar dialog alertdialog".split())
NAVIGATION: Final = frozenset(
    """navheader navfooter navbar navigation breadcrumb breadcrumbs fancy_toc toc table-of-contents skip-link skiplink
    skip-links headerlink anchorjs-link mw-editsection mw-jump-link printfooter catlinks navbox cookie-banner
    cookie-notice cookiebanner sphinxsidebar toctree-wrapper edit-this-page pagination""".split()
)
"""Classes of navigation. An element of such a class or id is dropped if it is mostly links, or has no sentence."""
MAX_LABELS: Final = 12
"""Words of an element without a heading that can be labels of navigation."""
PERHAPS_NAVIGATION: Final = frozenset(
    "nav menu sidebar sidenav footer header related pager share social masthead nosearch".split()
)
"""Parts of classes and ids that mean navigation if the element is mostly links; an element `header` is such, too."""
OPENERS: Final = ("aria-expanded", "aria-controls", "popovertarget")
"""Attributes of buttons that open content: their text is its heading."""
MIN_BUTTON_WORDS: Final = 4
"""Words of a button that is more than the name of an action."""
MOSTLY_LINKS: Final = 0.5  # share of the words that belong to links
CONTENT: Final = frozenset(("html", "body", "main", "article", *HEADINGS))
BOXES: Final = frozenset(
    """note tip warning caution important danger hint attention admonition example figure sidebar footnote footnotes
    informalexample equation alert""".split()
)
"""Classes of boxes inside a section; a heading in one begins no section."""
TITLES: Final = frozenset(("fancy_title", "page-title", "pagetitle", "doc-title", "doctitle"))
MIN_MAIN_CHARACTERS: Final = 200
READS_AS_MARKUP: Final = re.compile(r"#{1,6} |```|~~~|[|>]|-{3}|\*{3}")
FOOTNOTE: Final = re.compile(r"[\[(]?(?:\d{1,3}|[a-z*†‡§])[\])]?")

MAX_LINK_LENGTH: Final = 500
MAX_AUTHORS: Final = 20
AUTHORS: Final = ("author", "citation_author", "dc.creator", "dcterms.creator")
PUBLISHERS: Final = ("og:site_name", "citation_publisher", "dc.publisher", "publisher")
DATES: Final = (
    *("article:published_time", "citation_publication_date", "citation_date", "dc.date", "dcterms.created", "date"),
    *("dcterms.date", "pubdate", "parsely-pub-date", "article:modified_time"),
)
"""Names of meta elements, the most reliable first."""


def read_html(markup: str) -> tuple[str, DocumentFacts]:
    """Return a page's content as clean HTML, and its facts; links as written. Raises `SourceUnreadable`."""
    check_size(markup)
    data = clean(markup).encode("utf-8")
    try:
        root = etree.fromstring(data, _parser()) if data.strip() else None
    except etree.XMLSyntaxError as error:
        raise SourceUnreadable("malformed", "the page is no HTML") from error
    if root is None:
        return "", DocumentFacts()
    if sum(1 for _ in root.iter()) > MAX_TAGS:
        raise SourceUnreadable("too_large", f"the page has more than {MAX_TAGS} elements")
    facts, body = _facts(root), root.find("body")
    if body is None:
        return "", facts
    writer = _Writer()
    try:
        writer.write(body, 0)
    except RecursionError as error:
        raise SourceUnreadable("too_large", "elements are nested too deep") from error
    content, links = writer.content()
    return content, replace(facts, links=links)


def check_size(markup: str) -> None:
    """Refuse tags with so many attributes that they hang the parser. Raises `SourceUnreadable` too_large."""
    position, asked = 0, 0
    while (match := TAG.search(markup, position)) is not None:
        position, size = match.end(), match.end() - match.start()
        if size <= MAX_ATTRIBUTES or len(ATTRIBUTE.findall(QUOTED.sub("=", match.group()))) <= MAX_ATTRIBUTES:
            continue
        asked += 1
        if asked > MAX_QUESTIONS or _is_tag(markup, match.start()):
            raise SourceUnreadable("too_large", f"a tag has more than {MAX_ATTRIBUTES} attributes")
        position = match.start() + 1


def _is_tag(markup: str, position: int) -> bool:
    """Return whether a tag can begin at a position: not in a script, a comment and the like. The parser decides."""
    root = etree.fromstring((markup[:position] + "<x-probe>").encode("utf-8"), _parser())
    return root is not None and root.find(".//x-probe") is not None


def _parser() -> Any:
    return etree.HTMLParser(remove_comments=True, remove_pis=True, huge_tree=True, no_network=True, encoding="utf-8")


class _Writer:
    """Walks a page once, and writes its text and the elements that Markdown supports."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._main_elements: list[tuple[int, int, int]] = []
        """First part, last part and number of characters of each main element."""
        self._characters = self._titles = 0
        self._nesting = self._boxes = self._preformatted = 0
        """Elements around the current position."""
        self._layout: set[Element] = set()
        """Tables that only arrange the page."""
        self._links: list[tuple[int, str]] = []
        """Index among the parts, and address."""

    def content(self) -> tuple[str, list[str]]:
        """Return the only main element, if it is long enough, else the whole page; and its links.

        Links are in order, each once.
        """
        start, end, characters = self._main_elements[0] if len(self._main_elements) == 1 else (0, 0, 0)
        if characters < MIN_MAIN_CHARACTERS:
            start, end = 0, len(self._parts)
        links = dict.fromkeys(address for index, address in self._links if start <= index < end)
        return "".join(self._parts[start:end]), list(links)

    def write(self, element: Element, depth: int) -> tuple[int, int]:
        """Write an element's content; return its words and those of links. Raises `SourceUnreadable` too_large."""
        if depth > MAX_DEPTH:
            raise SourceUnreadable("too_large", f"elements are nested deeper than {MAX_DEPTH}")
        if element.tag == "a" and 0 < len(address := element.get("href", "")) <= MAX_LINK_LENGTH:
            self._links.append((len(self._parts), address))
        words, linked = self._text(element.text), 0
        for child in element:
            child_words, child_linked = self._child(child, depth + 1)
            words, linked = words + child_words + self._text(child.tail), linked + child_linked
        return words, words if element.tag == "a" and element.get("href") is not None else linked

    def _child(self, element: Element, depth: int) -> tuple[int, int]:
        """Write an element, unless it is invisible or navigation; return its words and those of links."""
        tag = element.tag
        if not isinstance(tag, str) or tag in DROPPED or is_hidden(element):
            return 0, 0
        if tag == "button" and not _is_content_button(element):
            return 0, 0
        if tag == "caption" and element.getparent().tag == "table":  # already written above it
            return 0, 0
        names = f"{element.get('class', '')} {element.get('id', '')}".lower().split()
        role, may_be_dropped = element.get("role"), tag not in CONTENT
        if may_be_dropped and role in NAVIGATION_ROLES:
            return 0, 0
        start, characters, titles = len(self._parts), self._characters, self._titles
        self._titles += tag in HEADINGS
        words, linked = self._element(element, depth, names)
        mostly_links = linked >= max(1, MOSTLY_LINKS * words)
        if NAVIGATION.isdisjoint(names):
            parts = (part for name in names for part in name.replace("_", "-").split("-"))
            is_navigation = mostly_links and (tag == "header" or not PERHAPS_NAVIGATION.isdisjoint(parts))
        else:
            is_navigation = mostly_links or (titles == self._titles and words <= MAX_LABELS)
        if may_be_dropped and is_navigation:
            del self._parts[start:]
            while self._links and self._links[-1][0] >= start:
                self._links.pop()
            self._main_elements = [main for main in self._main_elements if main[0] < start]
        elif tag == "main" or role == "main":
            self._main_elements.append((start, len(self._parts), self._characters - characters))
        return words, linked

    def _element(self, element: Element, depth: int, names: list[str]) -> tuple[int, int]:
        """Write an element between its tags."""
        tag = element.tag
        if tag == "br":
            self._parts.append("<br>")
        if tag in {"sup", "sub"}:
            return self._script(element, depth)
        if tag == "table":
            self._begin_table(element, depth)
        output_tag = self._tag_for(element, names)
        boxed = output_tag in {"td", "th"} or tag in {"aside", "figure"} or not BOXES.isdisjoint(names)
        numbers = "".join(
            f' {name}="{value}"'
            for name in NUMBERS.get(output_tag, ())
            if SMALL_NUMBER.fullmatch(value := element.get(name) or "")
        )
        self._add_tag(output_tag, f"<{output_tag}{numbers}>{TERM_MARK if output_tag == 'dt' else ''}")
        self._boxes += boxed
        self._preformatted += output_tag == "pre"
        self._nesting += output_tag != ""
        counts = self.write(element, depth)
        self._nesting -= output_tag != ""
        self._preformatted -= output_tag == "pre"
        self._boxes -= boxed
        self._add_tag(output_tag, f"</{output_tag}>")
        if output_tag and output_tag not in INLINE and not self._preformatted:
            self._parts.append(" ")  # a cell is one line: text after a block in it must not join its last word
        return counts

    def _tag_for(self, element: Element, names: list[str]) -> str:
        tag = element.tag
        if tag in HEADINGS and self._boxes:
            return "p"
        if tag == "div" and not TITLES.isdisjoint(names):
            return "h1"
        if tag in PARTS_OF_TABLES:
            table = element if tag == "table" else next(element.iterancestors("table"), None)
            return "div" if table in self._layout or tag in BLOCKS else tag
        if tag in BLOCKS:
            return "div"
        return tag if tag in KEPT else RENAMED.get(tag, "")

    def _add_tag(self, output_tag: str, markup: str) -> None:
        """Write a tag, or a break between blocks if elements are nested too deep to be written."""
        if output_tag in INLINE or (output_tag and self._nesting < MAX_WRITTEN_DEPTH):
            self._parts.append(markup)
        elif output_tag:
            self._parts.append("<hr>")

    def _begin_table(self, table: Element, depth: int) -> None:
        """Write the caption of a table above it, and note a table that only arranges the page."""
        if self._nesting + 4 > MAX_WRITTEN_DEPTH or not _is_data(table):
            self._layout.add(table)
        for caption in table.iterchildren("caption"):
            if not is_hidden(caption):
                self._parts.append("<p>")
                self.write(caption, depth + 1)
                self._parts.append("</p>")

    def _script(self, element: Element, depth: int) -> tuple[int, int]:
        """Write a raised or subscript as text: `^32`, `_i`. Footnote marks are dropped, ordinals unchanged."""
        start = len(self._parts)
        words, linked = self.write(element, depth)
        inner = "".join(self._parts[start:]).strip()
        del self._parts[start:]
        if inner and not (linked and FOOTNOTE.fullmatch(inner)):
            self._parts.append(raised(inner) if element.tag == "sup" else f"_{inner}")
        return words, linked

    def _text(self, text: str | None) -> int:
        """Write a text with collapsed white space; return its number of words."""
        if not text:
            return 0
        words = text.split()
        if self._preformatted:
            written = text
        elif not words:
            written = " "
        else:
            written = (" " if text[0].isspace() else "") + " ".join(words) + (" " if text[-1].isspace() else "")
            if words[0][0] in "#`~|>-*" and READS_AS_MARKUP.match(" ".join(words[:2])):
                written = LITERAL_MARK + written
        self._characters += len(written)
        self._parts.append(escape(written, quote=False))
        return len(words)


def is_hidden(element: Element) -> bool:
    """Return whether an element hides itself: by a style, or by `hidden`, unless browsers find its text."""
    style = element.get("style", "").lower().replace("!important", "")
    hidden = element.get("hidden")
    return (hidden is not None and hidden.strip().lower() != "until-found") or any(map(_hides, style.split(";")))


def _hides(declaration: str) -> bool:
    name, _, value = (part.strip() for part in declaration.partition(":"))
    if name in {"opacity", "font-size"}:
        number = value.rstrip("%abcdefghijklmnopqrstuvwxyz ")
        return number != "" and not number.strip("0.")
    return (name, value) in {("display", "none"), ("visibility", "hidden")}


def _is_content_button(button: Element) -> bool:
    """Return whether the text of a button is content: it opens the text below it, or is longer than an action."""
    if next(button.iterancestors(*HEADINGS, "dt", "summary"), None) is not None:
        return True
    words = " ".join(button.itertext()).split()
    return any(button.get(name) is not None for name in OPENERS) or len(words) >= MIN_BUTTON_WORDS


def _is_data(table: Element) -> bool:
    """Return whether a table contains data rather than the layout of a page."""
    if table.get("role") in {"presentation", "none"} or next(table.iterdescendants(*LAYOUT), None) is not None:
        return False
    if next(table.iter("th"), None) is not None:
        return True
    rows = [len(row) for row in table.iter("tr") if len(row)]
    short = all(sum(map(len, cell.itertext())) <= MAX_CELL_LENGTH for cell in table.iter("td"))
    return len(rows) > 1 and max(rows) > 1 and short


def _facts(root: Element) -> DocumentFacts:
    """Read the title and the meta elements."""
    metadata: dict[str, list[str]] = {}
    for meta in root.iter("meta"):
        key = meta.get("name") or meta.get("property") or meta.get("itemprop") or ""
        metadata.setdefault(key.lower(), []).append(meta.get("content") or "")
    metadata["<title>"] = ["".join(title.itertext()) for title in root.iter("title")][:1]

    def values(*keys: str) -> list[str]:
        texts = (one_line(clean(value)) for key in keys for value in metadata.get(key, ()))
        return list(dict.fromkeys(value[:MAX_FACT_LENGTH] for value in texts if value))

    authors = (list(filter(is_name, values(key))) for key in AUTHORS)
    return DocumentFacts(
        title=next(iter(values("<title>", "og:title")), ""),
        language=language_code(root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")),
        authors=next(filter(None, authors), [])[:MAX_AUTHORS],
        publisher=next(filter(is_name, values(*PUBLISHERS)), None),
        published_at=next(filter(None, map(iso_date, values(*DATES))), None),
    )
