"""Words from outside, made harmless for a prompt: still readable, never able to close or imitate our own elements.

They stand in elements whose names end in a mark that no page can know, and each of their lines begins with a
sign made of it. The mark is made of the finished part of the prompt under the run's canary, so it is filled in last.
"""

import hashlib
import hmac
import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from activities.roles.evidence_markers import with_escaped_markers
from activities.roles.lenient_values import one_line
from contracts.base import Contract
from contracts.texts import shorten

C = TypeVar("C", bound=Contract)

INVISIBLE_CLASS: Final = (
    "\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Characters that a reader does not see and a model does: a place to hide words or to split a tag."""

INVISIBLE: Final = re.compile(f"[{INVISIBLE_CLASS}]")

OUR_ELEMENTS: Final = (
    "source|sources|finding|findings|gap|gaps|guidance|issues|question|sub_query|sub_queries|earlier|draft|wishes|"
    "brief|corpus|previous|expected|improvements|asked|reflection|additional_context|statement|passage"
)
TAG: Final = re.compile(rf"[<＜](?=\s*+(?:[/／]\s*+)?(?:{OUR_ELEMENTS})(?:\b|_))", re.IGNORECASE)

MARK: Final = "\x01"
"""Stands for the mark until a part is finished. No word from outside can hold it: it is one of the invisible ones."""
SIGN: Final = "\x02"
"""Stands for what a line of data begins with, likewise."""
MARK_CHARACTERS: Final = 10
SIGN_CHARACTERS: Final = 2
SIGN_END: Final = "¦"
ANY_SIGN: Final = re.compile(rf"(?<![0-9a-f])[0-9a-f]{{{SIGN_CHARACTERS}}}{SIGN_END} ?")
IMITATED_SIGN: Final = re.compile(rf"(?<=[0-9a-f]{{{SIGN_CHARACTERS}}}){SIGN_END}", re.IGNORECASE)
LINE_CHARACTERS: Final = 160
"""Longer lines of a page are broken between words, so that a sign is never far away."""


def guard(text: str) -> str:
    """The text without invisible characters; tags named like ours lose their opening sign."""
    return IMITATED_SIGN.sub("|", TAG.sub("‹", INVISIBLE.sub("", text)))


def guard_line(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters, so that it cannot imitate a line of ours, nor a marker.

    What looks like a marker is escaped as Markdown has it: a model that copies it writes words, not a citation.
    """
    return with_escaped_markers(shorten(one_line(guard(text)), limit))


def attribute(text: str, limit: int = 300) -> str:
    """The text as the value of an attribute, without the quotation marks around it."""
    return html.escape(guard_line(text, limit), quote=True)


def data(name: str, lines: Iterable[str], attributes: str = "") -> str:
    """An element of data, with a sign before each line of words; the lines are guarded already. Empty without lines."""
    signed = [f"{SIGN}{line}" if line.strip() else "" for line in lines]
    return "\n".join([f"<{name}-{MARK}{attributes}>", *signed, f"</{name}-{MARK}>\n"]) if signed else ""


def break_lines(text: str) -> Iterator[str]:
    """The lines of a guarded text, long ones broken where there is a space: quotes are found over line breaks, too."""
    for line in text.splitlines():
        start = 0
        while len(line) - start > LINE_CHARACTERS:
            end = line.rfind(" ", start + LINE_CHARACTERS // 2, start + LINE_CHARACTERS)
            if end < 0:
                end = line.find(" ", start + LINE_CHARACTERS)
            if end < 0:
                break
            yield line[start:end]
            start = end + 1
        yield line[start:]


def seal(part: str, canary: str) -> str:
    """A finished part of a prompt with its mark, which the part begins with; unchanged if it holds no data.

    The same part gets the same mark in every call of a run, so that calls made again and beginnings that calls share
    stay what they are; another part, or another run, gets another one.
    """
    if MARK not in part:
        return part
    mark = hmac.new(canary.encode(), part.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:MARK_CHARACTERS]
    sign = f"{mark[:SIGN_CHARACTERS]}{SIGN_END}"
    told = f'Below, names of elements of data end in "-{mark}", and their lines begin with "{sign}".\n\n'
    return told + part.replace(MARK, mark).replace(SIGN, sign)


def remove_signs(draft: C) -> C:
    """What a model wrote, without the signs that it copied from the lines it was shown."""
    if SIGN_END not in draft.model_dump_json():
        return draft
    return type(draft).model_validate(remove_signs_of(draft.model_dump()))


def remove_signs_of(value: Any) -> Any:
    """The same for plain JSON."""
    if isinstance(value, str):
        return ANY_SIGN.sub("", value)
    if isinstance(value, dict):
        return {name: remove_signs_of(part) for name, part in value.items()}
    return [remove_signs_of(part) for part in value] if isinstance(value, list) else value
