"""What a style puts out of sight, with all that is inside: a place for words that only machines are meant to see."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from providers.reading.html.styles import Length, color_of, length_of

NUMBER: Final = r"(?:\d{1,9}+(?:\.\d{0,9}+)?+|\.\d{1,9}+)"
SIZE: Final = re.compile(rf"(-?{NUMBER})([a-z]{{0,9}}+%?)")
RECTANGLE: Final = re.compile(r"rect\(\s{0,9}+(?:0|1px)[\s,p]")
NO_SHAPE: Final = re.compile(r"circle\(\s{0,9}+0(?![.\d])|polygon\(\s{0,9}+0\S{0,20}\s{1,9}+0[^1-9]{0,200}\)")
INSET: Final = re.compile(r"inset\(([^)]{0,200}+)\)")
SHRUNK: Final = re.compile(
    r"scale[xy3d]{0,2}+\(\s{0,9}+(?:0{0,9}+(?:\.0\d{0,9}+)?+\s{0,9}+[,)]|[\d.]{1,9}+e-)|perspective\(0"
    r"|matrix\((?:\s{0,9}+0\s{0,9}+,){4}|rotate[xy]\(\s{0,9}+-?(?:90|270)deg"
    r"|translate\w{0,2}+\([^)]{0,99}?-\d{4}|translate(?:x|3d)?\(\s{0,9}+(?:9\d{3}|\d{5})"
)
FAINTEST: Final = 0.05
FAR: Final = {"px": 900.0, "pt": 700.0, "em": 90.0, "rem": 90.0, "vw": 100.0, "vh": 100.0, "%": 100.0}
"""How far something is moved to the left or up to be out of sight."""
FAR_RIGHT: Final = 9_000.0
"""Pixels. Nothing that is far down is out of sight: pages are long."""
OFFSETS: Final = ("left", "right", "top", "bottom", "inset", "inset-inline", "inset-block", "inset-inline-start",
                  "inset-inline-end", "inset-block-start", "inset-block-end", "text-indent", "translate")  # fmt: skip
SIDEWAYS: Final = ("left", "right", "inset-inline-start", "inset-inline-end", "text-indent", "translate",
                   "margin-left", "margin-inline-start")  # fmt: skip
MARGINS: Final = ("margin-left", "margin-top", "margin-right", "margin-inline-start", "margin-block-start",
                  "margin-inline-end", "margin-inline")  # fmt: skip
MASKS: Final = ("mask", "mask-image", "-webkit-mask", "-webkit-mask-image")
HEIGHTS: Final = ("height", "max-height", "block-size", "max-block-size")
WIDTHS: Final = ("width", "max-width", "inline-size", "max-inline-size")
AWAY: Final = frozenset(
    (*OFFSETS, *MARGINS, *HEIGHTS, *WIDTHS, *MASKS, "display", "content-visibility", "filter", "zoom", "margin",
     "clip", "clip-path", "-webkit-clip-path", "transform", "scale", "overflow", "overflow-x", "overflow-y", "flex",
     "flex-grow", "min-height", "min-width", "padding", "padding-left", "padding-top", "padding-right",
     "padding-bottom")
)  # fmt: skip
"""The properties that decide."""
MOST_PARTS: Final = 4
"""Of an offset or a margin: one for each side."""


def puts_away(stated: Mapping[str, str]) -> bool:
    """Whether a reader sees nothing of what is given these values by property, whatever the parts inside say."""
    return (
        any(hides(stated[name]) for names, hides in HIDING for name in names if name in stated)
        or _is_moved_by_margins(stated)
        or _has_no_room(stated)
    )


def _is_away(value: str) -> bool:
    return any(map(_is_far, _lengths(value)))


def _is_far(length: Length) -> bool:
    return -length.number >= FAR.get(length.unit, float("inf"))


def _is_far_right(value: str) -> bool:
    return any(length.unit == "px" and length.number >= FAR_RIGHT for length in _lengths(value)[:1])


def _is_clear(mask: str) -> bool:
    color = color_of(mask) if "gradient(" in mask and "url(" not in mask else None
    return color is not None and color.opacity <= FAINTEST


def _is_tiny(zoom: str) -> bool:
    """Whether a zoom leaves next to nothing; 0 counts as no zoom."""
    length = length_of(zoom)
    return length is not None and 0 < length.number <= FAINTEST * (100 if length.unit == "%" else 1)


def _is_nothing(scale: str) -> bool:
    length = length_of(scale)
    return length is not None and length.number == 0


def _is_clipped(value: str) -> bool:
    if RECTANGLE.search(value) or NO_SHAPE.search(value):
        return True
    inset = INSET.search(value)
    numbers = SIZE.findall(inset[1].partition("round")[0]) if inset else []
    sides = [float(number) if unit == "%" else 0.0 for number, unit in numbers]
    if not 1 <= len(sides) <= MOST_PARTS:
        return False
    top, right, bottom, left = [*sides, sides[1]] if len(sides) == 3 else (sides * 4)[:4]
    return top + bottom >= 100 or left + right >= 100


HIDING: Final[tuple[tuple[tuple[str, ...], Callable[[str], object]], ...]] = (
    (("display",), "none".__eq__),
    (("content-visibility",), "hidden".__eq__),
    (("filter",), re.compile(r"opacity\(0(?!\.)").search),
    (("zoom",), _is_tiny),
    (("transform",), SHRUNK.search),
    (("scale",), _is_nothing),
    (("clip", "clip-path", "-webkit-clip-path"), _is_clipped),
    (MASKS, _is_clear),
    (OFFSETS, _is_away),
    (SIDEWAYS, _is_far_right),
)
"""Properties, and how one value of them hides all by itself."""


def _lengths(value: str | None) -> list[Length]:
    if not value:
        return []
    parts = [value] if "(" in value else value.split(None, MOST_PARTS)[:MOST_PARTS]
    return [length for part in parts if (length := length_of(part))]


def _is_moved_by_margins(stated: Mapping[str, str]) -> bool:
    """Whether margins move something away; a lower one moves only what follows, a wide padding takes a move back."""
    sides = [side for place, side in enumerate(_lengths(stated.get("margin"))) if place != 2]
    sides += [length for name in MARGINS for length in _lengths(stated.get(name))]
    names = ("padding", "padding-left", "padding-top", "padding-right")
    return any(_is_far(side) and side.unit not in {"%", "vw", "vh"} for side in sides) and not any(
        length.number >= FAR["px"] for name in names for length in _lengths(stated.get(name))
    )


def _has_no_room(stated: Mapping[str, str]) -> bool:
    beyond = {stated.get(name, "").split(" ")[0] for name in ("overflow", "overflow-x", "overflow-y")}
    if beyond.isdisjoint({"hidden", "clip", "auto", "scroll"}):
        return False
    indent = length_of(stated.get("text-indent"))
    if indent is not None and indent.unit == "%" and indent.number >= 100:
        return True
    # What grows, or makes room by its padding, is seen.
    paddings = [_lengths(stated.get(name)) for name in ("padding", "padding-top", "padding-bottom")]
    if {"flex", "flex-grow"} & stated.keys() or any(
        length.unit == "%" and length.number >= 10 for padding in paddings for length in padding
    ):
        return False
    return any(
        size is not None and size.unit != "%" and 0 <= size.number <= (1 if size.unit in {"", "px"} else 0)
        for names, least in ((HEIGHTS, "min-height"), (WIDTHS, "min-width"))
        if least not in stated
        for size in map(length_of, map(stated.get, names))
    )
