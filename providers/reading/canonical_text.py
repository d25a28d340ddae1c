r"""The canonical text of a document, of which every quote is a slice: light Markdown, the same on every reading.

`#` lines are headings; blank lines separate blocks; a paragraph is one line, or the lines that its author ended; the
term of a definition is on the line above its text; tables are Markdown rows; code is between fences; `^` and `_` mark
superscripts and subscripts (`2^32`).
Navigation, scripts, hidden text and invisible characters are removed; NFC; `\n` line ends.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from email.utils import parsedate
from itertools import takewhile
from typing import Any, Final, TypeAlias

from contracts.addresses import normalize, truncate_marks
from contracts.sentences import Message, Text

INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Soft hyphens, zero-width and bidirectional controls, variation selectors, Unicode tags."""
CONTROL: Final = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
UNSEEN: Final = re.compile(f"[{INVISIBLE}{CONTROL}]+")
PLAIN: Final = re.compile(r"[\t\n -~]*")
LINE_END: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")

LITERAL_MARK: Final = "\ue001"  # precedes text of a page that would read as markup, until it is written
TERM_MARK: Final = "\ue002"  # precedes the term of a definition list
BACKSLASH_MARK: Final = "\ue003"  # stands for a backslash of a page, which the library would double
MARKS: Final = re.compile("[\ue001\ue002]")


READERS: Final = "5"
"""Version of all readers: it changes with the text that they make of the same bytes, and texts of other versions are
read again from the original."""
TEXT_LIMIT: Final = 2_000_000  # characters of a document's text; whole blocks beyond it are dropped
MAX_LIST_DEPTH: Final = 5
ORDINALS: Final = frozenset("st nd rd th tm sm ® ™ er re e o a ª º".split())
MAX_FACT_LENGTH: Final = 300
MAX_NAME_LENGTH: Final = 70
"""Limits in characters: these statements are invisible, so a message to a model must not pass for a name."""

WORDS: Final = re.compile(r"[^\W_]+")
BETWEEN_WORDS: Final = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
"""A space for each sign of ASCII that is neither a letter nor a digit."""
MARKUP: Final = re.compile(r"(?m)^(#{1,6}[ \t]|```|~~~)")
LINE: Final = re.compile(
    r"(?P<fence> *+(?:`{3,}|~{3,}))(?![^\n]*`)"
    r"|(?P<heading>#{1,6}) (?P<title>.*)"
    r"|(?P<rule> *+(?:-{3,}|\*{3,}|_{3,})[ ]*$)"
    r"|(?P<row>\|.*)"
    r"|(?P<indent> *+)(?P<item>[-*+]|\d{1,9}[.)])[ ]+(?P<words>.*)"
)
RULE_OF_TABLE: Final = re.compile(r"\|[\s:|-]*-[\s:|-]*")
QUOTED_LINE: Final = re.compile(r"(?:>(?: |$))*")
BAR: Final = r"\|"
CELL_END: Final = re.compile(r"(?<!\\)\|")
INLINE: Final = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).{1,300}?(?<!`)(?P=ticks)(?!`))"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|!\[[^\[\]\n]{0,300}\]\([^()\n]{0,2000}\)"
    r"|\[(?P<label>[^\[\]\n]{0,300})\]\([^()\n]{0,2000}\)"
    r"|\^(?P<raised>[^\s^]{1,20})\^"
    r"|<(?P<address>https?://[^<>\s]{1,2000})>"
    r"|(?<![\w*])(?P<signs>\*{1,3}|~~)(?=\S)(?P<emphasis>[^\n]{1,300}?)(?<=\S)(?P=signs)(?![\w*])"
)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A heading, paragraph, list item, term, row or piece of code: `text[start:end]`, without the marks around it."""

    start: int
    end: int
    level: int = 0
    """1 to 6 for headings, else 0."""


@dataclass(frozen=True, kw_only=True)
class DocumentFacts:
    """Statements of a document about itself, empty if it has none, and notes of its reader."""

    title: str = ""
    media_type: str = ""
    language: str | None = None
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    pages: list[int] = field(default_factory=list)
    """Offset in the text at which each page or slide begins; empty if there are none."""
    warnings: list[Text] = field(default_factory=list)
    """Missing or shortened parts: one short line each, without page text."""
    reader: str = READERS
    links: list[str] = field(default_factory=list)
    """Web addresses to which the content refers, without those of navigation."""

    uncertain: list[tuple[int, int]] = field(default_factory=list)
    """Start and end in the text of each block with words that a second engine reads otherwise; in order."""

    def facts(self) -> dict[str, Any]:
        """Return the facts by name."""
        return {name: getattr(self, name) for name in DocumentFacts.__dataclass_fields__}


NO_FACTS: Final = DocumentFacts()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; line ends in it are those of its author."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list, with the number before it, such as `3.`, or `-`; `depth` 0 is the outermost list."""

    text: str
    depth: int = 0
    mark: str = "-"


@dataclass(frozen=True, slots=True)
class TableRow:
    """The cells of a row; the first row after any other block is the head of its table."""

    cells: list[str]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of code or program output."""

    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The beginning of a page or slide, counted from 1."""

    number: int


Block: TypeAlias = Heading | Paragraph | Item | TableRow | Code | Page
"""A piece of a document as its reader found it, without marks of emphasis."""


@dataclass(frozen=True, kw_only=True)
class Extraction(DocumentFacts):
    """The canonical text of a document, and its facts."""

    text: str
    blocks: list[TextBlock] = field(default_factory=list)


def canonical_text(
    markdown: str, media_type: str, *, escaped: bool, limit: int = TEXT_LIMIT, facts: DocumentFacts = NO_FACTS
) -> Extraction:
    r"""Rewrite Markdown as canonical text.

    `escaped`: whether it has inline markup (emphasis, links, `\*`), which is dropped; inline code remains.
    """
    writer = _Writer(limit, escaped=escaped)
    writer.write(markdown)
    return _extraction(writer, media_type, facts)


def text_of_blocks(
    blocks: Iterable[Block], media_type: str, *, limit: int = TEXT_LIMIT, facts: DocumentFacts = NO_FACTS
) -> Extraction:
    """Write blocks as canonical text; those beyond the limit are not asked for."""
    writer = _Writer(limit, escaped=False)
    for block in blocks:
        writer.write_block(block)
        if writer.cut:
            break
    return _extraction(writer, media_type, facts)


def _extraction(writer: "_Writer", media_type: str, facts: DocumentFacts) -> Extraction:
    text = "".join(writer.parts)
    fields = facts.facts() | {"media_type": media_type, "pages": writer.pages}
    heading = next((text[block.start : block.end] for block in writer.blocks if block.level), "")
    fields["title"] = facts.title or heading[:MAX_FACT_LENGTH]
    if writer.cut:
        fields["warnings"] = [*facts.warnings, cut_warning(text)]
    return Extraction(text=text, blocks=writer.blocks, **fields)


def cut_warning(text: str) -> str:
    """Return the warning about a long document of which only this text is read."""
    return Message("text_cut", count=len(text))


def clean(text: str) -> str:
    """Clean text from outside: as `clean_marked` does, without a sign that would be written as a backslash."""
    return clean_marked(text.replace(BACKSLASH_MARK, ""))


def clean_marked(text: str) -> str:
    """Unify line ends, drop invisible and control characters, and compose (NFC). Idempotent."""
    if PLAIN.fullmatch(text):
        return text
    text = truncate_marks(UNSEEN.sub("", LINE_END.sub("\n", text)))
    composed = normalize("NFC", text)
    # NFC can exceed the marks allowed on a letter, because it writes some of them as two.
    if composed == text:
        return text
    return truncate_marks(composed)


def count_words(text: str) -> int:
    """Return the number of words: runs of letters and digits."""
    lines = text.split("\n")
    ascii_lines = "\n".join(filter(str.isascii, lines)).encode("ascii")  # ten times as fast
    others = "\n".join(line for line in lines if not line.isascii())
    return len(ascii_lines.translate(BETWEEN_WORDS).split()) + len(WORDS.findall(others))


def one_line(text: str) -> str:
    """Collapse white space to single spaces."""
    return " ".join(text.split())


def plain_inline(text: str) -> str:
    """Drop the inline markup of Markdown, except for code."""
    if any(character in text for character in "\\`*[~<^"):
        return INLINE.sub(_plain, text)
    return text


def _plain(match: re.Match[str]) -> str:
    if match["code"]:
        return match["code"]
    if match["emphasis"]:
        return plain_inline(match["emphasis"])
    if match["raised"]:
        return "^" + match["raised"]
    return match["escaped"] or plain_inline(match["label"] or "") or match["address"] or ""


class _Writer:
    """Writes the blocks of a Markdown text one after another, and notes their offsets."""

    def __init__(self, limit: int, *, escaped: bool) -> None:
        self.parts: list[str] = []
        self.blocks: list[TextBlock] = []
        self.pages: list[int] = []
        self.cut = False
        self._limit = limit
        self._escaped = escaped
        self._length = 0
        self._open: list[str] = []
        self._bullet = ""
        self._after_term = self._after_item = self._in_table = False

    def write(self, markdown: str) -> None:
        """Write all lines."""
        lines = iter(markdown.split("\n"))
        quoted = 0
        for line in lines:
            marks = QUOTED_LINE.match(line)
            text = line[marks.end() :] if marks else line
            if marks and marks.end() != quoted:
                self._close()
                quoted = marks.end()
            match = LINE.match(text)
            if not text.strip():
                self._close()
                self._after_term = self._in_table = False
            elif match is None:
                self._continue(text.strip())
            else:
                self._close()
                self._line(lines, match)
            if self.cut:
                break
        self._close()

    def write_block(self, block: Block) -> None:
        """Write one block."""
        if not isinstance(block, TableRow):
            self._in_table = False
        match block:
            case Heading():
                self._add(one_line(clean(block.text)), prefix="#" * block.level + " ", level=block.level)
            case Paragraph() | Item():
                text = MARKUP.sub(r"\\\1", "\n".join(filter(None, map(one_line, clean(block.text).split("\n")))))
                is_item = isinstance(block, Item)
                prefix = ""
                if isinstance(block, Item):
                    prefix = f"{'  ' * min(block.depth, MAX_LIST_DEPTH)}{block.mark} "
                self._add(text, prefix=prefix, close=is_item and self._after_item)
                self._after_item = is_item
            case TableRow():
                self._write_row([one_line(clean(cell)) for cell in block.cells])
            case Code():
                self._write_code(clean(block.text))
            case Page():
                start = self._length + 2 if self.blocks else 0
                self.pages += [start] * (block.number - len(self.pages))

    def _write_row(self, cells: list[str]) -> None:
        """Write a row, and the rule of a table after its first one."""
        if not any(cells):
            return
        is_head = not self._in_table
        blocks = len(self.blocks)
        self._add(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |", close=self._in_table)
        self._in_table = len(self.blocks) > blocks
        if is_head and self._in_table:
            self._append("\n|" + " --- |" * len(cells))

    def _line(self, lines: Iterator[str], match: re.Match[str]) -> None:
        """Write a line that is a block, or starts a list item or a fenced block."""
        if match["fence"]:
            self._in_table = False
            self._code(lines, match["fence"])
        elif match["heading"]:
            text = one_line(self._plain(match["title"])).rstrip("¶# ")
            self._add(text, prefix=match["heading"] + " ", level=len(match["heading"]))
        elif match["row"]:
            self._row(match["row"])
        elif match["item"]:
            depth = min(len(match["indent"]) // 2, MAX_LIST_DEPTH)
            self._bullet = "  " * depth + (match["item"] if match["item"][:1].isdecimal() else "-") + " "
            self._open = [match["words"]]

    def _continue(self, text: str) -> None:
        if text.startswith(TERM_MARK):
            self._close()
            term = one_line(self._plain(text))
            self._add(MARKUP.sub(r"\\\1", term))
            self._after_term = bool(term)
        else:
            self._open.append(text)

    def _close(self) -> None:
        """Write the open paragraph or item."""
        lines = [one_line(self._plain(line)) for line in self._open]
        bullet = self._bullet
        self._open = []
        self._bullet = ""
        texts = [MARKUP.sub(r"\\\1", line) for line in lines if line]
        if bullet:
            texts = ["\n".join(texts)] if texts else []
        for number, text in enumerate(texts):  # each line is a block, so that one line of many can be found
            self._add(text, prefix=bullet, close=number > 0 or (self._after_item if bullet else self._after_term))
            self._after_item = bool(bullet)
            self._after_term = False

    def _plain(self, text: str) -> str:
        return MARKS.sub("", plain_inline(text) if self._escaped else text)

    def _row(self, line: str) -> None:
        """Write a row of a table; the rule below its header belongs to no block."""
        if RULE_OF_TABLE.fullmatch(line):
            if self._in_table:
                self._append("\n|" + " --- |" * (line.count("|") - 1))
            return
        cells = [one_line(MARKS.sub("", plain_inline(cell))) for cell in CELL_END.split(line.strip())[1:-1]]
        if any(cells):
            text = " | ".join(CELL_END.sub(r"\|", cell) for cell in cells)
            self._add(f"| {text} |", close=self._in_table)
            self._in_table = True

    def _code(self, lines: Iterator[str], fence: str) -> None:
        """Write a fenced block, taking its lines from `lines`."""
        mark = fence.strip()
        indent = len(fence) - len(fence.lstrip())
        block = takewhile(lambda line: line.lstrip("> ").rstrip() != mark, lines)
        code = "\n".join(line[indent:] if line[:indent].isspace() else line for line in block)
        self._write_code(MARKS.sub("", code))

    def _write_code(self, code: str) -> None:
        """Write code between fences that are longer than any in it."""
        code = code.strip("\n").rstrip()
        longest = max(map(len, re.findall("`+", code)), default=0)
        own_fence = "`" * max(3, longest + 1)
        self._add(code, prefix=own_fence + "\n", suffix="\n" + own_fence)

    def _add(self, text: str, *, prefix: str = "", suffix: str = "", level: int = 0, close: bool = False) -> None:
        """Append a block; `close` puts it on the next line, without a blank one between."""
        if not text:
            return
        text = text.replace(BACKSLASH_MARK, "\\")
        gap = ""
        if self.blocks:
            gap = "\n" if close else "\n\n"
        start = self._length + len(gap) + len(prefix)
        room = max(0, self._limit - start - len(suffix))
        if len(text) > room:
            self.cut = True
            if self.blocks:
                return
            text = text[:room].rpartition(" ")[0] or text[:room]
        self.blocks.append(TextBlock(start, start + len(text), level))
        self._append(f"{gap}{prefix}{text}{suffix}")
        self._after_item = False

    def _append(self, part: str) -> None:
        self.parts.append(part)
        self._length += len(part)


def language_code(value: str | None) -> str | None:
    """Return the two or three letters of a language tag such as `de-AT`, or None."""
    code = re.split("[-_]", (value or "").strip().lower())[0]
    if code.isascii() and code.isalpha() and len(code) in {2, 3}:
        return code
    return None


def is_name(text: str) -> bool:
    """Return whether a text can be a name, or a list of names, rather than a message."""
    parts = text.replace(";", ",").split(",")
    return bool(text) and max(map(len, parts)) <= MAX_NAME_LENGTH and len(text) <= MAX_FACT_LENGTH and "://" not in text


def stated_facts(
    title: str | None, authors: Iterable[str | None], date: str | None, language: str | None = None
) -> DocumentFacts:
    """Return what a document states about itself, without what cannot be a title or a name."""
    names = (one_line(clean(name or "")) for name in authors)
    return DocumentFacts(
        title=one_line(clean(title or ""))[:MAX_FACT_LENGTH],
        language=language_code(language),
        authors=list(filter(is_name, names)),
        published_at=iso_date(date),
    )


def raised(text: str) -> str:
    """Return a superscript as text: `^32`; ordinals such as `1st` have no mark."""
    if not text.strip() or text.strip().lower() in ORDINALS:
        return text
    return f"^{text}"


# --- dates as documents write them, as far as they go: `2024`, `2024-05`, `2024-05-17` --------------------------------
COMPACT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T|$)")
ISO_LIKE: Final = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")
MAX_DATE_LENGTH: Final = 100
YEARS: Final = range(1000, 2101)


def iso_date(value: str | None) -> str | None:
    """Return the date at the start of a value, or None: ISO 8601 and similar, mail dates, `May 17, 2024`."""
    written = (value or "").strip()[:MAX_DATE_LENGTH]
    match = COMPACT.match(written) or ISO_LIKE.match(written)
    try:
        if match is not None:
            parts = [part.zfill(2) for part in match.groups() if part]
        elif read := parsedate(written) or parsedate(f"{written} 00:00"):
            parts = [f"{part:02}" for part in read[:3]]
        else:
            return None
        year, month, day = map(int, [*parts, "1", "1"][:3])
        date(year, month, day)
    except (ValueError, IndexError, TypeError, OverflowError):  # the parser of mail dates raises all of them
        return None
    if year not in YEARS:
        return None
    return "-".join(parts)
