"""Evidence, findings, gaps: what was learnt, and from which words of which document."""

from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.vocabulary import Confidence, GapKind, GapStatus, Severity

ASKED_BY_PERSON: Final = "steer"
"""Origin of the gaps that people open while a run goes on."""


class Evidence(Contract):
    """A verbatim passage: `text[start:end]` of the stored text of its source."""

    id: str
    source_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    quote_hash: str = ""
    """SHA-256 of the quote: what `research audit` compares. Empty where an entry of the notebook holds it."""
    heading: str = ""
    page: int | None = None
    """The page or slide on which it begins, from 1; None where its source has none."""
    sub_query_id: str | None = None
    entry: str | None = None
    """Hash of the stored entry that holds the rest of it; None where it holds everything itself."""


class Finding(Contract):
    """A statement with the evidence that supports it."""

    id: str
    statement: str = Field(max_length=600)
    confidence: Confidence = Confidence.LOW
    evidence_ids: list[str] = []
    source_ids: list[str] = []
    sub_query_id: str | None = None
    category: str | None = None
    contradicts: list[str] = []
    """Ids of findings of other sources that cannot be true beside it; kept in the entry, where there is one."""
    iteration: int = 1
    entry: str | None = None
    """Hash of the stored entry that holds it with its evidence; None where it holds everything itself."""


class PassagePlace(Contract):
    """Where a passage stands: its id follows from that."""

    source_id: str
    start: int
    end: int


class FindingLabel(Contract):
    """A finding as the workflow is told of it: its id follows from the rest, and an entry holds the details."""

    statement: str
    confidence: Confidence = Confidence.LOW
    places: list[PassagePlace] = []


class Gap(Contract):
    """What is still missing."""

    id: str
    description: str = Field(max_length=400)
    kind: GapKind = GapKind.MISSING
    status: GapStatus = GapStatus.OPEN
    severity: Severity = Severity.MODERATE
    priority: int = Field(default=1, ge=1)
    suggested_queries: list[str] = []
    origin: str = "analysis"
    """`analysis`, `sub_query:<id>`, `steer`."""
    resolved_by: list[str] = []
    iteration: int = 1


class QualityUpdate(Contract):
    """The analyzer's opinion of a source."""

    source_id: str
    quality: str
