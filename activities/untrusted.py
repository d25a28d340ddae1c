"""Words from outside, made harmless for a prompt: still readable, never able to close or imitate our own elements."""

import html
import re
from typing import Final

from activities.wording import bounded, one_line

INVISIBLE_CLASS: Final = (
    "\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Characters that a reader does not see and a model does: a place to hide words or to split a tag."""

INVISIBLE: Final = re.compile(f"[{INVISIBLE_CLASS}]")

OUR_ELEMENTS: Final = "source|sources|finding|findings|gap|gaps|guidance|issues|question|sub_query|earlier|draft"
TAG: Final = re.compile(rf"[<＜](?=\s*+(?:[/／]\s*+)?(?:{OUR_ELEMENTS})\b)", re.IGNORECASE)
MARKER: Final = re.compile(r"[\[【［](?=\s*(?:ev|src|f|gap)-)", re.IGNORECASE)


def guarded(text: str) -> str:
    """The text without invisible characters; tags named like ours lose their opening sign."""
    return TAG.sub("‹", INVISIBLE.sub("", text))


def guarded_line(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters, so that it cannot imitate a line of ours, nor a marker."""
    return MARKER.sub("(", bounded(one_line(guarded(text)), limit))


def attribute(text: str, limit: int = 300) -> str:
    """The text as the value of an attribute, without the quotation marks around it."""
    return html.escape(guarded_line(text, limit), quote=True)
