"""An agent's report: its findings as statements with numbers of its own, bounded, every loss counted. Pure.

The numbers of all agents together are one scheme: a document keeps the number that it got first, and none changes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from contracts.call_sizes import BYTES_PER_TOKEN
from contracts.evidence import Finding
from contracts.vocabulary import Confidence

MOST_TOKENS: Final = 10_000
"""Of one report."""
UNSURE: Final = (Confidence.LOW, Confidence.SPECULATION)


@dataclass(frozen=True)
class Line:
    """A statement, and the documents that it rests on."""

    statement: str
    numbers: tuple[int, ...]
    unsure: bool = False

    def text(self) -> str:
        """As it is read: without heading, conclusion or any form but the numbers behind it."""
        marks = "".join(f"[{number}]" for number in self.numbers)
        return f"{self.statement.rstrip()}{' (weakly supported)' if self.unsure else ''} {marks}".rstrip()


@dataclass(frozen=True)
class IntermediateReport:
    """What an agent hands over."""

    lines: list[Line]
    documents: dict[int, str] = field(default_factory=dict)
    """What each number stands for: the id of a source."""
    left_out: int = 0
    """Findings that had no room in it."""

    def text(self) -> str:
        """One statement a line."""
        return "\n".join(line.text() for line in self.lines)


def tokens_of(text: str) -> int:
    """A bound for the tokens of a text."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def report_of(findings: Sequence[Finding], most_tokens: int = MOST_TOKENS) -> IntermediateReport:
    """The report of one agent: documents are numbered from 1 as they come.

    Where not all has room, what is best supported stays, in its order; what has none is counted.
    """
    documents: dict[str, int] = {}
    every = [
        Line(
            finding.statement,
            tuple(dict.fromkeys(documents.setdefault(source, len(documents) + 1) for source in finding.source_ids)),
            finding.confidence in UNSURE,
        )
        for finding in findings
    ]
    kept: list[int] = []
    left = most_tokens
    for place in sorted(range(len(every)), key=lambda place: (every[place].unsure, place)):
        size = tokens_of(every[place].text() + "\n")
        if size <= left:
            kept.append(place)
            left -= size
    lines = [every[place] for place in sorted(kept)]
    cited = {number for line in lines for number in line.numbers}
    named = {number: source for source, number in documents.items() if number in cited}
    return IntermediateReport(lines, named, len(every) - len(lines))


def collapse(
    reports: Iterable[IntermediateReport], given: Mapping[int, str] | None = None
) -> tuple[list[IntermediateReport], dict[int, str]]:
    """The reports under one numbering, and what each of its numbers stands for.

    `given` are numbers that were told before: they never change.
    """
    documents = dict(given or {})
    known = {document: number for number, document in reversed(documents.items())}
    collapsed = []
    for report in reports:
        for _, document in sorted(report.documents.items()):
            if document not in known:
                known[document] = max(documents, default=0) + 1
                documents[known[document]] = document
        shifted = {local: known[document] for local, document in report.documents.items()}
        lines = [
            Line(line.statement, tuple(dict.fromkeys(shifted[number] for number in line.numbers)), line.unsure)
            for line in report.lines
        ]
        collapsed.append(
            IntermediateReport(
                lines, {shifted[number]: one for number, one in report.documents.items()}, report.left_out
            )
        )
    return collapsed, documents
