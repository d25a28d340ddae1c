"""Evidence markers become numbers: one number per source, by first appearance, never changed once given."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from activities.reporting.links import Registry, clean_links
from activities.reporting.markdown_layout import clean_characters, layout
from activities.roles.evidence_markers import MARKER, OWN_FORM, Citable, cited_evidence, unify_markers
from contracts.evidence import Evidence
from contracts.outcome import Citation

ONE = r"\[ev-[0-9A-Za-z]{1,64}+\]"
CLUSTER = re.compile(rf"\\.|(?P<marks>{ONE}(?:[ \t]{{0,3}}+[,;]?+[ \t]{{0,3}}+{ONE})*+)", re.DOTALL)
NUMBER = re.compile(r"\\.|\[(\d{1,3})\]", re.DOTALL)
"""A number in a finished report; an escaped bracket is stepped over, without a group."""
UNRESOLVED = "(unresolved)"
"""Left in the place of unknown markers where taking them out would turn the text behind them into code."""


@dataclass(frozen=True)
class CitationMark:
    """One emitted `[n]`: its characters in the text, and the passages it stands for."""

    start: int
    end: int
    number: int
    evidence_ids: tuple[str, ...]
    shown: str = ""
    """What a page shows for it; empty for the number."""

    def moved(self, by: int) -> "CitationMark":
        """The same mark in a text that has `by` characters more before it."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True)
class NumberedText:
    """A text with numbers, and what was taken out of it."""

    text: str
    citations: list[Citation]
    """Every number of the run: those given before, then the new ones."""
    marks: list[CitationMark] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    foreign_urls: list[str] = field(default_factory=list)


class _Numbering:
    """Numbers of sources while a text is read from its beginning to its end."""

    def __init__(self, evidence: Mapping[str, Evidence], given: Sequence[Citation]) -> None:
        self.evidence = evidence
        self.numbers = {citation.source_id: citation.number for citation in given}
        self.order = [citation.source_id for citation in given]

    def of(self, passage: Evidence) -> int:
        if passage.source_id not in self.numbers:
            self.numbers[passage.source_id] = max(self.numbers.values(), default=0) + 1
            self.order.append(passage.source_id)
        return self.numbers[passage.source_id]

    def resolve(self, cluster: str) -> dict[int, list[str]]:
        """The markers of a cluster by number."""
        groups: dict[int, list[str]] = {}
        for identity in dict.fromkeys(MARKER.findall(cluster)):
            groups.setdefault(self.of(self.evidence[identity]), []).append(identity)
        return groups

    def citations(self) -> list[Citation]:
        return [Citation(number=self.numbers[source], source_id=source) for source in self.order]


def _number_markers(text: str, numbering: _Numbering) -> tuple[str, list[CitationMark]]:
    """Replace each cluster of markers outside code; neighbours of one number become one."""
    pieces: list[str] = []
    marks: list[CitationMark] = []
    length = last = 0
    for match in CLUSTER.finditer(layout(text).masked):
        if match["marks"] is None:
            continue
        pieces.append(text[last : match.start()])
        length += len(pieces[-1])
        for number, markers in numbering.resolve(match["marks"]).items():
            label = f"[{number}]"
            marks.append(CitationMark(length, length + len(label), number, tuple(markers)))
            pieces.append(label)
            length += len(label)
        last = match.end()
        if text[last : last + 1] in ("(", ":", "["):
            # A number must never become the words of a link or the label of a definition.
            pieces.append("\\")
            length += 1
    return "".join(pieces) + text[last:], marks


def numbers_in(text: str) -> list[re.Match[str]]:
    """The numbers of a finished report, in order; neither code nor escaped brackets count."""
    return [match for match in NUMBER.finditer(layout(text).masked) if match[1]]


def _find_cited(text: str) -> set[str]:
    return set(cited_evidence(text))


def _sound(text: str, marks: Sequence[CitationMark]) -> bool:
    """Whether a parser sees every number as text, and no definition that was not there before."""
    return {match.start() for match in numbers_in(text)} == {mark.start for mark in marks} and not layout(
        text
    ).references


def number_citations(
    draft: str, evidence: Mapping[str, Evidence], given: Sequence[Citation], registry: Registry
) -> NumberedText:
    """A Markdown draft with `[ev-…]` markers as Markdown with numbers.

    Markers that name nothing, numbers that the writer made up, and addresses outside the registry are removed and
    reported; in code and in quotations they stay as words. Numbers in `given` are kept.
    """
    cleaned, foreign = clean_links(clean_characters(draft), registry)
    known = Citable({identity: identity for identity in evidence})
    cited = _find_cited(cleaned)
    for gap in ("", UNRESOLVED):
        numbering = _Numbering(evidence, given)
        unified, unresolved = unify_markers(cleaned, known, exact=True, gap=gap)
        text, marks = _number_markers(unified, numbering)
        if _find_cited(unified) >= cited & evidence.keys() and _sound(text, marks):
            break
    return NumberedText(text, numbering.citations(), marks, unresolved, foreign)


def without_numbers(text: str) -> str:
    """A foreign line (a title, a reason) without anything that looks like a number of ours."""
    return OWN_FORM.sub(lambda match: match[0] if match["items"] is None else "", text)
