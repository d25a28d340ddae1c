"""Reports of agents: statements with numbers of documents, bounded in size, and their omissions. Pure.

A document keeps the number that it got first, over all agents of a run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
class IntermediateReport:
    """The report of one agent."""

    text: str
    """One statement a line."""
    documents: list[str]
    """Ids of the sources of all reports so far: the number of a document is its place, from 1."""
    numbers: list[int]
    """Numbers of the documents in this report."""
    omitted: int = 0
    """Findings without room in it."""


def tokens_of(text: str) -> int:
    """Return an upper bound for the tokens of a text."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def report_of(
    findings: Sequence[Finding], known: Sequence[str] = (), most_tokens: int = MOST_TOKENS
) -> IntermediateReport:
    """Return the report of one agent; `known` are the documents of earlier reports, whose numbers never change.

    Where room is short the best-supported findings remain, in their order; the others are counted.
    """
    documents = list(dict.fromkeys([*known, *(source for finding in findings for source in finding.source_ids)]))
    numbers = {source: number for number, source in enumerate(documents, start=1)}
    lines = [_line(finding, numbers) for finding in findings]
    room, chosen = most_tokens, list[int]()
    for place in sorted(range(len(lines)), key=lambda place: (findings[place].confidence in UNSURE, place)):
        size = tokens_of(lines[place] + "\n")
        if size <= room:
            chosen.append(place)
            room -= size
    chosen.sort()
    return IntermediateReport(
        text="\n".join(lines[place] for place in chosen),
        documents=documents,
        numbers=sorted({numbers[source] for place in chosen for source in findings[place].source_ids}),
        omitted=len(lines) - len(chosen),
    )


def _line(finding: Finding, numbers: dict[str, int]) -> str:
    marks = "".join(f"[{numbers[source]}]" for source in dict.fromkeys(finding.source_ids))
    doubt = " (weakly supported)" if finding.confidence in UNSURE else ""
    return f"{finding.statement.rstrip()}{doubt} {marks}".rstrip()


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
