"""What a style hides from readers: a place for words that only machines are meant to see."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from providers.reading.html_styles import Color, Length, color_of, declarations_of, length_of

NUMBER: Final = r"(?:\d+\.?\d*|\.\d+)"
SIZE: Final = re.compile(rf"(-?{NUMBER})([a-z%]*)")
RECTANGLE: Final = re.compile(r"rect\(\s*(?:0|1px)[\s,p]")
NO_SHAPE: Final = re.compile(r"circle\(\s*0(?![.\d])|polygon\(\s*0\S*\s+0[^1-9]*\)")
INSET: Final = re.compile(r"inset\(([^)]*)\)")
SHRUNK: Final = re.compile(
    r"scale[xy3d]*\(\s*0*(?:0|\.0\d*|0\.0\d*)\s*[,)]|perspective\(0|matrix\(\s*0\s*,\s*0\s*,\s*0\s*,\s*0\s*,"
    r"|rotate[xy]\(\s*-?(?:90|270)deg|translate\w*\([^)]*-\d{4,}|translate(?:x|3d)?\(\s*(?:9\d{3}|\d{5,})"
)
TINY_FONT: Final = re.compile(r"(?:^|\s)0*(?:[01]|\.\d+|[01]\.\d+)(?:px|pt)?\s*(?:/|\s)|(?:^|\s)0+(?:\.0*)?[a-z]+[\s/]")
SMALLEST: Final = {
    "px": 2.0, "pt": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0, "ex": 0.3, "ch": 0.3, "mm": 0.6, "q": 2.4, "cm": 0.06,
    "in": 0.02, "pc": 0.15, "vw": 0.15, "vh": 0.2, "vmin": 0.2, "vmax": 0.15,
}  # fmt: skip
"""Sizes of letters up to which nobody reads them."""
FAINTEST: Final = 0.05
ALIKE: Final = 5
"""Of 255: colours that differ by no more are one."""
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
HEIGHTS: Final = ("height", "max-height", "block-size", "max-block-size")
WIDTHS: Final = ("width", "max-width", "inline-size", "max-inline-size")
JUDGED: Final = frozenset(
    (*OFFSETS, *MARGINS, *HEIGHTS, *WIDTHS, "display", "visibility", "content-visibility", "opacity", "filter", "color",
     "background", "background-color", "background-clip", "-webkit-background-clip", "-webkit-text-fill-color", "font",
     "font-size", "zoom", "margin", "clip", "clip-path", "-webkit-clip-path", "transform", "scale", "overflow",
     "overflow-x", "overflow-y", "flex", "flex-grow", "min-height", "min-width", "padding", "padding-left",
     "padding-top", "padding-right", "padding-bottom")
)  # fmt: skip
"""The properties that decide."""
LONGEST_KEPT: Final = 500
"""Characters of a style whose judgement is kept."""
MOST_PARTS: Final = 4
"""Of an offset or a margin: one for each side."""


def hides(style: str) -> bool:
    """Whether a reader does not see what has this style: the value of an attribute, or the body of a rule."""
    if ":" not in style:
        return False
    return _kept_judgement(style) if len(style) <= LONGEST_KEPT else hidden_by(declarations_of(style))


@lru_cache(maxsize=4_096)
def _kept_judgement(style: str) -> bool:
    return hidden_by(declarations_of(style))


def hidden_by(stated: Mapping[str, str]) -> bool:
    """Whether a reader does not see what is given these values by property."""
    return (
        stated.get("display") == "none"
        or stated.get("visibility") in {"hidden", "collapse"}
        or stated.get("content-visibility") == "hidden"
        or _is_faint(stated)
        or _is_tiny(stated)
        or _is_away(stated)
        or _has_no_room(stated)
    )


def alike(one: Color, other: Color) -> bool:
    """Whether letters of one colour are not seen on the other."""
    return all(abs(first - second) <= ALIKE for first, second in zip(one[:3], other[:3], strict=True))


def ground_of(stated: Mapping[str, str]) -> Color | None:
    """The plain colour of a background; null for a picture, and where there is none."""
    value = stated.get("background-color") or stated.get("background", "")
    return color_of(value if "(" in value else value.split(" ")[0])


def _is_faint(stated: Mapping[str, str]) -> bool:
    opacity = length_of(stated.get("opacity"))
    if opacity and opacity.unit in {"", "%"} and opacity.number <= FAINTEST * (100 if opacity.unit else 1):
        return True
    if "opacity(0" in stated.get("filter", "") and "opacity(0." not in stated["filter"]:
        return True
    # Letters cut out of a background are seen.
    if any(stated.get(name) == "text" for name in ("background-clip", "-webkit-background-clip")):
        return False
    color = color_of(stated.get("-webkit-text-fill-color") or stated.get("color", ""))
    if color is None:
        return stated.get("color", "-") == (stated.get("background-color") or stated.get("background", ""))
    ground = ground_of(stated)
    return color.opacity <= FAINTEST or (ground is not None and ground.opacity > FAINTEST and alike(color, ground))


def _is_tiny(stated: Mapping[str, str]) -> bool:
    for name in ("font-size", "zoom"):
        size = length_of(stated.get(name))
        if size is None:
            continue
        if name == "zoom":
            # Nothing at all counts as no zoom.
            if 0 < size.number <= FAINTEST * (100 if size.unit == "%" else 1):
                return True
        elif 0 <= size.number <= SMALLEST.get(size.unit, 0.0):
            return True
    return bool(TINY_FONT.search(stated.get("font", "")))


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
