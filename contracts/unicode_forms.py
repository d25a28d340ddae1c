"""Unicode's forms of a text, made in time that grows with its length alone."""

import re
import unicodedata
from typing import Final, Literal

MOST_MARKS: Final = 30
"""On one letter (Unicode's stream-safe format); a longer run is put in order in time that grows with its square."""
PERHAPS_MARKS: Final = re.compile(f"[^\x00-\u02ff]{{{MOST_MARKS + 1}}}")
LONG_RUN: Final = re.compile(b"\x01{%d,}+" % (MOST_MARKS + 1))


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in a form of Unicode, with at most thirty combining marks on a letter."""
    return unicodedata.normalize(form, with_few_marks(text))


def with_few_marks(text: str) -> str:
    """The text with runs of combining marks cut."""
    if not PERHAPS_MARKS.search(text):
        return text
    is_mark = bytes(map(bool, map(unicodedata.combining, text)))
    kept, start = [], 0
    for run in LONG_RUN.finditer(is_mark):
        kept.append(text[start : run.start() + MOST_MARKS])
        start = run.end()
    return "".join(kept) + text[start:]
