"""Numbers with units, amounts, dates and versions in a text, read so that different spellings can be compared.

Units, scales, months and small words are those of seven languages (`words.toml`).
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Final

Readings = tuple[float, ...]
"""Factors to the base unit; several if a name is ambiguous (kB is 1,000 or 1,024 bytes)."""

_DATA: Final = tomllib.loads(files(__package__ or "").joinpath("words.toml").read_text(encoding="utf-8"))
_BYTES: Final = (("k", "kilo", "kibi"), ("M", "mega", "mebi"), ("G", "giga", "gibi"), ("T", "tera", "tebi"),
                 ("P", "peta", "pebi"), ("E", "exa", "exbi"))  # fmt: skip


def _by_name(table: Mapping[str, str], separator: str | None = "|") -> dict[str, str]:
    """Invert a table of names: each name → its kind."""
    return {name: kind for kind, names in table.items() for name in names.replace("|\n", "|").split(separator)}


def _byte_rows() -> Iterable[tuple[str, str, Readings]]:
    for power, (symbol, decimal, binary) in enumerate(_BYTES, start=1):
        yield f"{symbol}B|{decimal}byte|{decimal}bytes", "byte", (1000.0**power, 1024.0**power)
        yield f"{symbol}iB|{binary}byte|{binary}bytes", "byte", (1024.0**power,)
        yield f"{symbol}bit|{symbol}bps|{symbol}bit/s|{decimal}bit|{decimal}bits", "bit", (1000.0**power,)


def _prefixed(names: str, unit: str) -> Iterable[tuple[str, str, Readings]]:
    """Yield a unit by its sign and names, plain and with the prefixes kilo, mega, giga and tera."""
    symbol, *unit_names = names.split("|")
    yield names, unit, (1.0,)
    for power, (short, prefix, _) in enumerate(_BYTES[:4], start=1):
        yield "|".join([short + symbol, *(prefix + word for word in unit_names)]), unit, (1000.0**power,)


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
"""Name of a unit in lower case → the base unit, and the factors to it."""
MONEY: Final = frozenset(("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY"))
MONEY_SUFFIXES: Final = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
"""Letters that scale an amount of money: $5m is not in metres."""
MIN_DOTTED: Final = 3  # characters of a unit that a point may join to its number
MAX_UNIT_WORDS: Final = 3  # words in the longest name of a unit
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
"""Words for a part of a whole, which a claim may express in per cent."""
COMPARATORS: Final = _by_name(_DATA["comparators"])  # words before a number → how they bound it
MODIFIERS: Final = _by_name(_DATA["signs"], None)  # small words that negate, weaken or widen a statement → their kind

TOKEN: Final = re.compile(
    r"\d++(?:[.,'’\u00a0\u202f ]\d{3}(?!\d))*+(?:[.,]\d++)*+|[^\W\d_]++(?:['’-][^\W\d_]++)*+[²2]?|[%€$£¥₹°µ≥≤<>~≈+−–-]"
)
AMBIGUOUS: Final = re.compile(r"\d{1,3}[.,]\d{3}(?![.,]?\d)")
VERSION: Final = re.compile(r"\d++(?:\.\d++){2,}+")
ISO_DATE: Final = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?:-(\d{2}))?(?![\d-])")
NUMERIC_DATE: Final = re.compile(r"(?<![\d./])(\d{1,2})[./](\d{1,2})[./](\d{4})(?![./]?\d)")
WRITTEN_DATE: Final = re.compile(
    r"(?:(?<![\d.,])(?P<before>\d{1,2})(?:st|nd|rd|th|[.º])?\s{1,3}(?:(?:of|de)\s{1,3})?)?"
    rf"(?<![^\W_])(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![^\W_])"
    r"(?:\.?\s{1,3}(?P<after>\d{1,2})(?:st|nd|rd|th)?(?![\d.:]\d))?"
    r"(?:[.,]?\s{1,3}(?:(?:of|de|del)\s{1,3})?(?P<year>1\d{3}|20\d\d|21\d\d)(?![^\W_]))?",
    re.IGNORECASE,
)
"""A day, a named month and a year; the day or the year may be missing."""
TIME: Final = re.compile(
    r"(?<![\d:.,])(\d{1,2})(?:[:.h](\d{2}))? ?(?:(am|a\.m|pm|p\.m)\b\.?|Uhr\b)|(?<![\d:.,])(\d{1,2}):(\d{2})(?![\d:])",
    re.IGNORECASE,
)
CLOCK: Final = "time"
DATE: Final = "date"
RELEASE: Final = "version"
GROUPS: Final = re.compile(r"[.,'’\u00a0\u202f ]")
CENT: Final = "cent"
FIRST_YEAR = 1000
LAST_YEAR = 2199
ABOUT_SHARE: Final = 0.05  # tolerance of a number that is called approximate
OVER_SHARE: Final = 0.15  # tolerance of `more than` and `almost`, on their side

OPPOSED: Final = frozenset((("min", "max"), ("min", "under"), ("over", "max"), ("over", "under")))


class Comparison(StrEnum):
    """Relation of two quantities."""

    EXACT = "exact"
    APPROXIMATE = "approximate"
    OPPOSED = "opposed"
    """The number is the same, once as a minimum and once as a maximum."""
    NONE = "mismatch"


ARTICLES: Final[Mapping[str, frozenset[str]]] = {"en": frozenset(("a", "an"))}
"""Words that are no unit after a number, although another language has such a unit: "in version 15 an index"."""


@dataclass(frozen=True)
class Quantity:
    """A number in a text at `text[start:end]`, in its base unit."""

    raw: str
    start: int
    end: int
    values: tuple[float, ...] = ()
    """Possible readings: `1.234` is one thing in Berlin and another in Boston."""
    unit: str = ""
    """The base unit; `date` and `version` have `forms` instead of values; empty for a plain number."""
    half_step: float = 0.5
    """Half of the place of the last written digit, in the base unit."""
    digits: int = 1
    """Significant digits as written."""
    comparator: str = ""
    forms: tuple[str, ...] = ()
    noun: str = ""
    """Word after the number, in lower case: the thing counted."""

    @property
    def is_year(self) -> bool:
        """True if it may be a year."""
        return not self.unit and len(self.raw) == 4 and any(FIRST_YEAR <= v <= LAST_YEAR for v in self.values)


def compare(claim: Quantity, source: Quantity) -> Comparison:
    """Compare the claim's quantity with the source's: the claim may round, the source may not."""
    if claim.forms or source.forms:
        return _compare_forms(claim, source)
    if claim.unit == CENT and source.unit in MONEY:
        claim = replace(claim, values=tuple(value / 100 for value in claim.values), unit=source.unit)
    # A cell of a table has its unit in the header; a count has none.
    may_lack_unit = not source.unit and claim.unit in ("", "%", *MONEY) and not source.noun
    if claim.unit != source.unit and not may_lack_unit:
        return Comparison.NONE
    comparison = _closest(claim, source)
    comparators = (claim.comparator, source.comparator)
    if comparison is not Comparison.NONE and (comparators in OPPOSED or comparators[::-1] in OPPOSED):
        return Comparison.OPPOSED
    return comparison


def _compare_forms(claim: Quantity, source: Quantity) -> Comparison:
    if claim.forms and source.forms:
        if set(claim.forms) & set(source.forms):
            return Comparison.EXACT
        # `in March 2024` follows from a day of that month, and a day without its year from the whole date.
        includes = any(full.startswith(form + "-") or (full.endswith(form.lstrip("-")) and form.startswith("--"))
                    for form in claim.forms for full in source.forms)  # fmt: skip
        if includes:
            return Comparison.APPROXIMATE
        return Comparison.NONE
    if {claim.unit, source.unit} == {CLOCK, ""}:
        if set(claim.values) & set(source.values):
            return Comparison.APPROXIMATE
        return Comparison.NONE
    if claim.is_year and source.unit == DATE:
        if any(form[:4] == claim.raw for form in source.forms):
            return Comparison.APPROXIMATE
        return Comparison.NONE
    return Comparison.NONE


def _closest(claim: Quantity, source: Quantity) -> Comparison:
    best = Comparison.NONE
    claimed = claim.values
    stated = source.values
    ambiguous = AMBIGUOUS.match(claim.raw)
    if ambiguous and source.raw.startswith(ambiguous[0]):
        # Written alike, they are read alike: 28,000 kg is not 28.000 t.
        claimed = claimed[: (len(claimed) + 1) // 2]
        stated = stated[: (len(stated) + 1) // 2]
    for claim_value, source_value in product(claimed, stated):
        if math.isclose(claim_value, source_value, rel_tol=1e-9, abs_tol=1e-12):
            return Comparison.EXACT
        if _rounds_to(claim, claim_value, source, source_value):
            best = Comparison.APPROXIMATE
    return best


def _rounds_to(claim: Quantity, claim_value: float, source: Quantity, source_value: float) -> bool:
    if claim.is_year or source.is_year or not claim_value or not source_value:
        return False
    difference = (source_value - claim_value) / abs(claim_value)
    comparator = claim.comparator or source.comparator
    if comparator == "about":
        return abs(difference) <= ABOUT_SHARE
    if claim.comparator == "over":
        return 0 <= difference <= OVER_SHARE
    if claim.comparator == "under":
        return -OVER_SHARE <= difference <= 0
    is_finer = source.digits > claim.digits
    return is_finer and claim.digits >= 2 and abs(source_value - claim_value) <= claim.half_step * (1 + 1e-9)


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    word: str  # in lower case
    numeric: bool


def find_quantities(text: str, language: str = "en") -> list[Quantity]:
    """Return every number of a text, in digits or words, with its unit, in order; citation numbers must be blanked."""
    return list(_quantities(text, language))


@lru_cache(maxsize=512)  # a passage is compared as a whole and by sentence, and its statement on each way to the report
def _quantities(text: str, language: str) -> tuple[Quantity, ...]:
    dates = list(_dates(text))
    date_offsets = {offset for date in dates for offset in range(date.start, date.end)}
    tokens = [
        _Token(match[0], match.start(), match.end(), match[0].casefold(), match[0][0].isdecimal())
        for match in TOKEN.finditer(text)
    ]
    other_tokens = [token for token in tokens if token.start not in date_offsets and token.end - 1 not in date_offsets]
    numbers = _numbers(text, other_tokens, language)
    return tuple(sorted([*dates, *numbers], key=lambda quantity: quantity.start))


def _dates(text: str) -> Iterator[Quantity]:
    for match in ISO_DATE.finditer(text):
        year, month, _ = match.groups()
        if FIRST_YEAR <= int(year) <= LAST_YEAR and 1 <= int(month) <= 12:
            yield Quantity(match[0], *match.span(), unit=DATE, forms=(match[0],))
    for match in NUMERIC_DATE.finditer(text):
        first = int(match[1])
        second = int(match[2])
        year = match[3]
        forms = [f"{year}-{month:02}-{day:02}" for day, month in ((first, second), (second, first))
                 if 1 <= month <= 12 and 1 <= day <= 31]  # fmt: skip
        if forms:
            yield Quantity(match[0], *match.span(), unit=DATE, forms=tuple(forms))
    for match in WRITTEN_DATE.finditer(text):
        day = int(match["before"] or match["after"] or 0)
        year = match["year"]
        if (day or year) and day <= 31:
            form = f"{year or '-'}-{MONTHS[match['month'].casefold()]:02}" + (f"-{day:02}" if day else "")
            yield Quantity(match[0], *match.span(), unit=DATE, forms=(form,))
    for match in TIME.finditer(text):
        hour = int(match[1] or match[4])
        minute = int(match[2] or match[5] or 0)
        if (match[3] or "")[:1].casefold() in ("a", "p") and match[3]:
            hour = hour % 12 + (12 if match[3][0] in "pP" else 0)
        if hour <= 24 and minute < 60:
            yield Quantity(match[0], *match.span(), values=(float(hour),), unit=CLOCK, forms=(f"{hour}:{minute:02}",))


def _numbers(text: str, tokens: list[_Token], language: str) -> Iterator[Quantity]:
    words = NUMBER_WORDS.get(language, {})
    articles = ARTICLES.get(language, frozenset())
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if VERSION.fullmatch(token.text) and not all(len(group) == 3 for group in token.text.split(".")[1:]):
            yield Quantity(token.text, token.start, token.end, unit=RELEASE, forms=(token.text,))
            index += 1
        elif token.numeric:
            quantity, index = _finish(text, tokens, articles, index, *read_number(token.text))
            yield quantity
        elif (value := _value_of_words(token.word, words)) is not None:
            quantity, index = _finish(text, tokens, articles, index, (value,), 0.5, 1)
            yield quantity
        else:
            index += 1


def _value_of_words(word: str, words: Mapping[str, float]) -> float | None:
    """Return the value of a number written as a word, even `twenty-five`; None for any other word."""
    if word in words:
        return words[word]
    tens, _, ones = word.partition("-")
    if tens in words and ones in words and words[tens] >= 20 and 0 < words[ones] < 10:
        return words[tens] + words[ones]
    return None


def read_number(text: str) -> tuple[tuple[float, ...], float, int]:
    """Return the possible values of a written number, half of its last place, and its significant digits."""
    separators = GROUPS.findall(text)
    plain = GROUPS.sub("", text)
    digits = max(1, len(plain.lstrip("0").rstrip("0")))
    whole = float(plain) if len(plain) < 300 else math.inf
    zeros = len(plain) - len(plain.rstrip("0"))
    if not separators:
        return (whole,), 0.5 * 10.0 ** min(zeros, 300), digits
    last = separators[-1]
    tail = len(GROUPS.split(text)[-1])
    fraction = float(f"{plain[:-tail]}.{plain[-tail:]}") if len(plain) < 300 else math.inf
    grouped = tail == 3 and all(len(group) == 3 for group in GROUPS.split(text)[1:])
    if last in ".,":
        fraction_digits = max(1, len(plain.lstrip("0")))
        if not grouped or (len(set(separators)) > 1):
            return (fraction,), 0.5 * 10.0**-tail, fraction_digits
        if len(separators) == 1:
            return (whole, fraction), 0.5 * 10.0**-tail, digits
    return (whole,), 0.5 * 10.0 ** min(zeros, 300), digits


def _finish(
    text: str,
    tokens: list[_Token],
    articles: frozenset[str],
    first: int,
    values: tuple[float, ...],
    half_step: float,
    digits: int,
) -> tuple[Quantity, int]:
    """Return a number with the scale, unit, currency and comparator around it; and where to continue."""
    next_index = first + 1
    while next_index < len(tokens) and (scale := SCALES.get(tokens[next_index].word)):
        values = tuple(value * scale for value in values)
        half_step *= scale
        next_index += 1
    if next_index > first + 1 and next_index + 1 < len(tokens) and tokens[next_index].word in ("de", "di"):
        of_unit = _unit_after(text, tokens, next_index + 1)  # `6 millones de euros`
        if of_unit[0]:
            next_index += 1
    unit = ""
    factors: tuple[float, ...] = (1.0,)
    symbol = tokens[first - 1].word if first else ""
    if symbol in UNITS and UNITS[symbol][0] in MONEY and tokens[first - 1].end >= tokens[first].start - 1:
        unit, factors = UNITS[symbol]
        suffix = None
        if next_index < len(tokens):
            suffix = MONEY_SUFFIXES.get(tokens[next_index].word)
        if suffix and tokens[next_index].start == tokens[next_index - 1].end:
            values = tuple(value * suffix for value in values)
            half_step *= suffix
            next_index += 1
    elif next_index == len(tokens) or tokens[next_index].word not in articles:
        unit, factors, next_index = _unit_after(text, tokens, next_index)
    end = tokens[next_index - 1].end
    preceding = tokens[: first - (1 if unit in MONEY and symbol in UNITS else 0)]
    phrases = (" ".join(token.word for token in preceding[-count:]) for count in (3, 2, 1))
    quantity = Quantity(
        raw=text[tokens[first].start : end],
        start=tokens[first].start,
        end=end,
        values=tuple(dict.fromkeys(value * factor for value in values for factor in factors)),
        unit=unit,
        half_step=half_step * factors[0],
        digits=digits,
        comparator=next((COMPARATORS[phrase] for phrase in phrases if phrase in COMPARATORS), ""),
        noun=tokens[next_index].word if next_index < len(tokens) and not tokens[next_index].numeric else "",
    )
    return quantity, next_index


def _unit_after(text: str, tokens: list[_Token], index: int) -> tuple[str, tuple[float, ...], int]:
    """Return the unit that starts at a token, its factors, and the place of the token after it."""
    for count in range(MAX_UNIT_WORDS, 0, -1):
        if index + count > len(tokens):
            continue
        start = tokens[index].start
        end = tokens[index + count - 1].end
        name = " ".join(text[start:end].replace("-", " ").split()).casefold()
        name = name.replace("’", "'").removeprefix("d'")
        # A letter is a unit only directly after its number: `5 s`, but not `5, s`.
        gap = " \u00a0\u202f-." if tokens[index - 1].word in SCALES else " \u00a0\u202f-"
        between = text[tokens[index - 1].end : start]
        # Programs write `2.weeks.ago`; the short names of units are parts of too many other names.
        is_adjacent = not between.strip(gap) or (between == "." and len(name) >= MIN_DOTTED)
        if is_adjacent and name in UNITS:
            unit, factors = UNITS[name]
            return unit, factors, index + count
    if index < len(tokens) and tokens[index].text == "°" and index + 1 < len(tokens):
        name = "°" + tokens[index + 1].word
        if name in UNITS:
            unit, factors = UNITS[name]
            return unit, factors, index + 2
    return "", (1.0,), index
