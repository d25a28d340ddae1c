"""Numbers that follow from numbers of the passages: sums, differences, per cents, ratios, with how they follow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from providers.verification.quantities import Quantity

PER_CENT: Final = "%"
TIMES: Final = ("times", "fold", "mal", "fois", "veces")
MOST: Final = 12
"""Quantities of the passages that are combined: more would make anything follow."""
ROUNDING: Final = 0.005
"""Relative difference that rounding explains."""


@dataclass(frozen=True)
class Derivation:
    """How a number of a claim follows from two of its passages."""

    raw: str
    formula: str
    inputs: tuple[str, str]

    @property
    def reason(self) -> str:
        """One sentence for a reader."""
        return f"“{self.raw}” follows from “{self.inputs[0]}” and “{self.inputs[1]}”: {self.formula}."


def derive(wanted: Quantity, there: Sequence[Quantity]) -> Derivation | None:
    """The first way in which a quantity follows from two of one kind; None if there is none."""
    known = [other for other in there if other.values and not other.is_year][:MOST]
    for one, other in permutations(known, 2):
        if one.unit == other.unit and (one.unit or one.noun == other.noun or wanted.unit == PER_CENT):
            for formula, value in _results(wanted, one, other):
                if any(_equal(value, own) for own in wanted.values):
                    return Derivation(wanted.raw, formula, (one.raw, other.raw))
    return None


def _results(wanted: Quantity, one: Quantity, other: Quantity) -> Iterator[tuple[str, float]]:
    first, second = one.values[0], other.values[0]
    if wanted.unit == PER_CENT and one.unit != PER_CENT and second:
        yield f"({one.raw} - {other.raw}) / {other.raw}", 100 * abs(first - second) / abs(second)
        yield f"{one.raw} / {other.raw}", 100 * first / second
    if wanted.noun in TIMES and second:
        yield f"{one.raw} / {other.raw}", first / second
    if wanted.unit == one.unit and (wanted.unit or wanted.noun == one.noun):
        yield f"{one.raw} + {other.raw}", first + second
        yield f"{one.raw} - {other.raw}", first - second


def _equal(value: float, stated: float) -> bool:
    return abs(value - stated) <= max(ROUNDING * abs(stated), 0.5 if float(stated).is_integer() and stated > 9 else 0.0)
