"""Where sentences begin and end, found in time that grows with the length of the text."""

import re
from typing import Final

from nupunkt import sent_spans

KEPT: Final = 100
"""Characters at either end of a long run that the splitter sees."""
LONG_RUN: Final = re.compile(rf"(?<!\S)\S{{{4 * KEPT},}}+")
"""Longer than any word."""


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The offsets of each sentence.

    From each sign that may end a sentence the splitter looks on to the next white space, and ends none before that. So
    the middle of a long run without white space tells it nothing, and is hidden from it.
    """
    return list(sent_spans(LONG_RUN.sub(_with_plain_middle, text)))


def _with_plain_middle(run: re.Match[str]) -> str:
    return run[0][:KEPT] + "a" * (len(run[0]) - 2 * KEPT) + run[0][-KEPT:]
