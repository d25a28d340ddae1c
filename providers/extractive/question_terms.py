"""Terms of a question with weights and acronyms, and the names that must occur for it to be answerable."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from providers.extractive.lexicon import QUESTION_OPENERS, RELATED
from providers.text import STOP_WORDS, empty_words, meaning_words, stem, words

ALTERNATIVE_CREDIT = 0.6
"""What a related word is worth against the word itself."""
PARTS = re.compile(r"[._'’-]")
QUOTED = re.compile(r"[\"“”`«»]([^\"“”`«»]{2,60})[\"“”`«»]")
NAME = re.compile(r"[A-Za-z_][\w.+#-]*\w\+*|[A-Z]\b")
_SHORT_IN_BRACKETS = re.compile(r"\([\"“']?([A-Z]{2,6})[\"”']?\)")
_LONG_IN_BRACKETS = re.compile(r"\b([A-Z]{2,6}) \(([A-Za-z][A-Za-z -]{3,80})\)")
NOUNS_ARE_CAPITAL = ("de",)
LONGEST_NAME = 90
"""Characters before the brackets that may hold the long form."""


@lru_cache(maxsize=65_536)
def word_keys(word: str, language: str) -> tuple[str, ...]:
    """The stem of a word as the index knows it, and the stems of its parts (`write-ahead`: write, ahead)."""
    whole = stem(word, language)
    parts = [stem(part, language) for part in PARTS.split(word) if len(part) > 1]
    return (whole,) if parts == [whole] else (whole, *parts)


def text_keys(text: str, language: str) -> frozenset[str]:
    """All stems of a text, of compounds and of their parts."""
    return frozenset(key for word in words(text) for key in word_keys(word, language))


def text_pairs(text: str, language: str) -> frozenset[tuple[str, str]]:
    """The stems of all neighbouring words of a text: what makes a phrase or an identifier."""
    found = [word_keys(word, language) for word in words(text)]
    flat = [key for keys in found for key in (keys[1:] if len(keys) > 1 else keys)]
    return frozenset(pairwise(flat))


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the question: its stem, how much it tells, and the stems that may stand for it."""

    word: str
    key: str
    parts: frozenset[str]
    related: frozenset[str]
    weight: float
    joined: frozenset[str] = frozenset()
    """Stems of the word and a neighbour written as one."""

    def credit(self, keys: frozenset[str]) -> float:
        """1 if the word is there, less for a related one, else 0."""
        if self.key in keys or (self.parts and self.parts <= keys) or self.joined & keys:
            return 1.0
        return ALTERNATIVE_CREDIT if self.related & keys else 0.0


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The weighted terms of a question."""

    terms: tuple[Term, ...]
    total: float
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Neighbouring key words: `foreign key`, `full_page_writes`."""

    def phrasing(self, pairs: frozenset[tuple[str, str]]) -> float:
        """Share of the question's pairs of words that a text holds side by side (0 to 1)."""
        return len(self.pairs & pairs) / len(self.pairs) if self.pairs else 0.0

    def coverage(self, keys: frozenset[str], context: frozenset[str] = frozenset()) -> float:
        """Share of the question's weight that a text covers (0 to 1); its heading path counts half."""
        if not self.total:
            return 0.0
        covered = sum(term.weight * max(term.credit(keys), 0.5 * term.credit(context)) for term in self.terms)
        return covered / self.total

    def present(self, keys: frozenset[str]) -> frozenset[str]:
        """The stems of the question's terms that occur."""
        return frozenset(term.key for term in self.terms if term.credit(keys) > 0)

    def weight_of(self, present: Iterable[str]) -> float:
        """Share of the question's weight that these stems make up."""
        chosen = set(present)
        return sum(term.weight for term in self.terms if term.key in chosen) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of how many documents each stem occurs."""

    documents: int
    counts: Mapping[str, int]
    whole_corpus: bool
    """False when only the documents that were read could be counted."""

    def weight(self, key: str) -> float:
        """Inverse document frequency in BM25's form; an uncounted stem counts as rare but present."""
        found = self.counts.get(key, 1)
        return math.log(1 + (max(self.documents - found, 0) + 0.5) / (found + 0.5))

    def absent(self, key: str) -> bool:
        """Whether the stem is known to occur nowhere."""
        return self.counts.get(key) == 0


def frequencies(
    documents_searched: int | None,
    term_documents: Mapping[str, int],
    texts: Iterable[frozenset[str]],
    wanted: Iterable[str],
) -> Frequencies:
    """The corpus's own counts where a search told them, else counts over the documents at hand."""
    if documents_searched and term_documents:
        return Frequencies(documents_searched, dict(term_documents), whole_corpus=True)
    key_sets = list(texts)
    counts = {key: sum(key in keys for keys in key_sets) for key in wanted}
    return Frequencies(max(len(key_sets), 1), counts, whole_corpus=False)


def key_words(question: str, language: str = "en") -> list[str]:
    """The words of a question that say what it is about, as written, each once, in order."""
    kept: dict[str, str] = {}
    for word in meaning_words(question, language):
        folded = word.casefold()
        if len(word) < 2 and not word.isupper():
            continue
        kept.setdefault(folded.removesuffix("'s").removesuffix("’s"), re.sub(r"['’]s$", "", word))
    return list(kept.values())


def question_terms(question: str, language: str, known: Frequencies) -> QuestionTerms:
    """Weigh the key words of a question; all words of meaning where nothing else is left."""
    chosen = key_words(question, language) or words(question)
    terms: dict[str, Term] = {}
    for word in chosen:
        key, *parts = word_keys(word, language)
        related = frozenset(RELATED.get(key, ())) if language == "en" else frozenset[str]()
        terms.setdefault(key, Term(word, key, frozenset(parts), related, known.weight(key)))
    if language == "en":
        terms = {term.key: term for term in _join_neighbours(list(terms.values()))}
    total = sum(term.weight for term in terms.values())
    return QuestionTerms(tuple(terms.values()), total, _key_pairs(question, frozenset(terms), language))


def _join_neighbours(terms: list[Term]) -> list[Term]:
    """Neighbouring words may be written as one: `data types` also matches `datatypes`."""
    found = list(terms)
    for position, (one, other) in enumerate(pairwise(terms)):
        both = frozenset({stem((one.word + other.word).casefold())})
        for place in (position, position + 1):
            found[place] = replace(found[place], joined=found[place].joined | both)
    return found


def _key_pairs(question: str, keys: frozenset[str], language: str) -> frozenset[tuple[str, str]]:
    """Pairs of neighbours in the question that are both key words."""
    parts = keys | {part for key in keys for part in word_keys(key, language)[1:]}
    return frozenset(pair for pair in text_pairs(question, language) if pair[0] in parts and pair[1] in parts)


def named_terms(question: str, language: str = "en") -> list[str]:
    """Names in a question, as written: quoted, identifier-like, or capitalised inside the sentence.

    Where all nouns are capitalised, a capital says nothing.
    """
    found: dict[str, str] = {}
    for quoted in QUOTED.findall(question):
        found.setdefault(quoted.casefold(), quoted.strip())
    end, before = 0, ""
    for match in NAME.finditer(question):
        word = re.sub(r"['’]s$", "", match.group().rstrip(".-"))
        between = question[end : match.start()].rstrip()
        before = between[-1:] or question[end - 1 : end] or before
        opening, end = not before or before in ".?!:¿¡", match.end()
        if _is_name(word, language, opening=opening) and not any(word in quoted for quoted in found.values()):
            found.setdefault(word.casefold(), word)
    return list(found.values())


def _is_name(word: str, language: str, *, opening: bool) -> bool:
    folded = word.casefold()
    if len(word) < 2 or folded in empty_words(language) or folded in QUESTION_OPENERS:
        return False
    odd = "_" in word or any(character.isdigit() for character in word) or any(c.isupper() for c in word[1:])
    return odd or (word[0].isupper() and not opening and language not in NOUNS_ARE_CAPITAL)


def missing_names(
    question: str, language: str, known: Frequencies, loaded: Callable[[], Iterable[frozenset[str]]]
) -> list[str]:
    """Names of the question that occur nowhere, as far as counts can tell; `loaded` gives the stems of read texts."""
    suspects = [
        (name, word)
        for name in named_terms(question, language)
        for word in words(name)
        if word.casefold() not in STOP_WORDS and _is_uncounted(word_keys(word, language)[0], known)
    ]
    if not suspects:
        return []
    key_sets = list(loaded())
    gone = []
    for name, word in suspects:
        key, *rest = word_keys(word, language)
        parts = set(rest)
        if not any(key in keys or (parts and parts <= keys) for keys in key_sets):
            gone.append(name)
    return list(dict.fromkeys(gone))


def _is_uncounted(key: str, known: Frequencies) -> bool:
    return known.absent(key) or (not known.whole_corpus and known.counts.get(key, 0) == 0)


def with_acronyms(terms: QuestionTerms, texts: Iterable[str], language: str) -> QuestionTerms:
    """The terms, each with the acronyms of phrases in which the question names it."""
    asked = {key for term in terms.terms for key in (term.key, *term.parts)}
    found: dict[str, set[str]] = {}
    for text in texts:
        for long, short in _pairs(text):
            parts = _name_by(long, short)
            keys = {key for part in parts for key in word_keys(part, language)}
            if len(parts) > 1 and all(set(word_keys(part, language)) & asked for part in parts):
                for key in keys:
                    found.setdefault(key, set()).add(word_keys(short, language)[0])
    if not found:
        return terms
    widened = tuple(
        replace(
            term,
            related=term.related.union(*(found.get(key, set()) for key in (term.key, *term.parts))),
        )
        for term in terms.terms
    )
    return replace(terms, terms=widened)


@lru_cache(maxsize=256)
def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Long and short forms that stand side by side in a text, each once."""
    found = [
        (text[max(0, match.start() - LONGEST_NAME) : match.start()], match.group(1))
        for match in _SHORT_IN_BRACKETS.finditer(text)
    ]
    found += [(match.group(2), match.group(1)) for match in _LONG_IN_BRACKETS.finditer(text)]
    return tuple(dict.fromkeys(found))


def _name_by(long: str, short: str) -> list[str]:
    """The last words of a phrase whose first letters spell the acronym; none if they do not."""
    parts = [part for word in words(long) for part in word.split("-")]
    tail = parts[-len(short) :]
    return tail if "".join(part[0] for part in tail).casefold() == short.casefold() else []
