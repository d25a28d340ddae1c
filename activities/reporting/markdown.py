"""A tree as Markdown: every text is escaped, and the place of every sentence is known.

What is written is read again, leaf by leaf: emphasis that a parser would see otherwise is given up, so `parse` of the
result is the tree that was written.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from activities.reporting.tree import (
    BREAK,
    Block,
    CitationPlace,
    Inline,
    Run,
    Sentence,
    parse,
    tidy,
)
from activities.reporting.tree import sentences as all_sentences

SIGN: Final = re.compile(
    r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])"
    r"|(?<=[^\W_])\.(?=(?:[a-z]{2}|com|org|net|edu|gov|info|name|shop|app|dev|xn--[\w-]++)(?![\w-]))",
    re.IGNORECASE,
)
"""What Markdown may read as markup anywhere; an underscore within a word is none. The dot of a host without a scheme
is escaped, too, because some renderers make a link of `example.com`."""
LINE_START: Final = re.compile(r"([-+=#])(?=[-+=#\s]|$)|[0-9]{1,9}([.)])(?=\s|$)")
"""What it may read as a list, a heading or a rule at the beginning of a line."""
PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")


@dataclass(frozen=True)
class Written:
    """Markdown, and where its sentences are: `text[start:end]`."""

    text: str
    places: dict[Sentence, tuple[int, int]]


def write(blocks: Sequence[Block]) -> Written:
    """Write a tree."""
    writer = _Writer()
    writer.blocks(blocks, tight=False)
    return Written("".join([*writer.pieces, "\n"]), writer.places)


def escape(text: str) -> str:
    """Escape one line of words: a parser reads them as they are anywhere but at the beginning of a line."""
    return SIGN.sub(r"\\\g<0>", text)


def write_target(url: str) -> str:
    """Write an address as the target of a link."""
    plain = re.sub(r"&(?=#?\w+;)", "&amp;", url)
    # Brackets of one depth within are read as a part of the target.
    return f"({plain})" if re.fullmatch(r"(?:[^\s()<>\\]|\([^\s()<>\\]*\))*", plain) else f"(<{plain}>)"


class _Writer:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.places: dict[Sentence, tuple[int, int]] = {}
        self._length = 0
        self._prefix = ""
        """What each line begins with, for the quotes and lists around it."""

    def blocks(self, blocks: Sequence[Block], *, tight: bool) -> None:
        for place, block in enumerate(blocks):
            if place:
                self._line(blank=not tight)
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
                self._nested("> ", "> ", block.parts[0], tight=False)
            case "list":
                self._list(block)
            case "table":
                self._table(block)
            case "code":
                self._code(block)
            case "rule":
                self._put("***")

    def _nested(self, first: str, prefix: str, blocks: Sequence[Block], *, tight: bool) -> None:
        outside, self._prefix = self._prefix, self._prefix + prefix
        self._put(first)
        self.blocks(blocks, tight=tight)
        self._prefix = outside

    def _list(self, block: Block) -> None:
        tight = is_tight(block)
        for place, item in enumerate(block.parts):
            if place:
                self._line(blank=not tight)
            sign = "- " if block.start is None else f"{block.start + place}. "
            self._nested(sign, " " * len(sign), item, tight=tight)

    def _table(self, block: Block) -> None:
        for place, row in enumerate(block.rows):
            if place:
                self._line()
            self._put("|")
            for cell in row:
                self._put(" ")
                self._leaf((cell,), "| {} |\n| --- |")
                self._put(" |")
            if not place:
                self._line()
                rules = {"right": "---:", "center": ":---:", "left": ":---"}
                self._put("|" + "".join(f" {rules.get(align, '---')} |" for align in block.aligns))

    def _code(self, block: Block) -> None:
        fence = "`" * max(3, _longest_ticks(block.code) + 1)
        self._put(fence + block.info)
        start = self._length + 1 + len(self._prefix)
        for line in [*block.code.split("\n"), fence]:
            self._put("\n" + (f"{self._prefix}{line}" if line else self._prefix.rstrip()))
        self.places[block.sentences[0]] = (start, self._length - len(fence) - len(self._prefix) - 1)

    def _leaf(self, leaf: Sequence[Sentence], template: str) -> None:
        """Write sentences so that a parser reads them as they are; `template` is the Markdown around such a leaf."""
        in_table = template.startswith("|")
        leaf = [replace(leaf[0], gap=""), *leaf[1:]] if leaf[0].gap else leaf
        for written in (leaf, [_without_emphasis(each) for each in leaf]):
            before = [None, *(None if each.gap else last.inlines[-1] for last, each in pairwise(written))]
            texts = [each.gap + _write_inlines(each.inlines, last, in_table=in_table)
                     for each, last in zip(written, before, strict=True)]  # fmt: skip
            texts = _escape_line_start(texts)
            if _is_read_as(template.format("".join(texts)), written):
                break
        else:
            texts = [each.gap + _as_words(each) for each in leaf]
        for sentence, text in zip(leaf, texts, strict=True):
            self._put(sentence.gap)
            start = self._length
            self._put(text[len(sentence.gap) :].replace("\n", f"\n{self._prefix}"))
            self.places[sentence] = (start, self._length)


def is_tight(block: Block) -> bool:
    """Return whether a list has items of one paragraph each, with at most a list below it."""
    return all(
        item[0].kind == "paragraph"
        and (len(item) == 1 or (len(item) == 2 and item[1].kind == "list" and item[1].start in (None, 1)))
        and (len(item) == 1 or is_tight(item[1]))
        for item in block.parts
    )


def _write_inlines(inlines: Sequence[Inline], before: Inline | None, *, in_table: bool = False) -> str:
    pieces: list[str] = []
    emphasis = ""
    for place, inline in enumerate(inlines):
        before = inlines[place - 1] if place else before
        after = inlines[place + 1] if place + 1 < len(inlines) else None
        sign = "" if isinstance(inline, CitationPlace) else "**" * inline.bold + "*" * inline.italic
        if sign != emphasis:
            pieces += [emphasis[::-1], sign]
            emphasis = sign
        pieces.append(
            _write_mark(inline) if isinstance(inline, CitationPlace) else _write_run(inline, before, after, in_table)
        )
    return "".join([*pieces, emphasis])


def _write_run(run: Run, before: Inline | None, after: Inline | None, in_table: bool) -> str:
    if run.text == BREAK:
        return "\\\n"
    if run.code:
        fence = "`" * (_longest_ticks(run.text) + 1)
        pad = " " if run.text[0] == "`" or run.text[-1] == "`" else ""
        text = f"{fence}{pad}{run.text}{pad}{fence}"
        # A table is split at every sign that no backslash escapes, also within code.
        text = text.replace("|", "\\|") if in_table else text
    else:
        text = escape(run.text)
        if isinstance(before, CitationPlace) and text[0] in "(:":
            # A citation must never be the words of a link or the label of a definition.
            text = "\\" + text
        if text[-1] == "!" and after is not None:
            text = text[:-1] + "\\!"
    if run.link is None:
        return text
    return f"<{run.link}>" if run.link == run.text and _is_autolink(run.link) else f"[{text}]{write_target(run.link)}"


def _write_mark(mark: CitationPlace) -> str:
    if mark.link is not None:
        return f"[{escape(mark.label)}]{write_target(mark.link)}"
    if mark.number:
        return f"[{mark.number}]"
    return "".join(f"[{identity}]" for identity in mark.evidence_ids)


def _is_autolink(url: str) -> bool:
    return re.fullmatch(r"https?://(?:[^\s<>\\&]|&(?!#?\w+;))+", url, re.IGNORECASE) is not None


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)


def _escape_line_start(texts: list[str]) -> list[str]:
    """Escape what would begin a list, a heading or a rule at the start of the leaf or behind a line break."""

    def escaped(line: str) -> str:
        found = LINE_START.match(line)
        if found is None:
            return line
        place = found.start(1) if found[1] else found.start(2)
        return f"{line[:place]}\\{line[place:]}"

    lines = ["\n".join([text.split("\n")[0], *map(escaped, text.split("\n")[1:])]) for text in texts]
    return [escaped(lines[0]), *lines[1:]] if lines else lines


def _is_read_as(markdown: str, leaf: Sequence[Sentence]) -> bool:
    """Return whether a parser reads some Markdown as one leaf with these sentences."""
    blocks = parse(markdown, escapes=False)
    found = [inline for each in all_sentences(blocks) for inline in (Run(each.gap), *each.inlines)]
    wanted = [_shown(inline) for each in leaf for inline in (Run(each.gap), *each.inlines)]
    return len(blocks) == bool(wanted) and tidy(found) == tidy(wanted)


def _shown(inline: Inline) -> Run:
    if isinstance(inline, Run):
        return inline
    return Run(inline.label, link=inline.link) if inline.link is not None else Run(_write_mark(inline))


def _without_emphasis(sentence: Sentence) -> Sentence:
    plain = (replace(each, bold=False, italic=False) if isinstance(each, Run) else each for each in sentence.inlines)
    return replace(sentence, inlines=tuple(tidy(plain)))


def _as_words(sentence: Sentence) -> str:
    """Write a sentence with every sign escaped: its words and its citations."""
    pieces: Iterable[str] = (
        _write_mark(each) if isinstance(each, CitationPlace) else PUNCTUATION.sub(r"\\\g<0>", each.text)
        for each in sentence.inlines
    )
    return "".join(pieces).replace("\n", " ")
