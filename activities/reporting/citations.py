"""Evidence markers become numbers: one number per source, by first appearance, never changed once given (X-7)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape

from activities.reporting.addresses import Registry, clean_links
from activities.reporting.characters import clean_characters
from activities.reporting.layout import layout
from contracts.evidence import Evidence
from contracts.outcome import Citation

ITEM = r"(?:\^?\d{1,3}(?:\s?[-–]\s?\d{1,3})?|\^?(?:ev|src)-\w+)"
GROUP = rf"\\?[\[【［]{{1,2}}\s{{0,3}}{ITEM}(?:\s{{0,3}}[,;]\s{{0,3}}{ITEM}){{0,40}}\s{{0,3}}\\?[\]】］]{{1,2}}"
CLUSTER = re.compile(rf"(?P<blank>[ \t]{{0,9}})(?P<marks>{GROUP}(?:[ \t]{{0,3}}[,;]?[ \t]{{0,3}}{GROUP}){{0,40}})")
GROUPS = re.compile(GROUP)
ITEMS = re.compile(ITEM)
BRACKET_ENTITY = re.compile(r"&(?:#0*91|#[xX]0*5[bB]|lbrack|lsqb);|&(?:#0*93|#[xX]0*5[dD]|rbrack|rsqb);")
NUMBER = re.compile(r"\[(\d{1,3})\]")
"""A number in a finished report."""
MARKER = re.compile(r"[\[【［]\s{0,3}\^?((?:ev|src)-\w+)")
"""The beginning of a marker that a finished report must not have."""
UNRESOLVED = "(unresolved)"
"""Left in the place of unknown markers where taking them out would turn the text behind them into code."""


@dataclass(frozen=True)
class Mark:
    """One emitted `[n]`: its characters in the text, and the passages it stands for."""

    start: int
    end: int
    number: int
    evidence_ids: tuple[str, ...]

    def moved(self, by: int) -> "Mark":
        """The same mark in a text that has `by` characters more before it."""
        return Mark(self.start + by, self.end + by, self.number, self.evidence_ids)


@dataclass(frozen=True)
class NumberedText:
    """A text with numbers, and what was taken out of it."""

    text: str
    citations: list[Citation]
    """Every number of the run: those given before, then the new ones."""
    marks: list[Mark] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    foreign_urls: list[str] = field(default_factory=list)

    @property
    def cited_numbers(self) -> list[int]:
        """The numbers in this text, in order of first appearance."""
        return list(dict.fromkeys(mark.number for mark in self.marks))


class _Numbering:
    """Numbers of sources while a text is read from its beginning to its end."""

    def __init__(self, evidence: Mapping[str, Evidence], given: Sequence[Citation]) -> None:
        self.evidence = evidence
        self.numbers = {citation.source_id: citation.number for citation in given}
        self.order = [citation.source_id for citation in given]
        self.unresolved: list[str] = []

    def of(self, marker: str) -> int | None:
        passage = self.evidence.get(marker)
        if passage is None:
            self.unresolved.append(marker)
            return None
        if passage.source_id not in self.numbers:
            self.numbers[passage.source_id] = max(self.numbers.values(), default=0) + 1
            self.order.append(passage.source_id)
        return self.numbers[passage.source_id]

    def resolve(self, cluster: str) -> dict[int, list[str]]:
        """Known markers of a cluster by number. An escaped bracket is text of a page that looks like a marker."""
        groups: dict[int, list[str]] = {}
        for group in GROUPS.findall(cluster):
            for marker in ITEMS.findall(group):
                if group.startswith("\\"):
                    self.unresolved.append(marker)
                    continue
                identity = marker.lstrip("^")
                number = self.of(identity)
                if number is not None and identity not in groups.setdefault(number, []):
                    groups[number].append(identity)
        return groups

    def citations(self) -> list[Citation]:
        return [Citation(number=self.numbers[source], source_id=source) for source in self.order]


def _number_markers(text: str, numbering: _Numbering, gap: str) -> tuple[str, list[Mark]]:
    """Replace each cluster of markers outside code; neighbours of one number become one."""
    masked = layout(text).masked
    pieces: list[str] = []
    marks: list[Mark] = []
    length = last = 0

    def put(piece: str) -> None:
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    for match in CLUSTER.finditer(masked):
        groups = numbering.resolve(match.group("marks"))
        start, end = match.span()
        at_line_start = start == 0 or text[start - 1] == "\n"
        put(text[last:start] + (match.group("blank") if groups or gap or at_line_start else ""))
        for number, markers in groups.items():
            label = f"[{number}]"
            marks.append(Mark(length, length + len(label), number, tuple(markers)))
            put(label)
        last = end
        if groups and text[end : end + 1] in ("(", ":", "["):
            # A number must never become the words of a link or the label of a definition.
            put("\\")
        elif not groups:
            put(gap)
            last += at_line_start and not gap and text[end : end + 1] == " "
    put(text[last:])
    return "".join(pieces), marks


def _sound(text: str, marks: Sequence[Mark]) -> bool:
    """Whether a parser sees every number as text, and no definition that was not there before."""
    page = layout(text)
    seen = {match.start() for match in NUMBER.finditer(page.masked)}
    return seen == {mark.start for mark in marks} and not page.references


def number_citations(
    draft: str, evidence: Mapping[str, Evidence], given: Sequence[Citation], registry: Registry
) -> NumberedText:
    """A Markdown draft with `[ev-…]` markers as Markdown with numbers.

    Markers that name nothing, numbers that somebody wrote by hand, and addresses outside the registry are removed and
    reported; markers inside code stay as they are. Numbers in `given` are kept.
    """
    visible = BRACKET_ENTITY.sub(lambda match: unescape(match.group(0)), clean_characters(draft))
    cleaned, foreign = clean_links(visible, registry)
    for gap in ("", UNRESOLVED):
        numbering = _Numbering(evidence, given)
        text, marks = _number_markers(cleaned, numbering, gap)
        if _sound(text, marks):
            break
    return NumberedText(text, numbering.citations(), marks, list(dict.fromkeys(numbering.unresolved)), foreign)


def without_numbers(text: str) -> str:
    """A foreign text (a title, a heading, a quote to compare) without anything that looks like a number of ours."""
    return CLUSTER.sub(lambda match: "" if ITEMS.search(match.group("marks")) else match.group(0), text)
