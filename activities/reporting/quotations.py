"""Block quotes: what is quoted of which source, and whether the source has those words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from activities.reporting.citations import CitationMark
from activities.reporting.links import Registry, strip_addresses
from activities.reporting.markdown_layout import ProseBlock, clean_characters, layout, one_line, plain_text

LINE_PREFIX = re.compile(r"\n(?:[ \t]*+>)++[ \t]?")
QUOTE_SIGNS = re.compile(r"(?m)^([ \t]*+)(?:>[ \t]?)++")
QUOTATION_PAIRS = (("“", "”"), ('"', '"'), ("«", "»"), ("„", "“"), ("‘", "’"))
OPENING_QUOTES = tuple(opening for opening, _ in QUOTATION_PAIRS)
BETWEEN_MARKS = " \t,;"
BEFORE_WORDS = " \t\n>"
ENDS = ".,;:!?"
LAYOUT_LINE = re.compile(r"[ \t]*+(?:(?:```|~~~)[\w+-]*+[ \t]*+|[|: \t]*+-[|: \t-]*+|\.{4,}+[ \t]*+)$")
"""A fence, the rule below the header of a table, the border of a listing."""
BULLET = re.compile(r"^[ \t]*+(?:[-+•][ \t]++|\*[ \t]++|#{1,6}[ \t]++)")
LAYOUT_SIGNS = str.maketrans({"\\": "", "`": "", "*": "", "|": " ", "·": " ", "…": ""})


@dataclass(frozen=True)
class Stretch:
    """A part of a text with the marks in it."""

    start: int
    end: int
    marks: Sequence[CitationMark]
    quoted: bool = False


class Page:
    """The stored text of a source as a report may print it: what a quotation is compared with."""

    def __init__(self, text: str, registry: Registry) -> None:
        self._text = text
        self._registry = registry

    @cached_property
    def _words(self) -> str:
        return print_words(self._text, self._registry)

    @cached_property
    def _bare(self) -> str:
        return bare_words(strip_addresses(clean_characters(self._text), self._registry, []))

    def has(self, piece: str) -> bool:
        """Whether a piece of Markdown stands word for word in this text; white space counts as blanks."""
        if any(form and form in self._words for form in forms(piece)):
            return True
        bare = bare_words(QUOTE_SIGNS.sub("", piece))
        return bool(bare) and bare in self._bare


def bare_words(text: str) -> str:
    """The words and signs of a text without what only lays it out: fences, borders of cells, bullets, backslashes."""
    lines = (BULLET.sub("", line) for line in text.split("\n") if not LAYOUT_LINE.match(line))
    return " ".join(" ".join(lines).translate(LAYOUT_SIGNS).split())


def print_words(quote: str, registry: Registry) -> str:
    """The words of a source as a report may print them: without invisible characters and foreign addresses."""
    return one_line(strip_addresses(clean_characters(quote), registry, []))


def blank_marks(text: str, start: int, end: int, marks: Iterable[CitationMark]) -> str:
    """A piece of the text with its marks as blanks, so that sentence ends are found where people see them."""
    pieces, last = [], start
    for mark in marks:
        pieces += [text[last : mark.start], " " * (mark.end - mark.start)]
        last = mark.end
    return "".join(pieces) + text[last:end]


def quoted_stretches(text: str, block: ProseBlock, marks: Sequence[CitationMark]) -> Iterator[Stretch]:
    """The passages of one block quote: each ends with its marks, which are given in order."""
    start, own = block.start, []
    for place, mark in enumerate(marks):
        own.append(mark)
        following = marks[place + 1] if place + 1 < len(marks) else None
        if following and not text[mark.end : following.start].strip(BETWEEN_MARKS):
            continue
        first = start + len(text[start : mark.end]) - len(text[start : mark.end].lstrip(BEFORE_WORDS))
        yield Stretch(first, mark.end, own, quoted=True)
        start, own = mark.end, []


def quotations(text: str, marks: Sequence[CitationMark]) -> Iterator[tuple[ProseBlock, list[Stretch]]]:
    """Every block quote that cites something, with its passages; words behind the last mark belong to that mark."""
    blocks = [block for block in layout(text).blocks if block.quoted]
    place = 0
    for block in blocks:
        while place < len(marks) and marks[place].start < block.start:
            place += 1
        own = []
        while place < len(marks) and marks[place].end <= block.end:
            own.append(marks[place])
            place += 1
        if not own:
            continue
        found = list(quoted_stretches(text, block, own))
        if text[own[-1].end : block.end].strip(BEFORE_WORDS + ENDS):
            found.append(Stretch(own[-1].end, block.end, [own[-1]], quoted=True))
        yield block, found


def words_of(text: str, stretch: Stretch) -> str:
    """The words of a quoted passage, without its marks and without what ended the passage before it."""
    inside = [mark for mark in stretch.marks if mark.start >= stretch.start]
    return blank_marks(text, stretch.start, stretch.end, inside).strip().lstrip(ENDS)


def unquoted_where_other(text: str, marker: re.Pattern[str], pages: Mapping[str, Page]) -> tuple[str, int]:
    """The text with every block quote made plain whose words do not stand in the sources of its markers.

    `marker` finds evidence ids, by which `pages` has the texts; where a text is not at hand nothing is decided.
    """
    marks = [CitationMark(match.start(), match.end(), 0, (match[1],)) for match in marker.finditer(layout(text).masked)
             if match[1]]  # fmt: skip
    pieces, last, count = [], 0, 0
    for block, found in quotations(text, marks):
        other = (
            key in pages and not pages[key].has(words_of(text, stretch))
            for stretch in found
            for mark in stretch.marks
            for key in mark.evidence_ids
        )
        if any(other):
            start = text.rfind("\n", 0, block.start) + 1
            pieces += [text[last:start], QUOTE_SIGNS.sub(r"\1", text[start : block.end])]
            last = block.end
            count += 1
    return "".join(pieces) + text[last:], count


def forms(piece: str) -> set[str]:
    """What a piece of Markdown says: as written, and as a reader sees it, each with and without quotation marks."""
    lines = LINE_PREFIX.sub("\n", piece).strip()
    written = {" ".join(lines.split()), plain_text(lines)}
    return written | {without_quotation_marks(form) for form in written}


def without_quotation_marks(words: str) -> str:
    """The words without the pair of quotation marks around them."""
    for opening, closing in QUOTATION_PAIRS:
        if len(words) > 1 and words.startswith(opening) and words.endswith(closing):
            return words[1:-1].strip()
    return words
