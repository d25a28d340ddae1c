"""Catalogues: pages whose lines begin with a code (`R-104 The valve …`, `F3: …`). A line of one is a poor passage."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from providers.extractive.passages import FoundPassage
from providers.extractive.sources_read import Reading

CODE: Final = re.compile(r"\b[A-Z]{1,4}(?:\d{0,3}-\d{1,4}|\d{1,3})\b")
OPENING: Final = re.compile(r"[ \t*_`|-]*+[A-Z]{1,4}(?:\d{0,3}-\d{1,4}|\d{1,3}(?:\.\d{1,3})?)(?=[\s:|.)*`_]|$)")
LINE_OPENING: Final = re.compile(rf"^{OPENING.pattern}", re.MULTILINE)
LEAST_CODES: Final = 13
"""Lines with different codes that make a page a catalogue; there are twelve function keys."""
LOWERED: Final = 0.5


def is_code_line(text: str, reading: Reading) -> bool:
    """Whether a passage opens with the code of a line, on a page that lists many."""
    return OPENING.match(text) is not None and _is_catalogue(reading.document.text)


def without_code_lines(
    passages: Iterable[FoundPassage], readings: Mapping[str, Reading], question: str
) -> list[FoundPassage]:
    """Passages but lines of catalogues, unless the question names a code or catalogues are all that was read."""
    given = list(passages)
    if CODE.search(question) or all(_is_catalogue(reading.document.text) for reading in readings.values()):
        return given
    return [one for one in given if not is_code_line(one.text, readings[one.source_id])]


def lower_code_lines(
    passages: Iterable[FoundPassage], readings: Mapping[str, Reading], question: str
) -> list[FoundPassage]:
    """Passages, best first, where lines of catalogues count less; all alike if the question names a code itself."""
    given = list(passages)
    if CODE.search(question):
        return given
    made = [
        replace(one, score=one.score * LOWERED, coverage=one.coverage * LOWERED)
        if is_code_line(one.text, readings[one.source_id])
        else one
        for one in given
    ]
    return sorted(made, key=lambda one: -one.score) if made != given else given


@lru_cache(maxsize=64)
def _is_catalogue(text: str) -> bool:
    return len({found[0] for found in LINE_OPENING.finditer(text)}) >= LEAST_CODES
