"""Passages with the text around them that says what they speak of, as checkers and correctors are shown them.

A passage is cut out of a page: "this", a condition or a row of a table has its meaning from what stands before it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import Final

from contracts.checking import ShownPassage
from contracts.evidence import Evidence
from contracts.report import ReportEvidence
from providers.tokens.surroundings import surroundings, text_around

TERM: Final = re.compile(
    r"`[^`\n]{1,120}`(?:[ \t/,|\[\]{}=.*]{0,9}(?:or[ \t])?`[^`\n]{1,120}`)*[ \t\]}]{0,9}(?:\([^()\n]{1,60}\))?"
)
"""A line that a definition may follow: names in code, perhaps with a type: "`work_mem` (`integer`)"."""
MAX_NAME: Final = 60  # characters of a term that is no code
MAX_TERM: Final = 200  # characters of a term, with other names of the same
FENCES: Final = ("```", "~~~")
AFTER_TERM_CHARACTERS: Final = 4_000
"""Between a term and a later paragraph that may still speak of it."""
LISTING_CHARACTERS: Final = 2_000  # shown of a listing above one of its lines
ROW_CHARACTERS: Final = 400  # shown of a row of a table behind a passage in it


def listing_above(text: str, start: int) -> int | None:
    """Return where the listing begins in which a place lies, or the last lines of a long one; None outside of any."""
    listings = _listings(text)
    index = bisect_right(listings, (start, len(text))) - 1
    if index < 0 or start >= listings[index][1]:
        return None
    if start - listings[index][0] <= LISTING_CHARACTERS:
        return listings[index][0]
    return text.find("\n", start - LISTING_CHARACTERS, start) + 1 or start


@lru_cache(maxsize=32)
def _listings(text: str) -> list[tuple[int, int]]:
    """Return the places of the listings of a text, in order."""
    return [(start, start + len("\n".join(lines))) for start, lines, is_code in _paragraphs(text) if is_code]


def term_above(text: str, start: int) -> str:
    """Return the term whose definition a place belongs to, such as "`work_mem` (`integer`)"; empty if there is none.

    A stored text does not mark the end of a definition. Certain are the paragraph below the term, what that announces
    with a colon, and what lies between two terms of one list. What follows the last term of a list has the heading of
    its section alone. A place that begins with a term names it itself.
    """
    places, terms = _terms(text)
    index = bisect_right(places, start) - 1
    return terms[index] if index >= 0 else ""


def term_place(text: str, start: int) -> int | None:
    """Return where the term begins that `term_above`, or else `term_before`, names for a place; None without any."""
    places, _ = _terms(text)
    index = bisect_right(places, start) - 1
    if term_above(text, start):
        return places[index - 1]
    if term_before(text, start):
        return places[index - 2]
    return None


def table_start(text: str, start: int) -> int | None:
    """Return where the table begins in which a place lies, with the line that names it; None outside of any."""
    first = text.rfind("\n", 0, start) + 1
    if not text.startswith("|", first):
        return None
    while (above := text.rfind("\n", 0, max(0, first - 1)) + 1) < first and text.startswith("|", above):
        first = above
    before = text[:first].rstrip()
    named = before.rfind("\n") + 1
    name = before[named:]
    is_near = text.count("\n", len(before), first) <= 2  # at most one empty line between them
    if name and is_near and len(name) <= MAX_TERM and not name.startswith(("#", "|", *FENCES)):
        return named
    return first


def table_head(text: str, start: int) -> str:
    """Return the name of the table in which a place lies, and the heads of its columns; empty outside of a body."""
    first = table_start(text, start)
    if first is None:
        return ""
    lines = [line for line in text[first:start].splitlines() if line.strip()]
    named = lines[: next((number for number, line in enumerate(lines) if line.startswith("|")), len(lines))]
    rows = lines[len(named) :]
    is_body = len(rows) > 1 and not rows[1].strip("|-: ")
    return " ".join([*named, rows[0]]) if is_body else " ".join(named)


def term_before(text: str, start: int) -> str:
    """Return the last term of the list after which a place stands, if its definition may reach as far; else empty.

    What follows the first paragraph of a list's last term may speak of that term ("this feature") or of the whole
    section, which only a reader can tell: here the place is not below another heading, and not far from the term.
    """
    places, terms = _terms(text)
    index = bisect_right(places, start) - 1
    if index < 1 or terms[index] or not terms[index - 1]:
        return ""
    begins_term = index + 1 < len(terms) and bool(terms[index + 1]) and "\n\n" not in text[start : places[index + 1]]
    above = text[places[index - 1] : start]
    if begins_term or len(above) > AFTER_TERM_CHARACTERS or "\n#" in above:
        return ""
    return terms[index - 1]


@lru_cache(maxsize=32)  # for the many passages of a page
def _terms(text: str) -> tuple[list[int], list[str]]:
    """Return the places of a text from which another term counts, and these terms; an empty one is none."""
    reader = _TermReader()
    for start, lines, is_code in _paragraphs(text):
        reader.read(start, lines, is_code=is_code)
    reader.end()
    return [place for place, _ in reader.changes], [term for _, term in reader.changes]


def _paragraphs(text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Yield the blocks between empty lines with their places, and whether each is a listing, which is one block."""
    start = place = 0
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if fence:
            lines.append(line)
            if mark == fence:
                fence = ""
                yield start, lines, True
                lines = []
        elif mark in FENCES or not line.strip() or line.startswith("#"):
            if lines:
                yield start, lines, False
            lines = []
            if mark in FENCES:
                fence = mark
                start = place
                lines = [line]
            elif line.strip():
                yield place, [line], False
        else:
            start = start if lines else place
            lines.append(line)
        place += len(line) + 1
    if lines:
        yield start, lines, bool(fence)


@dataclass
class _TermReader:
    """Finds the terms of definition lists and what belongs to each, block by block."""

    changes: list[tuple[int, str]] = field(default_factory=list)
    term: str = ""
    is_nested: bool = False
    """True in a list within the definition of another one; its end cannot be seen, so that its terms claim less."""
    announces: bool = False
    """True if the block before ends with a colon."""
    open_place: int | None = None
    """The first block since the term that is its own only if another term follows."""

    def read(self, start: int, lines: list[str], *, is_code: bool) -> None:
        """Take the next block; a listing has no term and no heading."""
        terms = [] if is_code else _terms_of(lines)
        if not is_code and lines[0].startswith("#"):
            self.end()
            self.changes.append((start, ""))
            self.term = ""
            self.is_nested = False
        elif terms:
            # A later block that announces a list may come after the end of the one before.
            is_between = self.open_place is not None and not self.is_nested and not self.announces
            self.is_nested = self.open_place is None if self.is_nested else bool(self.term) and self.announces
            if not is_between:
                self.end()
            self.term = ", ".join(terms)
            self.open_place = None
            self.changes.append((start, ""))
            self.changes.append((start + sum(len(line) + 1 for line in lines[: len(terms)]), self.term))
        elif len(lines) == 2 and not is_code and _is_name(lines[0]):  # a definition whose term is no code
            self.end()
            self.changes.append((start, ""))
            self.term = ""
        elif self.term and self.open_place is None and not self.announces:
            self.open_place = start
        self.announces = lines[-1].rstrip().endswith(":")

    def end(self) -> None:
        """End the definitions of a list: what follows the paragraph of the last term is under no term."""
        if self.open_place is not None:
            self.changes.append((self.open_place, ""))
        self.open_place = None


def _is_name(line: str) -> bool:
    """Return true for a short line that is no sentence, list item or row."""
    return len(line) <= MAX_NAME and line[0].isalpha() and line.rstrip()[-1].isalnum()


def _terms_of(lines: list[str]) -> list[str]:
    """Return the lines of terms at the beginning of a block, if a definition follows them there."""
    terms = list(takewhile(lambda line: len(line) <= MAX_TERM and TERM.fullmatch(line), lines[:-1]))
    return [line.rstrip() for line in terms]


def _rest_of_line(text: str, start: int) -> str:
    """Return the text from a place to the end of its line; of a long rest the first words."""
    end = text.find("\n", start)
    rest = text[start : end if end >= 0 else len(text)]
    if len(rest) <= ROW_CHARACTERS:
        return rest
    return rest[:ROW_CHARACTERS].rsplit(" ", 1)[0]


def show_passage(item: Evidence | ReportEvidence, title: str, text: str) -> ShownPassage:
    """Return a passage with the heading above it and the text around it in its source, as shown to checkers.

    A line of a listing comes with those above it, which say what the listing shows, and the sentence before the
    listing; a row of a table with the name of the table and the heads of its columns; any other passage with what
    `surroundings` returns.
    """
    if (listing := listing_above(text, item.start)) is not None:
        before, after = surroundings(text, item.start, item.end)
        if listing < item.start:
            is_whole = text.startswith(FENCES, listing)
            before = (surroundings(text, listing, listing)[0] if is_whole else "") + text[listing : item.start]
    elif head := table_head(text, item.start):
        before = text_around(text, item.start, item.end)[0]
        after = _rest_of_line(text, item.end)
        row = text.rfind("\n", 0, item.start) + 1
        before = f"{head}\n{text[row : item.start]}" if head not in before else before
    else:
        before, after = surroundings(text, item.start, item.end)
    quote = text[item.start : item.end]
    term = term_above(text, item.start)
    if not term and (last := term_before(text, item.start)):
        term = f"after the term {last}"
    title = " § ".join(dict.fromkeys(part for part in (title, item.heading, term) if part))
    return ShownPassage(evidence_id=item.id, title=title, before=before, quote=quote, after=after)
