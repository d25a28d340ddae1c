"""Text of a brief: fixed connecting words without a claim of fact, and page text escaped for Markdown."""

import re
from typing import TYPE_CHECKING

from contracts.vocabulary import STOP_REASON_TEXTS
from providers.language_words import language_words

if TYPE_CHECKING:
    from providers.extractive.quotations import Quotation

_ALWAYS = re.compile(r"[\\`*\[\]<>|~$]")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_EDGE_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)|__+")
_LINE_START_NUMBER = re.compile(r"^(\s*\d{1,9})([.)])")
_IMAGE = re.compile(r"!(?=\\\[)")


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


def quoted_block(one: "Quotation", indent: str = "") -> str:
    """A quotation as Markdown: a blockquote with its marker; rows of a table without their bars."""
    return blockquote(one.text, one.marker, indent)


def blockquote(text: str, marker: str, indent: str = "") -> str:
    """A quote as a Markdown blockquote that ends with its marker."""
    lines = [escape(line.strip()) for line in text.strip().splitlines()]
    lines[-1] = f"{lines[-1]} {marker}"
    return "\n".join(f"{indent}> {line}".rstrip() for line in lines)
