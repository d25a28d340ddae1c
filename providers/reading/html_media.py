"""Which parts of a style sheet hold on a usual screen: pure rules on `@media` and its like."""

import re
from typing import Final

SCREEN_WIDTH: Final = 1_280.0
"""Pixels."""
PIXELS: Final = {"px": 1.0, "em": 16.0, "rem": 16.0}
LONGEST_QUERY: Final = 500
WIDTH: Final = re.compile(r"\( ?(?:(min|max)-width ?: ?|width ?([<>])=? ?)(\d{1,6}(?:\.\d{1,6})?)(px|em|rem) ?\)")
"""A condition on the width of the window."""


def applies(condition: str) -> bool:
    """Whether what stands in a block, or in a sheet for some media, holds on a screen.

    `condition` is the beginning of an at-rule, or a list of media. What is not known holds nowhere.
    """
    words = " ".join(condition[:LONGEST_QUERY].lower().split())
    if not words.startswith("@"):
        return any(map(_holds, words.split(",")))
    rule, _, rest = words[1:].replace("(", " (", 1).partition(" ")
    if rule == "media":
        return any(map(_holds, rest.split(",")))
    return rule == "layer" or (rule == "supports" and not rest.strip().startswith("not"))


def _holds(query: str) -> bool:
    words = query.strip().removeprefix("only ").strip()
    return all(_is_met(part.strip()) for part in words.split(" and "))


def _is_met(part: str) -> bool:
    if part in {"all", "screen"}:
        return True
    found = WIDTH.fullmatch(part)
    if found is None:
        return False
    width = float(found[3]) * PIXELS[found[4]]
    return width <= SCREEN_WIDTH if found[1] == "min" or found[2] == ">" else width >= SCREEN_WIDTH
