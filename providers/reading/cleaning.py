"""Invisible characters go, forms are unified: what is left can be quoted and compared."""

import re
from typing import Final

from contracts.addresses import normalize, with_few_marks

INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Soft hyphens, zero-width and bidirectional controls, variation selectors, Unicode tags."""
CONTROL: Final = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
UNSEEN: Final = re.compile(f"[{INVISIBLE}{CONTROL}]+")
LINE_END: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
LINE_ENDS: Final = "\r\x0b\x0c\x85\u2028\u2029"
PLAIN: Final = re.compile(r"[\t\n -~]*")
LONGEST_NAME: Final = 70
LONGEST_NAMES: Final = 300
"""Characters of a name, and of all names that are stated at once."""
LOOKS_LIKE_MARKUP: Final = re.compile(r"(?m)^(#{1,6}[ \t]|```|~~~)")


def clean(text: str) -> str:
    """Unified line ends, no invisible or control characters, NFC. Idempotent."""
    if PLAIN.fullmatch(text):
        return text
    if any(end in text for end in LINE_ENDS):  # a search for each costs less than one for all of them
        text = LINE_END.sub("\n", text)
    text = with_few_marks(UNSEEN.sub("", text))
    composed = normalize("NFC", text)
    # Once more where something changed: a few marks are written as two.
    return text if composed == text else with_few_marks(composed)


def one_line(text: str) -> str:
    """White space collapsed to single spaces."""
    return " ".join(text.split())


def escape_markup(text: str) -> str:
    """Prose that would read as a heading or a fence gets a backslash, as Markdown has it."""
    if "#" in text or "`" in text or "~" in text:
        return LOOKS_LIKE_MARKUP.sub(r"\\\1", text)
    return text


def is_name(words: str) -> bool:
    """Whether a statement about an author or a publisher, which no reader sees, can be a name rather than a message."""
    parts = words.replace(";", ",").split(",")
    return bool(words) and max(map(len, parts)) <= LONGEST_NAME and len(words) <= LONGEST_NAMES and "://" not in words
