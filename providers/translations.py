"""Sentences that are made in English all over the product, in the language of the report that prints them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from providers.text import KNOWN_LANGUAGES, LanguageData, language_data

PLACE: Final = re.compile(r"\{(\w+)\}")
LIST_SIGN: Final = "; "
DEEPEST: Final = 3
"""Sentences within sentences."""


def translate(text: str, code: str) -> str:
    """A sentence of ours in a known language; one that is not listed, such as a model's, stays as it is.

    What is listed stands in `languages/*.toml`, under `sentences`.
    """
    return text if code == "en" else _translated(text, language_data(code), DEEPEST)


def _translated(text: str, words: LanguageData, depth: int) -> str:
    exact = _whole_sentences(words.code).get(text)
    if exact is not None or depth == 0:
        return exact or text
    for name, pieces, places in _patterns():
        values = _values(text, pieces)
        if values is not None:
            given = {place: _translated(value, words, depth - 1) for place, value in zip(places, values, strict=True)}
            return words.sentences[name].format(**given)
    if LIST_SIGN in text:
        return LIST_SIGN.join(_translated(part, words, depth - 1) for part in text.split(LIST_SIGN))
    lowered = text[:1].lower() + text[1:]
    found = _whole_sentences(words.code).get(lowered) or _whole_sentences(words.code).get(lowered.rstrip("."))
    return found[:1].upper() + found[1:] + ("." if text.endswith(".") else "") if found else text


@lru_cache(maxsize=len(KNOWN_LANGUAGES))
def _whole_sentences(code: str) -> Mapping[str, str]:
    """Sentences without values, English → this language."""
    english, own = language_data("en"), language_data(code)
    roles = {text: own.report[name] for name, text in english.report.items() if name.startswith("role_")}
    return roles | {text: own.sentences[name] for name, text in english.sentences.items() if not PLACE.search(text)}


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, list[str], list[str]]]:
    """English sentences with values: name, what stands between the values, names of the values; the surest first."""
    found = [
        (name, PLACE.split(text)[::2], PLACE.findall(text))
        for name, text in language_data("en").sentences.items()
        if PLACE.search(text)
    ]
    return sorted(found, key=lambda one: (not one[1][0], -sum(map(len, one[1]))))


def _values(text: str, pieces: list[str]) -> list[str] | None:
    """Return what stands between the pieces of a sentence, if it is that sentence."""
    if not (text.startswith(pieces[0]) and text.endswith(pieces[-1])):
        return None
    place, stop = len(pieces[0]), len(text) - len(pieces[-1])
    values = []
    for piece in pieces[1:-1]:
        found = text.find(piece, place, stop)
        if found < 0:
            return None
        values.append(text[place:found])
        place = found + len(piece)
    return [*values, text[place:stop]] if place <= stop else None
