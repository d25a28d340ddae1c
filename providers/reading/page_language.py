"""The language of a page: what its words say, and what it declares where they say little."""

import re
from collections import Counter
from typing import Final

from providers.text import KNOWN_LANGUAGES, language_data, words

SAMPLE: Final = 4_000
"""Characters that are looked at."""
LEAST_WORDS: Final = 40
"""Fewer words of a text say less about its language than what the page declares."""
FEWEST_WORDS: Final = 12
"""Fewer words say nothing."""
CLEAR_SHARE: Final = 0.12
"""Share of a text's words that are among the commonest of its language; about 0.2 to 0.3 in prose."""
CLEAR_LEAD: Final = 1.4
SETS: Final = {language: language_data(language).stop for language in KNOWN_LANGUAGES}
SCRIPTS: Final = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
"""The commonest language of a script; Japanese before Chinese, because it uses the letters of both."""
NOT_LATIN: Final = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u2bff]")
CODE: Final = re.compile(r"^(`{3,}+)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
SCRIPT_SHARE: Final = 0.1


def page_language(text: str, declared: str | None) -> str | None:
    """A language code of two or three letters, or None where nothing tells.

    Templates often declare a language that the text is not in, so a clear majority of common words counts more than
    the declaration; for scripts that many languages share, and for short texts, the declaration counts more.
    """
    prose = CODE.sub(" ", text[:SAMPLE])
    script = _script(prose)
    if script is not None:
        return declared if declared is not None and declared not in KNOWN_LANGUAGES else script
    counts = Counter(words(prose.casefold()))
    spoken = max(1, counts.total())
    shares = sorted(
        (sum(counts[word] for word in common & counts.keys()) / spoken, name) for name, common in SETS.items()
    )
    (best, language), (second, _) = shares[-1], shares[-2]
    if spoken >= LEAST_WORDS and best >= CLEAR_SHARE and best >= CLEAR_LEAD * second:
        return language
    if declared is not None:
        return declared
    return language if spoken >= FEWEST_WORDS and best >= CLEAR_SHARE else None


def _script(text: str) -> str | None:
    """The commonest language of the script, None for Latin letters."""
    if text.isascii():
        return None
    letters = sum(map(str.isalpha, text))
    foreign = sum(map(str.isalpha, NOT_LATIN.findall(text)))
    if not letters or foreign * 2 <= letters:
        return None
    for language, script in SCRIPTS:
        if len(script.findall(text)) >= SCRIPT_SHARE * letters:
            return language
    return None
