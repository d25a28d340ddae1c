"""Which parts of a style sheet hold on a usual screen: pure rules on `@media` and its like."""

import re
from collections.abc import Iterable
from operator import eq, ge, gt, le, lt
from typing import Any, Final

import tinycss2  # type: ignore[import-untyped]

from providers.reading.html.styles import length_of, pixels_of

SIZES: Final = {"width": 1_280.0, "height": 720.0, "inline-size": 1_280.0, "block-size": 720.0, "resolution": 1.0}
"""Pixels; dots for each."""
FEATURES: Final = {
    "orientation": "landscape", "hover": "hover", "any-hover": "hover", "pointer": "fine", "any-pointer": "fine",
    "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference", "prefers-contrast": "no-preference",
    "update": "fast", "scripting": "enabled", "forced-colors": "none", "display-mode": "browser",
    "overflow-block": "scroll",
}  # fmt: skip
PRESENT: Final = frozenset((*SIZES, "color", "color-gamut", *FEATURES)) - {"prefers-reduced-motion", "forced-colors"}
LONGEST_QUERY: Final = 5_000
SIGN: Final = re.compile(r"([<>]=?|=)")
COMPARE: Final = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}
TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
BOUNDS: Final = {"min-": ">=", "max-": "<="}
TYPES: Final = {"all": True, "screen": True, "print": False, "speech": False}
BLOCK: Final = re.compile(r"@([a-z-]++)(.*+)")


def applies(condition: str) -> bool:
    """Whether what stands in a block, or in a sheet for some media, holds on a screen.

    `condition` is the beginning of an at-rule, or a list of media. What is not known holds nowhere.
    """
    words = " ".join(condition[:LONGEST_QUERY].lower().split())
    found = BLOCK.match(words)
    rule, rest = (found[1], found[2]) if found else ("media", words)
    if rule in {"layer", "scope"}:
        return True
    if rule not in {"media", "supports", "container"}:
        return False
    nodes = tinycss2.parse_component_value_list(rest, skip_comments=True)
    return bool(_any_of(_parts(nodes, ","), rule))


def _parts(nodes: list[Any], sign: str) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    for node in nodes:
        if node == sign or (node.type == "ident" and node.lower_value == sign):
            parts.append([])
        elif node.type != "whitespace":
            parts[-1].append(node)
    return parts


def _any_of(queries: list[list[Any]], rule: str) -> bool | None:
    """Whether one of some conditions is met; None if that is not known."""
    found = [_all_of(_parts(part, "and"), rule) for query in queries for part in _parts(query, "or")]
    return True if True in found else None if None in found else False


def _all_of(parts: list[list[Any]], rule: str) -> bool | None:
    first = parts[0]
    if first and first[0].type == "ident" and first[0].lower_value == "not":
        turned = _all_of([first[1:], *parts[1:]], rule)
        return None if turned is None else not turned
    return _all(_is_met(part, rule) for part in parts)


def _all(met: Iterable[bool | None]) -> bool | None:
    found = set(met)
    return False if False in found else None if None in found else True


def _is_met(part: list[Any], rule: str) -> bool | None:
    words = [node for node in part if not (node.type == "ident" and node.lower_value == "only")]
    if rule == "container" and len(words) > 1:
        words = words[1:]
    if len(words) != 1:
        return None
    node = words[0]
    if node.type == "ident":
        return TYPES.get(node.lower_value)
    if node.type == "() block" and any(one.type in {"() block", "function"} for one in node.content):
        return _any_of([node.content], rule)
    if rule == "supports" and node.type in {"() block", "function"}:
        return True
    return _is_feature(tinycss2.serialize(node.content)) if node.type == "() block" else None


def _is_feature(text: str) -> bool | None:
    """Whether the screen has a feature: `min-width: 10em`, `width >= 10em`, `1em <= width < 9em`, `hover`."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if colon:
        bound = BOUNDS.get(name[:4])
        return _compares(name[4:], bound, value) if bound else _compares(name, "=", value)
    parts = [part.strip() for part in SIGN.split(text)]
    match parts:
        case [name]:
            return name in PRESENT or None
        case [name, sign, value] if not length_of(name):
            return _compares(name, sign, value)
        case [value, sign, name, *upper]:
            sides = [_compares(name, TURNED[sign], value)]
            return _all([*sides, _compares(name, upper[0], upper[1])] if len(upper) == 2 else sides)
        case _:
            return None


def _compares(name: str, sign: str, value: str) -> bool | None:
    if name in FEATURES:
        return FEATURES[name] == value
    length = length_of(value)
    size = None if length is None else length.number if name == "resolution" else pixels_of(length, 16.0)
    return COMPARE[sign](SIZES[name], size) if name in SIZES and size is not None else None
