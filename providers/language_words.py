"""What the engine knows of each language: how a question asks, and how an answer to it sounds; data in `languages/`."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

WORD: Final = re.compile(r"[^\W_]+(?:[._'’-][^\W_]+)*", re.UNICODE)
KNOWN_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl")


class Phrases:
    """Words and groups of words, found among folded tokens in one pass."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for text in texts:
            parts = tuple(fold(text))
            if parts:
                self._by_first.setdefault(parts[0], []).append(parts)
        for group in self._by_first.values():
            group.sort(key=len, reverse=True)

    def at(self, tokens: Sequence[str], place: int) -> int:
        """How many tokens the longest phrase that begins at a place has; 0 if none does."""
        for parts in self._by_first.get(tokens[place], ()):
            if tuple(tokens[place : place + len(parts)]) == parts:
                return len(parts)
        return 0

    def places(self, tokens: Sequence[str]) -> list[int]:
        """Where phrases begin."""
        return [place for place in range(len(tokens)) if self.at(tokens, place)]

    def found(self, tokens: Sequence[str]) -> bool:
        """Whether any phrase stands among the tokens."""
        return any(self.at(tokens, place) for place in range(len(tokens)))

    def first_words(self) -> frozenset[str]:
        """The phrases of a single word."""
        return frozenset(word for word, group in self._by_first.items() if (word,) in group)


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """One language."""

    code: str
    stop: frozenset[str]
    frame: frozenset[str]
    """Words that say how to answer, not what about."""
    infinitives: tuple[str, ...]
    """How the verb ends in `how to …`, where the language says it so: `comment ajouter`."""
    idioms: Phrases
    """Groups of words that carry no meaning of their own: `at the same time`."""
    synonyms: Mapping[str, tuple[str, ...]]
    """Word → other words of the same doing, irregular forms above all: `starb`, `gestorben`."""
    asks: Mapping[str, Phrases]
    """Form of an answer → how a question that wants it begins."""
    asks_inside: Mapping[str, Phrases]
    tells: Mapping[str, Phrases]
    """Kind of evidence → words that show it."""
    brief: Mapping[str, str]
    """The fixed sentences of a brief."""
    headings: Mapping[str, str]
    """Part of an answer → the heading it stands under."""
    missing: Mapping[str, str]
    """Form of an answer → what is missing without it."""
    other_words: Mapping[str, str]
    """Form of an answer → words that its documents may use where the question has others."""
    report: Mapping[str, str]
    """What a report prints about itself."""
    told: Mapping[str, str]
    """Sentences that are made in English elsewhere and printed by reports."""
    aspects: Mapping[str, str]
    """Part of an answer → how a search asks for it."""
    language_names: Mapping[str, str]


@lru_cache(maxsize=len(KNOWN_LANGUAGES))
def language_words(code: str) -> LanguageWords:
    """The words of a language; those of English for one that is not known."""
    base = code.split("-", maxsplit=1)[0].casefold()
    known = base if base in KNOWN_LANGUAGES else "en"
    source = files(__package__ or "").joinpath("languages", f"{known}.toml").read_text("utf-8")
    data = tomllib.loads(source)
    return LanguageWords(
        code=known,
        stop=frozenset(data["stop"].split()),
        frame=frozenset(data["frame"].split()),
        synonyms=_relate(data["synonyms"]),
        infinitives=tuple(data["infinitives"]),
        idioms=Phrases(data["idioms"]),
        asks={name: Phrases(texts) for name, texts in data["asks"].items()},
        asks_inside={name: Phrases(texts) for name, texts in data["asks_inside"].items()},
        tells={name: Phrases(texts) for name, texts in data["tells"].items()},
        brief=data["brief"],
        headings=data["headings"],
        missing=data["missing"],
        other_words=data["other_words"],
        report=data["report"],
        told=data["told"],
        aspects=data["aspects"],
        language_names=data["language_names"],
    )


def _relate(groups: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in groups:
        members = tuple(group.split())
        for word in members:
            found[word] = (*found.get(word, ()), *(other for other in members if other != word))
    return found


def fold(text: str) -> list[str]:
    """The words of a text, folded, with one kind of apostrophe."""
    return [word.casefold().replace("’", "'") for word in WORD.findall(text)]
