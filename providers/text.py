"""Words and stems: one way for the index, the ranking and the honesty rules, so that their counts agree."""

import re
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

from providers.language_words import KNOWN_LANGUAGES, WORD, fold, language_words

ELISION = re.compile("['’]")
"""Joins a short word to the next one: `l'index`."""
LEAST_LEAD = 0.26
"""By how much a language must lead English, in words of its own."""

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be been before being between both but by can could did do does
    doing down during each few for from further had has have having he her here hers him his how i if in into is it
    its itself just like make makes me more most must my no nor not of off on once only or other our out over own per
    same shall she should so some such than that the their them then there these they this those through to too under
    until up upon us use used uses using very was we were what when where which while who whom whose why will with
    within without would you your""".split()
)

FRAME_WORDS = frozenset(
    """answer answers anything best better describe described detail details different differ differs difference
    differences compare compared comparison comparing versus vs contrast distinguish documentation docs document
    explain explains explanation example examples exactly give good happen happens happening happened kind kinds
    main manual mean means meaning need needs overview page please possible purpose question
    reason reasons say says show simple someone something sort summarise summarize tell thing things understand want
    way ways work works working actually really able available exist exists provide provides provided cause
    causes caused certain become becomes became require requires required control controls occur occurs
    many much often long recommended support supports supported allow allows let lets""".split()
)
"""English words that say how to answer, not what about."""

LISTING_WORDS = frozenset(("list", "lists", "name", "names"))
"""Frame words only where a request opens with them (`List the …`) or where `of` follows (`a list of …`)."""

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


@lru_cache(maxsize=16)
def empty_words(language: str) -> frozenset[str]:
    """Words of a language that say nothing of what a text is about; those of English where it is not known."""
    base = language.split("-", maxsplit=1)[0].casefold()
    if base not in KNOWN_LANGUAGES or base == "en":
        return STOP_WORDS | FRAME_WORDS
    known = language_words(base)
    return known.stop | known.frame


def meaning_words(text: str, language: str = "en") -> list[str]:
    """The words of a question that say what it is about, as written: neither stop words nor words that frame it.

    A word in capitals amid small ones is a name and always counts (`WITHOUT ROWID`).
    """
    found, names_stand_out, empty = words(text), not text.isupper(), empty_words(language)
    kept = []
    for position, word in enumerate(found):
        folded = word.casefold()
        if len(word) > 1 and word.isalpha() and word.isupper() and names_stand_out:
            kept.append(word)
            continue
        if folded in empty:
            continue
        following = found[position + 1].casefold() if position + 1 < len(found) else ""
        if folded in LISTING_WORDS and (position == 0 or following == "of"):
            continue
        kept.append(word)
    return kept


def question_stems(text: str, language: str = "en") -> list[str]:
    """The distinct stems of a question that carry meaning, in order of first appearance.

    Where only words that frame a question are left, these count.
    """
    kept = meaning_words(text, language) or [word for word in words(text) if word.casefold() not in STOP_WORDS]
    return list(dict.fromkeys(stem(word, language) for word in kept))


FUNCTION_WORDS = {
    "en": "the of and to in is how what which why does do a for are with when between",
    "de": "der die das und ist wie was warum welche ein eine nicht mit für zwischen werden wird",
    "fr": "le la les des et est comment pourquoi quel quelle un une dans pour entre sont que",
    "es": "el la los las y es cómo qué por cuál un una en para entre son del",
    "it": "il lo la gli e è come perché quale un una nel per tra sono che del",
    "pt": "o a os as e é como por que qual um uma em para entre são do da",
    "nl": "de het een en is hoe wat waarom welke voor met tussen zijn van",
}
"""The commonest words of questions in each language, our own short lists."""


def detect_language(text: str) -> str:
    """The likely language of a text as a two-letter code, `und` for a script that is not Latin.

    The words without meaning of each language decide, shared ones less; English where they do not.
    """
    letters = [character for character in text if character.isalpha()]
    if letters and sum(ord(character) > 0x24F for character in letters) > len(letters) / 2:
        return "ru" if all(0x400 <= ord(c) <= 0x4FF or ord(c) < 0x250 for c in letters) else "und"
    speakers = _speakers()
    scores = dict.fromkeys(KNOWN_LANGUAGES, 0.0)
    for word in fold(text):
        for piece in (word, *(part for part in ELISION.split(word) if part != word)):
            for language in (told := speakers.get(piece, ())):
                scores[language] += 1.0 / len(told)
    best = max(scores.values())
    return "en" if scores["en"] >= best - LEAST_LEAD else max(scores, key=lambda language: scores[language])


@lru_cache(maxsize=1)
def _speakers() -> dict[str, tuple[str, ...]]:
    """Word without meaning → the languages that have it."""
    found: dict[str, list[str]] = {}
    for code in KNOWN_LANGUAGES:
        known = language_words(code)
        asking = {word for phrases in known.asks.values() for word in phrases.first_words()}
        for word in known.stop | known.frame | asking:
            found.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in found.items()}
