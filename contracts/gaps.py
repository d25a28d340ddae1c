"""Gaps that turn out to be none, as a model judges them."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from pydantic import Field

from contracts.base import Contract
from contracts.evidence import Finding, Gap, SectionRef
from contracts.lenient import distinct

MAX_GAP_SECTIONS: Final = 4
"""Sections of pages already read that are read once more for one gap."""


class SettledGap(Contract):
    """A gap that is none: the findings answer it, or another gap states the same."""

    gap_id: str
    answered_by: list[str] = Field(default=[], description="labels of the findings that together answer it")
    duplicate_of: str = Field(default="", description="label of the gap that states the same; otherwise empty")


class FurtherReading(Contract):
    """An open gap that passages of pages already read may answer."""

    gap_id: str
    passages: list[int] = Field(
        default=[], description="numbers of the listed passages that answer it, to be read in their sections"
    )


class GapReading(Contract):
    """Sections of pages already read that are to be analyzed for a gap."""

    gap_id: str
    sections: list[SectionRef]


G = TypeVar("G", bound=SettledGap)


def settle_gaps(proposed: Iterable[G], gaps: Sequence[Gap], findings: Sequence[Finding], notes: list[str]) -> list[G]:
    """Return the assessments of known gaps, one for each, with known findings and gaps alone.

    Of gaps that name each other as duplicates, the first one stays open.
    """
    gap_ids = {gap.id for gap in gaps}
    finding_ids = {finding.id for finding in findings}
    settled = set[str]()
    assessments = list[G]()
    items = list(proposed)
    judged = distinct((item for item in items if item.gap_id in gap_ids), lambda item: item.gap_id)
    if len(judged) < len(items):
        notes.append("assessments of unknown gaps, or second ones, were ignored")
    for item in judged:
        answered_by = [name for name in dict.fromkeys(item.answered_by) if name in finding_ids]
        is_other = item.duplicate_of in gap_ids - {item.gap_id} - settled
        duplicate_of = item.duplicate_of if is_other and not answered_by else ""
        if duplicate_of:
            settled.add(item.gap_id)
        assessments.append(item.with_fields(answered_by=answered_by, duplicate_of=duplicate_of))
    return assessments
