"""The canary of a run: a random mark in the system part of every prompt, which no outgoing text may contain. Pure.

An answer that contains it comes from a model that followed words from outside, so the whole answer is dropped.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from contracts.addresses import normalize

STEERED: Final = "the answer repeats the mark that must never be written: words from outside were followed as orders"
"""The problem of such an answer, for the call that repairs it."""
STEERED_NOTE: Final = "an answer of the model repeated its private mark: page text may have steered it"
"""The note in the record of the run."""
SHORTEST_FRAGMENT: Final = 20
"""Letters and digits in a row; shorter runs are common words."""


def contains_canary(text: str, canary: str) -> bool:
    """Compare after NFKC and case folding; no text contains an empty canary."""
    return bool(canary) and canary.casefold() in normalize("NFKC", text).casefold()


def exposes_private_text(url: str, canary: str, private: Iterable[str], public: Iterable[str]) -> bool:
    """Return true if an address contains the canary.

    Also true if its query contains 20 letters and digits in a row of a private text that no public text contains.
    """
    plain = unquote_plus(url)
    if contains_canary(plain, canary):
        return True
    fragments = _fragments(urlsplit(plain).query).difference(*map(_fragments, public))
    return any(not fragments.isdisjoint(_fragments(text)) for text in private)


def _fragments(text: str) -> set[str]:
    letters = "".join(filter(str.isalnum, normalize("NFKC", text).casefold()))
    return {letters[start : start + SHORTEST_FRAGMENT] for start in range(len(letters) - SHORTEST_FRAGMENT + 1)}
