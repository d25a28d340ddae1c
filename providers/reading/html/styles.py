"""What a style states, read by tinycss2: values by property, lengths in pixels, colours as numbers."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import tinycss2  # type: ignore[import-untyped]
from tinycss2.color5 import parse_color  # type: ignore[import-untyped]

LONGEST_VALUE: Final = 1_000
"""Characters that are judged; what is longer is a drawing or a picture."""
DEEPEST: Final = 100
"""Variables that refer to one another, and functions inside one another."""
UNITS: Final = {
    "": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945, "vw": 12.8, "vh": 7.2,
    "vmin": 7.2, "vmax": 12.8, "rem": 16.0,
}  # fmt: skip
"""Pixels, on a screen of 1280 by 720."""
OF_LETTERS: Final = {"em": 1.0, "%": 0.01, "ex": 0.5, "ch": 0.5, "ic": 1.0, "cap": 0.7, "lh": 1.2}
"""Times the size of the letters."""
LENGTH: Final = re.compile(r"([-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:e[-+]?\d++)?+)([a-z]*+|%)")
SUM: Final = re.compile(r"[\d).a-z%]\s++[-+]\s")
GLOBAL: Final = r"inherit|initial|unset|revert|revert-layer"
KEYWORDS: Final = {
    "display": re.compile(
        r"none|block|inline|contents|flex|grid|table|list-item|flow-root|inline-(?:block|flex|grid|table)|table-[a-z-]++"
        r"|ruby[a-z-]*+|-webkit-[a-z-]++|(?:block|inline|flow) [a-z -]++"
    ),
    "visibility": re.compile("visible|hidden|collapse"),
    "content-visibility": re.compile("visible|hidden|auto"),
    "position": re.compile("static|relative|absolute|fixed|sticky|-webkit-sticky"),
    "font-size": re.compile("(?:xx?-|xxx-)?(?:small|large)|medium|smaller|larger|math"),
    "opacity": re.compile(r"(?!)"),
}  # fmt: skip
"""Words that are values; another one is passed over, and what was stated before stays."""
COLORS: Final = frozenset(("color", "background-color", "-webkit-text-fill-color"))
OF_THE_SYSTEM: Final = {
    "canvas": "#fff", "field": "#fff", "window": "#fff", "buttonface": "#eee", "canvastext": "#000",
    "fieldtext": "#000", "windowtext": "#000", "buttontext": "#000", "linktext": "#00e", "graytext": "#808080",
    "initial": "#000",
}  # fmt: skip
ALIKE: Final = 24
"""Of 255: letters that differ from their ground by no more, in each of red, green and blue, are not seen."""
SHORT: Final = frozenset(
    ("display", "visibility", "content-visibility", "opacity", "color", "-webkit-text-fill-color", "font-size", "zoom")
)
"""Properties of which no honest value is longer than what is judged."""
UNREADABLE: Final = (RecursionError, ValueError)
"""What is raised for values that are nested too deep, or that the library takes apart wrongly."""


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

    def over(self, ground: "Color") -> "Color":
        """What is seen of a colour on a ground."""
        mixed = (
            mine * self.opacity + other * (1 - self.opacity) for mine, other in zip(self[:3], ground, strict=False)
        )
        red, green, blue = mixed
        return Color(red, green, blue)


class Stated(NamedTuple):
    """One declaration; value in lower case, if no variable is in it."""

    name: str
    value: str
    important: bool


WHITE: Final = Color(255, 255, 255)


def read_declarations(content: str | list[Any], wanted: Callable[[str], bool]) -> tuple[list[Stated], list[Any]]:
    """The valid declarations of a style that are wanted, in order, and the rules inside it."""
    found, inside = [], []
    for node in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if node.type in {"qualified-rule", "at-rule"}:
            inside.append(node)
        elif node.type == "declaration" and (wanted(node.lower_name) or node.name.startswith("--")):
            stated = _read_stated(node)
            if stated is not None:
                found.append(stated)
    return found, inside


def _read_stated(node: Any) -> Stated | None:
    try:
        value = " ".join(tinycss2.serialize(node.value).replace("/**/", "").split())
    except RecursionError:
        value = "(" * (LONGEST_VALUE + 1)
    if len(value) > LONGEST_VALUE and node.lower_name in SHORT:
        # What cannot be judged is not shown.
        return Stated("display", "none", important=True)
    if node.name.startswith("--"):
        return Stated(node.name, value[: LONGEST_VALUE + 1], node.important)
    if "var(" not in value.lower():
        value = value.lower()[:LONGEST_VALUE]
        if not is_valid(node.lower_name, value):
            return None
    return Stated(node.lower_name, value, node.important)


def is_valid(name: str, value: str) -> bool:
    """Whether browsers take a value for one; in doubt they do."""
    if "(" in value or re.fullmatch(GLOBAL, value):
        return True
    if name in COLORS:
        return value in OF_THE_SYSTEM or value == "currentcolor" or color_of(value) is not None
    words = KEYWORDS.get(name)
    if words is None or words.fullmatch(value):
        return True
    length = length_of(value)
    return name in {"font-size", "opacity"} and length is not None and length.unit in {*UNITS, *OF_LETTERS}


class TooDeepError(Exception):
    """Variables refer to one another, or stand in for one another, deeper than any page means."""


def with_variables(value: str, variable: Callable[[str], str | None]) -> str | None:
    """A value with its variables replaced; None where one is missing, or all of it grows too long.

    Raises `TooDeepError`.
    """
    if "var(" not in value.lower():
        return value
    text = _replace(tinycss2.parse_component_value_list(value, skip_comments=True), variable, 0)
    return text if text is not None and len(text) <= LONGEST_VALUE else None


def _replace(nodes: Iterable[Any], variable: Callable[[str], str | None], depth: int) -> str | None:
    if depth > DEEPEST:
        raise TooDeepError
    parts: list[str] = []
    size = 0
    for node in nodes:
        part: str | None
        if node.type != "function":
            part = tinycss2.serialize([node])
        elif node.lower_name != "var":
            inner = _replace(node.arguments, variable, depth + 1)
            part = None if inner is None else f"{node.name}({inner})"
        else:
            part = _variable(node.arguments, variable, depth + 1)
        size += len(part or "")
        if part is None or size > LONGEST_VALUE:
            return None
        parts.append(part)
    return "".join(parts)


def _variable(arguments: list[Any], variable: Callable[[str], str | None], depth: int) -> str | None:
    """The value of a variable, else what is to stand for it."""
    comma = next((place for place, node in enumerate(arguments) if node == ","), len(arguments))
    value = variable(tinycss2.serialize(arguments[:comma]).strip())
    if value is not None or comma == len(arguments):
        return value
    return _replace(arguments[comma + 1 :], variable, depth)


def length_of(value: str | None) -> Length | None:
    """A length, a share or a number; of a calculation only whether it is plainly nothing, or a single length."""
    if not value:
        return None
    if value.startswith(("calc(", "min(", "max(", "clamp(")):
        return _calculate(value)
    found = LENGTH.fullmatch(value)
    return None if found is None else Length(float(found[1]), found[2])


def pixels_of(length: Length, letters: float) -> float | None:
    """A length in pixels, beside letters of a size; None for units that are not known."""
    times = UNITS.get(length.unit, OF_LETTERS.get(length.unit, 0.0) * letters)
    return length.number * times if times or length.unit in OF_LETTERS else None


@lru_cache(maxsize=4_096)
def color_of(value: str) -> Color | None:
    """A colour; None for one that only a browser knows. One that is made of several is known if they are alike."""
    node = tinycss2.parse_one_component_value(OF_THE_SYSTEM.get(value, value), skip_comments=True)
    if node.type == "error":
        return None
    if (found := _color(node)) is not None:
        return found
    colors = colors_in(value) if node.type == "function" else []
    return colors[0] if colors and all(alike(colors[0], color) for color in colors) else None


def colors_in(value: str) -> list[Color]:
    """All colours that a value names, in functions too."""
    found, waiting = [], list(reversed(tinycss2.parse_component_value_list(value, skip_comments=True)))
    while waiting:
        node = waiting.pop()
        color = _color(node)
        if color is not None:
            found.append(color)
        elif node.type == "function":
            waiting += reversed(node.arguments)
    return found


def _color(node: Any) -> Color | None:
    try:
        color = parse_color(node)
        if color is None or color == "currentcolor":
            return None
        if color.space in {"hsl", "hwb"}:
            color = color.to("srgb")
        elif color.space in {"lab", "lch", "oklab", "oklch"}:
            color = color.to("xyz-d65" if color.space.startswith("ok") else "xyz-d50")
    except UNREADABLE:
        return None
    parts = [part or 0.0 for part in color.coordinates]
    if color.space.startswith("xyz"):
        white = (0.9643, 1.0, 0.8251) if color.space == "xyz-d50" else (0.9505, 1.0, 1.089)
        parts = [max(0.0, part / most) ** (1 / 2.2) for part, most in zip(parts, white, strict=True)]
    red, green, blue = (255 * min(1.0, max(0.0, part)) for part in parts)
    return Color(red, green, blue, color.alpha)


def alike(one: Color, other: Color) -> bool:
    """Whether letters of one colour are not seen on the other."""
    return all(abs(first - second) <= ALIKE for first, second in zip(one[:3], other[:3], strict=True))


def _calculate(value: str) -> Length | None:
    function, _, arguments = value.removesuffix(")").partition("(")
    lengths = [
        Length(float(found[1]), found[2]) for part in arguments.split(",") if (found := LENGTH.fullmatch(part.strip()))
    ]
    if len(lengths) == arguments.count(",") + 1:
        ordered = sorted(lengths, key=lambda length: pixels_of(length, 16.0) or 0.0)
        return ordered[{"min": 0, "max": -1, "clamp": len(ordered) // 2}.get(function, 0)]
    inner = re.sub(r"calc|[()]", " ", value)
    numbers = [float(number) for number, _ in LENGTH.findall(inner)]
    is_nothing = not all(numbers) if not SUM.search(inner) and not re.search("[/,]", inner) else not any(numbers)
    return Length(0.0, "") if numbers and is_nothing else None
