"""From bytes to characters: byte order mark, UTF-8 where it fits, a declaration where that fits, then a guess."""

import codecs
import re
from dataclasses import dataclass
from typing import Final

import webencodings  # type: ignore[import-untyped]
from charset_normalizer import from_bytes

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
DECLARED: Final = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*+=\s*+["']?\s*+([A-Za-z0-9_:.-]+)""", re.IGNORECASE
)
DECLARATION_WINDOW: Final = 2_048
GUESS_WINDOW: Final = 65_536
TAG: Final = re.compile(rb"<[^<>]*>")
NO_SETS: Final = {"x-user-defined", "replacement"}
RETIRED: Final = re.compile(
    r"cp(437|85[0-9]|932|949|950)|gbk|mac-[a-z]+|hz|iso2022_(jp|kr)(_[0-9a-z]+)?|utf-32(-[lb]e)?"
    r"|euc_(jis_2004|jisx0213)|shift_jis(_2004|x0213)"
)
"""Codecs of sets that browsers do not read, but old pages state; others of Python are no text, or slow by design."""
WIDER: Final = {"gbk": "gb18030"}
"""A larger set of the same kind."""
WIDE: Final = re.compile(r"utf-(?:16|32)(?:-[lb]e)?")
SEVERAL_BYTES: Final = re.compile(r"cp9\d\d|big5\w*|gb18030|euc_\w+|shift_jis\w+")
SEVEN_BITS: Final = re.compile(r"hz|iso2022_\w+")
CHANCE: Final = 24
"""Bytes beyond ASCII up to which a text in a set of several bytes a letter may be UTF-8 by chance."""
LOST_SHARE: Final = 0.01
"""Of all characters: more that cannot be decoded, and the name is wrong."""
MOSTLY_LOST: Final = 20
"""Such characters from which they count against the others beyond ASCII: markup hides how few words a page has."""
STRAY_SHARE: Final = 0.25
"""Of the characters beyond ASCII: a text that loses no more as UTF-8 is UTF-8 with damage."""
OF_THE_WEB: Final = re.compile(
    r"cp(125\d|866|874|932|949)|koi8_[ru]|iso8859_\d+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|utf_8"
)
"""Names of what browsers read; a guess also knows what only old machines wrote."""
WESTERN, CENTRAL = "cp1252", "cp1250"
ASCII: Final = bytes(range(128))
BEYOND: Final = re.compile("[^\x00-\x7f]+")
LOST: Final = "\ufffd"
MISFIT: Final = "the character set that the page states ({stated}) does not fit: read as {read}, which is a guess"


@dataclass(frozen=True)
class Decoded:
    """A text, and a line for its readers where what is stated was not believed."""

    text: str
    warning: str | None = None


def byte_order_mark(raw: bytes) -> tuple[bytes, str] | None:
    """The mark at the start and the encoding that it stands for."""
    return next((mark for mark in BYTE_ORDER_MARKS if raw.startswith(mark[0])), None)


def codec_of(label: str) -> str | None:
    """The codec that a name stands for, as browsers take it; None for what is no character set."""
    found = webencodings.lookup(label)
    if found is not None and found.name not in NO_SETS:
        return WIDER.get(found.name, str(found.codec_info.name))
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    return WIDER.get(name, name) if RETIRED.fullmatch(name) else None


def declared_encoding(raw: bytes) -> str | None:
    """The codec that an HTML page states in its first bytes, None if it states none that is known."""
    found = DECLARED.search(raw[:DECLARATION_WINDOW])
    name = None if found is None else codec_of(found[1].decode("ascii"))
    # The declaration was readable as ASCII, so it cannot be of the 16-bit kind that it names.
    return "utf-8" if name is not None and WIDE.fullmatch(name) else name


def decode(raw: bytes, *, markup: bool = False) -> str:
    """The characters of a text; what cannot be decoded becomes U+FFFD."""
    return decode_with_warning(raw, markup=markup).text


def decode_with_warning(raw: bytes, *, markup: bool = False, charset: str | None = None) -> Decoded:
    """The same, with what a server said of it. `markup`: whether the text may state its character set itself."""
    mark = byte_order_mark(raw)
    if mark is not None:
        return Decoded(raw[len(mark[0]) :].decode(mark[1], "replace"))
    stated = [name for name in (charset and codec_of(charset), markup and declared_encoding(raw)) if name]
    for name in stated:
        # Neither can be told from UTF-8 by whether it can be decoded.
        if (b"\0" in raw and WIDE.fullmatch(name)) or (raw.isascii() and SEVEN_BITS.fullmatch(name)):
            return Decoded(raw.decode(name, "replace"))
    names = [name for name in stated if not WIDE.fullmatch(name)]
    strict = _strictly(raw, "utf-8")
    if strict is not None:
        return Decoded(_by_chance(raw, names) or strict)
    utf8 = raw.decode("utf-8", "replace")
    lost, beyond = utf8.count(LOST), _beyond_ascii(utf8)
    return Decoded(utf8) if lost <= STRAY_SHARE * (beyond - lost) else _as_stated(raw, names, utf8)


def _by_chance(raw: bytes, names: list[str]) -> str | None:
    """What a text says as stated, where so little of it is beyond ASCII that it may be UTF-8 by chance only."""
    several = next(filter(SEVERAL_BYTES.fullmatch, names), None)
    return _strictly(raw, several) if several and 0 < len(raw.translate(None, ASCII)) <= CHANCE else None


def _as_stated(raw: bytes, names: list[str], utf8: str) -> Decoded:
    """A text that is not UTF-8. Letters of several bytes seldom fit by chance, single bytes nearly always do."""
    for name in names:
        if SEVERAL_BYTES.fullmatch(name) and (text := _strictly(raw, name)) is not None:
            return Decoded(text)
    for name in names:
        text = utf8 if name == "utf-8" else raw.decode(name, "replace")
        if not _is_misread(text):
            return Decoded(text)
    read = _guess(raw)
    text = raw.decode(read, "replace")
    return Decoded(text, MISFIT.format(stated=", ".join(dict.fromkeys(names)), read=read) if names else None)


def _guess(raw: bytes) -> str:
    """The likeliest codec of a text among those of the web; the western one where the central European fits as well."""
    found = list(from_bytes(TAG.sub(b" ", raw[: 4 * GUESS_WINDOW])[:GUESS_WINDOW]))
    usual = [one for one in found if OF_THE_WEB.fullmatch(one.encoding)] or found
    if not usual:
        return WESTERN
    western = any(WESTERN in (one.encoding, *one.could_be_from_charset) for one in usual)
    return WESTERN if western and usual[0].encoding == CENTRAL else usual[0].encoding


def _strictly(raw: bytes, name: str) -> str | None:
    try:
        return raw.decode(name)
    except UnicodeDecodeError:
        return None


def _is_misread(text: str) -> bool:
    lost = text.count(LOST)
    if lost > LOST_SHARE * len(text):
        return True
    return lost >= MOSTLY_LOST and lost > _beyond_ascii(text) / 2


def _beyond_ascii(text: str) -> int:
    return sum(map(len, BEYOND.findall(text)))
