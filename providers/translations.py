"""Sentences that are made in English all over the product, in the language of the report that prints them."""

import re
from functools import lru_cache
from typing import Final

from providers.text import language_data

PLACE: Final = re.compile(r"\{(\w+)\}")
LIST_SIGN: Final = "; "


def translate(text: str, code: str) -> str:
    """A sentence of ours in a known language; one that is not listed, such as a model's, stays unchanged.

    The list is in `languages/*.toml`, under `sentences`.
    """
    if code == "en":
        return text
    own = language_data(code)
    for name, pattern in _patterns():
        if found := pattern.fullmatch(text):
            values = {place: translate(value, code) for place, value in found.groupdict().items()}
            return (own.sentences.get(name) or own.report[name]).format(**values)
    if LIST_SIGN in text:
        return LIST_SIGN.join(translate(part, code) for part in text.split(LIST_SIGN))
    plain = text[:1].lower() + text[1:].removesuffix(".")
    known = translate(plain, code) if plain != text else plain
    return text if known == plain else known[:1].upper() + known[1:] + text[len(plain) :]


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Sentences by message id: first those without values, then those that start with words of their own."""
    english = language_data("en")
    roles = {name: text for name, text in english.report.items() if name.startswith("role_")}
    found = []
    for name, text in {**english.sentences, **roles}.items():
        words = [re.escape(piece) for piece in PLACE.split(text)[::2]]
        places = [f"(?P<{place}>.+?)" for place in PLACE.findall(text)]
        pattern = "".join(part for pair in zip(words, [*places, ""], strict=True) for part in pair)
        found.append((bool(places), not words[0], -sum(map(len, words)), name, re.compile(pattern, re.DOTALL)))
    return [(name, pattern) for *_, name, pattern in sorted(found, key=lambda each: each[:-1])]
