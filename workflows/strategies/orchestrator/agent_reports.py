"""Reports of agents: statements with numbers, bounded in size, under one numbering, and what they lack. Pure.

A document keeps the number that it got first, over all agents of a run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from contracts.call_sizes import BYTES_PER_TOKEN
from contracts.evidence import Finding
from contracts.texts import plural
from contracts.vocabulary import Confidence

MOST_TOKENS: Final = 10_000
"""Size of one report."""
UNSURE: Final = (Confidence.LOW, Confidence.SPECULATION)
FEWEST_FINDINGS: Final = 3
FEWEST_SOURCES: Final = 2


@dataclass(frozen=True)
class Line:
    """A statement, and the numbers of its documents."""

    statement: str
    numbers: tuple[int, ...]
    unsure: bool = False

    def text(self) -> str:
        """Return the statement with its numbers."""
        marks = "".join(f"[{number}]" for number in self.numbers)
        return f"{self.statement.rstrip()}{' (weakly supported)' if self.unsure else ''} {marks}".rstrip()


@dataclass(frozen=True)
class IntermediateReport:
    """The report of one agent."""

    lines: list[Line]
    documents: dict[int, str] = field(default_factory=dict)
    """Number → id of a source."""
    omitted: int = 0
    """Findings without room in it."""

    def text(self) -> str:
        """Return one statement a line."""
        return "\n".join(line.text() for line in self.lines)


def tokens_of(text: str) -> int:
    """Return an upper bound for the tokens of a text."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def report_of(findings: Sequence[Finding], most_tokens: int = MOST_TOKENS) -> IntermediateReport:
    """Return the report of one agent, with documents numbered from 1 in the order of their first mention.

    Where room is short the best-supported findings remain, in their order; the others are counted.
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
    chosen: list[int] = []
    room = most_tokens
    for place in sorted(range(len(every)), key=lambda place: (every[place].unsure, place)):
        size = tokens_of(every[place].text() + "\n")
        if size <= room:
            chosen.append(place)
            room -= size
    lines = [every[place] for place in sorted(chosen)]
    cited = {number for line in lines for number in line.numbers}
    named = {number: source for source, number in documents.items() if number in cited}
    return IntermediateReport(lines, named, len(every) - len(lines))


def collapse(
    reports: Iterable[IntermediateReport], given: Mapping[int, str] | None = None
) -> tuple[list[IntermediateReport], dict[int, str]]:
    """Return the reports under one numbering, and the document of each number.

    `given` is the numbering so far, which never changes.
    """
    documents = dict(given or {})
    numbers = {document: number for number, document in reversed(documents.items())}
    collapsed = []
    for report in reports:
        for _, document in sorted(report.documents.items()):
            if document not in numbers:
                numbers[document] = max(documents, default=0) + 1
                documents[numbers[document]] = document
        shifted = {local: numbers[document] for local, document in report.documents.items()}
        lines = [
            Line(line.statement, tuple(dict.fromkeys(shifted[number] for number in line.numbers)), line.unsure)
            for line in report.lines
        ]
        named = {shifted[number]: document for number, document in report.documents.items()}
        collapsed.append(IntermediateReport(lines, named, report.omitted))
    return collapsed, documents


def remarks_on(findings: Sequence[Finding], omitted: int = 0) -> list[str]:
    """Return the weaknesses of a report that the orchestrator should know; empty for a thorough one."""
    if not findings:
        return ["nothing was found"]
    sources = {source for finding in findings for source in finding.source_ids}
    uncited = sum(not finding.evidence_ids for finding in findings)
    weak = sum(finding.confidence in UNSURE for finding in findings)
    contested = sum(bool(finding.contradicts) for finding in findings)
    remarks = {
        f"shallow: {plural(len(findings), 'finding')}": len(findings) < FEWEST_FINDINGS,
        "one source alone says all of it": len(sources) < FEWEST_SOURCES,
        f"uncited: {plural(uncited, 'statement')}": uncited,
        f"weakly supported: {weak} of {len(findings)} findings": 2 * weak > len(findings),
        f"sources disagree about {plural(contested, 'finding')}": contested,
        f"{plural(omitted, 'finding')} had no room in this report; the final report has them": omitted,
    }
    return [remark for remark, applies in remarks.items() if applies]
