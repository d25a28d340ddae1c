"""Words, stems, sentences, data of languages, and translations."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]
from nupunkt import sent_spans

WORD: Final = re.compile(r"[^\W_]+(?:[._'’-][^\W_]+)*", re.UNICODE)
JOINT: Final = re.compile(r"[._'’-]")
KNOWN_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl")
STEMMED_LANGUAGES: Final = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
                            "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian",
                            "fi": "finnish", "ru": "russian"}  # fmt: skip
MIN_DOCUMENTS: Final = 20
"""Smaller collections weigh words as if they had this many, or a word in both of two documents would weigh nothing."""
MIN_LEAD: Final = 0.26  # by how many distinctive words a language must lead English
RUN_ENDS: Final = 100  # characters at each end of a long run without white space that the sentence splitter sees
LONG_RUN: Final = re.compile(rf"(?<!\S)\S{{{4 * RUN_ENDS},}}+")
"""Longer than any word; the splitter would take quadratic time on it."""


@dataclass(frozen=True, slots=True)
class LanguageData:
    """A language: its stop words, and the sentences of reports."""

    code: str
    stop: frozenset[str]
    empty: frozenset[str]
    """Stop words, and words of a question about the form of its answer."""
    shared: frozenset[str]
    """Content words that are stop words of other languages: of English, "door", "standard", the C of a name."""
    openings: frozenset[str]
    """First words of a sentence that depends on the one before it."""
    corrections: frozenset[str]
    """First words of a sentence that qualifies the one before it."""
    forms: list[str]
    """Words that request other forms of an answer: a definition, settings, steps."""
    headings: list[str]
    """Headings for the question as asked, and for each of the forms."""
    brief: Mapping[str, str]
    """Sentences of the brief, by message id."""
    report: Mapping[str, str]
    """Sentences that a report prints about itself, by message id."""
    sentences: Mapping[str, str]


@lru_cache(maxsize=len(KNOWN_LANGUAGES))
def language_data(code: str) -> LanguageData:
    """Return the data of a language, or those of English for an unknown one."""
    base = code.split("-", maxsplit=1)[0].casefold()
    known_code = base if base in KNOWN_LANGUAGES else "en"
    data = tomllib.loads(files(__package__ or "").joinpath("languages", f"{known_code}.toml").read_text("utf-8"))
    for name in ("stop", "frame", "shared", "openings", "corrections"):
        data[name] = frozenset(data.get(name, "").split())
    return LanguageData(known_code, empty=data["stop"] | data.pop("frame"), **data)


@lru_cache(maxsize=16)
def _stemmer(language: str) -> object | None:
    name = STEMMED_LANGUAGES.get(language)
    return snowballstemmer.stemmer(name) if name else None


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """Return the case-folded stem of a word; the folded word if the language has no stemmer."""
    stemmer = _stemmer(language)
    folded = fold(word)
    return folded if stemmer is None else str(stemmer.stemWord(folded))  # type: ignore[attr-defined]


def fold(word: str) -> str:
    """Return a word in lower case, with one kind of apostrophe."""
    return word.casefold().replace("’", "'")


def words(text: str) -> list[str]:
    """Return the words of a text as written; an identifier such as `autovacuum_freeze_max_age` is one word."""
    return WORD.findall(text)


def stems(text: str, language: str = "en") -> list[str]:
    """Return the stems of all words of a text, in order."""
    return [stem(word, language) for word in words(text)]


@lru_cache(maxsize=50_000)
def word_keys(word: str, language: str) -> tuple[str, ...]:
    """Return the stem of a word and, for a compound such as `freeze_max_age`, the stems of its parts."""
    whole = stem(word, language)
    parts = [stem(part, language) for part in JOINT.split(word) if len(part) > 1]
    return (whole,) if parts in ([], [whole]) else (whole, *parts)


def meaning_words(text: str, language: str) -> list[str]:
    """Return the words that name a question's subject; capitals in a mixed-case text are names (`WITHOUT ROWID`)."""
    empty, names_stand_out = language_data(language).empty, not text.isupper()
    return [
        word
        for word in words(text)
        if fold(word) not in empty or (names_stand_out and len(word) > 1 and word.isalpha() and word.isupper())
    ]


def inverse_document_frequency(count: int, documents: int) -> float:
    """Return the weight of a word that occurs in `count` of the documents, as in BM25."""
    others = max(0, max(documents, MIN_DOCUMENTS) - count)
    return math.log(1 + (others + 0.5) / (count + 0.5))


def question_stems(text: str, language: str = "en") -> list[str]:
    """Return the distinct stems of the content words, in order; of frame words if there are none."""
    content_words = [word for word in words(text) if fold(word) not in language_data(language).stop]
    return list(dict.fromkeys(stem(word, language) for word in meaning_words(text, language) or content_words))


def detect_language(text: str) -> str:
    """Return the likely language by its stop words; English if unclear, `ru` or `und` beyond Latin letters."""
    letters = [] if text.isascii() else [character for character in text if character.isalpha()]
    if letters and sum(ord(character) > 0x24F for character in letters) > len(letters) / 2:
        return "ru" if all(0x400 <= ord(c) <= 0x4FF or ord(c) < 0x250 for c in letters) else "und"
    scores = dict.fromkeys(KNOWN_LANGUAGES, 0.0)
    speakers = _speakers()
    for word, count in Counter(map(fold, words(text))).items():
        for piece in dict.fromkeys((word, *word.split("'"))) if "'" in word else (word,):
            for language in (languages := speakers.get(piece, ())):
                scores[language] += count / len(languages)
    best = max(scores.values())
    return "en" if scores["en"] >= best - MIN_LEAD else max(scores, key=lambda language: scores[language])


@lru_cache(maxsize=1)
def _speakers() -> dict[str, tuple[str, ...]]:
    """Map each stop word to the languages that have it, as a stop word or a content word."""
    codes_by_word: dict[str, list[str]] = {}
    for code in KNOWN_LANGUAGES:
        for word in language_data(code).empty | language_data(code).shared:
            codes_by_word.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in codes_by_word.items()}


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of each sentence, in linear time: the middle of a long run without white space is hidden.

    The splitter searches from each possible end of a sentence to the next white space, and ends none before it.
    """
    short = LONG_RUN.sub(lambda run: run[0][:RUN_ENDS] + "a" * (len(run[0]) - 2 * RUN_ENDS) + run[0][-RUN_ENDS:], text)
    return list(sent_spans(short))


# --- translations -----------------------------------------------------------------------------------------------------
PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
LIST_SEPARATOR: Final = "; "


def translate(text: str, code: str) -> str:
    """Translate one of our sentences by the list in `languages/*.toml`; an unlisted one stays unchanged."""
    if code == "en":
        return text
    data = language_data(code)
    for name, pattern in _patterns():
        if match := pattern.fullmatch(text):
            values = {placeholder: translate(value, code) for placeholder, value in match.groupdict().items()}
            return (data.sentences.get(name) or data.report[name]).format(**values)
    if LIST_SEPARATOR in text:
        return LIST_SEPARATOR.join(translate(part, code) for part in text.split(LIST_SEPARATOR))
    plain = text[:1].lower() + text[1:].removesuffix(".")
    known = translate(plain, code) if plain != text else plain
    return text if known == plain else known[:1].upper() + known[1:] + text[len(plain) :]


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Return sentence patterns by message id: those without values first, then those that begin with fixed words."""
    english = language_data("en")
    roles = {name: text for name, text in english.report.items() if name.startswith("role_")}
    ranked = []
    for name, text in {**english.sentences, **roles}.items():
        fixed = [re.escape(piece) for piece in PLACEHOLDER.split(text)[::2]]
        groups = [f"(?P<{placeholder}>.+?)" for placeholder in PLACEHOLDER.findall(text)]
        pattern = "".join(part for pair in zip(fixed, [*groups, ""], strict=True) for part in pair)
        ranked.append((bool(groups), not fixed[0], -sum(map(len, fixed)), name, re.compile(pattern, re.DOTALL)))
    return [(name, pattern) for *_, name, pattern in sorted(ranked, key=lambda item: item[:-1])]
