"""Text for people: outside text made safe to display, and patterns of short texts described in words. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""C0 (except tab and newline) and C1, Unicode line and paragraph separators, surrogates."""
INVISIBLE: Final = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Direction marks and overrides, zero-width characters, tags."""
REPLACEMENT: Final = "\ufffd"

_CONTROL: Final = re.compile(f"[{CONTROLS}]")
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_CONTROL_OR_INVISIBLE: Final = re.compile(f"[{CONTROLS}{INVISIBLE}]")


HYPHEN_IN_WORD: Final = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011](?=[^\W\d_])")


def without_hyphens(text: str) -> str:
    """Return a text without the hyphens within its words; ranges of numbers keep theirs.

    A word that a line end divided may have its hyphen in the text of one reader, and none in that of another.
    """
    return HYPHEN_IN_WORD.sub("", text)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 gap`, `2 gaps`, `3 sub-queries`, `4 searches`."""
    if noun.endswith("y"):
        plural_noun = f"{noun[:-1]}ies"
    elif noun.endswith("ch"):
        plural_noun = f"{noun}es"
    else:
        plural_noun = f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural_noun}"


def join_alternatives(names: Sequence[str]) -> str:
    """Join alternatives: `a`, `a or b`, `a, b or c`."""
    *first, last = names
    if first:
        return f"{', '.join(first)} or {last}"
    return last


def shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, between words and with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    spaced = head.rfind(" ")
    # A text without spaces (Chinese, a long identifier) is cut at the limit.
    return (head[:spaced] if spaced > limit // 2 else head).rstrip() + "…"


def shorten_start(text: str, limit: int) -> str:
    """Cut the beginning of a text so that `limit` characters are left, between words and with an ellipsis."""
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit + 1 :]
    spaced = tail.find(" ")
    return "…" + (tail[spaced + 1 :] if 0 <= spaced < limit // 2 else tail).lstrip()


def visible(text: str) -> str:
    """Return text for a terminal, with control characters except tab and newline replaced, invisible ones removed."""
    return _CONTROL.sub(REPLACEMENT, _INVISIBLE.sub("", text.replace("\r\n", "\n")))


def visible_json(text: str) -> str:
    """Return the same JSON with control and invisible characters escaped."""
    return _CONTROL_OR_INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


MARKUP: Final = re.compile(r"[\\`*_\[\]<>&~|$]")
"""Characters of code, emphasis, links, images, HTML, entities, tables and formulas."""
LEADING_MARKUP: Final = re.compile(r"^(?:[#+=-]|[0-9]+[.)])")
"""Line starts that make headings, lists and rules."""
LINK_POINT: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
"""Places in addresses that renderers would turn into links."""
LINK_BREAK: Final = "\u2060"
"""Word joiner: the address stays readable but is no link."""
ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|\u2060|\\(?=\n|\Z)")
"""An escaped character, a word joiner, and the sign of a line break at the end of a line."""


def as_markdown(text: str, characters: int, max_bytes: int) -> str:
    """Write a text as one line of Markdown, limited in characters and in bytes of JSON; cut text ends in `…`."""
    line = text[: 8 * characters]
    if not line.isprintable():
        line = "".join(character if character.isprintable() else " " for character in line)
    line = " ".join(line.split())
    cut = len(line) > characters
    head = line[: characters - 1] if cut else line
    while True:
        escaped = _escape(f"{head.rstrip()}…" if cut else head)
        excess = len(json.dumps(escaped, ensure_ascii=False).encode()) - max_bytes
        if excess <= 0:
            return escaped
        cut = True
        head = head[: -max(1, excess // 8)]


def from_markdown(text: str) -> str:
    """Invert `as_markdown`, except for cut text; a line break within a paragraph loses its sign."""
    return ESCAPED.sub(lambda match: match[1] or "", text)


def _escape(line: str) -> str:
    plain = LINK_POINT.sub(LINK_BREAK, MARKUP.sub(r"\\\g<0>", line))
    start = LEADING_MARKUP.match(plain)
    if start is None:
        return plain
    return f"{plain[: start.end() - 1]}\\{plain[start.end() - 1 :]}"


_DAY: Final = "[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"


class Shape(NamedTuple):
    """Form of a text: a regular expression for all of it, and a description with an example for people."""

    pattern: str
    expected: str


NAME: Final = Shape(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "at most 64 letters, digits, dots, dashes and underscores, such as team-1"
)
PROVIDER: Final = Shape(
    r"^(?:mcp\.)?[a-z][a-z0-9_]{0,31}$", "the name of a search provider, such as wikipedia or mcp.wiki"
)
ENDPOINT: Final = Shape(r"^[a-z][a-z0-9_-]{0,31}$", "a name in small letters, such as office-server")
DOMAIN: Final = Shape(
    r"^([a-zA-Z0-9_-]{1,63}\.)*[a-zA-Z0-9-]{2,63}$", "a host name alone, without https:// and path, such as example.org"
)
LANGUAGE: Final = Shape(r"^[a-z]{2,3}$", "a language code of two or three small letters, such as en")
REPORT_LANGUAGE: Final = Shape(
    r"^(same as question|[a-z]{2,3})$", "`same as question`, or a language code of two or three small letters like de"
)
LANGUAGE_TAG: Final = Shape(r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$", "a language code, such as en or pt-BR")
TIMEFRAME: Final = Shape(
    rf"^(day|week|month|year|{_DAY}\.\.({_DAY})?)$",
    "day, week, month or year for the last one, or dates such as 2023-05..2024 or 2023..",
)
BASE_ADDRESS: Final = Shape(
    r"^https?://([^\s/?#]*@)?[\w.{}:\[\]-]+([/?#]\S*)?$",
    "an address such as http://localhost:8080 or https://example.org",
)
CONTACT: Final = Shape(
    r"^[!-'*-~]([ !-'*-~]{0,198}[!-'*-~])?$", "an address that sites can write to, such as crawler@example.org"
)
DOCUMENT_HASH: Final = Shape(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 hexadecimal digits")
RESEARCH_ID: Final = Shape(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", "at most 128 letters, digits, dots, dashes and underscores, such as r-7k3f"
)
"""The id of a run names its workflow, its record and its journal; a path or a sentence is none."""
AGENT_ID: Final = Shape(r"^[a-z][a-z0-9-]{0,31}$", "a name in small letters, digits and dashes, such as agent-1")

EXPECTED: Final[Mapping[str, str]] = {
    shape.pattern: shape.expected for shape in tuple(globals().values()) if isinstance(shape, Shape)
}


def problem_message(problem: Mapping[str, Any]) -> str:
    """Return a pydantic error in plain words; for a text with a known pattern, its expected shape."""
    context = problem.get("ctx", {})
    if shape := EXPECTED.get(str(context.get("pattern"))):
        return f"must be {shape}"
    messages: dict[str, str] = {
        "extra_forbidden": "unknown key",
        "missing": "required",
        "json_invalid": "not valid JSON",
        "model_type": "expected an object",
    }
    if context.get("min_length") == 1:
        messages |= {"too_short": "expected at least 1, and there is none", "string_too_short": "must not be empty"}
    return messages.get(problem["type"]) or str(problem["msg"]).removeprefix("Value error, ")[:200]
