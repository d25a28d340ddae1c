"""Rules in a page's own style sheets that hide elements: such elements are marked as hidden.

Only what a page states itself counts, and only selectors of names (`html_selectors`). Nothing is hidden by rules that
hold for most of the page, for many sites hide all of it until their scripts run.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from providers.reading.html_grounds import mark_unreadable
from providers.reading.html_hiding import JUDGED, hidden_by
from providers.reading.html_media import applies
from providers.reading.html_rules import DROPPED, Element, is_hidden
from providers.reading.html_selectors import Selector, Steps, names_from, selector_of, stands_in
from providers.reading.html_styles import COMMENT, declarations_of, stated_in, winners

MOST_SHEETS: Final = 20
MOST_CHARACTERS: Final = 100_000
"""Of one sheet."""
MOST_RULES: Final = 10_000
"""Of those that may concern the page."""
MOST_OPEN: Final = 64
"""Blocks inside one another; what stands deeper is not read, nor what follows it."""
MOST_STEPS: Final = 1_000_000
"""Rules times elements: what goes beyond is not looked at."""
INHERITED: Final = frozenset(("color", "-webkit-text-fill-color", "font", "font-size", "visibility"))
NEVER_HIDDEN: Final = frozenset(("html", "body", "main"))
LONGEST_SELECTORS: Final = 5_000
PIECE: Final = re.compile(r"[{}]|[^{}\"'\\]++|\\.|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|\\", re.DOTALL)
MARKUP: Final = re.compile(r"<!--|-->")
"""What hid style sheets from the first browsers."""

Stated = tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True)
class StyleRule:
    """A selector with those of its declarations that may hide, or take that back."""

    selector: Selector
    stated: Stated


@dataclass
class _Block:
    """An open block: what its declarations are for, null for blocks of rules; and what has been read of it."""

    selectors: str | None
    skipped: bool
    read: list[str] = field(default_factory=list)


def mark_hidden(root: Element) -> None:
    """Give every element that its page's own style sheets or colours hide the attribute `hidden`."""
    mark_unreadable(root)
    sheets = [element.text or "" for element in root.iter("style") if applies(element.get("media") or "all")]
    if not sheets:
        return
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    known: set[str] = set()
    for element in elements:
        known.add(element.tag)
        known.update(_names(element))
    rules = [rule for sheet in sheets[:MOST_SHEETS] for rule in rules_of(sheet, known)][:MOST_RULES]
    if any(hidden_by(winners([*rule.stated])) for rule in rules):
        _mark(elements, _Cascade(rules))


def rules_of(sheet: str, known: AbstractSet[str] | None = None) -> list[StyleRule]:
    """The rules that may hide, or take that back, in order; those alone that a page with these names has use for."""
    rules: list[StyleRule] = []
    for selectors, body in _blocks(MARKUP.sub(" ", COMMENT.sub(" ", sheet[:MOST_CHARACTERS]))):
        stated = tuple(entry for entry in stated_in(body) if entry[0] in JUDGED)
        if not stated:
            continue
        for written in selectors.split(","):
            selector = selector_of(written)
            if selector is None or (known is not None and not selector.is_within(known)):
                continue
            rules.append(StyleRule(selector, stated))
            if len(rules) >= MOST_RULES:
                return rules
    return rules


def _blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of each rule outside of blocks for print, small screens and the like."""
    open_blocks = [_Block(None, skipped=False)]
    for piece in PIECE.findall(sheet):
        if piece == "{":
            if len(open_blocks) > MOST_OPEN:
                break
            open_blocks.append(_opened(open_blocks[-1]))
        elif piece != "}":
            open_blocks[-1].read.append(piece)
        elif len(open_blocks) > 1:
            yield from _closed(open_blocks.pop())
    while len(open_blocks) > 1:
        yield from _closed(open_blocks.pop())


def _opened(outer: _Block) -> _Block:
    """The block that begins after what was read last of another."""
    before, semicolon, prelude = "".join(outer.read).rpartition(";")
    outer.read = [before, semicolon] if outer.selectors is not None else []
    prelude = prelude.strip()
    if prelude.startswith("@"):
        return _Block(None, outer.skipped or outer.selectors is not None or not applies(prelude))
    if outer.selectors is None:
        return _Block(prelude, outer.skipped)
    inside = prelude.replace("&", outer.selectors) if "&" in prelude else f"{outer.selectors} {prelude}"
    unclear = "," in outer.selectors or "," in prelude or len(inside) > LONGEST_SELECTORS
    return _Block("" if unclear else inside, outer.skipped or unclear)


def _closed(block: _Block) -> Iterator[tuple[str, str]]:
    if block.selectors and not block.skipped:
        yield block.selectors, "".join(block.read)


class _Looks(NamedTuple):
    """What is made of all that is stated for an element."""

    rules: int
    """The number of the set of rules that hold, 0 for none."""
    hidden: bool
    letters_alone: bool
    """What hides is taken over by the elements inside, which may state otherwise."""
    restated: bool
    """Its letters do not look like those around, and are seen."""


PLAIN: Final = _Looks(0, hidden=False, letters_alone=False, restated=False)


def _looks(rules: int, values: Mapping[str, str]) -> _Looks:
    hidden = hidden_by(values)
    letters_alone = hidden and not hidden_by({name: value for name, value in values.items() if name not in INHERITED})
    return _Looks(rules, hidden, letters_alone, not hidden and not values.keys().isdisjoint(INHERITED))


class _Cascade:
    """What is stated for an element: by the rules that hold for it, and by its own style."""

    def __init__(self, rules: list[StyleRule]) -> None:
        self._rules = sorted(rules, key=lambda rule: rule.selector.weight)
        self._by_key: dict[str, list[int]] = defaultdict(list)
        for place, rule in enumerate(self._rules):
            self._by_key[rule.selector.parts[-1].key].append(place)
        self._fitting: dict[tuple[str, frozenset[str]], tuple[int, list[int]]] = {}
        self._sets: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._looks: dict[tuple[int, str], _Looks] = {}
        self._steps = Steps(MOST_STEPS)

    def looks(self, element: Element) -> _Looks:
        """How an element looks by the rules that hold for it and by its own style."""
        if not isinstance(element.tag, str):
            return PLAIN
        rules, own = self._holding(element), element.get("style") or ""
        if not rules:
            return _looks(0, declarations_of(own)) if own else PLAIN
        if (rules, own) not in self._looks:
            stated = [entry for place in self._sets[rules] for entry in self._rules[place].stated]
            self._looks[rules, own] = _looks(rules, winners(stated + stated_in(own)))
        return self._looks[rules, own]

    def is_taken_back(self, element: Element) -> bool:
        """Whether something inside has letters of its own that are seen; in doubt it has."""
        for inner in element.iterdescendants():
            self._steps.left -= 1
            if self._steps.left < 0 or self.looks(inner).restated:
                return True
        return False

    def _holding(self, element: Element) -> int:
        """The number of the set of rules that hold; most elements share theirs with others of the same names."""
        names, tag = _names(element), element.tag
        if (tag, names) not in self._fitting:
            self._fitting[tag, names] = self._fit(tag, names)
        alone, perhaps = self._fitting[tag, names]
        if not perhaps or self._steps.left <= 0:
            return alone
        self._steps.left -= len(perhaps) + len(self._sets[alone])
        parts = ((place, self._rules[place].selector.parts) for place in perhaps)
        found = [place for place, within in parts if stands_in(element, within, self._steps)]
        return self._number((*self._sets[alone], *found)) if found and self._steps.left > 0 else alone

    def _fit(self, tag: str, names: frozenset[str]) -> tuple[int, list[int]]:
        """The set of rules for elements with these names, and those that ask what stands around as well."""
        perhaps = [place for key in (*names, tag, "") for place in self._by_key.get(key, ())]
        self._steps.left -= len(perhaps)
        if self._steps.left < 0:
            return 0, []
        fitting = [place for place in perhaps if self._rules[place].selector.parts[-1].fits(tag, names)]
        inside = [place for place in fitting if len(self._rules[place].selector.parts) > 1]
        return self._number(tuple(set(fitting) - set(inside))), inside

    def _number(self, places: tuple[int, ...]) -> int:
        """A short name for a set of rules; the stronger ones are the last."""
        ordered = tuple(sorted(places))
        if ordered not in self._numbers:
            self._numbers[ordered] = len(self._sets)
            self._sets.append(ordered)
        return self._numbers[ordered]


def _names(element: Element) -> frozenset[str]:
    return names_from(element.get("class") or "", element.get("id") or "")


def _mark(elements: list[Element], cascade: _Cascade) -> None:
    """Hide what rules hide, unless those that hide it together hide more than half of what the page says."""
    sizes = _sizes(elements)
    found: dict[int, list[tuple[Element, bool]]] = defaultdict(list)
    hidden: Counter[int] = Counter()
    inside: set[Element] = set()
    for element in elements:
        if element.getparent() in inside:
            inside.add(element)
            continue
        rules, is_hidden_here, letters_alone, _ = cascade.looks(element)
        if not rules or element.tag in NEVER_HIDDEN or not is_hidden_here:
            continue
        whole = not letters_alone or not cascade.is_taken_back(element)
        found[rules].append((element, whole))
        hidden[rules] += sizes[element]
        if whole:
            inside.add(element)
    most = sizes[elements[0]] // 2
    for rules, hidden_elements in found.items():
        for element, whole in hidden_elements if hidden[rules] <= most else ():
            if whole:
                element.set("hidden", "")
            else:
                _clear_letters(element, cascade)


def _clear_letters(element: Element, cascade: _Cascade) -> None:
    """Take out the words of an element but for those inside that are seen again."""
    waiting = [element]
    while waiting:
        outer = waiting.pop()
        outer.text = None
        for inner in outer:
            inner.tail = None
            if not cascade.looks(inner).restated:
                if cascade.is_taken_back(inner):
                    waiting.append(inner)
                else:
                    inner.set("hidden", "")


def _sizes(elements: list[Element]) -> Counter[Element]:
    """Characters that each element shows, its descendants' among them."""
    sizes: Counter[Element] = Counter()
    for element in reversed(elements):
        shown = element.tag not in DROPPED and not is_hidden(element)
        sizes[element] = sizes[element] + len(element.text or "") if shown else 0
        parent = element.getparent()
        if parent is not None:
            sizes[parent] += sizes[element] + len(element.tail or "")
    return sizes
