"""Texts that a pattern is slow on, if any are: made from the parsed pattern itself."""

import re
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, NamedTuple

PARSER: Any = re._parser  # type: ignore[attr-defined]
COMPILER: Any = re._compiler  # type: ignore[attr-defined]
REPEATS = {PARSER.MAX_REPEAT, PARSER.MIN_REPEAT, PARSER.POSSESSIVE_REPEAT}
COMMON = " \n\t\r<>[](){}\"'`*#=-_.,:;/\\|~!?&%@+a0Zé　。"
"""What every pattern is tried with, beside the characters that it names."""
FEW = 64
"""Characters from one place that no growth is worth looking for."""
NEVER = "\ue000"
"""A character that few patterns accept, so that a match fails behind it."""
MOST_LETTERS = 14
MOST_SAMPLES = 6
MOST_PAIRS = 50
MOST_OPENINGS = 4


class Pump(NamedTuple):
    """One family of texts: an opening, a part that is repeated, an end."""

    opening: str
    part: str
    end: str

    def text(self, size: int) -> str:
        """The text of about `size` characters."""
        room = size - len(self.opening) - len(self.end)
        return self.opening + self.part * max(1, room // len(self.part)) + self.end


def pumps_of(pattern: str | bytes, flags: int) -> list[Pump]:
    """Every pump for a pattern, the same for the same pattern; none for one that looks at a few characters only."""
    reader = _Reader(pattern, flags)
    if reader.reach <= FEW:
        return []
    return list(dict.fromkeys(pump for pump in reader.pumps() if pump.part))


class _Reader:
    """The parsed pattern, and the letters that it tells apart."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._text = isinstance(pattern, str)
        self._tree = PARSER.parse(pattern, flags & ~re.DEBUG)
        self._flags = self._tree.state.flags
        self._accepting: list[Callable[[str], bool]] = []
        named: list[str] = []
        self._single(self._tree, named)
        pool = dict.fromkeys([*named, *COMMON, NEVER, "\0"] if self._text else [*named, *COMMON, "\0", "\xff"])
        if not self._text:
            pool = {letter: None for letter in pool if ord(letter) < 256}
        kinds: dict[tuple[bool, ...], str] = {}
        for letter in pool:
            kinds.setdefault(tuple(accepts(letter) for accepts in self._accepting), letter)
        self.reach = _reach(self._tree)
        letters = dict.fromkeys([*islice(kinds.values(), MOST_LETTERS), *" \n<["])
        self._popularity = {letter: sum(accepts(letter) for accepts in self._accepting) for letter in letters}
        self._letters = list(letters)
        odd = min(set(letters) - {"\n"}, key=lambda letter: (self._popularity[letter], letter))
        lines = ["\n", "\n" + odd] if "\n" in named or self._has_lines(self._tree) else []
        self._ends = ["", odd, *lines]

    def pumps(self) -> Iterator[Pump]:
        """Single letters, pairs of letters, then every repeat behind what stands before it."""
        for letter, end in product(self._letters, self._ends):
            yield Pump("", letter, end)
        for first, second in islice(product(self._letters, repeat=2), MOST_PAIRS):
            yield Pump("", first + second, "")
        for openings, parts in self._repeats(self._tree, [""]):
            for opening in openings:
                if opening:
                    yield Pump("", opening, self._ends[1])
                    yield Pump("", opening + "\n", "")
                for part in parts:
                    for end in self._ends:
                        yield Pump(opening, part, end)
                    if opening:
                        yield Pump("", opening + part, "")
                        yield Pump("", opening + part * 40, self._ends[1])

    def _has_lines(self, tree: Any) -> bool:
        """Whether the ends of lines matter to the pattern."""
        return any(node[0] in {PARSER.AT, PARSER.ANY} or any(map(self._has_lines, _parts(node))) for node in tree)

    def _single(self, tree: Any, named: list[str]) -> None:
        """Collect what decides about one character, and the characters that the pattern names."""
        for node in tree:
            operation, value = node
            if operation in {PARSER.LITERAL, PARSER.NOT_LITERAL, PARSER.IN, PARSER.ANY}:
                self._accepting.append(self._test_of(node))
                for inner, bound in value if operation is PARSER.IN else [] if operation is PARSER.ANY else [node]:
                    if inner in {PARSER.LITERAL, PARSER.NOT_LITERAL}:
                        named.append(chr(bound))
                    elif inner is PARSER.RANGE:
                        named.extend(map(chr, bound))
            for part in _parts(node):
                self._single(part, named)

    def _test_of(self, node: Any) -> Callable[[str], bool]:
        compiled = COMPILER.compile(PARSER.SubPattern(self._tree.state, [node]), self._flags)
        if self._text:
            return lambda letter: compiled.fullmatch(letter) is not None
        return lambda letter: compiled.fullmatch(letter.encode("latin-1")) is not None

    def _samples(self, tree: Any) -> list[str]:
        """A few texts that a part of the pattern matches, the shortest first."""
        found = [""]
        for node in tree:
            found = [before + after for before, after in product(found, self._node_samples(node))]
            found = found[: MOST_SAMPLES * 2]
        return list(dict.fromkeys(found))[:MOST_SAMPLES]

    def _node_samples(self, node: Any) -> list[str]:
        operation, value = node
        if operation in {PARSER.LITERAL, PARSER.NOT_LITERAL, PARSER.IN, PARSER.ANY}:
            accepts = self._test_of(node)
            named = [chr(value)] if operation is PARSER.LITERAL else []
            odd_first = sorted(filter(accepts, self._letters), key=self._popularity.__getitem__)
            return list(dict.fromkeys([*named, *odd_first])) or [""]
        if operation in REPEATS:
            least, most, body = value
            inner = self._samples(body)
            if least == 0:
                return ["", *inner[:2], *(part * 2 for part in inner[:1] if most > 1)]
            return [part * least for part in inner]
        if operation is PARSER.BRANCH:
            return [sample for branch in value[1] for sample in self._samples(branch)[:2]] or [""]
        if operation is PARSER.ASSERT and value[0] < 0:
            return self._samples(value[1])[:2]
        if operation in {PARSER.SUBPATTERN, PARSER.ATOMIC_GROUP}:
            return self._samples(_parts(node)[0])
        return [""]

    def _repeats(self, tree: Any, before: list[str]) -> Iterator[tuple[list[str], list[str]]]:
        """Each repeat of the pattern: what may stand before it, and what it repeats."""
        for node in tree:
            operation, value = node
            if operation in REPEATS:
                yield before, self._bodies(value[2])
            for part in _parts(node):
                yield from self._repeats(part, before)
            after = self._node_samples(node)
            some = next(filter(None, after), "")
            lean, rich = before[0] + after[0], before[min(1, len(before) - 1)] + some
            others = [opening + sample for sample, opening in product(after[1:], before)]
            before = list(dict.fromkeys([lean, rich, *others]))[:MOST_OPENINGS]

    def _bodies(self, body: Any) -> list[str]:
        if len(body) == 1 and body[0][0] in {PARSER.IN, PARSER.ANY, PARSER.NOT_LITERAL, PARSER.LITERAL}:
            return self._node_samples(body[0])
        return list(dict.fromkeys([*self._samples(body), *self._longer(body)]))[: MOST_SAMPLES * 2]

    def _longer(self, body: Any) -> Iterator[str]:
        """Each branch of a repeated part by itself."""
        for node in body:
            if node[0] is PARSER.BRANCH:
                for branch in node[1][1]:
                    yield from self._samples(branch)[:2]
            elif node[0] is PARSER.SUBPATTERN:
                yield from self._longer(_parts(node)[0])


def _parts(node: Any) -> list[Any]:
    """The patterns inside a node of the parsed pattern."""
    operation, value = node
    if operation in REPEATS:
        return [value[2]]
    if operation is PARSER.BRANCH:
        return list(value[1])
    if operation is PARSER.SUBPATTERN:
        return [value[3]]
    if operation is PARSER.ATOMIC_GROUP:
        return [value]
    if operation in {PARSER.ASSERT, PARSER.ASSERT_NOT}:
        return [value[1]]
    if operation is PARSER.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    return []


def _reach(tree: Any) -> float:
    """How often a pattern may try a character from one place, at most."""
    total = 1.0
    for operation, value in tree:
        inside = [_reach(part) for part in _parts((operation, value))]
        most = float("inf") if operation in REPEATS and value[1] is PARSER.MAXREPEAT else 1.0
        if operation in REPEATS and most == 1.0:
            most = float(value[1])
        total *= max(1.0, most) * max([1.0, *inside])
    return total
