"""What a prompt shows of a source, and what it does not, as a model may ask for it. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from contracts.lenient import to_line
from contracts.roles import SourceExtract
from contracts.texts import plural
from contracts.tokens import RATIOS, Level
from providers.tokens.allotment import estimated_tokens
from providers.tokens.sections import HEADING_OR_FENCE, Section, sections_of

MAX_OUTLINE_LINES: Final = 40  # hidden sections named for each source: the best ones, in their order
SHORT_TITLE_CHARACTERS: Final = 20
BEGINNING_CHARACTERS: Final = 60  # of a section with such a title, in an outline
LINE_TOKENS: Final = 2.5  # of the sign that begins each line of a prompt


def token_size(text: str) -> float:
    """Estimate the tokens of a text in a prompt, with the signs of its lines."""
    return estimated_tokens(text) + LINE_TOKENS * (text.count("\n") + 1)


@dataclass(frozen=True, slots=True)
class HiddenSection:
    """A section that a prompt does not show, or only in part, under the number by which a model may ask for it."""

    number: int
    section: Section
    in_part: bool = False
    rank: int = 0
    """0 for the one that fits the questions best."""
    beginning: str = ""
    """Its first words below the heading, where that is too short to tell what stands there: `Parameters`."""

    def describe(self) -> str:
        """Return its line in the outline: number, heading, first words, characters, and whether a part is shown."""
        size = f"{self.section.end - self.section.start:,} characters"
        name = f"{self.section.title}: {self.beginning}" if self.beginning else self.section.title
        return f"{self.number}. {name} ({size}{', a part of it is shown' if self.in_part else ''})"


def beginning_of(text: str, section: Section) -> str:
    """Return the first words of a section below its heading, if that is short and one of its own."""
    heading = HEADING_OR_FENCE.match(text, section.start)
    if len(section.title) > SHORT_TITLE_CHARACTERS or heading is None or not heading["level"]:
        return ""
    return to_line(
        text[heading.end() : min(section.end, heading.end() + 4 * BEGINNING_CHARACTERS)], BEGINNING_CHARACTERS
    )


@dataclass(frozen=True, slots=True)
class ShownSource:
    """The parts of a source's text that a prompt shows, in order, and the sections that it does not show."""

    source: SourceExtract
    text: str
    spans: tuple[tuple[int, int], ...]
    hidden: tuple[HiddenSection, ...]
    """In their order."""
    narrow: Callable[[float], "ShownSource"] = field(compare=False, repr=False)
    """Returns the best of the shown parts, with at most so many estimated tokens."""
    least_tokens: float = 0.0
    """It is never narrowed further, unless it is dropped."""

    @property
    def characters(self) -> int:
        """Return the number of characters shown."""
        return sum(end - start for start, end in self.spans)

    def at(self, level: Level) -> "ShownSource":
        """Return what is shown of the source at a level of its item; nothing if it is dropped."""
        if level is Level.FULL:
            return self
        if level is Level.DROPPED:
            return self.narrow(0.0)
        size = token_size(self.excerpt())
        return self.narrow(max(RATIOS[level] * size, min(size, self.least_tokens)))

    def outline(self, share: float = 1.0) -> list[str]:
        """Return the lines of the hidden sections that fit the questions best, in their order, and one that says how
        many more there are; fewer lines for a prompt with a share of the room.
        """
        listed = sorted(self.hidden, key=lambda part: part.rank)[: math.ceil(share * MAX_OUTLINE_LINES)]
        lines = [part.describe() for part in sorted(listed, key=lambda part: part.number)]
        if len(listed) < len(self.hidden):
            more = len(self.hidden) - len(listed)
            lines.append(f"and {plural(more, 'more section')} that have less of the questions' words")
        return lines

    def excerpt(self) -> str:
        """Return the shown parts; a line with the headings above marks each omission."""
        parts: list[str] = []
        last = 0
        for start, end in self.spans:
            if self.text[last:start].strip():
                parts.append(f"\n{self._omission(start)}\n" if parts or start else "")
            parts.append(self.text[start:end] if parts and parts[-1] else self.text[start:end].lstrip("\n"))
            last = end
        if self.text[last:].strip() and parts:
            parts.append("\n[…]")
        return "".join(parts).strip("\n")

    def _omission(self, start: int) -> str:
        """Return the line in place of what is omitted before an offset, with the headings above it."""
        section = next((one for one in sections_of(self.text) if one.start <= start < one.end), None)
        above = section.path if section else ()
        # A part that begins with its own heading needs only those above it.
        named = above[:-1] if section and section.start == start else above
        if not named:
            return "[…]"
        return f"[…] (in: {' › '.join(named)})"
