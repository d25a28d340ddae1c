"""Pictures of a run's calls under *Method* of `report.html`, and the page without them, which an audit compares.

A report is written before its run is over, and the histories that a picture is drawn from are on the server: a picture
is added to a copy that a person takes, and can be taken out of it again to the byte.
"""

import re
from typing import Final

METHOD: Final = '<dl class="method">'
"""The facts under *Method* begin there, and the pictures stand before them."""
OPENING: Final = '<figure class="run" lang="en">'
"""Names of pools, roles and calls are not translated."""
CLOSING: Final = "</figure>"
ELEMENTS: Final = frozenset("figure figcaption svg defs pattern rect g title text line p details summary ol li".split())
ATTRIBUTES: Final = frozenset(
    "class id width height x y x1 x2 y1 y2 fill stroke viewBox role".split()
    + "lang font-size aria-label patternUnits patternTransform".split()
)
"""Attributes of a picture: none of them leads anywhere, loads anything or runs anything."""
CLASSES: Final = frozenset("run calls pool wait hatch tick time quiet done open repeated failed".split())
TAG: Final = re.compile(r'/?([a-z]+)((?: [A-Za-z0-9-]+="[^"<>]*")*)>')
ATTRIBUTE: Final = re.compile(r' ([A-Za-z0-9-]+)="([^"<>]*)"')
OWN_PATTERN: Final = re.compile(r"url\(#[a-z0-9-]+\)")
MAX_PICTURES: Final = 1_000


def add_pictures(page: str, pictures: list[str]) -> str:
    """Return a `report.html` with pictures under *Method*; as it is, if it has no such part."""
    before, method, after = page.partition(METHOD)
    if not method:
        return page
    figures = "".join(f"{OPENING}{picture}{CLOSING}" for picture in pictures)
    return f"{before}{figures}{method}{after}"


def remove_pictures(page: str) -> tuple[str, int]:
    """Return the page without the pictures under *Method*, and their number.

    What is not a drawing of shapes and words stays, and so does a picture anywhere else: an audit then finds it.
    """
    before, method, after = page.partition(METHOD)
    count = 0
    while before.endswith(CLOSING) and count < MAX_PICTURES:
        start = before.rfind(OPENING)
        if start < 0 or not is_drawing(before[start:]):
            break
        before = before[:start]
        count += 1
    return f"{before}{method}{after}", count


def is_drawing(figure: str) -> bool:
    """Return whether a figure has nothing but the shapes and words of a picture."""
    _, *parts = figure.split("<")
    for part in parts:
        tag = TAG.match(part)
        if tag is None or tag[1] not in ELEMENTS:
            return False
        for name, value in ATTRIBUTE.findall(tag[2]):
            if name not in ATTRIBUTES or (name == "class" and value not in CLASSES):
                return False
            if "url" in value.lower() and name != "aria-label" and not OWN_PATTERN.fullmatch(value):
                return False
    return True
