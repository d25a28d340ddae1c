"""Text of a brief: fixed connecting words without a claim of fact, and page text escaped for Markdown."""

import re
from itertools import pairwise
from typing import Final

from contracts.vocabulary import STOP_REASON_TEXTS
from providers.language_words import language_words

_ALWAYS = re.compile(r"[\\`*\[\]<>|~$]")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_EDGE_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)|__+")
_LINE_START_NUMBER = re.compile(r"^(\s*\d{1,9})([.)])")
_IMAGE = re.compile(r"!(?=\\\[)")


_NEW_LINE: Final = re.compile(r"\\?[-+*|•]\\? |\d{1,3}\\?[.)] |\\\|")
SHORTEST_WRAPPED: Final = 60
"""Characters: programs that wrap text fill at least so much of a line."""
HARD_BREAK: Final = "  "
"""At the end of a line: the next one begins on a line of its own."""


class BriefWords:
    """The fixed sentences of a brief in the language of the question; they make no claim of fact."""

    def __init__(self, language: str) -> None:
        self._words = language_words(language)

    def __getitem__(self, name: str) -> str:
        return self._words.brief[name]

    def say(self, name: str, /, **values: object) -> str:
        """A sentence with its values."""
        return self._words.brief[name].format(**values)

    def heading(self, facet: str) -> str:
        """The heading of a part of the answer."""
        return self._words.headings[facet]

    def missing(self, form: str) -> str:
        """What is missing where no passage has a form."""
        return self._words.missing[form]

    def count(self, number: int, one: str, many: str) -> str:
        """A number with its noun."""
        return f"{number:,} {self[one] if number == 1 else self[many]}"

    def cut_short(self, reason: str) -> str:
        """The sentence that says that the run could not do all it planned."""
        return f"**{self.say('cut_short', why=STOP_REASON_TEXTS.get(reason, reason.replace('_', ' ')))}**"


def escape(text: str) -> str:
    """One line of page text as Markdown that shows it literally."""
    safe = _ALWAYS.sub(lambda match: "\\" + match.group(), text)
    safe = _ENTITY.sub(r"\\&", safe)
    safe = _EDGE_UNDERSCORE.sub(lambda match: "\\_" * len(match.group()), safe)
    safe = _IMAGE.sub(r"\\!", safe)
    safe = _LINE_START_NUMBER.sub(r"\1\\\2", safe)
    return re.sub(r"^(\s*)([-+#=])", r"\1\\\2", safe)


def one_line(text: str) -> str:
    """Page text on one line, escaped: for titles, headings and cells."""
    return escape(" ".join(text.split()))


def _keeps_apart(line: str, following: str) -> bool:
    """Whether the next line begins something new; a line that was only wrapped had no room for its first word."""
    if not line or not following:
        return False
    return bool(_NEW_LINE.match(following)) or len(line) + 1 + len(following.split(maxsplit=1)[0]) <= SHORTEST_WRAPPED


def blockquote(text: str, marker: str, indent: str = "") -> str:
    """A quote as a Markdown blockquote that ends with its marker; an item, a row or a term keeps its line."""
    lines = [escape(line.strip()) for line in text.strip().splitlines()]
    lines[-1] = f"{lines[-1]} {marker}"
    kept = [f"{line}{HARD_BREAK}" if _keeps_apart(line, after) else line for line, after in pairwise([*lines, ""])]
    return "\n".join(f"{indent}> {line}" if line else f"{indent}>" for line in kept)
