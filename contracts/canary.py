"""The canary of a run: a random marker in every system prompt, which no outgoing text may contain. Pure.

A model whose answer contains it may have obeyed outside text, so the whole answer is dropped.
"""

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote_plus, urlsplit

from contracts.addresses import normalize
from contracts.sentences import Message
from contracts.texts import shorten

STEERED: Final = "the answer repeats the mark that must never be written: words from outside were followed as orders"
"""Problem reported to the repair call for an answer with the canary."""
STEERED_NOTE: Final = Message("steered")
"""Note in the run's record."""
MAX_QUERY_CHARACTERS: Final = 200
MIN_FRAGMENT: Final = 20
"""Consecutive letters and digits; shorter runs are common words."""


def contains_canary(text: str, canary: str) -> bool:
    """Return true if a text contains the canary, after NFKC and case folding; an empty canary never matches."""
    return bool(canary) and canary.casefold() in normalize("NFKC", text).casefold()


def without_canary(state: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a state for readers outside the run, without its canary."""
    resolved = state.get("resolved")
    if isinstance(resolved, dict):
        return state | {"resolved": resolved | {"canary": ""}}
    return state


def exposes_private_text(url: str, canary: str, private: Iterable[str], public: Iterable[str]) -> bool:
    """Return true if a URL contains the canary or leaks a private text.

    Its query leaks one if it contains 20 consecutive letters and digits of it that no public text contains.
    """
    plain = unquote_plus(url)
    if contains_canary(plain, canary):
        return True
    fragments = _fragments(urlsplit(plain).query).difference(*map(_fragments, public))
    return any(not fragments.isdisjoint(_fragments(text)) for text in private)


def public_query(query: str, question: str) -> str:
    """Return the text of a query for a search service of the web; empty if nothing of it may be sent.

    Page text may make a model search for an address or for the text of its prompt. An address is reduced to its host:
    services open addresses, and their paths carry any text. More than `MAX_QUERY_CHARACTERS` are sent only of the
    question itself.
    """
    text = " ".join(filter(None, map(_without_path, query.split())))
    if len(text) <= MAX_QUERY_CHARACTERS or text in " ".join(question.split()):
        return text
    return shorten(text, MAX_QUERY_CHARACTERS).removesuffix("…")


def _without_path(word: str) -> str:
    """Return the host of a word that is an address, or holds one; any other word as it is."""
    start = word.find("://")
    if start < 0 and not word.casefold().startswith("www."):
        return word
    authority = re.split(r"[/?#\\]", word[start + 3 :] if start >= 0 else word, maxsplit=1)[0]
    return authority.rpartition("@")[2].partition(":")[0].strip("()[]<>\"',.;")


def _fragments(text: str) -> set[str]:
    letters = "".join(filter(str.isalnum, normalize("NFKC", text).casefold()))
    return {letters[start : start + MIN_FRAGMENT] for start in range(len(letters) - MIN_FRAGMENT + 1)}
