"""Words from outside as a terminal and the web UI of Temporal may show them. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Final

CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""C0 (but for tab and newline) and C1, separators that some take for newlines, halves of characters."""
INVISIBLE: Final = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Marks and overrides of direction, zero-width characters, tags."""
REPLACEMENT: Final = "\ufffd"

_CONTROL: Final = re.compile(f"[{CONTROLS}]")
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_EITHER: Final = re.compile(f"[{CONTROLS}{INVISIBLE}]")


def plural(count: int, noun: str) -> str:
    """`1 gap`, `2 gaps`, `3 sub-queries`."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words and marked with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    spaced = head.rfind(" ")
    # A text without spaces (Chinese, a long identifier) is cut where the limit falls.
    return (head[:spaced] if spaced > limit // 2 else head).rstrip() + "…"


def visible(text: str) -> str:
    """The text as a terminal may have it: each control character shows as a sign, invisible ones are gone.

    Lines and tabs stay, also lines that end as on Windows.
    """
    return _CONTROL.sub(REPLACEMENT, _INVISIBLE.sub("", text.replace("\r\n", "\n")))


def visible_json(text: str) -> str:
    """The same JSON, with such characters written as their codes."""
    return _EITHER.sub(lambda found: json.dumps(found[0])[1:-1], text)


ACTIVE: Final = re.compile(r"[\\`*_\[\]<>&~|$]")
"""Makes code, emphasis, links, images, HTML, entities, tables and formulas."""
LEADING: Final = re.compile(r"^(?:[#+=-]|[0-9]+[.)])")
"""Makes headings, lists and rules of a line that begins with it."""
LINKING: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
"""Where an address becomes a link by itself."""
BREAK: Final = "\u2060"
"""An invisible joiner: the address can be read, and is no link."""
ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|\u2060")


def as_markdown(text: str, characters: int, most_bytes: int) -> str:
    """One line that reads as the text, at most so many signs of it, and so many bytes of JSON altogether.

    What was cut ends in `…`.
    """
    line = text[: 8 * characters]
    if not line.isprintable():
        line = "".join(sign if sign.isprintable() else " " for sign in line)
    line = " ".join(line.split())
    cut = len(line) > characters
    shown = line[: characters - 1] if cut else line
    while True:
        whole = _escape(f"{shown.rstrip()}…" if cut else shown)
        over = len(json.dumps(whole, ensure_ascii=False).encode()) - most_bytes
        if over <= 0:
            return whole
        cut, shown = True, shown[: -max(1, over // 8)]


def from_markdown(shown: str) -> str:
    """The text that a line was made of, as far as it was not cut."""
    return ESCAPED.sub(lambda found: found[1] or "", shown)


def _escape(line: str) -> str:
    plain = LINKING.sub(BREAK, ACTIVE.sub(r"\\\g<0>", line))
    start = LEADING.match(plain)
    return plain if start is None else f"{plain[: start.end() - 1]}\\{plain[start.end() - 1 :]}"
