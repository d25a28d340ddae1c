"""What a style puts out of sight, with all that is inside: a place for words that only machines are meant to see."""

import re
from collections.abc import Mapping
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
    zoom = length_of(stated.get("zoom"))
    filtered = stated.get("filter", "")
    return (
        stated.get("display") == "none"
        or stated.get("content-visibility") == "hidden"
        or ("opacity(0" in filtered and "opacity(0." not in filtered)
        # Nothing at all counts as no zoom.
        or (zoom is not None and 0 < zoom.number <= FAINTEST * (100 if zoom.unit == "%" else 1))
        or any(_masks(stated.get(name)) for name in MASKS)
        or _is_away(stated)
        or _has_no_room(stated)
    )


def _masks(value: str | None) -> bool:
    color = color_of(value) if value and "gradient(" in value and "url(" not in value else None
    return color is not None and color.opacity <= FAINTEST


def _is_away(stated: Mapping[str, str]) -> bool:
    if any(_is_far(length) for name in OFFSETS for length in _lengths(stated.get(name))):
        return True
    if any(_is_far_right(length) for name in SIDEWAYS for length in _lengths(stated.get(name))[:1]):
        return True
    if not _has_wide_padding(stated) and any(
        _is_far(length) and length.unit not in {"%", "vw", "vh"} for length in _margins(stated)
    ):
        return True
    scale = length_of(stated.get("scale"))
    return (
        any(_is_clipped(stated.get(name, "")) for name in ("clip", "clip-path", "-webkit-clip-path"))
        or SHRUNK.search(stated.get("transform", "")) is not None
        or (scale is not None and scale.number == 0)
    )


def _lengths(value: str | None) -> list[Length]:
    if not value:
        return []
    if "(" in value:
        return [length] if (length := length_of(value)) else []
    return [length for part in value.split(None, MOST_PARTS)[:MOST_PARTS] if (length := length_of(part))]


def _is_far(length: Length) -> bool:
    return -length.number >= FAR.get(length.unit, float("inf"))


def _is_far_right(length: Length) -> bool:
    return length.unit == "px" and length.number >= FAR_RIGHT


def _margins(stated: Mapping[str, str]) -> list[Length]:
    """Margins that move something; the lower one moves only what follows."""
    sides = _lengths(stated.get("margin"))
    moving = [side for place, side in enumerate(sides) if place != 2]
    return moving + [length for name in MARGINS for length in _lengths(stated.get(name))]


def _has_wide_padding(stated: Mapping[str, str]) -> bool:
    """Whether a padding takes back what a margin does, as for columns of the same height."""
    names = ("padding", "padding-left", "padding-top", "padding-right")
    return any(length.number >= FAR["px"] for name in names for length in _lengths(stated.get(name)))


def _is_clipped(value: str) -> bool:
    if RECTANGLE.search(value) or NO_SHAPE.search(value):
        return True
    inset = INSET.search(value)
    if inset is None:
        return False
    sides = [float(number) if unit == "%" else 0.0 for number, unit in SIZE.findall(inset[1].partition("round")[0])]
    if not 1 <= len(sides) <= MOST_PARTS:
        return False
    top, right, bottom, left = (
        sides * 4 if len(sides) == 1 else (sides * 2 if len(sides) == 2 else [*sides, sides[1]])
    )[:4]
    return top + bottom >= 100 or left + right >= 100


def _has_no_room(stated: Mapping[str, str]) -> bool:
    beyond = [stated.get(name, "").split(" ")[0] for name in ("overflow", "overflow-x", "overflow-y")]
    indent = length_of(stated.get("text-indent"))
    if not any(value in {"hidden", "clip", "auto", "scroll"} for value in beyond):
        return False
    if indent is not None and indent.unit == "%" and indent.number >= 100:
        return True
    # What grows, or makes room by its padding, is seen.
    if any(name in stated for name in ("flex", "flex-grow")) or _makes_room(stated):
        return False
    return any(
        size is not None and size.unit != "%" and 0 <= size.number <= (1 if size.unit in {"", "px"} else 0)
        for names, least in ((HEIGHTS, "min-height"), (WIDTHS, "min-width"))
        if least not in stated
        for size in map(length_of, map(stated.get, names))
    )


def _makes_room(stated: Mapping[str, str]) -> bool:
    names = ("padding", "padding-top", "padding-bottom")
    return any(length.unit == "%" and length.number >= 10 for name in names for length in _lengths(stated.get(name)))
