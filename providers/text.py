"""Words, stems, sentences, and data of languages."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final
from unicodedata import category, normalize

import snowballstemmer  # type: ignore[import-untyped]
from nupunkt import sent_spans

from contracts.sentences import SENTENCES

DUPLICATE_SHARE: Final = 0.7
"""Passages that share this much of the content words of the shorter one count as the same."""
SHORT_KEYS: Final = 12
"""Content words up to which a passage is a duplicate only if another one has every word of it."""
MARKS: Final = "".join(
    chr(code)
    for code in (*range(0x300, 0x1E00), *range(0x302A, 0x3030), 0x3099, 0x309A, *range(0xA800, 0xAC00))
    if category(chr(code)) in {"Mn", "Mc"}
)
"""Accents, vowel signs and tone marks, which belong to the letter before them."""
UNSPACED: Final = (
    "\u0e01-\u0e2e\u0e30\u0e32\u0e33\u0e40-\u0e46"  # Thai
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"  # Lao
    "\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"  # Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"  # Japanese
    "\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Chinese
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3"  # Korean, whose spaces stand after the endings of a word
)
"""Letters of writing without spaces between words, as ranges of a character class."""
_LETTERS: Final = rf"[^\W_{UNSPACED}]++(?:[{MARKS}]++[^\W_{UNSPACED}]*+)*+"
WORD: Final = re.compile(rf"[{UNSPACED}][{UNSPACED}{MARKS}]*+|{_LETTERS}(?:[._'’-]{_LETTERS})*+")
ASCII_WORD: Final = re.compile(r"[A-Za-z0-9]++(?:[._'-][A-Za-z0-9]++)*+")
"""The same in a text of ASCII alone, in a third of the time."""
LETTER: Final = re.compile(rf"[{UNSPACED}][{MARKS}]*+")
"""A letter of such writing with its marks."""
IDEOGRAPH: Final = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
WRITINGS: Final = {
    "ja": re.compile("[\u3041-\u30ff\uff66-\uff9d]"),
    "zh": IDEOGRAPH,
    "ko": re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"),
    "th": re.compile("[\u0e01-\u0e46]"),
    "ru": re.compile("[\u0400-\u04ff]"),
}
"""Letters by the language that writes with them; Japanese has ideographs, too."""
SIGNS: Final = bytes(code for code in range(128) if not chr(code).isalpha())
"""All of ASCII but its letters."""
KOREAN_QUESTIONS: Final = tuple("몇 얼마 무엇 누구 언제 어디 어떻 어느 어떤 왜 뭐".split())
"""Beginnings of words that ask, which no answer has."""
JAPANESE_SHARE: Final = 10  # ideographs for each letter of Japanese from which a text is Chinese that cites a name
SEAM_WEIGHT: Final = 0.2
"""Weight of a pair of letters that no document has, or that has only endings: mostly the seam of two words."""
ENDINGS: Final = re.compile("[\u3041-\u309f]+")  # Hiragana, in which Japanese writes endings and particles
JOINT: Final = re.compile(r"[._'’-]")
KNOWN_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl")
STEMMED_LANGUAGES: Final = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
                            "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian",
                            "fi": "finnish", "ru": "russian"}  # fmt: skip
MIN_DOCUMENTS: Final = 20
"""Smaller collections weigh words as if they had this many, or a word in both of two documents would weigh nothing."""
FEW_DOCUMENTS: Final = 10
"""Up to this many, a word that none of them has loses weight, down to `MIN_ABSENT_SHARE` at half as many."""
MIN_ABSENT_SHARE: Final = 0.5
MIN_LEAD: Final = 0.26  # by how many distinctive words a language must lead English
RUN_ENDS: Final = 100  # characters at each end of a long run without white space that the sentence splitter sees
MIN_WRAPPED_WIDTH: Final = 30  # characters of the widest line of a paragraph that a program broke: a narrow column
OPENING_SIGNS: Final = "`'\"*_(["  # before the first letter of a line
FULL_WIDTH: Final = 60  # of the widest line from which full lines count; narrower lists look full by chance
FULL_LINES: Final = 0.8  # share of the lines that the next word would not have fitted on
SPACED_STOP: Final = re.compile("[.!?]")
EAST_ASIAN_STOP: Final = re.compile("[。！？｡]+[」』”’）》〉】]*\\s*")
CONTINUES: Final = re.compile(r"[\"'”’»)\]]+[,;:]")
"""How a sentence goes on behind a quotation that ends with a full stop: `“Not done.”, it says`."""
LONG_RUN: Final = re.compile(rf"(?<!\S)\S{{{4 * RUN_ENDS},}}+")
"""Longer than any word; the splitter would take quadratic time on it."""


@dataclass(frozen=True, slots=True)
class LanguageData:
    """A language: its stop words, and the sentences of reports."""

    code: str
    stop: frozenset[str]
    irregular: Mapping[str, str]
    """Forms of words that no stemmer joins, with the word that they are forms of: "worn" of "wear"."""
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
    """Sentences about a run, by message id (`contracts.sentences`)."""


@lru_cache(maxsize=len(KNOWN_LANGUAGES))
def language_data(code: str) -> LanguageData:
    """Return the data of a language, or those of English for an unknown one."""
    base = code.split("-", maxsplit=1)[0].casefold()
    known_code = base if base in KNOWN_LANGUAGES else "en"
    data = tomllib.loads(files(__package__ or "").joinpath("languages", f"{known_code}.toml").read_text("utf-8"))
    forms = (line.split(":") for line in data.get("irregular", "").strip().splitlines())
    data["irregular"] = {form: word.strip() for word, written in forms for form in written.split()}
    for name in ("stop", "frame", "shared", "openings", "corrections"):
        data[name] = frozenset(data.get(name, "").split())
    data.setdefault("sentences", SENTENCES)
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
    irregular: Mapping[str, str] = {}
    if language in KNOWN_LANGUAGES:
        irregular = language_data(language).irregular
    folded = irregular.get(folded, folded)
    if stemmer is None:
        return folded
    stemmed = str(stemmer.stemWord(folded))  # type: ignore[attr-defined]
    return str(stemmer.stemWord(irregular[stemmed])) if stemmed in irregular else stemmed  # type: ignore[attr-defined]  # men's


def fold(word: str) -> str:
    """Return a word in lower case, with one kind of apostrophe and one form of each letter."""
    return (word if word.isascii() else normalize("NFKC", word)).casefold().replace("’", "'")


def words(text: str) -> list[str]:
    """Return the words of a text as written; an identifier such as `autovacuum_freeze_max_age` is one word.

    In writing without spaces, all letters up to the next sign are one word.
    """
    return (ASCII_WORD if text.isascii() else WORD).findall(text)


def stems(text: str, language: str = "en") -> list[str]:
    """Return the stems of all words of a text, in order; for writing without spaces, its pairs of letters."""
    found = words(text)
    keys = {word: subject_keys(word, language) for word in set(found)}
    return [key for word in found for key in keys[word]]


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a writing without spaces, where it may be a whole sentence."""
    return LETTER.match(word) is not None


@lru_cache(maxsize=50_000)
def subject_keys(word: str, language: str) -> tuple[str, ...]:
    """Return the keys by which a question searches for a word: its stem, or its pairs of letters."""
    if is_unspaced(word):
        return word_keys(word, language)
    return (stem(word, language),)


def has_stem_of(word: str, texts: Iterable[str]) -> bool:
    """Return whether a Korean word may be in a text in another form: endings change all but its first letter.

    Words that ask are in none; of other writings the answer is no, for their words are found by stems or pairs.
    """
    if WRITINGS["ko"].match(word) is None:
        return False
    first = re.compile(rf"(?<![{UNSPACED}]){re.escape(word[0])}")
    return word.startswith(KOREAN_QUESTIONS) or any(first.search(text) for text in texts)


def _pairs(word: str) -> tuple[str, ...]:
    """Return the overlapping pairs of letters of a word, and each ideograph between letters of another kind."""
    letters = LETTER.findall(fold(word))
    if len(letters) < 2:
        return tuple(letters) or (fold(word),)
    kinds = [IDEOGRAPH.match(letter) is not None for letter in letters]
    alone = [
        letter
        for letter, before, here, after in zip(letters, [False, *kinds], kinds, [*kinds[1:], False], strict=False)
        if here and not before and not after
    ]
    return (*(one + other for one, other in pairwise(letters)), *alone)


@lru_cache(maxsize=50_000)
def word_keys(word: str, language: str) -> tuple[str, ...]:
    """Return the keys by which a word is found: its stem and, for a compound such as `freeze_max_age`, its parts.

    Writing without spaces is found by overlapping pairs of letters.
    """
    if is_unspaced(word):
        return _pairs(word)
    whole = stem(word, language)
    parts = [stem(part, language) for part in JOINT.split(word) if len(part) > 1]
    if parts in ([], [whole]):
        return (whole,)
    return (whole, *parts)


def meaning_words(text: str, language: str) -> list[str]:
    """Return the words that name a question's subject; capitals in a mixed-case text are names (`WITHOUT ROWID`)."""
    empty = language_data(language).empty
    names_stand_out = not text.isupper()
    return [
        word
        for word in words(text)
        if fold(word) not in empty or (names_stand_out and len(word) > 1 and word.isalpha() and word.isupper())
    ]


def inverse_document_frequency(count: int, documents: int) -> float:
    """Return the weight of a word that occurs in `count` of the documents, as in BM25."""
    others = max(0, max(documents, MIN_DOCUMENTS) - count)
    return math.log(1 + (others + 0.5) / (count + 0.5))


def key_weights(counts: Mapping[str, int], documents: int) -> dict[str, float]:
    """Return the weights of a question's keys, by the number of the documents that have each.

    A word that no document has counts less where there are few: a folder of notes may say the same in other words.
    """
    weights = {}
    absent_share = min(1.0, max(MIN_ABSENT_SHARE, documents / FEW_DOCUMENTS))
    for key, count in counts.items():
        is_seam = is_unspaced(key) and (not count or ENDINGS.fullmatch(key) is not None)
        if is_seam:
            share = SEAM_WEIGHT
        elif count:
            share = 1.0
        else:
            share = absent_share
        weights[key] = inverse_document_frequency(count, documents) * share
    return weights


def question_stems(text: str, language: str = "en") -> list[str]:
    """Return the distinct keys of the content words, in order; of frame words if there are none."""
    content_words = [word for word in words(text) if fold(word) not in language_data(language).stop]
    named = meaning_words(text, language) or content_words
    return list(dict.fromkeys(key for word in named for key in subject_keys(word, language)))


def detect_language(text: str) -> str:
    """Return the likely language by its stop words; English if unclear, beyond Latin letters that of the writing.

    `und` is a writing of several languages.
    """
    plain = text.encode("ascii", "ignore")
    is_plain = len(text) - len(plain) <= len(plain.translate(None, SIGNS))  # not more other signs than plain letters
    letters = []
    if not is_plain:
        letters = [character for character in text if character.isalpha()]
    if letters and sum(ord(character) > 0x24F for character in letters) > len(letters) / 2:
        found = Counter(code for letter in letters for code, pattern in WRITINGS.items() if pattern.match(letter))
        if found["ja"] and found["ja"] * JAPANESE_SHARE >= found["zh"]:
            return "ja"
        if not found:
            return "und"
        return max(found, key=lambda code: found[code])
    scores = dict.fromkeys(KNOWN_LANGUAGES, 0.0)
    languages_of = _languages_by_word()
    for word, count in Counter(words(fold(text))).items():
        for piece in dict.fromkeys((word, *word.split("'"))):
            languages = languages_of.get(piece, ())
            for language in languages:
                scores[language] += count / len(languages)
    best = max(scores.values())
    if scores["en"] >= best - MIN_LEAD:
        return "en"
    return max(scores, key=lambda language: scores[language])


@lru_cache(maxsize=1)
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    """Map each stop word to the languages that have it, as a stop word or a content word."""
    codes_by_word: dict[str, list[str]] = {}
    for code in KNOWN_LANGUAGES:
        for word in language_data(code).empty | language_data(code).shared:
            codes_by_word.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in codes_by_word.items()}


ELISIONS: Final = (" ...", " …")
"""Behind a blank: words left out within a phrase, such as `INSERT ... ON CONFLICT`, and no end of a sentence."""
ELISION_CHARACTERS: Final = 8  # in which an elision and the blanks behind it are looked for


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of each sentence, in linear time: the middle of a long run without white space is hidden.

    The splitter searches from each possible end of a sentence to the next white space, and ends none before it. Full
    stops of East Asia end a sentence without any.
    """
    ends = [match.end() for match in EAST_ASIAN_STOP.finditer(text)]
    if not ends:
        return _spaced_sentence_spans(text)
    spans: list[tuple[int, int]] = []
    start = 0
    for end in (*ends, len(text)):
        piece = text[start:end]
        if SPACED_STOP.search(piece):
            found = _spaced_sentence_spans(piece)
        else:
            found = [(0, len(piece))]
        spans += [(start + first, start + last) for first, last in found if piece.strip()]
        start = end
    return spans


def _spaced_sentence_spans(text: str) -> list[tuple[int, int]]:
    short = LONG_RUN.sub(lambda run: run[0][:RUN_ENDS] + "a" * (len(run[0]) - 2 * RUN_ENDS) + run[0][-RUN_ENDS:], text)
    spans: list[tuple[int, int]] = []
    for start, end in sent_spans(short):
        elided = short[max(0, start - ELISION_CHARACTERS) : start].rstrip().endswith(ELISIONS)
        if spans and (elided or CONTINUES.match(short, start)):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


# --- lines -------------------------------------------------------------------------------------------------------
def is_wrapped(lines: Sequence[str]) -> bool:
    """Return whether a program broke these lines of one paragraph; else their author did: a list, an address, a chat.

    A program breaks a line where the next word does not fit, and a sentence continues in lower case.
    """
    breaks = [(len(line.rstrip()), following.lstrip()) for line, following in pairwise(lines)]
    width = max((len(line.rstrip()) for line in lines), default=0)
    if not breaks or width < MIN_WRAPPED_WIDTH:
        return False
    full = sum(length + 1 + len(following.partition(" ")[0]) > width for length, following in breaks)
    lower = sum(following.lstrip(OPENING_SIGNS)[:1].islower() for _, following in breaks)
    continues = 2 * lower >= len(breaks) and 2 * full >= len(breaks)
    return continues or (width >= FULL_WIDTH and full >= FULL_LINES * len(breaks))


def is_covered(keys: frozenset[str], known: frozenset[str]) -> bool:
    """Return whether a passage says again what another one does; of short ones, a single word makes a difference."""
    shorter = min(len(keys), len(known))
    return len(keys & known) >= (shorter if shorter <= SHORT_KEYS else DUPLICATE_SHARE * shorter)
