"""What another library makes of a page, where our own reading finds little: trafilatura, within narrow limits.

It sees the tree without what readers do not see, and what it returns is written by the same rules as every page, so
that the stored text stays canonical. Its known ways to take minutes are all matters of size: it is not asked about
pages beyond the limits here, and the child that runs it is killed at its own limit.
"""

import re
from dataclasses import replace
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from contracts.vocabulary import PageAccess
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction
from providers.reading.cleaning import clean, one_line
from providers.reading.html.metadata import PageMetadata
from providers.reading.html.page import extract_html
from providers.reading.html.rules import Element, is_hidden
from providers.reading.page_dates import iso_date
from providers.reading.page_signals import POINTERS, prose_of

LITTLE_PROSE: Final = 200
BOILERPLATE_LINK_SHARE: Final = 0.6
FEW_LINKS: Final = 0.3
WORTH_IT: Final = 1.5
"""How many times more prose another reading must find to be believed."""
SENTENCE_END: Final = re.compile(r"(?<![\d\s])[.!?…](?=[\s\"'”’»)\]]|$)|[。！？]")
"""A point after a digit ends a number of a chapter as often as a sentence."""
SHORTEST_SENTENCE: Final = 30
LONGEST_SENTENCE: Final = 2_000
WITHOUT_WORDS: Final = frozenset(("script", "style", "noscript", "template", "svg", "title"))
MOST_CHARACTERS: Final = 500_000
MOST_ELEMENTS: Final = 5_000
"""At most 1.5 s for the worst of the pages that were tried; the time grows with the square of the cells of a table."""

HINT: Final = re.compile(
    r"(?:^|[\s_.:-])(?:(?:post|entry|article|pub|publish(?:ed)?|creat(?:ed|ion))[_-]?(?:date|on|time)|date|datepublished"
    r"|published|posted|byline|author)(?=$|[\s_-])",
    re.IGNORECASE,
)
"""Marks that say the author or date of a page: without one, the other library is not asked for them."""
OTHER_READING: Final = "the text is the reading of trafilatura: our own found little beside links"


def with_second_opinion(found: Extraction, root: Element, markup: str, url: str) -> Extraction:
    """The extraction with what it lacks: facts that the page seems to state somewhere, and a better text."""
    text_wanted = found.access is PageAccess.OPEN and wants_text(found) and _promises_more(root, found)
    facts_wanted = wants_facts(root, found)
    # Small enough for the other library?
    if not (text_wanted or facts_wanted) or len(markup) > MOST_CHARACTERS:
        return found
    if any(number >= MOST_ELEMENTS for number, _ in enumerate(root.iter())):
        return found
    found = complete(found, _facts_of(root, url)) if facts_wanted else found
    theirs = _other_text(root, found) if text_wanted else None
    if theirs is None or not is_better(found, theirs):
        return found
    return replace(theirs, warnings=[*found.warnings, OTHER_READING])


def wants_text(found: Extraction) -> bool:
    """Whether our own text is so little, or so much of it links, that another reading may find more."""
    return prose_of(found) < LITTLE_PROSE or _link_share(found) >= BOILERPLATE_LINK_SHARE


def _promises_more(root: Element, found: Extraction) -> bool:
    """Whether a page holds clearly more sentences than we found, even if in what is no content."""
    parts = []
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag not in WITHOUT_WORDS and element.text:
            parts.append(element.text)
        if element.tail:
            parts.append(element.tail)
    return _in_sentences(" ".join(parts)) >= sentences_of(found) + LITTLE_PROSE


def wants_facts(root: Element, found: Extraction) -> bool:
    """Whether something is missing that the page seems to say somewhere."""
    if found.published_at is not None and found.authors:
        return False
    return any(HINT.search(hint) is not None for hint in _hints(root))


def _hints(root: Element) -> set[str]:
    """Names that a page gives its parts, each once."""
    found = {element.get("name") for element in root.iter("meta")}
    for element in root.iter():
        found.add(element.get("class"))
        found.add(element.get("itemprop"))
        if element.get("rel") == "author":
            found.add("author")
    return {hint for hint in found if hint}


def is_better(ours: Extraction, theirs: Extraction) -> bool:
    """Whether the other text replaces ours: clearly more in sentences; no list of links, however long it is."""
    mine, other = sentences_of(ours), sentences_of(theirs)
    if prose_of(ours) < LITTLE_PROSE:
        return other >= LITTLE_PROSE and other >= WORTH_IT * mine
    return other >= LITTLE_PROSE and other >= mine and _link_share(theirs) <= FEW_LINKS


def sentences_of(found: Extraction) -> int:
    """Characters of a text that are part of sentences, outside of blocks that point elsewhere."""
    return sum(
        _in_sentences(found.text[block.start : block.end])
        for block in found.blocks
        if block.kind is not BlockKind.HEADING and block.link_share < POINTERS
    )


def _other_text(root: Element, ours: Extraction) -> Extraction | None:
    """The canonical text of what the other library takes for the content; None if it finds none."""
    from trafilatura import extract  # noqa: PLC0415  a third of a second, for the few pages that need it

    markup = extract(_show(root), output_format="html", include_comments=False, include_links=True)
    if not markup:
        return None
    try:
        theirs = extract_html(markup)
    except SourceUnreadable:
        return None
    return replace(ours, text=theirs.text, blocks=theirs.blocks, cut=theirs.cut)


def _facts_of(root: Element, url: str) -> PageMetadata:
    """What the other library knows of title, authors, publisher and date."""
    from trafilatura import extract_metadata  # noqa: PLC0415  see above

    known = extract_metadata(_show(root), default_url=url, extensive=False)
    names = (one_line(clean(name)) for name in (known.author or "").split(";"))
    return PageMetadata(
        title=one_line(clean(known.title or ""))[:300],
        authors=[name for name in names if name and len(name) <= 100 and "://" not in name][:20],
        publisher=one_line(clean(known.sitename or ""))[:300] or None,
        published_at=iso_date(known.date or ""),
    )


def complete(found: Extraction, facts: PageMetadata) -> Extraction:
    """The extraction with what it lacked; nothing that the page states itself is replaced."""
    names = ("title", "authors", "publisher", "published_at")
    return replace(found, **{name: getattr(found, name) or getattr(facts, name) for name in names})


def _link_share(found: Extraction) -> float:
    blocks = [block for block in found.blocks if block.kind is not BlockKind.HEADING]
    total = sum(block.end - block.start for block in blocks)
    return sum((block.end - block.start) * block.link_share for block in blocks) / total if total else 0.0


def _in_sentences(text: str) -> int:
    """Characters in what is neither too short nor too long for a sentence, and ends like one; linear."""
    total, start = 0, 0
    for found in SENTENCE_END.finditer(text):
        size = found.end() - start
        total += size if SHORTEST_SENTENCE <= size <= LONGEST_SENTENCE else 0
        start = found.end()
    return total


def _show(root: Element) -> str:
    """The page without what readers do not see, which is emptied for good."""
    for element in [element for element in root.iter() if is_hidden(element)]:
        element.clear(keep_tail=True)
    return str(etree.tostring(root, encoding="unicode", method="html"))
