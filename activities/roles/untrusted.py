"""Text from outside, made safe for a prompt: readable, but unable to close or imitate our own elements.

The names of its elements end in a mark that no page can predict, and each line begins with a sign derived from it. The
mark is an HMAC of the finished part of the prompt under the run's canary. Ids are shown as labels under the same key.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from activities.reporting.references import PROMPT_TEXT, with_escaped_markers, without_prompt_text
from contracts.addresses import short_hash
from contracts.lenient import to_line
from contracts.roles import RoleInput

INVISIBLE_CLASS: Final = (
    "\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Characters that are invisible to readers but not to models: they can hide text or split a tag."""
INVISIBLE: Final = re.compile(f"[{INVISIBLE_CLASS}]")
OUR_ELEMENTS: Final = (
    "source|sources|finding|findings|gap|gaps|guidance|issues|question|sub_query|sub_queries|earlier|draft|preferences|"
    "brief|corpus|previous|expected|found|improvements|asked|edited|reflection|additional_context|statement|passage|passages|pages"
)
TAG: Final = re.compile(rf"[<＜](?=\s*+(?:[/／]\s*+)?(?:{OUR_ELEMENTS})(?:\b|_))", re.IGNORECASE)
MARK: Final = "\x01"
"""Placeholder for the mark until a part is sealed; no guarded text has this invisible character."""
SIGN: Final = "\x02"
"""Placeholder for the sign until a part is sealed; no guarded text has this one either."""
SIGN_END: Final = "¦"
ANY_SIGN: Final = re.compile(rf"(?<![0-9a-f])[0-9a-f]{{2}}{SIGN_END} ?")
IMITATED_SIGN: Final = re.compile(rf"(?<=[0-9a-f]{{2}}){SIGN_END}", re.IGNORECASE)
VERBATIM_FIELDS: Final = frozenset(("quote", "words"))
"""Fields of answers that are compared with a page word for word."""
MAX_LINE_CHARACTERS: Final = 160
MAX_ROW_CHARACTERS: Final = 1_200
"""Of a row of a table on one line; as long as a statement for a checker."""
LINE_PART: Final = re.compile(r"(?:\A[\t ].{0,158}[^\t ]|[^\t ](?:.{0,158}[^\t ])?)(?![^\t ])|[^\t ]+")
"""A part of a line of at most `MAX_LINE_CHARACTERS` characters that ends at a blank, or a longer word."""


def guard(text: str) -> str:
    """Remove invisible characters, and disarm imitations of our tags and signs."""
    # Most texts have none of them, and a pattern takes ten times as long to find that out.
    if not text.replace("\n", "").isprintable():
        text = INVISIBLE.sub("", text)
    if "<" in text or "＜" in text:
        text = TAG.sub("‹", text)
    if SIGN_END in text:
        return IMITATED_SIGN.sub("|", text)
    return text


def guard_line(text: str, limit: int) -> str:
    """Guard a text on one line of at most `limit` characters, so that it cannot imitate our lines or markers.

    Imitated markers are escaped as in Markdown: a model that copies one writes text, not a citation.
    """
    return with_escaped_markers(to_line(guard(text), limit))


def wrap(name: str, lines: Iterable[str], attributes: str = "") -> str:
    """Wrap guarded lines in an element of data, with a sign before each line of text. Empty without lines."""
    signed = [f"{SIGN}{line}" if line.strip() else "" for line in lines]
    if not signed:
        return ""
    return "\n".join([f"<{name}-{MARK}{attributes}>", *signed, f"</{name}-{MARK}>\n"])


def break_lines(text: str) -> Iterator[str]:
    """Split a guarded text into lines, and long ones at blanks, so that a sign is never far away.

    The row of a table is no row any more where it is split.
    """
    for line in text.splitlines():
        longest = MAX_ROW_CHARACTERS if line.startswith("|") else MAX_LINE_CHARACTERS
        yield from (LINE_PART.findall(line) or [""]) if len(line) > longest else [line.rstrip("\t ")]


def seal(part: str, canary: str) -> str:
    """Fill in the mark of a finished part of a prompt; a part without data is unchanged.

    Equal parts get equal marks in all calls of a run, so that repeated calls and shared prefixes are equal bytes;
    marks differ between parts and between runs.
    """
    if MARK not in part:
        return part
    mark = hmac.new(canary.encode(), part.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:10]
    sign = f"{mark[:2]}{SIGN_END}"
    notice = f'Below, names of data elements end in "-{mark}", and their lines begin with "{sign}".\n\n'
    return notice + part.replace(MARK, mark).replace(SIGN, sign)


def remove_signs_of(
    value: Any, ids: Mapping[str, str] = MappingProxyType({}), *, names: bool = False, exact: bool = False
) -> Any:
    """Remove signs that a model copied from the lines of its prompt, and replace labels by their `ids`.

    `value` is plain JSON. With `names`, names and elements of the prompt are removed from texts, too, except where a
    text is nothing but names, and, with `exact`, from quotes.
    """
    if isinstance(value, str):
        text = ANY_SIGN.sub("", value)
        if text.strip() in ids:
            return ids[text.strip()]
        if names and not exact and PROMPT_TEXT.sub("", text).strip(" ,;"):
            return without_prompt_text(text)
        return text
    if isinstance(value, dict):
        return {
            name: remove_signs_of(part, ids, names=names, exact=exact or name in VERBATIM_FIELDS)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [remove_signs_of(part, ids, names=names, exact=exact) for part in value]
    return value


# --- canary and labels -----------------------------------------------------------------------------------------------
def label_key(request: RoleInput) -> str:
    """Return the key of a run's labels: unknown to pages, and the same for a repeated call."""
    named = f"labels/{request.tenant}/{request.research_id}"
    return hmac.new(request.canary.encode(), named.encode(), hashlib.sha256).hexdigest()


def label_of(identity: str, key: str) -> str:
    """Return the label of an id: its kind and ten hexadecimal digits; an id that is no longer is its own label."""
    label = f"{identity.partition('-')[0]}-{short_hash(key, identity)}"
    if len(identity) > len(label):
        return label
    return identity


def label_all(identities: Iterable[str], request: RoleInput) -> dict[str, str]:
    """Return the ids of a call by their labels."""
    key = label_key(request)
    return {label_of(identity, key): identity for identity in identities}
