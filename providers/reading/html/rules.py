"""Which elements of a page are its content: pure rules on names, classes and styles."""

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

Element: TypeAlias = Any
"""An element of lxml, which has no type stubs."""

DROPPED: Final = frozenset(
    """script style noscript template svg iframe object embed applet canvas audio video map nav footer button input
    select textarea datalist dialog menu head title meta link base""".split()
)
BLOCKS: Final = frozenset(
    """address article aside blockquote body center dd details dir div dl dt fieldset figcaption figure footer form
    frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav ol p pre section summary table tbody td tfoot
    th thead tr ul caption search xmp listing plaintext""".split()
)
PROSE: Final = frozenset(
    "article blockquote dd dt figcaption h1 h2 h3 h4 h5 h6 li main p pre section table td th".split()
)
"""What is seen though `aria-hidden`; other such parts are icons, formulas written twice, or dialogs not yet open."""
HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
DROPPED_ROLES: Final = frozenset("navigation banner contentinfo search menu menubar dialog alertdialog".split())
NAVIGATION: Final = re.compile(
    r"(?:^|\s)(?:navheader|navfooter|navbar|navigation|breadcrumbs?|fancy_toc|toc|table-of-contents|skip-?links?"
    r"|headerlink|anchorjs-link|mw-editsection|mw-jump-link|printfooter|catlinks|navbox|cookie-?(?:banner|notice)"
    r"|sphinxsidebar|toctree-wrapper|edit-this-page|pagination)(?=\s|$)",
    re.IGNORECASE,
)
"""Class names and ids that mean navigation wherever they are used."""
PERHAPS_NAVIGATION: Final = re.compile(
    r"(?:^|[\s_-])(?:nav|menu|sidebar|sidenav|footer|header|related|pager|share|social|masthead|nosearch)(?=$|[\s_-])",
    re.IGNORECASE,
)
"""Names that mean navigation if what they name is mostly links."""
NAVIGATION_LINK_SHARE: Final = 0.5
NAVIGATION_CHARACTERS: Final = 100_000
MOST_PARTS: Final = 10_000
LONGEST_NAME: Final = 1_000
"""Characters of a heading or a term."""
HIDDEN_CLASS: Final = re.compile(
    r"(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text|visuallyhidden|hidden)(?=\s|$)", re.IGNORECASE
)
ADMONITION: Final = re.compile(
    r"(?:^|\s)(?:note|tip|warning|caution|important|danger|hint|attention|admonition|example|figure|sidebar|footnotes?"
    r"|informalexample|equation|alert)(?=\s|$)",
    re.IGNORECASE,
)
"""Boxes inside a section: a heading in one is its label, it does not begin a section."""
TITLE_CLASS: Final = re.compile(r"(?:^|\s)(?:fancy_title|page-?title|doc-?title)(?=\s|$)", re.IGNORECASE)
FOOTNOTE_MARK: Final = re.compile(r"^[\[(]?(?:\d{1,3}|[a-z*†‡§])[\])]?$")
NAMES: Final = (*HEADINGS, "dt", "summary")
"""Elements that name what follows them; in some, all words are those of a button that opens it."""
ORDINAL: Final = re.compile(r"^(?:st|nd|rd|th|tm|sm|®|™|er|re|e|o|a|ª|º)$", re.IGNORECASE)


SURELY, PERHAPS, HIDDEN, BOXED, TITLED = 1, 2, 4, 8, 16
"""What the name of a class or an id says about its element: flags."""
MEANINGS: Final = (
    (NAVIGATION, SURELY), (PERHAPS_NAVIGATION, PERHAPS), (HIDDEN_CLASS, HIDDEN), (ADMONITION, BOXED),
    (TITLE_CLASS, TITLED),
)  # fmt: skip
LONGEST_KEPT_NAMES: Final = 200
PARTS_OF_CONTENT: Final = frozenset({"html", "body", "main", "article"})


def meaning_of(names: str | None) -> int:
    """What class names or an id mean, as flags; the same few names come again and again."""
    if not names:
        return 0
    return _kept_meaning(names) if len(names) <= LONGEST_KEPT_NAMES else _meaning(names)


def _meaning(names: str) -> int:
    return sum(flag for pattern, flag in MEANINGS if pattern.search(names))


_kept_meaning = lru_cache(maxsize=4_096)(_meaning)


def names_of(element: Element) -> str:
    """Class names and id, separated by spaces."""
    return f"{element.get('class', '')} {element.get('id', '')}".strip()


def is_titled(element: Element) -> bool:
    """Whether the element is named as the title of the page."""
    return bool((meaning_of(element.get("class")) | meaning_of(element.get("id"))) & TITLED)


def is_hidden(element: Element) -> bool:
    """Whether a reader of the page would not see the element."""
    return _looks_of(element).hidden


class _Looks(NamedTuple):
    """What the attributes of an element say."""

    hidden: bool
    meaning: int
    """Of class and id, as flags."""
    role: str | None


PLAIN: Final = _Looks(hidden=False, meaning=0, role=None)


def _looks_of(element: Element) -> _Looks:
    """One pass over the attributes: asking for each by name costs most of the time that a page takes."""
    attributes = element.items()
    if not attributes:
        return PLAIN
    hidden, meaning, role = False, 0, None
    for name, value in attributes:
        if name == "class":
            of_class = meaning_of(value)
            hidden, meaning = hidden or bool(of_class & HIDDEN), meaning | of_class
        elif name == "id":
            meaning |= meaning_of(value)
        elif name in {"hidden", "popover"} or (name == "aria-hidden" and value == "true" and element.tag not in PROSE):
            hidden = True
        elif name == "role":
            role = value
    return _Looks(hidden, meaning, role)


def beginning_of(element: Element, most: int = NAVIGATION_CHARACTERS) -> str | None:
    """All words of an element, None if there are more than so many characters; never looks at all of a large one.

    Elements can stand in one another: whatever is asked of each of them must not take in all of its content.
    """
    parts, size = [], 0
    for part in element.itertext():
        parts.append(part)
        size += len(part)
        if size > most or len(parts) > MOST_PARTS:
            return None
    return "".join(parts)


def link_share(element: Element) -> float:
    """Share of an element's words that are link text; 0 for more words than any navigation has."""
    words = beginning_of(element)
    if words is None:
        return 0.0
    total = len(words.split())
    linked = sum(len("".join(link.itertext()).split()) for link in element.iter("a"))
    return linked / total if total else 0.0


def _is_navigation(element: Element, tag: str, looks: _Looks) -> bool:
    """Whether the element helps to get around rather than says something."""
    if tag in PARTS_OF_CONTENT:
        return False
    if looks.role in DROPPED_ROLES:
        return True
    if tag == "header" and element.find(".//h1") is None:
        return True
    if tag in HEADINGS:
        return False
    if looks.meaning & SURELY:
        return True
    return bool(looks.meaning & PERHAPS) and link_share(element) >= NAVIGATION_LINK_SHARE


def _names_something(button: Element) -> bool:
    """Whether all words of a heading or a term stand in a button, as in lists of questions that open on a click."""
    name = next(button.iterancestors(*NAMES), None)
    words, all_words = beginning_of(button, LONGEST_NAME), None if name is None else beginning_of(name, LONGEST_NAME)
    return words is not None and all_words is not None and _letters(words) == _letters(all_words)


def _letters(words: str) -> int:
    return sum(map(str.isalnum, words))


def is_dropped(element: Element, tag: str) -> bool:
    """Whether the element is left out of the text."""
    if tag in DROPPED and not (tag == "button" and _names_something(element)):
        return True
    looks = _looks_of(element)
    if looks is PLAIN and tag != "header":
        return False
    return looks.hidden or _is_navigation(element, tag, looks)


def script_mark(tag: str, words: str, *, linked: bool) -> str:
    """A superscript or subscript as text: `^32`, `_i`; a footnote mark goes, an ordinal stays as it is."""
    stripped = words.strip()
    if not stripped or (linked and FOOTNOTE_MARK.match(stripped)):
        return ""
    if tag == "sub":
        return "_" + stripped
    return stripped if ORDINAL.match(stripped) else "^" + stripped
