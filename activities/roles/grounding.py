"""Finding a quote in the stored text: word for word or not at all, with the exact offsets of the stored words."""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final

from activities.roles.lenient_values import one_line
from activities.roles.untrusted import INVISIBLE, INVISIBLE_CLASS
from contracts.addresses import normalize
from contracts.texts import shorten

SHORTEST_QUOTE: Final = 8
"""Characters; fewer support nothing and stand everywhere."""
LONGEST_QUOTE: Final = 2_000
HEADING_CHARACTERS: Final = 120
SENTENCE_END: Final = re.compile(r"[.!?。！？][\"'”’)\]]*+(?=\s|$)")
WORD: Final = re.compile(r"\S+")
VISIBLE: Final = re.compile(rf"[^\s{INVISIBLE_CLASS}]+")
HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}+|~{3,}+)|#{1,6}[ \t]++(?P<heading>[^\n]*))", re.MULTILINE
)


def find_quote(text: str, quote: str, start: int | None = None) -> tuple[int, int] | None:
    """The offsets of the quote in the text, or None.

    White space may differ, and so may invisible characters, which a model is not shown; nothing else may.
    `start` is where the quote is said to begin; it is believed only if the words stand there. A quote longer than
    1,200 characters is cut at the end of a sentence, else between words.
    """
    wanted = quote.strip()
    if len(one_line(INVISIBLE.sub("", wanted))) < SHORTEST_QUOTE:
        return None
    if start is not None and start >= 0 and text.startswith(quote, start):
        lead = len(quote) - len(quote.lstrip())
        return _shorten(text, start + lead, start + lead + len(wanted))
    for form in dict.fromkeys((wanted, normalize("NFC", wanted), normalize("NFD", wanted))):
        found = _find(text, form)
        if found:
            return _shorten(text, *found)
    return None


def _find(text: str, wanted: str) -> tuple[int, int] | None:
    place = text.find(wanted)
    if place >= 0:
        return place, place + len(wanted)
    found = _flat(text).find(one_line(wanted))
    if found is None and INVISIBLE.search(text):
        found = _flat(text, without_invisible=True).find(one_line(INVISIBLE.sub("", one_line(wanted))))
    return found


class _Flat:
    """A text with each run of white space as one blank, in which a search takes time that grows with its length."""

    def __init__(self, text: str, *, without_invisible: bool) -> None:
        parts: list[str] = []
        self._flat_starts: list[int] = []
        self._starts: list[int] = []
        length = end = 0
        for match in (VISIBLE if without_invisible else WORD).finditer(text):
            gap = text[end : match.start()]
            if parts and (INVISIBLE.sub("", gap) if without_invisible else gap):
                parts.append(" ")
                length += 1
            self._flat_starts.append(length)
            self._starts.append(match.start())
            parts.append(match[0])
            length += len(match[0])
            end = match.end()
        self._text = "".join(parts)

    def find(self, wanted: str) -> tuple[int, int] | None:
        """The offsets, in the text as it was, of words that are written with single blanks."""
        place = self._text.find(wanted)
        return None if place < 0 else (self._offset(place), self._offset(place + len(wanted) - 1) + 1)

    def _offset(self, place: int) -> int:
        index = bisect_right(self._flat_starts, place) - 1
        return self._starts[index] + place - self._flat_starts[index]


@lru_cache(maxsize=4)
def _flat(text: str, *, without_invisible: bool = False) -> _Flat:
    """Made once for the many quotes of a page."""
    return _Flat(text, without_invisible=without_invisible)


def _shorten(text: str, start: int, end: int) -> tuple[int, int]:
    if end - start <= LONGEST_QUOTE:
        return start, end
    limit = start + LONGEST_QUOTE
    ends = [match.end() for match in SENTENCE_END.finditer(text, start, limit)]
    if ends:
        return start, ends[-1]
    space = text.rfind(" ", start, limit)
    return start, space if space > start else limit


class Headings:
    """The headings of a text in order, code apart; made once for many quotes."""

    def __init__(self, text: str) -> None:
        self._places: list[int] = []
        self._headings: list[str] = []
        fence = ""
        for match in HEADING_OR_FENCE.finditer(text):
            marks = match["fence"]
            if marks and not fence:
                fence = marks
            elif marks and marks.startswith(fence):
                fence = ""
            elif not fence and (heading := one_line((match["heading"] or "").rstrip().rstrip("#"))):
                self._places.append(match.start())
                self._headings.append(shorten(heading, HEADING_CHARACTERS))

    def above(self, place: int) -> str:
        """The nearest heading at or before an offset, at most 120 characters; empty if there is none."""
        index = bisect_right(self._places, place)
        return self._headings[index - 1] if index else ""
