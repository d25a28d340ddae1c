"""HTML pages: their visible content without navigation, as clean HTML, and their statements about themselves.

libxml2 parses a page, and one walk prepares it for `documents`, so that every pass is linear.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from html import escape
from html.entities import html5
from itertools import islice
from typing import Any, Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from contracts.sentences import Message
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import (
    BACKSLASH_MARK,
    LITERAL_MARK,
    MAX_FACT_LENGTH,
    TERM_MARK,
    UNSEEN,
    WORDS,
    DocumentFacts,
    clean,
    count_words,
    is_name,
    iso_date,
    language_code,
    one_line,
    raised,
)
from providers.reading.notation import formula_text, written_number

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

MAX_TAGS: Final = 200_000
MAX_ATTRIBUTES: Final = 1_000
"""Per tag, before the parser, which compares each with all others of its tag. 200,000 attributes on
one tag held up all four parsers that were tried for more than 12 s."""
MAX_QUESTIONS: Final = 50
"""Scripts and the like that may look like such a tag; the page before each is parsed to ask."""
MAX_DEPTH: Final = 512
TAG: Final = re.compile(r"<[a-zA-Z](?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+")
QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
XML_DECLARATION: Final = re.compile(rb"\A\s*<\?xml[^<>]{0,300}\?>")
NAMESPACE_OF_PAGE: Final = re.compile(
    rb"\A(\s*(?:<!DOCTYPE[^<>\[\]]*>\s*)?<html(?:\s[^<>]*)?)\sxmlns=(?:\"http://www\.w3\.org/1999/xhtml\"|'http://www\.w3\.org/1999/xhtml')"
)
"""The namespace that a whole page declares: the parser would write it into the name of each element."""
ENTITY: Final = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
ATTRIBUTE: Final = re.compile(r"[\s/=][^\s/=]")

HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
DROPPED: Final = frozenset(
    """script style noscript template svg iframe object embed applet canvas audio video map nav footer input
    select textarea datalist dialog menu head title meta link base img hr rt rp rtc del""".split()
)
"""Elements of which nothing is written: navigation, what is no text, readings of ideographs, and deleted text."""
PARTS: Final = {
    "footer": Message("part_footers"), "dialog": Message("part_dialogs"), "button": Message("part_buttons"),
    **dict.fromkeys(("select", "textarea", "datalist"), Message("part_form_fields")),
}  # fmt: skip
"""Name of a part that is not read, by its element; all others are navigation."""
COUNTED: Final = "x-counted"  # name of elements that are taken out of a page
PERHAPS_HIDDEN: Final = etree.XPath(".//*[@hidden or @style]")
IN_NAMESPACE: Final = etree.XPath("descendant-or-self::*[namespace-uri()]")
COUNT_OF_ELEMENTS: Final = etree.XPath("count(descendant-or-self::*)")
BESIDE: Final = Message("part_beside")
NAVIGATION_PART: Final = Message("part_navigation")
UNCOUNTED: Final = (DROPPED - {*PARTS, "nav", "menu"}) | {"annotation", "annotation-xml"}
"""Elements without words of the page."""
LISTS: Final = frozenset(("ol", "ul"))
STYLE_OF_LIST: Final = re.compile(r"list-style(?:-type)?\s*:\s*([a-z-]+)")
KEPT: Final = frozenset("p ul ol li dl dt dd pre code table tr td th".split()).union(HEADINGS)
BLOCKS: Final = frozenset(
    """address article aside blockquote body center details div fieldset figcaption figure form frameset header hgroup
    button html legend main marquee search section summary tbody tfoot thead""".split()
)
"""Written as `div`."""
BETWEEN_WORDS: Final = (KEPT - {"code"}) | BLOCKS | {"br", "hr", "caption", "option"}
"""Elements that end the word before them; all others may begin or end within one."""
RENAMED: Final = {"caption": "p", "kbd": "code", "samp": "code", "tt": "code", "listing": "pre", "xmp": "pre"}
"""Of all other elements, such as links and emphasis, only the text is written."""
SPANS: Final = ("colspan", "rowspan")
SMALL_NUMBER: Final = re.compile("[0-9]{1,3}")
NUMBER: Final = re.compile("-?[0-9]{1,6}")
FORMS: Final = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
STYLED_FORMS: Final = {
    "lower-alpha": "lowerLetter", "lower-latin": "lowerLetter", "lower-roman": "lowerRoman",
    "upper-alpha": "upperLetter", "upper-latin": "upperLetter", "upper-roman": "upperRoman",
}  # fmt: skip
"""Form of numbering by the attribute `type` of a list, and by its style."""
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
MAX_LABELS: Final = 40
"""Words of an element without a heading that can be labels of navigation."""
PERHAPS_NAVIGATION: Final = frozenset(
    "nav menu sidebar sidenav footer header related pager share social masthead nosearch".split()
)
"""Parts of classes and ids that mean navigation if the element is mostly links; an element `header` is such, too."""
OPENERS: Final = ("aria-expanded", "aria-controls", "popovertarget", "data-target", "data-bs-target")
"""Attributes of buttons that open content: their text is its heading; most have its id as their value."""
OPENING: Final = etree.XPath(f".//*[{' or '.join(f'@{name}' for name in OPENERS)}]")
MIN_BUTTON_WORDS: Final = 4
"""Words of a button that is more than the name of an action."""
MIN_SENTENCE_WORDS: Final = 3
"""Words before a full stop: labels of navigation have none."""
SENTENCE_ENDS: Final = tuple(".!?。！？")
MOSTLY_LINKS: Final = 0.5  # share of the words that belong to links
CONTENT: Final = frozenset(("html", "body", "main", "article", *HEADINGS))
BOXES: Final = frozenset(
    """note tip warning caution important danger hint attention admonition example figure sidebar footnote footnotes
    informalexample equation alert""".split()
)
"""Classes of boxes inside a section; a heading in one begins no section."""
TITLES: Final = frozenset(("fancy_title", "page-title", "pagetitle", "doc-title", "doctitle"))
MIN_MAIN_CHARACTERS: Final = 200
BOOK_MARKS: Final = frozenset("doc-backlink doc-noteref doc-pagebreak backlink noteref pagebreak".split())
"""Marks of notes and links back to them, and numbers of printed pages."""
TYPE_IN_BOOK: Final = "{http://www.idpf.org/2007/ops}type"
READS_AS_MARKUP: Final = re.compile(r"#{1,6} |```|~~~|[|>]|-{3}|\*{3}|(?:=+|-+)$")
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


@dataclass(frozen=True, slots=True)
class HtmlContent:
    """The content of a page as clean HTML, and the page's facts, with links as written."""

    html: str
    facts: DocumentFacts
    visible: int = 0
    """Words that the page shows, by the simplest extraction; without links and labels of what is not read."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of the words among them that are not read, by the part of the page."""


def read_html(markup: str, *, is_xml: bool = False) -> HtmlContent:
    """Read a page; `is_xml`: by the rules of XML, if it obeys them. Raises `SourceUnreadable`."""
    check_size(markup)
    data = clean(markup).encode("utf-8")
    root = _xml_root(data) if is_xml else None
    try:
        if root is None and data.strip():
            root = etree.fromstring(data, _parser())
    except etree.XMLSyntaxError as error:
        raise SourceUnreadable("malformed", Message("skip_no_html")) from error
    if root is None:
        return HtmlContent("", DocumentFacts())
    if COUNT_OF_ELEMENTS(root) > MAX_TAGS:
        raise SourceUnreadable("too_large", Message("skip_elements", count=MAX_TAGS))
    facts = _facts(root)
    body = root.find("body")
    if body is None:
        return HtmlContent("", facts)
    named = data.lower()
    writer = _Writer(_opened(body) if any(name.encode() in named for name in OPENERS) else frozenset())
    try:
        writer.write(body, 0)
    except RecursionError as error:
        raise SourceUnreadable("too_large", Message("skip_nested")) from error
    content, links = writer.content()
    visible, counts = writer.left_out(body)
    return HtmlContent(content, replace(facts, links=links), visible, counts)


def _xml_root(data: bytes) -> Element | None:
    """Return the page that XML describes, with the names of HTML; None if it is no XML.

    `<title/>` is whole in XML; in HTML, all the page would be its title.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    written = NAMESPACE_OF_PAGE.sub(rb"\1", XML_DECLARATION.sub(b"", data), count=1)
    named = ENTITY.sub(_letter_of_entity, written)
    try:
        root = etree.fromstring(named, parser)
    except etree.XMLSyntaxError:
        return None
    for element in IN_NAMESPACE(root):
        element.tag = element.tag.rpartition("}")[2]
    return root


def _letter_of_entity(match: re.Match[bytes]) -> bytes:
    """Return the letter of an entity of HTML, which XML does not know; those of XML and unknown ones stay."""
    name = match[1].decode("ascii")
    if name in {"amp", "lt", "gt", "quot", "apos"}:
        return match[0]
    return html5.get(f"{name};", match[0].decode()).encode()


def check_size(markup: str) -> None:
    """Refuse tags with so many attributes that they hang the parser. Raises `SourceUnreadable` too_large."""
    if max(map(len, TAG.findall(markup)), default=0) <= MAX_ATTRIBUTES:  # nearly all pages
        return
    position = 0
    asked = 0
    while (match := TAG.search(markup, position)) is not None:
        position = match.end()
        size = match.end() - match.start()
        if size <= MAX_ATTRIBUTES or len(ATTRIBUTE.findall(QUOTED.sub("=", match.group()))) <= MAX_ATTRIBUTES:
            continue
        asked += 1
        if asked > MAX_QUESTIONS or _is_tag(markup, match.start()):
            raise SourceUnreadable("too_large", Message("skip_attributes", count=MAX_ATTRIBUTES))
        position = match.start() + 1


def _is_tag(markup: str, position: int) -> bool:
    """Return whether a tag can begin at a position: not in a script, a comment and the like. The parser decides."""
    root = etree.fromstring((markup[:position] + "<x-probe>").encode("utf-8"), _parser())
    return root is not None and root.find(".//x-probe") is not None


def _parser() -> Any:
    return etree.HTMLParser(remove_comments=True, remove_pis=True, huge_tree=True, no_network=True, encoding="utf-8")


class _Writer:
    """Walks a page once, and writes its text and the elements that Markdown supports."""

    def __init__(self, opened: frozenset[str]) -> None:
        self._opened = opened
        self._dropped: list[tuple[str, Element]] = []
        """What is not read of the page, and its name."""
        self._parts: list[str] = []
        self._main_elements: list[tuple[int, int, int, Element]] = []
        """First part, last part and number of characters of each main element, and the element."""
        self._lists: list[_Numbers] = []
        """Numbered lists around the current position."""
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
        start, end, _ = self._main_part()
        links = dict.fromkeys(address for index, address in self._links if start <= index < end)
        return "".join(self._parts[start:end]), list(links)

    def write(self, element: Element, depth: int) -> tuple[int, int]:
        """Write an element's content; return its words and those of links. Raises `SourceUnreadable` too_large."""
        if depth > MAX_DEPTH:
            raise SourceUnreadable("too_large", Message("skip_nested_deeper", count=MAX_DEPTH))
        if element.tag == "a" and 0 < len(address := element.get("href", "")) <= MAX_LINK_LENGTH:
            self._links.append((len(self._parts), address))
        words = self._text(element.text)
        linked = 0
        for child in element:
            child_words, child_linked = self._child(child, depth + 1)
            words += child_words + self._text(child.tail)
            linked += child_linked
        return words, words if element.tag == "a" and element.get("href") is not None else linked

    def _main_part(self) -> tuple[int, int, Element | None]:
        """Return the first and last part of the text of the main element, and the element; else of the whole page."""
        main = self._main_elements[0] if len(self._main_elements) == 1 else None
        if main is None or main[2] < MIN_MAIN_CHARACTERS:
            return 0, len(self._parts), None
        return main[0], main[1], main[3]

    def left_out(self, body: Element) -> tuple[int, Counter[str]]:
        """Return the words of a page, and those among them that are not read, by the part; takes the page apart.

        Links of such parts are none, and where a part has no sentence, its labels are none, either.
        """
        main = self._main_part()[2]
        counts = Counter[str]()
        _keep_visible(body, self._opened)
        total = count_words(_text_of(body))
        parts = [(part, _text_of(element), _text_of_links(element)) for part, element in self._dropped]
        if main is not None:
            for element in (main, *(element for _, element in self._dropped)):
                element.tag = COUNTED
            etree.strip_elements(body, COUNTED, with_tail=False)
            parts.append((BESIDE, _text_of(body), _text_of_links(body)))
        for part, text, links in parts:
            words = count_words(text)
            linked = count_words(links)
            unlinked = words - linked if has_sentence(text) else 0
            counts[part] += unlinked
            total -= words - unlinked
        return total, counts

    def _child(self, element: Element, depth: int) -> tuple[int, int]:
        """Write an element, unless it is invisible or navigation; return its words and those of links."""
        tag = element.tag
        if not isinstance(tag, str) or is_hidden(element, self._opened):
            return 0, 0
        if tag == "input":
            return 0, self._check_box(element)
        names = f"{element.get('class', '')} {element.get('id', '')}".lower().split()
        role = element.get("role")
        may_be_dropped = tag not in CONTENT
        is_button = tag == "button" and not _is_content_button(element)
        if tag in DROPPED or is_button or (may_be_dropped and role in NAVIGATION_ROLES):
            if tag not in UNCOUNTED:
                self._dropped.append((PARTS.get(tag, NAVIGATION_PART), element))
            return 0, 0
        if (
            role in BOOK_MARKS
            or element.get(TYPE_IN_BOOK) in BOOK_MARKS
            or (tag == "caption" and element.getparent().tag == "table")
        ):
            return 0, 0  # a caption is already written above its table
        start = len(self._parts)
        characters = self._characters
        titles = self._titles
        dropped = len(self._dropped)
        self._titles += tag in HEADINGS
        words, linked = self._element(element, depth, names)
        mostly_links = linked >= max(1, MOSTLY_LINKS * words)
        if NAVIGATION.isdisjoint(names):
            parts = (part for name in names for part in name.replace("_", "-").split("-"))
            is_navigation = mostly_links and (tag == "header" or not PERHAPS_NAVIGATION.isdisjoint(parts))
        else:
            is_label = titles == self._titles and words <= MAX_LABELS
            is_navigation = mostly_links or (is_label and not has_sentence("".join(self._parts[start:])))
        if may_be_dropped and is_navigation:
            del self._parts[start:]
            self._dropped[dropped:] = [(NAVIGATION_PART, element)]
            while self._links and self._links[-1][0] >= start:
                self._links.pop()
            self._main_elements = [main for main in self._main_elements if main[0] < start]
            return 0, 0
        if tag == "main" or role == "main":
            self._main_elements.append((start, len(self._parts), self._characters - characters, element))
        return words, linked

    def _check_box(self, box: Element) -> int:
        """Write whether the box of a task in a list is checked; return 0, as it has no words."""
        if box.get("type") == "checkbox" and next(box.iterancestors("li"), None) is not None:
            self._parts.append("[x] " if box.get("checked") is not None else "[ ] ")
        return 0

    def _element(self, element: Element, depth: int, names: list[str]) -> tuple[int, int]:
        """Write an element between its tags."""
        tag = element.tag
        if tag == "br":
            self._parts.append(f"<br>{LITERAL_MARK}" if self._preformatted else "<br>")
        if tag in {"sup", "sub"}:
            return self._script(element, depth)
        if tag == "math":
            gap = " " if element.get("display") == "block" else ""
            return self._text(f"{gap}{formula_text(element)}{gap}"), 0
        if tag == "table":
            self._begin_table(element, depth)
        if tag in LISTS:
            self._lists.append(_Numbers.of(element))
        label = self._label(element) if tag == "li" and self._lists else ""
        output_tag = self._tag_for(element, names)
        boxed = output_tag in {"td", "th"} or tag in {"aside", "figure"} or not BOXES.isdisjoint(names)
        numbers = ""
        if output_tag in {"td", "th"}:
            spans = ((name, element.get(name) or "") for name in SPANS)
            numbers = "".join(f' {name}="{value}"' for name, value in spans if SMALL_NUMBER.fullmatch(value))
        if output_tag == "ol" and self._lists[-1].following != 1:
            numbers = f' start="{self._lists[-1].following}"'
        mark = {"dt": TERM_MARK, "pre": LITERAL_MARK}.get(output_tag, "")
        self._add_tag(output_tag, f"<{output_tag}{numbers}>{mark}{label}")
        self._boxes += boxed
        self._preformatted += output_tag == "pre"
        self._nesting += output_tag != ""
        counts = self.write(element, depth)
        self._nesting -= output_tag != ""
        self._preformatted -= output_tag == "pre"
        self._boxes -= boxed
        if tag in LISTS:
            self._lists.pop()
        self._add_tag(output_tag, f"</{output_tag}>")
        if output_tag and output_tag not in INLINE and not self._preformatted:
            self._parts.append(" ")  # a cell is one line: text after a block in it must not join its last word
        return counts

    def _label(self, item: Element) -> str:
        """Take the next number of a list; return it if Markdown has no list with such ones.

        A list in which a number does not follow the one before is written as two.
        """
        numbers = self._lists[-1]
        written = item.get("value") or ""
        number = int(written) if NUMBER.fullmatch(written) else numbers.next
        is_sequel = number == numbers.following
        numbers.next = number + numbers.step
        numbers.following = number + 1
        if numbers.form:
            return f"{written_number(number, numbers.form)}. "
        if numbers.step and not is_sequel and number >= 0 and self._nesting < MAX_WRITTEN_DEPTH:
            self._parts.append(f'</ol><ol start="{number}">')
        return ""

    def _tag_for(self, element: Element, names: list[str]) -> str:
        tag = element.tag
        if tag in HEADINGS and self._boxes:
            return "p"
        if tag == "div" and not TITLES.isdisjoint(names):
            return "h1"
        if tag in PARTS_OF_TABLES:
            table = element if tag == "table" else next(element.iterancestors("table"), None)
            return "div" if table in self._layout or tag in BLOCKS else tag
        if tag == "button" and _is_in_sentence(element):
            return ""
        if tag in BLOCKS or (tag in {"ol", "li"} and self._lists and self._lists[-1].form):
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
            if not is_hidden(caption, self._opened):
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
        if not words and not self._preformatted:
            self._characters += 1
            self._parts.append(" ")
            return 0
        joined = " ".join(words)
        if self._preformatted or not (joined.isascii() and joined.isprintable()):
            text = clean(text)  # entities may be invisible characters
            words = text.split()
            joined = " ".join(words)
        if self._preformatted:
            # The library takes a line of `-` or `=` for that below a heading in code, too, and joins empty lines.
            written = text.replace("\n", f"\n{LITERAL_MARK}")
        elif not words:
            written = " "
        else:
            written = (" " if text[0].isspace() else "") + joined + (" " if text[-1].isspace() else "")
            if words[0][0] in "#`~|>-*=" and READS_AS_MARKUP.match(" ".join(words[:2])):
                written = LITERAL_MARK + written
        self._characters += len(written)
        self._parts.append(escape(written, quote=False).replace("\\", BACKSLASH_MARK))
        return len(words)


@dataclass(slots=True)
class _Numbers:
    """The numbers of a list: bullets have no step, and decimal ones no form."""

    form: str
    next: int
    step: int
    following: int
    """Number that Markdown gives the next item."""

    @classmethod
    def of(cls, element: Element) -> "_Numbers":
        if element.tag != "ol":
            return cls("", 0, 0, 1)
        style = STYLE_OF_LIST.search(element.get("style", "").lower())
        form = FORMS.get(element.get("type", ""), "") or STYLED_FORMS.get(style[1] if style else "", "")
        step = -1 if element.get("reversed") is not None else 1
        written = element.get("start") or ""
        if NUMBER.fullmatch(written):
            first = int(written)
        elif step > 0:
            first = 1
        else:
            first = sum(1 for _ in element.iterchildren("li"))
        return cls(form, first, step, max(first, 0))


def has_sentence(markup: str) -> bool:
    """Return whether a text between two tags has some words and ends with a full stop."""
    texts = (piece.rpartition(">")[2].rstrip() for piece in markup.split("<"))
    endings = (text for text in texts if text.endswith(SENTENCE_ENDS))
    return any(
        sum(1 for _ in islice(WORDS.finditer(text), MIN_SENTENCE_WORDS)) == MIN_SENTENCE_WORDS for text in endings
    )


def is_hidden(element: Element, opened: frozenset[str] = frozenset()) -> bool:
    """Return whether an element hides itself, by a style or by `hidden`, and people cannot show its text.

    They can if browsers find the text, if its id is among those that a button opens, or if it is the page of a tab.
    """
    stated = element.get("style")
    hidden = element.get("hidden")
    if stated is None and hidden is None:  # nearly all elements
        return False
    style = (stated or "").lower().replace("!important", "")
    hides = (hidden is not None and hidden.strip().lower() != "until-found") or any(map(_hides, style.split(";")))
    return hides and element.get("id") not in opened and element.get("role") != "tabpanel"


def _opened(body: Element) -> frozenset[str]:
    """Return the ids of the elements that buttons and tabs open."""
    return frozenset(
        name.removeprefix("#")
        for opener in OPENING(body)
        if opener.tag in {"button", "summary"} or opener.get("role") in {"button", "tab"} or opener.get("aria-expanded")
        for attribute in OPENERS
        for name in (opener.get(attribute) or "").split()
    )


def _keep_visible(body: Element, opened: frozenset[str]) -> None:
    """Remove what a page does not show, and put a space around each element that ends a word."""
    etree.strip_elements(body, *UNCOUNTED, with_tail=False)
    for element in PERHAPS_HIDDEN(body):
        if is_hidden(element, opened):
            element.tag = COUNTED
    etree.strip_elements(body, COUNTED, with_tail=False)
    for element in body.iter(*BETWEEN_WORDS):
        text = element.text or ""
        if not text[:1].isspace():
            element.text = f" {text}"
        tail = element.tail or ""
        if not tail[:1].isspace():
            element.tail = f" {tail}"


def _text_of(element: Element) -> str:
    text: str = etree.tostring(element, method="text", encoding="unicode", with_tail=False)
    return text if text.isascii() else UNSEEN.sub("", text)  # the markup is clean, but entities may be invisible


def _text_of_links(element: Element) -> str:
    return " ".join(_text_of(link) for link in element.iter("a") if link.get("href") is not None)


def _hides(declaration: str) -> bool:
    name, _, value = (part.strip() for part in declaration.partition(":"))
    if name in {"opacity", "font-size"}:
        number = value.rstrip("%abcdefghijklmnopqrstuvwxyz ")
        return number != "" and not number.strip("0.")
    return (name, value) in {("display", "none"), ("visibility", "hidden")}


def _is_content_button(button: Element) -> bool:
    """Return whether the text of a button is content: it opens the text below it, or is a part of a sentence.

    A button with more words than the name of an action is content, too.
    """
    if next(button.iterancestors(*HEADINGS, "dt", "summary"), None) is not None or button.get("role") == "tab":
        return True
    words = " ".join(button.itertext()).split()
    is_opener = any(button.get(name) is not None for name in OPENERS)
    return is_opener or len(words) >= MIN_BUTTON_WORDS or _is_in_sentence(button)


def _is_in_sentence(button: Element) -> bool:
    """Return whether a button follows words and before others, or before the end of their sentence."""
    element = button.getprevious()
    before = (element.tail if element is not None else button.getparent().text) or ""
    return WORDS.search(before) is not None and (button.tail or "").strip() != ""


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
