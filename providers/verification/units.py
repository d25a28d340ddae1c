"""Units with their factors, scales, months and small words, as seven languages write them (`words.toml`)."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Final

Readings = tuple[float, ...]
"""Factors to the base unit; several where a name has more than one meaning (kB is 1,000 or 1,024 bytes)."""

_DATA: Final = tomllib.loads(files(__package__ or "").joinpath("words.toml").read_text(encoding="utf-8"))
_BYTES: Final = (("k", "kilo", "kibi"), ("M", "mega", "mebi"), ("G", "giga", "gibi"), ("T", "tera", "tebi"),
                 ("P", "peta", "pebi"), ("E", "exa", "exbi"))  # fmt: skip


def _by_name(table: Mapping[str, str], separator: str | None = "|") -> dict[str, str]:
    """Turn a table of names around: each name → its kind."""
    return {name: kind for kind, names in table.items() for name in names.replace("|\n", "|").split(separator)}


def _byte_rows() -> Iterable[tuple[str, str, Readings]]:
    for power, (sign, decimal, binary) in enumerate(_BYTES, start=1):
        yield f"{sign}B|{decimal}byte|{decimal}bytes", "byte", (1000.0**power, 1024.0**power)
        yield f"{sign}iB|{binary}byte|{binary}bytes", "byte", (1024.0**power,)
        yield f"{sign}bit|{sign}bps|{sign}bit/s|{decimal}bit|{decimal}bits", "bit", (1000.0**power,)


def _prefixed(names: str, unit: str) -> Iterable[tuple[str, str, Readings]]:
    """Give a unit by its sign and names, alone and by the thousand, million, billion and trillion."""
    sign, *words = names.split("|")
    yield names, unit, (1.0,)
    for power, (short, prefix, _) in enumerate(_BYTES[:4], start=1):
        yield "|".join([short + sign, *(prefix + word for word in words)]), unit, (1000.0**power,)


UNITS: Final[dict[str, tuple[str, Readings]]] = {
    name.casefold(): (unit, factors)
    for names, unit, factors in (
        *((names, unit, tuple(factors)) for names, unit, *factors in _DATA["units"]),
        *_byte_rows(),
        *_prefixed("w|watt|watts", "watt"),
        *_prefixed("wh|watt hours|wattstunden", "watt hour"),
        *_prefixed("hz|hertz", "hertz"),
    )
    for name in names.split("|")
}
"""A name in small letters → the base unit, and the factors to it."""
MONEY: Final = frozenset(("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY"))
MONEY_SUFFIXES: Final = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
"""Letters that scale an amount of money: $5m are no metres."""
LONGEST_UNIT: Final = 3  # words in the longest name of a unit
SCALES: Final[dict[str, float]] = {
    name: factor for names, factor in _DATA["scales"].items() for name in names.split("|")
}
MONTHS: Final = {name: number for number, names in enumerate(_DATA["months"], start=1) for name in names.split("|")}
NUMBER_WORDS: Final = {
    language: {
        word: float(value)
        for word, value in zip(words.split(), (*range(21), *range(30, 100, 10)), strict=True)
        if word != "-"
    }
    for language, words in _DATA["counted"].items()
}
"""Language → word → number."""
SHARES: Final[frozenset[str]] = frozenset(_DATA["shares"].split())
"""Words for a part of a whole, which a claim may give in per cent."""
COMPARATORS: Final = _by_name(_DATA["comparators"])  # words before a number → how they bound it
SIGNS: Final = _by_name(_DATA["signs"], None)  # small words that turn, weaken or widen a statement → their kind
