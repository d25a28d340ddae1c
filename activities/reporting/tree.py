"""The text of a report as a tree: blocks of sentences of runs and citations.

`parse` reads Markdown once; numbers, claims, HTML, documents and the audit walk over what it returns. Raw HTML, link
definitions and every other construct that is not listed here are words. Passes change the runs of each leaf (the text
of a paragraph, a heading or a cell) before it is split into sentences: they take out addresses and recognise citations.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from providers.text import sentence_spans

BREAK: Final = "\n"
"""Text of a run that is a line break."""
ESCAPED_BRACKETS: Final = {"[": "\ue010", "]": "\ue011"}
"""Stand for brackets behind a backslash until the passes are through; drafts have no such characters left."""
PLAIN_BRACKETS: Final = {ord(sign): bracket for bracket, sign in ESCAPED_BRACKETS.items()}
CLOSING_SIGNS: Final = ".,;:!?"
COMBINING_LIMIT: Final = 8
"""Combining characters on one base; written languages need four, and typesetters fail on thousands."""
INVISIBLE: Final = re.compile(
    "["
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # controls, except tab and line feed
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"  # no width, bidi
    "\ufdd0-\ufdef\ufffe\uffff"  # no characters, which XML refuses
    "\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags and private use: this package uses some
    "\ud800-\udfff"  # lone surrogates, which UTF-8 has none of
    "]|[\ufe00-\ufe0f]{2,}"
)
SIGN_RUN: Final = re.compile(rf"[^\w\s\x00-\u02ff]{{{COMBINING_LIMIT + 1},}}")

BlockKind = Literal["heading", "paragraph", "quote", "list", "table", "code", "rule"]


@dataclass(frozen=True, slots=True)
class Run:
    """Words of one look."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    link: str | None = None

    @property
    def plain(self) -> bool:
        """Whether the words have no look of their own."""
        return not (self.bold or self.italic or self.code or self.link)


@dataclass(frozen=True, slots=True)
class CitationPlace:
    """A citation: of passages in a draft, of a number as well in a report."""

    evidence_ids: tuple[str, ...] = ()
    number: int = 0
    """From 1; 0 in a draft."""
    label: str = ""
    """The words of its link, in the style `link`."""
    link: str | None = None


Inline = Run | CitationPlace
Pass = Callable[[list[Inline], bool], list[Inline]]
"""Changes the inlines of a leaf; the flag says whether the leaf is in a block quote."""


@dataclass(frozen=True, eq=False, slots=True)
class Sentence:
    """A sentence, a heading, a cell, or a piece of a block quote up to its citations. Compared by identity."""

    inlines: tuple[Inline, ...]
    gap: str = ""
    """The blank before it."""

    @property
    def marks(self) -> list[CitationPlace]:
        """Its citations in order."""
        return [inline for inline in self.inlines if isinstance(inline, CitationPlace)]

    @property
    def words(self) -> str:
        """Its plain text: no markup, no citations, single blanks."""
        pieces: list[str] = []
        for inline in self.inlines:
            if isinstance(inline, Run):
                pieces.append(inline.text)
            elif pieces:
                pieces[-1] = pieces[-1].rstrip()
        return " ".join("".join(pieces).split())


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text; which fields count depends on its kind."""

    kind: BlockKind
    sentences: tuple[Sentence, ...] = ()
    """Of a heading or a paragraph; the text of code as the only one."""
    level: int = 0
    """Of a heading, from 1."""
    parts: tuple[tuple["Block", ...], ...] = ()
    """The items of a list; the content of a quote as the only part."""
    start: int | None = None
    """The first number of an ordered list."""
    rows: tuple[tuple[Sentence, ...], ...] = ()
    """The cells of a table; its header comes first."""
    aligns: tuple[str, ...] = ()
    """`left`, `right`, `center` or nothing for each column."""
    info: str = ""
    """The language of code."""

    @property
    def words(self) -> str:
        """The plain text of a heading or a paragraph."""
        return " ".join(sentence.words for sentence in self.sentences)

    @property
    def code(self) -> str:
        """The text of code with its line feeds."""
        return "".join(inline.text for each in self.sentences for inline in each.inlines if isinstance(inline, Run))


Blocks = tuple[Block, ...]


class _Parser(MarkdownIt):
    """Markdown without definitions and raw HTML that reports every link, also those that renderers refuse."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "linkify": False})
        self.enable("table").disable(["reference", "html_block", "html_inline", "text_join"])

    def validateLink(self, url: str) -> bool:  # noqa: N802, ARG002 - the parser's own name
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url


PARSER: Final = _Parser()


def parse(markdown: str, *passes: Pass, escapes: bool = True) -> Blocks:
    """Parse Markdown into blocks.

    With `escapes` a bracket behind a backslash is a word for the passes; without it, it is a bracket like any other.
    """
    tree = SyntaxTreeNode(PARSER.parse(clean_characters(markdown)))
    return _Builder(passes, escapes=escapes).blocks(tree.children, quoted=False)


def parse_words(markdown: str) -> str:
    """Return the plain text of some Markdown."""
    return " ".join(sentence.words for sentence in sentences(parse(markdown)))


class _Builder:
    """Turns nodes of the parser into blocks."""

    def __init__(self, passes: Sequence[Pass], *, escapes: bool) -> None:
        self._passes = passes
        self._escapes = escapes

    def blocks(self, nodes: Iterable[SyntaxTreeNode], *, quoted: bool) -> Blocks:
        found: list[Block] = []
        for node in nodes:
            block = self._block(node, quoted=quoted)
            before = found[-1] if found else None
            if block is None:
                continue
            if before and before.kind == block.kind == "list" and (before.start is None) == (block.start is None):
                # Neighbouring lists of one kind would be one list when they are read again.
                found[-1] = replace(before, parts=(*before.parts, *block.parts))
            else:
                found.append(block)
        return tuple(found)

    def _block(self, node: SyntaxTreeNode, *, quoted: bool) -> Block | None:
        match node.type:
            case "heading" | "paragraph":
                heading = node.type == "heading"
                inlines = self._leaf(node, quoted=quoted, one_line=heading)
                if not inlines:
                    return None
                if heading:
                    return Block("heading", (Sentence(tuple(inlines)),), level=int(node.tag[1:]))
                return Block("paragraph", tuple(split(inlines, quoted=quoted)))
            case "blockquote":
                inside = self.blocks(node.children, quoted=True)
                return Block("quote", parts=(inside,)) if inside else None
            case "bullet_list" | "ordered_list":
                items = tuple(item for child in node.children if (item := self.blocks(child.children, quoted=quoted)))
                start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
                return Block("list", parts=items, start=start) if items else None
            case "table":
                return self._table(node, quoted=quoted)
            case "fence" | "code_block":
                return self._code(node, quoted=quoted)
            case "hr":
                return Block("rule")
        return None

    def _leaf(self, node: SyntaxTreeNode, *, quoted: bool, one_line: bool) -> list[Inline]:
        tokens = [token for child in node.children if child.token for token in child.token.children or []]
        inlines = tidy(_read_runs(tokens, escapes=self._escapes), one_line=one_line)
        for change in self._passes:
            inlines = tidy(change(inlines, quoted), one_line=one_line)
        return [replace(each, text=each.text.translate(PLAIN_BRACKETS)) if isinstance(each, Run) else each
                for each in inlines]  # fmt: skip

    def _table(self, node: SyntaxTreeNode, *, quoted: bool) -> Block:
        rows = [row for part in node.children for row in part.children]
        cells = tuple(
            tuple(Sentence(tuple(self._leaf(cell, quoted=quoted, one_line=True))) for cell in row.children)
            for row in rows
        )
        styles = (str(cell.attrs.get("style", "")) for cell in rows[0].children)
        return Block("table", rows=cells, aligns=tuple(style.removeprefix("text-align:") for style in styles))

    def _code(self, node: SyntaxTreeNode, *, quoted: bool) -> Block | None:
        lines = clean_characters(node.content).expandtabs(4).split("\n")
        text = "\n".join(line.rstrip() for line in lines).strip("\n")
        for change in self._passes:
            text = "".join(each.text for each in change([Run(text, code=True)], quoted) if isinstance(each, Run))
        info = re.match(r"[\w+-]{0,20}", node.info.strip())
        leaf = Sentence((Run(text, code=True),))
        return Block("code", (leaf,), info=info[0] if info else "") if text.strip() else None


def _read_runs(tokens: Sequence[Token], *, escapes: bool, link: str | None = None) -> list[Inline]:
    """Read the runs of inline tokens; an image is a link with its words."""
    runs: list[Inline] = []
    depth = {"strong": 0, "em": 0}
    for token in tokens:
        name, _, edge = token.type.rpartition("_")
        if name in depth:
            depth[name] += 1 if edge == "open" else -1
        elif token.type == "link_open":
            link = str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            link = None
        elif token.type == "image":
            runs += _read_runs(token.children or [], escapes=escapes, link=str(token.attrs.get("src", "")))
        elif token.type == "hardbreak":
            runs.append(Run(BREAK))
        else:
            text = " " if token.type == "softbreak" else clean_characters(token.content)
            if escapes and token.type == "text_special":
                text = ESCAPED_BRACKETS.get(text, text)
            runs.append(Run(text, depth["strong"] > 0, depth["em"] > 0, token.type == "code_inline", link))
    return runs


def tidy(inlines: Iterable[Inline], *, one_line: bool = False) -> list[Inline]:
    """Return inlines in their only form.

    Neighbours of one look are one run, white space is single blanks, and a blank at the edge of a run with a look of
    its own is a plain run.
    """
    tidied: list[Inline] = []

    def add(text: str, look: Run) -> None:
        before = tidied[-1] if tidied else None
        if text[:1] == " " and (before is None or (isinstance(before, Run) and before.text.endswith((" ", BREAK)))):
            text = text[1:]
        if not text:
            return
        if isinstance(before, Run) and before.text != BREAK and replace(before, text=text) == replace(look, text=text):
            tidied[-1] = replace(before, text=before.text + text)
        else:
            tidied.append(replace(look, text=text))

    for inline in _merged(inlines):
        if isinstance(inline, CitationPlace):
            tidied.append(inline)
        elif inline.text == BREAK and not one_line:
            _strip_end(tidied)
            if tidied and tidied[-1] != Run(BREAK):
                tidied.append(Run(BREAK))
        elif text := re.sub(r"\s+", " ", inline.text):
            words = text.strip()
            if inline.plain or not words:
                add(text, Run("") if not words else inline)
                continue
            add(" " if text[0] == " " and not inline.code else "", Run(""))
            add(words, inline)
            add(" " if text[-1] == " " and not inline.code else "", Run(""))
    _strip_end(tidied)
    return tidied


def _merged(inlines: Iterable[Inline]) -> Iterator[Inline]:
    """Merge neighbours of one look as they are."""
    waiting: list[Run] = []
    for inline in inlines:
        if waiting and (isinstance(inline, CitationPlace) or BREAK in (inline.text, waiting[0].text)
                        or replace(inline, text=waiting[0].text) != waiting[0]):  # fmt: skip
            yield replace(waiting[0], text="".join(run.text for run in waiting))
            waiting = []
        if isinstance(inline, CitationPlace):
            yield inline
        else:
            waiting.append(inline)
    if waiting:
        yield replace(waiting[0], text="".join(run.text for run in waiting))


def _strip_end(inlines: list[Inline]) -> None:
    while inlines and isinstance(last := inlines[-1], Run) and last.text != (stripped := last.text.rstrip()):
        if stripped:
            inlines[-1] = replace(last, text=stripped)
            return
        inlines.pop()


def split(inlines: Sequence[Inline], *, quoted: bool = False) -> list[Sentence]:
    """Split a leaf into sentences; citations behind the end of a sentence belong to it.

    In a block quote each piece ends with citations: what they cite is all before them.
    """
    text = "".join(inline.text for inline in inlines if isinstance(inline, Run))
    marks: list[int] = []
    place = 0
    for inline in inlines:
        if isinstance(inline, CitationPlace):
            marks.append(place)
        else:
            place += len(inline.text)
    if quoted:
        ends = [end + len(text[end:]) - len(text[end:].lstrip(CLOSING_SIGNS)) for end in marks]
    else:
        ends = [end for _, end in sentence_spans(text) if _is_separable(inlines, end)]
    found: list[Sentence] = []
    rest, start = list(inlines), 0
    for end in [*ends, len(text)]:
        stop = start + len(text[start:end].rstrip())
        while following := [mark for mark in marks if mark > stop and not text[stop:mark].strip()]:
            stop = max(following)
        taken, rest = _cut(rest, stop - start)
        if any(isinstance(each, CitationPlace) or each.text.strip() for each in taken):
            found.append(_sentence(taken))
            start = stop
        else:
            rest = [*taken, *rest]
    return found


def _is_separable(inlines: Sequence[Inline], end: int) -> bool:
    """Return whether a sentence may end at a place: not within code, nor within words of a look without a blank."""
    for inline in inlines:
        if isinstance(inline, Run):
            if 0 < end < len(inline.text):
                return inline.plain or (not inline.code and " " in inline.text[end - 1 : end + 1])
            end -= len(inline.text)
    return True


def _sentence(inlines: list[Inline]) -> Sentence:
    first = inlines[0]
    if isinstance(first, Run) and first.text[:1] == " ":
        rest = [replace(first, text=first.text[1:])] if len(first.text) > 1 else []
        return Sentence((*rest, *inlines[1:]), " ")
    return Sentence(tuple(inlines))


def _cut(inlines: Sequence[Inline], length: int) -> tuple[list[Inline], list[Inline]]:
    """Cut inlines behind so many characters; citations at the cut come before it."""
    before: list[Inline] = []
    for place, inline in enumerate(inlines):
        if isinstance(inline, CitationPlace):
            before.append(inline)
        elif len(inline.text) <= length:
            before.append(inline)
            length -= len(inline.text)
        elif length > 0:
            cut = replace(inline, text=inline.text[:length])
            return [*before, cut], [replace(inline, text=inline.text[length:]), *inlines[place + 1 :]]
        else:
            return before, list(inlines[place:])
    return before, []


def sentences(blocks: Iterable[Block]) -> Iterator[Sentence]:
    """Give every sentence, cell, heading and code in order."""
    for block in blocks:
        yield from block.sentences
        yield from (cell for row in block.rows for cell in row)
        for part in block.parts:
            yield from sentences(part)


def change_sentences(blocks: Blocks, change: Callable[[Sentence], Sentence]) -> Blocks:
    """Return the tree with other sentences. One without inlines goes, and with the last one its block, item or row."""
    made = []
    for block in blocks:
        kept = tuple(new for each in block.sentences if (new := change(each)).inlines)
        cells = [tuple(change(cell) for cell in row) for row in block.rows]
        rows = (*cells[:1], *(row for row in cells[1:] if any(cell.inlines for cell in row)))
        parts = tuple(part for each in block.parts if (part := change_sentences(each, change)))
        if kept or rows or parts or block.kind == "rule":
            made.append(replace(block, sentences=kept, rows=rows, parts=parts))
    return tuple(made)


def clean_characters(text: str) -> str:
    """Return the text with line feeds as line ends, without invisible and private characters.

    Of very many combining characters in a row the first eight remain.
    """
    for line_end in ("\r\n", "\r", "\u2028", "\u2029"):
        text = text.replace(line_end, "\n")
    return SIGN_RUN.sub(_limit_combining, INVISIBLE.sub("", text))


def _limit_combining(found: re.Match[str]) -> str:
    kept, count = [], 0
    for sign in found[0]:
        count = count + 1 if unicodedata.category(sign)[0] == "M" else 0
        if count <= COMBINING_LIMIT:
            kept.append(sign)
    return "".join(kept)


def one_line(text: str) -> str:
    """Return the text cleaned, with every run of white space as one blank."""
    return " ".join(clean_characters(text).split())


def paragraph(*inlines: Inline | str) -> Block:
    """Make a paragraph of one sentence; strings are plain runs."""
    return Block("paragraph", (plain_sentence(*inlines),))


def heading(level: int, text: str) -> Block:
    """Make a heading."""
    return Block("heading", (plain_sentence(text),), level=level)


def plain_sentence(*inlines: Inline | str) -> Sentence:
    """Make a sentence; strings are plain runs."""
    runs = (Run(each) if isinstance(each, str) else each for each in inlines)
    cleaned = (replace(each, text=clean_characters(each.text)) if isinstance(each, Run) else each for each in runs)
    return Sentence(tuple(tidy(cleaned, one_line=True)))
