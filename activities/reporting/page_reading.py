"""What the HTML form of a report shows, read back for the audit; whatever is no such page shows nothing."""

from collections.abc import Iterable
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

CLASS: Final = "contains(concat(' ', normalize-space(@class), ' '), ' {} ')"
"""The test of XPath for a class of an element."""
ASIDE: Final = f"ancestor::*[{CLASS.format('cite')} or {CLASS.format('sign')}]"
"""Inside of what is no part of a sentence."""


def squeezed(texts: Iterable[str]) -> str:
    """Return texts without white space."""
    return "".join("".join(text.split()) for text in texts)


def read_page(html: str) -> dict[str, object]:
    """Return the text, passages, verdicts, links and other parts of a page, without white space."""
    parser = etree.HTMLParser(huge_tree=True)
    # The parser ends at a NUL, which browsers ignore, and gives nothing for a page without an element.
    find = etree.HTML("<br>" + html.replace("\0", ""), parser).xpath
    if parser.error_log.filter_from_fatals():  # too deep to be read to its end
        return read_page("")
    verdicts = {
        each.get("id", ""): ",".join(name[2:] for name in each.get("class").split() if name.startswith("v-"))
        for each in find(f"//*[{CLASS.format('check')}]")
    }
    return {
        "text": squeezed(find(f"//article//text()[not({ASIDE})]")),
        "passages": {squeezed(each.itertext()) for each in find("//mark")},
        "verdicts": verdicts,
        "titles": [squeezed(each.itertext()) for each in find(f"//*[{CLASS.format('sources')}]//h3")],
        "head": squeezed(find("//header//text() | //title//text()")),
        "open": squeezed(find(f"//section[{CLASS.format('open')}]//text()")),
        "sources": squeezed(find("//*[@id='sources']//text()[not(ancestor::*[@class='context'])]")),
        "outcome": squeezed(find(f"//*[{CLASS.format('outcome')}]//text()")),
        "method": squeezed(find("//dl//text()")).replace(":", ""),
        "links": [link for link in find("//@href") if not link.startswith("#")],
    }
