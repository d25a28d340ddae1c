"""A tree as Markdown: every text is escaped, and the place of every sentence is known.

What is written is read again, leaf by leaf: a look that a parser would see else is given up, so that `parse` of
the result is the tree that was written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from activities.reporting.tree import Block, CitationPlace, Inline, Run, Sentence, parse, sentences, tidy

SIGN: Final = re.compile(
    r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])|[!#]\Z"
    r"|(?<=[^\W_])\.(?=(?:[a-z]{2}|com|org|net|edu|gov|info|name|shop|app|dev|xn--[\w-]++)(?![\w-]))",
    re.IGNORECASE,
)
"""Signs that Markdown may read as markup; an underscore within a word is none. The dot of a host without a scheme is
escaped, too, because some renderers make a link of `example.com`."""
LINE_START: Final = re.compile(r"^(?:[0-9]{1,9}(?=[.)](?:\s|$))|(?=[-+=#](?:[-+=#\s]|$)))")
"""Begins a line like a list, a heading or a rule: behind it a backslash makes words of the line."""
PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")


@dataclass(frozen=True)
class Written:
    """Markdown, and where its sentences are: `text[start:end]`."""

    text: str
    places: dict[Sentence, tuple[int, int]]


def write(blocks: Sequence[Block]) -> Written:
    """Write a tree."""
    writer = _Writer()
    writer.blocks(blocks)
    return Written("".join([*writer.pieces, "\n"]), writer.places)


def escape(text: str, signs: re.Pattern[str] = SIGN) -> str:
    """Escape one line of words: a parser reads them unchanged anywhere but at the beginning of a line."""
    return signs.sub(r"\\\g<0>", text)


class _Writer:
    """Writes blocks; each line starts with the prefix of the quotes and lists around it."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.places: dict[Sentence, tuple[int, int]] = {}
        self._length = 0
        self._prefix = ""

    def blocks(self, blocks: Sequence[Block], *, item: bool = False) -> None:
        for place, block in enumerate(blocks):
            if place:
                below = blocks[place - 1].kind == "paragraph" and block.kind == "list" and block.start in (None, 1)
                self._line(blank=not (item and below))
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
                for place, item in enumerate(block.parts):
                    if place:
                        self._line()
                    sign = "- " if block.start is None else f"{block.start + place}. "
                    self._nested(sign, " " * len(sign), item, item=True)
            case "table":
                self._table(block)
            case "code":
                self._code(block)
            case "rule":
                self._put("***")

    def _nested(self, first: str, prefix: str, blocks: Sequence[Block], *, item: bool = False) -> None:
        outside, self._prefix = self._prefix, self._prefix + prefix
        self._put(first)
        self.blocks(blocks, item=item)
        self._prefix = outside

    def _table(self, block: Block) -> None:
        rules = {"right": "---:", "center": ":---:", "left": ":---"}
        for place, row in enumerate(block.rows):
            if place == 1:
                self._line()
            self._put("|" if place < 2 else f"\n{self._prefix}|")
            for cell in row:
                self._put(" ")
                self._leaf((cell,), "| {} |\n| --- |")
                self._put(" |")
            if not place:
                self._line()
                self._put("|" + "".join(f" {rules.get(align, '---')} |" for align in block.aligns))

    def _code(self, block: Block) -> None:
        code = block.sentences[0]
        fence = "`" * max(3, _longest_ticks(code.text) + 1)
        self._put(fence + block.info)
        start = self._length + 1 + len(self._prefix)
        for line in code.text.split("\n"):
            self._put("\n" + (f"{self._prefix}{line}" if line else self._prefix.rstrip()))
        self.places[code] = (start, self._length)
        self._line()
        self._put(fence)

    def _leaf(self, leaf: Sequence[Sentence], template: str) -> None:
        """Write sentences so that a parser reads them unchanged; `template` is the Markdown around such a leaf."""
        shown, in_table = list(leaf), template.startswith("|")
        written = _write_leaf(shown, SIGN, in_table=in_table)
        if not _is_read_as(template.format("".join(gap + text for gap, text in written)), shown):
            plain = [[Run(each.text) if isinstance(each, Run) else each for each in one.inlines] for one in leaf]
            shown = [replace(one, inlines=tuple(tidy(each))) for one, each in zip(leaf, plain, strict=True)]
            written = _write_leaf(shown, PUNCTUATION, in_table=in_table)
        for sentence, (gap, text) in zip(leaf, written, strict=True):
            self._put(gap.replace("\n", f"\n{self._prefix}"))
            start = self._length
            self._put(text.replace("\n", f"\n{self._prefix}"))
            self.places[sentence] = (start, self._length)


# --- leaves ----------------------------------------------------------------------------------------------------------
def _write_leaf(leaf: Sequence[Sentence], signs: re.Pattern[str], *, in_table: bool) -> list[tuple[str, str]]:
    """Write the gap and the text of each sentence of a leaf."""
    written: list[tuple[str, str]] = []
    for place, sentence in enumerate(leaf):
        gap = sentence.gap.replace("\n", "\\\n") if place else ""
        before = leaf[place - 1].inlines[-1] if place and not gap else None
        pieces: list[str] = []
        for emphasis, group in groupby(sentence.inlines, key=_emphasis):
            pieces.append(emphasis)
            for inline in group:
                pieces.append(_write_inline(inline, before, signs, in_table=in_table))
                before = inline
            pieces.append(emphasis[::-1])
        begins = not place or gap.endswith("\n")
        lines = enumerate("".join(pieces).split("\n"))
        text = "\n".join(LINE_START.sub(r"\g<0>\\", line) if number or begins else line for number, line in lines)
        written.append((gap, text))
    return written


def _emphasis(inline: Inline) -> str:
    return "**" * inline.bold + "*" * inline.italic if isinstance(inline, Run) else ""


def _write_inline(inline: Inline, before: Inline | None, signs: re.Pattern[str], *, in_table: bool) -> str:
    if isinstance(inline, CitationPlace):
        if inline.sign:
            return f"*({inline.sign})*"
        if inline.link is not None:
            return f"[{escape(inline.label)}]{_write_target(inline.link)}"
        return f"[{inline.number}]" if inline.number else "".join(f"[{key}]" for key in inline.evidence_ids)
    if inline.code:
        fence = "`" * (_longest_ticks(inline.text) + 1)
        pad = " " if inline.text[0] == "`" or inline.text[-1] == "`" else ""
        text = f"{fence}{pad}{inline.text}{pad}{fence}"
        # A table is split at every sign that no backslash escapes, also within code.
        text = text.replace("|", "\\|") if in_table else text
    else:
        text = escape(inline.text, signs).replace("\n", "\\\n")
        # A citation must never be the words of a link or the label of a definition.
        text = f"\\{text}" if isinstance(before, CitationPlace) and text[0] in "(:" else text
    if inline.link is None:
        return text
    plain = re.fullmatch(r"https?://(?:[^\s<>\\&]|&(?!#?\w+;))+", inline.link, re.IGNORECASE)
    return f"<{inline.link}>" if plain and inline.link == inline.text else f"[{text}]{_write_target(inline.link)}"


def _write_target(url: str) -> str:
    plain = re.sub(r"&(?=#?\w+;)", "&amp;", url)
    # Brackets of one depth within are read as a part of the target.
    return f"({plain})" if re.fullmatch(r"(?:[^\s()<>\\]|\([^\s()<>\\]*\))*", plain) else f"(<{plain}>)"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)


def _is_read_as(markdown: str, leaf: Sequence[Sentence]) -> bool:
    """Return whether a parser reads some Markdown as one leaf with these sentences."""
    blocks = parse(markdown)
    found, expected = (
        [inline for each in part for inline in (Run(each.gap), *map(_without_mark, each.inlines))]
        for part in (sentences(blocks), leaf)
    )
    return len(blocks) == bool(expected) and tidy(found) == tidy(expected)


def _without_mark(inline: Inline) -> Run:
    if isinstance(inline, Run):
        return inline
    if inline.sign:
        return Run(f"({inline.sign})", italic=True)
    return (
        Run(inline.label, link=inline.link) if inline.link else Run(_write_inline(inline, None, SIGN, in_table=False))
    )
