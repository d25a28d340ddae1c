"""Words in the colour of what they stand on, as the attributes of a page itself say: they are marked as hidden."""

from itertools import islice
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.html_hiding import alike, ground_of
from providers.reading.html_rules import Element
from providers.reading.html_styles import Color, color_of, declarations_of

COLORED: Final = etree.XPath("descendant-or-self::*[@style or @color]")
"""Elements whose attributes may say a colour: few, so that looking for them in Python would cost more than they do."""
MOST_AROUND: Final = 8
"""Elements around one that are asked for their ground."""
MOST_INSIDE: Final = 50
"""Elements inside one that are asked for colours of their own."""


def mark_unreadable(root: Element) -> None:
    """Give elements that have the colour of the nearest ground around them the attribute `hidden`.

    Only where nothing between the two has a name: what style sheets elsewhere do with that is not known.
    """
    for element in COLORED(root):
        color = _letters(element)
        ground = None if color is None else _ground_around(element)
        if color is not None and ground is not None and alike(color, ground) and not _holds_other_colors(element):
            element.set("hidden", "")


def _letters(element: Element) -> Color | None:
    stated = declarations_of(element.get("style") or "")
    value = stated.get("-webkit-text-fill-color") or stated.get("color") or (element.get("color") or "").lower()
    return color_of(value.strip()) if value else None


def _ground_around(element: Element) -> Color | None:
    """The plain colour behind an element; null where it is not certain."""
    for _ in range(MOST_AROUND):
        if element is None or element.get("class") or element.get("id") or element.get("background"):
            return None
        stated = declarations_of(element.get("style") or "")
        if any(name.startswith("background") for name in stated):
            return ground_of(stated)
        if any(name in stated for name in ("text-shadow", "position", "mix-blend-mode")):
            return None
        if value := element.get("bgcolor"):
            return color_of(value.strip().lower())
        element = element.getparent()
    return None


def _holds_other_colors(element: Element) -> bool:
    return any(
        inner.get("color") or inner.get("bgcolor") or "color" in (inner.get("style") or "")
        for inner in islice(element.iterdescendants(), MOST_INSIDE)
    )
