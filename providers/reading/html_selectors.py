"""Selectors of style sheets: those of classes, ids and elements, one inside the other. All others are left out."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from providers.reading.html_rules import Element
from providers.reading.html_styles import unescaped

LONGEST_SELECTOR: Final = 500
LONGEST_KEPT: Final = 200
"""Characters of attributes whose names are kept."""
MOST_PARTS: Final = 8
IDENTIFIER: Final = r"(?:[\w-]|\\[0-9a-fA-F]{1,6}\s?|\\[^0-9a-fA-F\n])++"
PART: Final = re.compile(rf"(\s*>\s*|\s+)?((?:[a-z][\w-]*|\*)?)((?:[.#]{IDENTIFIER})*)", re.IGNORECASE)
NAME: Final = re.compile(rf"([.#])({IDENTIFIER})")


@dataclass(frozen=True)
class Part:
    """What one element must be; `names` are classes as `.name` and an id as `#name`."""

    tag: str
    names: frozenset[str]
    is_child: bool
    """Whether it stands right inside the element of the part before."""

    def fits(self, tag: str, names: frozenset[str]) -> bool:
        """Whether an element is one."""
        return (not self.tag or self.tag == tag) and self.names <= names

    @property
    def key(self) -> str:
        """Something that every such element has; empty where any element may be one."""
        return min(self.names) if self.names else self.tag


@dataclass(frozen=True)
class Selector:
    """Parts from the outermost element to the one that is meant."""

    parts: tuple[Part, ...]

    @property
    def weight(self) -> tuple[int, int, int]:
        """The more exact selector wins."""
        names = [name for part in self.parts for name in part.names]
        ids = sum(name.startswith("#") for name in names)
        return ids, len(names) - ids, sum(bool(part.tag) for part in self.parts)

    def is_within(self, known: AbstractSet[str]) -> bool:
        """Whether a page with these names and tags may have such an element at all."""
        return all(part.names <= known and (not part.tag or part.tag in known) for part in self.parts)


@dataclass
class Steps:
    """How many more elements may be looked at for all selectors of a page."""

    left: int


def selector_of(text: str) -> Selector | None:
    """A selector as it is written; null for one with anything else than names, descendants and children."""
    text = text.strip()
    if not text or len(text) > LONGEST_SELECTOR:
        return None
    parts: list[Part] = []
    place = 0
    while place < len(text):
        found = PART.match(text, place)
        if found is None or not (found[2] or found[3]) or bool(found[1]) != bool(parts) or len(parts) >= MOST_PARTS:
            return None
        tag = "" if found[2] == "*" else found[2].lower()
        names = frozenset(sign + unescaped(name) for sign, name in NAME.findall(found[3]))
        parts.append(Part(tag, names, ">" in (found[1] or "")))
        place = found.end()
    return Selector(tuple(parts))


def names_from(classes: str, identity: str) -> frozenset[str]:
    """The names of an element by its attributes."""
    return (_kept_names if len(classes) + len(identity) <= LONGEST_KEPT else _names)(classes, identity)


def _names(classes: str, identity: str) -> frozenset[str]:
    return frozenset(f".{name}" for name in classes.split()) | ({f"#{identity}"} if identity else set())


_kept_names = lru_cache(maxsize=4_096)(_names)


def stands_in(element: Element, parts: tuple[Part, ...], steps: Steps) -> bool:
    """Whether the elements around one are what the parts say, but for the last, which is the element itself."""
    if len(parts) < 2:
        return True
    outer, around = parts[:-1], element.getparent()
    while around is not None and steps.left > 0:
        steps.left -= 1
        names = names_from(around.get("class") or "", around.get("id") or "")
        if outer[-1].fits(around.tag, names) and stands_in(around, outer, steps):
            return True
        if parts[-1].is_child:
            return False
        around = around.getparent()
    return False
