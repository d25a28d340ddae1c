"""What a style states: declarations as browsers take them, lengths and colours as numbers."""

import colorsys
import re
from typing import Final, NamedTuple

COMMENT: Final = re.compile(r"/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)")
ESCAPE: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
STRING: Final = r"\"(?:[^\"\\]++|\\.)*+\"?|'(?:[^'\\]++|\\.)*+'?"
INNER: Final = rf"\((?:[^()\"'\\]++|\\.|{STRING})*+\)?"
PIECE: Final = re.compile(
    rf"(?:[^;\"'(\\]++|\\.|{STRING}|\((?:[^()\"'\\]++|\\.|{STRING}|{INNER})*+\)?|\\|\()++", re.DOTALL
)
"""Of a style, up to the semicolon that ends it; those in strings and brackets end nothing."""
IMPORTANT: Final = re.compile(r"! ?important$")
LONGEST_VALUE: Final = 1_000
"""Characters that are judged; what is longer is a drawing or a picture."""
NUMBER: Final = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
LENGTH: Final = re.compile(NUMBER + r"([a-z]*|%)")
SUM: Final = re.compile(r"[\d).a-z%]\s+[-+]\s")
RGB: Final = re.compile(rf"rgba?\(\s*{NUMBER}[,\s]+{NUMBER}[,\s]+{NUMBER}\s*(?:[,/]\s*{NUMBER}(%?)\s*)?\)")
HSL: Final = re.compile(rf"hsla?\(\s*{NUMBER}(?:deg)?[,\s]+{NUMBER}%[,\s]+{NUMBER}%\s*(?:[,/]\s*{NUMBER}(%?)\s*)?\)")
HEXADECIMAL: Final = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
NAMED: Final = {
    "white": (255, 255, 255), "black": (0, 0, 0), "red": (255, 0, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "snow": (255, 250, 250), "ivory": (255, 255, 240), "gray": (128, 128, 128), "grey": (128, 128, 128),
}  # fmt: skip
DISPLAYS: Final = re.compile(
    r"none|block|inline|contents|flex|grid|table|list-item|flow-root|inherit|initial|unset|revert|revert-layer"
    r"|inline-(?:block|flex|grid|table)|table-[a-z-]+|ruby[a-z-]*|-webkit-[a-z-]+|(?:block|inline|flow) [a-z -]+"
)
VISIBILITIES: Final = re.compile(r"visible|hidden|collapse|inherit|initial|unset|revert|revert-layer")
VALID: Final = {"display": DISPLAYS, "visibility": VISIBILITIES}
"""A value that is none is passed over, and an earlier one stays."""


class Length(NamedTuple):
    """A number with its unit, which may be empty."""

    number: float
    unit: str


class Color(NamedTuple):
    """Red, green and blue up to 255; opacity up to 1."""

    red: float
    green: float
    blue: float
    opacity: float = 1.0


def unescaped(text: str) -> str:
    """A text of a style with its escapes replaced."""
    return ESCAPE.sub(_character, text) if "\\" in text else text


def stated_in(style: str) -> list[tuple[str, str, bool]]:
    """Property and value in lower case, and whether it is important, in order; in time linear in the style."""
    found = []
    for piece in PIECE.findall(COMMENT.sub("", style) if "/*" in style else style):
        name, colon, value = piece.partition(":")
        if not colon:
            continue
        name, value = unescaped(name).strip().lower(), " ".join(unescaped(value).split()).lower()
        important = IMPORTANT.search(value) if "!" in value else None
        plain = (value[: important.start()].rstrip() if important else value)[:LONGEST_VALUE]
        if name not in VALID or VALID[name].fullmatch(plain):
            found.append((name, plain, important is not None))
    return found


def winners(stated: list[tuple[str, str, bool]]) -> dict[str, str]:
    """Values by property: the last one of each, and the last important one before any other."""
    values: dict[str, str] = {}
    important = set()
    for name, value, is_important in stated:
        if is_important or name not in important:
            values[name] = value
            if is_important:
                important.add(name)
    return values


def declarations_of(style: str) -> dict[str, str]:
    """Values by property, both in lower case, as they count."""
    return winners(stated_in(style))


def length_of(value: str | None) -> Length | None:
    """A length, a share or a number; of a calculation only whether it is plainly nothing, or a single length."""
    if not value:
        return None
    if value.startswith("calc("):
        return _calculated(value)
    found = LENGTH.fullmatch(value)
    return None if found is None else Length(float(found[1]), found[2])


def color_of(value: str) -> Color | None:
    """A colour; null for one that only a browser knows."""
    if value == "transparent":
        return Color(0, 0, 0, 0)
    if value in NAMED:
        return Color(*NAMED[value])
    if HEXADECIMAL.fullmatch(value):
        digits = value[1:] if len(value) > 5 else "".join(2 * digit for digit in value[1:])
        red, green, blue, *opacity = (float(int(digits[place : place + 2], 16)) for place in range(0, len(digits), 2))
        return Color(red, green, blue, opacity[0] / 255 if opacity else 1.0)
    if found := RGB.fullmatch(value):
        red, green, blue = (min(255.0, float(part)) for part in found.groups()[:3])
        return Color(red, green, blue, _opacity(found[4], found[5]))
    if found := HSL.fullmatch(value):
        hue, saturation, lightness = float(found[1]) / 360, float(found[2]) / 100, float(found[3]) / 100
        red, green, blue = colorsys.hls_to_rgb(hue, min(1.0, lightness), min(1.0, saturation))
        return Color(255 * red, 255 * green, 255 * blue, _opacity(found[4], found[5]))
    return None


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 else ""


def _calculated(value: str) -> Length | None:
    inner = value.replace("calc", "").replace("(", " ").replace(")", " ").strip()
    if found := LENGTH.fullmatch(inner):
        return Length(float(found[1]), found[2])
    numbers = [float(number) for number, _ in LENGTH.findall(inner)]
    is_nothing = not all(numbers) if not SUM.search(inner) and "/" not in inner else not any(numbers)
    return Length(0.0, "") if numbers and is_nothing else None


def _opacity(number: str | None, percent: str | None) -> float:
    return 1.0 if number is None else float(number) / (100 if percent else 1)
