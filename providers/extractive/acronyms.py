"""Acronyms that the documents themselves explain: `write-ahead log (WAL)` lets WAL stand for its words."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from providers.extractive.question_terms import QuestionTerms, word_keys
from providers.text import words

_SHORT_IN_BRACKETS = re.compile(r"\([\"“']?([A-Z]{2,6})[\"”']?\)")
_LONG_IN_BRACKETS = re.compile(r"\b([A-Z]{2,6}) \(([A-Za-z][A-Za-z -]{3,80})\)")
LONGEST_NAME = 90
"""Characters before the brackets that may hold the long form."""


def with_acronyms(terms: QuestionTerms, texts: Iterable[str], language: str) -> QuestionTerms:
    """The terms, each with the acronyms of phrases in which the question names it."""
    asked = {key for term in terms.terms for key in (term.key, *term.parts)}
    found: dict[str, set[str]] = {}
    for text in texts:
        for long, short in _pairs(text):
            parts = _named_by(long, short)
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


def _named_by(long: str, short: str) -> list[str]:
    """The last words of a phrase whose first letters spell the acronym; none if they do not."""
    parts = [part for word in words(long) for part in word.split("-")]
    tail = parts[-len(short) :]
    return tail if "".join(part[0] for part in tail).casefold() == short.casefold() else []
