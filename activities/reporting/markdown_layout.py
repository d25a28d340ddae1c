"""Where a Markdown text has code and where it has blocks of prose, in characters of the source."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

MASK = "\ue000"
"""Stands for a character of code in a masked text; `clean_characters` keeps it out of every draft."""

BACKTICKS = re.compile(r"(?<!\\)(\\*+)(`++)")
TEXTS_KEPT = 4
"""Forms of one report on its way: with links, cleaned, with markers in one form, with numbers."""
PREFIX = re.compile(r"(?:[ \t]*+(?:>|[-*+](?=\s)|\d{1,9}+[.)](?=\s)|#{1,6}+(?=\s)))*+[ \t]*+")
PARSER = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
BLOCKS = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("inline")
"""Finds blocks alone, which is most of what is asked, in a fifth of the time."""


@dataclass(frozen=True)
class ProseBlock:
    """A run of prose: a paragraph, a heading, the text of a list item, a row of a table, or a whole quotation."""

    start: int
    end: int
    quoted: bool
    row: bool
    heading: int = 0
    """Level of a heading; 1 for the first row of a table; 0 for all else."""


@dataclass(frozen=True)
class Layout:
    """What the Markdown parser sees in a text; inline tokens have no children."""

    text: str
    tokens: list[Token]
    references: dict[str, Any]
    blocks: list[ProseBlock]
    code: list[tuple[int, int]]

    @cached_property
    def masked(self) -> str:
        """The text with every character of code replaced, line feeds apart; offsets stay."""
        pieces, last = [], 0
        for start, end in self.code:
            pieces.append(self.text[last:start])
            pieces.append("".join("\n" if character == "\n" else MASK for character in self.text[start:end]))
            last = end
        return "".join(pieces) + self.text[last:]


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    return [*starts, len(text)]


def _code_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Inline code between two offsets: a run of backticks up to the next run of the same length."""
    runs = [(match.start(2), match.end(), len(match[1]) % 2) for match in BACKTICKS.finditer(text, start, end)]
    later: dict[int, list[int]] = {}
    for place in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[place][1] - runs[place][0], []).append(place)
    place = 0
    while place < len(runs):
        first, last, escaped = runs[place]
        closers = later.get(last - first - escaped, [])
        while closers and closers[-1] <= place:
            closers.pop()
        if last - first - escaped > 0 and closers:
            yield first + escaped, runs[closers[-1]][1]
            place = closers[-1]
        place += 1


def _trim(text: str, start: int, end: int, *, quoted: bool, row: bool, heading: int = 0) -> Iterator[ProseBlock]:
    prefix = None if row else PREFIX.match(text, start, end)
    inner = prefix.end() if prefix else start
    stop = inner + len(text[inner:end].rstrip())
    if stop > inner:
        yield ProseBlock(inner, stop, quoted, row, heading)


def _inlines(tokens: list[Token], starts: list[int], text: str) -> Iterator[ProseBlock]:
    """Every run of inline text, each line range once."""
    seen = set()
    for place, token in enumerate(tokens):
        if token.type == "inline" and token.map is not None and tuple(token.map) not in seen:
            seen.add(tuple(token.map))
            above = tokens[place - 1]
            row = above.type in ("th_open", "td_open")
            heading = int(above.tag[1:]) if above.type == "heading_open" else int(above.type == "th_open")
            yield from _trim(text, starts[token.map[0]], starts[token.map[1]], quoted=False, row=row, heading=heading)


def _quotations(tokens: list[Token], starts: list[int], text: str) -> Iterator[ProseBlock]:
    """Every outermost quotation with all its paragraphs."""
    depth = 0
    for token in tokens:
        if token.type == "blockquote_open" and depth == 0 and token.map:
            yield from _trim(text, starts[token.map[0]], starts[token.map[1]], quoted=True, row=False)
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)


def _merge(inlines: list[ProseBlock], quotations: list[ProseBlock]) -> list[ProseBlock]:
    starts = [quote.start for quote in quotations]

    def loose(block: ProseBlock) -> bool:
        place = bisect_right(starts, block.start) - 1
        return place < 0 or block.start >= quotations[place].end

    return sorted([*filter(loose, inlines), *quotations], key=lambda block: block.start)


@lru_cache(maxsize=TEXTS_KEPT)
def layout(text: str) -> Layout:
    """Parse a cleaned Markdown text: once for the many passes over it; no caller changes what it is given."""
    environment: dict[str, Any] = {}
    tokens = BLOCKS.parse(text, environment)
    starts = _line_starts(text)
    inlines = list(_inlines(tokens, starts, text))
    quotations = list(_quotations(tokens, starts, text))
    code = [(starts[token.map[0]], starts[token.map[1]]) for token in tokens
            if token.type in ("fence", "code_block") and token.map]  # fmt: skip
    for block in inlines:
        code.extend(_code_spans(text, block.start, block.end))
    return Layout(text, tokens, dict(environment.get("references", {})), _merge(inlines, quotations), sorted(code))


def plain_text(markdown: str) -> str:
    """What a reader sees of one block of Markdown: markup gone, white space as single blanks."""
    children = [child for token in PARSER.parseInline(markdown) for child in token.children or []]
    breaks = ("softbreak", "hardbreak")
    return " ".join("".join("\n" if child.type in breaks else child.content for child in children).split())


INVISIBLE = re.compile(
    "["
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # controls, except tab and line feed
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"  # no width, bidi
    "\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags and private use: we keep these for ourselves
    "\ud800-\udfff"  # lone surrogates cannot be written as UTF-8
    "]"
)
VARIATION_RUN = re.compile("[\ufe00-\ufe0f]{2,}")
MARKDOWN_SIGN = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
TOP_DOMAIN = (
    r"(?:[a-z]{2}|com|org|net|edu|gov|biz|info|name|pro|web|xxx|aero|asia|coop|museum|shop|app|dev|рф|xn--[\w-]++)"
)
HOST_DOT = re.compile(rf"(?<=[^\W_])\.(?={TOP_DOMAIN}(?![\w-]))", re.IGNORECASE)
"""The dot of `example.com` in prose, which some renderers make a link of."""


MAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++")
FILE = re.compile(r"(?<![\w./:@+-])(?:[\w+-]++/)*+\w++(?:-\w++)*+\.(?:py|sh|md|rs|pl|so|cc|ps)(?![./@-]*+\w)")
"""Names of files whose endings are top-level domains, too."""
MAIL_OR_FILE = re.compile(f"{MAIL.pattern}|{FILE.pattern}")


def clean_characters(text: str) -> str:
    """The text with line feeds alone as line ends and without invisible, bidirectional and private characters."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return VARIATION_RUN.sub("", INVISIBLE.sub("", unified))


def one_line(text: str) -> str:
    """The text cleaned, with every run of white space as one blank."""
    return " ".join(clean_characters(text).split())


def escape_markdown(text: str) -> str:
    """One line of foreign text, so that Markdown shows it as it is; mail addresses and names of files are code.

    Some renderers make links of both.
    """
    pieces, last, line = [], 0, one_line(text)
    for found in MAIL_OR_FILE.finditer(line):
        pieces += [_escape_plain(line[last : found.start()]), code_span(found[0])]
        last = found.end()
    return "".join([*pieces, _escape_plain(line[last:])])


def _escape_plain(text: str) -> str:
    return HOST_DOT.sub(r"\\.", MARKDOWN_SIGN.sub(r"\\\g<0>", text))


def code_span(text: str) -> str:
    """A text as inline code, whatever backticks it holds."""
    line = one_line(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
