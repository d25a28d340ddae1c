"""The text of a report as a tree: blocks of sentences, which consist of runs and citations.

`parse` reads Markdown once; numbering, claims, HTML and documents walk over its result. Raw HTML, link definitions and
all other constructs that are not listed here are plain text. Passes change the runs of each leaf (the text of a
paragraph, a heading or a cell) before it is split into sentences: they remove addresses and recognise citations.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from contracts.addresses import truncate_marks
from providers.text import sentence_spans

ESCAPED_BRACKETS: Final = {"[": "\ue010", "]": "\ue011"}
"""Placeholders of escaped brackets while the passes run; cleaned drafts have no such characters."""
PLAIN_BRACKETS: Final = {ord(sign): bracket for bracket, sign in ESCAPED_BRACKETS.items()}
STOPS: Final = re.compile("[.!?。！？]")
INVISIBLE: Final = re.compile(
    "["
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # controls, except tab and line feed
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"  # zero width, bidi
    "\ufdd0-\ufdef\ufffe\uffff"  # noncharacters, which XML rejects
    "\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags and private use: this package uses some
    "\ud800-\udfff"  # lone surrogates, which UTF-8 cannot encode
    "]|[\ufe00-\ufe0f]{2,}"
)
BLANKS: Final = re.compile(r"[^\S\n]+")
BREAKS: Final = re.compile(r" ?\n[ \n]*")
PLAIN_STYLE: Final = (False, False, False, None)


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one style; a line feed in it is a line break."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    link: str | None = None

    def with_text(self, text: str) -> "Run":
        """Return a run of the same style with another text."""
        if text == self.text:
            return self
        return Run(text, self.bold, self.italic, self.code, self.link)


@dataclass(frozen=True, slots=True)
class CitationMark:
    """A citation of passages, in a report with a number; or the sign of a verdict."""

    evidence_ids: tuple[str, ...] = ()
    number: int = 0
    """From 1; 0 in a draft."""
    label: str = ""
    """The text of its link, in the citation style `link`."""
    link: str | None = None
    sign: str = ""
    """The sign of a verdict and its name; if set, nothing is cited."""


Inline = Run | CitationMark
Pass = Callable[[list[Inline], bool], list[Inline]]
"""Changes the inlines of a leaf; the flag is true within a block quote."""


@dataclass(frozen=True, eq=False, slots=True)
class Sentence:
    """A sentence, a heading, a cell, a piece of code, or a piece of a block quote up to its citations.

    Compared by identity.
    """

    inlines: tuple[Inline, ...]
    gap: str = ""
    """The blank or the line break before it."""

    @property
    def marks(self) -> list[CitationMark]:
        """Its citations in order."""
        return [inline for inline in self.inlines if isinstance(inline, CitationMark) and not inline.sign]

    @property
    def text(self) -> str:
        """Its text without citations."""
        return "".join(inline.text for inline in self.inlines if isinstance(inline, Run))

    @property
    def words(self) -> str:
        """Its plain text with single blanks: no markup, no citations or blanks before them."""
        pieces = ["\0" if isinstance(inline, CitationMark) else inline.text for inline in self.inlines]
        return " ".join(re.sub(r"\s*\0", "", "".join(pieces)).split())


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a text; its kind decides which fields are used."""

    kind: Literal["heading", "paragraph", "quote", "list", "table", "code", "rule"]
    sentences: tuple[Sentence, ...] = ()
    """Of a heading or a paragraph; of code, its text as the only one."""
    level: int = 0
    """Of a heading, from 1."""
    parts: tuple[tuple["Block", ...], ...] = ()
    """The items of a list; of a quote, its content as the only part."""
    start: int | None = None
    """The first number of an ordered list."""
    rows: tuple[tuple[Sentence, ...], ...] = ()
    """The cells of a table; its header comes first."""
    aligns: tuple[str, ...] = ()
    """`left`, `right`, `center` or empty for each column."""
    info: str = ""
    """The language of code."""

    @property
    def words(self) -> str:
        """The plain text of a heading or a paragraph."""
        return leaf_text(self.sentences)


Blocks = tuple[Block, ...]


# --- parsing ---------------------------------------------------------------------------------------------------------
class _Parser(MarkdownIt):
    """CommonMark with tables, without definitions and raw HTML; reports even links that renderers reject."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "linkify": False})
        self.enable("table").disable(["reference", "html_block", "html_inline", "text_join"])

    def validateLink(self, url: str) -> bool:  # noqa: N802, ARG002 - the parser's own name
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url


PARSER: Final = _Parser()


def parse(markdown: str, *passes: Pass) -> Blocks:
    """Parse Markdown into blocks; for the passes, escaped brackets are plain text."""
    tree = SyntaxTreeNode(PARSER.parse(clean_characters(markdown)))
    return _Builder(passes).blocks(tree.children, quoted=False)


def parse_plain_text(markdown: str) -> str:
    """Return the plain text of some Markdown."""
    return " ".join(leaf_text(leaf) for leaf in leaves(parse(markdown)))


def leaf_text(leaf: Iterable[Sentence]) -> str:
    """Return the plain text of consecutive sentences, with the gaps between them."""
    return " ".join("".join(f"{sentence.gap}{sentence.words}" for sentence in leaf).split())


class _Builder:
    """Converts nodes of the parser into blocks."""

    def __init__(self, passes: Sequence[Pass]) -> None:
        self._passes = passes

    def blocks(self, nodes: Iterable[SyntaxTreeNode], *, quoted: bool) -> Blocks:
        merged: list[Block] = []
        for block in (parsed for node in nodes if (parsed := self._block(node, quoted=quoted))):
            previous = merged[-1] if merged else None
            if previous and previous.kind == block.kind == "list" and (previous.start is None) == (block.start is None):
                # Neighbouring lists of one kind would be parsed as one list.
                merged[-1] = replace(previous, parts=(*previous.parts, *block.parts))
            else:
                merged.append(block)
        return tuple(merged)

    def _block(self, node: SyntaxTreeNode, *, quoted: bool) -> Block | None:
        match node.type:
            case "heading":
                inlines = self._leaf(node, quoted=quoted, one_line=True)
                if not inlines:
                    return None
                return Block("heading", (Sentence(tuple(inlines)),), level=int(node.tag[1:]))
            case "paragraph":
                inlines = self._leaf(node, quoted=quoted)
                if not inlines:
                    return None
                return Block("paragraph", tuple(split_sentences(inlines, quoted=quoted)))
            case "blockquote":
                content = self.blocks(node.children, quoted=True)
                if not content:
                    return None
                return Block("quote", parts=(content,))
            case "bullet_list" | "ordered_list":
                items = tuple(item for child in node.children if (item := self.blocks(child.children, quoted=quoted)))
                start = None
                if node.type == "ordered_list":
                    start = int(node.attrs.get("start", 1))
                if not items:
                    return None
                return Block("list", parts=items, start=start)
            case "table":
                rows = [row for part in node.children for row in part.children]
                cells = tuple(
                    tuple(Sentence(tuple(self._leaf(cell, quoted=quoted, one_line=True))) for cell in row.children)
                    for row in rows
                )
                styles = (str(cell.attrs.get("style", "")) for cell in rows[0].children)
                return Block("table", rows=cells, aligns=tuple(style.removeprefix("text-align:") for style in styles))
            case "fence" | "code_block":
                return self._code(node, quoted=quoted)
            case "hr":
                return Block("rule")
        return None

    def _leaf(self, node: SyntaxTreeNode, *, quoted: bool, one_line: bool = False) -> list[Inline]:
        tokens = [token for child in node.children if child.token for token in child.token.children or []]
        runs = (run.with_text(run.text.replace("\n", " ")) if one_line else run for run in self._runs(tokens))
        inlines = tidy(runs)
        for change in self._passes:
            inlines = tidy(change(inlines, quoted))
        return [_with_plain_brackets(inline) for inline in inlines]

    def _code(self, node: SyntaxTreeNode, *, quoted: bool) -> Block | None:
        lines = clean_characters(node.content).split("\n")
        inlines: list[Inline] = [Run("\n".join(line.rstrip() for line in lines).strip("\n"), code=True)]
        for change in self._passes:
            inlines = change(inlines, quoted)
        info = re.match(r"[\w+-]{0,20}", node.info.strip())
        leaf = Sentence((Run(Sentence(tuple(inlines)).text, code=True),))
        if not leaf.words:
            return None
        return Block("code", (leaf,), info=info[0] if info else "")

    def _runs(self, tokens: Sequence[Token], link: str | None = None) -> list[Run]:
        """Read the runs of inline tokens; an image becomes a link with its alternative text."""
        runs: list[Run] = []
        depth = {"strong": 0, "em": 0}
        for token in tokens:
            name, _, edge = token.type.rpartition("_")
            if name in depth:
                depth[name] += 1 if edge == "open" else -1
            elif name == "link":
                link = str(token.attrs["href"]) if edge == "open" else None
            elif token.type == "image":
                runs += self._runs(token.children or [], str(token.attrs.get("src", "")))
            else:
                text = clean_characters(token.content).replace("\n", " ") or " " * (token.type == "softbreak")
                if token.type == "text_special":
                    text = ESCAPED_BRACKETS.get(text, text)
                text = "\n" if token.type == "hardbreak" else text
                runs.append(Run(text, depth["strong"] > 0, depth["em"] > 0, token.type == "code_inline", link))
        return runs


# --- leaves ----------------------------------------------------------------------------------------------------------
def tidy(inlines: Iterable[Inline]) -> list[Inline]:
    """Return inlines in canonical form.

    Neighbours of one style are merged, white space is collapsed except in code, and blanks at the edge of a styled run
    become a plain run.
    """
    tidied = _merge(part for inline in _merge(inlines) for part in _split_edges(inline))
    for index, strip in ((0, str.lstrip), (-1, str.rstrip)):
        while tidied and isinstance(edge := tidied[index], Run) and (text := strip(edge.text)) != edge.text:
            tidied[index : index + 1 or None] = [edge.with_text(text)] if text else []
    return tidied


def _with_plain_brackets(inline: Inline) -> Inline:
    """Return an inline with the brackets of its text in place of the signs that escape them."""
    if isinstance(inline, Run) and not inline.text.isascii():
        return inline.with_text(inline.text.translate(PLAIN_BRACKETS))
    return inline


def _merge(inlines: Iterable[Inline]) -> list[Inline]:
    """Merge neighbours of one style, and collapse blanks and line breaks."""
    merged: list[Inline] = []
    for style, group in groupby(inlines, key=_style):
        if style is None:
            merged += group
            continue
        bold, italic, code, link = style
        text = "".join([run.text for run in group if isinstance(run, Run)])
        # Who copies a command from a report gets what the page has.
        if code:
            text = text.replace("\n", " ")
        else:
            text = BREAKS.sub("\n", BLANKS.sub(" ", text))
        if text:
            merged.append(Run(text, bold, italic, code, link))
    return merged


def _style(inline: Inline) -> tuple[bool, bool, bool, str | None] | None:
    """Return the style of a run, or None for a citation."""
    if not isinstance(inline, Run):
        return None
    return (inline.bold, inline.italic, inline.code, inline.link)


def _split_edges(inline: Inline) -> Iterator[Inline]:
    if isinstance(inline, CitationMark) or _style(inline) == PLAIN_STYLE:
        yield inline
    elif core := inline.text.strip():
        leading, _, trailing = inline.text.partition(core)
        yield from (Run(leading * (not inline.code)), inline.with_text(core), Run(trailing * (not inline.code)))
    else:
        yield Run(inline.text)


def split_sentences(inlines: Sequence[Inline], *, quoted: bool = False) -> list[Sentence]:
    """Split a leaf into sentences; citations after the end of a sentence belong to it.

    A citation between a full stop and a word that does not begin with a small letter shows the end of a sentence, even
    after an abbreviation. In a block quote, each piece ends with the citations that cover all of its text.
    """
    ends: set[int] = set()
    if not quoted:
        text = Sentence(tuple(_without_stops(inline) for inline in inlines)).text
        ends = {len(text[:end].rstrip()) for _, end in sentence_spans(text)} | set(_cited_ends(inlines))
    parts: list[tuple[str, list[Inline]]] = [("", [])]
    offset = 0
    ended = False
    for inline in inlines:
        if isinstance(inline, CitationMark):
            parts[-1][1].append(inline)
            ended = ended or quoted
            continue
        inner_ends = [end - offset for end in sorted(ends) if offset < end < offset + len(inline.text)]
        cuts = inner_ends if inline == Run(inline.text) else []  # code, links and emphasis are not split
        for start, stop in zip([0, *cuts], [*cuts, len(inline.text)], strict=True):
            piece = inline.text[start:stop]
            if ended and piece.strip(" \n.,;:!?" if quoted else " \n"):
                stripped = piece.lstrip(" \n")
                parts.append((piece[: len(piece) - len(stripped)] or _take_blank(parts[-1][1]), []))
                piece = stripped
                ended = False
            parts[-1][1].append(inline.with_text(piece))
            ended = ended or offset + stop in ends
        offset += len(inline.text)
    return [
        Sentence(tuple(inline for inline in part if isinstance(inline, CitationMark) or inline.text), gap)
        for gap, part in parts
    ]


def _without_stops(inline: Inline) -> Inline:
    """Return an inline in which no full stop within code, as in `toast.`, can end a sentence."""
    if isinstance(inline, Run) and inline.code:
        return inline.with_text(STOPS.sub("x", inline.text))
    return inline


def _cited_ends(inlines: Sequence[Inline]) -> Iterator[int]:
    """Yield the offsets, in the text without citations, of full stops before a citation that end a sentence."""
    before = ""
    for inline, following in pairwise(inlines):
        if isinstance(inline, Run):
            before += inline.text
        elif isinstance(following, Run) and before.rstrip().endswith((".", "!", "?", "…", "。")):
            first = following.text.lstrip()[:1]
            if following.code or (first.isalpha() and not first.islower()):
                yield len(before.rstrip())


def _take_blank(inlines: list[Inline]) -> str:
    """Take the blank off the end of a sentence and return it."""
    last = inlines[-1]
    stripped = last.text.rstrip(" \n") if isinstance(last, Run) else ""
    if isinstance(last, CitationMark) or stripped == last.text:
        return ""
    inlines[-1] = last.with_text(stripped)
    return last.text[len(stripped) :]


# --- walks -----------------------------------------------------------------------------------------------------------
def sentences(blocks: Iterable[Block]) -> Iterator[Sentence]:
    """Yield every sentence, cell, heading and code block in order."""
    return (sentence for leaf in leaves(blocks) for sentence in leaf)


def leaves(blocks: Iterable[Block]) -> Iterator[tuple[Sentence, ...]]:
    """Yield the sentences of every paragraph, cell, heading and code block in order."""
    for block in blocks:
        if block.sentences:
            yield block.sentences
        yield from ((cell,) for row in block.rows for cell in row)
        for part in block.parts:
            yield from leaves(part)


def change_sentences(blocks: Blocks, change: Callable[[Sentence], Sentence]) -> Blocks:
    """Return the tree with changed sentences; ones without inlines are dropped, and emptied blocks, items and rows."""
    changed = []
    for block in blocks:
        remaining = tuple(new for sentence in block.sentences if (new := change(sentence)).inlines)
        cells = [tuple(change(cell) for cell in row) for row in block.rows]
        rows = (*cells[:1], *(row for row in cells[1:] if any(cell.inlines for cell in row)))
        parts = tuple(part for inner in block.parts if (part := change_sentences(inner, change)))
        if remaining or rows or parts or block.kind == "rule":
            changed.append(replace(block, sentences=remaining, rows=rows, parts=parts))
    return tuple(changed)


# --- making blocks, and their characters -----------------------------------------------------------------------------
def paragraph(*inlines: Inline | str) -> Block:
    """Make a paragraph of one sentence; strings are plain runs."""
    runs = (Run(inline) if isinstance(inline, str) else inline for inline in inlines)
    clean = (
        inline.with_text(clean_characters(inline.text).replace("\n", " ")) if isinstance(inline, Run) else inline
        for inline in runs
    )
    return Block("paragraph", (Sentence(tuple(tidy(clean))),))


def heading(level: int, text: str) -> Block:
    """Make a heading."""
    return replace(paragraph(text), kind="heading", level=level)


def one_line(text: str) -> str:
    """Return the cleaned text with white space collapsed to single blanks."""
    return " ".join(clean_characters(text).split())


def clean_characters(text: str) -> str:
    """Normalize line ends, limit combining characters, and remove invisible and private-use characters."""
    if text.isascii() and text.isprintable():
        return text
    for line_end in ("\r\n", "\r", "\u2028", "\u2029"):
        text = text.replace(line_end, "\n")
    return truncate_marks(INVISIBLE.sub("", text))


# --- writing ---------------------------------------------------------------------------------------------------------
SIGN: Final = re.compile(
    r"[\\`*\[\]<~]|&(?=#?\w{1,40};)|(?<![^\W_])_|_(?![^\W_])|[!#&]\Z"
    r"|(?<=[^\W_])\.(?=(?:[a-z]{2}|com|org|net|edu|gov|info|name|shop|app|dev|xn--[\w-]++)(?![\w-]))",
    re.IGNORECASE,
)
"""Signs that Markdown may read as markup, except an underscore within a word, and no others: a reader copies commands
from the text. The dot of a bare host name is escaped, because some renderers link `example.com`."""
LINE_START: Final = re.compile(r"^(?:[0-9]{1,9}(?=[.)](?:\s|$))|(?=[-+=#](?:[-+=#\s]|$))|(?=>|\||:-))")
"""Start of a line that looks like a list, a heading, a rule, a quote or a table; a backslash after it makes the line
plain text."""
PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")


@dataclass(frozen=True)
class WrittenText:
    """Markdown, with the place of each sentence: `text[start:end]`."""

    text: str
    spans: dict[Sentence, tuple[int, int]]


def write(blocks: Sequence[Block]) -> WrittenText:
    """Write a tree as Markdown."""
    writer = _Writer()
    writer.blocks(blocks)
    return WrittenText("".join([*writer.pieces, "\n"]), writer.spans)


def escape(text: str, signs: re.Pattern[str] = SIGN) -> str:
    """Escape a line of plain text so that a parser reads it unchanged, except at the start of a line."""
    return signs.sub(r"\\\g<0>", text)


class _Writer:
    """Writes blocks; each line starts with the prefix of the enclosing quotes and lists."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.spans: dict[Sentence, tuple[int, int]] = {}
        self._length = 0
        self._prefix = ""

    def blocks(self, blocks: Sequence[Block], *, item: bool = False) -> None:
        for index, block in enumerate(blocks):
            if index:
                tight = blocks[index - 1].kind == "paragraph" and block.kind == "list" and block.start in (None, 1)
                self._line(blank=not (item and tight))
            self._block(block)

    def _put(self, text: str) -> None:
        self.pieces.append(text)
        self._length += len(text)

    def _line(self, *, blank: bool = False) -> None:
        self._put(f"\n{self._prefix.rstrip()}" * blank + f"\n{self._prefix}")

    def _block(self, block: Block) -> None:
        match block.kind:
            case "heading":
                self._put("#" * block.level + " ")
                self._leaf(block.sentences, "# {}")
            case "paragraph":
                self._leaf(block.sentences, "{}")
            case "quote":
                self._nested("> ", "> ", block.parts[0])
            case "list":
                for index, item in enumerate(block.parts):
                    if index:
                        self._line()
                    sign = "- " if block.start is None else f"{block.start + index}. "
                    self._nested(sign, " " * len(sign), item, item=True)
            case "table":
                self._table(block)
            case "code":
                self._code(block)
            case "rule":
                self._put("***")

    def _nested(self, first: str, prefix: str, blocks: Sequence[Block], *, item: bool = False) -> None:
        outer = self._prefix
        self._prefix += prefix
        self._put(first)
        self.blocks(blocks, item=item)
        self._prefix = outer

    def _table(self, block: Block) -> None:
        rules = {"right": "---:", "center": ":---:", "left": ":---"}
        for index, row in enumerate(block.rows):
            if index == 1:
                self._line()
            self._put("|" if index < 2 else f"\n{self._prefix}|")
            for cell in row:
                self._put(" ")
                self._leaf((cell,), "| {} |\n| --- |")
                self._put(" |")
            if not index:
                self._line()
                self._put("|" + "".join(f" {rules.get(align, '---')} |" for align in block.aligns))

    def _code(self, block: Block) -> None:
        code = block.sentences[0]
        fence = "`" * max(3, _longest_ticks(code.text) + 1)
        self._put(fence + block.info)
        start = self._length + 1 + len(self._prefix)
        for line in code.text.split("\n"):
            self._put("\n" + (f"{self._prefix}{line}" if line else self._prefix.rstrip()))
        self.spans[code] = (start, self._length)
        self._line()
        self._put(fence)

    def _leaf(self, leaf: Sequence[Sentence], template: str) -> None:
        """Write sentences within `template` so that a parser reads them unchanged, if need be without styles."""
        shown = list(leaf)
        in_table = template.startswith("|")
        written = _write_leaf(shown, SIGN, in_table=in_table)
        markdown = template.format("".join(gap + text for gap, text in written))
        if not _is_plain(leaf) and not _is_read_as(markdown, shown):
            plain = [[Run(each.text) if isinstance(each, Run) else each for each in one.inlines] for one in leaf]
            shown = [replace(one, inlines=tuple(tidy(each))) for one, each in zip(leaf, plain, strict=True)]
            written = _write_leaf(shown, SIGN, in_table=in_table)
            if not _is_read_as(template.format("".join(gap + text for gap, text in written)), shown):
                written = _write_leaf(shown, PUNCTUATION, in_table=in_table)
        for sentence, (gap, text) in zip(leaf, written, strict=True):
            self._put(gap.replace("\n", f"\n{self._prefix}"))
            start = self._length
            self._put(text.replace("\n", f"\n{self._prefix}"))
            self.spans[sentence] = (start, self._length)


# --- leaves as Markdown ----------------------------------------------------------------------------------------------
def _write_leaf(leaf: Sequence[Sentence], signs: re.Pattern[str], *, in_table: bool) -> list[tuple[str, str]]:
    """Return the gap and the Markdown of each sentence of a leaf."""
    written: list[tuple[str, str]] = []
    for index, sentence in enumerate(leaf):
        gap = sentence.gap.replace("\n", "\\\n") if index else ""
        previous = leaf[index - 1].inlines[-1] if index and not gap else None
        begins = not index or gap.endswith("\n")
        pieces: list[str] = []
        for emphasis, group in groupby(_emphases(sentence.inlines), key=itemgetter(0)):
            pieces.append(emphasis)
            for _, inline in group:
                text = _write_inline(inline, previous, signs, in_table=in_table)
                if begins and text.startswith(":") and isinstance(previous, CitationMark):
                    # A citation at the start of a line must never become the label of a definition.
                    mark = _write_inline(previous, None, signs, in_table=in_table)
                    text = f"\\{text}" if "".join(pieces).strip("*") == mark else text
                pieces.append(text)
                previous = inline
            pieces.append(emphasis[::-1])
        lines = enumerate("".join(pieces).split("\n"))
        text = "\n".join(LINE_START.sub(r"\g<0>\\", line) if number or begins else line for number, line in lines)
        written.append((gap, text))
    return written


def _emphases(inlines: Sequence[Inline]) -> Iterator[tuple[str, Inline]]:
    """Yield each part of a sentence with its emphasis; a blank between text and code of one emphasis has it too."""
    own = [_emphasis(inline) for inline in inlines]
    for index, inline in enumerate(inlines):
        emphasis = own[index]
        if isinstance(inline, Run) and inline.text.isspace() and 0 < index < len(inlines) - 1:
            before = inlines[index - 1]
            after = inlines[index + 1]
            if own[index - 1] == own[index + 1] and _style(before) != _style(after):
                emphasis = own[index - 1]
        yield emphasis, inline


def _emphasis(inline: Inline) -> str:
    if not isinstance(inline, Run):
        return ""
    return "**" * inline.bold + "*" * inline.italic


def _write_inline(inline: Inline, previous: Inline | None, signs: re.Pattern[str], *, in_table: bool) -> str:
    if isinstance(inline, CitationMark):
        if inline.sign:
            return f"*({inline.sign})*"
        if inline.link is not None:
            return f"[{escape(inline.label)}]{_write_target(inline.link)}"
        if inline.number:
            return f"[{inline.number}]"
        return "".join(f"[{key}]" for key in inline.evidence_ids)
    if inline.code:
        fence = "`" * (_longest_ticks(inline.text) + 1)
        pad = " " if inline.text[0] == "`" or inline.text[-1] == "`" else ""
        text = f"{fence}{pad}{inline.text}{pad}{fence}"
        # A table row is split at every unescaped bar, even within code.
        text = text.replace("|", "\\|") if in_table else text
    else:
        text = escape(inline.text, signs).replace("\n", "\\\n")
        text = re.sub(r"(?<!\\)\|", r"\\|", text) if in_table else text
        # A citation must never become the text of a link.
        text = f"\\{text}" if isinstance(previous, CitationMark) and text[0] == "(" else text
    if inline.link is None:
        return text
    plain = re.fullmatch(r"https?://(?:[^\s<>\\&]|&(?!#?\w+;))+", inline.link, re.IGNORECASE)
    if plain and inline.link == inline.text:
        return f"<{inline.link}>"
    return f"[{text}]{_write_target(inline.link)}"


def _write_target(url: str) -> str:
    plain = re.sub(r"&(?=#?\w+;)", "&amp;", url)
    # Parentheses nested one level deep are read as part of the target.
    if re.fullmatch(r"(?:[^\s()<>\\]|\([^\s()<>\\]*\))*", plain):
        return f"({plain})"
    return f"(<{plain}>)"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)


def _is_plain(leaf: Sequence[Sentence]) -> bool:
    """Return whether a leaf is one line without styles, which is always read back unchanged once escaped."""
    for sentence in leaf:
        for inline in (Run(sentence.gap), *sentence.inlines):
            if isinstance(inline, Run):
                is_plain = _style(inline) == PLAIN_STYLE and "\n" not in inline.text
            else:
                is_plain = inline.link is None and not inline.sign
            if not is_plain:
                return False
    return True


def _is_read_as(markdown: str, leaf: Sequence[Sentence]) -> bool:
    """Return whether Markdown is parsed as one leaf with these sentences."""
    blocks = parse(markdown)
    parsed, expected = (
        [inline for sentence in part for inline in (Run(sentence.gap), *map(_as_run, sentence.inlines))]
        for part in (sentences(blocks), leaf)
    )
    return len(blocks) == bool(expected) and tidy(parsed) == tidy(expected)


def _as_run(inline: Inline) -> Run:
    if isinstance(inline, Run):
        return inline
    if inline.sign:
        return Run(f"({inline.sign})", italic=True)
    if inline.link:
        return Run(inline.label, link=inline.link)
    return Run(_write_inline(inline, None, SIGN, in_table=False))
