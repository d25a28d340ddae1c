"""Words of others on the pages of the engine's web UI, which takes what it is given for Markdown. Pure."""

import json
import re
from typing import Final

ACTIVE: Final = re.compile(r"[\\`*_\[\]<>&~|$]")
"""Makes code, emphasis, links, images, HTML, entities, tables and formulas."""
LEADING: Final = re.compile(r"^(?:[#+=-]|[0-9]+[.)])")
"""Makes headings, lists and rules of a line that begins with it."""
LINKING: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
"""Where an address becomes a link by itself."""
BREAK: Final = "\u2060"
"""A joiner that nobody sees: the address can be read, and is no link."""
ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|\u2060")


def as_markdown(text: str, characters: int, most_bytes: int) -> str:
    """One line that reads as the text, at most so many signs of it, and so many bytes of JSON altogether.

    What was cut ends in `…`.
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[: 8 * characters]).split())
    cut = len(line) > characters
    shown = line[: characters - 1] if cut else line
    while True:
        whole = _escaped(f"{shown.rstrip()}…" if cut else shown)
        over = len(json.dumps(whole, ensure_ascii=False).encode()) - most_bytes
        if over <= 0:
            return whole
        cut, shown = True, shown[: -max(1, over // 8)]


def from_markdown(shown: str) -> str:
    """The text that a line was made of, as far as it was not cut."""
    return ESCAPED.sub(lambda found: found[1] or "", shown)


def _escaped(line: str) -> str:
    plain = LINKING.sub(BREAK, ACTIVE.sub(r"\\\g<0>", line))
    start = LEADING.match(plain)
    return plain if start is None else f"{plain[: start.end() - 1]}\\{plain[start.end() - 1 :]}"
