"""Text of a brief: fixed connecting words without a claim of fact, and page text escaped for Markdown."""

import re
from itertools import pairwise
from typing import Final

from contracts.vocabulary import STOP_REASON_TEXTS

ADMISSION: Final = "Evidence brief, written without a language model: every indented passage is quoted word for word."
EMPTY_ADMISSION: Final = (
    "Evidence brief, written without a language model: nothing is quoted, because nothing was found."
)
SHORT_ANSWER: Final = "Short answer"
QUALIFIED: Final = "The documents qualify the question:"
DISAGREE: Final = "Where the documents disagree or qualify"
NOT_COVERED: Final = "Not covered, and limits"
MORE: Final = "More passages"
TABLE_HEAD: Final = "| Name | Value in the text | Said of it (quoted) | Source |\n| --- | --- | --- | --- |"
NO_ANSWER: Final = "The documents that were searched do not answer this question, so nothing is claimed here."
NO_ANSWER_YET: Final = (
    "What was read before the run was cut short does not answer this question, so nothing is claimed here. "
    "The rest was not looked at."
)
WHAT_TO_TRY: Final = "What to try"
WHAT_WAS_SEARCHED: Final = "What was searched"
TRY: Final = (
    "- Ask with the words that the documents themselves use.",
    "- Ask for one thing at a time.",
    "- Add documents that cover the subject, or allow a search of the web.",
)
ONE_VOICE: Final = "Agreement among pages of one publisher is not independent."
NO_GAPS: Final = "- No gap was recorded; that does not mean that the documents say everything."
RANKED: Final = (
    "- Passages were chosen by the words they share with the question; a passage in other words can be missed."
)
UNSTEMMED: Final = (
    "- No word stems are known for the language '{language}': only words in the very same form were matched."
)
RULES_ARE_ENGLISH: Final = (
    "- The rules that tell kinds of sentences apart are made for English; for the language '{language}' they help less."
)

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


def cut_short(reason: str) -> str:
    """The sentence that says that the run could not do all it planned."""
    why = STOP_REASON_TEXTS.get(reason, reason.replace("_", " "))
    return f"**Cut short:** {why}; not everything that was planned was done."


def plural(number: int, one: str, many: str) -> str:
    """A count with its noun."""
    return f"{number:,} {one if number == 1 else many}"


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
