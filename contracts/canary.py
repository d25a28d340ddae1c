"""The canary of a run: a mark that only this run knows, and that nothing going out may hold. Pure.

It stands in the system part of every prompt. An answer that repeats it was written by a model that no longer tells
instructions from data, so nothing of that answer is used; no query that holds it is asked, and no address is read.

Everything here takes time in proportion to the text: pages and models write them.
"""

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from contracts.addresses import normalize

STEERED: Final = "the answer repeats the mark that must never be written: words from outside were followed as orders"
"""The problem of such an answer: told to the model that repairs it."""
STEERED_NOTE: Final = "an answer of the model repeated what it must keep to itself: page text may have steered it"
"""What the run says of it."""
SHORTEST_FRAGMENT: Final = 20
"""Letters and digits in a row; fewer are common words."""

SHORTEST_PIECE: Final = 8
"""Signs of a canary in a row that give it away; eight hexadecimal digits agree by chance once in four billion times."""
LEET_PIECE: Final = 12
"""Where letters and digits are taken for each other, words look like digits more often."""
SCATTERED: Final = (6, 12)
"""Shorter pieces of that length that together make so many signs of it."""
SCATTERED_IN_LINES: Final = (4, 16)
"""The same in what is short: queries and addresses."""
LINE_CHARACTERS: Final = 4_000
STRIDE: Final = 4
"""Of encoded forms, which are longer than what they say, every fourth piece is looked for."""
STEPS: Final = (2, 3)
"""Signs may stand between those of the canary."""
ROUNDS: Final = 3
"""Of decoding what was encoded more than once."""

SIGNS: Final = re.compile(r"[\W_]+")
BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
ESCAPES: Final = re.compile(r"(?:[\\%]u\{?0{0,6}|\\x|(?<![0-9a-z])0x)([0-9a-f]{2})\}?", re.IGNORECASE)
ZEROS: Final = re.compile(r"(&#[xX]?)0+(?=[0-9a-fA-F])")
LONG_REFERENCE: Final = re.compile(r"&#[xX]?[0-9a-fA-F]{8,}")
"""Stands for no sign; reading its number would take long or fail."""
PARAMETER: Final = re.compile(r"[?&;][\w.\[\]-]{1,40}=")
ENCODED_LABEL: Final = re.compile(r"xn--([a-z0-9-]{1,59})", re.IGNORECASE)
BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}")
LEET: Final = str.maketrans("abegilostz", "4839110572")
LOOK_ALIKES: Final = str.maketrans(
    {
        **dict.fromkeys("аɑαᴀ", "a"),
        **dict.fromkeys("ьЬƅʙβ", "b"),
        **dict.fromkeys("сϲᴄς", "c"),
        **dict.fromkeys("ԁɗᴅ", "d"),
        **dict.fromkeys("еєҽᴇε", "e"),
        **dict.fromkeys("ғƒꜰϝ", "f"),
        **dict.fromkeys("оОοΟ", "0"),
        **dict.fromkeys("ӏіІıΙ", "1"),
        **dict.fromkeys("зЗӡ", "3"),
        **dict.fromkeys("б", "6"),
    }
)


def repeats(text: str, canary: str) -> bool:
    """Whether a text holds the canary or enough of it, also in pieces, encoded, in other letters, or backwards.

    An empty canary is held by nothing.
    """
    if not canary:
        return False
    return any(_gives_away(reading, canary) for reading in _readings(text))


def holds_private(url: str, canary: str, private: Iterable[str], public: Iterable[str]) -> bool:
    """Whether an address carries the canary, or in its query 20 letters and digits in a row of a private text.

    What the public texts hold too, which searches are told anyway, gives nothing away.
    """
    if repeats(url, canary):
        return True
    asked = _squeeze(_decode(urlsplit(url).query))
    if len(asked) < SHORTEST_FRAGMENT:
        return False
    fragments = set(_fragments(asked))
    for text in public:
        fragments.difference_update(_fragments(_squeeze(_decode(text))))
    return any(not fragments.isdisjoint(_fragments(_squeeze(_decode(text)))) for text in private)


def _fragments(text: str) -> Iterator[str]:
    return (text[start : start + SHORTEST_FRAGMENT] for start in range(len(text) - SHORTEST_FRAGMENT + 1))


def _readings(text: str) -> Iterator[str]:
    """The ways in which a text may be meant, each as letters and digits alone."""
    plain = _decode(text)
    yield _squeeze(plain)
    if PARAMETER.search(plain):
        yield _squeeze(PARAMETER.sub(" ", plain))
    labels = [_label(found[1]) for found in ENCODED_LABEL.finditer(plain)]
    if labels:
        yield _squeeze(" ".join(labels))
    runs = [found[0] for found in BASE64.finditer(plain)]
    for place in range(4) if runs else ():
        yield _squeeze(" ".join(_from_base64(run[place:]) for run in runs))


def _gives_away(squeezed: str, canary: str) -> bool:
    """Whether letters and digits hold enough of a canary."""
    pieces = _pieces(canary)
    if _holds_any(squeezed, pieces.telling) or _holds_any(squeezed.translate(LEET), pieces.leet):
        return True
    thinned = (squeezed[start::step] for step in STEPS for start in range(step))
    if any(_holds_any(some, pieces.plain) for some in thinned):
        return True
    scattered = [SCATTERED, SCATTERED_IN_LINES] if len(squeezed) <= LINE_CHARACTERS else [SCATTERED]
    ways = (canary, canary[::-1])
    return any(_count_covered(squeezed, way, length) >= enough for length, enough in scattered for way in ways)


def _holds_any(text: str, pieces: Iterable[str]) -> bool:
    return any(map(text.__contains__, pieces))


def _count_covered(squeezed: str, whole: str, length: int) -> int:
    """How many signs of the canary stand in the text within pieces of that length."""
    starts = [start for start in range(len(whole) - length + 1) if whole[start : start + length] in squeezed]
    return len({place for start in starts for place in range(start, start + length)})


class _Pieces:
    """What is looked for."""

    def __init__(self, canary: str) -> None:
        ways = (canary, canary[::-1])
        self.plain = {piece for way in ways for piece in _parts(way, SHORTEST_PIECE, 1)}
        self.leet = {piece for way in ways for piece in _parts(way.translate(LEET), LEET_PIECE, 1)}
        encoded = {_squeeze(form) for way in ways for form in _encode(way)}
        both = encoded | {form[::-1] for form in encoded}
        third = SHORTEST_PIECE / len(canary)
        self.telling = self.plain | {piece for form in both for piece in _parts(form, int(len(form) * third), STRIDE)}
        for way in ways:
            self.telling.update(_parts(codecs.encode(way, "rot13"), SHORTEST_PIECE, 1))


@lru_cache(maxsize=64)
def _pieces(canary: str) -> _Pieces:
    return _Pieces(canary.casefold())


def _parts(text: str, length: int, step: int) -> set[str]:
    return {text[start : start + length] for start in range(0, max(1, len(text) - length + 1), step)}


def _encode(text: str) -> Iterator[str]:
    """The text in the encodings that make letters and digits of it."""
    data = text.encode()
    yield data.hex()
    yield "".join(str(code) for code in data)
    yield "".join(f"{code:o}" for code in data)
    yield "".join(f"{code:08b}" for code in data)
    # What its neighbours have a share in is left out: the first signs, and the last ones.
    for place in range(3):
        whole = base64.b64encode(b"\0" * place + data).decode().rstrip("=")
        yield whole[2 * place : -1] if place else whole[:-1]
    for place in range(5):
        whole = base64.b32encode(b"\0" * place + data).decode().rstrip("=")
        yield whole[(8 * place + 4) // 5 : -1]


def _decode(text: str) -> str:
    """The text as a program would read it: escapes and entities resolved, also where that was done more than once."""
    for _ in range(ROUNDS):
        plain = ESCAPES.sub(lambda found: chr(int(found[1], 16)), text)
        if "%" in plain or "+" in plain:
            plain = unquote_plus(plain)
        if "&#" in plain:
            plain = LONG_REFERENCE.sub("", ZEROS.sub(r"\1", plain))
        if "&" in plain:
            plain = html.unescape(plain)
        if plain == text:
            break
        text = plain
    return text


def _squeeze(text: str) -> str:
    """Letters and digits alone, in one form and case."""
    if not text.isascii():
        text = BEYOND_ASCII.sub(lambda found: _plain_sign(found[0]), text)
    return SIGNS.sub("", text).casefold()


@lru_cache(maxsize=4_096)
def _plain_sign(sign: str) -> str:
    """A sign in its simplest form; one by one, for marks upon letters in long rows are slow to put in order."""
    simple = normalize("NFKD", sign)[:8].translate(LOOK_ALIKES)
    return "".join(str(unicodedata.digit(part, part)) for part in simple)


def _label(encoded: str) -> str:
    """A label of a host name in its own letters; as it is if it is none."""
    try:
        return encoded.encode().decode("punycode")
    except UnicodeError:
        return encoded


def _from_base64(run: str) -> str:
    whole = run[: len(run) - len(run) % 4].replace("-", "+").replace("_", "/")
    return base64.b64decode(whole).decode("latin-1")
