"""JSON from outside: bounded depth and numbers, no silent choice between two values of one key, no broken text.

`json.loads` alone accepts `NaN`, keeps the last of two equal keys, raises `RecursionError` on deep nesting and lets
lone surrogates through, which no UTF-8 writer takes afterwards.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 19
"""A signed 64-bit integer; Python itself refuses to read more than 4,300 digits."""

DUPLICATE_KEY: Final = "a key occurs twice in one object"
NOT_FINITE: Final = "a number is not finite"
LONG_NUMBER: Final = "an integer has too many digits"
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"

OUTSIDE_STRING: Final = re.compile(r'["{}\[\]]')
INSIDE_STRING: Final = re.compile(r'["\\]')
CLOSERS: Final = {"{": "}", "[": "]"}


class JsonError(ValueError):
    """The text cannot be read as JSON; the message says why, without quoting the text."""


class NestingError(JsonError):
    """Brackets nest deeper than anything that we ask for."""


@dataclass(frozen=True)
class Bracketing:
    """How far a JSON value reaches: `end` is None if the text stops inside it."""

    end: int | None
    missing: str = ""
    """Closing brackets that the text lacks, innermost first."""
    in_string: bool = False


@dataclass(frozen=True)
class ParsedJson:
    """A value, what strict JSON forbids that was met in it, and whether lone surrogates were replaced by U+FFFD."""

    value: Any
    flaws: frozenset[str] = frozenset()
    cleaned: bool = False


def bracketing(text: str, start: int = 0, max_depth: int = MAX_DEPTH) -> Bracketing:
    """Follow the brackets from `start` to the one that closes the first; linear, without recursion.

    Raises `NestingError` when brackets nest deeper than `max_depth`, `JsonError` when they do not match.
    """
    expected: list[str] = []
    position, in_string = start, False
    while True:
        found = (INSIDE_STRING if in_string else OUTSIDE_STRING).search(text, position)
        if found is None:
            return Bracketing(None, "".join(reversed(expected)), in_string)
        position, mark = found.end(), found.group()
        if mark == "\\":
            position += 1
        elif mark == '"':
            in_string = not in_string
        elif mark in CLOSERS:
            expected.append(CLOSERS[mark])
            if len(expected) > max_depth:
                raise NestingError(TOO_DEEP)
        elif not expected or expected.pop() != mark:
            raise JsonError("brackets do not match")
        elif not expected:
            return Bracketing(position)


def parse_json(text: str, max_depth: int = MAX_DEPTH) -> ParsedJson:
    """Read a JSON value. Flaws are reported rather than raised: the caller knows whether they matter.

    Raises `JsonError` when the text is no JSON, `NestingError` when it nests too deep.
    """
    opening = OUTSIDE_STRING.search(text)
    if opening is not None and opening.group() in CLOSERS:
        bracketing(text, opening.start(), max_depth)
    flaws: set[str] = set()
    try:
        value = json.loads(text, strict=False, **_hooks(flaws))  # models write bare line breaks
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at character {error.pos}") from None
    cleaned = without_surrogates(value)
    return ParsedJson(cleaned, frozenset(flaws), cleaned != value)


def _hooks(flaws: set[str]) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) < len(items):
            flaws.add(DUPLICATE_KEY)
        return value

    def integer(digits: str) -> int:
        if len(digits.lstrip("-")) > MAX_DIGITS:
            flaws.add(LONG_NUMBER)
            return 0
        return int(digits)

    def number(digits: str) -> float | None:
        value = float(digits)  # also of `NaN` and `Infinity`
        if math.isfinite(value):
            return value
        flaws.add(NOT_FINITE)
        return None

    return {"object_pairs_hook": pairs, "parse_int": integer, "parse_float": number, "parse_constant": number}


def clean_text(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that UTF-8 can write it."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_surrogates(value: Any) -> Any:
    """The same JSON value with every string, keys included, put through `clean_text`."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): without_surrogates(item) for key, item in value.items()}
    return value
