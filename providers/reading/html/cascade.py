"""What readers of a page do not see by its own styles and colours: it is marked as hidden, or emptied.

Every element gets the values that browsers would compute for the few properties which decide: by its page's own sheets,
its attributes, and what it takes over from those around it. No layout is computed. Sheets elsewhere are not known:
where a page refers to some, elements with names may stand on any ground.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from cssselect2 import ElementWrapper  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]

from providers.reading.html.computed import START, State, compute_state, resolve_variables, variables_of
from providers.reading.html.hiding import puts_away
from providers.reading.html.media import applies
from providers.reading.html.sheets import JUDGED, UNLAYERED, Sheets
from providers.reading.html.styles import (
    WHITE,
    Stated,
    TooDeepError,
    alike,
    color_of,
    read_declarations,
)

Element = Any
OF_SHEETS: Final = etree.XPath("//style[not(ancestor::noscript or ancestor::template)]")
ELSEWHERE: Final = etree.XPath("boolean(//link[contains(@rel, 'stylesheet') or contains(@rel, 'STYLESHEET')])")
SCRIPTS: Final = etree.XPath("boolean(//script)")
NAMES: Final = etree.XPath("//@class | //@id", smart_strings=False)
STYLES: Final = etree.XPath("//@style", smart_strings=False)
LETTERS: Final = etree.XPath("//@color | //@text", smart_strings=False)
GROUNDS: Final = etree.XPath("//@bgcolor", smart_strings=False)
PICTURES: Final = etree.XPath(
    "boolean(.//img | .//svg | .//video | .//canvas | .//picture | .//object | .//*[contains(@style, 'background')])"
)
PASSED_OVER: Final = frozenset("script style noscript template head svg".split())
WHOLE_PAGE: Final = frozenset(("html", "body"))
LITTLE_LESS: Final = 0.9
MOST_PAIRS: Final = 10_000
LEAST_SEEN: Final = 1_000
"""Characters: a page that shows less without a rule, and has scripts, may wait for them to take the rule back."""
COLORED_GROUNDS: Final = frozenset("body table thead tbody tfoot tr td th".split())
LINK: Final = "#0000ee"
LONGEST_KEPT: Final = 500
"""Characters of a style that is kept as it was read."""


def mark_hidden(root: Element) -> None:
    """Mark or empty all that readers of a page do not see by its styles."""
    texts = [sheet.text or "" for sheet in OF_SHEETS(root) if applies(sheet.get("media") or "all")]
    known = {name for names in NAMES(root) for name in names.split()} if texts else set()
    sheets = Sheets(texts, known)
    styles = [*sheets.stated, *map(_own, set(STYLES(root)))]
    styles += [_hints(color, "", "") for color in set(LETTERS(root))]
    styles += [_hints("", ground, "") for ground in set(GROUNDS(root))]
    if _may_hide(_values([(stated, OWN, (0, 0, 0), 0) for stated in style]) for style in styles if style):
        _Page(root, sheets).mark()


def _may_hide(styles: Iterable[Mapping[str, str]]) -> bool:
    """Whether any of these styles hides something, perhaps together with others; most pages have none that does."""
    colors, grounds = {START.color, color_of(LINK)}, {WHITE}
    for values in styles:
        if any(name.startswith("--") or "var(" in value for name, value in values.items()):
            return True
        state, larger = (compute_state(values, START._replace(size=size), {}) for size in (START.size, 10 * START.size))
        shrinks = state.size < LITTLE_LESS * START.size and state.size != larger.size
        if not state.seen or shrinks or state.opacity < LITTLE_LESS or puts_away({**values, "overflow": "hidden"}):
            return True
        colors.add(state.color)
        grounds.add(state.ground or WHITE)
    if len(colors) * len(grounds) > MOST_PAIRS:
        return True
    return any(color and alike(color.over(ground), ground) for color in colors for ground in grounds)


class _Wrapped(ElementWrapper):  # type: ignore[misc]
    """An element for selectors, whose surroundings are walked instead of copied: there may be many."""

    @property
    def ancestors(self) -> Iterator[ElementWrapper]:
        return _follow(self, "parent")

    @property
    def previous_siblings(self) -> Iterator[ElementWrapper]:
        return _follow(self, "previous")


def _follow(wrapped: ElementWrapper, name: str) -> Iterator[ElementWrapper]:
    while (wrapped := getattr(wrapped, name)) is not None:
        yield wrapped


class _Page:
    """The elements of a page that are not seen, and by which rules."""

    def __init__(self, root: Element, sheets: Sheets) -> None:
        self._root = root
        self._sheets = sheets
        self._elsewhere = sheets.imports or bool(ELSEWHERE(root))
        self._values: dict[Any, tuple[dict[str, str], frozenset[int]]] = {}
        self._pictures: dict[Element, bool] = {}
        self._given_up: set[frozenset[int]] = set()
        self._gone: list[Element] = []
        self._emptied: list[Element] = []

    def mark(self) -> None:
        """Find what is not seen; once more, without rules that a page which waits for its scripts will take back."""
        shown, hidden = self._walk()
        if SCRIPTS(self._root) and shown < LEAST_SEEN:
            self._given_up = {rules for rules, size in hidden.items() if rules and 2 * size > shown + hidden.total()}
            if self._given_up:
                self._walk()
        for element in self._gone:
            element.set("hidden", "")
            if element.tag in WHOLE_PAGE:
                _empty(element)
                for child in element:
                    child.set("hidden", "")
        for element in self._emptied:
            _empty(element)

    def _walk(self) -> tuple[int, Counter[frozenset[int] | None]]:
        """The number of characters that are seen, and of those that some rules hide; None are a page's attributes."""
        self._gone, self._emptied = [], []
        shown, hidden = 0, Counter[frozenset[int] | None]()
        wrapped = _Wrapped.from_html_root(self._root)
        waiting: list[tuple[Any, State]] = [(wrapped, START)]
        while waiting:
            wrapped, outer = waiting.pop()
            element = wrapped.etree_element
            if element.tag in PASSED_OVER or element.get("hidden") is not None:
                continue
            values, rules = self._values_of(wrapped)
            state, gone = self._state_of(element, values, rules, outer) if values else (outer, False)
            if self._elsewhere and state.ground is outer.ground and (element.get("class") or element.get("id")):
                state = state._replace(ground=None)
            if gone:
                self._gone.append(element)
                hidden[rules if element.tag in WHOLE_PAGE or not puts_away(_read_attributes(element)) else None] += sum(
                    map(len, element.itertext())
                )
                continue
            letters = _letters(element)
            if letters and not state.seen:
                self._emptied.append(element)
                hidden[state.rules] += letters
            else:
                shown += letters
            waiting += [(child, state) for child in reversed(list(wrapped.iter_children()))]
        return shown, hidden

    def _values_of(self, wrapped: _Wrapped) -> tuple[dict[str, str], frozenset[int]]:
        """The values that count for an element, the strongest last, and the rules they come from."""
        element = wrapped.etree_element
        matched = self._sheets.matcher.match(wrapped) if self._sheets.selectors else []
        attributes = _attributes(element)
        key = (tuple((specificity, rule.number) for specificity, _, _, rule in matched), attributes)
        if key not in self._values:
            entries = [(stated, UNLAYERED, (-1, 0, 0), 0) for stated in _hints(*attributes[1:])]
            entries += [
                (stated, rule.layer, specificity, order)
                for specificity, order, _, rule in matched
                for stated in rule.stated
            ]
            entries += [(stated, OWN, (0, 0, 0), 0) for stated in _own(attributes[0])]
            self._values[key] = _values(entries), frozenset(rule.number for _, _, _, rule in matched)
        return self._values[key]

    def _state_of(
        self, element: Element, values: dict[str, str], rules: frozenset[int], outer: State
    ) -> tuple[State, bool]:
        """What the letters of an element look like, and whether it is gone with all that is inside."""
        try:
            variables = variables_of(values, outer.variables)
            values = resolve_variables(values, variables)
        except TooDeepError:
            return outer, True
        if rules in self._given_up:
            return outer._replace(variables=variables), False
        state = compute_state(values, outer, variables)
        position = values.get("position")
        if position in {"absolute", "fixed"} and state.ground is outer.ground and self._has_pictures(outer.frame):
            state = state._replace(ground=None)
        if position not in {None, "static"}:
            state = state._replace(frame=element)
        if not state.seen and outer.seen:
            alone = compute_state(_read_attributes(element), outer, variables)
            state = state._replace(rules=rules if alone.seen or element.tag in WHOLE_PAGE else None)
        return state, puts_away(values)

    def _has_pictures(self, frame: Element) -> bool:
        """Whether something may lie under what is placed in an element."""
        frame = self._root if frame is None else frame
        if frame not in self._pictures:
            self._pictures[frame] = bool(PICTURES(frame)) or self._sheets.paints
        return self._pictures[frame]


OWN: Final = UNLAYERED + 1
"""Goes before all layers: an element's own style."""


def _attributes(element: Element) -> tuple[str, str, str, str]:
    """What an element says of its looks: style, colour of letters and ground, and whether a picture is the ground."""
    tag = element.tag
    color = element.get("color") if tag in {"font", "basefont"} else element.get("text") if tag == "body" else None
    ground = element.get("bgcolor") if tag in COLORED_GROUNDS else None
    picture = element.get("background") if tag in COLORED_GROUNDS else None
    if tag == "a" and element.get("href"):
        color = LINK
    return element.get("style") or "", color or "", ground or "", picture or ""


@lru_cache(maxsize=4_096)
def _hints(color: str, ground: str, picture: str) -> tuple[Stated, ...]:
    found = [("color", _old_color(color)), ("background-color", _old_color(ground))]
    found += [("background-image", "url(picture)")] if picture else []
    return tuple(Stated(name, value, important=False) for name, value in found if value)


def _old_color(value: str) -> str:
    """A colour of an attribute, whose sign may be missing."""
    value = value.strip().lower()
    return value if not value or color_of(value) else f"#{value}" if color_of(f"#{value}") else ""


def _own(style: str) -> tuple[Stated, ...]:
    return (_kept if len(style) <= LONGEST_KEPT else _read)(style) if ":" in style else ()


def _read(style: str) -> tuple[Stated, ...]:
    return tuple(read_declarations(style, JUDGED.__contains__)[0])


_kept: Final = lru_cache(maxsize=4_096)(_read)


def _read_attributes(element: Element) -> dict[str, str]:
    style, *others = _attributes(element)
    hints = [(stated, UNLAYERED, (-1, 0, 0), 0) for stated in _hints(*others)]
    return _values(hints + [(stated, OWN, (0, 0, 0), 0) for stated in _own(style)])


def _values(entries: list[tuple[Stated, int, Any, int]]) -> dict[str, str]:
    """The values that count, one for each property, from the weakest to the strongest."""

    def strength(entry: tuple[Stated, int, Any, int]) -> Any:
        stated, layer, specificity, order = entry
        turned = stated.important and layer < UNLAYERED
        # Among the important ones the first layer is the strongest, and what is in none the weakest of all sheets.
        rank = layer if not stated.important else (UNLAYERED - layer if turned else 0 if layer == UNLAYERED else OWN)
        return stated.important, rank, specificity, order

    found: dict[str, str] = {}
    for stated, *_ in sorted(entries, key=strength):
        found.pop(stated.name, None)
        found[stated.name] = stated.value
    return found


def _letters(element: Element) -> int:
    """Characters that stand in an element itself."""
    size = len(element.text.strip()) if element.text else 0
    for child in element:
        if child.tail:
            size += len(child.tail.strip())
    return size


def _empty(element: Element) -> None:
    """Take out the words of an element, but not those of the elements inside."""
    element.text = None
    for child in element:
        child.tail = None
