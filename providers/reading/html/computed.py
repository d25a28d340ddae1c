"""What letters look like by the values that count for their element, and by what stands around: pure rules."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from providers.reading.html.hiding import FAINTEST
from providers.reading.html.styles import (
    DEEPEST,
    WHITE,
    Color,
    TooDeepError,
    alike,
    color_of,
    colors_in,
    length_of,
    pixels_of,
    with_variables,
)

Element = Any
SMALLEST: Final = 2.7
"""Pixels, two points: letters up to this size cannot be read."""
RELATIVE_SIZES: Final = {"smaller": 1 / 1.2, "larger": 1.2}
NAMED_SIZES: Final = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0, "xx-large": 32.0,
    "xxx-large": 48.0, "initial": 16.0,
}  # fmt: skip
PICTURE: Final = re.compile(r"url\(|gradient\(|image|element\(|paint\(")
CLIPS: Final = ("background-clip", "-webkit-background-clip")
KEPT: Final = frozenset(("inherit", "unset", "revert", "revert-layer", "currentcolor"))
TURNED: Final = frozenset(("difference", "exclusion"))


class State(NamedTuple):
    """What an element hands down to those inside."""

    color: Color | None = Color(0, 0, 0)
    """None where it is not certain; so is the ground."""
    ground: Color | None = WHITE
    size: float = 16.0
    visible: bool = True
    opacity: float = 1.0
    filled: bool = False
    """Whether the letters have a colour that goes before all others."""
    variables: Mapping[str, str] = {}
    frame: Element = None
    """What parts that are moved are placed in."""
    rules: frozenset[int] | None = frozenset()
    """Those by which the letters look so; None for the page's own attributes."""

    @property
    def seen(self) -> bool:
        """Whether letters are seen: shown, large enough, and unlike their ground."""
        if not self.visible or self.size <= SMALLEST:
            return False
        if self.color is None:
            return True
        opacity = self.color.opacity * self.opacity
        if opacity <= FAINTEST:
            return False
        return self.ground is None or not alike(self.color._replace(opacity=opacity).over(self.ground), self.ground)


START: Final = State()


def variables_of(values: Mapping[str, str], outer: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of an element, those of its own with all others replaced in them."""
    own = {name: value for name, value in values.items() if name.startswith("--")}
    if not own:
        return outer
    found = {name: value for name, value in outer.items() if name not in own}
    open_ones: list[str] = []

    def variable(name: str) -> str | None:
        if len(open_ones) > DEEPEST:
            raise TooDeepError
        if name in found or name not in own or name in open_ones:
            return found.get(name)
        if own[name] in KEPT:
            return outer.get(name)
        open_ones.append(name)
        value = with_variables(own[name], variable)
        open_ones.pop()
        if value is not None and value != "initial":
            found[name] = value
        return value

    for name in own:
        if (value := variable(name)) is not None:
            found[name] = value
    return found


def resolve_variables(values: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Values without variables; one that lacks a variable is as if nothing were stated."""
    found = {}
    for name, value in values.items():
        if not name.startswith("--"):
            whole = value if "(" not in value else with_variables(value, variables.get)
            if whole is not None:
                found[name] = whole.strip().lower()
    return found


def compute_state(values: Mapping[str, str], outer: State, variables: Mapping[str, str]) -> State:
    """How letters look that have these values, inside of others."""
    color, filled, size, visible, opacity = outer.color, outer.filled, outer.size, outer.visible, outer.opacity
    own: Color | None = None
    picture = ""
    for name, value in values.items():
        match name:
            case "visibility":
                visible = outer.visible if value in KEPT else value not in {"hidden", "collapse"}
            case "opacity":
                opacity = outer.opacity * _share(value)
            case "font" | "font-size":
                size = _size(name, value, outer.size)
            case "-webkit-text-fill-color":
                filled = value != "currentcolor"
                color = outer.color if value in KEPT else color_of(value)
            case "color" if not filled:
                color = outer.color if value in KEPT else color_of(value)
            case "background":
                picture = value if PICTURE.search(value) else ""
                own = None if picture else color if "currentcolor" in value else next(iter(colors_in(value)), None)
            case "background-color":
                own = color if value == "currentcolor" else outer.ground if value == "inherit" else color_of(value)
            case "background-image":
                picture = value if PICTURE.search(value) else ""
            case _:
                pass
    ground = _ground(own, picture, outer.ground)
    if color is not None and color.opacity <= FAINTEST and "text" in {values.get(name) for name in CLIPS}:
        # Letters cut out of a ground.
        color, ground = _ground(own or color, picture, None) if picture else own or color, outer.ground
    elif values.get("mix-blend-mode") in TURNED or any(
        shade.opacity > FAINTEST and (ground is None or not alike(shade.over(ground), ground))
        for shade in colors_in(values.get("text-shadow", ""))
    ):
        color = None
    return State(color, ground, size, visible, opacity, filled, variables, outer.frame, outer.rules)


def _share(value: str) -> float:
    length = length_of(value)
    if length is None:
        return 1.0
    return min(1.0, max(0.0, length.number / (100 if length.unit == "%" else 1)))


def _size(name: str, value: str, outer: float) -> float:
    for part in value.partition("/")[0].split() if name == "font" and "(" not in value else [value]:
        length = length_of(part)
        if length is not None and (name == "font-size" or length.unit or not length.number):
            size = pixels_of(length, outer)
            return outer if size is None or size < 0 else size
        if part in RELATIVE_SIZES:
            return outer * RELATIVE_SIZES[part]
        if part in NAMED_SIZES:
            return NAMED_SIZES[part]
    return outer


def _ground(own: Color | None, picture: str, outer: Color | None) -> Color | None:
    """What letters stand on: a plain colour, or one over that around; None for pictures and what is not known."""
    if picture:
        colors = colors_in(picture) if "url(" not in picture and "image" not in picture else []
        if not colors or not all(color.opacity == 1 and alike(colors[0], color) for color in colors):
            return None
        own = colors[0]
    if own is None or own.opacity <= FAINTEST:
        return outer
    return own if own.opacity == 1 else None if outer is None else own.over(outer)
