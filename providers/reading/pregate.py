"""A linear look at HTML before any parser sees it: what would make a parser hang is refused (S-class inputs).

Figures: reliability-and-security 2.2.
"""

import re
from typing import Final

from providers.errors import SourceUnreadable

HTML_BYTES: Final = 3_000_000
ATTRIBUTE_LIMIT: Final = 1_000
TAG_LIMIT: Final = 200_000
NESTING_LIMIT: Final = 512

TAG: Final = re.compile(r"<(/?)([a-zA-Z][^\s/>]{0,60})([^<>]*)")
QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
ATTRIBUTE: Final = re.compile(r"\s[^\s=]")
OPAQUE: Final = re.compile(r"<(script|style|svg|textarea|template)[\s>]|<!--", re.IGNORECASE)
"""Where markup stops meaning elements that end up in the text."""
VOID: Final = frozenset("area base br col embed hr img input link meta param source track wbr".split())
SELF_CLOSING: Final = frozenset("p li dt dd tr td th thead tbody tfoot option optgroup colgroup rt rp".split())
"""Elements whose end tag may be left out: a missing one does not nest."""


def without_opaque(markup: str) -> str:
    """The markup without comments and the insides of scripts, styles and drawings; one pass, no backtracking."""
    lowered = markup.lower() if len(markup.lower()) == len(markup) else markup
    kept: list[str] = []
    here = 0
    while found := OPAQUE.search(lowered, here):
        name = found.group(1)
        end = lowered.find(f"</{name}" if name else "-->", found.end())
        kept.append(markup[here : found.end()])
        if end < 0:
            return "".join(kept)
        here = end
    kept.append(markup[here:])
    return "".join(kept)


def check_html(markup: str) -> None:
    """Refuse markup that parsers cannot take. Raises `SourceUnreadable` too_large."""
    if len(markup) > HTML_BYTES:
        raise SourceUnreadable("too_large", f"the page is larger than {HTML_BYTES} characters")
    tags = depth = 0
    open_counts: dict[str, int] = {}
    for found in TAG.finditer(without_opaque(markup)):
        tags += 1
        if tags > TAG_LIMIT:
            raise SourceUnreadable("too_large", f"the page has more than {TAG_LIMIT} tags")
        closing, name, rest = found.groups()
        if len(rest) > ATTRIBUTE_LIMIT and len(ATTRIBUTE.findall(QUOTED.sub("", rest))) > ATTRIBUTE_LIMIT:
            raise SourceUnreadable("too_large", f"a tag has more than {ATTRIBUTE_LIMIT} attributes")
        name = name.lower()
        if name in VOID or name in SELF_CLOSING or rest.endswith("/"):
            continue
        if not closing:
            open_counts[name] = open_counts.get(name, 0) + 1
            depth += 1
            if depth > NESTING_LIMIT:
                raise SourceUnreadable("too_large", f"elements are nested deeper than {NESTING_LIMIT}")
        elif open_counts.get(name, 0):
            open_counts[name] -= 1
            depth -= 1
