"""Text from outside on its way to a terminal, which would obey what is written in it.

Escape sequences can recolour, overwrite and hide what stands there, set titles and clipboards, and make the terminal
type; overrides of the writing direction and characters without a width make a name look like another one.
"""

import json
import re
from typing import Final

CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""C0 (but for tab and newline) and C1, separators that some take for newlines, halves of characters."""
INVISIBLE: Final = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Marks and overrides of direction, zero-width characters, tags."""
REPLACEMENT: Final = "\ufffd"

_CONTROL: Final = re.compile(f"[{CONTROLS}]")
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_EITHER: Final = re.compile(f"[{CONTROLS}{INVISIBLE}]")


def visible(text: str) -> str:
    """The text as a terminal may have it: each control character shows as a sign, invisible ones are gone.

    Lines and tabs stay, also lines that end as on Windows.
    """
    return _CONTROL.sub(REPLACEMENT, _INVISIBLE.sub("", text.replace("\r\n", "\n")))


def visible_json(text: str) -> str:
    """The same JSON, with such characters written as their codes."""
    return _EITHER.sub(lambda found: json.dumps(found[0])[1:-1], text)
