"""Plain text: paragraphs are unwrapped, underlined and numbered lines become headings, indented text is code."""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder, add_code
from providers.reading.cleaning import clean, escape_markup, one_line

UNDERLINE: Final = re.compile(r"^([=\-~^*#+\"'`])\1{2,}$")
UNDERLINE_LEVELS: Final = {"=": 1, "#": 1, "*": 1, "-": 2, "~": 3, "^": 4, '"': 4, "+": 3, "'": 4, "`": 4}
NUMBERED: Final = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s{1,4}(?=[A-Z])")
DELIMITER: Final = re.compile(r"(-{4,}+|\.{4,}+)[ \t]*+$")
LONGEST_LISTING: Final = 80
"""Lines that may stand between two delimiters of a listing."""
BULLET: Final = re.compile(r"^\s{0,8}([-*+•o]|\d{1,3}[.)])\s+(?=\S)")
ALIGNED: Final = re.compile(r"\S {3,}\S|\t|^\s*[|+][-=|+ ]")
LONGEST_HEADING: Final = 80
LONGEST_TITLE: Final = 120
LINES_LEFT_OUT: Final = "the log is long: only its beginning is kept"
LONGEST_PARAGRAPH: Final = 20_000
"""Characters; a longer one is cut into several at white space, so that a passage stays a passage."""


def extract_plain_text(text: str) -> Extraction:
    """The canonical text of a plain text. Raises `SourceUnreadable` empty if there is nothing but white space."""
    builder = TextBuilder()
    write_plain_text(builder, clean(text))
    if not builder.blocks:
        raise SourceUnreadable("empty", "the file holds nothing but white space")
    words, kind = builder.first(), builder.blocks[0].kind
    title = words if kind is BlockKind.HEADING or len(words) <= LONGEST_HEADING else ""
    return builder.finish("text/plain", title=title[:LONGEST_TITLE])


def extract_log(text: str) -> Extraction:
    """The lines of a log as they stand, none joined with another. Raises `SourceUnreadable` empty."""
    builder = TextBuilder()
    for line in clean(text).expandtabs(8).split("\n"):
        for start in range(0, len(line), LONGEST_PARAGRAPH):
            if words := line[start : start + LONGEST_PARAGRAPH].rstrip():
                builder.add(BlockKind.ROW, escape_markup(words))
        if builder.cut:
            break
    if not builder.blocks:
        raise SourceUnreadable("empty", "the file holds nothing but white space")
    return builder.finish("text/plain", LINES_LEFT_OUT)


def write_plain_text(builder: TextBuilder, text: str) -> None:
    """Append the blocks of a plain text; what stands between two lines of dashes or points is a listing."""
    lines, start = text.split("\n"), 0
    for first, last in _listings(lines):
        _write_blocks(builder, "\n".join(lines[start:first]))
        if not builder.cut and any(line.strip() for line in lines[first + 1 : last]):
            add_code(builder, textwrap.dedent("\n".join(lines[first + 1 : last]).expandtabs(8).strip("\n")))
        start = last + 1
    _write_blocks(builder, "\n".join(lines[start:]))


def _listings(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The lines that open a listing and that close it, as AsciiDoc draws them.

    Under a line of words the dashes would make a heading of it; before a blank line they are a rule.
    """
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        found = DELIMITER.match(line)
        if found is None:
            continue
        if opened is not None and found[1] == opened[1] and number - opened[0] <= LONGEST_LISTING:
            yield opened[0], number
            opened = None
            continue
        before = lines[number - 1].strip() if number else ""
        after = lines[number + 1].strip() if number + 1 < len(lines) else ""
        opened = (number, found[1]) if after and (not before or before[0] in "+[.") else None


def _write_blocks(builder: TextBuilder, text: str) -> None:
    for block in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.expandtabs(8).strip("\n")):
        lines = [line.rstrip() for line in block.split("\n")]
        lines = [line for line in lines if line.strip()]
        if builder.cut:
            return
        if lines:
            _write_block(builder, lines)


def _write_block(builder: TextBuilder, lines: list[str]) -> None:
    if len(lines) >= 2 and UNDERLINE.match(lines[1].strip()) and len(lines[0]) <= LONGEST_TITLE:
        level = UNDERLINE_LEVELS[lines[1].strip()[0]]
        _heading(builder, lines[0], level)
        lines = lines[2:]
        if not lines:
            return
    if len(lines) == 1 and _is_heading(lines[0]):
        _heading(builder, lines[0], 1 + _depth(lines[0]))
    elif _is_code(lines):
        add_code(builder, textwrap.dedent("\n".join(lines)))
    elif BULLET.match(lines[0]):
        _write_items(builder, lines)
    else:
        _write_paragraph(builder, lines)


def _heading(builder: TextBuilder, line: str, level: int) -> None:
    words = one_line(line.strip().lstrip("#"))
    if words:
        builder.add(BlockKind.HEADING, words, before="#" * level + " ", level=level)


def _is_heading(line: str) -> bool:
    words = line.strip()
    if len(words) > LONGEST_HEADING or words.endswith((".", ":", ",", ";")) or line.startswith("  "):
        return False
    if NUMBERED.match(words):
        return True
    letters = [character for character in words if character.isalpha()]
    return len(letters) > 3 and all(character.isupper() for character in letters)


def _depth(line: str) -> int:
    found = NUMBERED.match(line.strip())
    return min(4, found.group(1).count(".")) if found else 0


def _is_code(lines: list[str]) -> bool:
    """Text set in columns or drawn, or indented lines that are no sentences."""
    aligned = sum(bool(ALIGNED.search(line)) for line in lines)
    if aligned * 2 > len(lines):
        return True
    indented = all(line.startswith("    ") for line in lines)
    letters = sum(character.isalpha() or character.isspace() for line in lines for character in line)
    return indented and letters < 0.8 * sum(map(len, lines))


def _write_items(builder: TextBuilder, lines: list[str]) -> None:
    item: list[str] = []
    bullet = ""
    for line in lines:
        found = BULLET.match(line)
        if found:
            _write_item(builder, bullet, item)
            mark = found.group(1)
            bullet = f"{mark} " if mark[0].isdigit() else "- "
            item = [line[found.end() :]]
        else:
            item.append(line)
    _write_item(builder, bullet, item)


def _write_item(builder: TextBuilder, bullet: str, lines: list[str]) -> None:
    if lines:
        builder.add(BlockKind.ITEM, escape_markup(one_line(" ".join(lines))), before=bullet)


def _write_paragraph(builder: TextBuilder, lines: list[str]) -> None:
    words = one_line(" ".join(lines))
    start = 0
    while start < len(words) and not builder.cut:
        end = start + LONGEST_PARAGRAPH
        if end < len(words):
            space = words.rfind(" ", start + 1, end)
            end = space if space > 0 else end
        builder.add(BlockKind.PARAGRAPH, escape_markup(words[start:end].strip()))
        start = end
