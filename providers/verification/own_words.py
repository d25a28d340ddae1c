"""What each of several passages alone has of a statement, in a few words, so that a reader knows which to cite."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from contracts.texts import shorten
from providers.text import fold, language_data, stem

OWN_CHARACTERS: Final = 32
"""Of the words of a passage: about four, which take fewer tokens than its label."""
BRACKETS: Final = "()[]{}"
AROUND_WORDS: Final = ".,;:!?\"'“”‘’«»…*`"


def own_words(statement: str, passages: Sequence[str], language: str) -> list[str]:
    """Return for each passage words of the statement that it has and the others lack.

    If there are none, return how the passage begins.
    """
    wanted = dict(_keyed(statement, language))
    keys = [{key for _, key in _keyed(passage, language)} for passage in passages]
    counts = Counter(key for one in keys for key in one)
    result = []
    for passage, known in zip(passages, keys, strict=True):
        own = [word for word, key in wanted.items() if key in known and counts[key] == 1]
        result.append(shorten(_first(own) or " ".join(passage.split()), OWN_CHARACTERS))
    return result


def _keyed(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield the words, figures and names of a text, each with the form in which they are compared; no frame words."""
    empty = language_data(language).empty
    for written in text.split():
        word = written.strip(AROUND_WORDS + BRACKETS)
        call = written.strip(AROUND_WORDS)  # `json_each(X)`
        is_call = call.startswith(word) and call.count("(") == call.count(")")
        if word and fold(word) not in empty:
            key = stem(word, language) if word.isalpha() else fold(word.replace("`", "").replace("\\", ""))
            yield call if is_call else word, key


def _first(words: Sequence[str]) -> str:
    """Return the first words that fit into `OWN_CHARACTERS`."""
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > OWN_CHARACTERS:
            break
        line = f"{line} {word}".strip()
    return line
