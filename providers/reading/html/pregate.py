"""A linear look at HTML before any parser sees it: what would make a parser hang is refused.

Figures: reliability-and-security 2.2. Nesting is counted while the tree is walked: the parser in use does not slow
down on it, and elements whose end tags are left out would make any estimate wrong.
"""

import re
from typing import Final

from providers.errors import SourceUnreadable

HTML_CHARACTERS: Final = 3_000_000
ATTRIBUTE_LIMIT: Final = 1_000
TAG_LIMIT: Final = 200_000
NESTING_LIMIT: Final = 512

TAG_START: Final = re.compile(r"<[a-zA-Z]")
TAG: Final = re.compile(r"<[a-zA-Z](?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+")
QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
ATTRIBUTE: Final = re.compile(r"[\s/=][^\s/=]")


def check_html(markup: str) -> None:
    """Refuse markup that parsers cannot take. Raises `SourceUnreadable` too_large."""
    if len(markup) > HTML_CHARACTERS:
        raise SourceUnreadable("too_large", f"the page is larger than {HTML_CHARACTERS} characters")
    if markup.count("<") > TAG_LIMIT and len(TAG_START.findall(markup)) > TAG_LIMIT:
        raise SourceUnreadable("too_large", f"the page has more than {TAG_LIMIT} tags")
    for found in TAG.finditer(markup):
        if found.end() - found.start() > ATTRIBUTE_LIMIT and _attributes(found.group()) > ATTRIBUTE_LIMIT:
            raise SourceUnreadable("too_large", f"a tag has more than {ATTRIBUTE_LIMIT} attributes")


def _attributes(tag: str) -> int:
    """At least the number of attributes of a tag; values are not looked into."""
    return len(ATTRIBUTE.findall(QUOTED.sub("=", tag)))
