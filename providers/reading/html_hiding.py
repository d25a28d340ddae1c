"""What a style hides from readers: a place for words that only machines are meant to see."""

import re
from functools import lru_cache
from typing import Final

COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
ESCAPE: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
DECLARATION: Final = re.compile(r"([\w-]+)\s*:\s*([^;]*)")
LENGTH: Final = re.compile(r"(-?(?:\d+\.?\d*|\.\d+))(px|pt|r?em|%|)")
ALPHA: Final = re.compile(r"(?:rgb|hsl)a?\([^)]*[,/]\s*(?:0*\.0\d*|0+)%?\s*\)|#[0-9a-f]{3}0|#[0-9a-f]{6}0[0-9a-f]")
RGB: Final = re.compile(r"rgba?\(\s*(\d+)[,\s]+(\d+)[,\s]+(\d+)")
CLIPPED: Final = re.compile(
    r"rect\(\s*(?:0|1px)[\s,p]|inset\(\s*(?:[5-9]\d|100)(?:\.\d+)?%|circle\(\s*0(?![.\d])|polygon\(\s*0\S*\s+0[^1-9]*\)"
)
SHRUNK: Final = re.compile(r"scale[xy3d]*\(\s*0*(?:0|\.0\d*|0\.0\d*)\s*[,)]|translate\w*\([^)]*-\d{4,}|perspective\(0")
FAR: Final = re.compile(r"(?:^|\s)-\d{3,}(?:\.\d+)?(?:px|pt|r?em|vw|vh|%)")
TINY_FONT: Final = re.compile(r"(?:^|\s)0*(?:[01]|\.\d+|[01]\.\d+)(?:px|pt)?\s*(?:/|\s)")
NAMED: Final = {"white": "ffffff", "black": "000000", "red": "ff0000", "blue": "0000ff", "yellow": "ffff00"}
SMALLEST: Final = {"": 0.0, "px": 2.0, "pt": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0}
"""Sizes of letters up to which nobody reads them."""
FAINTEST: Final = 0.05
PLACES: Final = ("left", "right", "top", "bottom", "text-indent", "margin", "margin-left", "margin-top", "margin-right")
LONGEST_STYLE: Final = 2_000
DECIDING: Final = ("display", "visibility", "opacity", "content-visibility", "font-size", "max-height", "height")
"""Properties with which a later rule takes back what an earlier one hides."""


def declarations_of(style: str) -> dict[str, str]:
    """Values by property, both in lower case; comments and escapes, which only confuse programs, are taken out."""
    plain = ESCAPE.sub(_unescaped, COMMENT.sub("", style[:LONGEST_STYLE])).lower()
    return {match[1]: match[2].replace("!important", "").strip() for match in DECLARATION.finditer(plain)}


@lru_cache(maxsize=4_096)
def hides(style: str) -> bool:
    """Whether a reader does not see what has this style: the value of an attribute, or the body of a rule."""
    if ":" not in style:
        return False
    stated = declarations_of(style)
    return (
        stated.get("display") == "none"
        or stated.get("visibility") in {"hidden", "collapse"}
        or stated.get("content-visibility") == "hidden"
        or _is_faint(stated)
        or _is_tiny(stated)
        or _is_away(stated)
        or _has_no_room(stated)
    )


def shows(style: str) -> bool:
    """Whether a rule may take back that another one hides."""
    stated = declarations_of(style)
    return not hides(style) and any(name in stated for name in DECIDING)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 else ""


def _is_faint(stated: dict[str, str]) -> bool:
    opacity = LENGTH.fullmatch(stated.get("opacity", ""))
    if opacity and float(opacity[1]) <= FAINTEST * (100 if opacity[2] == "%" else 1):
        return True
    if "opacity(0" in stated.get("filter", "") and "opacity(0." not in stated["filter"]:
        return True
    color = stated.get("color", "")
    if color == "transparent" or ALPHA.fullmatch(color):
        return True
    ground = stated.get("background-color") or stated.get("background", "")
    return bool(color) and _plain_color(color) == _plain_color(ground.split(" ")[0] if "(" not in ground else ground)


def _plain_color(color: str) -> str:
    """Six hexadecimal digits, or the word itself."""
    numbers = RGB.match(color)
    if numbers:
        return "".join(f"{min(255, int(number)):02x}" for number in numbers.groups())
    digits = color.removeprefix("#")
    if digits != color and len(digits) == 3:
        return "".join(2 * digit for digit in digits)
    return NAMED.get(color, digits)


def _is_tiny(stated: dict[str, str]) -> bool:
    size = LENGTH.fullmatch(stated.get("font-size", ""))
    if size and size[2] in SMALLEST and float(size[1]) <= SMALLEST[size[2]]:
        return True
    return bool(TINY_FONT.search(stated.get("font", "")))


def _is_away(stated: dict[str, str]) -> bool:
    if any(FAR.search(stated.get(name, "")) for name in PLACES):
        return True
    clipped = CLIPPED.search(stated.get("clip", "")) or CLIPPED.search(stated.get("clip-path", ""))
    return bool(clipped or SHRUNK.search(stated.get("transform", "")) or stated.get("scale") == "0")


def _has_no_room(stated: dict[str, str]) -> bool:
    if not any(
        stated.get(name, "").startswith(("hidden", "clip")) for name in ("overflow", "overflow-x", "overflow-y")
    ):
        return False
    sizes = (LENGTH.fullmatch(stated.get(name, "")) for name in ("height", "max-height", "width", "max-width"))
    return any(size and size[2] in {"", "px"} and 0 <= float(size[1]) <= 1 for size in sizes)
