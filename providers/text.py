"""Words and stems: one way for the index, the ranking and the honesty rules, so that their counts agree."""

import re
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

WORD = re.compile(r"[^\W_]+(?:[._'’-][^\W_]+)*", re.UNICODE)

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before being between both but by can could did do does
    doing down during each few for from further had has have having he her here hers him his how i if in into is it
    its itself just like make makes me more most must my no nor not of off on once only or other our out over own per
    same shall she should so some such than that the their them then there these they this those through to too under
    until up upon us use used uses using very was we were what when where which while who whom whose why will with
    within without would you your""".split()
)

STEMMED_LANGUAGES = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
                     "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian",
                     "fi": "finnish", "ru": "russian"}  # fmt: skip


@lru_cache(maxsize=16)
def _stemmer(language: str) -> object | None:
    name = STEMMED_LANGUAGES.get(language)
    return snowballstemmer.stemmer(name) if name else None


@lru_cache(maxsize=200_000)
def stem(word: str, language: str = "en") -> str:
    """The stem of one word, case folded; the word itself where no stemmer fits the language."""
    stemmer = _stemmer(language)
    folded = word.casefold().replace("’", "'")
    return folded if stemmer is None else str(stemmer.stemWord(folded))  # type: ignore[attr-defined]


def words(text: str) -> list[str]:
    """The words of a text in order, as written; identifiers such as `autovacuum_freeze_max_age` give their parts."""
    return WORD.findall(text)


def stems(text: str, language: str = "en") -> list[str]:
    """The stems of all words of a text, in order."""
    return [stem(word, language) for word in words(text)]


def question_stems(text: str, language: str = "en") -> list[str]:
    """The distinct stems of a question that carry meaning, in order of first appearance."""
    kept = (stem(word, language) for word in words(text) if word.casefold() not in STOP_WORDS)
    return list(dict.fromkeys(kept))
