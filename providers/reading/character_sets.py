"""Text from bytes: the character set that is declared or that fits."""

import codecs
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Final
from unicodedata import category

import webencodings  # type: ignore[import-untyped]
from charset_normalizer import from_bytes

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
META_CHARSET: Final = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*+=\s*+["']?\s*+([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE
)
META_WINDOW_BYTES: Final = 4_096
SAMPLE_BYTES: Final = 65_536
LATIN_SHARE: Final = 0.45
"""Least share of bytes beyond ASCII among the letters of a text in another script; Latin texts have under a third."""
SEVEN_BITS: Final = ("iso2022_jp_2", "iso2022_kr", "hz")
"""Sets whose bytes are all ASCII, by their most general codecs; they are recognised by their escapes."""
ESCAPES: Final = {
    "iso2022_kr": re.compile(rb"\x1b\$\)C"), "iso2022_jp_2": re.compile(rb"\x1b(?:\$[@BA]|\([JI]|\$\([CD])"),
    "hz": re.compile(rb"~\{(?:[!-#0-w][!-~]){2,}~\}"),
}  # fmt: skip
PREFIX_OF_CODE_PAGE: Final = re.compile(r"(?i)^(?:cp|ibm|windows|ms)[-_]?(\d{3,4})$")
SHIFTED: Final = re.compile(r"\+([A-Za-z0-9+/]*)-?")
"""Letters beyond ASCII in UTF-7."""
UNSAFE_CODECS: Final = frozenset(("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7"))
"""Codecs of Python that are no character sets of texts, or take quadratic time."""
LONE_BYTE: Final = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
PAIRED_BYTES: Final = frozenset(("gb18030", "cp949", "euc_jp"))
"""Sets in which nearly all letters beyond ASCII are two bytes beyond it: a text of lone ones is of another set."""
ASCII_NAMES: Final = frozenset(("us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us"))
"""What programs declare that declare nothing: a text beyond it is of another set."""
SUPERSETS: Final = {
    "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932", "big5": "cp950",
    "iso2022_jp": "iso2022_jp_2",
}  # fmt: skip
"""Codec of a declared set → that of the larger one which programs use under its name."""
MULTIPLE_BYTES: Final = frozenset(
    ("gb18030", "cp949", "cp932", "cp950", "big5", "big5hkscs", "euc_jp", "euc_jis_2004", "johab", *SEVEN_BITS)
)

ALPHABETS: Final = (
    ("cp1252", "äöüßéàçè"),  # German
    ("cp1252", "àâæçéèêëîïôœùûüÿ"),  # French
    ("cp1252", "áéíóúüñçºª¿¡"),  # Spanish
    ("cp1252", "àáâãçéêíóôõúü"),  # Portuguese
    ("cp1252", "àèéìíîòóùú"),  # Italian
    ("cp1252", "åäöæøéèêàüáó"),  # Nordic
    ("cp1252", "ëïéèêöüáóíçàâ"),  # Dutch
    ("cp1252", "àèéíïòóúüç·"),  # Catalan
    ("cp1252", "äöüõšžå"),  # Finnish, Estonian
    ("cp1254", "çğıöşüİâîû"),  # Turkish
    ("cp1250", "áčďéěíňóřšťúůýž"),  # Czech
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "áäčďéíĺľňóôŕšťúýž"),  # Slovak
    ("cp1250", "čćđšž"),  # Croatian, Slovene
    ("cp1250", "ăâîşţ"),  # Romanian
    ("cp1257", "ąčęėįšųūž"),  # Lithuanian
    ("cp1257", "āčēģīķļņšūž"),  # Latvian
    ("cp1252", "áðéíóúýþæö"),  # Icelandic
)
"""Letters of languages beyond ASCII, and the character set of Windows for them; Western Europe first."""
OTHER_SETS: Final = {
    "cp1252": ("iso8859_15", "cp850", "mac_roman"),
    "cp1250": ("iso8859_2", "cp852", "mac_latin2"),
    "cp1254": ("iso8859_9", "cp857", "mac_turkish"),
    "cp1257": ("iso8859_13", "cp775", "iso8859_4"),
}
"""Sets of the standard, of DOS and of others by that of Windows for the same letters."""
SYSTEMS: Final = 4  # a set of Windows and its three others
CURRENCY_SIGN: Final = "¤"  # nobody writes it; ISO 8859-15 has the sign of the euro in its place
CAPITAL_WITHIN: Final = re.compile(r"(?<=[a-zß-ÿ])(?![A-Z])[^\W\d_a-zß-ÿ]")
"""A letter that may be a capital, behind a small one."""
LETTERS: Final = re.compile(rb"[A-Za-z\x80-\xff]++")
MIXED: Final = re.compile(rb"[A-Za-z](?=[\x80-\xff])|[\x80-\xff](?=[A-Za-z])")
MIXED_SHARE: Final = 0.3
"""Neighbours of a letter of ASCII and another one, for each byte beyond ASCII, from which a text is Latin."""
SCRIPTS: Final = (
    (("cp1251", "koi8_u", "iso8859_5", "cp866", "mac_cyrillic"), "А-Яа-яЁёІіЇїЄєҐґЎўЈјЉљЊњЋћЏџЂђ", "оеаинтсрвлкмі"),
    (("cp1253", "iso8859_7"), "Ͱ-Ͽ", "αοιετσνηυρπκμλςάόίέή"),
    (("cp1255", "iso8859_8"), "\u05b0-\u05ea", "יוהלאמרתשבנםפ"),
    (("cp1256", "iso8859_6"), "\u0621-\u0652", "اليمونترةبعد"),
    (("cp874",), "\u0e01-\u0e5b", "านรอกเงมยลว่้สทด"),
)
"""Sets of one byte a letter, the letters of their script as ranges of a character class, and the most frequent ones."""
FREQUENT_SHARE: Final = 0.45
"""Least share of frequent letters; texts of these scripts have over half, and those of others under a third."""
ASCII_SHARE: Final = 0.02
"""Least share of line ends, spaces and signs in a text of two bytes a letter; it recognises the order of the bytes."""
KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
KANA_SHARE: Final = 0.15  # of the bytes beyond ASCII, of which a letter has two; no other language has any
WORD_SIGNS: Final = re.compile(r"(?<=[^\W\d_])[^\sA-Za-z0-9](?=[^\W\d_])")
"""A sign between two letters."""
SIGNS_IN_WORDS: Final = frozenset("-'’‑–—…/.,:;_@&+*·|()[]“”„«»\"”`´=<>\\€$#~^!?°")


def decode(raw: bytes, *, charset: str | None) -> str:
    """Decode text: byte order mark, UTF-8, declared character set, then a guess. Undecodable bytes become U+FFFD."""
    if raw.startswith(BYTE_ORDER_MARKS):
        return str(webencodings.decode(raw, "utf-8", "replace")[0])
    if (wide := wide_set(raw)) is not None:
        return raw.decode(wide, "replace")
    for codec, escape in ESCAPES.items():
        if escape.search(raw):
            with suppress(UnicodeDecodeError):
                return raw.decode(codec)
    meta = META_CHARSET.search(raw[:META_WINDOW_BYTES])
    for label in ("utf-8", charset, meta and meta[1].decode("ascii")):
        encoding = webencodings.lookup(label) if label else None
        # A page whose declaration is readable as ASCII is not UTF-16, whatever it declares.
        if encoding is not None and (b"\0" in raw or not encoding.name.startswith("utf-16")):
            with suppress(UnicodeDecodeError, LookupError):
                return str(webencodings.decode(raw, encoding, "strict")[0])
    utf8 = raw.decode("utf-8", "replace")
    if 4 * utf8.count("\ufffd") < len(utf8) - len(utf8.encode("ascii", "ignore")):
        return utf8  # UTF-8 with some damage: most of its part beyond ASCII is valid
    return raw.decode(_likely_set(raw[:SAMPLE_BYTES]), "replace")


def decode_declared(raw: bytes, charset: str | None) -> str:
    """Decode the text of a mail: a declared set of several bytes a letter decides, whatever else its bytes fit."""
    charset = PREFIX_OF_CODE_PAGE.sub(r"cp\1", charset or "") or None
    if charset in ASCII_NAMES and not raw.isascii():
        charset = None
    with suppress(LookupError, ValueError):  # of UTF-7 in damaged form, too
        codec = codecs.lookup(charset or "").name
        codec = SUPERSETS.get(codec, codec)
        if codec == "utf-7":
            return _decode_utf_7(raw)
        if codec in PAIRED_BYTES and 2 * len(LONE_BYTE.findall(raw)) > sum(byte > 127 for byte in raw):
            charset = None
        elif codec in MULTIPLE_BYTES:
            return raw.decode(codec)
    text = decode(raw, charset=charset)
    if "\ufffd" in text:
        with suppress(LookupError, UnicodeError):
            codec = codecs.lookup(charset or "").name
            if codec.replace("-", "_") not in UNSAFE_CODECS:
                return raw.decode(codec)
    return text


def _decode_utf_7(raw: bytes) -> str:
    """Decode UTF-7 in linear time, as Python does not. Raises `ValueError`."""

    def letters(match: re.Match[str]) -> str:
        if not match[1]:
            return "+"
        return b64decode(match[1] + "=" * (-len(match[1]) % 4))[: len(match[1]) * 3 // 8 * 2].decode("utf-16-be")

    return SHIFTED.sub(letters, raw.decode("ascii"))


def _likely_set(sample: bytes) -> str:
    """Return the likely character set of a text that declares none: of another script, or of a Latin one."""
    latin = _latin_set(sample)
    if latin is None:  # words of another script may stand between English ones
        sample = b" ".join(word for word in LETTERS.findall(sample) if not word.isascii())
    beyond = sum(byte > 127 for byte in sample)
    letters = beyond + sum(chr(byte).isalpha() for byte in sample if byte < 128)
    mixed = len(MIXED.findall(sample))
    if beyond >= LATIN_SHARE * letters and not (latin and mixed >= MIXED_SHARE * beyond):
        for codec in ("euc_jp", "cp932"):
            if len(KANA.findall(sample.decode(codec, "replace"))) > KANA_SHARE * beyond:
                return codec
        share, codec = max(_shares_of_frequent_letters(sample), key=lambda pair: pair[0])
        if share >= FREQUENT_SHARE:
            return codec
        guess = from_bytes(sample).best()
        return guess.encoding if guess else "cp1252"
    return latin or "cp1252"


def _latin_set(sample: bytes) -> str | None:
    """Return the set in which all letters of a text are of the alphabet of one language."""
    for system, (windows, alphabet) in product(range(SYSTEMS), ALPHABETS):
        codec = (windows, *OTHER_SETS[windows])[system]
        text = sample.decode(codec, "replace")
        if _fits(text, alphabet):
            if codec == "cp1252" and CURRENCY_SIGN in text:
                return "iso8859_15"
            return codec
    return None


def _shares_of_frequent_letters(sample: bytes) -> Iterator[tuple[float, str]]:
    """Yield each set of one byte a letter, with the share of frequent letters less that of strange signs."""
    for names, letters, frequent in SCRIPTS:
        strange = re.compile(rf"[^\x00-\x7f{letters}]")
        for codec in names:
            beyond = [sign for sign in sample.decode(codec, "replace") if sign > "\x7f"]
            odd = sum(
                strange.match(sign) is not None and sign not in SIGNS_IN_WORDS and sign != "\xa0" for sign in beyond
            )
            yield (sum(sign in frequent for sign in beyond) - odd) / max(1, len(beyond)), codec


def wide_set(raw: bytes) -> str | None:
    """Return the set of a text of two bytes a letter without a byte order mark; None for all else.

    Its line ends and spaces have a zero byte, on one side only, and nearly all its characters are letters and signs.
    """
    sample = raw[: SAMPLE_BYTES - SAMPLE_BYTES % 2]
    if b"\0" not in sample or len(raw) % 2:
        return None
    for codec, zeros in (("utf_16_le", sample[1::2]), ("utf_16_be", sample[::2])):
        text = sample.decode(codec, "replace")
        plain = sum(sign.isspace() or sign.isascii() for sign in text)
        odd = sum(category(sign) in {"Cc", "Cn", "Co", "Cs"} and not sign.isspace() for sign in text) + text.count(
            "\ufffd"
        )
        if zeros.count(0) == sample.count(0) and plain >= max(1, ASCII_SHARE * len(text)) and odd <= len(text) // 100:
            return codec
    return None


def _fits(text: str, alphabet: str) -> bool:
    """Return whether all letters beyond ASCII are of an alphabet, and no signs are where letters belong."""
    signs = {sign for sign in WORD_SIGNS.findall(text) if not sign.isascii() and not sign.isalpha()}
    if "\ufffd" in text or not signs <= SIGNS_IN_WORDS or any(map(str.isupper, CAPITAL_WITHIN.findall(text))):
        return False
    letters = {character.lower() for character in text if character.isalpha() and not character.isascii()}
    return letters <= {*alphabet, *(letter.lower() for letter in alphabet), "ª", "º", "µ", "ƒ"}
