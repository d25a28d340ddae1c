"""Rich Text (RTF) as blocks, with `striprtf`; the commands that it does not know are replaced beforehand."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from striprtf.striprtf import rtf_to_text

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Block, DocumentFacts, Item, Paragraph, TableRow, count_words, stated_facts
from providers.reading.left_out import words_left_out
from providers.reading.notation import FONT_CODES, MAX_CODE, sign_of_font

MAX_BYTES: Final = 3_000_000
"""Without pictures: the library takes about 2 s for them."""
PICTURE: Final = re.compile(rb"[0-9a-fA-F\r\n]{256,}+")
"""The bytes of a picture in hexadecimal digits: no text has so many without another letter."""
CODE_PAGE: Final = re.compile(rb"\\ansicpg(\d{3,5})")
UNREAD: Final = re.compile(r"\\(?:v|deleted)(?=[\s\\{}])")
"""Text that is hidden or deleted, up to the end of its group."""
ENDED: Final = re.compile(r"\\(?:v0|deleted0)(?!\d)")
OLD_NUMBER: Final = re.compile(r"\\pntext(?![a-z])")
NOTES: Final = re.compile(r"\\footnote(?![a-z])")
FIELD: Final = re.compile(r"(\\fldinst)(?=\{)", re.IGNORECASE)
"""With a space behind it, the library does not search for the address of a link, in the square of the length."""
TITLE, AUTHOR = (re.compile(rf"\{{\\{name} ([^{{}}]{{1,600}})\}}") for name in ("title", "author"))
CREATED: Final = re.compile(r"\{\\creatim\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")
ITEM: Final = re.compile(r"(?:(?P<mark>\d{1,9}[.)])|[\u2022\u00b7\u25aa\u25e6\u2013\u2014\uf0b7o§-])\t+(?P<text>.*)")
CELL_END: Final = "|"
TOKEN: Final = re.compile(
    r"\\(?:'(?P<byte>[0-9a-fA-F]{2})|u(?P<code>-?\d{1,6}) ?(?:\\'[0-9a-fA-F]{2}|[^\\{}\r\n])?"
    r"|(?P<word>[a-zA-Z]{1,40})(?P<number>-?\d{0,10}) ?|[^a-zA-Z])|(?P<brace>[{}])"
    r"|SYMBOL +(?P<symbol>\d{1,5}) +\\\\f +\"?(?P<named>[A-Za-z]{1,20})",
    re.DOTALL,
)
"""A command with the sign that older programs show in its place, a brace, or the code of a field with a sign."""
NAMED_FONT: Final = re.compile(r"(symbol|wingdings)[{} ]*$", re.IGNORECASE)
LISTS: Final = frozenset(("listtext", "pntext"))
BULLET: Final = "▪"
FONTS: Final = "\\fonttbl"
BRACE: Final = re.compile("[{}]")
FONT: Final = re.compile(r"\\f\d{1,6}")
CHARSET: Final = re.compile(r"\\fcharset\d{1,3}")


def read_rich_text(raw: bytes) -> tuple[Iterable[Block], DocumentFacts]:
    """Return the blocks of a document, and its facts, with a warning about its footnotes.

    Raises `SourceUnreadable` too_large; `ValueError` and `TypeError` if it is damaged.
    """
    without_pictures = PICTURE.sub(b"", raw)
    if len(without_pictures) > MAX_BYTES:
        raise SourceUnreadable("too_large", f"larger than {MAX_BYTES} bytes without its pictures")
    source = _decoded(without_pictures)
    text = _plain(source)
    title, author, created = (pattern.search(source) for pattern in (TITLE, AUTHOR, CREATED))
    facts = stated_facts(
        _plain(_alone(source, title[1])) if title else None,
        [_plain(_alone(source, author[1]))] if author else [],
        "-".join(created.groups()) if created else None,
    )
    notes = 0
    if NOTES.search(source):
        notes = count_words(_plain(NOTES.sub("", source))) - count_words(text)
    missing = ""
    if notes > 0:
        missing = words_left_out(text, count_words(text) + notes, Counter({"footnotes": notes}))
    return _blocks(text), replace(facts, warnings=[missing] if missing else [])


def _decoded(raw: bytes) -> str:
    """Return the source as text; letters beyond ASCII, which programs escape, are of the stated code page."""
    if raw.isascii():
        return raw.decode("ascii")
    stated = CODE_PAGE.search(raw)
    try:
        return raw.decode(f"cp{int(stated[1])}" if stated else "cp1252", "replace")
    except LookupError:
        return raw.decode("cp1252", "replace")


def _alone(source: str, piece: str) -> str:
    """Return a piece of a source as a document of the same character set."""
    stated = CODE_PAGE.search(source[:1_000].encode("utf-8"))
    return f"{{\\rtf1\\ansi\\ansicpg{int(stated[1]) if stated else 1252} {piece}}}"


def _plain(source: str) -> str:
    """Return the text that is shown, with letters of two halves whole and an ordinary hyphen for one that stays."""
    known = OLD_NUMBER.sub(r"\\listtext", FIELD.sub(r"\1 ", _with_signs(source)))
    if not ENDED.search(known):
        known = UNREAD.sub(r"\\*\g<0>", known)
    convert: Any = rtf_to_text  # it has no types
    try:
        text: str = convert(_with_short_fonts(known), errors="replace")
    except OverflowError as error:
        raise ValueError("a number that is no letter") from error
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\u2011", "-")


def _with_signs(source: str) -> str:
    """Return a source in which the codes of a font such as Symbol are the characters that they mean."""
    entries = source[slice(*_font_table(source))].split(";")
    named = ((FONT.search(entry), NAMED_FONT.search(entry)) for entry in entries)
    fonts = {int(number[0].removeprefix("\\f")): name[1] for number, name in named if number and name}
    if not fonts and "SYMBOL" not in source:
        return source
    pieces: list[str] = []
    groups: list[tuple[str, bool]] = []
    font = ""
    is_mark = False
    pending = ""  # the sign of a field, which its result shows
    written = 0
    for token in TOKEN.finditer(source):
        sign: str | None = None
        kept = ""
        if token["brace"] == "{":
            groups.append((font, is_mark))
        elif token["brace"]:
            font, is_mark = groups.pop() if groups else ("", False)
        elif token["symbol"]:
            pending = sign_of_font(int(token["symbol"]), token["named"])
        elif token["word"] == "f" and token["number"].isdecimal():
            font = fonts.get(int(token["number"]), "")
        elif token["word"] == "plain":
            font = ""
        elif token["word"] in LISTS:
            is_mark = True
        elif token["word"] == "fldrslt" and pending:
            sign = pending
            kept = token[0]
            pending = ""
        elif font and token["byte"]:
            sign = sign_of_font(int(token["byte"], 16), font)
        elif font and token["code"] and int(token["code"]) & MAX_CODE in FONT_CODES:
            sign = sign_of_font(int(token["code"]) & MAX_CODE, font)
        if sign is not None:
            sign = BULLET if is_mark and not sign else sign
            pieces += [source[written : token.start()], kept, sign]
            written = token.end()
    return "".join((*pieces, source[written:]))


def _font_table(source: str) -> tuple[int, int]:
    """Return where the table of fonts begins and ends; an empty place if there is none."""
    start = source.find(FONTS)
    if start < 0:
        return 0, 0
    depth = 1
    for brace in BRACE.finditer(source, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start, brace.start()
    return start, len(source)


def _with_short_fonts(source: str) -> str:
    """Return a source whose table of fonts has only their character sets.

    The library searches the table in the square of its length.
    """
    start, end = _font_table(source)
    if start == end:
        return source
    fonts = ((FONT.search(entry), CHARSET.search(entry)) for entry in source[start:end].split(";"))
    short = "".join(f"{{{font[0]}{charset[0]} x;}}" for font, charset in fonts if font and charset)
    return f"{source[:start]}{FONTS}{short}{source[end:]}"


def _blocks(text: str) -> Iterator[Block]:
    """Yield each line; one that ends a cell is a row of a table."""
    for line in text.split("\n"):
        item = ITEM.fullmatch(line.strip())
        if line.rstrip(" ").endswith(CELL_END):
            yield TableRow([cell.strip() for cell in line.rstrip(" ").removesuffix(CELL_END).split(CELL_END)])
        elif item:
            yield Item(item["text"], mark=item["mark"] or "-")
        elif line.strip():
            yield Paragraph(line.strip())
