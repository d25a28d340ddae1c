"""Which parts of a style sheet hold on a usual screen: pure rules on `@media` and its like."""

import re
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
COMPARED: Final = re.compile(r"(?:([^<>=]++)(<=?|>=?|=))?+([^<>=]++)(?:(<=?|>=?|=)([^<>=]++))?+")
TYPES: Final = {"all": True, "screen": True, "print": False, "speech": False}


def applies(condition: str) -> bool:
    """Whether what stands in a block, or in a sheet for some media, holds on a screen.

    `condition` is the beginning of an at-rule, or a list of media. What is not known holds nowhere.
    """
    words = " ".join(condition[:LONGEST_QUERY].lower().split())
    rule, rest = "media", words
    if words.startswith("@"):
        found = re.match(r"@([a-z-]++)(.*+)", words)
        rule, rest = (found[1], found[2]) if found else ("", "")
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
    """Whether one of some conditions is met; null if that is not known."""
    found = [_all_of(_parts(part, "and"), rule) for query in queries for part in _parts(query, "or")]
    return True if True in found else None if None in found else False


def _all_of(parts: list[list[Any]], rule: str) -> bool | None:
    first = parts[0]
    if first and first[0].type == "ident" and first[0].lower_value == "not":
        turned = _all_of([first[1:], *parts[1:]], rule)
        return None if turned is None else not turned
    found = [_is_met(part, rule) for part in parts]
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
    if node.type == "() block":
        inner = node.content
        if any(one.type in {"() block", "function"} for one in inner):
            return _any_of([inner], rule)
        return True if rule == "supports" else _is_feature(tinycss2.serialize(inner))
    return True if rule == "supports" and node.type == "function" else None


def _is_feature(text: str) -> bool | None:
    """Whether the screen has a feature: `min-width: 10em`, `width >= 10em`, `hover`."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if colon:
        bound, name = (name[:3], name[4:]) if name.startswith(("min-", "max-")) else ("", name)
        if name in FEATURES:
            return FEATURES[name] == value
        return _compares(name, {"min": ">=", "max": "<=", "": "="}[bound], value)
    found = COMPARED.fullmatch(text)
    if found is None or (found[1] is None and found[4] is None):
        return name in PRESENT or None
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
    if found[1] and length_of(found[1].strip()):
        sides = [_compares(found[3].strip(), turned[found[2]], found[1].strip())]
        sides += [_compares(found[3].strip(), found[4], found[5].strip())] if found[4] else []
    else:
        name, sign, value = (found[1], found[2], found[3]) if found[1] else (found[3], found[4], found[5])
        sides = [_compares(name.strip(), sign, value.strip())]
    return False if False in sides else None if None in sides else True


def _compares(name: str, sign: str, value: str) -> bool | None:
    length = length_of(value)
    size = None if length is None else length.number if name == "resolution" else pixels_of(length, 16.0)
    if name not in SIZES or size is None:
        return None
    has = SIZES[name]
    return {"<": has < size, "<=": has <= size, ">": has > size, ">=": has >= size, "=": has == size}[sign]
