"""Rules in a page's own style sheets that hide elements by their class or id: such elements are marked as hidden.

Only what a page states itself counts, and only selectors that name an element alone. Nothing is hidden that holds most
of the page, for many sites hide all of it until their scripts run.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from providers.reading.html_hiding import COMMENT, hides, shows
from providers.reading.html_rules import Element, beginning_of

MOST_SHEETS: Final = 20
MOST_CHARACTERS: Final = 100_000
"""Of one sheet."""
MOST_RULES: Final = 2_000
MOST_HIDDEN: Final = 2_000
NEVER_HIDDEN: Final = frozenset(("html", "body", "main", "article"))
SELECTOR: Final = re.compile(r"([a-z][a-z0-9]*)?((?:[.#][\w-]+)+)", re.IGNORECASE)
NAME: Final = re.compile(r"([.#])([\w-]+)")
PIECE: Final = re.compile(r"([^{}]*)([{}])")
FOR_SCREENS: Final = re.compile(r"@(?:layer\b.*|media\s+(?:screen|all))\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class StyleRule:
    """A selector with whether it hides; `names` are classes as `.name` and an id as `#name`."""

    tag: str
    names: frozenset[str]
    hiding: bool

    @property
    def weight(self) -> tuple[int, int, int]:
        """The more exact selector wins."""
        ids = sum(name.startswith("#") for name in self.names)
        return ids, len(self.names) - ids, bool(self.tag)


def mark_hidden(root: Element) -> None:
    """Give every element that the page's own style sheets hide the attribute `hidden`."""
    sheets = [element.text or "" for element in root.iter("style") if _is_for_screens(element)]
    rules = [rule for sheet in sheets[:MOST_SHEETS] for rule in rules_of(sheet)][:MOST_RULES]
    if not any(rule.hiding for rule in rules):
        return
    by_name: dict[str, list[tuple[int, StyleRule]]] = defaultdict(list)
    for place, rule in enumerate(rules):
        by_name[min(rule.names)].append((place, rule))
    body = root.find("body")
    most = len("".join(body.itertext())) // 2 if body is not None else 0
    marked = 0
    for element in root.iter():
        if marked >= MOST_HIDDEN:
            return
        if isinstance(element.tag, str) and _is_hidden_by(element, by_name) and beginning_of(element, most) is not None:
            element.set("hidden", "")
            marked += 1


def rules_of(sheet: str) -> list[StyleRule]:
    """The rules for single elements that hide, or may take that back, in order."""
    rules: list[StyleRule] = []
    for selectors, body in _blocks(COMMENT.sub("", sheet[:MOST_CHARACTERS])):
        hiding = hides(body)
        if not hiding and not shows(body):
            continue
        for selector in selectors.split(","):
            found = SELECTOR.fullmatch(selector.strip())
            if found and len(rules) < MOST_RULES:
                names = frozenset(sign + name for sign, name in NAME.findall(found[2]))
                rules.append(StyleRule((found[1] or "").lower(), names, hiding))
    return rules


def _is_for_screens(element: Element) -> bool:
    return (element.get("media") or "all").strip().lower() in {"all", "screen"}


def _blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of each rule outside of blocks for print, small screens and the like."""
    before: list[str] = []
    skipped = 0
    open_blocks = max(0, sheet.count("{") - sheet.count("}"))
    for match in PIECE.finditer(sheet + "}" * open_blocks):
        text, sign = match.groups()
        if sign == "{":
            selectors = text.rpartition(";")[2].strip()
            skipped += selectors.startswith("@") and not FOR_SCREENS.fullmatch(selectors)
            before.append(selectors)
        elif before:
            selectors = before.pop()
            if selectors.startswith("@"):
                skipped -= not FOR_SCREENS.fullmatch(selectors)
            elif not skipped:
                yield selectors, text


def _is_hidden_by(element: Element, by_name: dict[str, list[tuple[int, StyleRule]]]) -> bool:
    classes, identity = element.get("class"), element.get("id")
    if element.tag in NEVER_HIDDEN or not (classes or identity):
        return False
    names = {f".{name}" for name in (classes or "").split()} | ({f"#{identity}"} if identity else set())
    fitting = [
        (rule.weight, place, rule)
        for name in names
        for place, rule in by_name.get(name, ())
        if rule.names <= names and rule.tag in {"", element.tag}
    ]
    return bool(fitting) and max(fitting, key=lambda entry: entry[:2])[2].hiding
