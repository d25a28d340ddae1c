"""Finding a quote in the stored text: word for word or not at all, with the exact offsets of the stored words."""

import re
import unicodedata
from bisect import bisect_right
from typing import Final

from activities.untrusted import INVISIBLE, INVISIBLE_CLASS
from activities.wording import bounded, one_line

SHORTEST_QUOTE: Final = 8
"""Characters; fewer support nothing and stand everywhere."""
LONGEST_QUOTE: Final = 1_200
HEADING_CHARACTERS: Final = 120
SENTENCE_END: Final = re.compile(r"[.!?。！？][\"'”’)\]]*(?=\s|$)")
HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|#{1,6}[ \t]+(?P<heading>[^\n]*?)[ \t]*#*[ \t]*\r?$)", re.MULTILINE
)


def find_quote(text: str, quote: str, start: int | None = None) -> tuple[int, int] | None:
    """The offsets of the quote in the text, or null.

    White space may differ, and so may characters that nobody sees, for a model is not shown them; nothing else may.
    `start` is where the quote is said to begin; it is believed only if the words stand there. A quote longer than
    1,200 characters is cut at the end of a sentence, else between words.
    """
    wanted = quote.strip()
    if len(one_line(INVISIBLE.sub("", wanted))) < SHORTEST_QUOTE:
        return None
    if start is not None and start >= 0 and text.startswith(quote, start):
        lead = len(quote) - len(quote.lstrip())
        return _shortened(text, start + lead, start + lead + len(wanted))
    for form in dict.fromkeys((wanted, unicodedata.normalize("NFC", wanted), unicodedata.normalize("NFD", wanted))):
        found = _find(text, form)
        if found:
            return _shortened(text, *found)
    return None


def _find(text: str, wanted: str) -> tuple[int, int] | None:
    place = text.find(wanted)
    if place >= 0:
        return place, place + len(wanted)
    match = re.search(r"\s+".join(re.escape(word) for word in wanted.split()), text)
    if match is None and INVISIBLE.search(text):
        match = re.search(_with_invisible(wanted), text)
    return match.span() if match else None


def _with_invisible(wanted: str) -> str:
    hidden = f"[{INVISIBLE_CLASS}]*"
    words = (hidden.join(re.escape(sign) for sign in INVISIBLE.sub("", word)) for word in wanted.split())
    return rf"[\s{INVISIBLE_CLASS}]+".join(word for word in words if word)


def _shortened(text: str, start: int, end: int) -> tuple[int, int]:
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
            elif match["heading"] and not fence:
                self._places.append(match.start())
                self._headings.append(bounded(one_line(match["heading"]), HEADING_CHARACTERS))

    def above(self, place: int) -> str:
        """The nearest heading at or before an offset, at most 120 characters; empty if there is none."""
        index = bisect_right(self._places, place)
        return self._headings[index - 1] if index else ""
