"""The style sheets of a page: those of their rules that may decide what is seen, by tinycss2 and cssselect2."""

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final, NamedTuple

import tinycss2  # type: ignore[import-untyped]
from cssselect2 import Matcher, SelectorError, compile_selector_list  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.html.hiding import AWAY
from providers.reading.html.media import applies
from providers.reading.html.styles import Stated, read_declarations

MOST_CHARACTERS: Final = 1_000_000
"""Of all rules that may concern a page."""
MOST_SELECTORS: Final = 10_000
TOO_LARGE: Final = "its style sheets are too large, or nested too deep, to tell what readers see"
MOST_OPEN: Final = 64
"""Blocks inside one another."""
LONGEST_SELECTOR: Final = 5_000
LOOKS: Final = frozenset(
    ("visibility", "opacity", "color", "-webkit-text-fill-color", "background", "background-color", "background-image",
     "background-clip", "-webkit-background-clip", "font", "font-size", "position", "text-shadow", "mix-blend-mode",
     "color-scheme")
)  # fmt: skip
JUDGED: Final = LOOKS | AWAY
"""The properties that decide."""
MARKUP: Final = re.compile(r"<!--|-->")
"""What hid style sheets from the first browsers."""
PLAIN_RULE: Final = re.compile(r"(?:\A|(?<=[{};]))([\w\s.#,>+~*:-]++)\{([^{}\"'\\@]*+)\}")
"""Without strings, comments, brackets or blocks: wherever it stands, what is around it stays whole without it."""
PROPERTY: Final = re.compile(
    r"(?:\A|[;\s])(?:--|(?:" + "|".join(sorted(JUDGED, key=len, reverse=True)) + r")\s*+:)", re.IGNORECASE
)
NAME: Final = re.compile(r"[.#]([\w-]++)")
UNLAYERED: Final = 1_000_000


class Rule(NamedTuple):
    """What a selector states; rules of a higher layer win."""

    number: int
    layer: int
    stated: tuple[Stated, ...]


class Sheets:
    """All rules of a page's own sheets that concern it. Raises `SourceUnreadable` too_large."""

    def __init__(self, texts: Iterable[str], known: AbstractSet[str]) -> None:
        self.matcher = Matcher()
        self.selectors = 0
        self.imports = False
        """Whether they refer to sheets elsewhere."""
        self.paints = False
        """Whether they give something a ground."""
        self.stated: list[tuple[Stated, ...]] = []
        """What each rule states."""
        self._known = known
        self._found: list[tuple[str, int, list[Stated]]] = []
        self._layers: dict[str, int] = {}
        needed = [PLAIN_RULE.sub(self._keep_needed, MARKUP.sub(" ", text)) for text in texts]
        if sum(map(len, needed)) > MOST_CHARACTERS:
            raise SourceUnreadable("too_large", TOO_LARGE)
        try:
            for text in needed:
                nodes = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
                self._collect(nodes, None, "", 0)
            self._add_rules()
        except RecursionError as error:
            raise SourceUnreadable("too_large", TOO_LARGE) from error

    def _keep_needed(self, rule: re.Match[str]) -> str:
        """The text of a rule, if the page may have use for it: parsing and compiling cost a thousand times more."""
        selector, body = rule[1], rule[2]
        if "/*" in body or ("(" in body.replace("()", "") and body.count("(") != body.count(")")):
            return rule[0]
        if PROPERTY.search(body) is None:
            return ""
        return rule[0] if any(self._known >= set(NAME.findall(part)) for part in selector.split(",")) else ""

    def _collect(self, nodes: list[Any], outer: str | None, layer: str, depth: int) -> None:
        if depth > MOST_OPEN:
            raise SourceUnreadable("too_large", TOO_LARGE)
        for node in nodes:
            if node.type == "qualified-rule":
                self._rule(node, outer, layer, depth)
            elif node.type == "at-rule":
                self._at_rule(node, outer, layer, depth)

    def _rule(self, node: Any, outer: str | None, layer: str, depth: int) -> None:
        selectors = _selectors(node.prelude, outer)
        if selectors:
            self._add(selectors, *read_declarations(node.content, JUDGED.__contains__), layer, depth)

    def _add(self, selectors: list[str], stated: list[Stated], inside: list[Any], layer: str, depth: int) -> None:
        if stated:
            self._found += [(text, self._layer(layer), stated) for text in selectors]
        if inside:
            self._collect(inside, ",".join(selectors), layer, depth + 1)

    def _add_rules(self) -> None:
        """Take the rules in their order. What a later rule of the same selector states again no longer counts."""
        again: dict[tuple[str, int], set[tuple[str, bool]]] = {}
        rules: list[tuple[str, int, tuple[Stated, ...]]] = []
        for selector, layer, stated in reversed(self._found):
            later = again.setdefault((selector, layer), set())
            counting = tuple(one for one in stated if (one.name, one.important) not in later)
            later.update((one.name, one.important) for one in stated)
            if counting:
                rules.append((selector, layer, counting))
        for selector, layer, counting in reversed(rules):
            self._add_rule(selector, layer, counting)

    def _add_rule(self, text: str, layer: int, stated: tuple[Stated, ...]) -> None:
        self.stated.append(stated)
        self.paints |= any(one.name.startswith("background") for one in stated)
        for selector in compile_selectors(text):
            if selector.pseudo_element is None:
                self.selectors += 1
                if self.selectors > MOST_SELECTORS:
                    raise SourceUnreadable("too_large", TOO_LARGE)
                self.matcher.add_selector(selector, Rule(len(self.stated), layer, stated))

    def _at_rule(self, node: Any, outer: str | None, layer: str, depth: int) -> None:
        name, prelude = node.lower_at_keyword, tinycss2.serialize(node.prelude).strip()
        self.imports |= name == "import"
        if name == "layer":
            for one in (prelude or f"({len(self._layers)})").split(","):
                inner = f"{layer}.{one.strip()}"
                self._layer(inner)
            layer = inner if node.content is not None else layer
        if len(prelude) > LONGEST_SELECTOR:
            raise SourceUnreadable("too_large", TOO_LARGE)
        if node.content is None or not applies(f"@{name} {prelude}"):
            return
        if name == "scope" and prelude:
            outer = " ".join(filter(None, (outer, f":is{prelude.partition(' to ')[0]}")))
        if outer is None:
            nodes = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
            self._collect(nodes, None, layer, depth + 1)
        else:
            self._add([outer], *read_declarations(node.content, JUDGED.__contains__), layer, depth + 1)

    def _layer(self, name: str) -> int:
        return self._layers.setdefault(name, len(self._layers)) if name else UNLAYERED


def _selectors(prelude: list[Any], outer: str | None) -> list[str]:
    """The selectors of a rule, in the place of those around it."""
    parts: list[list[Any]] = [[]]
    for node in prelude:
        if node == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    written = [tinycss2.serialize(part).strip() for part in parts]
    if outer is None:
        return [text for text in written if text]
    around = f":is({outer})" if "," in outer else outer
    found = [text.replace("&", around) if "&" in text else f"{around} {text}" for text in written if text]
    if sum(map(len, found)) > LONGEST_SELECTOR:
        raise SourceUnreadable("too_large", TOO_LARGE)
    return found


@lru_cache(maxsize=10_000)
def compile_selectors(text: str) -> tuple[Any, ...]:
    """A selector ready to be tried; none for one that is wrong or not known. Raises `SourceUnreadable` too_large."""
    try:
        return tuple(compile_selector_list(text))
    except SyntaxError as error:  # what Python says of too many brackets in one another
        raise SourceUnreadable("too_large", TOO_LARGE) from error
    except (SelectorError, NotImplementedError, ValueError):
        return ()
