"""The canary of a run: a mark that only this run knows, and that nothing going out may hold. Pure.

It stands in the system part of every prompt that is shown words from outside. An answer that repeats it was written by
a model that no longer tells instructions from data, so nothing of that answer is used.
"""

import base64
import html
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from contracts.composition import normalized

STEERED: Final = "the answer repeats the mark that must never be written: words from outside were followed as orders"
"""The problem of such an answer: told to the model that repairs it."""
STEERED_NOTE: Final = "an answer of the model repeated what it must keep to itself: page text may have steered it"
"""What the run says of it."""
SHORTEST_FRAGMENT: Final = 20
"""Letters and digits in a row; fewer are common words."""

SIGNS: Final = re.compile(r"[\W_]+")
BASE64_BITS: Final = 3
"""Bytes that base64 takes at a time: a text begins at one of as many places."""


def repeats(text: str, canary: str) -> bool:
    """Whether a text holds the canary: also with signs or invisible characters in it, encoded, or backwards.

    An empty canary is held by nothing.
    """
    if not canary:
        return False
    squeezed = _squeezed(text)
    return any(form in squeezed for form in _forms(canary))


def holds_private(url: str, canary: str, private: Iterable[str], public: Iterable[str]) -> bool:
    """Whether an address carries the canary, or in its query 20 letters and digits in a row of a private text.

    What the public texts hold too, which searches are told anyway, gives nothing away.
    """
    if repeats(url, canary):
        return True
    asked = _squeezed(urlsplit(url).query)
    if len(asked) < SHORTEST_FRAGMENT:
        return False
    fragments = set(_fragments(asked))
    for text in public:
        fragments.difference_update(_fragments(_squeezed(text)))
    return any(not fragments.isdisjoint(_fragments(_squeezed(text))) for text in private)


def _fragments(text: str) -> Iterator[str]:
    return (text[start : start + SHORTEST_FRAGMENT] for start in range(len(text) - SHORTEST_FRAGMENT + 1))


def _squeezed(text: str) -> str:
    """Letters and digits alone, in one form and case."""
    decoded = html.unescape(unquote_plus(text)) if "%" in text or "&" in text else text
    return SIGNS.sub("", normalized("NFKC", decoded).casefold())


def _forms(canary: str) -> set[str]:
    forms = {canary, canary[::-1], canary.encode().hex()}
    for place in range(BASE64_BITS):
        whole = base64.b64encode(b"\0" * place + canary.encode()).decode().rstrip("=")
        # What its neighbours have a share in is left out: the first signs, and the last one.
        forms.add(whole[2 * place : -1] if place else whole[:-1])
    return {_squeezed(form) for form in forms}
